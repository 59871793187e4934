// What axe-core finds wrong with what is shown.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** @param {any} page @param {object} [options] for axe-core */
export async function violations(page, options = {}) {
  // The page's policy lets no script in that is not its own; the test's comes through the debugger.
  await page.evaluate(axe);
  const { violations } = await page.evaluate((options) => globalThis.axe.run(document, { resultTypes: ["violations"], ...options }), options);
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(" | ")}`);
}
