// A turn: what a person said, and what came of it in the order in which it came.

import { Component } from "preact";
import { useRef, useState } from "preact/hooks";
import { models, tellError } from "../lib/app.js";
import { branch } from "../lib/branch.js";
import { html } from "../lib/html.js";
import { store, stored } from "../lib/kept.js";
import { CallCard } from "./card.js";
import { isComposing } from "./composer.js";
import { Question } from "./form.js";
import { Icon } from "./icon.js";
import { Blocks } from "./result.js";
import { Copy, Markdown } from "./text.js";

/** @typedef {import("../lib/conversation.js").Turn} Turn */

/** @param {{turn: Turn, conversation: import("../lib/conversation.js").OpenConversation, isLast: boolean}} props */
export function TurnView({ turn, conversation, isLast }) {
  // Looked at so that this is drawn again with each picture.
  void turn.rev.value;
  const { message } = turn;
  const isRunning = turn.status === "running" && !message.isOver;
  const groups = grouped(message.parts);
  return html`<div class="turn">
    ${turn.content && html`<${Asked} turn=${turn} conversation=${conversation} />`}
    <div class="answer" aria-busy=${isRunning}>
      ${groups.flatMap((group) => group[0]?.kind === "call" ? html`<${Calls} key=${group[0].key} parts=${group} revs=${revs(group)}
          conversation=${conversation} isOpen=${isLast} />`
        : group.map((part) => html`<${PartView} key=${part.key} part=${part} rev=${part.rev} conversation=${conversation} isOpen=${isLast}
            isHeld=${part.kind === "said" && (isRunning || turn.status === "suspended") && isLast && isNewest(message, part)} />`))}
      ${isRunning && !isSpeaking(message) && html`<p class="thinking" aria-label="Working"><span></span><span></span><span></span></p>`}
      <${End} turn=${turn} conversation=${conversation} isLast=${isLast} />
    </div>
  </div>`;
}

/** @param {import("../lib/message.js").Message} message */
function isSpeaking(message) {
  const last = message.parts.at(-1);
  return (last?.kind === "text" && !last.isDone) || (last?.kind === "call" && last.state === "asking")
    || message.parts.some((part) => part.kind === "question" && part.data.state === "open");
}

/**
 * Whether the model has not spoken since.
 * @param {import("../lib/message.js").Message} message
 * @param {import("../lib/message.js").Part} part
 */
const isNewest = ({ parts }, part) => parts.slice(parts.indexOf(part) + 1).every(({ kind }) => kind === "said");

/** @param {import("../lib/message.js").Part[]} parts */
const revs = (parts) => parts.reduce((sum, part) => sum + part.rev, 0);

/**
 * Calls that follow one another stand together.
 * @param {import("../lib/message.js").Part[]} parts
 * @returns {import("../lib/message.js").Part[][]}
 */
function grouped(parts) {
  /** @type {import("../lib/message.js").Part[][]} */
  const groups = [];
  let isStepNew = false;
  for (const part of parts) {
    if (part.kind === "step") {
      isStepNew = true;
      continue;
    }
    const last = groups.at(-1);
    if (part.kind === "call" && last?.[0]?.kind === "call" && !isStepNew) last.push(part);
    else groups.push([part]);
    isStepNew = false;
  }
  return groups;
}

class PartView extends Component {
  /** @param {any} next */
  shouldComponentUpdate(next) {
    const last = /** @type {any} */ (this.props);
    return next.part !== last.part || next.rev !== last.rev || next.isHeld !== last.isHeld || next.isOpen !== last.isOpen || next.part.kind === "question";
  }

  render() {
    const { part, conversation, isOpen, isHeld } = /** @type {any} */ (this.props);
    switch (part.kind) {
      case "text":
        return html`<${Markdown} text=${part.text} isDone=${part.isDone} />`;
      case "reasoning":
        return html`<details class="reasoning"><summary><${Icon} name="chevron" />${part.isDone ? "Reasoning" : "Thinking…"}</summary>
          <${Markdown} text=${part.text} isDone=${part.isDone} /></details>`;
      case "question":
        return html`<${Question} id=${part.key} conversation=${conversation.id} question=${part.data} answer=${(/** @type {any} */ body) => conversation.answer(part.key, body)}
          isOpen=${isOpen && part.data.state === "open"} />`;
      case "said":
        return html`<${Said} content=${part.content}>${isHeld && html`<p class="faint small-text">Held until the turn goes on.</p>`}<//>`;
      case "file":
        return html`<${Blocks} content=${[part.block]} isPlain=${true} />`;
      case "context":
        return html`<details class="reasoning"><summary><${Icon} name="chevron" />${sources(part.parts)}</summary>
          <ul>${part.parts.map((/** @type {any} */ source, /** @type {number} */ index) => html`<li key=${index}>${place(source)}</li>`)}</ul></details>`;
      case "notice":
        return html`<p class=${`notice ${part.level}`}>${part.text}</p>`;
      default:
        return null;
    }
  }
}

/** The calls of a step. What is begun in one, as an app, goes on when another comes. */
class Calls extends Component {
  /** @param {any} next */
  shouldComponentUpdate(next) {
    const last = /** @type {any} */ (this.props);
    return next.revs !== last.revs || next.isOpen !== last.isOpen || next.parts.length !== last.parts.length
      || next.parts.some((/** @type {any} */ part, /** @type {number} */ at) => part !== last.parts[at]);
  }

  render() {
    const { parts, conversation, isOpen } = /** @type {{parts: import("../lib/message.js").CallPart[], conversation: any, isOpen: boolean}} */ (/** @type {any} */ (this.props));
    const over = parts.filter(({ state }) => ["done", "failed", "denied", "unrun"].includes(state)).length;
    const several = parts.length > 1 && { class: "calls", role: "group", "aria-label": `${parts.length} tool calls` };
    return html`<div ...${several}>
      ${several && html`<p class="calls-head">${parts.length} calls at once${over < parts.length ? `, ${over} over` : ""}</p>`}
      ${parts.map((part) => html`<${CallCard} key=${part.key} part=${part} rev=${part.rev} conversation=${conversation} isOpen=${isOpen} />`)}
    </div>`;
  }
}

/** What a person said, which can be said otherwise in a branch: kept over a reload until it is. @param {{turn: Turn, conversation: any}} props */
function Asked({ turn, conversation }) {
  const place = `edited ${conversation.id} ${turn.messageId}`;
  const [text, set] = useState(/** @type {string | null} */ (stored(place, null)));
  const wasKept = useRef(text !== null);
  const content = turn.content ?? [];
  const words = content.filter((block) => block.type === "text").map((block) => block.text).join("\n");
  const rest = content.filter((block) => block.type !== "text");
  const write = (/** @type {string | null} */ next) => {
    wasKept.current = false;
    set(next);
    store(place, next === words ? null : next);
  };
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!text?.trim()) return;
    try {
      await branch(conversation, turn.messageId, rest.length === 0 ? text : [{ type: "text", text }, ...rest], null);
      write(null);
    } catch (error) {
      tellError(error);
    }
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    if (isComposing(event)) return;
    if (event.key === "Escape") write(null);
    else if (event.key === "Enter" && !event.shiftKey) void send(event);
  };
  if (text !== null) {
    return html`<form class="said editing" onSubmit=${send}>
      <textarea aria-label="Your message, changed" dir="auto" rows=${Math.min(12, text.split("\n").length + 1)} value=${text} onKeyDown=${onKey}
        ref=${(/** @type {any} */ box) => box && !wasKept.current && box !== document.activeElement && !box.dataset.met && (box.dataset.met = "1", box.focus())}
        onInput=${(/** @type {any} */ event) => write(event.target.value)}></textarea>
      <div class="row end"><span class="faint small-text">A branch; what was said stays.</span><button type="button" onClick=${() => write(null)}>Cancel</button><button class="main-action">Send in a branch</button></div></form>`;
  }
  return html`<${Said} content=${content}><div class="said-actions"><${Copy} text=${words} what="message" />
    <button class="plain small" onClick=${() => write(words)}><${Icon} name="edit" />Edit</button></div><//>`;
}

/** @param {{content: any[], children?: any}} props */
export function Said({ content, children = null }) {
  return html`<div class="said"><h2 class="unseen">You said</h2><div class="bubble"><${Blocks} content=${content} isPlain=${true} /></div>${children}</div>`;
}

/** How a turn ended, and ways on. @param {{turn: Turn, conversation: any, isLast: boolean}} props */
function End({ turn, conversation, isLast }) {
  const { message, status } = turn;
  const text = message.parts.filter((part) => part.kind === "text").map((part) => /** @type {any} */ (part).text).join("\n\n");
  const isEnded = status !== "running" && status !== "suspended";
  const other = models.value?.map(({ id }) => id).filter((id) => id !== message.model) ?? [];
  const retry = (/** @type {string} */ model) => conversation.retry(model).catch(tellError);
  const again = (/** @type {string} */ model) => {
    // What joined the turn was said, too.
    const said = message.parts.flatMap((part) => (part.kind === "said" ? part.content : []));
    branch(conversation, turn.messageId, [...(turn.content ?? []), ...said], model).catch(tellError);
  };
  const canRetry = isLast && isEnded && status !== "completed";
  return html`
    ${message.errorText && status !== "running" && html`<div class="failure" role="alert"><strong>The turn failed.</strong>
      <p>${message.errorText}</p></div>`}
    ${status === "cancelled" && html`<p class="notice">Stopped.</p>`}
    ${status === "completed" && isSilent(message) && html`<p class="notice">The answer is empty.</p>`}
    ${message.finish === "length" && html`<p class="notice">The answer ends here: the model's limit for one answer is reached.</p>`}
    ${message.finish === "content-filter" && html`<p class="notice">The provider's content filter ended the answer.</p>`}
    ${canRetry && html`<div class="row"><button onClick=${() => retry("")}><${Icon} name="retry" />Try again</button>
      ${other.length > 0 && html`<${Models} label="Try again with another model" all=${other} choose=${retry} />`}
      <span class="faint small-text">The same turn: what ran stays.</span></div>`}
    ${isEnded && (text !== "" || status === "completed") && html`<div class="foot"><${Copy} text=${text} what="answer" />
      ${turn.content && html`<${Models} label="Answer again in a branch" all=${[message.model, ...other].filter(Boolean)} choose=${again} />`}
      <a class="plain-link" href=${`#/c/${encodeURIComponent(conversation.id)}/${turn.id}`}><${Icon} name="clock" />Time line</a>
      <span class="faint">${[message.model, tokens(message.usage)].filter(Boolean).join(" · ")}</span></div>`}`;
}

/**
 * Models to choose from, which are put in once somebody turns to the list: there may be hundreds, below each answer.
 * @param {{label: string, all: string[], choose: (model: string) => void}} props
 */
function Models({ label, all, choose }) {
  const [isMet, meet] = useState(false);
  const met = () => meet(true);
  const onChange = (/** @type {any} */ { target }) => {
    choose(target.value);
    target.value = "";
  };
  return html`<select aria-label=${label} value="" onPointerDown=${met} onFocus=${met} onChange=${onChange}><option value="">${label}…</option>
    ${isMet && all.map((model) => html`<option value=${model}>with ${model}</option>`)}</select>`;
}

/** Whether nothing is said where an answer ends. @param {import("../lib/message.js").Message} message */
function isSilent({ parts }) {
  const last = parts.findLast(({ kind }) => ["text", "call", "file"].includes(kind));
  return last?.kind !== "file" && (last?.kind !== "text" || last.text.trim() === "");
}

/** @param {any} usage */
function tokens(usage) {
  if (!usage || usage.inputTokens === undefined) return "";
  const cost = usage.costUsd === undefined ? "" : ` · $${usage.costUsd.toFixed(4)}`;
  return `${usage.inputTokens.toLocaleString("en")} in, ${(usage.outputTokens ?? 0).toLocaleString("en")} out${cost}`;
}

/** How many places there are. @param {any[]} parts */
function sources(parts) {
  return parts.length === 1 ? "1 source" : `${parts.length} sources`;
}

/** Where a part of the context comes from, as people write it. @param {any} part */
function place(part) {
  const [unit, range] = Object.entries(part.place ?? {})[0] ?? [];
  const name = part.kind === "knowledge" ? `${part.source}: ${part.document}` : part.document;
  if (!unit) return part.version ? name : `${name} (gone)`;
  const where = range.first === range.last ? `${unit.replace(/s$/, "")} ${range.first}` : `${unit} ${range.first}-${range.last}`;
  return `${name}, ${where}`;
}
