// What a call will do, as far as that can be shown: the command line, the text before and after, the arguments.

import { useEffect, useState } from "preact/hooks";
import { call, part } from "../lib/api.js";
import { exact, pretty } from "../lib/exact.js";
import { html } from "../lib/html.js";
import { Diff } from "./diff.js";
import { Code } from "./text.js";

/**
 * All of it is shown: where arguments have a form of their own here, what that does not show stands below it; where there is more than one
 * way to read them, they stand as they are.
 * @param {{name: string, server: string, text: string}} props
 */
export function WhatWillHappen({ name, server, text }) {
  const input = JSON.parse(text);
  const { command, args, cwd, stdin } = input;
  const others = Object.keys(input).filter((key) => key !== "path").sort().join();
  if (name === "command__run" && typeof command === "string") {
    const rest = Object.entries(exact(text)).filter(([key]) => !["command", "args", "cwd", "stdin"].includes(key));
    const line = Array.isArray(args) ? [command, ...args].map(quoted).join(" ") : command;
    return html`<${Code} code=${line} language="bash" label=${`Command${cwd ? ` in ${cwd}` : ""}`} isDone=${true} />
      ${stdin != null && html`<${Code} code=${String(stdin)} language="" label="Its input" isDone=${true} />`}
      ${rest.length > 0 && html`<${Code} code=${JSON.stringify(Object.fromEntries(rest), null, 2)} language="json" label="Besides" isDone=${true} />`}`;
  }
  if (typeof input.path === "string") {
    if (others === "content" && typeof input.content === "string" && /write/.test(name)) {
      return html`<${Changed} name=${name} path=${input.path} text=${input.content} edits=${null} />`;
    }
    const edits = editsOf(input);
    if (edits) return html`<${Changed} name=${name} path=${input.path} text=${null} edits=${edits} />`;
  }
  const shown = pretty(text);
  if (shown === "{}") return html`<p>Calls <code>${name}</code>${server ? html` of <bdi>${server}</bdi>` : ""} without arguments.</p>`;
  return html`<${Code} code=${shown} language="json" label="Arguments" isDone=${true} />`;
}

/** @typedef {{before: string, after: string, isAll: boolean}} Edit */

/**
 * The file as it is beside the file as it will be. What it holds is known of our own tool alone; of others it shows what it was told.
 * @param {{name: string, path: string, text: string | null, edits: Edit[] | null}} props
 */
function Changed({ name, path, text, edits }) {
  const isOurs = name.startsWith("filesystem__");
  const [found, find] = useState(/** @type {{state: "looking" | "there" | "none" | "unknown", text: string, isPart: boolean}} */ ({ state: isOurs ? "looking" : "unknown", text: "", isPart: false }));
  useEffect(() => {
    if (!isOurs) return;
    const nothing = { text: "", isPart: false };
    call("/tools/call", { body: { name: "filesystem__read", arguments: { path } } }).then((read) => {
      const held = read.content?.[0]?.text;
      // Where it is long a note says what comes behind the part that was read.
      if (!read.is_error && typeof held === "string") find({ state: "there", text: held, isPart: read.content.length > 1 });
      else find({ state: read.outcome === "not_found" ? "none" : "unknown", ...nothing });
    }, () => find({ state: "unknown", ...nothing }));
  }, [path]);
  const looking = found.state === "looking" && html`<i class="looking"></i>`;
  if (edits === null) {
    const label = `Writes ${path}${found.state === "none" ? ", a new file" : ""}`;
    return html`${looking}<${Diff} label=${label} before=${found.state === "there" ? found.text : null} after=${text ?? ""} />
      ${found.isPart && html`<p>The file goes on behind what is shown of it: all of it is replaced.</p>`}`;
  }
  const label = `Changes ${path}`;
  const after = found.state === "there" && !found.isPart ? edited(found.text, edits) : null;
  if (after !== null) return html`<${Diff} label=${label} before=${found.text} after=${after} />`;
  const side = (/** @type {"before" | "after"} */ which) => edits.map((edit) => edit[which]).join("\n…\n");
  return html`${looking}<${Diff} label=${label} before=${side("before")} after=${side("after")} />
    ${edits.some((edit) => edit.isAll) && html`<p>Wherever that stands in the file.</p>`}
    ${found.state === "there" && html`<p>The file does not hold that to the letter${found.isPart ? " in the part that was read" : ""}: it is looked for with other spaces and line ends too.</p>`}`;
}

/**
 * @param {string} text
 * @param {Edit[]} edits
 * @returns {string | null} nothing where one of them is not there to the letter
 */
function edited(text, edits) {
  let now = text;
  for (const { before, after, isAll } of edits) {
    if (before === "" || before === after || !now.includes(before)) return null;
    now = isAll ? now.replaceAll(before, () => after) : now.replace(before, () => after);
  }
  return now === text ? null : now;
}

/** How tools call the text that goes and the one that comes. */
const SPELLINGS = [["old", "new"], ["oldText", "newText"], ["old_text", "new_text"], ["old_string", "new_string"]];

/**
 * @param {any} input
 * @returns {Edit[] | null} nothing where there is anything else in it
 */
function editsOf({ path: _, ...input }) {
  const list = Array.isArray(input.edits) && Object.keys(input).length === 1 ? input.edits : [input];
  const edits = list.flatMap((/** @type {any} */ edit) => {
    const { all, ...texts } = edit ?? {};
    const names = SPELLINGS.find(([old, now]) => Object.keys(texts).sort().join() === [now, old].sort().join());
    const [before, after] = (names ?? []).map((name) => texts[name]);
    const isEdit = typeof before === "string" && typeof after === "string" && [undefined, null, true, false].includes(all);
    return isEdit ? [{ before, after, isAll: all === true }] : [];
  });
  return edits.length > 0 && edits.length === list.length ? edits : null;
}

/** A word as a shell reads it as one. @param {any} word */
export const quoted = (word) => (/^[\w./:=@%+-]+$/.test(word) ? word : `'${String(word).replaceAll("'", "'\\''")}'`);

/** How a tool is another one than it was when it was last agreed to. @param {{name: string}} props */
export function ChangedDefinition({ name }) {
  const [reason, know] = useState(/** @type {string | null} */ (null));
  useEffect(() => {
    const [server, ...tool] = name.split("__");
    call(`/mcp/servers/${part(server ?? "")}/tools`).then(({ set_aside }) => {
      const aside = set_aside.find((/** @type {any} */ other) => other.tool_name === tool.join("__"));
      know(aside?.reason.split("\n").slice(1).map((/** @type {string} */ line) => line.trim()).join("\n") ?? "");
    }, () => know(""));
  }, [name]);
  if (!reason) return reason === null && html`<i class="looking"></i>`;
  return html`<${Code} code=${reason} language="diff" label="What changed in the tool" isDone=${true} />`;
}
