// Holds the fixed conversation with server-everything and prints what came back.
//
//   node exercise-everything.mjs [--no-roots] [--prefix everything__] COMMAND [ARG...]
//
// COMMAND is the server itself, or a proxy in front of it that puts PREFIX
// before tool and prompt names; with --no-roots the client has none. Prints JSON Lines: first {"tools": LINE}, the
// answer to tools/list; then for each step {"step": REQUEST, "events": [LINE...]}
// with every message that arrived between the request and the answer to an
// `echo` sent after it, in order, each as the text that was received. Not in
// it: `list_changed` notifications, whose number a server and a proxy may
// choose, and the answer to that closing echo.

import { FixedClient } from "./fixed-client.mjs";
import { steps } from "./everything-steps.mjs";

const TOOLS_CHANGED = "notifications/tools/list_changed";
/** The tool that the server registers last, once it knows what the client can do. */
const LAST_TOOL = "simulate-research-query";

const argv = process.argv.slice(2);
const roots = argv[0] !== "--no-roots" || !argv.shift();
const prefix = argv[0] === "--prefix" ? argv.splice(0, 2)[1] : "";
const [command, ...args] = argv;

const print = (value) => console.log(JSON.stringify(value));
const kept = (event) => !event.method?.endsWith("/list_changed");

/** Lists the tools until the last one is there; a list that lacks it is to be followed by list_changed. */
async function listTools(fixed) {
  for (;;) {
    const result = await fixed.request("tools/list", {});
    if (result.tools.some((tool) => tool.name === prefix + LAST_TOOL)) return;
    await fixed.sees(TOOLS_CHANGED);
    fixed.takeEvents();
  }
}

const aboutRoots = (step) => step.roots || step.params?.name === prefix + "get-roots-list";

async function run(fixed, step) {
  if (step.roots) fixed.roots = step.roots.map((uri) => ({ uri, name: uri.split("/").pop() }));
  fixed.actions = step.actions ?? [];
  if (step.notify) await fixed.notify(step.notify);
  else await fixed.request(step.method, step.params);
  for (const [method, count] of Object.entries(step.awaits ?? {})) await fixed.sees(method, count);

  await fixed.request("tools/call", { name: prefix + "echo", arguments: { message: "step done" } });
  const events = fixed.takeEvents().filter(kept);
  events.splice(events.findLastIndex((event) => event.method === undefined), 1); // the closing echo
  print({ step: step.notify ? { method: step.notify } : { method: step.method, params: step.params }, events: events.map((event) => event.line) });
}

const fixed = new FixedClient(command, args, roots);
await fixed.connect();
await fixed.request("logging/setLevel", { level: "debug" });
fixed.takeEvents();
await listTools(fixed);
if (roots) {
  await fixed.sees("roots/list");
  await fixed.sees("notifications/message"); // about these roots
}
const start = fixed.takeEvents();
print({ tools: start.filter((event) => event.method === undefined).at(-1).line });

for (const step of steps(prefix)) if (roots || !aboutRoots(step)) await run(fixed, step);
await fixed.close();
