// What can be done with the open conversation besides talking.

import { useEffect, useRef, useState } from "preact/hooks";
import { pin, remove, renaming, tellError } from "../lib/app.js";
import { copy } from "../lib/branch.js";
import { download, forms } from "../lib/export.js";
import { html } from "../lib/html.js";
import { Icon } from "./icon.js";
import { SettingsOf } from "./settings-of.js";

/** @param {{conversation: import("../lib/conversation.js").OpenConversation | null, store: (change: any) => Promise<void>}} props */
export function Menu({ conversation, store }) {
  const [isOpen, open] = useState(false);
  const [isSetting, setting] = useState(false);
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const info = conversation?.info.value;
  useEffect(() => {
    if (!isOpen) return undefined;
    const leave = (/** @type {Event} */ event) => {
      if (!box.current?.contains(/** @type {Node} */ (event.target))) open(false);
    };
    document.addEventListener("pointerdown", leave);
    document.addEventListener("focusin", leave);
    return () => {
      document.removeEventListener("pointerdown", leave);
      document.removeEventListener("focusin", leave);
    };
  }, [isOpen]);
  useEffect(() => {
    const onCommand = (/** @type {any} */ event) => {
      if (event.detail === "settings") setting(true);
      if (event.detail === "export") open(true);
    };
    window.addEventListener("command", onCommand);
    return () => window.removeEventListener("command", onCommand);
  }, []);
  const act = (/** @type {() => any} */ work) => async () => {
    open(false);
    try {
      await work();
    } catch (error) {
      tellError(error);
    }
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Escape" || !isOpen) return;
    event.stopPropagation();
    open(false);
    /** @type {HTMLElement | null | undefined} */ (box.current?.querySelector("button"))?.focus();
  };
  return html`<div class="more-menu" ref=${box} onKeyDown=${onKey}>
    <button class="plain" aria-label="More" title="More" aria-expanded=${isOpen} onClick=${() => open(!isOpen)}><${Icon} name="more" /></button>
    ${isOpen && html`<div class="popup" role="group" aria-label="This conversation">
      <button class="plain" onClick=${act(() => setting(true))}>Settings…</button>
      ${info && html`<button class="plain" onClick=${act(() => (renaming.value = info))}>Rename…</button>
        <button class="plain" onClick=${act(() => pin(info))}>${info.pinned ? "Unpin" : "Pin"}</button>
        <button class="plain" onClick=${act(() => copy(info))}>Copy as a branch</button>
        <span class="faint small-text" id="export-as">Export as</span>
        ${Object.entries(forms).map(([form, words]) => html`<button class="plain inner-choice" aria-describedby="export-as" onClick=${act(() => download(info, form))}>${words}</button>`)}
        <button class="plain danger-text" onClick=${act(() => remove(info))}>Delete</button>`}
    </div>`}
    ${isSetting && html`<${SettingsOf} info=${info} store=${store} close=${() => setting(false)} />`}
  </div>`;
}
