// Templates: markup written in JavaScript, read by the browser as it is. Whatever text is put in shows what it has in it.

import htm from "htm";
import { h } from "preact";
import { visible } from "./visible.js";

/** @param {any} child @returns {any} */
const shown = (child) => (typeof child === "string" ? visible(child) : Array.isArray(child) ? child.map(shown) : child);

/** @type {(strings: TemplateStringsArray, ...values: any[]) => any} */
export const html = htm.bind((/** @type {any} */ type, /** @type {any} */ props, /** @type {any[]} */ ...children) => {
  for (const name of ["title", "aria-label"]) {
    if (typeof type === "string" && typeof props?.[name] === "string") props[name] = visible(props[name]);
  }
  return h(type, props, ...children.map(shown));
});
