// Everything that waits for a person, over all conversations.

import { useEffect, useState } from "preact/hooks";
import { call, part } from "../lib/api.js";
import { conversations, inbox, loadInbox, titleOf, toolNamed } from "../lib/app.js";
import { html } from "../lib/html.js";
import { Approve } from "./approval.js";
import { Question } from "./form.js";
import { MenuButton } from "./root.js";

export function Inbox() {
  const waits = inbox.value;
  return html`<div class="screen">
    <header class="head"><${MenuButton} /><h1 class="title">Waiting for you</h1></header>
    <div class="page">
      ${waits.length === 0 && html`<p class="faint empty">Nothing waits. What needs your decision shows up here and in its conversation.</p>`}
      ${waits.map((wait) => html`<${Waiting} key=${`${wait.conversation_id} ${wait.id}`} wait=${wait} />`)}
    </div>
  </div>`;
}

/** The way to a conversation, by its title. @param {{id: string}} props */
export function Conversation({ id }) {
  const known = conversations.value.find((conversation) => conversation.id === id);
  const [title, name] = useState("");
  useEffect(() => {
    if (!known) titleOf(id).then(name, () => {});
  }, [!known]);
  return html`<a href=${`#/c/${encodeURIComponent(id)}`}><bdi>${(known?.title ?? title) || id}</bdi></a>`;
}

/** @param {{wait: any}} props */
function Waiting({ wait }) {
  const path = `/conversations/${part(wait.conversation_id)}`;
  const after = async (/** @type {Promise<any>} */ sent) => {
    try {
      return await sent;
    } finally {
      await loadInbox();
    }
  };
  const [server, ...tool] = wait.name.split("__");
  const [title, know] = useState("");
  useEffect(() => void toolNamed(wait.name).then((known) => know(known?.title ?? ""), () => {}), []);
  return html`<article class="card asking">
    <h2 class="wait-head"><bdi>${title || tool.join("__") || wait.name}</bdi> <span class="server">${server}</span>
      <${Conversation} id=${wait.conversation_id} /></h2>
    ${wait.question ? html`<${Question} id=${wait.id} conversation=${wait.conversation_id} question=${wait.question} isOpen=${true}
        answer=${(/** @type {any} */ body) => after(call(`${path}/questions/${part(wait.id)}/answer`, { body }))} />`
      : html`<${Approve} name=${wait.name} title=${wait.name} server=${server} text=${wait.arguments} wait=${wait} place=${`arguments ${wait.conversation_id} ${wait.id}`}
        decide=${(/** @type {any} */ body) => after(call(`${path}/calls/${part(wait.id)}/decision`, { body }))} />`}
  </article>`;
}
