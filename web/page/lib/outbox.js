// What people said and is not stored yet, of one conversation: sent in the order in which it was said, as often as it takes; the server
// stores it once. It goes on while another conversation is looked at, and after a reload.

import { signal } from "@preact/signals";
import { call, fresh, MOST_WAIT_MS, part, Refused, sentence } from "./api.js";

/**
 * @typedef {{key: string, text: string, content: any, own?: any, settings?: any, chosen?: any, state: "sending" | "kept" | "refused", why: string, isGone?: boolean, messageId: string}} Unsent
 */

const PREFIX = "unsent ";
/** @type {Map<string, Outbox>} */
const all = new Map();

/** @param {string} id of the conversation */
export const outboxOf = (id) => all.get(id) ?? new Outbox(id);

/** Whether something that was said in a conversation met a failure and is not stored. @param {string} id */
export const isLeft = (id) => all.get(id)?.unsent.value.some(({ why }) => why !== "");

class Outbox {
  /** @param {string} id */
  constructor(id) {
    all.set(id, this);
    this.id = id;
    /** @type {import("@preact/signals").Signal<Unsent[]>} */
    this.unsent = signal(this.#remembered());
    /** What was chosen for the conversation last and is on its way. What is said after it waits for it. @type {Promise<any>} */
    this.changing = Promise.resolve();
    this.isSending = false;
    this.onKept = () => {};
    void this.#deliver();
  }

  /**
   * @param {string} text
   * @param {any} content
   * @param {any} own what this turn alone has otherwise, such as its model
   * @param {any} shown what it is to have of what the page shows
   * @param {any} chosen what was chosen for the conversation, for another one in its place
   */
  send(text, content, own, shown, chosen) {
    this.keep([...this.unsent.value, { key: fresh(), text, content, own, settings: { ...shown, ...own }, chosen, state: "sending", why: "", messageId: "" }]);
    void this.#deliver();
  }

  /** One after the other: what is said later is not to be heard earlier. */
  async #deliver() {
    if (this.isSending) return;
    this.isSending = true;
    let wait_ms = 500;
    for (let next; (next = this.unsent.value.find(({ state }) => state === "sending")); ) {
      const { key, content, settings } = next;
      let isTaken = false;
      try {
        await this.changing;
        isTaken = true;
        const stored = await call(`/conversations/${part(this.id)}/messages`, { body: { ...settings, content }, key });
        this.#change(key, { state: "kept", why: "", messageId: stored.message_id });
        wait_ms = 500;
        this.onKept();
      } catch (error) {
        const status = error instanceof Refused ? error.status : 0;
        // Whoever has to sign in comes back to it, and it is sent then.
        if (status === 401) break;
        const isPassing = isTaken && error instanceof Refused && error.isPassing;
        // Other than what stands before the server, it names what is not there.
        const isGone = error instanceof Refused && error.code === "not_found";
        this.#change(key, { state: isPassing ? "sending" : "refused", why: isGone ? "This conversation was deleted." : sentence(error), isGone });
        if (isPassing) await new Promise((resolve) => setTimeout(resolve, wait_ms));
        wait_ms = Math.min(wait_ms * 2, MOST_WAIT_MS);
      }
    }
    this.isSending = false;
  }

  /** @param {string} key */
  drop(key) {
    this.keep(this.unsent.value.filter((other) => other.key !== key));
  }

  /**
   * @param {string} key
   * @param {Partial<Unsent>} change
   */
  #change(key, change) {
    this.keep(this.unsent.value.map((unsent) => (unsent.key === key ? { ...unsent, ...change } : unsent)));
  }

  /** @param {Unsent[]} unsent */
  keep(unsent) {
    this.unsent.value = unsent;
    try {
      const rest = unsent.filter(({ state }) => state !== "kept");
      if (rest.length === 0) sessionStorage.removeItem(PREFIX + this.id);
      else sessionStorage.setItem(PREFIX + this.id, JSON.stringify(rest));
    } catch {
      // What is too large to be kept over a reload is sent all the same.
    }
  }

  /** @returns {Unsent[]} */
  #remembered() {
    try {
      return JSON.parse(sessionStorage.getItem(PREFIX + this.id) ?? "[]");
    } catch {
      return [];
    }
  }
}

try {
  for (const name of Object.keys(sessionStorage)) if (name.startsWith(PREFIX)) outboxOf(name.slice(PREFIX.length));
} catch {
  // Where nothing may be kept, nothing was.
}
