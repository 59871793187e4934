// Which tools a conversation offers.

import { useEffect, useRef, useState } from "preact/hooks";
import { listed, sentence } from "../lib/api.js";
import { draft } from "../lib/app.js";
import { html } from "../lib/html.js";
import { Icon } from "./icon.js";

/** @param {{conversation: any, store: (change: any) => Promise<void>}} props */
export function ToolsButton({ conversation, store }) {
  const [isOpen, open] = useState(false);
  useEffect(() => {
    const onCommand = (/** @type {any} */ event) => event.detail === "tools" && open(true);
    window.addEventListener("command", onCommand);
    return () => window.removeEventListener("command", onCommand);
  }, []);
  return html`<button class="plain" aria-haspopup="dialog" onClick=${() => open(true)}><${Icon} name="tools" />Tools</button>
    ${isOpen && html`<${Tools} conversation=${conversation} store=${store} close=${() => open(false)} />`}`;
}

/** @param {{conversation: any, store: (change: any) => Promise<void>, close: () => void}} props */
function Tools({ conversation, store, close }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const [tools, list] = useState(/** @type {any[] | null} */ (null));
  const [failure, fail] = useState("");
  /** As they were stored last, and as somebody wants them. */
  const lists = useRef(/** @type {any[][]} */ ([]));
  const [q, search] = useState("");
  /** As it is at this moment, with the `*` that a list which only keeps out begins with. @returns {string[] | undefined} */
  const named = () => {
    const names = /** @type {string[] | null | undefined} */ ((conversation ? conversation.info.value : draft.value)?.tools)?.filter(Boolean);
    return names?.length && names.every((name) => name.startsWith("!")) ? ["*", ...names] : names;
  };
  useEffect(() => {
    dialog.current?.showModal();
    const asked = listed(conversation ? `${conversation.path}/tools/available` : "/tools");
    asked.then((all) => {
      const lastFor = (/** @type {string} */ id) => (named() ?? ["*"]).findLast((name) => name === "*" || name.replace("!", "") === id);
      const there = all.map((/** @type {any} */ tool) => ({ enabled: !/^!|^$/.test(lastFor(tool.id) ?? ""), ...tool }));
      lists.current = [there, there];
      list(there);
    }, (error) => fail(sentence(error)));
  }, []);
  const choose = async (/** @type {(tool: any) => boolean} */ isOffered, isAnew = false) => {
    const chosen = (tools ?? []).map((tool) => ({ ...tool, enabled: isOffered(tool) }));
    const before = isAnew ? [] : (tools ?? []);
    list((lists.current[1] = chosen));
    fail("");
    try {
      // The last that fits decides: of those that stay as they are nothing is said, there may be thousands, and what is said of those that
      // are not there at the moment stays.
      const offered = before.flatMap(({ id, enabled }) => (enabled ? [id] : []));
      const had = new Set(offered);
      const changed = new Map(chosen.filter(({ id, enabled }) => enabled !== had.has(id)).map(({ id, enabled }) => [id, (enabled ? "" : "!") + id]));
      const names = isAnew ? [] : (named() ?? (offered.length < before.length ? offered : ["*"]));
      const others = names.filter((name) => !changed.has(name.replace("!", "")));
      const isAll = chosen.every(({ enabled }) => enabled) && others.every((name) => !name.startsWith("!"));
      const next = [...others, ...changed.values()];
      // Without one that lets in it would be all but those.
      await store({ tools: isAll ? null : next.some((name) => !name.startsWith("!")) ? next : [] });
      lists.current[0] = chosen;
    } catch (error) {
      fail(sentence(error));
    }
    // What is shown once nothing is on its way is what is stored.
    if (lists.current[1] === chosen) list(lists.current[0] ?? []);
  };
  const shown = (tools ?? []).filter((tool) => `${tool.id} ${tool.title ?? ""} ${tool.description}`.toLowerCase().includes(q.toLowerCase()));
  const chooseShown = (/** @type {boolean} */ isOffered) =>
    choose((tool) => (shown.includes(tool) ? isOffered : tool.enabled), q === "");
  const servers = [...new Set(shown.map((tool) => tool.server_id))];
  return html`<dialog ref=${dialog} onClose=${close} class="wide-dialog" aria-label="Tools of this conversation">
    <div class="dialog">
      <div class="row between"><h2>Tools of this conversation</h2><button class="plain small" aria-label="Close" onClick=${() => dialog.current?.close()}><${Icon} name="close" /></button></div>
      <div class="row"><input type="search" aria-label="Search tools" placeholder="Search" value=${q} onInput=${(/** @type {any} */ event) => search(event.target.value)} />
        <button onClick=${() => chooseShown(true)}>All</button><button onClick=${() => chooseShown(false)}>None</button></div>
      ${failure && html`<p class="failure" role="alert">${failure}</p>`}
      ${tools === null && !failure && html`<p class="faint">Asking the servers…</p>`}
      <div class="tool-list">
      ${servers.map((server) => html`<fieldset key=${server}><legend>${server}</legend>
        ${shown.filter((tool) => tool.server_id === server).map((tool) => html`<label class="check tool-choice" key=${tool.id}>
          <input type="checkbox" checked=${tool.enabled} onChange=${() => choose((other) => (other.id === tool.id ? !tool.enabled : other.enabled))} />
          <span><strong><bdi>${tool.title ?? tool.tool_name}</bdi></strong> ${tool.read_only && html`<span class="tag">only reads</span>`}
          <span class="faint about">${tool.description.slice(0, 300)}</span></span></label>`)}
      </fieldset>`)}
      ${tools !== null && shown.length === 0 && html`<p class="faint">${q ? "Nothing found." : "No tool is offered."}</p>`}
      </div>
    </div>
  </dialog>`;
}
