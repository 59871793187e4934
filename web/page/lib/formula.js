// Formulas in TeX: what stands between their marks stays as it is written, and is not read as Markdown.

/** A mark that may begin one: no dollar behind a letter or a number, and nothing that is escaped. */
const BEGIN = /(?<![\p{L}\p{N}\\$])\$|(?<!\\)\\[[(]/gu;
const BETWEEN = /^(?:\$\$((?:\\[^]|[^\\$])+)\$\$|\\\[((?:(?!\\\])[^])+)\\\]|\\\(((?:(?!\\\))[^])+)\\\)|\$(?!\s)((?:\\.|[^\\$\n])+)(?<!\s)\$(?![\p{L}\p{N}_$]))/u;
/** Longer ones are none, so that nothing stands still where marks are many. */
const MOST_CHARACTERS = 4_096;
/** What formulas have and prose has not. */
const SIGNS = /[\\^_={}<>+]/;

/**
 * The formula at the beginning of a text, with its marks; nothing where there is none: brackets may be escaped, and dollars may be prices.
 * @param {string} text
 */
function formulaAt(text) {
  const [raw, dollars, brackets, parentheses, dollar] = BETWEEN.exec(text.slice(0, MOST_CHARACTERS)) ?? [];
  if (raw === undefined || /\n\s*\n/.test(raw)) return "";
  const between = brackets ?? parentheses ?? dollar ?? "";
  if (dollars !== undefined || SIGNS.test(between)) return raw;
  if (brackets !== undefined) return brackets.includes("\n") ? raw : "";
  // After a price there are words.
  const isPrice = dollar === undefined || /^\d/.test(dollar);
  return isPrice && /\s/.test(between.trim()) ? "" : raw;
}

/** @param {string} text */
const begin = (text) => text.search(BEGIN);

/** How Markdown is read with them. */
export const formulas = {
  inline: [(/** @type {string} */ text) => {
    const raw = formulaAt(text);
    return raw === "" ? undefined : { type: "formula", raw };
  }],
  startInline: [begin],
  // One with lines of its own is a block, as code is.
  block: [(/** @type {string} */ text) => {
    const indent = /^ {0,3}(?=\$\$|\\\[)/.exec(text)?.[0];
    const raw = indent === undefined ? "" : formulaAt(text.slice(indent.length));
    const end = /^[ \t]*(?:\n|$)/.exec(text.slice((indent ?? "").length + raw.length))?.[0];
    return raw === "" || end === undefined ? undefined : { type: "code", raw: indent + raw + end, text: raw, lang: "formula" };
  }],
  startBlock: [(/** @type {string} */ text) => text.search(/(?<=\n) {0,3}(?:\$\$|\\\[)/)],
  renderers: { formula: (/** @type {any} */ { raw }) => `<code class="math">${raw.replace(/[&<>"']/g, (/** @type {string} */ letter) => `&#${letter.charCodeAt(0)};`)}</code>` },
  childTokens: {},
};

/** A text in which stars and lines within formulas are none. @param {string} text */
export function withoutFormulas(text) {
  let end = 0;
  let made = "";
  for (const { index } of text.matchAll(BEGIN)) {
    const { length } = index < end ? "" : formulaAt(text.slice(index));
    if (length > 0) {
      made += text.slice(end, index) + "x".repeat(length);
      end = index + length;
    }
  }
  return made + text.slice(end);
}
