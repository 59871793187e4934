// The conversations, and the ways to the other screens.

import { useEffect, useRef, useState } from "preact/hooks";
import { refusal } from "../lib/api.js";
import {
  amend, caller, conversations, finishDeleting, here, hidden, inbox, loadConversations, moreConversations, open, pin, remove, renaming, search, tellError,
} from "../lib/app.js";
import { html } from "../lib/html.js";
import { leave } from "../lib/kept.js";
import { isLeft } from "../lib/outbox.js";
import { Icon } from "./icon.js";
import { NotifyMe } from "./notify.js";

let typed = 0;

export function Side() {
  const rename = (/** @type {any} */ conversation) => (renaming.value = conversation);
  const waiting = new Set(inbox.value.map((wait) => wait.conversation_id));
  const at = here.value;
  const visible = conversations.value.filter(({ id }) => !hidden.value.has(id));
  const shown = [...visible.filter(({ pinned }) => pinned), ...visible.filter(({ pinned }) => !pinned)];
  const onSearch = (/** @type {any} */ event) => {
    search.value = event.target.value;
    clearTimeout(typed);
    typed = setTimeout(loadConversations, 150);
  };
  return html`
    <nav class="side" id="side" aria-label="Conversations">
      <div class="brand"><img src="page/icon.svg" alt="" width="24" height="24" /><span>Turnwright</span></div>
      <a class="new" href="#/" aria-current=${at.screen === "chat" && at.id === null ? "page" : undefined}>
        <${Icon} name="plus" /> New conversation</a>
      <input type="search" dir="auto" placeholder="Search" aria-label="Search conversations" value=${search.value} onInput=${onSearch} />
      <ul class="list">
        ${shown.map((conversation) => html`<${Entry} key=${conversation.id} conversation=${conversation}
          isOpen=${open.value?.id === conversation.id} isWaiting=${waiting.has(conversation.id)} rename=${rename} />`)}
        ${shown.length === 0 && html`<li class="faint empty">${search.value ? "Nothing found." : "No conversations yet."}</li>`}
        ${moreConversations.value && html`<li><button class="plain wide" onClick=${() => loadConversations(50)}>
          Show more</button></li>`}
      </ul>
      <div class="places">
        <a href="#/inbox" aria-current=${at.screen === "inbox" ? "page" : undefined}><${Icon} name="inbox" /> Waiting for you
          ${inbox.value.length > 0 && html`<span class="count">${inbox.value.length}</span>`}</a>
        <a href="#/servers" aria-current=${at.screen === "servers" ? "page" : undefined}><${Icon} name="server" /> MCP servers</a>
        <a href="#/usage" aria-current=${at.screen === "usage" ? "page" : undefined}><${Icon} name="chart" /> Usage</a>
        <a href="#/settings" aria-current=${at.screen === "settings" ? "page" : undefined}><${Icon} name="settings" /> Settings</a>
        <${NotifyMe} />
        <${Caller} />
      </div>
    </nav>
    ${renaming.value && html`<${Rename} conversation=${renaming.value} close=${() => rename(null)} />`}
  `;
}

/** Who is signed in, where somebody had to. */
function Caller() {
  const me = caller.value;
  if (me?.how !== "session") return null;
  const signOut = async () => {
    try {
      await finishDeleting();
      const response = await fetch("logout", { method: "POST" });
      if (!response.ok) throw await refusal(response);
      leave();
    } catch (error) {
      tellError(error);
    }
  };
  return html`<div class="row"><bdi class="faint" title=${me.role}>${me.name}</bdi>
    <button class="plain small" onClick=${signOut}>Sign out</button></div>`;
}

/** @param {{conversation: any, isOpen: boolean, isWaiting: boolean, rename: (conversation: any) => void}} props */
function Entry({ conversation, isOpen, isWaiting, rename }) {
  const title = conversation.title ?? "Untitled";
  const removeHere = (/** @type {any} */ event) => {
    const entry = event.target.closest("li");
    const next = (entry.nextElementSibling ?? entry.previousElementSibling)?.querySelector("a, button") ?? document.querySelector(".side .new");
    remove(conversation);
    next.focus();
  };
  return html`<li class=${isOpen ? "entry open" : "entry"}>
    <a href=${`#/c/${encodeURIComponent(conversation.id)}`} aria-current=${isOpen ? "page" : undefined} title=${title}>
      <span class="named">${conversation.pinned && html`<${Icon} name="pin" /><span class="unseen">Pinned: </span>`}<bdi>${title}</bdi>${isWaiting && html`<span class="dot asking" title="Waits for you"><span class="unseen">, waits for you</span></span>`}${!isOpen && isLeft(conversation.id) && html`<em class="faint"> not sent</em>`}</span>
      ${conversation.excerpt && html`<span class="faint excerpt" dir="auto">${conversation.excerpt.text}</span>`}
    </a>
    <span class="actions">
      <button class="plain small" aria-label=${`${conversation.pinned ? "Unpin" : "Pin"} ${title}`} onClick=${() => pin(conversation)}><${Icon} name="pin" /></button>
      <button class="plain small" aria-label=${`Rename ${title}`} onClick=${() => rename(conversation)}><${Icon} name="edit" /></button>
      <button class="plain small" aria-label=${`Delete ${title}`} onClick=${removeHere}><${Icon} name="trash" /></button>
    </span>
  </li>`;
}

/** @param {{conversation: any, close: () => void}} props */
function Rename({ conversation, close }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const [title, write] = useState(conversation.title ?? "");
  useEffect(() => dialog.current?.showModal(), []);
  const store = async (/** @type {Event} */ event) => {
    event.preventDefault();
    try {
      await amend(conversation.id, { title: title.trim() || null });
      // What is typed next is not meant for this dialog.
      close();
    } catch (error) {
      tellError(error);
    }
  };
  return html`<dialog ref=${dialog} onClose=${close} aria-label="Rename conversation">
    <form onSubmit=${store} class="dialog">
      <label>Title<input type="text" dir="auto" value=${title} maxlength="200" onInput=${(/** @type {any} */ event) => write(event.target.value)} /></label>
      <div class="row end"><button type="button" onClick=${() => dialog.current?.close()}>Cancel</button>
        <button class="main-action">Rename</button></div>
    </form>
  </dialog>`;
}

