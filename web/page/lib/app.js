// What the whole page shares: where it is, the conversations, what waits, the models.

import { computed, signal } from "@preact/signals";
import { call, fresh, listed as whole, part, Refused, sentence, waitsAt } from "./api.js";
import { OpenConversation } from "./conversation.js";

/** @typedef {{screen: "chat", id: string | null} | {screen: "turn", id: string, turn: string} | {screen: "inbox" | "servers" | "usage" | "settings"}} Place */

/** @returns {Place} */
function place() {
  const [screen, name, turn] = location.hash.replace(/^#\/?/, "").split("/");
  if (screen === "inbox" || screen === "servers" || screen === "usage" || screen === "settings") return { screen };
  const id = screen === "c" && name ? decoded(name) : null;
  return id !== null && turn ? { screen: "turn", id, turn } : { screen: "chat", id };
}

/** Nothing where an address was mangled. @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** @type {import("@preact/signals").Signal<Place>} */
export const here = signal(place());
/** @type {import("@preact/signals").Signal<OpenConversation | null>} */
export const open = signal(null);
/** @type {import("@preact/signals").Signal<any[]>} */
export const conversations = signal([]);
/** @type {import("@preact/signals").Signal<string | null>} */
export const moreConversations = signal(null);
export const search = signal("");
/** What waits for a person, over all conversations. @type {import("@preact/signals").Signal<any[]>} */
export const inbox = signal([]);
/** @type {import("@preact/signals").Signal<any[] | null>} */
export const models = signal(null);
export const unavailable = signal(/** @type {any[]} */ ([]));
/** Said to those who listen instead of looking. */
export const announced = signal("");
/** @type {import("@preact/signals").Signal<{text: string, undo: (() => void) | null, words: string} | null>} */
export const toast = signal(null);
/** What a conversation that does not exist yet is to be. @type {import("@preact/signals").Signal<any>} */
export const draft = signal({});
export const isMenuOpen = signal(false);

/** Who looks at the page. @type {import("@preact/signals").Signal<any>} */
export const caller = signal(null);

/** The model that answers where none is chosen. */
export const byDefault = computed(() => models.value?.find((model) => model.is_default));

export const practice = computed(() => {
  const chosen = open.value?.info.value?.model ?? draft.value.model ?? byDefault.value?.id;
  return chosen?.startsWith("practice/") ?? false;
});

/** @param {string} text */
export function announce(text) {
  announced.value = "";
  requestAnimationFrame(() => (announced.value = text));
}

/**
 * Tells people something for a while.
 * @param {string} text
 * @param {(() => void) | null} [undo]
 * @param {number} [for_ms]
 * @param {string} [words] what the way back is called
 */
export function tell(text, undo = null, for_ms = 6_000, words = "Undo") {
  const told = { text, undo, words };
  toast.value = told;
  setTimeout(() => {
    if (toast.value === told) toast.value = null;
  }, for_ms);
}

/** @param {unknown} error */
export const tellError = (error) => tell(sentence(error), null, 10_000);

/** How far the list of a search was asked for. */
const wanted = { q: "", count: 50 };

/**
 * Loads the list as far as it is shown.
 * @param {number} [more] how many more of it somebody wants
 */
export async function loadConversations(more = 0) {
  const q = search.value.trim();
  const count = (wanted.q === q ? wanted.count : 50) + more;
  Object.assign(wanted, { q, count });
  const isOver = () => wanted.q !== q || wanted.count !== count;
  try {
    /** @type {any[]} */
    const data = [];
    let cursor = null;
    do {
      const limit = Math.min(100, count - data.length);
      const page = await call(`/conversations?limit=${limit}${cursor ? `&cursor=${part(cursor)}` : ""}${q ? `&q=${part(q)}` : ""}`);
      if (isOver()) return;
      data.push(...page.data);
      cursor = page.next_cursor;
    } while (cursor && data.length < count);
    // What changed meanwhile may have come twice.
    const older = cursor && !q ? await whole("/conversations?pinned=true") : [];
    if (isOver()) return;
    const list = new Map([...older, ...data].map((conversation) => [conversation.id, conversation]));
    conversations.value = [...list.values()];
    const shown = open.value;
    const own = list.get(shown?.id);
    if (shown?.info.value && own) shown.told({ title: own.title, pinned: own.pinned });
    moreConversations.value = cursor;
  } catch (error) {
    if (isOver()) return;
    wanted.count -= more;
    if (more || !(error instanceof Refused && error.isPassing)) tellError(error);
  }
}

export async function loadInbox() {
  try {
    const before = new Set(inbox.value.map((wait) => wait.conversation_id + wait.id));
    const waits = await waitsAt("/approvals");
    if (waits.some((/** @type {any} */ wait) => !before.has(wait.conversation_id + wait.id))) {
      const names = waits.map((/** @type {any} */ wait) => wait.name);
      announce(`Waiting for your decision: ${[...new Set(names)].join(", ")}`);
    }
    inbox.value = waits;
  } catch {
    // The next look tells.
  }
}

export async function loadModels() {
  try {
    const list = await call("/models");
    models.value = list.data;
    unavailable.value = list.unavailable;
  } catch (error) {
    if (models.value === null) models.value = [];
    tellError(error);
  }
}

/** The title of a conversation that may not be in the list. @param {string} id @returns {Promise<string>} */
export const titleOf = async (id) => (conversations.peek().find((known) => known.id === id) ?? await call(`/conversations/${part(id)}`)).title;

/** Why the server takes nothing of this page, where it does not. */
export const shutOut = signal("");
/** Browsers name their page with what may change something alone: what is asked here changes nothing, and is refused as all the rest would be. */
export const knock = () => call("/me", { method: "OPTIONS" }).catch((error) => {
  if (error.code === "origin_not_allowed") shutOut.value = error.message;
});

export const loadCaller = () => call("/me").then((me) => (caller.value = me), () => {});

/** @type {Promise<any[]> | null} */
let known = null;
/** The tool of this name, as its server told it lately. @param {string} name */
export async function toolNamed(name) {
  known ??= whole("/tools");
  try {
    return (await known).find((tool) => tool.id === name);
  } finally {
    setTimeout(() => (known = null), 5_000);
  }
}

let listed = 0;
function onChange() {
  clearTimeout(listed);
  listed = setTimeout(() => {
    void loadConversations();
    void loadInbox();
  }, 150);
}

const page = {
  onChange,
  byDefault: () => ({ approve: caller.value?.approve ?? "ask", model: byDefault.value?.id }),
};

/** Shows the place that the address names. */
export function arrive() {
  here.value = place();
  isMenuOpen.value = false;
  const at = here.value;
  const id = at.screen === "chat" ? at.id : null;
  if (open.value?.id === id) return;
  open.value?.close();
  open.value = id === null ? null : new OpenConversation(id, page);
}

/** By which a conversation that does not exist yet is known: what is written for it goes with it once it is made. */
export let begun = 0;

/**
 * Opens a conversation that was just made.
 * @param {any} info
 * @param {number} [composer]
 */
export function use(info, composer) {
  open.value?.close();
  const made = new OpenConversation(info.id, page, info, composer);
  open.value = made;
  go(info.id);
  return made;
}

/** @param {string | null} id */
export function go(id) {
  location.hash = id === null ? "#/" : `#/c/${encodeURIComponent(id)}`;
}

/** Makes a conversation of what was chosen for it. @param {any} chosen */
export const make = (chosen) => call("/conversations", { body: { ...chosen, id: `conv_${fresh()}` } });

/**
 * Says something in the open conversation, or in a new one.
 * @param {string} text
 * @param {any} [content]
 */
export async function say(text, content) {
  if (open.value) {
    if (deleting.get(open.value.id)?.keep()) tell("It is not deleted, since you go on with it.");
    open.value.send(text, content);
    return;
  }
  const made = await make(draft.value);
  draft.value = {};
  use(made, begun++).send(text, content);
}

/** The conversation whose title is being changed. @type {import("@preact/signals").Signal<any>} */
export const renaming = signal(null);

/**
 * Changes a conversation, and shows what the server made of it.
 * @param {string} id
 * @param {any} body
 */
export async function amend(id, body) {
  const changed = await call(`/conversations/${part(id)}`, { method: "PATCH", body });
  if (open.value?.id === id) open.value.told(changed);
  void loadConversations();
  return changed;
}

/** Keeps a conversation at the top, however old it is, or lets it go. @param {any} conversation */
export const pin = ({ id, pinned }) =>
  amend(id, { pinned: !pinned }).then((changed) => announce(changed.pinned ? "Pinned" : "Not pinned any more"), tellError);

/**
 * Deletes a conversation, unless that is taken back soon.
 * @param {any} conversation
 */
export function remove({ id, title }) {
  const name = `“${title ?? "Untitled"}”`;
  hidden.value = new Set([...hidden.value, id]);
  if (open.value?.id === id) go(null);
  /** @type {Promise<void> | null} */
  let sent = null;
  const show = () => (hidden.value = new Set([...hidden.value].filter((other) => other !== id)));
  const stopWaiting = () => {
    clearTimeout(timer);
    window.removeEventListener("pagehide", send);
  };
  // What is on its way is not taken back.
  const keep = () => {
    if (sent) return false;
    stopWaiting();
    deleting.delete(id);
    show();
    return true;
  };
  const now = () => (sent ??= ask());
  const ask = async () => {
    stopWaiting();
    try {
      await call(`/conversations/${part(id)}`, { method: "DELETE", keepalive: true });
    } catch (error) {
      show();
      throw new Error(`${name} is not deleted. ${sentence(error)}`);
    } finally {
      deleting.delete(id);
    }
  };
  const send = () => now().catch(tellError);
  const timer = setTimeout(send, 6_000);
  window.addEventListener("pagehide", send);
  deleting.set(id, { keep, now });
  tell(`Deleted ${name}`, keep);
}
/** Conversations that are about to be deleted, until that is answered: what keeps each where it can, and what deletes it at once. @type {Map<string, {keep: () => boolean, now: () => Promise<void>}>} */
const deleting = new Map();
/** Deletes them, for whoever signs out: nobody could any more. */
export const finishDeleting = () => Promise.all([...deleting.values()].map(({ now }) => now()));
/** Conversations that are not shown, since they are deleted or about to be. @type {import("@preact/signals").Signal<Set<string>>} */
export const hidden = signal(new Set());
