// Puts the page together in the folder that it is told: our own files and the few modules of the libraries that they import, each made
// small by itself, and compressed as brotli. No bundler: a module stays a module, with its imports; the styles are one file, and so are the
// grammars of the highlighter. Run by `cargo xtask page` after `npm ci`, which compresses them as gzip too.

import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants } from "node:zlib";

import { minify } from "terser";

const here = dirname(fileURLToPath(import.meta.url));
const [, , making] = process.argv;
if (!making) throw new Error("name the folder: node build.mjs FOLDER");

const highlight = "@highlightjs/cdn-assets/es";
const languages = ["bash", "diff", "ini", "javascript", "json", "python", "rust"];

/** They are loaded together: one file is smaller than its parts are. */
const styles = ["base", "chat", "cards", "screens"];

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
};

/** Libraries whose small form is a script: it is made a module. */
const scripts = {
  "uplot.js": { from: "uplot/dist/uPlot.iife.min.js", before: "", after: "export default uPlot;" },
  "purify.js": { from: "dompurify/dist/purify.min.js", before: "const exports = {}, module = { exports };", after: "export default module.exports;" },
};

rmSync(making, { recursive: true, force: true });
cpSync(join(here, "page"), making, { recursive: true });
mkdirSync(join(making, "vendor"), { recursive: true });
for (const [name, from] of Object.entries(vendor)) {
  const text = readFileSync(join(here, "node_modules", from), "utf8");
  // Maps of the sources are not served.
  writeFileSync(join(making, "vendor", name), text.replace(/\n\/\/# sourceMappingURL=.*\s*$/, "\n"));
}
for (const [name, { from, before, after }] of Object.entries(scripts)) {
  const text = readFileSync(join(here, "node_modules", from), "utf8");
  writeFileSync(join(making, "vendor", name), `${before}\n${text.replace(/\n\/\/# sourceMappingURL=.*\s*$/, "\n")}\n${after}\n`);
}
const grammars = languages.map((name) => {
  const text = readFileSync(join(here, "node_modules", highlight, "languages", `${name}.min.js`), "utf8");
  if (!/\bexport default hljsGrammar;\s*$/.test(text)) throw new Error(`the grammar of ${name} has another form`);
  return `${name}: (() => {\n${text.replace(/\bexport default hljsGrammar;\s*$/, "return hljsGrammar;")}\n})(),\n`;
});
writeFileSync(join(making, "vendor/languages.js"), `/*! Grammars of Highlight.js, BSD-3-Clause */\nexport const languages = {\n${grammars.join("")}};\n`);
const style = styles.map((name) => readFileSync(join(here, "page/style", `${name}.css`), "utf8")).join("");
rmSync(join(making, "style"), { recursive: true });
writeFileSync(join(making, "style.css"), style);
/** Takes out of the templates of a module of ours what stands before their lines: it shows nowhere. */
const withoutIndents = (text) => text.replace(/^[ \t]+/gm, "").replace(/\n{2,}/g, "\n");
/** Takes out of the templates of a module of ours that was made small the line ends beside tags and values: they show nowhere either. */
const withoutBreaks = (code) => code.replace(/(?<=>)\n|\n(?=<)|(?<=\})\n(?=\$\{)/g, "");
/** A module made small: without comments and spaces, with short names for what nobody outside sees. Licences stay. */
const small = async (text) => {
  const { code } = await minify(text, { module: true, ecma: 2020, compress: { passes: 3, inline: 1 }, format: { comments: "some" } });
  if (!code) throw new Error("a module that is empty when it is made small");
  return code;
};
/** The same for styles. */
const withoutSpace = (text) => text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/\s*\n\s*/g, "").replace(/\s*([{};,])\s*/g, "$1").replaceAll(";}", "}");
/** By the name that modules import a library by: which of its names they import. */
const wanted = new Map();
const LIST = /\b(import|export)\s*\{([^}]*)\}\s*from\s*"([^"]+)"/g;
const namesOf = (list) => list.split(",").map((name) => name.trim()).filter((name) => name !== "");
/** A library that exports no more than modules import of it, by name: what nothing needs then goes when it is made small. */
const trimmed = (text, library) => {
  const isWanted = (name) => wanted.get(library)?.has(name.split(/\s+as\s+/).at(-1)) || /\bdefault$/.test(name);
  return text.replace(/\bexport\s*\{([^}]*)\}/g, (_, list) => `export{${namesOf(list).filter(isWanted).join(",")}}`);
};
const want = (text) => {
  for (const [, , list, library] of text.matchAll(LIST)) {
    const names = wanted.get(library) ?? wanted.set(library, new Set()).get(library);
    for (const name of namesOf(list)) names.add(name.split(/\s+as\s+/)[0]);
  }
};
for (const file of readdirSync(making, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())) {
  const path = join(file.parentPath, file.name);
  if (file.name.endsWith(".css")) {
    writeFileSync(path, withoutSpace(readFileSync(path, "utf8")));
  } else if (file.name.endsWith(".js") && !file.parentPath.includes("/vendor")) {
    const text = readFileSync(path, "utf8");
    want(text);
    writeFileSync(path, withoutBreaks(await small(withoutIndents(text))));
  }
}
const { imports } = JSON.parse(readFileSync(join(here, "page/index.html"), "utf8").match(/<script type="importmap">(.*?)<\/script>/s)[1]);
// A library comes before those that it imports from.
for (const library of new Set(["@preact/signals", "preact/hooks", ...Object.keys(imports)])) {
  const path = join(making, imports[library].replace("./page/", ""));
  const text = await small(trimmed(readFileSync(path, "utf8"), library));
  want(text);
  writeFileSync(path, text);
}

for (const file of readdirSync(making, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())) {
  const path = join(file.parentPath, file.name);
  const text = readFileSync(path);
  writeFileSync(`${path}.br`, brotliCompressSync(text, {
    params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY, [constants.BROTLI_PARAM_SIZE_HINT]: text.length },
  }));
}
