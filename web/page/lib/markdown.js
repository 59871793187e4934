// Markdown as blocks: while a text grows, only its last block is read and made again, and never more of it than there is time for.

import DOMPurify from "dompurify";
import { Lexer, Parser, Renderer } from "marked";
import remend from "remend";
import { formulas, withoutFormulas } from "./formula.js";
import { visible } from "./visible.js";

/**
 * @typedef {{kind: "html", html: string} | {kind: "code", code: string, language: string}} Block
 * @typedef {{text: string, settledTo: number, chunks: Block[][], tail: Block[], links: any, isBehind: boolean}} Growing
 *   `chunks` are settled; `isBehind` where more was written than is read
 */

/** So many blocks stand together. */
const CHUNK_BLOCKS = 12;
/** So much is read in one go. */
const SLICE_CHARACTERS = 4_096;

/** @returns {Growing} */
export function growing() {
  return { text: "", settledTo: 0, chunks: [], tail: [], links: Object.create(null), isBehind: false };
}

/**
 * Reads the text as far as it has come, and as far as there is time.
 * @param {Growing} state
 * @param {string} text begins with what it was before
 * @param {boolean} isDone whether nothing more comes
 * @param {number} [until] when it is to end, on the clock of `performance`; at least one slice is read
 */
export function grow(state, text, isDone, until = Infinity) {
  state.text = text;
  let size = SLICE_CHARACTERS;
  do {
    const before = state.settledTo;
    const rest = text.slice(before);
    const isWhole = rest.length <= size;
    read(state, text, isWhole ? rest : rest.slice(0, size), isDone && isWhole, isWhole);
    state.isBehind = !isWhole;
    // A block that is longer than the slice is read whole.
    size = state.settledTo === before ? size * 4 : SLICE_CHARACTERS;
  } while (state.isBehind && (size > SLICE_CHARACTERS || performance.now() < until));
}

/**
 * @param {Growing} state
 * @param {string} text
 * @param {string} slice what comes after what is settled
 * @param {boolean} isDone
 * @param {boolean} isWhole whether the slice goes to the end of the text
 */
function read(state, text, slice, isDone, isWhole) {
  const lexer = new Lexer(/** @type {any} */ ({ gfm: true, breaks: true, extensions: formulas, hooks: { emStrongMask: withoutFormulas } }));
  lexer.tokens.links = state.links;
  const tokens = lexer.lex(isDone || !isWhole || slice.includes("\r") ? slice : remend(slice));
  const last = isDone ? tokens.length : tokens.findLastIndex((token) => token.type !== "space");
  let settled = 0;
  for (; settled < last; settled += 1) {
    const token = tokens[settled];
    if (!token) break;
    // A block that reads otherwise than it is written must stay where its beginning is known.
    if (!isDone && text.slice(state.settledTo, state.settledTo + token.raw.length) !== token.raw) break;
    state.settledTo += token.raw.length;
  }
  for (const block of blocksOf(tokens.slice(0, settled))) {
    const chunk = state.chunks.at(-1);
    if (!chunk || chunk.length >= CHUNK_BLOCKS) state.chunks.push([block]);
    // A new list tells that it is another one.
    else state.chunks[state.chunks.length - 1] = [...chunk, block];
  }
  state.tail = blocksOf(tokens.slice(settled));
}

/**
 * Blocks of tokens; what is no code stands together, so that it is cleaned in one go.
 * @param {any[]} tokens
 * @returns {Block[]}
 */
function blocksOf(tokens) {
  /** @type {Block[]} */
  const blocks = [];
  /** @type {any[]} */
  let words = [];
  const flush = () => {
    if (words.length > 0) blocks.push({ kind: "html", html: clean(Parser.parse(words, { renderer, extensions: formulas })) });
    words = [];
  };
  for (const token of tokens) {
    if (token.type === "space" || token.type === "def") continue;
    if (token.type === "code") {
      flush();
      blocks.push({ kind: "code", code: token.text, language: (token.lang ?? "").split(/[\s{]/)[0] ?? "" });
    } else {
      words.push(token);
    }
  }
  flush();
  return blocks;
}

const renderer = new Renderer();
/** @param {string} text */
const escaped = (text) => text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
const { link, tablecell } = renderer;
let isInLink = false;
let isInCell = false;
renderer.link = (token) => {
  isInLink = true;
  const made = link.call(renderer, token);
  isInLink = false;
  return made;
};
renderer.tablecell = (token) => {
  isInCell = true;
  const made = tablecell.call(renderer, token);
  isInCell = false;
  return made;
};
// Markup that a model writes is shown as it is written; a cell has no other way to end a line.
renderer.html = ({ text }) => (isInCell && /^<br ?\/?>$/i.test(text) ? "<br>" : escaped(text));
// Nothing is loaded from elsewhere: an image is a link to it, and within a link its words.
renderer.image = ({ href, text }) => {
  const words = escaped(text || href.slice(0, 80));
  return isInLink ? words : `<a class="image" href="${escaped(href)}">${words}</a>`;
};
renderer.checkbox = ({ checked }) => (checked ? "☑ " : "☐ ");

const purify = DOMPurify(window);
const WHAT_MAY_STAND = {
  ALLOWED_TAGS: ["a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre",
    "span", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul"],
  ALLOWED_ATTR: ["href", "class", "start", "align"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
};
purify.addHook("afterSanitizeAttributes", (node) => {
  // Each block goes the way of its own writing; code goes from the left, whatever is around it.
  if (/^(CODE|PRE)$/.test(node.nodeName)) node.setAttribute("dir", "ltr");
  else if (node.parentNode?.nodeName === "BODY") node.setAttribute("dir", "auto");
  if (node.nodeName !== "A") return;
  const address = node.getAttribute("href") ?? "";
  if (!/^(https?|mailto):/i.test(address)) {
    node.removeAttribute("href");
    return;
  }
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer nofollow");
  node.setAttribute("title", visible(address));
});

/** @param {string} html */
const clean = (html) => visible(purify.sanitize(html, WHAT_MAY_STAND));
