// The MCP servers: how each one is, what it offers and wrote, and adding one with a clear view of what will run.

import { useEffect, useState } from "preact/hooks";
import { call, listed, part, sentence } from "../lib/api.js";
import { announce, tell } from "../lib/app.js";
import { html } from "../lib/html.js";
import { AddServer, whatRuns } from "./add-server.js";
import { Icon } from "./icon.js";
import { ImportServers } from "./import-servers.js";
import { MenuButton } from "./root.js";
import { ToolsOf } from "./server-tools.js";

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
  const [isImporting, importing] = useState(false);
  const load = () => listed("/mcp/servers").then((all) => {
    list(all);
    fail("");
  }, (error) => fail(sentence(error)));
  useEffect(() => {
    void load();
    const timer = setInterval(load, LOOK_EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  return html`<div class="screen">
    <header class="head"><${MenuButton} /><h1 class="title">MCP servers</h1>
      <button onClick=${() => importing(true)}>Import</button>
      <button class="main-action" onClick=${() => adding(true)}><${Icon} name="plus" />Add a server</button></header>
    <div class="page">
      ${failure && html`<p class="failure" role="alert">${failure}</p>`}
      ${isAdding && html`<${AddServer} close=${() => adding(false)} added=${load} />`}
      ${isImporting && html`<${ImportServers} close=${() => importing(false)} added=${load} />`}
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
  const name = server.name;
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
    ${server.reason && html`<p class="failure">${server.reason}</p>`}
    ${server.state === "needs_sign_in" && html`<${SignIn} server=${server} />`}
    <p class="runs"><code>${whatRuns(server.config ?? {}) || server.transport}</code></p>
    <p class="faint">${[server.protocol && `MCP ${server.protocol.version}`, server.protocol?.server, `from ${server.origin}`].filter(Boolean).join(" · ")}</p>
    ${server.warnings?.map((/** @type {string} */ warning) => html`<p class="notice warning">${warning}</p>`)}
    <div class="row">
      <button class="plain" aria-expanded=${shown === "tools"} onClick=${() => toggle("tools")}><${Icon} name="tools" />${server.tools.length} ${server.tools.length === 1 ? "tool" : "tools"}${server.set_aside.length > 0 ? `, ${server.set_aside.length} set aside` : ""}</button>
      <button class="plain" aria-expanded=${shown === "logs"} onClick=${() => toggle("logs")}>What it wrote</button>
      ${server.editable && !isRemoving && html`<button class="plain" onClick=${() => removing(true)}><${Icon} name="trash" />Remove</button>`}
      ${isRemoving && html`<span role="group" aria-label=${`Remove ${name}?`}>Remove it? <button class="danger" onClick=${() => act("remove", "removed")}>Remove</button>
        <button onClick=${() => removing(false)}>Keep</button></span>`}
    </div>
    ${shown === "tools" && html`<${ToolsOf} server=${server} />`}
    ${shown === "logs" && html`<${LogsOf} server=${server} />`}
  </article>`;
}

/** The browser comes back to the machine of our server, which has to be this one. @param {{server: any}} props */
function SignIn({ server }) {
  const [address, know] = useState("");
  const [failure, fail] = useState("");
  const begin = () => {
    fail("");
    call(`/mcp/servers/${part(server.id)}/sign_in`, { body: {} }).then(({ address }) => know(address), (error) => fail(sentence(error)));
  };
  if (!/^(localhost|127\.0\.0\.1|\[::1\])$/.test(location.hostname)) {
    return html`<p>Sign in on the machine of Turnwright: <code>turnwright mcp login ${server.name}</code></p>`;
  }
  const host = /^https?:\/\/([^/?#]+)/.exec(address)?.[1];
  return html`${failure && html`<p class="failure" role="alert">${failure}</p>`}
    ${host ? html`<p role="status">Sign in at <strong><bdi>${host}</bdi></strong> within five minutes. <a class="button" href=${address} target="_blank" rel="noopener noreferrer">Open it</a></p>`
      : html`<p><button class="main-action" onClick=${begin}>Sign in</button></p>`}`;
}

/** @param {{server: any}} props */
function LogsOf({ server }) {
  const [lines, list] = useState(/** @type {any[] | null} */ (null));
  const load = () => listed(`/mcp/servers/${part(server.id)}/logs`).then(list, (error) => tell(sentence(error)));
  useEffect(() => {
    void load();
    const timer = setInterval(load, LOOK_EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  if (lines === null) return html`<p class="faint">Reading…</p>`;
  if (lines.length === 0) return html`<p class="faint">It wrote nothing.</p>`;
  return html`<pre class="plain-text logs" tabindex="0" aria-label=${`What ${server.name} wrote`}>${lines.map((line) => `${line.timestamp.slice(11, 19)}  ${line.text}\n`)}</pre>`;
}
