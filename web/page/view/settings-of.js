// What a conversation tells the model besides what is said in it.

import { useEffect, useRef, useState } from "preact/hooks";
import { sentence } from "../lib/api.js";
import { draft } from "../lib/app.js";
import { html } from "../lib/html.js";

/** @type {[string, string, any][]} the setting, its words, and what a field of it takes */
const numbers = [
  ["temperature", "Temperature", { min: 0, max: 2, step: 0.1 }],
  ["max_output_tokens", "Most tokens of one answer", { min: 1, step: 1 }],
  ["max_steps", "Most model calls of one turn", { min: 1, step: 1 }],
];

/** @param {{info: any, store: (change: any) => Promise<void>, close: () => void}} props */
export function SettingsOf({ info, store, close }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const from = info ?? draft.value;
  const [values, write] = useState(/** @returns {Record<string, any>} */ () => ({ system_prompt: from.system_prompt ?? "", reasoning_effort: from.settings?.reasoning_effort ?? "",
    ...Object.fromEntries(numbers.map(([name]) => [name, from.settings?.[name] ?? ""])) }));
  const [failure, fail] = useState("");
  useEffect(() => dialog.current?.showModal(), []);
  const set = (/** @type {string} */ name) => (/** @type {any} */ event) => write({ ...values, [name]: event.target.value });
  const keep = async (/** @type {Event} */ event) => {
    event.preventDefault();
    // What is left empty is the installation's again; a conversation that is not made yet has nothing to take back.
    const given = (/** @type {any} */ value) => (value === "" ? (info ? null : undefined) : value);
    const settings = { ...(info ? {} : draft.value.settings), reasoning_effort: given(values.reasoning_effort),
      ...Object.fromEntries(numbers.map(([name]) => [name, given(values[name] === "" ? "" : Number(values[name]))])) };
    try {
      await store({ system_prompt: given(values.system_prompt), settings });
      dialog.current?.close();
    } catch (error) {
      fail(sentence(error));
    }
  };
  return html`<dialog ref=${dialog} onClose=${close} class="wide-dialog" aria-label="Settings of this conversation">
    <form class="dialog" onSubmit=${keep}>
      <h2>Settings of this conversation</h2>
      <label>Instructions for the model<textarea rows="5" value=${values.system_prompt} onInput=${set("system_prompt")} placeholder="As the installation has them"></textarea></label>
      <div class="settings-row">${numbers.map(([name, words, field]) => html`<label>${words}<input type="number" ...${field} value=${values[name]} onInput=${set(name)} placeholder="default" /></label>`)}
        <label>Reasoning<select value=${values.reasoning_effort} onChange=${set("reasoning_effort")}><option value="">default</option>
          ${["none", "minimal", "low", "medium", "high", "xhigh", "max"].map((effort) => html`<option>${effort}</option>`)}</select></label></div>
      ${failure && html`<p class="failure" role="alert">${failure}</p>`}
      <div class="row end"><button type="button" onClick=${() => dialog.current?.close()}>Cancel</button><button class="main-action">Store</button></div>
    </form>
  </dialog>`;
}
