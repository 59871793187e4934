// A rule as it will be stored, shown and open to change.

import { useState } from "preact/hooks";
import { caller } from "../lib/app.js";
import { exact } from "../lib/exact.js";
import { html } from "../lib/html.js";

/** @type {Record<string, string>} */
export const reach = {
  turn: "in this turn", conversation: "in this conversation", user: "in all my conversations", everyone: "for everyone",
  configuration: "by the configuration",
};

/** @param {any} rule */
export const ruleWords = (rule) => rule.text || `${rule.action} ${rule.tool}${Object.keys(rule.when ?? {}).length > 0 ? ` where ${JSON.stringify(rule.when)}` : ""}`;

/**
 * Conditions as they are written.
 * @param {string} text
 * @returns {{when: any, problem: string}}
 */
export function readWhen(text) {
  if (text.trim() === "") return { when: {}, problem: "" };
  try {
    const when = exact(text);
    if (when !== null && typeof when === "object" && !Array.isArray(when)) return { when, problem: "" };
  } catch {
    // Said below.
  }
  return { when: {}, problem: 'The conditions are an object by argument, such as {"path": {"below": "notes"}}.' };
}

/** @param {{rule: any, isSending: boolean, back: () => void, store: (decision: string, remember: any) => Promise<void>}} props */
export function RuleEditor({ rule, isSending, back, store }) {
  const [tool, name] = useState(String(rule.tool));
  const [text, write] = useState(Object.keys(rule.when ?? {}).length > 0 ? JSON.stringify(rule.when) : "");
  const [scope, choose] = useState("user");
  const [action, act] = useState("allow");
  const [isShown, show] = useState(false);
  const { when, problem } = readWhen(text);
  const send = (/** @type {Event} */ event) => {
    event.preventDefault();
    show(true);
    if (!problem) void store(action, { scope, tool: tool.trim(), when });
  };
  const input = (/** @type {(value: string) => void} */ into) => (/** @type {any} */ event) => into(event.target.value);
  const isSame = action === rule.action && tool.trim() === rule.tool && JSON.stringify(when) === JSON.stringify(rule.when ?? {});
  const words = isSame ? ruleWords(rule) : ruleWords({ action, tool: tool.trim(), when });
  return html`<form class="fields rule" aria-label="The rule that is stored" onSubmit=${send}>
    <p>This is stored, ${reach[scope]}: <code>${words}</code></p>
    <div class="rule-fields">
      <label>What it does<select value=${action} onChange=${input(act)}><option value="allow">allows such calls</option><option value="deny">denies such calls</option></select></label>
      <label>Tool<input class="mono" value=${tool} onInput=${input(name)} spellcheck=${false} autocomplete="off" /></label>
      <label>Where it holds<select value=${scope} onChange=${input(choose)}>
        ${["turn", "conversation", "user", ...(caller.value?.role === "admin" ? ["everyone"] : [])].map((known) => html`<option value=${known}>${reach[known]}</option>`)}</select></label>
      <label class="conditions">Conditions on the arguments, as JSON; none where it is empty
        <textarea class="mono" rows=${Math.min(8, text.split("\n").length + 1)} value=${text} onInput=${input(write)} spellcheck=${false}></textarea></label>
    </div>
    ${isShown && problem && html`<p class="failure" role="alert">${problem}</p>`}
    <div class="row"><button class="main-action" disabled=${isSending}>${action === "allow" ? "Allow and store" : "Deny and store"}</button>
      <button type="button" class="plain" onClick=${back}>Back</button></div>
  </form>`;
}
