// Servers of another program's file: what each would run is shown, and nothing is added that nobody chose.

import { useState } from "preact/hooks";
import { call, sentence } from "../lib/api.js";
import { tell } from "../lib/app.js";
import { html } from "../lib/html.js";
import { whatRuns } from "./add-server.js";

const KEYS = ["command", "args", "env", "cwd", "url", "headers"];

/** Whether its own program does not start it. @param {any} one */
const isOff = (one) => one.disabled === true || one.enabled === false;

/**
 * Servers in the forms of Claude Desktop, Cursor, VS Code and lists.
 * @param {string} text
 * @returns {{found: {name: string, config: any}[], problem: string}}
 */
export function serversIn(text) {
  if (text.trim() === "") return { found: [], problem: "" };
  try {
    const file = JSON.parse(text);
    const servers = file.mcpServers ?? file.servers ?? file.mcp?.servers ?? file;
    const entries = Array.isArray(servers) ? servers.map((one) => [one.name ?? one.id, one]) : Object.entries(servers);
    /** @type {Set<string>} */
    const names = new Set();
    const found = entries.filter(([name, one]) => typeof name === "string" && (one?.command || one?.url)).map(([name, one]) => {
      const own = name.replace(/[^A-Za-z0-9_-]+/g, "_");
      // What differs in other signs only is another one.
      let free = own;
      for (let at = 2; names.has(free); at += 1) free = `${own}_${at}`;
      names.add(free);
      const config = { ...Object.fromEntries(KEYS.map((key) => [key, one[key]])), env_file: one.envFile, ...(isOff(one) && { enabled: false }) };
      // `${env:NAME}` is another program's way to write `${NAME}`.
      return { name: free, config: JSON.parse(JSON.stringify(config).replace(/\$\{env:/g, "${")) };
    });
    return { found, problem: found.length === 0 ? "There is no server in it that has a command or an address." : "" };
  } catch (error) {
    return { found: [], problem: `It is not JSON: ${sentence(error)}` };
  }
}

/** @param {{close: () => void, added: () => Promise<void>}} props */
export function ImportServers({ close, added }) {
  const [text, write] = useState("");
  const [done, mark] = useState(/** @type {Record<string, string>} */ ({}));
  const { found, problem } = serversIn(text);
  const add = async (/** @type {{name: string, config: any}} */ { name, config }) => {
    try {
      await call("/mcp/servers", { body: { name, config } });
      mark((all) => ({ ...all, [name]: "added" }));
      tell(`Added ${name}`);
    } catch (error) {
      mark((all) => ({ ...all, [name]: sentence(error) }));
    }
    await added();
  };
  const read = async (/** @type {any} */ event) => write((await event.target.files?.[0]?.text()) ?? "");
  const does = (/** @type {any} */ { url, enabled }) => (enabled === false ? "Add switched off" : url ? "Connect" : "Add and start");
  return html`<section class="card add fields" aria-label="Import MCP servers"><h2>Import from another program</h2>
    <p class="faint">Paste or choose <code>claude_desktop_config.json</code>, <code>.mcp.json</code>, <code>.cursor/mcp.json</code> or <code>.vscode/mcp.json</code>. Nothing runs before you add it.</p>
    <label>File<input type="file" accept=".json,application/json" onChange=${read} /></label>
    <label>Its text<textarea class="mono" rows="5" value=${text} spellcheck=${false} onInput=${(/** @type {any} */ event) => write(event.target.value)}></textarea></label>
    ${problem && html`<p class="failure" role="alert">${problem}</p>`}
    <ul class="found">${found.map((one) => html`<li key=${one.name} class="will-run"><strong><bdi>${one.name}</bdi></strong>
      <pre class="plain-text" tabindex="0" aria-label=${`What ${one.name} would run`}>${whatRuns(one.config)}${Object.keys(one.config.env ?? one.config.headers ?? {}).map((name) => `\n${name}=…`)}${one.config.env_file && `\nvariables of ${one.config.env_file}`}</pre>
      <div class="row"><button disabled=${done[one.name] === "added"} aria-label=${`${does(one.config)} ${one.name}`} onClick=${() => add(one)}>${does(one.config)}</button>
        ${done[one.name] && html`<span class=${done[one.name] === "added" ? "faint" : "failure"}>${done[one.name] ?? ""}</span>`}</div></li>`)}</ul>
    <div class="row"><button type="button" onClick=${close}>Close</button></div></section>`;
}
