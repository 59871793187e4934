// Tells by the browser's own notifications what came to wait while nobody looked at the page.

import { effect, signal } from "@preact/signals";
import { inbox, tell, titleOf } from "../lib/app.js";
import { html } from "../lib/html.js";

/** @returns {string} */
const permission = () => ("Notification" in window ? Notification.permission : "unsupported");
const permitted = signal(permission());

/** What was there to see, or was told. @type {Set<string>} */
let known = new Set();

effect(() => {
  const waits = inbox.value;
  const before = known;
  const name = (/** @type {any} */ wait) => `${wait.conversation_id} ${wait.id}`;
  known = new Set(waits.map(name));
  if (permission() !== "granted" || document.visibilityState === "visible") return;
  const fresh = waits.filter((wait) => !before.has(name(wait)));
  for (const id of new Set(fresh.map((wait) => wait.conversation_id))) void show(id, fresh.filter((wait) => wait.conversation_id === id));
});

/**
 * @param {string} id
 * @param {any[]} waits
 */
async function show(id, waits) {
  const title = (await titleOf(id).catch(() => "")) || "A conversation";
  const what = waits.map((wait) => wait.name).join(", ");
  try {
    // The tag lets one stand for the same conversation in several windows.
    const shown = new Notification("Turnwright waits for you", { body: `${title}\n${what}`, tag: `turnwright ${id}` });
    shown.onclick = () => {
      window.focus();
      location.hash = `#/c/${encodeURIComponent(id)}`;
      shown.close();
    };
  } catch {
    // Some browsers show them from service workers alone; the window's title counts what waits in any case.
  }
}

/** Asks for the permission, when a person wants it. */
export function NotifyMe() {
  if (permitted.value !== "default") return null;
  const ask = async () => {
    permitted.value = await Notification.requestPermission();
    if (permitted.value === "granted") tell("You are told when something waits for you and this page is not in view.");
  };
  return html`<button class="plain small" onClick=${ask}>Notify me of what waits</button>`;
}
