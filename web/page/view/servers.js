// The MCP servers: how each one is, what it offers and wrote, and adding one with a clear view of what will run.

import { useEffect, useState } from "preact/hooks";
import { call, part, sentence } from "../lib/api.js";
import { announce, tell } from "../lib/app.js";
import { html } from "../lib/html.js";
import { visible } from "../lib/markdown.js";
import { AddServer, whatRuns } from "./add-server.js";
import { Icon } from "./icon.js";
import { MenuButton } from "./root.js";

const LOOK_EVERY_MS = 3_000;

/** @type {Record<string, [string, string]>} */
const states = {
  ready: ["ready", "good"],
  starting: ["starting", "busy"],
  failing: ["failing", "bad"],
  needs_sign_in: ["needs a sign-in", "asking"],
  stopped: ["stopped", "still"],
  disabled: ["switched off", "still"],
};

export function Servers() {
  const [servers, list] = useState(/** @type {any[] | null} */ (null));
  const [failure, fail] = useState("");
  const [isAdding, adding] = useState(false);
  const load = () => call("/mcp/servers").then(({ data }) => {
    list(data);
    fail("");
  }, (error) => fail(sentence(error)));
  useEffect(() => {
    void load();
    const timer = setInterval(load, LOOK_EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  return html`<div class="screen">
    <header class="head"><${MenuButton} /><h1 class="title">MCP servers</h1>
      <button class="main-action" onClick=${() => adding(true)}><${Icon} name="plus" />Add a server</button></header>
    <div class="page">
      ${failure && html`<p class="failure" role="alert">${failure}</p>`}
      ${isAdding && html`<${AddServer} close=${() => adding(false)} added=${load} />`}
      ${servers?.length === 0 && !isAdding && html`<p class="faint empty">No MCP server is configured. Servers bring tools: files, databases, calendars, and what else there is.</p>`}
      ${servers?.map((server) => html`<${Server} key=${server.id} server=${server} load=${load} />`)}
    </div>
  </div>`;
}

/** @param {{server: any, load: () => Promise<void>}} props */
function Server({ server, load }) {
  const [shown, show] = useState(/** @type {"" | "tools" | "logs"} */ (""));
  const [isRemoving, removing] = useState(false);
  const [word, colour] = states[server.state] ?? [String(server.state).replaceAll("_", " "), "still"];
  const act = async (/** @type {string} */ action, /** @type {string} */ done) => {
    try {
      if (action === "remove") await call(`/mcp/servers/${part(server.id)}`, { method: "DELETE" });
      else await call(`/mcp/servers/${part(server.id)}/${action}`, { body: {} });
      announce(`${server.name} ${done}`);
    } catch (error) {
      tell(sentence(error));
    }
    await load();
  };
  const name = visible(server.name);
  const isOff = server.state === "stopped" || server.state === "disabled";
  const toggle = (/** @type {"tools" | "logs"} */ what) => show(shown === what ? "" : what);
  return html`<article class=${`card server-card ${colour}`} aria-label=${`Server ${name}`}>
    <div class="row between">
      <h2><span class=${`dot ${colour}`} aria-hidden="true"></span> <bdi>${name}</bdi> <span class="word">${word}</span></h2>
      <div class="row">
        ${isOff ? html`<button disabled=${server.state === "disabled"} onClick=${() => act("start", "started")}>Start</button>`
          : html`<button onClick=${() => act("restart", "restarted")}>Restart</button><button onClick=${() => act("stop", "stopped")}>Stop</button>`}
      </div>
    </div>
    ${server.reason && html`<p class="failure">${visible(server.reason)}</p>`}
    ${server.state === "needs_sign_in" && html`<p>Sign in with <code>turnwright mcp login ${name}</code>.</p>`}
    <p class="runs"><code>${visible(whatRuns(server.config ?? {}) || server.transport)}</code></p>
    <p class="faint">${[server.transport, server.protocol && `MCP ${server.protocol.version}`, server.protocol?.server, `from ${server.origin}`].filter(Boolean).map(visible).join(" · ")}</p>
    ${server.warnings?.map((/** @type {string} */ warning) => html`<p class="notice warning">${visible(warning)}</p>`)}
    <div class="row">
      <button class="plain" aria-expanded=${shown === "tools"} onClick=${() => toggle("tools")}><${Icon} name="tools" />${server.tools.length} tools${server.set_aside.length > 0 ? `, ${server.set_aside.length} set aside` : ""}</button>
      <button class="plain" aria-expanded=${shown === "logs"} onClick=${() => toggle("logs")}>What it wrote</button>
      ${server.editable && !isRemoving && html`<button class="plain" onClick=${() => removing(true)}><${Icon} name="trash" />Remove</button>`}
      ${isRemoving && html`<span role="group" aria-label=${`Remove ${name}?`}>Remove it? <button class="danger" onClick=${() => act("remove", "removed")}>Remove</button>
        <button onClick=${() => removing(false)}>Keep</button></span>`}
    </div>
    ${shown === "tools" && html`<${ToolsOf} server=${server} />`}
    ${shown === "logs" && html`<${LogsOf} server=${server} />`}
  </article>`;
}

/** @param {{server: any}} props */
function ToolsOf({ server }) {
  const [tools, list] = useState(/** @type {any} */ (null));
  const [q, search] = useState("");
  useEffect(() => {
    call(`/mcp/servers/${part(server.id)}/tools`).then(list, (error) => tell(sentence(error)));
  }, [server.tools.length]);
  if (tools === null) return html`<p class="faint">Asking…</p>`;
  const shown = tools.data.filter((/** @type {any} */ tool) => `${tool.id} ${tool.description}`.toLowerCase().includes(q.toLowerCase()));
  return html`<div>
    ${tools.data.length > 8 && html`<input type="search" aria-label=${`Search tools of ${server.name}`} placeholder="Search" value=${q} onInput=${(/** @type {any} */ event) => search(event.target.value)} />`}
    <ul class="tools-of">${shown.map((/** @type {any} */ tool) => html`<li key=${tool.id}><strong><bdi>${visible(tool.title ?? tool.tool_name)}</bdi></strong> <code>${visible(tool.tool_name)}</code>
      ${tool.read_only && html`<span class="tag">only reads</span>`}<span class="faint about">${visible(tool.description).slice(0, 400)}</span></li>`)}
      ${tools.set_aside.map((/** @type {any} */ tool) => html`<li><strong>${visible(tool.tool_name)}</strong> <span class="tag bad">set aside</span> <span class="failure">${visible(tool.reason)}</span></li>`)}</ul>
    ${tools.data.length === 0 && tools.set_aside.length === 0 && html`<p class="faint">It offers none${server.state === "ready" ? "" : " while it is not ready"}.</p>`}
  </div>`;
}

/** @param {{server: any}} props */
function LogsOf({ server }) {
  const [lines, list] = useState(/** @type {any[] | null} */ (null));
  const load = () => call(`/mcp/servers/${part(server.id)}/logs`).then(({ data }) => list(data), (error) => tell(sentence(error)));
  useEffect(() => {
    void load();
    const timer = setInterval(load, LOOK_EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  if (lines === null) return html`<p class="faint">Reading…</p>`;
  if (lines.length === 0) return html`<p class="faint">It wrote nothing.</p>`;
  return html`<pre class="plain-text logs" tabindex="0" aria-label=${`What ${server.name} wrote`}>${lines.map((line) => `${line.timestamp.slice(11, 19)}  ${visible(line.text)}\n`)}</pre>`;
}
