// Loaded before a server (NODE_OPTIONS=--require=...), appends one line to the
// file that E2E_STARTS names: so a test can count how often a server was started.

require("node:fs").appendFileSync(process.env.E2E_STARTS, process.argv[1] + "\n");
