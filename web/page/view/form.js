// What a server asks of a person: a form made from its schema in the server's order, or an address to open.

import { useEffect, useId, useState } from "preact/hooks";
import { Refused, sentence } from "../lib/api.js";
import { exact } from "../lib/exact.js";
import { html } from "../lib/html.js";
import { store, stored } from "../lib/kept.js";

/** @type {Record<string, string>} */
const answered = { accept: "Answered.", decline: "Declined.", cancel: "Cancelled." };

/** @param {{id: string, conversation: string, question: any, answer: (body: any) => Promise<void>, isOpen: boolean}} props */
export function Question({ id, conversation, question, answer, isOpen }) {
  const place = `form ${conversation} ${id}`;
  const isOver = !isOpen && question.state !== "open";
  useEffect(() => {
    if (isOver) store(place, null);
  }, [isOver]);
  const message = question.message ?? "";
  const server = question.server ?? "a server";
  if (!isOpen) {
    const how = question.state === "expired" ? "Closed without an answer." : (answered[question.action] ?? "Closed.");
    return html`<div class="card still question"><p><bdi>${server}</bdi> asked: ${message}</p><p class="faint">${how}</p></div>`;
  }
  return html`<div class="card asking question" role="group" aria-label=${`Question of ${server}`}>
    <p class="asker"><span class="dot asking" aria-hidden="true"></span> The server <strong><bdi>${server}</bdi></strong> asks</p>
    <p class="words" dir="auto">${message}</p>
    ${(question.holds_connection ?? question.holdsConnection) && html`<p class="faint">It holds its connection open and will not wait for ever.</p>`}
    ${question.mode === "url" ? html`<${Address} question=${question} answer=${answer} />`
      : question.sampling ? html`<${Sampling} sampling=${question.sampling} answer=${answer} />`
      : html`<${Form} id=${id} place=${place} schema=${question.requested_schema ?? question.requestedSchema ?? {}} answer=${answer} />`}
  </div>`;
}

/** @param {{question: any, answer: (body: any) => Promise<void>}} props */
function Address({ question, answer }) {
  const url = String(question.url ?? "");
  const isWeb = /^https?:\/\//i.test(url);
  let host = "";
  try {
    host = new URL(url).host;
  } catch {
    // It is shown as it is.
  }
  return html`<p>It asks you to open this address${host && html` at <strong><bdi>${host}</bdi></strong>`}:</p>
    <p class="address"><code>${url}</code></p>
    <${Answers} answer=${answer} accept="I did it" content=${() => undefined}>
      ${isWeb && html`<a class="button" href=${url} target="_blank" rel="noopener noreferrer">Open it</a>`}
    <//>`;
}

/** A server that wants a model asked. @param {{sampling: any, answer: (body: any) => Promise<void>}} props */
function Sampling({ sampling, answer }) {
  const words = (/** @type {any} */ content) => [content].flat().map((block) => block.text ?? JSON.stringify(block)).join("\n");
  return html`<p>It wants ${sampling.model ? html`<code>${sampling.model}</code>` : "the model"} asked this, for at most ${sampling.max_tokens.toLocaleString("en")} tokens, and is told the answer:</p>
    ${sampling.system_prompt && html`<pre class="plain-text" tabindex="0" aria-label="System prompt">${sampling.system_prompt}</pre>`}
    ${sampling.messages.map((/** @type {any} */ said) => html`<pre class="plain-text" tabindex="0" aria-label=${`Message of the ${said.role}`}>${words(said.content)}</pre>`)}
    ${sampling.tools?.length > 0 && html`<p>The model may ask for tools of the server: ${sampling.tools.map((/** @type {any} */ tool) => html`<code>${tool.name ?? tool}</code> `)}</p>`}
    <${Answers} answer=${answer} accept="Ask the model" content=${() => undefined} />`;
}

/** What is filled in is kept until it is answered. @param {{id: string, place: string, schema: any, answer: (body: any) => Promise<void>}} props */
function Form({ id, place, schema, answer }) {
  const fields = Object.entries(schema.properties ?? {}).map(([name, field]) => fieldOf(name, field, schema));
  const [values, write] = useState(/** @returns {Record<string, any>} */ () => ({ ...Object.fromEntries(fields.map(({ name, start }) => [name, start])), ...stored(place, {}) }));
  const [wrong, find] = useState(/** @type {Record<string, string>} */ ({}));
  const content = () => {
    /** @type {Record<string, any>} */
    const filled = {};
    for (const field of fields) {
      const value = field.read(values[field.name]);
      if (value !== undefined) filled[field.name] = value;
    }
    return filled;
  };
  const onRefused = (/** @type {Refused} */ refused) => {
    find(Object.fromEntries(refused.errors.map(({ field, message }) => [field.replace(/^[/.]?(content[/.])?/, ""), message])));
  };
  const change = (/** @type {any} */ changed) => {
    const all = { ...values, ...changed };
    write(all);
    store(place, all);
  };
  const send = (/** @type {any} */ body) => answer(body).then(() => store(place, null));
  return html`<${Answers} answer=${send} accept="Answer" content=${content} onRefused=${onRefused}>
    ${fields.map((field) => html`<${Field} key=${field.name} form=${id} field=${field} value=${values[field.name]} wrong=${wrong[field.name] ?? ""}
      write=${(/** @type {any} */ value) => change({ [field.name]: value })} />`)}
  <//>`;
}

/** @param {{answer: (body: any) => Promise<void>, accept: string, content: () => any, onRefused?: (refused: Refused) => void, children?: any}} props */
function Answers({ answer, accept, content, onRefused, children }) {
  const [failure, fail] = useState("");
  const [isSending, sending] = useState(false);
  const send = async (/** @type {string} */ action) => {
    if (isSending) return;
    sending(true);
    fail("");
    try {
      const filled = action === "accept" ? content() : undefined;
      await answer(filled === undefined ? { action } : { action, content: filled });
    } catch (error) {
      fail(sentence(error));
      if (error instanceof Refused) onRefused?.(error);
    } finally {
      sending(false);
    }
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const problem = unread(/** @type {Element} */ (event.target));
    if (problem) fail(problem);
    else void send("accept");
  };
  return html`<form class="fields" onSubmit=${submit} novalidate>
    ${children}
    ${failure && html`<p class="failure" role="alert">${failure}</p>`}
    <div class="row"><button class="main-action" disabled=${isSending}>${accept}</button>
      <button type="button" disabled=${isSending} onClick=${() => send("decline")}>Decline</button>
      <button type="button" class="plain" disabled=${isSending} onClick=${() => send("cancel")}>Cancel</button></div>
  </form>`;
}

/**
 * @typedef {{name: string, title: string, help: string, isRequired: boolean, isNullable: boolean, start: any, read: (value: any) => any,
 *   kind: string, choices: {value: any, title: string}[], schema: any}} FieldOf
 */

/**
 * @param {string} name
 * @param {any} schema
 * @param {any} form
 * @returns {FieldOf}
 */
export function fieldOf(name, schema, form) {
  const told = schema;
  schema = withoutNull(schema);
  const isNullable = schema !== told;
  const isRequired = (form.required ?? []).includes(name);
  const field = { name, title: String(schema.title ?? name), help: String(schema.description ?? ""), isRequired, isNullable, schema };
  const several = schema.type === "array" ? choicesOf(schema.items ?? {}) : [];
  if (several.length > 0) {
    return { ...field, kind: "several", choices: several, start: schema.default ?? [],
      read: (value) => (value.length === 0 && !isRequired && schema.default === undefined ? undefined : value) };
  }
  const choices = choicesOf(schema);
  if (choices.length > 0) {
    return { ...field, kind: "one", choices, start: schema.default ?? "", read: (value) => (value === "" ? undefined : value) };
  }
  switch (schema.type) {
    case "boolean":
      return { ...field, kind: "boolean", choices, start: schema.default ?? false, read: (value) => value };
    case "number":
    case "integer":
      return { ...field, kind: "number", choices, start: schema.default ?? "", read: (value) => (value === "" ? undefined : numberIn(value)) };
    case "string":
      return { ...field, kind: "string", choices, start: schema.default ?? "", read: (value) => (value === "" ? undefined : value) };
    default:
      // A newer server may ask for what is not known here: it is written as JSON.
      return { ...field, kind: "json", choices, start: schema.default === undefined ? "" : JSON.stringify(schema.default), read: readJson };
  }
}

/** What is wrong with what is typed into a field and only the browser sees, such as `1e` in one for a number. @param {Element | null} box */
export const unread = (box) => [...(box?.querySelectorAll("input") ?? [])].find(({ validity }) => validity.badInput)?.validationMessage ?? "";

/** What a schema allows besides null, where that is one thing: it may be left empty. @param {any} schema */
function withoutNull(schema) {
  const { type, anyOf, oneOf, ...own } = schema;
  const types = (anyOf ?? oneOf ?? [type].flat().map((one) => ({ type: one }))).filter((/** @type {any} */ one) => one?.type !== "null");
  const isOne = types.length === 1 && (Array.isArray(type) || (type === undefined && (anyOf ?? oneOf)?.length > 1));
  if (!isOne) return schema;
  const field = { ...types[0], ...own };
  return field.enum ? { ...field, enum: field.enum.filter((/** @type {any} */ value) => value !== null) } : field;
}

/** @param {string} text */
const numberIn = (text) => (/^-?[1-9]\d{15,}$/.test(text) ? exact(text) : Number(text));

/** @param {string} text */
function readJson(text) {
  if (text.trim() === "") return undefined;
  try {
    return exact(text);
  } catch {
    return text;
  }
}

/** @param {any} schema */
function choicesOf(schema) {
  const titled = schema.oneOf ?? schema.anyOf;
  if (Array.isArray(titled) && titled.every((choice) => "const" in choice)) {
    return titled.map((choice) => ({ value: choice.const, title: String(choice.title ?? choice.const) }));
  }
  if (!Array.isArray(schema.enum)) return [];
  return schema.enum.map((/** @type {any} */ value, /** @type {number} */ at) => ({ value, title: String(schema.enumNames?.[at] ?? value) }));
}

/** @type {Record<string, string>} */
const inputs = { email: "email", uri: "url", date: "date", "date-time": "datetime-local" };

/** @param {{form: string, field: FieldOf, value: any, wrong: string, write: (value: any) => void}} props */
export function Field({ form, field, value, wrong, write }) {
  const id = `${form}-${useId()}`;
  const { schema } = field;
  const label = html`${field.title}${field.isRequired && html`<span class="faint"> (needed)</span>`}`;
  const described = { "aria-describedby": `${id}-more`, "aria-invalid": wrong !== "", "aria-required": field.isRequired };
  const more = html`<span class="more" id=${`${id}-more`}>${field.help && html`<span class="faint">${field.help}</span>`}
    ${wrong && html`<span class="failure">${wrong}</span>`}</span>`;
  const onInput = (/** @type {any} */ event) => write(event.target.value);
  if (field.kind === "several") {
    const toggle = (/** @type {any} */ choice) =>
      write(value.includes(choice) ? value.filter((/** @type {any} */ other) => other !== choice)
        : field.choices.map((known) => known.value).filter((known) => value.includes(known) || known === choice));
    return html`<fieldset class="field"><legend>${label}</legend>
      ${field.choices.map((choice) => html`<label class="check"><input type="checkbox" checked=${value.includes(choice.value)}
        onChange=${() => toggle(choice.value)} />${choice.title}</label>`)}${more}</fieldset>`;
  }
  if (field.kind === "boolean") {
    return html`<div class="field"><label class="check"><input type="checkbox" checked=${value} ...${described}
      onChange=${(/** @type {any} */ event) => write(event.target.checked)} />${label}</label>${more}</div>`;
  }
  if (field.kind === "one") {
    const at = field.choices.findIndex((choice) => choice.value === value);
    return html`<div class="field"><label for=${id}>${label}</label>
      <select id=${id} ...${described} value=${at < 0 ? "" : String(at)} onChange=${(/** @type {any} */ event) =>
        write(event.target.value === "" ? "" : field.choices[Number(event.target.value)]?.value)}>
        <option value="">Choose…</option>
        ${field.choices.map((choice, index) => html`<option value=${String(index)}>${choice.title}</option>`)}</select>${more}</div>`;
  }
  if (field.kind === "json" || (field.kind === "string" && (schema.maxLength ?? 0) > 200)) {
    return html`<div class="field"><label for=${id}>${label}${field.kind === "json" && html`<span class="faint"> as JSON</span>`}</label>
      <textarea id=${id} dir=${field.kind === "json" ? "ltr" : "auto"} rows="3" ...${described} value=${value} onInput=${onInput}></textarea>${more}</div>`;
  }
  const type = field.kind === "number" ? "number" : (schema.format === "date-time" ? "text" : inputs[schema.format] ?? "text");
  return html`<div class="field"><label for=${id}>${label}</label>
    <input id=${id} dir="auto" type=${type} step=${schema.type === "integer" ? 1 : "any"} min=${schema.minimum} max=${schema.maximum}
      placeholder=${schema.format === "date-time" ? "2026-01-31T10:00:00Z" : undefined} autocomplete="off" ...${described} value=${value} onInput=${onInput} />${more}</div>`;
}
