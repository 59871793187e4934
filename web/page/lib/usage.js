// What models were asked and what it cost, put together for charts, tables and files.

/**
 * @typedef {{calls: number, input: number, cached: number, cachedOf: number, output: number, cost: number, isCostKnown: boolean, isCostPart: boolean, areTokensKnown: boolean}} Sum
 *   `cachedOf`: the input of which it is known how much was cached; `isCostPart`: something costs more that is not known; what no provider told counts as nothing, and is known as not known
 * @typedef {{day: string, sum: Sum}} Day
 */

/** @returns {Sum} */
const nothing = () => ({ calls: 0, input: 0, cached: 0, cachedOf: 0, output: 0, cost: 0, isCostKnown: false, isCostPart: false, areTokensKnown: false });

/**
 * @param {Sum} sum
 * @param {any} line
 */
function add(sum, { model_calls, usage }) {
  sum.calls += model_calls;
  sum.input += usage.input_tokens ?? 0;
  sum.cached += usage.cached_input_tokens ?? 0;
  if (typeof usage.cached_input_tokens === "number") sum.cachedOf += usage.input_tokens ?? 0;
  sum.output += usage.output_tokens ?? 0;
  sum.cost += usage.cost_usd ?? 0;
  sum.areTokensKnown ||= typeof usage.input_tokens === "number" || typeof usage.output_tokens === "number";
  const isCostKnown = typeof usage.cost_usd === "number";
  sum.isCostKnown ||= isCostKnown;
  sum.isCostPart ||= !isCostKnown && model_calls > 0;
}

/** Every day of the report, those without anything too. @param {any} report @returns {Day[]} */
export function byDay(report) {
  /** @type {Map<string, Sum>} */
  const days = new Map();
  for (let at = Date.parse(report.from); at <= Date.parse(report.until); at += 86_400_000) days.set(new Date(at).toISOString().slice(0, 10), nothing());
  for (const line of report.data) {
    const sum = days.get(line.day);
    if (sum) add(sum, line);
  }
  return [...days].map(([day, sum]) => ({ day, sum }));
}

/** @param {any} report @returns {{model: string, sum: Sum}[]} the most used first */
export function byModel(report) {
  /** @type {Map<string, Sum>} */
  const models = new Map();
  for (const line of report.data) {
    const sum = models.get(line.model) ?? nothing();
    models.set(line.model, sum);
    add(sum, line);
  }
  return [...models].map(([model, sum]) => ({ model, sum })).sort((a, b) => b.sum.calls - a.sum.calls);
}

/** @param {any} report */
export function total(report) {
  const sum = nothing();
  for (const line of report.data) add(sum, line);
  return sum;
}

/**
 * @typedef {{calls: number, failures: number, denials: number, timed: number, total: number, longest: number}} Uses times in milliseconds
 */

/** @returns {Uses} */
const unused = () => ({ calls: 0, failures: 0, denials: 0, timed: 0, total: 0, longest: 0 });

/**
 * What tools did, by what `key` says of a line, the most used first.
 * @param {any} report
 * @param {(line: any) => string} key
 * @returns {{name: string, uses: Uses}[]}
 */
export function usesBy(report, key) {
  /** @type {Map<string, Uses>} */
  const found = new Map();
  for (const line of report.tools) {
    const uses = found.get(key(line)) ?? unused();
    found.set(key(line), uses);
    uses.calls += line.calls;
    uses.failures += line.failures;
    uses.denials += line.denials;
    uses.timed += line.timed;
    uses.total += line.total_ms;
    uses.longest = Math.max(uses.longest, line.longest_ms);
  }
  return [...found].map(([name, uses]) => ({ name, uses })).sort((a, b) => b.uses.calls - a.uses.calls);
}

/** How many calls of tools went well and failed, and how many turns ended, on each of these days. @param {any} report @param {string[]} days */
export function workByDay(report, days) {
  const on = (/** @type {any[]} */ lines, /** @type {(line: any) => number} */ value) =>
    days.map((day) => lines.reduce((sum, line) => (line.day === day ? sum + value(line) : sum), 0));
  return {
    good: on(report.tools, ({ calls, failures, denials }) => calls - failures - denials),
    failed: on(report.tools, ({ failures }) => failures),
    denied: on(report.tools, ({ denials }) => denials),
    turns: on(report.turns, ({ turns, failures }) => turns - failures),
    failedTurns: on(report.turns, ({ failures }) => failures),
  };
}

/** How long, as people say it. @param {number} ms */
export const lasted = (ms) => (ms < 1_000 ? `${Math.round(ms)} ms` : ms < 60_000 ? `${(ms / 1_000).toFixed(1)} s` : `${(ms / 60_000).toFixed(1)} min`);

/** @param {Uses} uses */
export const mean = ({ timed, total }) => (timed === 0 ? "did not run" : lasted(total / timed));

/**
 * Lines of a file that a table program reads.
 * @param {any[][]} rows
 */
function csv(rows) {
  const cell = (/** @type {any} */ value) => (/[",\r\n]/.test(String(value ?? "")) ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? ""));
  return rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/** @param {any} report */
export function modelsAsCsv(report) {
  const columns = ["input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens", "cost_usd"];
  return csv([["day", "model", "model_calls", ...columns], ...report.data.map((/** @type {any} */ line) => [line.day, line.model, line.model_calls, ...columns.map((column) => line.usage[column])])]);
}

/** @param {any} report */
export function toolsAsCsv(report) {
  const columns = ["day", "server", "tool", "calls", "failures", "denials", "timed", "total_ms", "longest_ms"];
  return csv([columns, ...report.tools.map((/** @type {any} */ line) => columns.map((column) => line[column]))]);
}

/** @param {number} count */
export const short = (count) => new Intl.NumberFormat("en", { notation: count >= 10_000 ? "compact" : "standard", maximumFractionDigits: 1 }).format(count);

/**
 * @param {Sum} sum
 * @param {number} count
 */
export const tokens = ({ areTokensKnown }, count) => (areTokensKnown ? count.toLocaleString("en") : "not known");

/** @param {Sum} sum */
export const cost = ({ cost, isCostKnown, isCostPart }) => (isCostKnown ? `${isCostPart ? "at least " : ""}$${cost.toFixed(cost < 1 ? 4 : 2)}` : "not known");

/** @param {Sum} sum */
export const cachedShare = ({ cached, cachedOf }) => (cachedOf === 0 ? "not known" : `${Math.round((100 * cached) / cachedOf)} %`);
