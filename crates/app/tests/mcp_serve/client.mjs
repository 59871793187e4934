// The official TypeScript client as a client of `turnwright mcp serve` and `/mcp`. Prints one JSON object of what it saw.
//
// client.mjs NODE_MODULES URL…           over streamable HTTP; of several addresses each request goes to the next one, and
//                                        what a person says to another one than the call that asked
// client.mjs NODE_MODULES PROGRAM ARG…   over standard input and output
import path from "node:path";
import { pathToFileURL } from "node:url";

const [modules, ...target] = process.argv.slice(2);
const sdk = (file) => import(pathToFileURL(path.join(modules, "@modelcontextprotocol/sdk/dist/esm", file)));
const { Client } = await sdk("client/index.js");
const { StdioClientTransport } = await sdk("client/stdio.js");
const { StreamableHTTPClientTransport } = await sdk("client/streamableHttp.js");
const { ElicitRequestSchema, ToolListChangedNotificationSchema } = await sdk("types.js");

let requests = 0;
let called = 0;
/** Sends a request to the address whose turn it is, as a load balancer does; an answer, and that a call is not wanted any more, never to the call's. */
function balanced(url, init) {
  let at = requests++ % target.length;
  const method = init?.body ? JSON.parse(init.body).method : "";
  if (method === "tools/call") called = at;
  if (method === undefined || method === "notifications/cancelled") at = (called + 1) % target.length;
  return fetch(target[at], init);
}

async function connected(decision) {
  const capabilities = decision === undefined ? {} : { elicitation: {} };
  const client = new Client({ name: "official", version: "1" }, { capabilities });
  const asked = [];
  if (decision !== undefined) {
    client.setRequestHandler(ElicitRequestSchema, async (request) => {
      asked.push(request.params.message);
      return decision === null ? { action: "cancel" } : { action: "accept", content: { decision } };
    });
  }
  const transport = target[0].startsWith("http")
    ? new StreamableHTTPClientTransport(new URL(target[0]), { fetch: balanced })
    : new StdioClientTransport({ command: target[0], args: target.slice(1), env: { ...process.env }, stderr: "inherit" });
  await client.connect(transport);
  return { client, asked };
}

const text = (result) => ({ error: result.isError ?? false, text: result.content[0].text });
const saw = {};
{
  const { client } = await connected(undefined);
  saw.server = client.getServerVersion().name;
  const names = (await client.listTools()).tools.map((tool) => tool.name);
  saw.has_echo = names.includes("everything__echo");
  saw.echo = text(await client.callTool({ name: "everything__echo", arguments: { message: "hi" } }));
  const image = await client.callTool({ name: "everything__get-tiny-image", arguments: {} });
  saw.image = image.content.find((block) => block.type === "image").mimeType;
  const weather = await client.callTool({ name: "everything__get-structured-content", arguments: { location: "Chicago" } });
  saw.structured = Object.keys(weather.structuredContent).sort();
  const progress = [];
  const long = { name: "everything__trigger-long-running-operation", arguments: { duration: 0.3, steps: 3 } };
  await client.callTool(long, undefined, { onprogress: ({ progress: at, total }) => progress.push([at, total]) });
  saw.progress = progress;
  saw.unknown = await client.callTool({ name: "nobody__nothing" }).catch((error) => error.code);
  const stop = new AbortController();
  const never = { ...long, arguments: { duration: 600, steps: 6000 } };
  const stopped = client.callTool(never, undefined, { signal: stop.signal, onprogress: () => stop.abort("enough") });
  saw.stopped = await stopped.then(() => "an answer", () => "an error");
  saw.after = text(await client.callTool({ name: "everything__echo", arguments: { message: "still here" } }));
  await client.close();
}
for (const [name, decision] of [["allowed", "allow"], ["denied", "deny"], ["cancelled", null]]) {
  const { client, asked } = await connected(decision);
  const sum = await client.callTool({ name: "everything__get-sum", arguments: { a: 1, b: 3 } });
  saw[name] = { asked, ...text(sum) };
  await client.close();
}
console.log(JSON.stringify(saw));
process.exit(0);
