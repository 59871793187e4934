// A tool call as a card: one line while closed, everything while open.

import { useEffect } from "preact/hooks";
import { written } from "../lib/exact.js";
import { html } from "../lib/html.js";
import { Approve, forgetWritten } from "./approval.js";
import { suggest } from "./composer.js";
import { Icon } from "./icon.js";
import { McpApp } from "./mcp-app.js";
import { Result } from "./result.js";
import { Code, Copy } from "./text.js";
import { quoted } from "./what.js";

/** @typedef {import("../lib/message.js").CallPart} CallPart */

/** @type {Record<string, [string, string]>} the word and the colour of a state */
const words = {
  writing: ["being written", "busy"],
  ready: ["running", "busy"],
  asking: ["waits for you", "asking"],
  decided: ["running", "busy"],
  done: ["done", "good"],
  failed: ["failed", "bad"],
  denied: ["denied", "still"],
  unrun: ["did not run", "still"],
};

/** @param {{part: CallPart, rev: number, conversation: import("../lib/conversation.js").OpenConversation, isOpen: boolean}} props */
export function CallCard({ part, conversation, isOpen }) {
  const [word, colour] = state(part, isOpen);
  const isAsking = part.state === "asking" && isOpen;
  const name = part.title || part.tool || part.name;
  const place = `arguments ${conversation.id} ${part.key}`;
  const wait = conversation.waiting.value.get(part.key);
  const isDecided = part.state !== "asking";
  useEffect(() => {
    if (isDecided) forgetWritten(place);
  }, [isDecided]);
  return html`<div class=${`card ${colour}`}>
    <details open=${isAsking}>
      <summary>
        <${Icon} name="chevron" />
        <span class=${`dot ${colour}`} aria-hidden="true"></span>
        <span class="word">${word}</span>
        <bdi class="tool">${name}</bdi>
        <bdi class="server">${part.server || part.name.split("__")[0] || ""}</bdi>
        <bdi class="short">${part.changed && html`<em>changed:</em> `}${short(part)}</bdi>
        <span class="time">${time(part.durationMs)}</span>
      </summary>
      <div class="card-body">
        ${!isAsking && html`<${Arguments} part=${part} />`}
        ${part.progress && html`<${ProgressBar} progress=${part.progress} />`}
        ${part.output && html`<${Result} output=${part.output} isError=${part.state === "failed"} />`}
        ${part.errorText && html`<p class="failure">${part.errorText}</p>`}
        ${part.approval && !isAsking && html`<p class="faint">${decided(part)}</p>`}
        ${part.input !== undefined && !isAsking && html`<div class="row"><${Copy} text=${asCommand(part)} what="call as a command" words="Copy as command" />
          ${part.state === "failed" && isOpen && html`<button type="button" class="plain small" onClick=${() => suggest(`Call ${part.name} again with ${JSON.stringify(ran(part))}`)}><${Icon} name="retry" />Ask for it again</button>`}</div>`}
      </div>
    </details>
    ${part.progress && html`<div class="closed-only"><${ProgressBar} progress=${part.progress} /></div>`}
    <${McpApp} part=${part} rev=${part.rev} conversation=${conversation} isOpen=${isOpen} />
    ${isAsking && html`<${Approve} name=${part.name} title=${name} server=${part.server} text=${wait?.arguments ?? JSON.stringify(part.input ?? {})} place=${place}
      isKnown=${wait !== undefined} wait=${wait ?? { reason: "approval", rule: null, note: part.approval?.reason, approval_id: part.approval?.id }}
      decide=${(/** @type {any} */ body) => conversation.decide(part.key, body)} />`}
  </div>`;
}

/**
 * @param {CallPart} part
 * @param {boolean} isOpen whether its turn is the newest
 */
function state(part, isOpen) {
  if (part.state === "decided" && part.approval?.isApproved === false) return ["denied", "still"];
  if (part.state === "asking" && !isOpen) return ["not decided", "still"];
  return words[part.state] ?? [part.state, "still"];
}

/** @param {CallPart} part */
function decided({ approval, changed }) {
  if (!approval || approval.isApproved === null) return "";
  if (approval.isAutomatic) {
    const why = approval.reason || (approval.isApproved ? "allowed by a rule" : "denied by a rule");
    return `${why.charAt(0).toUpperCase()}${why.slice(1)}.`;
  }
  const why = approval.answerReason ? `: ${approval.answerReason}` : "";
  return `${approval.isApproved ? "Allowed by a person" : "Denied by a person"}${changed ? ", with changed arguments" : ""}${why}.`;
}

/** @param {{part: CallPart}} props */
function Arguments({ part }) {
  const text = part.input === undefined ? part.inputText : JSON.stringify(part.input, null, 2);
  if (part.changed) {
    return html`<p>Changed by a person:</p><${Code} code=${JSON.stringify(part.changed, null, 2)} language="json" label="Arguments" isDone=${true} />
      <details class="reasoning"><summary><${Icon} name="chevron" />What the model asked for</summary><${Code} code=${text} language="json" label="Arguments of the model" isDone=${true} /></details>`;
  }
  if (text === "{}" || text === "") return null;
  return html`<${Code} code=${text} language="json" label="Arguments" isDone=${part.input !== undefined} />`;
}

/** @param {{progress: {progress: number, total: number | null, message: string}}} props */
function ProgressBar({ progress: { progress, total, message } }) {
  const label = message || "Progress";
  return html`<div class="progress"><progress aria-label=${label} ...${total === null ? {} : { value: progress, max: total }}></progress>
    <span>${label}${total === null ? "" : ` ${Math.round((100 * progress) / total)} %`}</span></div>`;
}

/** The arguments that count. @param {CallPart} part */
const ran = (part) => part.changed ?? part.input;

/** The argument that says most, in one line. @param {CallPart} part */
function short(part) {
  if (part.input === undefined) return part.inputText.slice(-80);
  const first = Object.values(ran(part) ?? {}).map(written).find((value) => typeof value === "string" || typeof value === "number");
  return String(first ?? "").replace(/\s+/g, " ").slice(0, 120);
}

/** @param {number | null} duration_ms */
export function time(duration_ms) {
  if (duration_ms === null) return "";
  if (duration_ms < 1_000) return `${duration_ms} ms`;
  if (duration_ms < 60_000) return `${(duration_ms / 1_000).toFixed(1)} s`;
  return `${Math.floor(duration_ms / 60_000)} min ${Math.round((duration_ms % 60_000) / 1_000)} s`;
}

/** @param {CallPart} part */
function asCommand(part) {
  return ["turnwright", "tools", "call", part.name, "--arguments", JSON.stringify(ran(part))].map(quoted).join(" ");
}
