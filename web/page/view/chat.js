// The chat: the composer, and what was said above it.

import { useEffect, useRef, useState } from "preact/hooks";
import { announce, announced, begun, byDefault, draft, make, models, open, tellError, use } from "../lib/app.js";
import { changed } from "../lib/conversation.js";
import { html } from "../lib/html.js";
import { moveDraft } from "../lib/kept.js";
import { Composer } from "./composer.js";
import { Icon } from "./icon.js";
import { Menu } from "./menu.js";
import { MenuButton } from "./root.js";
import { ToolsButton } from "./tools.js";
import { Said, TurnView } from "./turn.js";
import { Welcome } from "./welcome.js";

export function Chat() {
  const conversation = open.value;
  const state = conversation?.state.value ?? "idle";
  const isEmpty = !conversation || (state !== "loading" && conversation.turns.value.length === 0 && conversation.unsent.value.length === 0);
  // The composer comes first, for whoever does not look; the style puts it at the bottom.
  return html`<div class="chat">
    <${Composer} key=${conversation?.composer ?? begun} conversation=${conversation} />
    <${Head} conversation=${conversation} />
    ${isEmpty && state !== "missing" ? html`<${Welcome} />` : html`<${Transcript} key=${conversation?.id} conversation=${conversation} />`}
  </div>`;
}

/** @param {{conversation: import("../lib/conversation.js").OpenConversation | null}} props */
function Head({ conversation }) {
  const info = conversation ? conversation.info.value : draft.value;
  const store = async (/** @type {any} */ change) => {
    if (conversation) await conversation.change(change);
    else draft.value = changed(draft.value, change);
  };
  const change = (/** @type {any} */ change) => store(change).catch(tellError);
  useEffect(() => {
    const onChange = (/** @type {any} */ event) => void change(event.detail);
    window.addEventListener("change-settings", onChange);
    return () => window.removeEventListener("change-settings", onChange);
  }, [conversation]);
  const known = models.value ?? [];
  const standard = byDefault.value?.id;
  const approve = info?.settings?.approve ?? "";
  return html`<header class="head">
    <${MenuButton} />
    <h1 class="title" dir="auto">${info?.title ?? (conversation ? "Conversation" : "New conversation")}</h1>
    <div class="choices">
      <select aria-label="Model" value=${info?.model ?? ""} onChange=${(/** @type {any} */ event) => change({ model: event.target.value || null })}>
        <option value="">${standard ?? "Model"}</option>
        ${info?.model && !known.some((model) => model.id === info.model) && html`<option value=${info.model}>${info.model}</option>`}
        ${known.filter((model) => model.id !== standard || info?.model === standard).map((model) => html`<option value=${model.id}>${model.id}</option>`)}
      </select>
      <select aria-label="What runs without asking" value=${approve} onChange=${(/** @type {any} */ event) =>
        change({ settings: { approve: event.target.value || (conversation ? null : undefined) } })}>
        <option value="">Asks by the rules</option>
        <option value="ask">Asks before it acts</option>
        <option value="read-only">Only reads</option>
        <option value="all">Runs all without asking</option>
        <option value="none">Runs no tools that would ask</option>
      </select>
      <${ToolsButton} conversation=${conversation} store=${store} />
      <${Menu} conversation=${conversation} store=${store} />
    </div>
  </header>`;
}

/** @param {{conversation: import("../lib/conversation.js").OpenConversation}} props */
function Transcript({ conversation }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const inner = useRef(/** @type {HTMLDivElement | null} */ (null));
  const isAtEnd = useRef(true);
  const top = useRef(0);
  const begun = useRef(/** @type {Element | null} */ (null));
  const [isAway, away] = useState(false);
  const turns = conversation.turns.value;
  const unsent = conversation.unsent.value;
  const state = conversation.state.value;
  const before = useRef(state);
  useEffect(() => {
    const { current } = box;
    const watched = inner.current;
    if (!current || !watched) return undefined;
    const grown = new ResizeObserver(() => {
      if (!isAtEnd.current) return;
      // A form that is longer than the window is read from its beginning. Whoever is further down in it by now is not taken back there:
      // what they are about to press would move.
      const form = current.querySelector(".question.asking");
      const begin = form ? form.getBoundingClientRect().top - current.getBoundingClientRect().top + current.scrollTop - 12 : Infinity;
      const isFurther = form !== null && form === begun.current && current.scrollTop > begin + 1;
      begun.current = form;
      current.scrollTop = isFurther ? current.scrollHeight : Math.min(current.scrollHeight, begin);
    });
    grown.observe(watched);
    return () => grown.disconnect();
  }, []);
  useEffect(() => {
    if (unsent.some(({ state }) => state === "sending")) toEnd();
  }, [unsent.length]);
  const newest = turns.at(-1)?.id;
  useEffect(() => {
    const was = before.current;
    before.current = state;
    // A turn may be over before anybody saw it run.
    if (was === "loading") return;
    if (state === "idle") announce("The answer is complete");
    if (state === "waiting") announce("The turn waits for your decision");
    if (was !== "running" && state === "running" && announced.value === "") announce("Working");
  }, [state, newest]);
  const toEnd = () => {
    isAtEnd.current = true;
    away(false);
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  };
  const onScroll = () => {
    const { current } = box;
    if (!current) return;
    const isNear = current.scrollHeight - current.scrollTop - current.clientHeight < 48;
    // What grows below is followed; only a person scrolls up.
    if (isNear) isAtEnd.current = true;
    else if (current.scrollTop < top.current - 1) isAtEnd.current = false;
    top.current = current.scrollTop;
    away(!isAtEnd.current);
  };
  const isLoading = useRef(false);
  const older = async () => {
    const { current } = box;
    if (isLoading.current || !current) return;
    isLoading.current = true;
    // What is seen stays where it is, whether the browser sees to that or not.
    const seen = [...current.querySelectorAll(".turn")].find((turn) => turn.getBoundingClientRect().bottom > current.getBoundingClientRect().top);
    const before = seen?.getBoundingClientRect().top ?? 0;
    try {
      await conversation.loadOlder();
    } catch (error) {
      tellError(error);
    }
    requestAnimationFrame(() => {
      if (seen?.isConnected) current.scrollTop += seen.getBoundingClientRect().top - before;
      isLoading.current = false;
    });
  };
  const begin = useRef(/** @type {HTMLButtonElement | null} */ (null));
  useEffect(() => {
    const { current } = begin;
    if (!current) return undefined;
    // Loaded before somebody gets there.
    const near = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting) && (box.current?.scrollTop ?? 0) > 0) void older();
    }, { root: box.current, rootMargin: "1500px 0px 0px" });
    near.observe(current);
    return () => near.disconnect();
  }, [conversation.older.value]);
  return html`<div class="transcript" ref=${box} onScroll=${onScroll} tabindex="0" role="region" aria-label="Messages">
    <div class="inner" ref=${inner}>
      ${state === "missing" && html`<div class="empty"><p>There is no such conversation. It may have been deleted.</p><a class="button" href="#/">Begin a new one</a></div>`}
      ${conversation.older.value && html`<button class="plain wide" ref=${begin} onClick=${older}>Show what was before</button>`}
      ${turns.map((turn, at) => html`<${TurnView} key=${turn.id} turn=${turn} conversation=${conversation} isLast=${at === turns.length - 1} />`)}
      ${unsent.map((message) => html`<${Unsent} key=${message.key} message=${message} conversation=${conversation} />`)}
    </div>
    ${conversation.isLost.value && html`<p class="lost" role="status">${conversation.failure.value} Trying again… Nothing is lost: the turn goes on without us.</p>`}
    ${isAway && html`<button class="to-end" onClick=${toEnd} aria-label="To the newest"><${Icon} name="down" /></button>`}
  </div>`;
}

/** @param {{message: import("../lib/conversation.js").Unsent, conversation: import("../lib/conversation.js").OpenConversation}} props */
function Unsent({ message, conversation }) {
  const content = typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content;
  const again = () => {
    conversation.outbox.drop(message.key);
    conversation.send(message.text, message.content, message.own);
  };
  const anew = async () => {
    if (conversation.isLeft) return;
    conversation.isLeft = true;
    try {
      const info = await make(message.chosen);
      moveDraft(conversation.id, info.id);
      const made = use(info);
      // All that was said and is not stored, in its order.
      for (const { key, text, content, own } of conversation.unsent.value) {
        conversation.outbox.drop(key);
        made.send(text, content, own);
      }
    } catch (error) {
      conversation.isLeft = false;
      tellError(error);
    }
  };
  return html`<${Said} content=${content}>
    ${message.state === "sending" && html`<p class="faint small-text">${message.why ? `${message.why} Sending again…` : "Sending…"}</p>`}
    ${message.state === "kept" && html`<p class="faint small-text">Held until the turn goes on.</p>`}
    ${message.state === "refused" && html`<div class="failure" role="alert">Not sent: ${message.why}
      ${message.isGone ? html`<button onClick=${anew}>Send in a new conversation</button>` : html`<button onClick=${again}>Send again</button>`}<button class="plain" onClick=${() => conversation.outbox.drop(message.key)}>Discard</button></div>`}
  <//>`;
}
