// One turn: when its steps and calls began and ended, and what it used.

import { useEffect, useState } from "preact/hooks";
import { call, part, sentence } from "../lib/api.js";
import { html } from "../lib/html.js";
import { follow } from "../lib/stream.js";
import { timeline } from "../lib/timeline.js";
import { time } from "./card.js";
import { MenuButton } from "./root.js";

/** @param {{id: string, turn: string}} props */
export function TurnPage({ id, turn }) {
  const [entries, know] = useState(/** @type {any[] | null} */ (null));
  const [title, name] = useState("");
  const [failure, fail] = useState("");
  useEffect(() => {
    const closing = new AbortController();
    read(id, Number(turn.replace("turn_", "")), closing.signal, name).then(know, (error) => !closing.signal.aborted && fail(sentence(error)));
    return () => closing.abort();
  }, [id, turn]);
  return html`<div class="screen">
    <header class="head"><${MenuButton} /><h1 class="title">A turn of <bdi>${title || "this conversation"}</bdi></h1><a class="button" href=${`#/c/${encodeURIComponent(id)}`}>Back to it</a></header>
    <div class="page wide-page">
      ${failure && html`<p class="failure" role="alert">${failure}</p>`}
      ${entries === null && !failure && html`<p class="faint">Reading…</p>`}
      ${entries?.length === 0 && html`<p class="faint">There is no such turn.</p>`}
      ${entries !== null && entries.length > 0 && html`<${Line} entries=${entries} />`}
    </div>
  </div>`;
}

/**
 * The entries of a turn, up to the next one.
 * @param {string} id
 * @param {number} first
 * @param {AbortSignal} signal
 * @param {(title: string) => void} name
 */
async function read(id, first, signal, name) {
  const { last_seq, title } = await call(`/conversations/${part(id)}`, { signal });
  name(title ?? "");
  /** @type {any[]} */
  const entries = [];
  if (!(first >= 1 && first <= last_seq)) return entries;
  const enough = new AbortController();
  signal.addEventListener("abort", () => enough.abort());
  let isOver = false;
  try {
    await follow(`api/v1/conversations/${part(id)}/events?after=${first - 1 || ""}`, (data) => {
      const event = JSON.parse(data);
      if (event.type !== "entry" || isOver) return;
      if (event.seq >= first) entries.push(event);
      isOver = event.seq >= last_seq || (event.seq >= first && event.entry.control?.ended !== undefined);
      if (isOver) enough.abort();
    }, enough.signal);
  } catch (error) {
    if (!isOver) throw error;
  }
  return entries;
}

/** @param {{entries: any[]}} props */
function Line({ entries }) {
  const { spans, from, until } = timeline(entries);
  const end = until ?? entries.at(-1)?.at_ms ?? from;
  const whole = Math.max(1, end - from);
  const at = (/** @type {number} */ moment) => `${(100 * Math.max(0, moment - from)) / whole}%`;
  const models = spans.filter(({ kind }) => kind === "model").reduce((sum, span) => sum + (span.until ?? end) - span.from, 0);
  const waits = spans.filter(({ kind }) => kind === "wait").reduce((sum, span) => sum + (span.until ?? end) - span.from, 0);
  /** @type {[string, string][]} */
  const figures = [["In all", until === null ? "not over" : time(end - from)], ["The model", time(models)], ["Waiting", time(waits)],
    ["Steps", String(spans.filter(({ kind }) => kind === "model").length)], ["Calls", String(spans.filter(({ kind }) => kind === "call").length)]];
  return html`<dl class="figures">${figures.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    <div class="table" tabindex="0" role="region" aria-label="Time line"><table class="timeline"><thead><tr><th scope="col">What</th><th scope="col">Began after</th><th scope="col">Took</th><th scope="col">When</th></tr></thead>
    <tbody>${spans.map((span) => html`<tr key=${span.key}><th scope="row"><span class=${`dot ${span.state}`} aria-hidden="true"></span> <bdi>${span.name}</bdi> <span class="faint">${span.about}</span></th>
      <td>${time(span.from - from) || "0 ms"}</td><td>${span.until === null ? "goes on" : time(span.until - span.from)}</td>
      <td class="track" aria-hidden="true"><span class=${`bar ${span.kind} ${span.state}`} style=${{ left: at(span.from), width: `max(3px, ${(100 * ((span.until ?? end) - span.from)) / whole}%)` }}></span></td></tr>`)}</tbody></table></div>`;
}
