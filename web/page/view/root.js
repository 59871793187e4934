// The frame around everything: conversations at the side, one screen beside them.

import { announced, here, isMenuOpen, shutOut, toast } from "../lib/app.js";
import { html } from "../lib/html.js";
import { Chat } from "./chat.js";
import { Icon } from "./icon.js";
import { Inbox } from "./inbox.js";
import { Servers } from "./servers.js";
import { Settings } from "./settings.js";
import { Side } from "./side.js";
import { Markdown } from "./text.js";
import { TurnPage } from "./turn-page.js";
import { Usage } from "./usage.js";

export function Root() {
  return html`
    <div class=${isMenuOpen.value ? "app with-menu" : "app"} onKeyDown=${onKey}>
      <${Side} />
      ${isMenuOpen.value && html`<div class="veil" onClick=${() => (isMenuOpen.value = false)}></div>`}
      <main class="main" id="main">
        ${shutOut.value ? html`<div class="page"><h2>Turnwright is here, and takes nothing of this page</h2><div class="failure" role="alert"><${Markdown} text=${shutOut.value} isDone=${true} /></div>
          <p>All of it is in <code>docs/operations.md</code> under “Behind a proxy”.</p></div>`
          : html`<${Screen} place=${here.value} />`}
      </main>
    </div>
    <div class="unseen" role="status" aria-live="polite">${announced.value}</div>
    <${Toast} />
  `;
}

/** @param {{place: import("../lib/app.js").Place}} props */
function Screen({ place }) {
  switch (place.screen) {
    case "inbox": return html`<${Inbox} />`;
    case "servers": return html`<${Servers} />`;
    case "usage": return html`<${Usage} />`;
    case "settings": return html`<${Settings} />`;
    case "turn": return html`<${TurnPage} id=${place.id} turn=${place.turn} />`;
    case "chat": return html`<${Chat} />`;
  }
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  if (event.key === "Escape" && isMenuOpen.value) {
    isMenuOpen.value = false;
    document.getElementById("menu")?.focus();
  }
}

function Toast() {
  const told = toast.value;
  const undo = () => {
    told?.undo?.();
    toast.value = null;
  };
  return html`<div class="toasts" role="status" aria-live="polite">
    ${told && html`<div class="toast">
      <span dir="auto">${told.text}</span>
      ${told.undo && html`<button class="plain" onClick=${undo}>${told.words}</button>`}
      <button class="plain small" aria-label="Close" onClick=${() => (toast.value = null)}><${Icon} name="close" /></button>
    </div>`}
  </div>`;
}

/** What opens the list of conversations where it does not fit beside the screen. */
export function MenuButton() {
  return html`<button id="menu" class="plain small menu" aria-label="Conversations" aria-expanded=${isMenuOpen.value}
    onClick=${() => (isMenuOpen.value = !isMenuOpen.value)}><${Icon} name="menu" /></button>`;
}
