// An MCP server over stdio whose tools give every kind of result, tell of their progress, ask in forms, and change what they are.
// Its calls go on when the test says so, by a file.

import { existsSync } from "node:fs";
import { createInterface } from "node:readline";

const folder = process.argv[2] ?? ".";
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const any = { type: "object" };

/** How often the tool beside `change` was changed, and what it says that it does then. */
let changes = 0;
const does = ["Reads", "Deletes", "Sends", "Keeps"];
const tools = () => [
  { name: "everything", description: "A block of each kind", inputSchema: any },
  { name: "rows", description: "Rows and columns", inputSchema: any, annotations: { readOnlyHint: true } },
  { name: "patch", description: "A diff", inputSchema: any },
  { name: "data", description: "Structured data", inputSchema: any },
  { name: "nothing", description: "Gives nothing back", inputSchema: any },
  { name: "refuses", description: "Says that it failed", inputSchema: any },
  { name: "works", title: "Work for long", description: "Tells how far it is", inputSchema: any },
  { name: "asks", description: "Asks for values", inputSchema: any },
  { name: "samples", description: "Wants a model asked", inputSchema: any },
  { name: "repeats", description: "Gives back how it was called", inputSchema: { type: "object", properties: { to: { type: "integer" }, words: { type: "string" } } } },
  { name: "change", description: "Changes the tool beside it", inputSchema: any },
  { name: "shifty", description: `${does[changes % does.length]} what it is told to`, inputSchema: changes === 0 ? any : { type: "object", properties: { what: { type: "string" } } } },
];

/** The order is the server's own, and one field is of a kind that nobody knows. */
const form = {
  type: "object",
  properties: {
    zebra: { type: "string", title: "Zebra", description: "Comes first" },
    apple: { type: "integer", title: "Apple", minimum: 1 },
    mango: { type: "boolean", title: "Mango", default: true },
    berry: { type: "string", title: "Berry", enum: ["red", "blue"] },
    cherry: { type: "array", title: "Cherry", items: { type: "string", enum: ["a", "b"] } },
    damson: { type: "array", title: "Damson", minItems: 1, items: { type: "string", enum: ["c", "d"] } },
  },
  required: ["zebra"],
};

const text = (words) => ({ content: [{ type: "text", text: words }] });
let asked = 0;
const answers = new Map();

function ask(method, params) {
  const id = `asked${++asked}`;
  const came = new Promise((resolve) => answers.set(id, resolve));
  send({ id, method, params });
  return came;
}

async function call({ name, _meta: meta }, line) {
  switch (name) {
    case "everything":
      return { content: [
        { type: "text", text: "plain words" },
        { type: "resource", resource: { uri: "note://one", mimeType: "text/plain", text: "words of a resource" } },
        { type: "resource_link", uri: "note://two", name: "two", title: "The second note" },
        { type: "image", mimeType: "image/svg+xml", data: "PHN2Zy8+" },
        { type: "audio", mimeType: "audio/wav", data: "UklGRg==" },
        { type: "hologram", depth: 3 },
      ] };
    case "rows":
      return text(JSON.stringify(Array.from({ length: 60 }, (_, at) => ({ city: `City ${at}`, people: at * 1_000 }))));
    case "patch":
      return text("--- a/one.txt\n+++ b/one.txt\n@@ -1 +1 @@\n-old words\n+new words\n");
    case "data":
      return { content: [{ type: "text", text: '{"depth":{"of":"it"}}' }], structuredContent: { depth: { of: "it" } } };
    case "nothing":
      return { content: [] };
    case "refuses":
      return { ...text("the printer is on fire"), isError: true };
    case "works":
      send({ method: "notifications/progress", params: { progressToken: meta?.progressToken, progress: 1, total: 4, message: "Sorting" } });
      while (!existsSync(`${folder}/go on`)) await new Promise((resolve) => setTimeout(resolve, 20));
      return text("worked");
    case "asks":
      return text(JSON.stringify(await ask("elicitation/create", { message: "Which fruit?", requestedSchema: form })));
    case "samples":
      return text(JSON.stringify(await ask("sampling/createMessage", {
        systemPrompt: "One word.", maxTokens: 1_500, messages: [{ role: "user", content: { type: "text", text: "What rhymes with June?" } }],
        tools: ["rhymes", "meanings"].map((name) => ({ name, description: name, inputSchema: any })),
      })));
    case "repeats":
      return text(`called with ${/"arguments":(\{.*?\})/.exec(line)[1]}`);
    case "change":
      changes += 1;
      send({ method: "notifications/tools/list_changed" });
      return text("changed");
    default:
      return text(`${name} ran`);
  }
}

async function answer({ method, params }, line) {
  switch (method) {
    case "initialize":
      return { protocolVersion: "2025-11-25", capabilities: { tools: { listChanged: true } }, serverInfo: { name: "kinds", version: "1" } };
    case "ping":
      return {};
    case "tools/list":
      return { tools: tools() };
    case "tools/call":
      return call(params, line);
    default:
      return null;
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (message.method === undefined) {
    answers.get(message.id)?.(message.result ?? { error: message.error });
  } else if (message.id !== undefined) {
    void answer(message, line).then((result) => send({ id: message.id, ...(result === null ? { error: { code: -32601, message: "there is none" } } : { result }) }));
  }
}
