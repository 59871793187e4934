// Where a person writes. Enter sends, Shift and Enter begin a line; what is written is kept over a reload.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { call, part, sentence } from "../lib/api.js";
import { say, tellError } from "../lib/app.js";
import { artifactAddress } from "../lib/artifact.js";
import { html } from "../lib/html.js";
import { store, stored } from "../lib/kept.js";
import { shelfOf } from "../lib/shelf.js";
import { commandIn, fillPrompt, messageIn, readResource } from "../lib/commands.js";
import { Icon } from "./icon.js";
import { PromptDialog, Suggestions, useSuggestions } from "./suggest.js";

/** @typedef {import("../lib/shelf.js").Attached} Attached */

/** Whether a key is part of putting a character together; Safari says so of the key that ends it by its code alone. @param {KeyboardEvent} event */
export const isComposing = (event) => event.isComposing || event.keyCode === 229;

/** @param {{conversation: import("../lib/conversation.js").OpenConversation | null}} props */
export function Composer({ conversation }) {
  const place = `draft ${conversation?.id ?? "new"}`;
  const [text, write] = useState(() => stored(place, ""));
  const shelf = useMemo(() => shelfOf(place), []);
  const files = shelf.files.value;
  const uploads = shelf.uploads.value;
  const [isSending, sending] = useState(false);
  const [read, take] = useState(/** @type {{name: string, blocks: any[], key?: string}[]} */ ([]));
  const [filling, fill] = useState(/** @type {import("../lib/commands.js").Suggestion | null} */ (null));
  const [cursor, place_cursor] = useState(text.length);
  const { word, list, at, move, dismiss } = useSuggestions(text.slice(0, cursor));
  const box = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const picker = useRef(/** @type {HTMLInputElement | null} */ (null));
  /** What is written at this moment, also while something is on its way. */
  const written = useRef(text);
  const detach = (/** @type {string} */ gone) => shelf.change((files) => files.filter(({ id }) => id !== gone));
  const state = conversation?.state.value;
  const isRunning = state === "running";
  useEffect(() => box.current?.focus({ preventScroll: true }), []);
  useEffect(() => {
    const area = box.current;
    if (!area) return;
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, window.innerHeight * 0.4)}px`;
  }, [text]);
  useEffect(() => {
    const onPrompt = (/** @type {any} */ event) => {
      const { words, isAdded } = event.detail;
      const before = isAdded ? (box.current?.value ?? "") : "";
      change(before === "" ? words : `${before.trimEnd()}\n${words}`);
      box.current?.focus();
    };
    const onContext = (/** @type {any} */ event) => {
      const { key, name, blocks } = event.detail;
      take((all) => [...all.filter((other) => other.key !== key), ...(blocks.length > 0 ? [{ key, name, blocks }] : [])]);
    };
    window.addEventListener("prompt", onPrompt);
    window.addEventListener("context", onContext);
    return () => {
      window.removeEventListener("prompt", onPrompt);
      window.removeEventListener("context", onContext);
    };
  }, [place]);
  // What is written while a conversation is made is for that one.
  useEffect(() => {
    store(place, written.current || null);
    shelf.move(place);
  }, [place]);
  // What was attached and not sent goes by itself after a day.
  useEffect(() => {
    for (const { id } of files) fetch(artifactAddress(id), { method: "HEAD" }).then(({ status }) => status === 404 && detach(id), () => {});
  }, []);
  const change = (/** @type {string} */ words, end = words.length) => {
    write((written.current = words));
    place_cursor(end);
    store(place, words || null);
  };
  /** Puts words in the place of the one that was begun. @param {string} words */
  const replace = (words) => {
    const from = word?.from ?? cursor;
    change(text.slice(0, from) + words + text.slice(cursor), from + words.length);
  };
  const choose = async (/** @type {import("../lib/commands.js").Suggestion} */ one) => {
    try {
      if (one.command?.takes) change(`/${one.command.name} `);
      else if (one.command) {
        change("");
        await one.command.run({ conversation, rest: "" });
      } else if (one.kind === "resource") {
        replace("");
        const blocks = await readResource(one);
        take((all) => [...all, { name: one.name, blocks }]);
      } else if (one.prompt.arguments.length > 0) fill(one);
      else filled(one.name, await fillPrompt(one, {}));
    } catch (error) {
      tellError(error);
    }
  };
  const filled = (/** @type {string} */ name, /** @type {{words: string, blocks: any[]}} */ { words, blocks }) => {
    replace(words);
    if (blocks.length > 0) take((all) => [...all, { name, blocks }]);
    box.current?.focus();
  };
  const isUnready = isSending || uploads > 0 || (text.trim() === "" && files.length === 0 && read.length === 0);
  const send = async () => {
    const asked = commandIn(text);
    if (asked) {
      try {
        if (!asked.command) throw new Error(asked.problem);
        await asked.command.run({ conversation, rest: asked.rest });
        change("");
      } catch (error) {
        tellError(error);
      }
      return;
    }
    if (isUnready) return;
    sending(true);
    // It is kept until it is taken: what is written and attached meanwhile is not part of it.
    write((written.current = ""));
    shelf.change(() => []);
    take([]);
    try {
      const blocks = [...files.map(block), ...read.flatMap(({ blocks }) => blocks)];
      const words = messageIn(text);
      await say(words, blocks.length === 0 ? words : [...(words.trim() === "" ? [] : [{ type: "text", text: words }]), ...blocks]);
      store(place, (conversation && written.current) || null);
    } catch (error) {
      tellError(error);
      change([text, written.current].filter(Boolean).join("\n"));
      shelf.change((later) => [...files, ...later]);
      take((later) => [...read, ...later]);
    } finally {
      sending(false);
      box.current?.focus();
    }
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    if (isComposing(event)) return;
    const chosen = list[at];
    if (chosen && ["ArrowDown", "ArrowUp", "Enter", "Tab", "Escape"].includes(event.key) && !event.shiftKey) {
      // A command that is written out is run.
      if (event.key === "Enter" && commandIn(text)?.command && !chosen.command?.takes) {
        event.preventDefault();
        void send();
        return;
      }
      event.preventDefault();
      if (event.key === "Escape") dismiss();
      else if (event.key === "ArrowDown") move((at + 1) % list.length);
      else if (event.key === "ArrowUp") move((at + list.length - 1) % list.length);
      else void choose(chosen);
      return;
    }
    // It is there before the turn is known to wait.
    if (event.key === "Escape") {
      /** @type {HTMLElement | null} */ (document.querySelector(".transcript .approve, .transcript .question.asking input"))?.focus();
      return;
    }
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    void send();
  };
  const add = async (/** @type {Iterable<File>} */ list) => {
    /** @type {string[]} */
    const refused = [];
    for (const file of list) {
      await shelf.add(() => upload(file)).catch((error) => void refused.push(`${file.name}: ${sentence(error)}`));
    }
    if (refused.length > 0) tellError(refused.join("\n"));
  };
  const remove = (/** @type {Attached} */ file) => {
    detach(file.id);
    // What another message holds stays; the rest goes by itself after a day.
    call(`/artifacts/${part(file.id)}`, { method: "DELETE" }).catch(() => {});
  };
  const addFrom = (/** @type {Event} */ event, /** @type {DataTransfer | null} */ transfer) => {
    if (!transfer?.files.length) return;
    event.preventDefault();
    void add([...transfer.files]);
  };
  // Beside the composer, too, where the browser would show the file in place of the page.
  useEffect(() => {
    const onDrag = (/** @type {DragEvent} */ event) => {
      if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
    };
    const onDrop = (/** @type {DragEvent} */ event) => addFrom(event, event.dataTransfer);
    window.addEventListener("dragover", onDrag);
    window.addEventListener("drop", onDrop);
    return () => {
      window.removeEventListener("dragover", onDrag);
      window.removeEventListener("drop", onDrop);
    };
  }, []);
  const onPaste = (/** @type {ClipboardEvent} */ event) => {
    // What programs copy as text they may copy as a picture too; beside a file its name alone is text.
    const isText = ["text/plain", "text/html"].every((type) => event.clipboardData?.types.includes(type));
    if (!isText) addFrom(event, event.clipboardData);
  };
  const stop = (/** @type {MouseEvent} */ event) => {
    conversation?.stop().catch(tellError);
    // Whoever pressed a key goes on writing; where there is none, no keyboard is to come up.
    if (event.detail === 0) box.current?.focus();
  };
  const isNarrow = matchMedia("(max-width: 800px)").matches;
  const hint = state === "waiting" ? `Decide above first${isNarrow ? "" : " (Esc goes there)"}`
    : isRunning ? `Say something more${isNarrow ? "" : "; it is taken up at the next step"}` : "Ask something";
  return html`<form class="composer" onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); void send(); }}>
    ${filling && html`<${PromptDialog} suggestion=${filling} filled=${(/** @type {any} */ what) => filled(filling.name, what)} close=${() => fill(null)} />`}
    ${list.length > 0 && html`<${Suggestions} id="suggestions" list=${list} at=${at} choose=${choose} />`}
    ${read.length > 0 && html`<ul class="attached">${read.map((one) => html`<li><bdi>${one.name}</bdi>
      <button type="button" class="plain small" aria-label=${`Remove ${one.name}`} onClick=${() => take(read.filter((other) => other !== one))}><${Icon} name="close" /></button></li>`)}</ul>`}
    ${(files.length > 0 || uploads > 0) && html`<ul class="attached" aria-live="polite">${files.map((file) => html`<li key=${file.id}>
      ${file.type.startsWith("image/") && html`<img alt="" src=${artifactAddress(file.id)} />`}<bdi>${file.name}</bdi>
      <button type="button" class="plain small" aria-label=${`Remove ${file.name}`} onClick=${() => remove(file)}><${Icon} name="close" /></button></li>`)}
      ${uploads > 0 && html`<li>${uploads === 1 ? "A file is" : `${uploads} files are`} being uploaded …</li>`}</ul>`}
    <div class="box">
      <textarea ref=${box} dir="auto" rows="1" aria-label="Message" placeholder=${hint} value=${text} enterkeyhint="send"
        aria-autocomplete="list" aria-controls=${list.length > 0 ? "suggestions" : undefined} aria-activedescendant=${list.length > 0 ? `suggestions-${at}` : undefined}
        onSelect=${(/** @type {any} */ event) => place_cursor(event.target.selectionStart)}
        onInput=${(/** @type {any} */ event) => change(event.target.value, event.target.selectionStart)} onKeyDown=${onKey} onPaste=${onPaste}></textarea>
      <input type="file" multiple hidden ref=${picker} onChange=${(/** @type {any} */ { target }) => { void add([...target.files]); target.value = ""; }} />
      <button type="button" class="plain round" aria-label="Attach files" title="Attach files" onClick=${() => picker.current?.click()}><${Icon} name="clip" /></button>
      ${(isRunning || state === "waiting") && html`<button type="button" class="round" aria-label="Stop" title="Stop" onClick=${stop}><${Icon} name="stop" /></button>`}
      <button class="round main-action" aria-label="Send" title="Send" disabled=${isUnready}><${Icon} name="send" /></button>
    </div>
  </form>`;
}

/** Puts words into the composer, in the place of what is there. @param {string} words */
export const suggest = (words) => window.dispatchEvent(new CustomEvent("prompt", { detail: { words } }));

/** Puts words into the composer, after what is there. @param {string} words */
export const addWords = (words) => window.dispatchEvent(new CustomEvent("prompt", { detail: { words, isAdded: true } }));

/**
 * Sends something along with the next message, which a person sees and may take away. The last of the same key counts.
 * @param {string} key
 * @param {string} name
 * @param {string} text nothing where there is to be none
 */
export const addContext = (key, name, text) =>
  window.dispatchEvent(new CustomEvent("context", { detail: { key, name, blocks: text === "" ? [] : [{ type: "text", text: `${name}:\n${text}` }] } }));

/** What names a file in a message. @param {Attached} file */
function block({ id, name, type, size }) {
  return { type: "resource_link", uri: `/api/v1/artifacts/${id}`, name, mimeType: type, size };
}

/** Gives the server a file, which says what it is. @param {File} file @returns {Promise<Attached>} */
async function upload(file) {
  const form = new FormData();
  // Without the type, which the browser guesses from the name: the bytes decide.
  form.append("file", new Blob([file]), file.name || "file");
  const stored = await call("/artifacts", { method: "POST", form });
  return { id: stored.id, name: stored.name, type: stored.media_type, size: stored.bytes };
}
