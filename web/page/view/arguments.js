// The arguments of a call, to be changed: as a form made from the tool's schema, or as JSON.

import { useEffect, useState } from "preact/hooks";
import { sentence } from "../lib/api.js";
import { toolNamed } from "../lib/app.js";
import { exact, isRounded, written } from "../lib/exact.js";
import { html } from "../lib/html.js";
import { Field, fieldOf } from "./form.js";

/**
 * @param {string} typed
 * @returns {{value: any, text: string, problem: string}} `text`: what is sent, in which no number is rounded
 */
export function readArguments(typed) {
  const text = typed.trim() || "{}";
  try {
    const value = exact(text);
    if (value !== null && typeof value === "object" && !Array.isArray(value)) return { value, text, problem: "" };
    return { value: null, text, problem: "The arguments are not a JSON object." };
  } catch (error) {
    return { value: null, text, problem: `The arguments are not JSON: ${sentence(error)}` };
  }
}

/** @param {{name: string, text: string, write: (text: string) => void, schema?: any, failure?: string}} props `failure`: why they were not taken */
export function Arguments({ name, text, write, schema: given, failure = "" }) {
  const [schema, know] = useState(/** @type {any} */ (given ?? null));
  const [isForm, form] = useState(given !== undefined);
  useEffect(() => {
    if (!given) toolNamed(name).then((tool) => know(tool?.input_schema ?? null), () => {});
  }, [name]);
  const { value } = readArguments(text);
  const properties = schema?.properties ?? {};
  const canForm = value !== null && !isRounded(text) && Object.keys(properties).length > 0;
  const show = (/** @type {boolean} */ isForm) => {
    form(isForm);
    // What was wrong is said of what was shown.
    write(text);
  };
  const wrong = isForm && canForm ? Object.keys(properties).find((key) => failure.includes(`(at /${key}`)) : undefined;
  return html`<div class="arguments">
    ${canForm && html`<div class="row" role="group" aria-label="How to edit">
      <button type="button" class="plain small" aria-pressed=${isForm} onClick=${() => show(true)}>As a form</button>
      <button type="button" class="plain small" aria-pressed=${!isForm} onClick=${() => show(false)}>As JSON</button></div>`}
    ${isForm && canForm ? html`<div class="fields">${Object.entries(properties).map(([key, field]) => html`<${Argument} key=${key} name=${key}
        schema=${schema} field=${field} wrong=${key === wrong ? failure : ""} value=${value[key]} set=${(/** @type {any} */ changed) => write(JSON.stringify(changed === undefined
          ? without(value, key) : { ...value, [key]: changed }, null, 2))} />`)}</div>`
      : html`<label>Arguments, as JSON<textarea class="mono" rows=${Math.min(16, text.split("\n").length + 1)} spellcheck=${false} value=${text}
          onInput=${(/** @type {any} */ event) => write(event.target.value)}></textarea></label>`}
    ${failure && wrong === undefined && html`<p class="failure" role="alert">${failure}</p>`}
  </div>`;
}

/**
 * @param {any} value
 * @param {string} key
 */
function without(value, key) {
  const { [key]: _, ...rest } = value;
  return rest;
}

/**
 * Whether something is a text or a list with nothing in it, where there may be such.
 * @param {import("./form.js").FieldOf} field
 * @param {any} changed
 */
const isEmpty = ({ kind, schema }, changed) => changed.length === 0 && (kind === "string" || (kind === "several" && !schema.minItems));

/** @param {{name: string, schema: any, field: any, value: any, wrong: string, set: (value: any) => void}} props */
function Argument({ name, schema, field, value, wrong, set }) {
  const read = fieldOf(name, field, schema);
  const start = read.kind === "json" ? (value === undefined ? "" : JSON.stringify(value)) : (written(value) ?? (read.kind === "several" ? [] : read.kind === "boolean" ? false : ""));
  // What is typed may not be a value yet.
  const [typed, type] = useState(start);
  const isLong = read.kind === "string" && typeof value === "string" && (value.length > 60 || value.includes("\n"));
  const shown = isLong ? { ...read, schema: { ...read.schema, maxLength: 1_000 } } : read;
  return html`<${Field} form="argument" field=${shown} value=${typed} wrong=${wrong} write=${(/** @type {any} */ changed) => {
    type(changed);
    if (changed === "" && shown.isNullable) set(shown.isRequired ? null : undefined);
    else set(isEmpty(shown, changed) && (value !== undefined || shown.isRequired) ? changed : shown.read(changed));
  }} />`;
}
