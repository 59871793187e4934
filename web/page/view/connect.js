// Connecting a model: by the key of a provider, or a server that was found on this machine.

import { useEffect, useRef, useState } from "preact/hooks";
import { call, listed, part, sentence } from "../lib/api.js";
import { announce, caller, draft, loadModels, models, open, tell, unavailable } from "../lib/app.js";
import { html } from "../lib/html.js";
import { Icon } from "./icon.js";
import { Code } from "./text.js";

/** Providers by name, and how their keys begin, the longest beginning first. @type {[string, RegExp | null][]} */
const known = [
  ["anthropic", /^sk-ant-/], ["openrouter", /^sk-or-/], ["deepseek", /^sk-[0-9a-f]{32}$/], ["openai", /^sk-/], ["gemini", /^AIza/], ["groq", /^gsk_/],
  ["xai", /^xai-/], ["huggingface", /^hf_/], ["cerebras", /^csk-/], ["fireworks", /^fw_/], ["together", /^tgp_/], ["mistral", null],
];
/** Whose key this is, as far as its form tells. @param {string} key */
const guess = (key) => known.find(([, form]) => form?.test(key))?.[0] ?? "";

const mayConnect = () => caller.value?.scopes?.includes("admin") ?? false;

/**
 * Has the server ask a provider and keep it; the conversation that is about to begin is its.
 * @param {string} id
 * @param {any} body
 */
async function connect(id, body) {
  const added = await call(`/providers/${part(id)}`, { method: "PUT", body });
  await loadModels();
  if (open.value?.info.value) await open.value.change({ model: added.model });
  else draft.value = { ...draft.value, model: added.model };
  tell(added.key_checked === false ? `Connected: ${added.model}. It lists its models without a key, so whether yours is right shows with the first message.`
    : `Connected: ${added.model} answers.`);
}

/** @param {{done?: () => void}} props */
export function ConnectForm({ done }) {
  const [key, type] = useState("");
  const [chosen, choose] = useState("");
  const [name, call_it] = useState("");
  const [address, point] = useState("");
  const [failure, fail] = useState("");
  const [isAsking, asking] = useState(false);
  const provider = chosen || guess(key.trim());
  const id = provider === "other" ? name.trim() : provider;
  const input = (/** @type {(value: string) => void} */ into) => (/** @type {any} */ event) => into(event.target.value);
  const form = useRef(/** @type {HTMLFormElement | null} */ (null));
  // What comes of it is seen by whoever pressed Enter in the key.
  useEffect(() => {
    if (isAsking || failure) form.current?.scrollIntoView({ block: "nearest" });
  }, [isAsking, failure]);
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    asking(true);
    fail("");
    announce(`Asking ${id}`);
    try {
      await connect(id, { ...(key.trim() && { api_key: key.trim() }), ...(address.trim() && { base_url: address.trim() }) });
      type("");
      done?.();
    } catch (error) {
      fail(sentence(error));
    } finally {
      asking(false);
    }
  };
  return html`<form ref=${form} class="fields" onSubmit=${send} aria-label="Connect by a key">
    <div class="inline-fields">
      <label>Key<input type="password" class="mono" autocomplete="off" spellcheck=${false} value=${key} onInput=${input(type)} placeholder="Paste it here" required=${provider !== "other"} /></label>
      <label>Provider<select required value=${provider} onChange=${input(choose)}><option value="">choose</option>${known.map(([name]) => html`<option>${name}</option>`)}<option value="other">another</option></select></label>
      ${provider === "other" && html`<label>Its name<input required value=${name} onInput=${input(call_it)} placeholder="local" autocomplete="off" /></label>`}
    </div>
    ${failure && html`<p class="failure" role="alert">Not connected: ${failure}</p>`}
    <details class="reasoning" open=${provider === "other"}><summary><${Icon} name="chevron" />At another address</summary>
      <label>Address, before the API's own path<input type="url" class="mono" required=${provider === "other"} value=${address} onInput=${input(point)} placeholder="http://127.0.0.1:8080/v1" /></label></details>
    <div class="row"><button class="main-action" disabled=${isAsking || id === ""}>${isAsking ? "Asking…" : "Test and connect"}</button>
      <span class="faint small-text">The key is kept on the server, sealed, and sent to the provider alone.</span></div>
  </form>`;
}

/** How to get a real model. */
export function Connect() {
  const [local, list] = useState(/** @type {string[]} */ ([]));
  const [failure, fail] = useState("");
  const found = [...new Set((models.value ?? []).map((model) => model.provider))].filter((name) => name !== "practice");
  useEffect(() => {
    if (found.length > 0) listed("/providers").then((all) => list(all.filter((/** @type {any} */ one) => one.origin === "local server").map((/** @type {any} */ one) => one.id)), () => {});
  }, [found.join()]);
  const here = found.filter((name) => local.includes(name));
  const other = found.filter((name) => !local.includes(name));
  return html`<section class="connect" aria-label="Connect a model">
    <h3>Connect a model</h3>
    ${other.length > 0 && html`<p>Configured: ${other.join(", ")}. Choose one of its models above.</p>`}
    ${mayConnect() ? html`
      ${here.length > 0 && html`<p>Found on this machine:</p><div class="row">${here.map((name) => html`<button key=${name}
        onClick=${() => connect(name, {}).catch((error) => fail(sentence(error)))}>Use ${name}</button>`)}</div>`}
      ${failure && html`<p class="failure" role="alert">${failure}</p>`}
      <${ConnectForm} />` : html`<p>An admin of this server can connect one.</p>`}
    ${unavailable.value.length > 0 && html`<details class="reasoning"><summary><${Icon} name="chevron" />Looked for in vain: ${unavailable.value.map(({ provider }) => provider).join(", ")}</summary>
      <ul>${unavailable.value.map(({ provider, message }) => html`<li>${provider}: ${message}</li>`)}</ul></details>`}
    <details class="reasoning"><summary><${Icon} name="chevron" />Without the page</summary>
      <${Code} language="bash" isDone=${true} label="Shell" code=${"export OPENAI_API_KEY=…      # or ANTHROPIC_API_KEY, GEMINI_API_KEY, …\nturnwright serve"} />
      <${Code} language="toml" isDone=${true} label="turnwright.toml" code=${'[providers.local]\ndialect  = "openai-chat"\nbase_url = "http://127.0.0.1:8080/v1"'} /></details>
  </section>`;
}
