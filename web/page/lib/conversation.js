// An open conversation: what was said, kept up with what happens, through reloads, sleep, lost networks and restarts.
//
// The server's journal is the truth. A turn that runs is told from its beginning each time we come back, and the message is
// put together anew: nothing can be lost or doubled. Between turns we listen for anything that happens.

import { batch, signal } from "@preact/signals";
import { call, MOST_WAIT_MS, part, Refused, sentence, waitsAt } from "./api.js";
import { exact, plain } from "./exact.js";
import { emptyMessage, isAsFar, take } from "./message.js";
import { outboxOf } from "./outbox.js";
import { follow } from "./stream.js";

/**
 * @typedef {import("./message.js").Message} Message
 * @typedef {object} Turn
 * @property {string} id
 * @property {string} messageId
 * @property {any[] | null} content
 * @property {string} createdAt
 * @property {string} status
 * @property {Message} message
 * @property {import("@preact/signals").Signal<number>} rev
 * @typedef {import("./outbox.js").Unsent} Unsent
 * @typedef {{approve: string, model: string | undefined}} Defaults what counts where nothing was chosen
 */

const FIRST_TURNS = 20;
/** How long what is shown stays once the turn is told from its beginning and is not that far yet. */
const CATCH_UP_MS = 2_000;
/** How long nobody has to look before the connection is let go. */
const LEAVE_AFTER_MS = 10_000;

/**
 * What is chosen, with a change of it.
 * @param {any} chosen
 * @param {any} change
 */
export const changed = (chosen, change) => ({ ...chosen, ...change, settings: { ...chosen?.settings, ...change.settings } });

/**
 * What a message is to have of what is shown, whatever was stored elsewhere meanwhile. That all runs is not said: then what is stored
 * may be less, and no more than is shown. An open turn keeps its model.
 * @param {any} info
 * @param {Defaults} byDefault
 * @param {boolean} isTurnOpen
 */
export function shownTo(info, byDefault, isTurnOpen) {
  const approve = info?.settings?.approve ?? byDefault.approve;
  const model = info && !isTurnOpen && (info.model ?? byDefault.model);
  return { ...(model && { model }), ...(approve !== "all" && { settings: { approve } }) };
}

export class OpenConversation {
  /**
   * @param {string} id
   * @param {{onChange: () => void, byDefault: () => Defaults}} page `onChange` is told when something changed that lists show
   * @param {any} info what is known of it
   * @param {any} composer by which what is written in it is known
   */
  constructor(id, page, info = null, composer = id) {
    this.id = id;
    this.composer = composer;
    this.path = `/conversations/${part(id)}`;
    this.page = page;
    /** As the server told it last. */
    this.stored = info;
    /** What is being stored. @type {any[]} */
    this.changes = [];
    /** How often something was, or was not. */
    this.changed = 0;
    /** The same with what is being stored: what is shown. @type {import("@preact/signals").Signal<any>} */
    this.info = signal(info);
    /** @type {import("@preact/signals").Signal<Turn[]>} */
    this.turns = signal([]);
    /** Leads to older turns. @type {import("@preact/signals").Signal<string | null>} */
    this.older = signal(null);
    /** @type {import("@preact/signals").Signal<"loading" | "idle" | "running" | "waiting" | "missing">} */
    this.state = signal("loading");
    this.isLost = signal(false);
    this.failure = signal("");
    this.outbox = outboxOf(id);
    // What is stored is told by the server.
    this.outbox.keep(this.outbox.unsent.value.filter(({ state }) => state !== "kept"));
    this.outbox.onKept = () => {
      this.#settle();
      this.nudge();
    };
    this.unsent = this.outbox.unsent;
    /** What waits for a person, by the id of the call or question. @type {import("@preact/signals").Signal<Map<string, any>>} */
    this.waiting = signal(new Map());
    this.closing = new AbortController();
    /** What is open to hear what happens. @type {AbortController | null} */
    this.stream = null;
    this.isListening = false;
    /** Whether another one is being made in its place. */
    this.isLeft = false;
    this.isAway = false;
    this.leaving = 0;
    this.seen = 0;
    this.frame = 0;
    this.wake = () => {};
    this.onBack = () => {
      clearTimeout(this.leaving);
      if (document.visibilityState === "visible") {
        this.isAway = false;
        this.nudge();
      } else {
        this.leaving = setTimeout(() => this.#leave(), LEAVE_AFTER_MS);
      }
    };
    window.addEventListener("online", this.onBack);
    document.addEventListener("visibilitychange", this.onBack);
    this.onBack();
    void this.#live();
  }

  close() {
    this.outbox.onKept = () => {};
    this.closing.abort();
    clearTimeout(this.leaving);
    this.wake();
    window.removeEventListener("online", this.onBack);
    document.removeEventListener("visibilitychange", this.onBack);
  }

  /** Looks again at once, where nothing runs that tells us. */
  nudge() {
    if (this.isListening) this.stream?.abort();
    this.wake();
  }

  /** Nobody looks: the connection is for those pages that somebody looks at, as browsers open six to a server, of all pages together. */
  #leave() {
    this.isAway = true;
    this.stream?.abort();
  }

  /** @returns {Turn | undefined} */
  get last() {
    return this.turns.value.at(-1);
  }

  async #live() {
    let wait_ms = 250;
    while (!this.closing.signal.aborted) {
      try {
        await this.refresh();
        this.isLost.value = false;
        await this.#hear();
        wait_ms = 250;
      } catch (error) {
        if (this.closing.signal.aborted) return;
        // Such as an id that no conversation may have. Who is let in later finds it.
        if (error instanceof Refused && !error.isPassing && ![401, 403].includes(error.status)) {
          this.state.value = "missing";
          if (this.unsent.value.length === 0) return;
        } else {
          this.isLost.value = true;
          this.failure.value = sentence(error);
        }
        await new Promise((resolve) => {
          this.wake = () => resolve(null);
          setTimeout(resolve, wait_ms);
        });
        wait_ms = Math.min(wait_ms * 2, MOST_WAIT_MS);
      }
    }
  }

  /** Waits until there is something to look at again; what runs is shown meanwhile. */
  async #hear() {
    if (this.isAway) {
      await new Promise((resolve) => {
        this.wake = () => resolve(null);
      });
      return;
    }
    const last = this.last;
    this.stream = new AbortController();
    const signal = AbortSignal.any([this.stream.signal, this.closing.signal]);
    this.isListening = last?.status !== "running";
    try {
      if (last?.status === "running") await this.#tell(last, signal);
      else await this.#listen(signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      this.isListening = false;
    }
  }

  /** Reads how the conversation stands. */
  async refresh() {
    const signal = this.closing.signal;
    /** @type {any} */
    let info;
    // What was asked for while a change was stored may be older.
    for (let at = -1; at !== this.changed; ) {
      at = this.changed;
      info = await call(this.path, { signal });
    }
    const known = this.turns.value;
    const limit = known.length === 0 ? FIRST_TURNS : 3;
    let page = await this.#page(`limit=${limit}`);
    if (known.length > 0 && page.has_more && !page.data.some((/** @type {any} */ turn) => known.some(({ id }) => id === turn.id))) {
      page = await this.#page(`limit=${FIRST_TURNS}`);
      known.length = 0;
    }
    // What was told of the conversation itself is older.
    const status = page.data.at(-1)?.status ?? "completed";
    const waits = status !== "completed" ? await waitsAt(`${this.path}/calls`, { signal }) : [];
    batch(() => {
      this.seen = info.last_seq ?? 0;
      this.told(info);
      if (known.length === 0) this.older.value = page.next_cursor;
      const first = page.data[0]?.id;
      const at = known.findIndex(({ id }) => id === first);
      const before = at < 0 ? known : known.slice(0, at);
      this.turns.value = [...before, ...page.data.map((/** @type {any} */ told) => this.#turn(told))];
      this.waiting.value = new Map(waits.map((/** @type {any} */ wait) => [wait.id, wait]));
      this.#settle();
      this.state.value = status === "running" ? "running" : status === "suspended" ? "waiting" : "idle";
    });
    this.page.onChange();
  }

  /** Some turns, with what their calls were called with as it is written. @param {string} which */
  #page(which) {
    return call(`${this.path}/turns?${which}`, { signal: this.closing.signal, isExact: true });
  }

  async loadOlder() {
    const cursor = this.older.value;
    if (!cursor) return;
    const page = await this.#page(`limit=${FIRST_TURNS}&cursor=${part(cursor)}`);
    batch(() => {
      this.turns.value = [...page.data.map((/** @type {any} */ told) => this.#turn(told)), ...this.turns.value];
      this.older.value = page.next_cursor;
    });
  }

  /**
   * @param {any} told
   * @returns {Turn}
   */
  #turn(told) {
    const known = this.turns.value.find(({ id }) => id === told.id);
    const message = emptyMessage();
    for (const chunk of told.chunks) take(message, chunk);
    // A turn that runs is told by its stream, which is further than what was asked for before.
    const isTold = told.status === "running" && known && known.message.parts.length >= message.parts.length;
    return {
      id: told.id, messageId: told.message_id, content: plain(told.content ?? null), createdAt: told.created_at, status: told.status,
      message: isTold ? known.message : message, rev: signal(0),
    };
  }

  /**
   * Follows the turn that runs until it ends or waits. What is shown does not go away while it is told again: a page of a
   * server would begin anew, and what somebody reads would jump.
   * @param {Turn} turn
   * @param {AbortSignal} signal
   */
  async #tell(turn, signal) {
    const message = emptyMessage();
    const shown = turn.message;
    const show = () => {
      turn.message = message;
      this.#draw(turn);
    };
    let late = 0;
    try {
      const ended = await follow(`api/v1${this.path}/stream`, (data) => {
        if (data === "[DONE]") return;
        const chunk = exact(data);
        if (message.parts.length === 0 && chunk.type === "start" && chunk.messageMetadata?.turnId !== turn.id) {
          throw new Refused(0, "Another turn began.");
        }
        take(message, chunk);
        // What was taken back while we were away never comes.
        late ||= setTimeout(show, CATCH_UP_MS);
        if (chunk.type === "tool-approval-request" && !chunk.isAutomatic) void this.#lookWhatWaits();
        if (turn.message === message || isAsFar(message, shown)) show();
      }, signal);
      if (ended === "ended" && !message.isOver) throw new Refused(0, "The connection to the server was lost.");
    } finally {
      clearTimeout(late);
    }
  }

  /** Why a call is asked about stands beside the call. */
  async #lookWhatWaits() {
    try {
      const waits = await waitsAt(`${this.path}/calls`, { signal: this.closing.signal });
      this.waiting.value = new Map(waits.map((/** @type {any} */ wait) => [wait.id, wait]));
    } catch {
      // It can be answered without, if later, and is asked for again where the turn parks.
    }
  }

  /**
   * Shows what came, once a picture.
   * @param {Turn} turn
   */
  #draw(turn) {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.#settle();
      turn.rev.value += 1;
    });
  }

  /**
   * Waits until something happens.
   * @param {AbortSignal} signal
   */
  async #listen(signal) {
    await follow(`api/v1${this.path}/events?after=${this.seen || ""}`, (_, id) => {
      if (Number(id) > this.seen) this.stream?.abort();
    }, signal);
  }

  get #shown() {
    return shownTo(this.info.value, this.page.byDefault(), /running|waiting/.test(this.state.value));
  }

  /**
   * Says something, with what is shown at this moment.
   * @param {string} text
   * @param {any} content
   * @param {any} own what this turn alone has otherwise, such as its model
   */
  send(text, content = text, own = {}) {
    const { model, system_prompt, settings, tools } = this.info.value ?? {};
    this.outbox.send(text, content, own, this.#shown, { model, system_prompt, settings, tools });
  }

  /** Drops what is shown from the journal. */
  #settle() {
    const unsent = this.unsent.value;
    if (unsent.every(({ messageId }) => messageId === "")) return;
    const shown = new Set(this.turns.value.flatMap((turn) => [
      turn.messageId, ...turn.message.parts.filter(({ kind }) => kind === "said").map(({ key }) => key),
    ]));
    const rest = unsent.filter(({ messageId }) => messageId === "" || !shown.has(messageId));
    if (rest.length < unsent.length) this.outbox.keep(rest);
  }

  async stop() {
    await call(`${this.path}/cancel`, { body: {} });
  }

  /** @param {string} [model] */
  async retry(model) {
    const { settings } = this.#shown;
    await this.outbox.changing;
    await call(`${this.path}/retry`, { body: { settings, ...(model && { model }) } });
    this.nudge();
  }

  /** @param {any} info a part of what the server has */
  told(info) {
    this.stored = { ...this.stored, ...info };
    this.info.value = this.changes.reduce(changed, this.stored);
  }

  /**
   * Chooses something, which is shown at once. One request follows another, and what is said next waits for them; what the server does not
   * take is not shown any more.
   * @param {any} change
   */
  async change(change) {
    const changing = this.outbox.changing.catch(() => {}).then(() => call(this.path, { method: "PATCH", body: change }));
    this.outbox.changing = changing;
    this.changes.push(change);
    this.told({});
    /** @type {any} */
    let info = {};
    try {
      info = await changing;
    } finally {
      this.changed += 1;
      this.changes.shift();
      if (this.changes.length === 0) this.outbox.changing = Promise.resolve();
      this.told(info);
    }
    this.page.onChange();
  }

  /**
   * @param {string} id of the call
   * @param {any} body
   */
  async decide(id, body) {
    const decided = await call(`${this.path}/calls/${part(id)}/decision`, { body });
    this.nudge();
    return decided;
  }

  /**
   * @param {string} id of the question
   * @param {any} body
   */
  async answer(id, body) {
    await call(`${this.path}/questions/${part(id)}/answer`, { body });
    this.nudge();
  }
}
