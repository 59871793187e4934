// Written text: Markdown in blocks, code with colours and a way to copy it.

import { Component } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { announce } from "../lib/app.js";
import { html } from "../lib/html.js";
import { grow, growing, visible } from "../lib/markdown.js";
import { Icon } from "./icon.js";

/** A text that took longer than this to show is shown less often while it grows. */
const SLOW_MS = 8;

/** A text that may still grow. Blocks that are settled are not looked at again. */
export class Markdown extends Component {
  constructor() {
    super();
    this.reading = growing();
    this.restUntil = 0;
    this.timer = 0;
  }

  /** @param {any} next */
  shouldComponentUpdate(next) {
    const now = performance.now();
    const last = /** @type {any} */ (this.props);
    if (next.text === last.text && next.isDone === last.isDone) return false;
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
  }

  render() {
    const { text, isDone } = /** @type {any} */ (this.props);
    if (!text.startsWith(this.reading.text)) this.reading = growing();
    const begun = performance.now();
    grow(this.reading, text, isDone);
    const took = performance.now() - begun;
    this.restUntil = took > SLOW_MS ? begun + took * 8 : 0;
    const { settled, tail } = this.reading;
    return html`<div class="md">
      ${settled.map((block, at) => html`<${Block} key=${at} block=${block} isDone=${true} />`)}
      ${tail.map((block, at) => html`<${Block} key=${settled.length + at} block=${block} isDone=${isDone} />`)}
    </div>`;
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
    return html`<div class="block" dangerouslySetInnerHTML=${{ __html: block.html }}></div>`;
  }
}

/** @type {Promise<typeof import("../lib/highlight.js")> | null} */
let highlighter = null;
/** What is to be coloured when there is time. @type {(() => void)[]} */
const jobs = [];
/** So long is worked in one go. */
const SLICE_MS = 8;

/** Does what is to be done in slices, so that nothing stands still for it. */
function work() {
  const begun = performance.now();
  while (jobs.length > 0 && performance.now() - begun < SLICE_MS) jobs.shift()?.();
  if (jobs.length > 0) setTimeout(work);
}

/** @param {{code: string, language: string, isDone: boolean, label?: string}} props */
export function Code({ code, language, isDone, label = "" }) {
  const [colours, colour] = useState(/** @type {string | null} */ (null));
  useEffect(() => {
    if (!isDone || language === "") return undefined;
    let isCurrent = true;
    highlighter ??= import("../lib/highlight.js");
    highlighter.then(({ coloured }) => {
      jobs.push(() => {
        if (isCurrent) colour(coloured(visible(code), language));
      });
      if (jobs.length === 1) setTimeout(work);
    }).catch(() => (highlighter = null));
    return () => {
      isCurrent = false;
    };
  }, [code, language, isDone]);
  const shown = useMemo(() => visible(code), [code]);
  return html`<div class="code">
    <div class="code-head"><span>${visible(label || language || "text")}</span><${Copy} text=${code} what="code" /></div>
    <pre tabindex="0" aria-label=${label || `Code, ${language || "text"}`}>${colours !== null && isDone
      ? html`<code dangerouslySetInnerHTML=${{ __html: colours }}></code>` : html`<code>${shown}</code>`}</pre>
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
