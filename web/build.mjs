// Puts the page together in web/made/page: our own files and the few modules of the libraries that they import, each as it is and
// compressed. No bundler: the browser loads them as they were written. Run by `cargo xtask page` after `npm ci`.

import { cpSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const made = join(here, "made/page");
const making = join(here, `made/page.${process.pid}`);
/** The most that the page may be, compressed, in bytes. */
const MOST_BYTES = 160 * 1024;

const highlight = "@highlightjs/cdn-assets/es";
const languages = ["bash", "diff", "ini", "javascript", "json", "python"];

/** Where a library's module lies, by where the page has it. */
const vendor = {
  "preact.js": "preact/dist/preact.mjs",
  "hooks.js": "preact/hooks/dist/hooks.mjs",
  "signals.js": "@preact/signals/dist/signals.mjs",
  "signals-core.js": "@preact/signals-core/dist/signals-core.mjs",
  "htm.js": "htm/dist/htm.mjs",
  "marked.js": "marked/lib/marked.esm.js",
  "remend.js": "remend/dist/index.js",
  "highlight.js": `${highlight}/core.min.js`,
  ...Object.fromEntries(languages.map((name) => [`languages/${name}.js`, `${highlight}/languages/${name}.min.js`])),
};

/** Libraries whose small form is a script: it is made a module. */
const scripts = {
  "uplot.js": { from: "uplot/dist/uPlot.iife.min.js", before: "", after: "export default uPlot;" },
  "purify.js": { from: "dompurify/dist/purify.min.js", before: "const exports = {}, module = { exports };", after: "export default module.exports;" },
};

rmSync(making, { recursive: true, force: true });
cpSync(join(here, "page"), making, { recursive: true });
mkdirSync(join(making, "vendor/languages"), { recursive: true });
for (const [name, from] of Object.entries(vendor)) {
  const text = readFileSync(join(here, "node_modules", from), "utf8");
  // Maps of the sources are not served.
  writeFileSync(join(making, "vendor", name), text.replace(/\n\/\/# sourceMappingURL=.*\s*$/, "\n"));
}
for (const [name, { from, before, after }] of Object.entries(scripts)) {
  const text = readFileSync(join(here, "node_modules", from), "utf8");
  writeFileSync(join(making, "vendor", name), `${before}\n${text.replace(/\n\/\/# sourceMappingURL=.*\s*$/, "\n")}\n${after}\n`);
}
/**
 * Takes comments, empty lines and what stands before a line out of a module of ours: types and reasons are for whoever reads
 * the source. What begins in a line after something else is only taken where it is a type.
 */
const withoutComments = (text) => text
  .replace(/^[ \t]*\/\*\*(?:(?!\*\/)[\s\S])*\*\/[ \t]*$/gm, (comment) => comment.replace(/[^\n]+/g, ""))
  .replace(/^[ \t]*\/\/.*$/gm, "")
  .replace(/\/\*\* @(?:type|returns|param)[^\n]*?\*\/ ?/g, "")
  .replace(/^[ \t]*\/\*\*[^\n]*?\*\/[ \t]*/gm, "")
  .replace(/^[ \t]+/gm, "")
  .replace(/\n{2,}/g, "\n");
const ours = readdirSync(making, { recursive: true, withFileTypes: true });
/** The same for styles. */
const withoutSpace = (text) => text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/\s*\n\s*/g, "").replace(/\s*([{};,])\s*/g, "$1").replaceAll(";}", "}");
for (const file of ours.filter((entry) => entry.isFile() && entry.name.endsWith(".css"))) {
  const path = join(file.parentPath, file.name);
  writeFileSync(path, withoutSpace(readFileSync(path, "utf8")));
}
for (const file of ours.filter((entry) => entry.isFile() && entry.name.endsWith(".js") && !entry.parentPath.includes("/vendor"))) {
  const path = join(file.parentPath, file.name);
  writeFileSync(path, withoutComments(readFileSync(path, "utf8")));
}

let bytes = 0;
const files = readdirSync(making, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
for (const file of files) {
  const path = join(file.parentPath, file.name);
  const packed = gzipSync(readFileSync(path), { level: 9, memLevel: 9 });
  bytes += packed.length;
  writeFileSync(`${path}.gz`, packed);
}
if (bytes > MOST_BYTES) {
  rmSync(making, { recursive: true, force: true });
  throw new Error(`the page is ${bytes} bytes compressed, limit ${MOST_BYTES}`);
}
rmSync(made, { recursive: true, force: true });
renameSync(making, made);
console.error(`page: ${files.length} files, ${Math.ceil(bytes / 1024)} KB compressed, in web/made/page`);
