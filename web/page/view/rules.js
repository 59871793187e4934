// The approval rules that hold, what they would make of a call, and adding one.

import { useEffect, useState } from "preact/hooks";
import { call, listed, part, sentence } from "../lib/api.js";
import { announce, caller, tell } from "../lib/app.js";
import { html } from "../lib/html.js";
import { readArguments } from "./arguments.js";
import { Conversation } from "./inbox.js";
import { reach, readWhen, ruleWords } from "./rule.js";

export function Rules() {
  const [rules, list] = useState(/** @type {any[] | null} */ (null));
  const [failure, fail] = useState("");
  const [isAdding, adding] = useState(false);
  const load = () => listed("/approvals/rules").then(list, (error) => fail(sentence(error)));
  useEffect(() => void load(), []);
  const forget = async (/** @type {any} */ rule) => {
    try {
      await call(`/approvals/rules/${part(rule.id)}`, { method: "DELETE" });
      announce("Forgotten");
    } catch (error) {
      tell(sentence(error));
    }
    await load();
  };
  return html`<section class="settings-card" aria-label="Approval rules"><div class="row between"><h2>Approval rules</h2><button onClick=${() => adding(!isAdding)} aria-expanded=${isAdding}>Add a rule</button></div>
    <p class="faint">A rule that denies wins over all. For calls without a rule each conversation says what runs without asking.</p>
    ${failure && html`<p class="failure" role="alert">${failure}</p>`}
    ${isAdding && html`<${AddRule} close=${() => adding(false)} added=${load} />`}
    ${rules?.length === 0 && html`<p class="faint">There are none.</p>`}
    <ul class="rows">${rules?.map((rule) => {
      return html`<li key=${rule.id}><code class="grow">${ruleWords(rule)}</code><span class="faint">${reach[rule.scope] ?? rule.scope}</span>
        ${rule.conversation_id && html`<${Conversation} id=${rule.conversation_id} />`}
        ${rule.scope !== "configuration" && html`<button class="small" aria-label=${`Forget ${ruleWords(rule)}`} onClick=${() => forget(rule)}>Forget</button>`}</li>`;
    })}</ul>
    <${Explain} /></section>`;
}

/** @param {{close: () => void, added: () => Promise<void>}} props */
function AddRule({ close, added }) {
  const [rule, write] = useState({ action: "allow", tool: "", scope: "user", when: "" });
  const [failure, fail] = useState("");
  const set = (/** @type {string} */ name) => (/** @type {any} */ event) => write({ ...rule, [name]: event.target.value });
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const { when, problem } = readWhen(rule.when);
    fail(problem);
    if (problem) return;
    try {
      await call("/approvals/rules", { body: { ...rule, tool: rule.tool.trim(), when } });
      await added();
      close();
    } catch (error) {
      fail(sentence(error));
    }
  };
  return html`<form onSubmit=${send} class="fields" aria-label="Add a rule"><div class="inline-fields">
      <label>Action<select value=${rule.action} onChange=${set("action")}><option>allow</option><option>ask</option><option>deny</option></select></label>
      <label>Tool, * for any part<input class="mono" required value=${rule.tool} onInput=${set("tool")} placeholder="filesystem__*" autocomplete="off" spellcheck=${false} /></label>
      <label>Where it holds<select value=${rule.scope} onChange=${set("scope")}>${["user", ...(caller.value?.role === "admin" ? ["everyone"] : [])].map((scope) => html`<option value=${scope}>${reach[scope]}</option>`)}</select></label></div>
    <label>Conditions on the arguments, as JSON<input class="mono" value=${rule.when} onInput=${set("when")} placeholder='{"path": {"below": "/home/me/notes"}}' autocomplete="off" spellcheck=${false} /></label>
    ${failure && html`<p class="failure" role="alert">${failure}</p>`}
    <div class="row"><button class="main-action">Store</button><button type="button" class="plain" onClick=${close}>Cancel</button></div></form>`;
}

/** @type {Record<string, [string, string]>} */
const verdicts = { allow: ["It would run", "good"], ask: ["A person would be asked", "asking"], deny: ["It would be denied", "bad"], refuse: ["It would be refused", "bad"] };

function Explain() {
  const [tool, name] = useState("");
  const [text, write] = useState("{}");
  const [answer, know] = useState(/** @type {any} */ (null));
  const [failure, fail] = useState("");
  const ask = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const { text: sent, problem } = readArguments(text);
    fail(problem);
    know(null);
    if (problem) return;
    try {
      know(await call("/approvals/explain", { body: { tool: tool.trim(), arguments: sent } }));
    } catch (error) {
      fail(sentence(error));
    }
  };
  const [words, colour] = verdicts[answer?.action] ?? ["", ""];
  return html`<form onSubmit=${ask} class="fields" aria-label="What would happen to a call"><h3>What would happen to a call?</h3><div class="inline-fields">
      <label>Tool<input class="mono" required value=${tool} onInput=${(/** @type {any} */ event) => name(event.target.value)} placeholder="its whole name" autocomplete="off" spellcheck=${false} /></label>
      <label>Arguments, as JSON<input class="mono" value=${text} onInput=${(/** @type {any} */ event) => write(event.target.value)} autocomplete="off" spellcheck=${false} /></label>
      <button>Explain</button></div>
    ${failure && html`<p class="failure" role="alert">${failure}</p>`}
    ${answer && html`<p role="status" class=${colour}><strong class="word">${words}.</strong> ${answer.problem || html`Because of <code>${answer.rule ?? ""}</code>.`}
      ${answer.others.length > 0 && html` Others that match: ${answer.others.map((/** @type {any} */ other) => html`<code>${other.action}: ${other.rule}</code> `)}`}</p>`}</form>`;
}
