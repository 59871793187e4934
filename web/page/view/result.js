// What a tool gave back, by kind.

import { useState } from "preact/hooks";
import { artifactAddress, artifactOf } from "../lib/artifact.js";
import { html } from "../lib/html.js";
import { Artifact } from "./artifact.js";
import { Code } from "./text.js";

const FIRST_CHARACTERS = 4_000;
const MORE_CHARACTERS = 40_000;
const FIRST_ROWS = 50;
const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"];

/** @param {{output: any, isError: boolean}} props */
export function Result({ output, isError }) {
  const content = Array.isArray(output.content) ? output.content : [];
  const structured = output.structuredContent;
  const links = content.filter((/** @type {any} */ block) => artifactOf(block.uri));
  const said = content.filter((/** @type {any} */ block) => !artifactOf(block.uri));
  const isRepeated = structured !== undefined && said.length <= 1 && (said[0]?.type ?? "text") === "text"
    && (said.length === 0 || asJson(said[0].text) !== undefined);
  return html`<div class=${isError ? "result bad" : "result"}>
    <h3 class="unseen">${isError ? "Error" : "Result"}</h3>
    ${structured !== undefined && html`<${Value} value=${structured} />`}
    <${Blocks} content=${isRepeated ? links : content} />
    ${content.length === 0 && structured === undefined && html`<p class="faint">It gave nothing back.</p>`}
  </div>`;
}

/** Blocks as MCP has them. @param {{content: any[], isPlain?: boolean}} props */
export function Blocks({ content, isPlain = false }) {
  return content.map((block, at) => html`<${ContentBlock} key=${at} block=${block} isPlain=${isPlain} />`);
}

/** @param {{block: any, isPlain: boolean}} props */
function ContentBlock({ block, isPlain }) {
  switch (block.type) {
    case "text":
      return isPlain ? html`<p class="words" dir="auto">${block.text}</p>` : html`<${Text} text=${block.text} />`;
    case "image": {
      const kind = block.mimeType ?? block.mime_type;
      if (!IMAGES.includes(kind)) return html`<p class="faint">An image of the kind ${String(kind)}, which is not shown.</p>`;
      return html`<img class="shown" alt=${isPlain ? "Attached image" : "Image from the tool"} src=${`data:${kind};base64,${block.data}`} />`;
    }
    case "audio":
      return html`<audio controls src=${`data:${block.mimeType ?? block.mime_type};base64,${block.data}`}></audio>`;
    case "resource_link": {
      const kept = artifactOf(block.uri);
      // What a person attached, while it is on its way.
      if (kept && isPlain && IMAGES.includes(block.mimeType)) return html`<img class="shown" alt="Attached image" src=${artifactAddress(kept)} />`;
      if (kept) return html`<${Artifact} id=${kept} name=${String(block.name ?? kept)} kind=${String(block.mimeType ?? "")} bytes=${block.size} />`;
      return html`<p>Resource: <bdi>${block.title ?? block.name ?? ""}</bdi> <code>${block.uri ?? ""}</code></p>`;
    }
    case "resource": {
      const { uri, text } = block.resource ?? {};
      return html`<div><p class="faint"><code>${uri ?? ""}</code></p>
        ${typeof text === "string" ? html`<${Text} text=${text} />` : html`<p class="faint">A file that is not text.</p>`}</div>`;
    }
    default:
      return html`<${Value} value=${block} />`;
  }
}

/** Text: as a table or a tree where it is JSON, as a diff where it is one, in parts where it is long. @param {{text: string}} props */
function Text({ text }) {
  const value = text.length < 1_000_000 ? asJson(text) : undefined;
  if (value !== undefined) return html`<${Value} value=${value} />`;
  if (/^(diff --git |--- \S)/m.test(text.slice(0, 2_000)) && /^@@ /m.test(text)) return html`<${Pages} text=${text} language="diff" />`;
  return html`<${Pages} text=${text} language="" />`;
}

/** @param {{text: string, language: string}} props */
function Pages({ text, language }) {
  const [most, more] = useState(FIRST_CHARACTERS);
  const rest = text.length - most;
  const shown = rest > 0 ? text.slice(0, most) : text;
  return html`<div>
    ${language ? html`<${Code} code=${shown} language=${language} isDone=${true} />`
      : html`<pre class="plain-text" dir="auto" tabindex="0" aria-label="Text">${shown}</pre>`}
    ${rest > 0 && html`<button type="button" onClick=${() => more(most + MORE_CHARACTERS)}>Show more (${rest.toLocaleString("en")} characters left)</button>`}
  </div>`;
}

/** @param {{value: any}} props */
function Value({ value }) {
  const rows = tableOf(value);
  if (rows) return html`<${Table} rows=${rows} />`;
  const text = JSON.stringify(value, null, 2) ?? "null";
  if (text.length > FIRST_CHARACTERS) return html`<${Pages} text=${text} language="" />`;
  return html`<${Code} code=${text} language="json" label="Data" isDone=${true} />`;
}

/** @param {{rows: Record<string, any>[]}} props */
function Table({ rows }) {
  const [isWhole, whole] = useState(false);
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const shown = isWhole ? rows : rows.slice(0, FIRST_ROWS);
  return html`<div class="table" tabindex="0" role="group" aria-label="Table">
    <table><thead><tr>${columns.map((column) => html`<th scope="col">${column}</th>`)}</tr></thead>
      <tbody>${shown.map((row) => html`<tr>${columns.map((column) => html`<td>${cell(row[column])}</td>`)}</tr>`)}</tbody></table>
    ${shown.length < rows.length && html`<button type="button" onClick=${() => whole(true)}>Show all ${rows.length} rows</button>`}
  </div>`;
}

/** @param {any} value */
function cell(value) {
  if (value === undefined || value === null) return "";
  return (typeof value === "object" ? JSON.stringify(value) : String(value)).slice(0, 2_000);
}

/** A list of flat objects, or an object that holds nothing else. @param {any} value */
function tableOf(value) {
  let list = value;
  if (!Array.isArray(value) && value !== null && typeof value === "object") {
    const all = Object.values(value);
    if (all.length === 1) list = all[0];
  }
  if (!Array.isArray(list) || list.length === 0) return null;
  const isFlat = list.every((row) => row !== null && typeof row === "object" && !Array.isArray(row)
    && Object.values(row).every((field) => field === null || typeof field !== "object"));
  return isFlat ? list : null;
}

/** @param {string} text */
function asJson(text) {
  const trimmed = text.trimStart();
  if (!trimmed.startsWith("{") && !trimmed.startsWith("[")) return undefined;
  try {
    return JSON.parse(trimmed);
  } catch {
    return undefined;
  }
}
