// Records what the servers of manifest.json list.
//
//   node record.mjs install FOLDER [NAME...]   installs each server in FOLDER/NAME
//   node record.mjs record FOLDER [NAME...]    starts each and writes NAME.json and its entry in manifest.json
//
// A server is started with the arguments and environment of its entry, in a home
// and working folder that holds only the files of its entry, and with nothing else
// of this environment but PATH.
// NAME.json holds the tools of all pages as they were sent.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname, homedir, tmpdir, userInfo } from "node:os";
import path from "node:path";

const here = import.meta.dirname;
const manifestFile = path.join(here, "manifest.json");
const manifest = JSON.parse(readFileSync(manifestFile, "utf8"));

const [action, folder, ...names] = process.argv.slice(2);
const actions = { install, record };
if (!actions[action] || !folder) throw new Error("usage: record.mjs install|record FOLDER [NAME...]");
for (const name of names) {
  if (!manifest.servers.some((server) => server.name === name)) throw new Error(`no server ${name} in manifest.json`);
}
let failed = false;
for (const server of manifest.servers) {
  if (names.length > 0 && !names.includes(server.name)) continue;
  try {
    actions[action](server, path.resolve(folder, server.name));
  } catch (error) {
    failed = true;
    console.error(`${server.name}: ${error.message}`);
  }
}
if (action === "record") writeFileSync(manifestFile, JSON.stringify(manifest, null, 2) + "\n");
process.exit(failed ? 1 : 0);

function install(server, into) {
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-progress", "--save-exact"];
  execFileSync("npm", ["install", ...flags, "--prefix", into, `${server.package}@${server.version}`], { stdio: "inherit" });
}

function record(server, from) {
  const { tools, initialize } = listed(server, from);
  const text = JSON.stringify(tools) + "\n";
  server.recorded = new Date().toISOString().slice(0, 10);
  server.tools = tools.length;
  const { title, description } = initialize.serverInfo;
  Object.assign(server, { title, description, instructions: initialize.instructions });
  forbidMachine(text + JSON.stringify(server), from);
  writeFileSync(path.join(here, server.name + ".json"), text);
  console.error(`${server.name}: ${tools.length} tools, ${text.length} bytes`);
}

/** Starts a server and returns its tools and its answer to initialize. */
function listed(server, from) {
  const home = mkdtempSync(path.join(tmpdir(), "record-"));
  try {
    for (const [name, content] of Object.entries(server.files ?? {})) {
      mkdirSync(path.dirname(path.join(home, name)), { recursive: true });
      writeFileSync(path.join(home, name), JSON.stringify(content));
    }
    const printed = execFileSync(
      process.execPath,
      [path.join(here, "../npm/scripts/list-raw.mjs"), "--only", "tools/list", process.execPath, program(server, from), ...(server.args ?? [])],
      { cwd: home, env: { PATH: process.env.PATH, HOME: home, ...server.env }, maxBuffer: 1 << 28, timeout: 120_000, stdio: ["ignore", "pipe", "pipe"] },
    );
    const lines = JSON.parse(printed);
    const pages = lines["tools/list"].map(asSent);
    return { tools: pages.flatMap((page) => page.result.tools), initialize: asSent(lines.initialize).result };
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** Decodes a line that is the same again when it is encoded, so that nothing of it is lost. */
function asSent(line) {
  const message = JSON.parse(line);
  if (JSON.stringify(message) !== line) throw new Error("the answer would not stay as it was sent");
  return message;
}

/** The script that a package runs as a command. */
function program(server, from) {
  const root = path.join(from, "node_modules", server.package);
  const { bin, version } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
  if (version !== server.version) throw new Error(`version ${version} is installed, not ${server.version}`);
  const script = typeof bin === "string" ? bin : bin[server.bin] ?? Object.values(bin)[0];
  return path.join(root, script);
}

/** Refuses what would tell of the machine on which it was recorded. */
function forbidMachine(text, from) {
  const words = [from, homedir(), path.join(tmpdir(), "record-"), `@${hostname()}`, `/${userInfo().username}/`];
  for (const word of words) {
    for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
      // Within a longer path it is one of a web API.
      if (!/[\w})*]/.test(text[at - 1])) throw new Error(`the answer holds ${text.slice(at - 20, at + 60)}`);
    }
  }
}
