// What a call will do, as far as that can be shown: the command line, the text before and after, the arguments.

import { useEffect, useState } from "preact/hooks";
import { call, part } from "../lib/api.js";
import { html } from "../lib/html.js";
import { Diff } from "./diff.js";
import { Code } from "./text.js";

/** @param {{name: string, server: string, input: any}} props */
export function WhatWillHappen({ name, server, input }) {
  const { command, args, path, content, cwd } = input ?? {};
  if (name === "command__run" && typeof command === "string") {
    const line = Array.isArray(args) ? [command, ...args].map(quoted).join(" ") : command;
    return html`<${Code} code=${line} language="bash" label=${`Command${cwd ? ` in ${cwd}` : ""}`} isDone=${true} />`;
  }
  if (typeof path === "string" && typeof content === "string" && /write/.test(name)) {
    return html`<${Changed} name=${name} path=${path} change=${() => content} verb="Writes" />`;
  }
  const edits = editsOf(input);
  if (typeof path === "string" && edits) {
    const change = (/** @type {string | null} */ before) => edits.reduce((text, edit) => replaced(text, edit, input.all === true), before ?? "");
    const alone = { before: edits.map(({ before }) => before).join("\n…\n"), after: edits.map(({ after }) => after).join("\n…\n") };
    return html`<${Changed} name=${name} path=${path} change=${change} verb="Changes" alone=${alone} />`;
  }
  const text = JSON.stringify(input, null, 2);
  if (text === "{}") return html`<p>Calls <code>${name}</code>${server ? html` of <bdi>${server}</bdi>` : ""} without arguments.</p>`;
  return html`<${Code} code=${text} language="json" label="Arguments" isDone=${true} />`;
}

/**
 * The file as it is beside the file as it will be. What it holds is known of our own tool alone; of others it shows what it was told.
 * @param {{name: string, path: string, change: (before: string | null) => string, verb: string, alone?: {before: string, after: string}}} props
 */
function Changed({ name, path, change, verb, alone }) {
  const isOurs = name.startsWith("filesystem__");
  const [found, find] = useState(/** @type {{state: "looking" | "there" | "none" | "unknown", text: string}} */ ({ state: isOurs ? "looking" : "unknown", text: "" }));
  useEffect(() => {
    if (!isOurs) return;
    call("/tools/call", { body: { name: "filesystem__read", arguments: { path } } }).then((read) => {
      const text = read.content?.[0]?.text;
      if (!read.is_error && typeof text === "string") find({ state: "there", text });
      else find({ state: read.outcome === "not_found" ? "none" : "unknown", text: "" });
    }, () => find({ state: "unknown", text: "" }));
  }, [path]);
  const label = `${verb} ${path}`;
  if (found.state === "there") return html`<${Diff} label=${label} before=${found.text} after=${change(found.text)} />`;
  if (alone) return html`<${Diff} label=${label} before=${alone.before} after=${alone.after} />`;
  return html`<${Diff} label=${found.state === "none" ? `${label}, a new file` : label} before=${null} after=${change(null)} />`;
}

/**
 * @param {string} text
 * @param {{before: string, after: string}} edit
 * @param {boolean} isAll
 */
const replaced = (text, { before, after }, isAll) => (isAll ? text.replaceAll(before, () => after) : text.replace(before, () => after));

/**
 * @param {any} input
 * @returns {{before: string, after: string}[] | null}
 */
function editsOf(input) {
  const list = Array.isArray(input?.edits) ? input.edits : [input];
  const edits = list.map((/** @type {any} */ edit) => ({
    before: edit?.old ?? edit?.oldText ?? edit?.old_text ?? edit?.old_string,
    after: edit?.new ?? edit?.newText ?? edit?.new_text ?? edit?.new_string,
  }));
  const isWhole = edits.every((/** @type {any} */ { before, after }) => typeof before === "string" && typeof after === "string");
  return isWhole ? edits : null;
}

/** @param {any} word */
const quoted = (word) => (/^[\w./:=@%+-]+$/.test(word) ? word : `'${String(word).replaceAll("'", "'\\''")}'`);

/** How a tool is another one than it was when it was last agreed to. @param {{name: string}} props */
export function ChangedDefinition({ name }) {
  const [reason, know] = useState("");
  useEffect(() => {
    const [server, ...tool] = name.split("__");
    call(`/mcp/servers/${part(server ?? "")}/tools`).then(({ set_aside }) => {
      const aside = set_aside.find((/** @type {any} */ other) => other.tool_name === tool.join("__"));
      know(aside?.reason.split("\n").slice(1).map((/** @type {string} */ line) => line.trim()).join("\n") ?? "");
    }, () => {});
  }, [name]);
  if (reason === "") return null;
  return html`<${Code} code=${reason} language="diff" label="What changed in the tool" isDone=${true} />`;
}
