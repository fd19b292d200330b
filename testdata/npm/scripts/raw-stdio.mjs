// A stdio transport for the official client that keeps every received line as
// text, so that a test can compare what a server really sent: no number is
// reformatted, no unknown member is dropped, no key is reordered.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** How long a child may take to end after its stdin was closed, in ms. */
const EXIT_GRACE = 5000;

export class RawStdioTransport {
  /**
   * @param {string} command executable of the server
   * @param {string[]} args its arguments
   * The child inherits the whole environment, the working folder and stderr.
   */
  constructor(command, args) {
    this.command = command;
    this.args = args;
    /** Called with (line, message) for each received line, before the client sees it. */
    this.onraw = () => {};
  }

  async start() {
    this.child = spawn(this.command, this.args, { stdio: ["pipe", "pipe", "inherit"] });
    this.exited = once(this.child, "exit");
    await once(this.child, "spawn");
    this.child.stdin.on("error", (error) => this.onerror?.(error));
    const lines = createInterface({ input: this.child.stdout, crlfDelay: Infinity });
    lines.on("line", (line) => this.#receive(line));
    lines.on("close", () => this.onclose?.());
  }

  #receive(line) {
    let message;
    try {
      message = JSON.parse(line);
    } catch (error) {
      this.onerror?.(new Error(`not JSON on stdout: ${line}`, { cause: error }));
      return;
    }
    this.onraw(line, message);
    this.onmessage?.(message);
  }

  async send(message) {
    if (!this.child.stdin.write(JSON.stringify(message) + "\n")) {
      await once(this.child.stdin, "drain");
    }
  }

  /** Closes the server's stdin and waits for it to end; a server that stays is killed. */
  async close() {
    this.child.stdin.end();
    const timer = setTimeout(() => this.child.kill("SIGKILL"), EXIT_GRACE);
    await this.exited;
    clearTimeout(timer);
  }
}
