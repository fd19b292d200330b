// The fixed conversation with server-everything: each of its tools at least
// once, its prompts, completions, resources and subscriptions.

const STATIC = "demo://resource/static/document/features.md";
const TEXT = "demo://resource/dynamic/text/4";
const BLOB = "demo://resource/dynamic/blob/5";
const SESSION = "demo://resource/session/fixed.gz";
const DATA = "data:text/plain;base64,SGVsbG8gZ3ppcCBncHppIGd6aXAh";
const LOG = "notifications/message";
const UPDATED = "notifications/resources/updated";
const RESOURCES_CHANGED = "notifications/resources/list_changed";

/**
 * The steps in order. `prefix` goes before each tool and prompt name ("" or
 * "everything__"). A step is {method, params, awaits?, actions?, notify?, roots?}:
 * `awaits` maps the methods of messages that must arrive within the step to
 * their number; `actions` are the answers to its elicitations; `notify` is a
 * notification that is sent in place of a request; `roots` replaces the
 * client's roots first.
 */
export function steps(prefix) {
  const call = (tool, args, more = {}) => {
    const { _meta, ...rest } = more;
    return { method: "tools/call", params: { name: prefix + tool, arguments: args, _meta }, ...rest };
  };
  const prompt = (name, args) => ({ method: "prompts/get", params: { name: prefix + name, arguments: args } });
  const complete = (ref, name, value, context) => ({
    method: "completion/complete",
    params: { ref, argument: { name, value }, context },
  });
  const resource = (method, uri, more) => ({ method, params: { uri }, ...more });
  const team = { type: "ref/prompt", name: prefix + "completable-prompt" };

  return [
    { notify: "notifications/roots/list_changed", roots: ["file:///fixed/one", "file:///fixed/two"], awaits: { "roots/list": 1, [LOG]: 1 } },
    call("echo", { message: "ünïcode, <angles> & \"quotes\" \u2028" }),
    call("echo", {}),
    call("get-annotated-message", { messageType: "error", includeImage: true }),
    call("get-annotated-message", { messageType: "success" }),
    call("get-annotated-message", { messageType: "debug", includeImage: false }),
    call("get-env", {}),
    call("get-resource-links", { count: 4 }),
    call("get-resource-reference", { resourceType: "Text", resourceId: 2 }),
    call("get-resource-reference", { resourceType: "Blob", resourceId: 3 }),
    call("get-roots-list", {}),
    call("get-structured-content", { location: "Chicago" }),
    call("get-structured-content", { location: "Nowhere" }),
    call("get-sum", { a: 1.5, b: 2 }),
    call("get-tiny-image", {}),
    { method: "resources/list", params: {} }, // a change is announced to those who know the list
    call("gzip-file-as-resource", { name: "fixed.gz", data: DATA, outputType: "resourceLink" }, { awaits: { [RESOURCES_CHANGED]: 1 } }),
    { method: "resources/list", params: {} },
    resource("resources/read", SESSION),
    call("gzip-file-as-resource", { name: "fixed.gz", data: DATA, outputType: "resource" }),
    call("gzip-file-as-resource", { name: "bad", data: "not a url" }),
    call("simulate-research-query", { topic: "proxies" }),
    call("toggle-simulated-logging", {}, { awaits: { [LOG]: 1 } }),
    call("toggle-simulated-logging", {}),
    resource("resources/subscribe", STATIC, { awaits: { [LOG]: 1 } }),
    resource("resources/subscribe", TEXT, { awaits: { [LOG]: 1 } }),
    call("toggle-subscriber-updates", {}, { awaits: { [UPDATED]: 2 } }),
    call("toggle-subscriber-updates", {}),
    resource("resources/unsubscribe", TEXT, { awaits: { [LOG]: 1 } }),
    call("toggle-subscriber-updates", {}, { awaits: { [UPDATED]: 1 } }),
    call("toggle-subscriber-updates", {}),
    call("trigger-elicitation-request", {}, { awaits: { "elicitation/create": 1 } }),
    call("trigger-elicitation-request", {}, { awaits: { "elicitation/create": 1 }, actions: ["decline"] }),
    call("trigger-elicitation-request", {}, { awaits: { "elicitation/create": 1 }, actions: ["cancel"] }),
    call("trigger-url-elicitation", { url: "https://example.org/a", elicitationId: "fixed-1" }, { awaits: { "elicitation/create": 1 } }),
    call("trigger-url-elicitation", { url: "https://example.org/b", errorPath: true }),
    call("trigger-url-elicitation", { url: "https://example.org/b", errorPath: true }, { awaits: { "elicitation/create": 1 } }),
    call("trigger-sampling-request", { prompt: "what is a proxy?", maxTokens: 17 }, { awaits: { "sampling/createMessage": 1 } }),
    call("trigger-long-running-operation", { duration: 0.3, steps: 3 }, { _meta: { progressToken: "fixed-token" }, awaits: { "notifications/progress": 3 } }),
    call("trigger-long-running-operation", { duration: 0.2, steps: 2 }, { _meta: { progressToken: 0 }, awaits: { "notifications/progress": 2 } }),
    call("trigger-long-running-operation", { duration: 0.1, steps: 1 }),
    prompt("simple-prompt"),
    prompt("args-prompt", { city: "Paris", state: "Texas" }),
    prompt("args-prompt", {}),
    prompt("completable-prompt", { department: "Sales", name: "Eve" }),
    prompt("resource-prompt", { resourceType: "Text", resourceId: "2" }),
    complete(team, "department", "E"),
    complete(team, "name", "", { arguments: { department: "Support" } }),
    complete({ type: "ref/resource", uri: "demo://resource/dynamic/text/{resourceId}" }, "resourceId", "12"),
    resource("resources/read", STATIC),
    resource("resources/read", TEXT),
    resource("resources/read", BLOB),
    resource("resources/read", "demo://resource/dynamic/text/none"),
    { method: "logging/setLevel", params: { level: "emergency" } },
    resource("resources/subscribe", BLOB),
  ];
}
