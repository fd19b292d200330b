// The official client as its users write it: its own stdio transport, its typed
// calls. It lists the tools and makes the given calls, in order.
//
//   node official-client.mjs CALLS COMMAND [ARG...]
//
// CALLS is a JSON array of {"name": TOOL, "arguments": {...}}. Prints one JSON
// object: {"server": serverInfo, "tools": [names], "results": [one for each call]}.
// Ends with status 1 and the error on stderr when anything is refused, the
// client's own validation of a result against its outputSchema included.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [calls, command, ...args] = process.argv.slice(2);
const client = new Client({ name: "official-client", version: "1.0.0" });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
try {
  const { tools } = await client.listTools();
  const results = [];
  for (const call of JSON.parse(calls)) results.push(await client.callTool(call));
  console.log(JSON.stringify({ server: client.getServerVersion(), tools: tools.map((tool) => tool.name), results }));
} finally {
  await client.close();
}
