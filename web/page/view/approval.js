// The question whether a call may run: what will happen, why it is asked, and the answers.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { call, part, sentence } from "../lib/api.js";
import { announce, tell, tellError } from "../lib/app.js";
import { pretty } from "../lib/exact.js";
import { html } from "../lib/html.js";
import { store, stored } from "../lib/kept.js";
import { Arguments, readArguments } from "./arguments.js";
import { isComposing } from "./composer.js";
import { unread } from "./form.js";
import { RuleEditor, ruleWords } from "./rule.js";
import { ChangedDefinition, WhatWillHappen } from "./what.js";

/** @type {Record<string, string>} */
const reasons = {
  approval: "Turnwright asks before this tool runs.",
  definition_changed: "The tool has changed since it was last allowed. Look at what it does now before you allow it.",
  unknown_outcome: "The call was interrupted, and nobody knows whether it happened. It is never run again by itself.",
  loop: "The model asked for the same again and again, and got the same. Allow lets it go on, deny tells it to try something else.",
  client_tool: "It runs at the program that offers it, whose answer is waited for.",
};

/** How long a question that has the focus by itself takes no key. */
const LOOK_MS = 500;
/** When the focus went on by itself. */
let moved_ms = -LOOK_MS;

/** @typedef {"asking" | "editing" | "denying" | "ruling"} Mode */

/** @param {string} place */
const reasonAt = (place) => `reason ${place}`;

/** Forgets what was written for a decision. @param {string} place */
export function forgetWritten(place) {
  store(place, null);
  store(reasonAt(place), null);
}

/**
 * @param {{name: string, title: string, server: string, text: string, wait: any, isKnown?: boolean, place?: string, decide: (body: any) => Promise<any>}} props
 * `text`: the arguments as they are sent; `isKnown`: whether `wait` is what the server told of the question; `place`: where changed arguments
 * and a reason are kept until they are decided about
 */
export function Approve({ name, title, server, text: sent, wait, isKnown = true, place = "", decide }) {
  const kept = useRef(stored(place, "")).current;
  const why = useRef(stored(reasonAt(place), "")).current;
  const [mode, turn] = useState(/** @type {Mode} */ (kept ? "editing" : why ? "denying" : "asking"));
  const [written, write] = useState(kept);
  const [reason, explain] = useState(why);
  const [failure, fail] = useState("");
  const [isSending, sending] = useState(false);
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const { always } = wait;
  const { text: read, problem } = readArguments(sent);
  const text = problem ? JSON.stringify({ arguments: sent }) : read;
  const canAllow = wait.reason === "approval" || wait.reason === "definition_changed" || wait.reason === "loop";
  // Before the next key comes: what is typed as a reason must never be taken for a decision.
  const isMet = useRef(false);
  useLayoutEffect(() => {
    // What was kept takes no focus.
    if (isMet.current && mode !== "asking") /** @type {HTMLElement | null | undefined} */ (box.current?.querySelector("input, textarea"))?.focus();
    isMet.current = true;
  }, [mode]);
  const send = async (/** @type {any} */ body) => {
    if (isSending) return;
    fail("");
    sending(true);
    const next = nextAfter(box.current);
    try {
      const answer = await decide({ ...body, approval_id: wait.approval_id });
      if (place) forgetWritten(place);
      if (answer?.remembered) toldRule(answer.remembered);
      if (next) {
        moved_ms = performance.now();
        next.focus();
      }
    } catch (error) {
      fail(sentence(error));
      announce(sentence(error));
    } finally {
      sending(false);
    }
  };
  const keep = (/** @type {string | null} */ text) => {
    if (place) store(place, text);
  };
  const giveReason = (/** @type {string} */ text) => {
    explain(text);
    if (place) store(reasonAt(place), text || null);
  };
  const allowChanged = () => {
    const { text, problem: wrong } = readArguments(written);
    const problem = unread(box.current) || wrong;
    if (problem) fail(problem);
    else void send({ decision: "allow", arguments: text });
  };
  const edit = () => {
    write(written || pretty(text));
    turn("editing");
  };
  const back = () => {
    fail("");
    turn("asking");
    box.current?.focus();
  };
  // By a key alone nothing that was written is lost.
  const leave = () => {
    if (mode === "denying") giveReason("");
    else {
      write("");
      keep(null);
    }
    back();
  };
  /** @type {Record<string, () => void>} */
  const keys = {
    ...(canAllow && { y: () => send({ decision: "allow" }), e: edit, n: () => turn("denying") }),
    ...(canAllow && always && {
      t: () => send({ decision: "allow", remember: "turn" }), c: () => send({ decision: "allow", remember: "conversation" }), a: () => turn("ruling"),
    }),
    ...(wait.reason !== "unknown_outcome" && { d: () => send({ decision: "deny" }) }),
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape" && mode !== "asking" && !isComposing(event)) {
      event.preventDefault();
      back();
      return;
    }
    const at = /** @type {HTMLElement} */ (event.target).tagName;
    const key = keys[event.key];
    if (mode !== "asking" || !key || /TEXTAREA|INPUT|SELECT/.test(at) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (isHidden(box.current)) return;
    // A key that is held decides about nothing more, and what came under the keys by itself is to be seen first.
    if (!event.repeat && performance.now() - moved_ms > LOOK_MS) key();
  };
  return html`<div class=${`approve${isKnown ? "" : " looking"}`} role="group" tabindex="-1" ref=${box} aria-label=${`Decision about ${title}`} onKeyDown=${onKey}>
    <p class="why">${reasons[wait.reason] ?? reasons.approval}
      ${" "}<span class="faint">${wait.rule ? html`Why: <code>${wait.rule}</code>.` : wait.note}</span></p>
    ${wait.reason === "definition_changed" && html`<${ChangedDefinition} name=${name} />`}
    ${mode === "editing" ? html`<${Arguments} name=${name} text=${written} failure=${failure} write=${(/** @type {string} */ text) => { fail(""); write(text); keep(text || null); }} />`
      : html`<${WhatWillHappen} name=${name} server=${server} text=${text} />`}
    ${failure && mode !== "editing" && html`<p class="failure" role="alert">${failure}</p>`}
    ${mode === "ruling" && always && html`<${RuleEditor} rule=${always} isSending=${isSending} back=${back}
      store=${(/** @type {string} */ decision, /** @type {any} */ remember) => send({ decision, remember })} />`}
    ${mode === "denying" && html`<form class="row deny" onSubmit=${(/** @type {Event} */ event) => {
      event.preventDefault();
      void send({ decision: "deny", ...(reason.trim() && { reason: reason.trim() }) });
    }}>
      <label>Why not, for the model<input type="text" dir="auto" value=${reason} maxlength="2000" onInput=${(/** @type {any} */ event) => giveReason(event.target.value)} /></label>
      <button class="main-action" disabled=${isSending}>Deny</button><button type="button" class="plain" onClick=${leave}>Back</button></form>`}
    ${mode === "editing" && html`<div class="row"><button class="main-action" disabled=${isSending} onClick=${allowChanged}>Allow as changed</button>
      <button class="plain" onClick=${leave}>Leave as it was</button></div>`}
    ${mode === "asking" && html`<${Choices} wait=${wait} isSending=${isSending} send=${send} edit=${edit} turn=${turn} canAllow=${canAllow} />`}
  </div>`;
}

/** @param {{wait: any, isSending: boolean, canAllow: boolean, send: (body: any) => Promise<void>, edit: () => void, turn: (mode: Mode) => void}} props */
function Choices({ wait, isSending, canAllow, send, edit, turn }) {
  const choice = (/** @type {string} */ words, /** @type {any} */ body, kind = "", key = "") =>
    html`<button class=${kind} disabled=${isSending} onClick=${() => send(body)} aria-keyshortcuts=${key || undefined}>${words}${key && html` <kbd aria-hidden="true">${key}</kbd>`}</button>`;
  if (wait.reason === "unknown_outcome") {
    return html`<div class="row">${choice("It happened", { decision: "happened" }, "main-action")}
      ${choice("Run it again", { decision: "run_again" })}${choice("Leave it out", { decision: "skip" })}</div>`;
  }
  if (!canAllow) return html`<div class="row">${choice("Deny", { decision: "deny" }, "", "d")}</div>`;
  return html`<div class="row">
      ${choice("Allow once", { decision: "allow" }, "main-action", "y")}
      ${choice("Deny", { decision: "deny" }, "", "d")}
      <button class="plain" onClick=${() => turn("denying")} aria-keyshortcuts="n">Deny with a reason <kbd aria-hidden="true">n</kbd></button>
      <button class="plain" onClick=${edit} aria-keyshortcuts="e">Edit arguments <kbd aria-hidden="true">e</kbd></button>
    </div>
    ${wait.always && html`<div class="row remember"><span class="faint">Do not ask again:</span>
      ${choice("in this turn", { decision: "allow", remember: "turn" }, "", "t")}
      ${choice("in this conversation", { decision: "allow", remember: "conversation" }, "", "c")}
      <button onClick=${() => turn("ruling")} aria-keyshortcuts="a">always… <kbd aria-hidden="true">a</kbd></button>
      <span class="faint rule-line">stores <code>${ruleWords(wait.always)}</code></span></div>`}`;
}

/** Whether the answers are not there yet: they never move while somebody goes for one of them. @param {Element | null} box */
function isHidden(box) {
  const row = box?.querySelector(".row");
  return row ? getComputedStyle(row).visibility === "hidden" : false;
}

/** What is to have the focus once this question is gone. @param {HTMLElement | null} box @returns {HTMLElement | null} */
function nextAfter(box) {
  if (!box?.contains(document.activeElement)) return null;
  const all = [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".approve, .question.asking"))];
  return all.find((other) => other !== box) ?? document.querySelector(".composer textarea") ?? document.getElementById("main");
}

/** @param {any} rule */
function toldRule(rule) {
  const undo = () => void call(`/approvals/rules/${part(rule.id)}`, { method: "DELETE" }).then(() => announce("Forgotten"), tellError);
  tell(`Stored: ${ruleWords(rule)}`, undo, 10_000);
}
