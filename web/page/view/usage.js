// What models were asked, what that cost, and what tools did.

import { useEffect, useMemo, useState } from "preact/hooks";
import { call, listed, sentence } from "../lib/api.js";
import { html } from "../lib/html.js";
import { save } from "../lib/export.js";
import { caller } from "../lib/app.js";
import {
  byDay, byModel, cachedShare, cost, lasted, mean, modelsAsCsv, short, tokens as told, toolsAsCsv, total, usesBy, workByDay,
} from "../lib/usage.js";
import { Chart } from "./chart.js";
import { MenuButton } from "./root.js";

const dayOf = (/** @type {number} */ ago) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);

export function Usage() {
  const [span, choose] = useState(30);
  const [report, know] = useState(/** @type {any} */ (null));
  const [failure, fail] = useState("");
  useEffect(() => {
    call(`/usage?from=${dayOf(span - 1)}&until=${dayOf(0)}`).then((told) => {
      know(told);
      fail("");
    }, (error) => fail(sentence(error)));
  }, [span]);
  return html`<div class="screen">
    <header class="head"><${MenuButton} /><h1 class="title">Usage</h1>
      <select class="narrow" aria-label="How far back" value=${String(span)} onChange=${(/** @type {any} */ event) => choose(Number(event.target.value))}>
        ${[7, 30, 90, 365].map((days) => html`<option value=${String(days)}>${days} days</option>`)}</select>
      </header>
    <div class="page wide-page">
      ${failure && html`<p class="failure" role="alert">${failure}</p>`}
      ${report?.budgets.map((/** @type {any} */ { id, limit, spent, resets_at }) => ["usd", "tokens"].map((unit) => limit[unit] && html`<p>Budget, ${id}: ${spent[unit]} of ${limit[unit]} ${unit} <meter aria-label=${id} max=${limit[unit]} value=${spent[unit]} />${resets_at && html` <span class="faint">begins anew <time datetime=${resets_at}>${resets_at.slice(0, 16).replace("T", " ")} UTC</time></span>`}</p>`))}
      ${report && !isUsed(report) && html`<p class="faint empty">No model was asked in these days.</p>`}
      ${report && isUsed(report) && html`<${Report} report=${report} />`}
      ${caller.value?.role === "admin" && html`<${Users} span=${span} />`}
    </div>
  </div>`;
}

const isUsed = (/** @type {any} */ report) => report.data.length > 0 || report.tools.length > 0 || report.turns.length > 0;

/** @type {[string, string, (sum: any) => number]} */
const cachedTokens = ["Read from the cache", "cached-key", ({ cached }) => cached];

/** @param {{report: any}} props */
function Report({ report }) {
  const days = useMemo(() => byDay(report), [report]);
  const models = useMemo(() => byModel(report), [report]);
  const sum = total(report);
  const names = useMemo(() => days.map(({ day }) => day), [days]);
  const series = (/** @type {[string, string, (sum: any) => number][]} */ of) => of.map(([label, colour, value]) => ({ label, colour, values: days.map(({ sum }) => value(sum)) }));
  const tokens = useMemo(() => series([...(sum.cachedOf > 0 ? [cachedTokens] : []), [sum.cachedOf > 0 ? "Read anew" : "Read", "input-key", ({ input, cached }) => input - cached],
    ["Written", "output-key", ({ output }) => output]]), [days]);
  const costs = useMemo(() => series([["Cost", "cost-key", ({ cost }) => cost]]), [days]);
  const calls = useMemo(() => series([["Model calls", "input-key", ({ calls }) => calls]]), [days]);
  const work = useMemo(() => workByDay(report, names), [report, names]);
  const made = useMemo(() => [{ label: "Went well", colour: "input-key", values: work.good }, { label: "Failed", colour: "failed-key", values: work.failed }, { label: "Denied", colour: "denied-key", values: work.denied }], [work]);
  const turns = useMemo(() => [{ label: "Ended well", colour: "input-key", values: work.turns }, { label: "Failed", colour: "failed-key", values: work.failedTurns }], [work]);
  const all = (/** @type {number[]} */ values) => values.reduce((sum, value) => sum + value, 0);
  const [bad, broken] = [all(work.failed), all(work.failedTurns)];
  const file = (/** @type {string} */ what) => `usage-${what}-${report.from}-${report.until}.csv`;
  /** @type {[string, string][]} */
  const figures = [["Turns", `${short(all(work.turns) + broken)}${broken > 0 ? `, ${short(broken)} failed` : ""}`], ["Tool calls", `${short(all(work.good) + bad + all(work.denied))}${bad > 0 ? `, ${short(bad)} failed` : ""}`],
    ["Cost", cost(sum)], ["Model calls", short(sum.calls)], ["Tokens read", sum.areTokensKnown ? short(sum.input) : "not known"], ["of which cached", cachedShare(sum)], ["Tokens written", sum.areTokensKnown ? short(sum.output) : "not known"]];
  return html`
    <dl class="figures">${figures.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    <div class="charts">
      ${sum.areTokensKnown && html`<${Chart} label="Tokens by day" days=${names} series=${tokens} show=${short} />`}
      ${sum.isCostKnown ? html`<${Chart} label="Cost by day" days=${names} series=${costs} show=${(/** @type {number} */ value) => `$${value.toFixed(value < 1 ? 3 : 2)}`} />`
        : html`<${Chart} label="Model calls by day" days=${names} series=${calls} show=${short} />`}
      <${Chart} label="Tool calls by day" days=${names} series=${made} show=${short} />
      <${Chart} label="Turns by day" days=${names} series=${turns} show=${short} />
    </div>
    <div class="row"><h2>By model</h2><button class="small" onClick=${() => save(file("models"), "text/csv", modelsAsCsv(report))}>CSV of models</button></div>
    <${Sums} first="Model" rows=${models.map(({ model, sum }) => ({ name: model, sum }))} />
    <h2>By day</h2>
    <${Sums} first="Day (UTC)" rows=${days.filter(({ sum }) => sum.calls > 0).reverse().map(({ day, sum }) => ({ name: day, sum }))} />
    ${report.tools.length > 0 && html`
      <div class="row"><h2>By tool</h2><button class="small" onClick=${() => save(file("tools"), "text/csv", toolsAsCsv(report))}>CSV of tools</button></div>
      <${Uses} first="Tool" rows=${usesBy(report, ({ tool }) => tool)} />
      <h2>By server</h2>
      <${Uses} first="Server" rows=${usesBy(report, ({ server }) => server ?? "no such tool")} />
      <h2>Turns and tool calls by day</h2>
      <${Work} days=${names} work=${work} />`}`;
}

/** @param {{first: string, rows: {name: string, uses: import("../lib/usage.js").Uses}[]}} props */
function Uses({ first, rows }) {
  return html`<div class="table" tabindex="0" role="region" aria-label=${`Usage, ${first}`}><table class="numbers"><thead><tr>
    ${[first, "Calls", "Failed", "Denied", "Time, mean", "Longest"].map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
    <tbody>${rows.map(({ name, uses }) => html`<tr key=${name}><th scope="row"><bdi>${name}</bdi></th><td>${uses.calls.toLocaleString("en")}</td>
      <td>${uses.failures.toLocaleString("en")}</td><td>${uses.denials.toLocaleString("en")}</td><td>${mean(uses)}</td><td>${uses.timed === 0 ? "" : lasted(uses.longest)}</td></tr>`)}</tbody></table></div>`;
}

/** @param {{days: string[], work: ReturnType<typeof workByDay>}} props */
function Work({ days, work }) {
  const rows = days.map((day, at) => ({ day, turns: work.turns[at] ?? 0, failedTurns: work.failedTurns[at] ?? 0, good: work.good[at] ?? 0, failed: work.failed[at] ?? 0, denied: work.denied[at] ?? 0 }));
  const used = rows.filter(({ day, ...counts }) => Object.values(counts).some((count) => count > 0)).reverse();
  return html`<div class="table" tabindex="0" role="region" aria-label="Usage, turns and tool calls by day"><table class="numbers"><thead><tr>
    ${["Day (UTC)", "Turns", "Failed", "Tool calls", "Failed", "Denied"].map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
    <tbody>${used.map(({ day, turns, failedTurns, good, failed, denied }) => html`<tr key=${day}><th scope="row">${day}</th>
      ${[turns + failedTurns, failedTurns, good + failed + denied, failed, denied].map((count) => html`<td>${count.toLocaleString("en")}</td>`)}</tr>`)}</tbody></table></div>`;
}

/** What everybody used, for admins, where there is more than one. @param {{span: number}} props */
function Users({ span }) {
  const [users, know] = useState(/** @type {any[] | null} */ (null));
  const [failure, fail] = useState("");
  useEffect(() => {
    listed(`/usage/users?from=${dayOf(span - 1)}&until=${dayOf(0)}`).then((all) => {
      know(all);
      fail("");
    }, (error) => fail(sentence(error)));
  }, [span]);
  const sum = (/** @type {any} */ { usage, model_calls }) => total({ data: [{ usage, model_calls }] });
  if (failure) return html`<p class="failure" role="alert">${failure}</p>`;
  if (!users || users.length < 2) return null;
  return html`<h2>By user</h2>
    <div class="table" tabindex="0" role="region" aria-label="Usage, User"><table class="numbers"><thead><tr>
      ${["User", "Turns", "Failed", "Model calls", "Tool calls", "Failed", "Tokens read", "Tokens written", "Cost"].map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
      <tbody>${users.map((user) => html`<tr key=${user.id}><th scope="row"><bdi>${user.name}</bdi></th>
        ${[user.turns, user.failed_turns, user.model_calls, user.tool_calls, user.failed_tool_calls].map((count) => html`<td>${count.toLocaleString("en")}</td>`)}
        <td>${told(sum(user), sum(user).input)}</td><td>${told(sum(user), sum(user).output)}</td><td>${cost(sum(user))}</td></tr>`)}</tbody></table></div>`;
}

/** @param {{first: string, rows: {name: string, sum: import("../lib/usage.js").Sum}[]}} props */
function Sums({ first, rows }) {
  return html`<div class="table" tabindex="0" role="region" aria-label=${`Usage, ${first}`}><table class="numbers"><thead><tr>
    ${[first, "Model calls", "Tokens read", "Cached", "Tokens written", "Cost"].map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
    <tbody>${rows.map(({ name, sum }) => html`<tr key=${name}><th scope="row"><bdi>${name}</bdi></th><td>${sum.calls.toLocaleString("en")}</td><td>${told(sum, sum.input)}</td>
      <td>${cachedShare(sum)}</td><td>${told(sum, sum.output)}</td><td>${cost(sum)}</td></tr>`)}</tbody></table></div>`;
}
