// The settings of the installation, as far as whoever looks may see them, and of this browser.

import { useEffect, useState } from "preact/hooks";
import { call, listed, part, sentence } from "../lib/api.js";
import { caller, loadModels, models } from "../lib/app.js";
import { appearance } from "../lib/appearance.js";
import { html } from "../lib/html.js";
import { ConnectForm } from "./connect.js";
import { Tokens, Users } from "./people.js";
import { Icon } from "./icon.js";
import { MenuButton } from "./root.js";
import { Rules } from "./rules.js";

export function Settings() {
  const me = caller.value;
  return html`<div class="screen">
    <header class="head"><${MenuButton} /><h1 class="title">Settings</h1></header>
    <div class="page">
      <${Appearance} />
      <${Providers} />
      <${Rules} />
      ${me && me.how !== "local" && html`<${Tokens} />`}
      ${me?.scopes?.includes("admin") && html`<${Users} />`}
    </div>
  </div>`;
}

function Appearance() {
  const { theme, size } = appearance.value;
  const set = (/** @type {string} */ name) => (/** @type {any} */ event) => (appearance.value = { ...appearance.value, [name]: event.target.value });
  return html`<section class="settings-card" aria-label="Appearance"><h2>Appearance</h2>
    <div class="inline-fields">
      <label>Colours<select value=${theme} onChange=${set("theme")}><option value="system">as the system</option><option value="light">light</option><option value="dark">dark</option></select></label>
      <label>Text<select value=${size} onChange=${set("size")}><option value="small">small</option><option value="normal">normal</option><option value="large">large</option></select></label>
    </div><p class="faint small-text">Kept in this browser.</p></section>`;
}

function Providers() {
  const [providers, list] = useState(/** @type {any[] | null} */ (null));
  const [failure, fail] = useState("");
  const [tests, tell] = useState(/** @type {{took_ms: number, failures: Record<string, string>} | "testing" | null} */ (null));
  const load = () => listed("/providers").then(list, (error) => fail(sentence(error)));
  useEffect(() => void load(), []);
  const isAdmin = caller.value?.scopes?.includes("admin");
  const remove = (/** @type {string} */ id) => call(`/providers/${part(id)}`, { method: "DELETE" }).then(load).then(loadModels).catch((error) => fail(sentence(error)));
  const test = async () => {
    tell("testing");
    const begun = performance.now();
    try {
      const { unavailable } = await call("/models");
      tell({ took_ms: Math.round(performance.now() - begun), failures: Object.fromEntries(unavailable.map((/** @type {any} */ one) => [one.provider, one.message])) });
      await loadModels();
    } catch (error) {
      fail(sentence(error));
      tell(null);
    }
  };
  const told = tests !== null && tests !== "testing" ? tests : null;
  return html`<section class="settings-card" aria-label="Providers"><div class="row between"><h2>Providers</h2>
      <button disabled=${tests === "testing"} onClick=${test}>${tests === "testing" ? "Asking…" : "Test all"}</button></div>
    ${failure && html`<p class="failure" role="alert">${failure}</p>`}
    <ul class="rows">${providers?.map(({ id, dialect, is_default, problem, origin }) => {
      const count = models.value?.filter(({ provider }) => provider === id).length ?? 0;
      const failure = told?.failures[id];
      // Nobody configured it: that it is not there is nothing to mend.
      const isAbsent = failure && !problem && origin === "local server";
      const wrong = problem ?? (isAbsent ? "" : failure);
      const found = isAbsent ? (/cannot be reached/.test(failure) ? "not running" : `not found: ${failure}`) : told ? `answers, ${count} ${count === 1 ? "model" : "models"}` : "";
      return html`<li key=${id}><span class=${`dot ${wrong ? "bad" : told && !isAbsent ? "good" : ""}`} aria-hidden="true"></span><strong><bdi>${id}</bdi></strong>
        <span class="faint">${dialect ?? ""}</span>${is_default && html`<span class="tag">answers by default</span>`}
        <span class="grow ${wrong ? "failure" : "faint"}">${wrong || found}</span>
        ${isAdmin && origin === "added" && html`<button class="plain" aria-label=${`Remove ${id}`} onClick=${() => remove(id)}>Remove</button>`}</li>`;
    })}</ul>
    ${isAdmin && html`<details class="reasoning"><summary><${Icon} name="chevron" />Add a provider by its key</summary><${ConnectForm} done=${load} /></details>`}
    ${told && html`<p class="faint small-text" role="status">All were asked for their models within ${told.took_ms} ms.</p>`}
    <p class="faint small-text">They may also be written in <code>turnwright.toml</code> under <code>[providers.NAME]</code>, with keys in the server's environment.</p></section>`;
}
