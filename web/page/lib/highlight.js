// Colours for code, loaded with the first code block.

import core from "highlight.js";
import { languages } from "highlight-languages";

for (const [name, language] of Object.entries(languages)) core.registerLanguage(name, language);
// Near enough, and the grammar is a third of its own one's size.
core.registerAliases(["ts", "tsx", "typescript"], { languageName: "javascript" });

/** Longer code stays plain: colours are not worth a page that stands still. */
const MOST_CHARACTERS = 60_000;
/** All that a highlighter has to say. */
const ONLY_SPANS = /^(?:[^<]|<span class="[\w -]+">|<\/span>)*$/;

/**
 * @param {string} code
 * @param {string} language
 * @returns {string | null} markup; null where the language is not known
 */
export function coloured(code, language) {
  if (code.length > MOST_CHARACTERS || !core.getLanguage(language)) return null;
  const made = core.highlight(code, { language, ignoreIllegals: true }).value;
  return ONLY_SPANS.test(made) ? made : null;
}
