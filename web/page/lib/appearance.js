// How the page looks in this browser.

import { effect, signal } from "@preact/signals";
import { store, stored } from "./kept.js";

/** @type {import("@preact/signals").Signal<{theme: string, size: string}>} */
export const appearance = signal({ theme: "system", size: "normal", ...stored("appearance", {}) });

effect(() => {
  const { theme, size } = appearance.value;
  document.documentElement.dataset.theme = theme;
  document.documentElement.dataset.size = size;
  store("appearance", appearance.value);
});
