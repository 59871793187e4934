// Markdown as blocks: while a text grows, only its last block is read and made again.

import DOMPurify from "dompurify";
import { Lexer, Parser, Renderer } from "marked";
import remend from "remend";

/**
 * @typedef {{kind: "html", html: string} | {kind: "code", code: string, language: string}} Block
 * @typedef {{text: string, settledTo: number, settled: Block[], tail: Block[], links: any}} Growing
 */

/** @returns {Growing} */
export function growing() {
  return { text: "", settledTo: 0, settled: [], tail: [], links: Object.create(null) };
}

/**
 * Reads the text as far as it has come.
 * @param {Growing} state
 * @param {string} text begins with what it was before
 * @param {boolean} isDone whether nothing more comes
 */
export function grow(state, text, isDone) {
  state.text = text;
  const rest = text.slice(state.settledTo);
  const lexer = new Lexer({ gfm: true, breaks: true });
  lexer.tokens.links = state.links;
  const tokens = lexer.lex(isDone || rest.includes("\r") ? rest : remend(rest));
  const last = isDone ? tokens.length : tokens.findLastIndex((token) => token.type !== "space");
  for (let at = 0; at < last; at += 1) {
    const token = tokens[at];
    if (!token) break;
    // A block that reads otherwise than it is written must stay where its beginning is known.
    if (!isDone && text.slice(state.settledTo, state.settledTo + token.raw.length) !== token.raw) break;
    state.settledTo += token.raw.length;
    push(state.settled, token);
    tokens[at] = /** @type {any} */ (null);
  }
  state.tail = [];
  for (const token of tokens) if (token) push(state.tail, token);
}

/**
 * @param {Block[]} blocks
 * @param {any} token
 */
function push(blocks, token) {
  if (token.type === "space" || token.type === "def") return;
  if (token.type === "code") {
    blocks.push({ kind: "code", code: token.text, language: (token.lang ?? "").split(/[\s{]/)[0] ?? "" });
  } else {
    blocks.push({ kind: "html", html: clean(Parser.parse([token], { renderer })) });
  }
}

const renderer = new Renderer();
/** @param {string} text */
const escaped = (text) => text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
// Markup that a model writes is shown as it is written.
renderer.html = ({ text }) => escaped(text);
// Nothing is loaded from elsewhere: an image is a link to it.
renderer.image = ({ href, text }) =>
  `<a class="image" href="${escaped(href)}">${escaped(text || href.slice(0, 80))}</a>`;
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
export const clean = (html) => visible(purify.sanitize(html, WHAT_MAY_STAND));

/**
 * Shows characters that would turn the writing around or steer a terminal, instead of doing what they say.
 * @param {string} text
 */
export function visible(text) {
  return text
    .replace(/\u001b\[[0-9;:?]*[ -/]*[@-~]/g, "")
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g, "\u2423")
    .replace(/[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]/g, (letter) => `[U+${letter.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);
}
