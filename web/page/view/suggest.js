// What `/`, `#` and `@` may mean, shown above the composer while it is written.

import { useEffect, useRef, useState } from "preact/hooks";
import { call, part, sentence } from "../lib/api.js";
import { commandsLike, fillPrompt, offered, wordAt } from "../lib/commands.js";
import { html } from "../lib/html.js";

/** @typedef {import("../lib/commands.js").Suggestion} Suggestion */

const MOST = 8;

/**
 * Suggestions for a text up to the cursor.
 * @param {string} text
 */
export function useSuggestions(text) {
  const [found, find] = useState(/** @type {Suggestion[]} */ ([]));
  const [at, move] = useState(0);
  const [dismissed, dismiss] = useState("");
  const word = wordAt(text);
  const asked = word ? `${word.sign}${word.word}` : "";
  useEffect(() => {
    move(0);
    if (!word) {
      find([]);
      return undefined;
    }
    if (word.sign === "/") {
      find(commandsLike(word.word));
      return undefined;
    }
    let isCurrent = true;
    const kind = word.sign === "#" ? "prompt" : "resource";
    offered().then((all) => {
      const like = word.word.toLowerCase();
      if (isCurrent) find(all.filter((one) => one.kind === kind && `${one.name} ${one.key} ${one.about}`.toLowerCase().includes(like)).slice(0, MOST));
    }, () => isCurrent && find([]));
    return () => {
      isCurrent = false;
    };
  }, [asked]);
  const list = word && dismissed !== asked ? found : [];
  return { word, list, at: Math.min(at, Math.max(0, list.length - 1)), move, dismiss: () => dismiss(asked) };
}

/** @param {{id: string, list: Suggestion[], at: number, choose: (suggestion: Suggestion) => void}} props */
export function Suggestions({ id, list, at, choose }) {
  // A part of a long list, around the one that is chosen.
  const from = Math.max(0, Math.min(at - MOST + 3, list.length - MOST));
  return html`<ul class="suggestions" id=${id} role="listbox" aria-label="Suggestions">
    ${list.map((one, index) => index >= from && index < from + MOST && html`<li key=${one.key} id=${`${id}-${index}`} role="option" aria-selected=${index === at}
      onMouseDown=${(/** @type {Event} */ event) => { event.preventDefault(); choose(one); }}>
      <bdi class="suggested">${one.name}</bdi>${one.server && html` <bdi class="server">${one.server}</bdi>`} <span class="faint about-line">${one.about}</span></li>`)}
  </ul>`;
}

/** The arguments of a prompt. @param {{suggestion: Suggestion, filled: (filled: {words: string, blocks: any[]}) => void, close: () => void}} props */
export function PromptDialog({ suggestion, filled, close }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const [values, write] = useState(/** @type {Record<string, string>} */ ({}));
  const [known, know] = useState(/** @type {Record<string, string[]>} */ ({}));
  const [failure, fail] = useState("");
  const { prompt, server } = suggestion;
  useEffect(() => dialog.current?.showModal(), []);
  const set = (/** @type {string} */ name) => async (/** @type {any} */ event) => {
    const { value } = event.target;
    write((before) => ({ ...before, [name]: value }));
    try {
      const { values: found } = await call(`/mcp/servers/${part(server ?? "")}/complete`, {
        body: { ref: { type: "ref/prompt", name: prompt.name }, argument: { name, value }, context: { arguments: values } },
      });
      know((before) => ({ ...before, [name]: found }));
    } catch {
      // Not every server completes.
    }
  };
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    try {
      const given = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ""));
      filled(await fillPrompt(suggestion, given));
      dialog.current?.close();
    } catch (error) {
      fail(sentence(error));
    }
  };
  return html`<dialog ref=${dialog} onClose=${close} aria-label=${`Prompt ${suggestion.name}`}>
    <form class="dialog" onSubmit=${send}>
      <h2><bdi>${suggestion.name}</bdi> <span class="server">${server ?? ""}</span></h2>
      ${suggestion.about && html`<p class="faint">${suggestion.about}</p>`}
      ${prompt.arguments.map((/** @type {any} */ argument) => html`<label key=${argument.name}><span>${argument.name}${argument.required && html`<span class="faint"> (needed)</span>`}</span>
        <input type="text" required=${argument.required} list=${`complete-${argument.name}`} value=${values[argument.name] ?? ""} onInput=${set(argument.name)} autocomplete="off" />
        <datalist id=${`complete-${argument.name}`}>${(known[argument.name] ?? []).map((value) => html`<option value=${value} />`)}</datalist>
        ${argument.description && html`<span class="faint small-text">${argument.description}</span>`}</label>`)}
      ${failure && html`<p class="failure" role="alert">${failure}</p>`}
      <div class="row end"><button type="button" onClick=${() => dialog.current?.close()}>Cancel</button><button class="main-action">Put it in</button></div>
    </form>
  </dialog>`;
}
