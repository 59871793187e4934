// What models were asked and what it cost, put together for charts, tables and files.

/**
 * @typedef {{calls: number, input: number, cached: number, output: number, cost: number, isCostKnown: boolean, areTokensKnown: boolean}} Sum what no provider told counts as nothing, and is known as not known
 * @typedef {{day: string, sum: Sum}} Day
 */

/** @returns {Sum} */
const nothing = () => ({ calls: 0, input: 0, cached: 0, output: 0, cost: 0, isCostKnown: false, areTokensKnown: false });

/**
 * @param {Sum} sum
 * @param {any} line
 */
function add(sum, { model_calls, usage }) {
  sum.calls += model_calls;
  sum.input += usage.input_tokens ?? 0;
  sum.cached += usage.cached_input_tokens ?? 0;
  sum.output += usage.output_tokens ?? 0;
  sum.cost += usage.cost_usd ?? 0;
  sum.areTokensKnown ||= typeof usage.input_tokens === "number" || typeof usage.output_tokens === "number";
  sum.isCostKnown ||= usage.cost_usd !== null && usage.cost_usd !== undefined;
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

/** @param {any} report */
export function asCsv(report) {
  const columns = ["input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens", "cost_usd"];
  const cell = (/** @type {any} */ value) => (/[",\n]/.test(String(value ?? "")) ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? ""));
  const rows = report.data.map((/** @type {any} */ line) => [line.day, line.model, line.model_calls, ...columns.map((column) => line.usage[column])]);
  return [["day", "model", "model_calls", ...columns], ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/** @param {number} count */
export const short = (count) => new Intl.NumberFormat("en", { notation: count >= 10_000 ? "compact" : "standard", maximumFractionDigits: 1 }).format(count);

/**
 * @param {Sum} sum
 * @param {number} count
 */
export const tokens = ({ areTokensKnown }, count) => (areTokensKnown ? count.toLocaleString("en") : "not known");

/** @param {Sum} sum */
export const cost = ({ cost, isCostKnown }) => (isCostKnown ? `$${cost.toFixed(cost < 1 ? 4 : 2)}` : "not known");

/** @param {Sum} sum */
export const cachedShare = ({ cached, input }) => (input === 0 ? "not known" : `${Math.round((100 * cached) / input)} %`);
