// The tools of a server: what they are, what happens to their calls, and a call to try one.

import { useEffect, useState } from "preact/hooks";
import { call, listed, part, sentence, wholeList } from "../lib/api.js";
import { tell } from "../lib/app.js";
import { html } from "../lib/html.js";
import { Arguments, readArguments } from "./arguments.js";
import { time } from "./card.js";
import { unread } from "./form.js";
import { Result } from "./result.js";

/** @param {{server: any}} props */
export function ToolsOf({ server }) {
  const [tools, list] = useState(/** @type {any} */ (null));
  const [rules, know] = useState(/** @type {any[]} */ ([]));
  const [q, search] = useState("");
  const loadRules = () => listed("/approvals/rules").then(know, () => {});
  useEffect(() => {
    wholeList(`/mcp/servers/${part(server.id)}/tools`).then(list, (error) => tell(sentence(error)));
    void loadRules();
  }, [server.tools.length]);
  if (tools === null) return html`<p class="faint">Asking…</p>`;
  // To what is shown here, and not to what the server has made of it meanwhile.
  const agree = async (/** @type {any} */ { tool_name, definition }) => {
    await call(`/mcp/servers/${part(server.id)}/tools/${part(tool_name)}/approve`, { body: { definition } }).catch((error) => tell(sentence(error)));
    list(await wholeList(`/mcp/servers/${part(server.id)}/tools`));
  };
  const shown = tools.data.filter((/** @type {any} */ tool) => `${tool.id} ${tool.description}`.toLowerCase().includes(q.toLowerCase()));
  return html`<div>
    ${tools.data.length > 8 && html`<input type="search" aria-label=${`Search tools of ${server.name}`} placeholder="Search" value=${q} onInput=${(/** @type {any} */ event) => search(event.target.value)} />`}
    <ul class="tools-of">${shown.map((/** @type {any} */ tool) => html`<${ToolRow} key=${tool.id} tool=${tool} rules=${rules} changed=${loadRules} />`)}
      ${tools.set_aside.map((/** @type {any} */ tool) => html`<li><strong>${tool.tool_name}</strong> <span class="tag bad">set aside</span> <span class="failure words">${tool.reason}</span>
        ${/changed/.test(tool.reason) && html` <button class="small" onClick=${() => agree(tool)}>Agree to it as it is now</button>`}</li>`)}</ul>
    ${tools.data.length === 0 && tools.set_aside.length === 0 && html`<p class="faint">It offers none${server.state === "ready" ? "" : " while it is not ready"}.</p>`}
  </div>`;
}

/** @param {{tool: any, rules: any[], changed: () => Promise<any>}} props */
function ToolRow({ tool, rules, changed }) {
  const [isTrying, trying] = useState(false);
  const own = rules.filter((rule) => rule.scope === "user" && rule.tool === tool.id && Object.keys(rule.when ?? {}).length === 0);
  const policy = own.find(({ action }) => action === "deny")?.action ?? own[0]?.action ?? "";
  const choose = async (/** @type {any} */ event) => {
    const action = event.target.value;
    try {
      // The new one first: at no time is more allowed than before and after.
      if (action !== "") await call("/approvals/rules", { body: { tool: tool.id, action, scope: "user", when: {} } });
      for (const rule of own) await call(`/approvals/rules/${part(rule.id)}`, { method: "DELETE" });
    } catch (error) {
      tell(sentence(error));
    }
    await changed();
  };
  const name = tool.title ?? tool.tool_name;
  return html`<li class="tool-row"><div><strong><bdi>${name}</bdi></strong> <code>${tool.tool_name}</code>
      ${tool.read_only && html`<span class="tag">only reads</span>`}<span class="faint about">${tool.description.slice(0, 400)}</span></div>
    <div class="row"><select class="narrow" aria-label=${`What happens to calls of ${name}`} value=${policy} onChange=${choose}>
        <option value="">as the conversation says</option><option value="allow">runs without asking</option><option value="ask">always asks</option><option value="deny">switched off</option></select>
      <button class="small" aria-expanded=${isTrying} aria-label=${`Try ${name}`} onClick=${() => trying(!isTrying)}>Try</button></div>
    ${isTrying && html`<${Try} tool=${tool} />`}</li>`;
}

/** @param {{tool: any}} props */
function Try({ tool }) {
  const [text, write] = useState("{}");
  const [came, know] = useState(/** @type {any} */ (null));
  const [failure, fail] = useState("");
  const [isRunning, running] = useState(false);
  const run = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const { text: sent, problem: wrong } = readArguments(text);
    const problem = unread(/** @type {Element} */ (event.target)) || wrong;
    fail(problem);
    if (problem) return;
    running(true);
    try {
      know(await call("/tools/call", { body: { name: tool.id, arguments: sent, approve: "all" } }));
    } catch (error) {
      fail(sentence(error));
    } finally {
      running(false);
    }
  };
  return html`<form class="settings-card" onSubmit=${run} aria-label=${`Call ${tool.tool_name}`}>
    <${Arguments} name=${tool.id} text=${text} write=${write} schema=${tool.input_schema} />
    <div class="row"><button class="main-action" disabled=${isRunning}>${isRunning ? "Running…" : "Run it now"}</button><span class="faint small-text">It really runs, and nobody is asked again.</span></div>
    ${failure && html`<p class="failure" role="alert">${failure}</p>`}
    ${came && html`<div role="status"><p class=${came.is_error ? "bad" : "good"}><span class="word">${came.is_error ? came.outcome.replaceAll("_", " ") : "done"}</span> <span class="faint">${time(came.duration_ms)}</span></p>
      <${Result} output=${{ content: came.content, ...(came.structured_content === null ? {} : { structuredContent: came.structured_content }) }} isError=${came.is_error} /></div>`}</form>`;
}
