// Lists everything that a server offers and prints the raw answers.
//
//   node list-raw.mjs [--only METHOD] [--until NAME,NAME...] COMMAND [ARG...]
//
// With --only no other list is asked for.
// With --until the tools are listed again after each `list_changed`, for at
// most a minute, until the tools of every named server (NAME__...) are there:
// a proxy that is started for the first time answers with what it has so far.
//
// Prints one JSON object: {"initialize": LINE, "tools/list": [LINE...],
// "resources/list": [...], "resources/templates/list": [...],
// "prompts/list": [...]}, where LINE is the response exactly as it was received
// and a list has one entry for each page. A list that the server does not
// announce is absent.

import { EventEmitter, once } from "node:events";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { z } from "zod";
import { RawStdioTransport } from "./raw-stdio.mjs";

const LISTS = [
  ["tools", "tools/list"],
  ["resources", "resources/list"],
  ["resources", "resources/templates/list"],
  ["prompts", "prompts/list"],
];
const TOOLS_CHANGED = "notifications/tools/list_changed";
const PATIENCE = 60_000;

const argv = process.argv.slice(2);
const flag = (name) => (argv[0] === name ? argv.splice(0, 2)[1] : undefined);
const only = flag("--only");
const servers = flag("--until")?.split(",") ?? [];
const [command, ...args] = argv;

const transport = new RawStdioTransport(command, args);
const changed = new EventEmitter();
let changes = 0;
let lastResponse = "";
transport.onraw = (line, message) => {
  if (message.method === undefined) lastResponse = line;
  if (message.method === TOOLS_CHANGED) {
    changes++;
    changed.emit("tools");
  }
};
const client = new Client({ name: "list-raw", version: "1.0.0" }, { capabilities: {} });

/** Asks for all pages of one list: the raw lines, and the results for a look at them. */
async function pages(method) {
  const lines = [];
  const results = [];
  let cursor;
  do {
    const result = await client.request({ method, params: cursor && { cursor } }, z.any());
    lines.push(lastResponse);
    results.push(result);
    cursor = result.nextCursor;
  } while (cursor !== undefined);
  return { lines, results };
}

async function waitForServers() {
  const signal = AbortSignal.timeout(PATIENCE);
  for (;;) {
    const before = changes;
    const { results } = await pages("tools/list");
    const tools = results.flatMap((result) => result.tools);
    const missing = servers.filter((name) => !tools.some((tool) => tool.name.startsWith(name + "__")));
    if (missing.length === 0) return;
    if (changes > before) continue;
    await once(changed, "tools", { signal }).catch((error) => {
      throw new Error(`no tools of ${missing.join(", ")} after ${PATIENCE} ms`, { cause: error });
    });
  }
}

await client.connect(transport);
const output = { initialize: lastResponse };
try {
  await waitForServers();
  for (const [capability, method] of LISTS) {
    if (client.getServerCapabilities()[capability] === undefined || (only ?? method) !== method) continue;
    output[method] = (await pages(method)).lines;
  }
} finally {
  await client.close();
}
console.log(JSON.stringify(output));
