// Adding an MCP server: exactly what will run is shown before anything is stored.

import { useRef, useState } from "preact/hooks";
import { call, sentence } from "../lib/api.js";
import { tell } from "../lib/app.js";
import { html } from "../lib/html.js";

/** The line that a server's configuration means. @param {any} config */
export function whatRuns(config) {
  const quoted = (/** @type {any} */ word) => (/^[\w./:=@%+~${}-]+$/.test(word) ? word : `'${String(word).replaceAll("'", "'\\''")}'`);
  if (config.url) return String(config.url);
  if (config.image) return `docker: ${[config.image, ...(config.args ?? [])].map(quoted).join(" ")}`;
  if (config.command) return [config.command, ...(config.args ?? [])].map(quoted).join(" ");
  return "";
}

/**
 * Words of a line as a shell would part them, without doing anything else that a shell does.
 * @param {string} line
 */
export function wordsOf(line) {
  const words = line.match(/(?:"(?:[^"\\]|\\.)*"|'[^']*'|\\.|\S)+/g) ?? [];
  return words.map((word) => word.replace(/"((?:[^"\\]|\\.)*)"|'([^']*)'|\\(.)/g, (_, double, single, plain) => double?.replace(/\\([$`"\\])/g, "$1") ?? single ?? plain));
}

/** @param {{close: () => void, added: () => Promise<void>}} props */
export function AddServer({ close, added }) {
  const [kind, choose] = useState("command");
  const [name, call_it] = useState("");
  const [line, write] = useState("");
  const [variables, set] = useState("");
  const [failure, fail] = useState("");
  const [isSending, sending] = useState(false);
  const form = useRef(null);
  /** @type {any} */
  const config = {};
  const words = wordsOf(line);
  if (kind === "url") config.url = line.trim();
  else {
    config[kind] = words[0] ?? "";
    if (words.length > 1) config.args = words.slice(1);
  }
  const pairs = variables.split("\n").map((pair) => pair.trim()).filter((pair) => pair !== "").map((pair) => pair.split(/[=:](.*)/s));
  if (pairs.length > 0) config[kind === "url" ? "headers" : "env"] = Object.fromEntries(pairs.map(([key, value]) => [key?.trim(), (value ?? "").trim()]));
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    sending(true);
    fail("");
    try {
      const server = await call("/mcp/servers", { body: { name: name.trim(), config } });
      tell(`Added ${server.name}`);
      await added();
      close();
    } catch (error) {
      fail(sentence(error));
    } finally {
      sending(false);
    }
  };
  const input = (/** @type {(value: string) => void} */ into) => (/** @type {any} */ event) => into(event.target.value);
  return html`<section class="card add" aria-label="Add an MCP server"><form ref=${form} class="fields" onSubmit=${send}>
    <h2>Add an MCP server</h2>
    <div class="field"><label for="add-name">Name</label><input id="add-name" required value=${name} onInput=${input(call_it)} placeholder="time" autocomplete="off" /></div>
    <div class="field"><label for="add-kind">Kind</label><select id="add-kind" value=${kind} onChange=${input(choose)}>
      <option value="command">A program on this machine</option><option value="url">An address</option><option value="image">A Docker image</option></select></div>
    <div class="field"><label for="add-line">${kind === "url" ? "Address" : kind === "image" ? "Image and arguments" : "Command"}</label>
      <input id="add-line" class="mono" required value=${line} onInput=${input(write)} placeholder=${kind === "url" ? "https://example.org/mcp" : kind === "image" ? "mcp/time" : "uvx mcp-server-time"} autocomplete="off" spellcheck=${false} /></div>
    <div class="field"><label for="add-more">${kind === "url" ? "Headers, one a line" : "Environment, one NAME=value a line"}</label>
      <textarea id="add-more" class="mono" rows="2" value=${variables} onInput=${input(set)} spellcheck=${false} placeholder=${kind === "url" ? "Authorization: Bearer ${TOKEN}" : "TOKEN=${TOKEN}"}></textarea>
      <span class="faint more">A reference such as <code>${"${NAME}"}</code> is read from the server's environment and keeps a secret out of the database.</span></div>
    ${line.trim() !== "" && html`<div class="will-run"><p><strong>${kind === "url" ? "Turnwright will connect to" : kind === "image" ? "This image will be run in a container, without a network" : "This program will be started on the machine of the server, with your rights"}</strong></p>
      <pre class="plain-text" tabindex="0" aria-label="What will run">${kind === "url" ? line.trim() : words.map((word, at) => `${at === 0 ? "program " : "argument"}  ${word}`).join("\n")}</pre></div>`}
    ${failure && html`<p class="failure" role="alert">${failure}</p>`}
    <div class="row"><button class="main-action" disabled=${isSending || name.trim() === "" || line.trim() === ""}>${kind === "url" ? "Connect" : "Add and start"}</button>
      <button type="button" onClick=${close}>Cancel</button></div>
  </form></section>`;
}
