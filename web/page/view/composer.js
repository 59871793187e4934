// Where a person writes. Enter sends, Shift and Enter begin a line; what is written is kept over a reload.

import { useEffect, useRef, useState } from "preact/hooks";
import { say, tell, tellError } from "../lib/app.js";
import { html } from "../lib/html.js";
import { Icon } from "./icon.js";

const MOST_FILE_BYTES = 15 * 1024 * 1024;

/** @typedef {{name: string, type: string, data: string}} Attached */

/** @param {{conversation: import("../lib/conversation.js").OpenConversation | null}} props */
export function Composer({ conversation }) {
  const place = `draft ${conversation?.id ?? "new"}`;
  const [text, write] = useState(() => kept(place));
  const [files, attach] = useState(/** @type {Attached[]} */ ([]));
  const [isSending, sending] = useState(false);
  const box = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
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
      change(event.detail);
      box.current?.focus();
    };
    window.addEventListener("prompt", onPrompt);
    return () => window.removeEventListener("prompt", onPrompt);
  }, []);
  const change = (/** @type {string} */ words) => {
    write(words);
    keep(place, words);
  };
  const send = async () => {
    if (isSending || (text.trim() === "" && files.length === 0)) return;
    sending(true);
    try {
      const blocks = files.map(({ name, type, data }) => block(name, type, data));
      await say(text, files.length === 0 ? text : [...(text.trim() === "" ? [] : [{ type: "text", text }]), ...blocks]);
      change("");
      attach([]);
    } catch (error) {
      tellError(error);
    } finally {
      sending(false);
      box.current?.focus();
    }
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape" && state === "waiting") {
      /** @type {HTMLElement | null} */ (document.querySelector(".transcript .approve, .transcript .question.asking input"))?.focus();
      return;
    }
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    void send();
  };
  const add = async (/** @type {Iterable<File>} */ list) => {
    for (const file of list) {
      if (file.size > MOST_FILE_BYTES) {
        tell(`${file.name} is ${Math.ceil(file.size / 1024 / 1024)} MB, at most 15 MB can be attached`);
      } else {
        const data = await asBase64(file);
        attach((files) => [...files, { name: file.name || "file", type: file.type || "application/octet-stream", data }]);
      }
    }
  };
  const onPaste = (/** @type {ClipboardEvent} */ event) => {
    const pasted = [...(event.clipboardData?.files ?? [])];
    if (pasted.length === 0) return;
    event.preventDefault();
    void add(pasted);
  };
  const onDrop = (/** @type {DragEvent} */ event) => {
    event.preventDefault();
    void add([...(event.dataTransfer?.files ?? [])]);
  };
  const hint = state === "waiting" ? "Decide above first (Esc goes there)" : isRunning ? "Say something more; it is taken up at the next step" : "Ask something";
  return html`<form class="composer" onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); void send(); }}
    onDragOver=${(/** @type {DragEvent} */ event) => event.preventDefault()} onDrop=${onDrop}>
    ${files.length > 0 && html`<ul class="attached">${files.map((file, at) => html`<li>
      ${file.type.startsWith("image/") && html`<img alt="" src=${`data:${file.type};base64,${file.data}`} />`}<bdi>${file.name}</bdi>
      <button type="button" class="plain small" aria-label=${`Remove ${file.name}`} onClick=${() => attach(files.filter((_, other) => other !== at))}><${Icon} name="close" /></button></li>`)}</ul>`}
    <div class="box">
      <textarea ref=${box} rows="1" aria-label="Message" placeholder=${hint} value=${text} enterkeyhint="send"
        onInput=${(/** @type {any} */ event) => change(event.target.value)} onKeyDown=${onKey} onPaste=${onPaste}></textarea>
      ${(isRunning || state === "waiting") && html`<button type="button" class="round" aria-label="Stop" title="Stop" onClick=${() => conversation?.stop().catch(tellError)}><${Icon} name="stop" /></button>`}
      <button class="round main-action" aria-label="Send" title="Send" disabled=${isSending || (text.trim() === "" && files.length === 0)}><${Icon} name="send" /></button>
    </div>
  </form>`;
}

/** Puts words into the composer. @param {string} words */
export const suggest = (words) => window.dispatchEvent(new CustomEvent("prompt", { detail: words }));

/**
 * @param {string} name
 * @param {string} type
 * @param {string} data
 */
function block(name, type, data) {
  if (type.startsWith("image/")) return { type: "image", data, mimeType: type };
  if (type.startsWith("audio/")) return { type: "audio", data, mimeType: type };
  return { type: "resource", resource: { uri: `file:///${encodeURIComponent(name)}`, mimeType: type, blob: data } };
}

/** @param {File} file @returns {Promise<string>} */
function asBase64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onerror = () => reject(new Error(`${file.name} cannot be read`));
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ""));
    reader.readAsDataURL(file);
  });
}

/** @param {string} place */
function kept(place) {
  try {
    return localStorage.getItem(place) ?? "";
  } catch {
    return "";
  }
}

/**
 * @param {string} place
 * @param {string} words
 */
function keep(place, words) {
  try {
    if (words === "") localStorage.removeItem(place);
    else localStorage.setItem(place, words);
  } catch {
    // It is still in the composer.
  }
}
