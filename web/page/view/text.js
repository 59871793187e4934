// Written text: Markdown in blocks, code with colours and a way to copy it.

import { Component } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { announce } from "../lib/app.js";
import { html } from "../lib/html.js";
import { grow, growing } from "../lib/markdown.js";
import { visible } from "../lib/visible.js";
import { Icon } from "./icon.js";

/** So long is read in one picture; what is left is read in the next. */
const SLICE_MS = 6;
/** A text that took longer than this to show is shown less often while it grows. */
const SLOW_MS = 12;

/** A text that may still grow. Blocks that are settled are not looked at again. */
export class Markdown extends Component {
  constructor() {
    super();
    this.reading = growing();
    this.restUntil = 0;
    this.timer = 0;
    this.frame = 0;
  }

  /** @param {any} next */
  shouldComponentUpdate(next) {
    const now = performance.now();
    const last = /** @type {any} */ (this.props);
    if (next.text === last.text && next.isDone === last.isDone) return false;
    // It is read on in the next picture in any case.
    if (this.frame !== 0) return false;
    if (next.isDone || now >= this.restUntil) return true;
    if (this.timer === 0) {
      this.timer = setTimeout(() => {
        this.timer = 0;
        this.forceUpdate();
      }, this.restUntil - now);
    }
    return false;
  }

  componentWillUnmount() {
    clearTimeout(this.timer);
    cancelAnimationFrame(this.frame);
  }

  render() {
    const { text, isDone } = /** @type {any} */ (this.props);
    if (!text.startsWith(this.reading.text)) this.reading = growing();
    const begun = performance.now();
    grow(this.reading, text, isDone, begun + SLICE_MS);
    const took = performance.now() - begun;
    const { chunks, tail, isBehind } = this.reading;
    this.restUntil = took > SLOW_MS ? begun + took * 6 : 0;
    if (isBehind && this.frame === 0) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.forceUpdate();
      });
    }
    return html`<div class="md">
      ${chunks.map((blocks, at) => html`<${Chunk} key=${at} blocks=${blocks} />`)}
      ${tail.length > 0 && html`<div class="chunk growing" key="tail">${tail.map((block, at) => html`<${Block} key=${at} block=${block} isDone=${isDone && !isBehind} />`)}</div>`}
    </div>`;
  }
}

/** Settled blocks, which are laid out where they are seen. */
class Chunk extends Component {
  /** @param {any} next */
  shouldComponentUpdate(next) {
    return next.blocks !== /** @type {any} */ (this.props).blocks;
  }

  render() {
    const { blocks } = /** @type {any} */ (this.props);
    return html`<div class="chunk">${blocks.map((/** @type {any} */ block, /** @type {number} */ at) => html`<${Block} key=${at} block=${block} isDone=${true} />`)}</div>`;
  }
}

class Block extends Component {
  /** @param {any} next */
  shouldComponentUpdate(next) {
    const last = /** @type {any} */ (this.props);
    return next.block !== last.block || next.isDone !== last.isDone;
  }

  render() {
    const { block, isDone } = /** @type {any} */ (this.props);
    if (block.kind === "code") return html`<${Code} code=${block.code} language=${block.language} isDone=${isDone} />`;
    return html`<div class="block" dir="auto" dangerouslySetInnerHTML=${{ __html: block.html }}></div>`;
  }
}

/** @type {Promise<typeof import("../lib/highlight.js")> | null} */
let highlighter = null;
/** What is to be coloured when there is time. @type {(() => void)[]} */
const jobs = [];

/** Does what is to be done in slices, so that nothing stands still for it. */
function work() {
  const begun = performance.now();
  while (jobs.length > 0 && performance.now() - begun < SLICE_MS) jobs.shift()?.();
  if (jobs.length > 0) setTimeout(work, 8);
}

/** What is told when it comes near to where it is seen. @type {WeakMap<Element, () => void>} */
const awaited = new WeakMap();
const near = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) awaited.get(entry.target)?.();
}, { rootMargin: "300px" });

/** @param {{code: string, language: string, isDone: boolean, label?: string}} props */
export function Code({ code, language, isDone, label = "" }) {
  const [colours, colour] = useState(/** @type {string | null} */ (null));
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  useEffect(() => {
    const { current } = box;
    if (!isDone || language === "" || !current) return undefined;
    let isCurrent = true;
    awaited.set(current, () => {
      near.unobserve(current);
      highlighter ??= import("../lib/highlight.js");
      highlighter.then(({ coloured }) => {
        jobs.push(() => {
          if (isCurrent) colour(coloured(visible(code), language));
        });
        if (jobs.length === 1) setTimeout(work);
      }).catch(() => (highlighter = null));
    });
    near.observe(current);
    return () => {
      isCurrent = false;
      near.unobserve(current);
    };
  }, [code, language, isDone]);
  return html`<div class="code" dir="ltr" ref=${box}>
    <div class="code-head"><span>${label || language || "text"}</span><${Copy} text=${code} what="code" /></div>
    <pre tabindex="0" aria-label=${label || `Code, ${language || "text"}`}>${colours !== null && isDone
      ? html`<code dangerouslySetInnerHTML=${{ __html: colours }}></code>` : html`<code>${code}</code>`}</pre>
  </div>`;
}

/** @param {{text: string, what: string, words?: string}} props */
export function Copy({ text, what, words = "Copy" }) {
  const [isCopied, copied] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      copied(true);
      announce(`Copied ${what}`);
      setTimeout(() => copied(false), 1_500);
    } catch {
      announce("The browser does not let this page copy");
    }
  };
  return html`<button class="plain small" type="button" aria-label=${`${words} ${what}`} onClick=${copy}>
    <${Icon} name="copy" />${isCopied ? "Copied" : words}</button>`;
}
