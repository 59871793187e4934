// Tokens of one's own, and, for admins, the users.

import { useEffect, useState } from "preact/hooks";
import { call, listed, part, sentence } from "../lib/api.js";
import { announce, caller, finishDeleting, tell } from "../lib/app.js";
import { html } from "../lib/html.js";
import { leave } from "../lib/kept.js";
import { Copy } from "./text.js";

const SCOPES = ["read", "chat", "approve", "admin"];
const day = (/** @type {string | null | undefined} */ moment) => (moment ? moment.slice(0, 10) : "");

/** A secret that is shown this once. @param {{text: string, what: string, about: string}} props */
function Secret({ text, what, about }) {
  return html`<div class="secret" role="status"><p>${about}</p><code>${text}</code> <${Copy} text=${text} what=${what} /></div>`;
}

export function Tokens() {
  const [tokens, list] = useState(/** @type {any[] | null} */ (null));
  const [made, show] = useState("");
  const [failure, fail] = useState("");
  const [form, write] = useState({ name: "", days: "90", scopes: ["read", "chat", "approve"] });
  const load = () => listed("/tokens").then(list, (error) => fail(sentence(error)));
  useEffect(() => void load(), []);
  const may = (/** @type {string} */ scope) => caller.value?.scopes?.includes(scope);
  const make = async (/** @type {Event} */ event) => {
    event.preventDefault();
    fail("");
    try {
      const body = { name: form.name.trim(), scopes: form.scopes.filter(may), expires_in_days: form.days === "" ? null : Number(form.days) };
      const token = await call("/tokens", { body });
      show(token.secret);
      await load();
    } catch (error) {
      fail(sentence(error));
    }
  };
  const [sure, ask] = useState("");
  const revoke = async (/** @type {string} */ id) => {
    const isOwn = id === caller.value?.token_id;
    if (isOwn && sure !== id) return ask(id);
    try {
      if (isOwn) await finishDeleting();
      await call(`/tokens/${part(id)}`, { method: "DELETE" });
      if (isOwn) return leave();
      announce("Revoked");
    } catch (error) {
      tell(sentence(error));
    }
    await load();
  };
  const toggle = (/** @type {string} */ scope) => write({ ...form, scopes: form.scopes.includes(scope) ? form.scopes.filter((other) => other !== scope) : [...form.scopes, scope] });
  return html`<section class="settings-card" aria-label="Your tokens"><h2>Your tokens</h2>
    ${failure && html`<p class="failure" role="alert">${failure}</p>`}
    ${made && html`<${Secret} text=${made} what="token" about="Your new token. It is shown this once." />`}
    <ul class="rows">${tokens?.map((token) => html`<li key=${token.id}><strong><bdi>${token.name}</bdi></strong><code class="faint">${token.id}</code>${token.id === caller.value?.token_id && html`<span class="tag">this session</span>`}<span class="grow faint">${token.scopes.join(", ")} · made ${day(token.created_at)}${token.expires_at ? ` · ends ${day(token.expires_at)}` : ""}${token.last_used_at ? ` · used ${day(token.last_used_at)}` : " · never used"}</span>
      <button class="small danger" aria-label=${`Revoke ${token.name} ${token.id}${sure === token.id ? " and sign out" : ""}`} onClick=${() => revoke(token.id)}>Revoke${sure === token.id && " and sign out"}</button></li>`)}</ul>
    <form onSubmit=${make} class="inline-fields" aria-label="Make a token"><label>Name<input required value=${form.name} onInput=${(/** @type {any} */ event) => write({ ...form, name: event.target.value })} placeholder="laptop" /></label>
      <label>Ends after days<input type="number" min="1" value=${form.days} onInput=${(/** @type {any} */ event) => write({ ...form, days: event.target.value })} placeholder="never" /></label>
      <fieldset class="field"><legend>May</legend><div class="row">${SCOPES.filter(may).map((scope) => html`<label class="check"><input type="checkbox" checked=${form.scopes.includes(scope)} onChange=${() => toggle(scope)} />${scope}</label>`)}</div></fieldset>
      <button>Make a token</button></form></section>`;
}

export function Users() {
  const [users, list] = useState(/** @type {any[] | null} */ (null));
  const [made, show] = useState(/** @type {{text: string, name: string} | null} */ (null));
  const [failure, fail] = useState("");
  const [name, write] = useState("");
  const load = () => listed("/users").then(list, (error) => fail(sentence(error)));
  useEffect(() => void load(), []);
  const act = async (/** @type {() => Promise<any>} */ work) => {
    fail("");
    try {
      await work();
    } catch (error) {
      fail(sentence(error));
    }
    await load();
  };
  const change = (/** @type {any} */ user, /** @type {any} */ body) => act(() => call(`/users/${part(user.id)}`, { method: "PATCH", body }));
  const link = (/** @type {any} */ user) => act(async () => {
    const { path } = await call(`/users/${part(user.id)}/links`, { body: {} });
    show({ text: new URL(path, location.href).href, name: user.name });
  });
  const add = (/** @type {Event} */ event) => {
    event.preventDefault();
    void act(async () => {
      await call("/users", { body: { name: name.trim() } });
      write("");
    });
  };
  return html`<section class="settings-card" aria-label="Users"><h2>Users</h2>
    ${failure && html`<p class="failure" role="alert">${failure}</p>`}
    ${made && html`<${Secret} text=${made.text} what="link" about=${`This signs a browser in as ${made.name}, once, within 15 minutes.`} />`}
    <ul class="rows">${users?.map((user) => html`<li key=${user.id}><strong class="grow"><bdi>${user.name}</bdi>${!user.enabled && html` <span class="tag bad">kept out</span>`}</strong>
      <select class="narrow" aria-label=${`Role of ${user.name}`} value=${user.role} onChange=${(/** @type {any} */ event) => change(user, { role: event.target.value })}><option>admin</option><option>member</option></select>
      <button class="small" onClick=${() => link(user)} aria-label=${`Link for ${user.name}`}>Link</button>
      <button class="small" onClick=${() => change(user, { enabled: !user.enabled })} aria-label=${`${user.enabled ? "Keep out" : "Let in"} ${user.name}`}>${user.enabled ? "Keep out" : "Let in"}</button></li>`)}</ul>
    <form onSubmit=${add} class="inline-fields" aria-label="Add a user"><label>Name<input required value=${name} onInput=${(/** @type {any} */ event) => write(event.target.value)} placeholder="anna" autocomplete="off" /></label><button>Add a user</button></form></section>`;
}
