// A client whose every answer is fixed: it announces sampling, elicitation
// (form and URL) and roots, and records all that a server sends, in order.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";
import { RawStdioTransport } from "./raw-stdio.mjs";

/** How long one awaited message may take, in ms. */
const PATIENCE = 20_000;

const CAPABILITIES = {
  sampling: {},
  elicitation: { form: {}, url: {} },
};
const ROOTS = { roots: { listChanged: true } };

const SAMPLED = {
  role: "assistant",
  content: { type: "text", text: "a fixed answer, with ünïcode and <angles>" },
  model: "fixed-model",
  stopReason: "endTurn",
};

const FORM = {
  name: "Ada Lovelace",
  check: true,
  email: "ada@example.org",
  birthdate: "1815-12-10",
  integer: 7,
  number: 2.5,
};

export class FixedClient {
  #waiting = [];
  #events = [];

  constructor(command, args, roots = true) {
    this.transport = new RawStdioTransport(command, args);
    this.transport.onraw = (line, message) => this.#record(line, message);
    this.roots = [{ uri: "file:///fixed/one", name: "one" }];
    /** What the next elicitations are answered with: accept, decline or cancel. */
    this.actions = [];
    this.client = new Client({ name: "fixed-client", version: "1.0.0" }, { capabilities: { ...CAPABILITIES, ...(roots ? ROOTS : {}) } });
    this.client.setRequestHandler(CreateMessageRequestSchema, () => SAMPLED);
    this.client.setRequestHandler(ElicitRequestSchema, (request) => this.#elicited(request.params));
    if (roots) this.client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: this.roots }));
  }

  connect() {
    return this.client.connect(this.transport);
  }

  close() {
    return this.client.close();
  }

  #elicited(params) {
    const action = this.actions.shift() ?? "accept";
    return action === "accept" && params.mode !== "url" ? { action, content: FORM } : { action };
  }

  #record(line, message) {
    this.#events.push({ line, method: message.method, id: message.id });
    for (const check of [...this.#waiting]) check();
  }

  /** The messages recorded since the last call, oldest first: {line, method, id}. */
  takeEvents() {
    return this.#events.splice(0);
  }

  /**
   * Resolves when `count` messages with this method have been recorded since the
   * last takeEvents; fails after 20 s.
   */
  async sees(method, count = 1) {
    const seen = () => this.#events.filter((event) => event.method === method).length >= count;
    if (seen()) return;
    await new Promise((resolve, reject) => {
      const check = () => seen() && finish(resolve);
      const timer = setTimeout(
        () => finish(reject, new Error(`${method} did not arrive ${count} time(s) in ${PATIENCE} ms`)),
        PATIENCE,
      );
      const finish = (settle, value) => {
        clearTimeout(timer);
        this.#waiting = this.#waiting.filter((other) => other !== check);
        settle(value);
      };
      this.#waiting.push(check);
    });
  }

  /** Sends one request and resolves with its result, or undefined where the answer is an error. */
  async request(method, params) {
    try {
      return await this.client.request({ method, params }, z.any(), { timeout: PATIENCE });
    } catch (error) {
      if (error?.code === undefined || error.code === -32001) throw error;
      return undefined; // the recorded line holds the error as it was sent
    }
  }

  notify(method) {
    return this.client.notification({ method });
  }
}
