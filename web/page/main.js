// The page begins here.

import { effect } from "@preact/signals";
import { render } from "preact";
import { arrive, inbox, knock, loadCaller, loadConversations, loadInbox, loadModels, open } from "./lib/app.js";
import "./lib/appearance.js";
import { html } from "./lib/html.js";
import { visible } from "./lib/visible.js";
import { Root } from "./view/root.js";

/** How often we ask what waits in other conversations. */
const LOOK_EVERY_MS = 5_000;

window.addEventListener("hashchange", arrive);
arrive();
void knock();
void loadConversations();
void loadInbox();
void loadModels();
void loadCaller();
setInterval(loadInbox, LOOK_EVERY_MS);
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState !== "visible") return;
  void loadInbox();
  void loadConversations();
});

effect(() => {
  const count = inbox.value.length;
  const title = open.value?.info.value?.title;
  document.title = `${count > 0 ? `(${count}) ` : ""}${title ? `${visible(title)} · ` : ""}Turnwright`;
});

const root = document.getElementById("root");
if (root) render(html`<${Root} />`, root);
