// Commands that begin with a slash, and what `#` and `@` find: prompts and resources of MCP servers.

import { call, listed, part } from "./api.js";
import { go, models, open, pin, remove, renaming, tell } from "./app.js";
import { copy } from "./branch.js";

/** @typedef {{conversation: import("./conversation.js").OpenConversation | null, rest: string}} Given */
/** @typedef {{name: string, about: string, takes?: string, needs?: "conversation", run: (given: Given) => any}} Command */

/** @param {string} detail */
const ask = (detail) => window.dispatchEvent(new CustomEvent("command", { detail }));
const info = () => open.value?.info.value;

/** @type {Command[]} */
export const commands = [
  { name: "new", about: "Begin a new conversation", run: () => go(null) },
  { name: "model", takes: "NAME", about: "Choose the model of this conversation", run: ({ rest }) => chooseModel(rest) },
  { name: "approve", takes: "ask | read-only | all | none", about: "What runs without asking", run: ({ rest }) => approve(rest) },
  { name: "tools", about: "Choose the tools of this conversation", run: () => ask("tools") },
  { name: "settings", about: "Instructions, temperature, limits", run: () => ask("settings") },
  { name: "stop", needs: "conversation", about: "Stop the turn", run: ({ conversation }) => conversation?.stop() },
  { name: "retry", needs: "conversation", about: "Try the last turn again", run: ({ conversation }) => conversation?.retry() },
  { name: "rename", needs: "conversation", about: "Rename this conversation", run: () => (renaming.value = info()) },
  { name: "pin", needs: "conversation", about: "Pin this conversation, or let it go", run: () => pin(info()) },
  { name: "branch", needs: "conversation", about: "Copy this conversation as a branch", run: () => copy(info()) },
  { name: "export", needs: "conversation", about: "Save this conversation as a file", run: () => ask("export") },
  { name: "delete", needs: "conversation", about: "Delete this conversation", run: () => remove(info()) },
  { name: "inbox", about: "What waits for you", run: () => (location.hash = "#/inbox") },
  { name: "usage", about: "What was used", run: () => (location.hash = "#/usage") },
  { name: "servers", about: "The MCP servers", run: () => (location.hash = "#/servers") },
];

/**
 * The command that a line is, or why it is none; null for a message, as are paths such as `/etc/hosts`, and several lines.
 * @param {string} text
 * @returns {{command?: Command, rest: string, problem: string} | null}
 */
export function commandIn(text) {
  const [line, name, rest = ""] = text.trim().match(/^\/([^\s/]+)(?:[^\S\n]+(.*))?$/) ?? [];
  if (!line) return null;
  const command = commands.find((known) => known.name === name);
  const problem = !command ? `There is no command /${name}.`
    : command.needs && !open.value ? `There is no conversation yet for /${name}.`
    : rest && !command.takes ? `/${name} takes nothing after it.` : "";
  return { ...(command && !problem && { command }), rest, problem: problem && `${problem} With one more / before it it is a message.` };
}

/** What a text says that is a message: a line without the slash before another one. @param {string} text */
export const messageIn = (text) => text.replace(/^\s*\/(\/.*\s*)$/, "$1");

/** @param {string} words */
function chooseModel(words) {
  const found = (models.value ?? []).filter(({ id }) => id.toLowerCase().includes(words.toLowerCase()));
  const exact = found.find(({ id, model }) => id === words || model === words) ?? (found.length === 1 ? found[0] : undefined);
  if (!exact) throw new Error(words === "" ? "Name a model after /model." : `${found.length === 0 ? "No model is" : `${found.length} models are`} called like “${words}”.`);
  tell(`The model is ${exact.id}`);
  return change({ model: exact.id });
}

/** @param {string} mode */
function approve(mode) {
  if (!["ask", "read-only", "all", "none"].includes(mode)) throw new Error("Say one of ask, read-only, all and none after /approve.");
  return change({ settings: { approve: mode } });
}

/** @param {any} changed */
const change = (changed) => window.dispatchEvent(new CustomEvent("change-settings", { detail: changed }));

/** @typedef {{kind: "command" | "prompt" | "resource", key: string, name: string, about: string, server?: string, command?: Command, prompt?: any, resource?: any}} Suggestion */

/**
 * What may be meant by the word at the cursor.
 * @param {string} text up to the cursor
 * @returns {{sign: "/" | "#" | "@", word: string, from: number} | null}
 */
export function wordAt(text) {
  const command = text.match(/^\/([a-z]*)$/);
  if (command) return { sign: "/", word: command[1] ?? "", from: 0 };
  const found = text.match(/(?:^|\s)([#@])([^\s#@]*)$/);
  if (!found) return null;
  const word = found[2] ?? "";
  return { sign: /** @type {"#" | "@"} */ (found[1]), word, from: text.length - word.length - 1 };
}

/** @param {string} word @returns {Suggestion[]} */
export const commandsLike = (word) => commands.filter(({ name, needs }) => name.startsWith(word) && (!needs || open.value)).map((command) =>
  ({ kind: "command", key: command.name, name: `/${command.name}${command.takes ? ` ${command.takes}` : ""}`, about: command.about, command }));

/** @type {{at: number, list: Promise<Suggestion[]>} | null} */
let shelf = null;
const KEPT_MS = 30_000;

/** Prompts and resources of all servers that run. */
export function offered() {
  if (!shelf || Date.now() - shelf.at > KEPT_MS) shelf = { at: Date.now(), list: gather() };
  return shelf.list;
}

/** @returns {Promise<Suggestion[]>} */
async function gather() {
  const servers = (await listed("/mcp/servers")).filter((/** @type {any} */ server) => server.state === "ready");
  const found = await Promise.all(servers.flatMap((/** @type {{id: string}} */ { id }) => [
    // A server that has none says so by a refusal.
    listed(`/mcp/servers/${part(id)}/prompts`).then((/** @type {any} */ all) => all.map((/** @type {any} */ prompt) => ({ kind: "prompt", key: `${id} ${prompt.name}`,
      name: prompt.title ?? prompt.name, about: prompt.description ?? "", server: id, prompt })), () => []),
    listed(`/mcp/servers/${part(id)}/resources`).then((/** @type {any} */ all) => all.map((/** @type {any} */ resource) => ({ kind: "resource", key: `${id} ${resource.uri}`,
      name: resource.title ?? resource.name, about: resource.uri, server: id, resource })), () => []),
  ]));
  return found.flat();
}

/**
 * The content of a resource, as a block of a message.
 * @param {Suggestion} suggestion
 */
export async function readResource({ server, resource }) {
  const { contents } = await call(`/mcp/servers/${part(server ?? "")}/resources/read`, { body: { uri: resource.uri } });
  return contents.map((/** @type {any} */ content) => asBlock(content.uri, content.mime_type, content));
}

/**
 * @param {string} uri
 * @param {string | undefined} mimeType
 * @param {any} content
 */
function asBlock(uri, mimeType, { text, blob }) {
  if (blob !== undefined && blob !== null && mimeType?.startsWith("image/")) return { type: "image", data: blob, mimeType };
  return { type: "resource", resource: { uri, ...(mimeType && { mimeType }), ...(typeof text === "string" ? { text } : { blob }) } };
}

/**
 * What a prompt comes to: words for the composer, and what is attached.
 * @param {Suggestion} suggestion
 * @param {Record<string, string>} values
 */
export async function fillPrompt({ server, prompt }, values) {
  const { messages } = await call(`/mcp/servers/${part(server ?? "")}/prompts/get`, { body: { name: prompt.name, arguments: values } });
  const blocks = messages.flatMap((/** @type {any} */ said) => [said.content].flat());
  const words = blocks.filter((/** @type {any} */ block) => block.type === "text").map((/** @type {any} */ block) => block.text).join("\n\n");
  return { words, blocks: blocks.filter((/** @type {any} */ block) => block.type !== "text") };
}
