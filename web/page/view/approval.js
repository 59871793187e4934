// The question whether a call may run: what will happen, why it is asked, and the answers.

import { useEffect, useRef, useState } from "preact/hooks";
import { sentence } from "../lib/api.js";
import { html } from "../lib/html.js";
import { visible } from "../lib/markdown.js";
import { Code } from "./text.js";

/** @type {Record<string, string>} */
const reasons = {
  approval: "Turnwright asks before this tool runs.",
  definition_changed: "The tool has changed since it was last allowed. Look at what it does now before you allow it.",
  unknown_outcome: "The call was interrupted, and nobody knows whether it happened. It is never run again by itself.",
};

/** @param {{name: string, title: string, server: string, input: any, wait: any, decide: (body: any) => Promise<void>}} props */
export function Approve({ name, title, server, input, wait, decide }) {
  const [written, write] = useState(/** @type {string | null} */ (null));
  const [failure, fail] = useState("");
  const [isSending, sending] = useState(false);
  const box = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const isEditing = written !== null;
  useEffect(() => {
    if (isEditing) box.current?.focus();
  }, [isEditing]);
  const send = async (/** @type {string} */ decision) => {
    if (isSending) return;
    /** @type {any} */
    const body = { decision };
    if (isEditing && decision === "allow") {
      try {
        body.arguments = JSON.parse(written);
      } catch (error) {
        fail(`The arguments are not JSON: ${sentence(error)}`);
        return;
      }
    }
    fail("");
    sending(true);
    try {
      await decide(body);
    } catch (error) {
      fail(sentence(error));
    } finally {
      sending(false);
    }
  };
  const onKey = (/** @type {any} */ event) => {
    if (event.target.tagName === "TEXTAREA" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "a" && wait.reason !== "unknown_outcome") void send("allow");
    else if (event.key === "d" && wait.reason !== "unknown_outcome") void send("deny");
    else if (event.key === "e") write(written ?? JSON.stringify(input, null, 2));
    else return;
    event.preventDefault();
  };
  return html`<div class="approve" role="group" aria-label=${`Decision about ${title}`} onKeyDown=${onKey}>
    <p class="why">${reasons[wait.reason] ?? reasons.approval}
      ${" "}<span class="faint">${wait.rule ? html`Why: <code>${visible(wait.rule)}</code>.` : visible(wait.note ?? "")}</span></p>
    ${isEditing ? html`<label>Arguments, as JSON
        <textarea ref=${box} class="mono" rows=${Math.min(16, written.split("\n").length + 1)} spellcheck="false" value=${written}
          onInput=${(/** @type {any} */ event) => write(event.target.value)}></textarea></label>`
      : html`<${WhatWillHappen} name=${name} server=${server} input=${input} />`}
    ${failure && html`<p class="failure" role="alert">${visible(failure)}</p>`}
    <div class="row">
      ${wait.reason === "unknown_outcome" ? html`
        <button class="main-action" disabled=${isSending} onClick=${() => send("happened")}>It happened</button>
        <button disabled=${isSending} onClick=${() => send("run_again")}>Run it again</button>
        <button disabled=${isSending} onClick=${() => send("skip")}>Leave it out</button>`
        : html`
        <button class="main-action" disabled=${isSending} onClick=${() => send("allow")} aria-keyshortcuts="a">${isEditing ? "Allow as changed" : "Allow once"}</button>
        <button disabled=${isSending} onClick=${() => send("deny")} aria-keyshortcuts="d">Deny</button>
        ${isEditing ? html`<button class="plain" onClick=${() => write(null)}>Leave as it was</button>`
          : html`<button class="plain" onClick=${() => write(JSON.stringify(input, null, 2))} aria-keyshortcuts="e">Edit arguments</button>`}
        <span class="faint keys">here: <kbd>a</kbd> allow, <kbd>d</kbd> deny, <kbd>e</kbd> edit</span>`}
    </div>
  </div>`;
}

/** @param {{name: string, server: string, input: any}} props */
export function WhatWillHappen({ name, server, input }) {
  const { command, args, path, content, cwd } = input ?? {};
  if (name === "command__run" && typeof command === "string") {
    const line = Array.isArray(args) ? [command, ...args].map(quoted).join(" ") : command;
    return html`<${Code} code=${line} language="bash" label=${`Command${cwd ? ` in ${cwd}` : ""}`} isDone=${true} />`;
  }
  if (typeof path === "string" && typeof content === "string" && /write/.test(name)) {
    return html`<${Code} code=${content.replace(/\n$/, "").replace(/^/gm, "+ ")} language="diff" label=${`Writes ${path}`} isDone=${true} />`;
  }
  const edits = editsOf(input);
  if (typeof path === "string" && edits) {
    const diff = edits.map(({ before, after }) => `${before.replace(/^/gm, "- ")}\n${after.replace(/^/gm, "+ ")}`).join("\n\n");
    return html`<${Code} code=${diff} language="diff" label=${`Changes ${path}`} isDone=${true} />`;
  }
  const text = JSON.stringify(input, null, 2);
  if (text === "{}") return html`<p>Calls <code>${visible(name)}</code>${server ? html` of <bdi>${visible(server)}</bdi>` : ""} without arguments.</p>`;
  return html`<${Code} code=${text} language="json" label="Arguments" isDone=${true} />`;
}

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
