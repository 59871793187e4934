// Colours for code, loaded with the first code block.

import core from "highlight.js";
import bash from "highlight-languages/bash.js";
import cpp from "highlight-languages/cpp.js";
import css from "highlight-languages/css.js";
import diff from "highlight-languages/diff.js";
import go from "highlight-languages/go.js";
import ini from "highlight-languages/ini.js";
import java from "highlight-languages/java.js";
import javascript from "highlight-languages/javascript.js";
import json from "highlight-languages/json.js";
import markdown from "highlight-languages/markdown.js";
import python from "highlight-languages/python.js";
import rust from "highlight-languages/rust.js";
import sql from "highlight-languages/sql.js";
import typescript from "highlight-languages/typescript.js";
import xml from "highlight-languages/xml.js";
import yaml from "highlight-languages/yaml.js";

const languages = { bash, cpp, css, diff, go, ini, java, javascript, json, markdown, python, rust, sql, typescript, xml, yaml };
for (const [name, language] of Object.entries(languages)) core.registerLanguage(name, language);

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
