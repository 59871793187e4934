// What models were asked and what that cost.

import { useEffect, useMemo, useState } from "preact/hooks";
import { call, sentence } from "../lib/api.js";
import { html } from "../lib/html.js";
import { visible } from "../lib/markdown.js";
import { save } from "../lib/export.js";
import { asCsv, byDay, byModel, cachedShare, cost, short, tokens as told, total } from "../lib/usage.js";
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
      <button disabled=${!report || report.data.length === 0} onClick=${() => save(`usage-${report.from}-${report.until}.csv`, "text/csv", asCsv(report))}>CSV</button></header>
    <div class="page wide-page">
      ${failure && html`<p class="failure" role="alert">${failure}</p>`}
      ${report?.data.length === 0 && html`<p class="faint empty">No model was asked in these days.</p>`}
      ${report?.data.length > 0 && html`<${Report} report=${report} />`}
    </div>
  </div>`;
}

/** @param {{report: any}} props */
function Report({ report }) {
  const days = useMemo(() => byDay(report), [report]);
  const models = useMemo(() => byModel(report), [report]);
  const sum = total(report);
  const names = useMemo(() => days.map(({ day }) => day), [days]);
  const series = (/** @type {[string, string, (sum: any) => number][]} */ of) => of.map(([label, colour, value]) => ({ label, colour, values: days.map(({ sum }) => value(sum)) }));
  const tokens = useMemo(() => series([["Read from the cache", "cached-key", ({ cached }) => cached], ["Read anew", "input-key", ({ input, cached }) => input - cached],
    ["Written", "output-key", ({ output }) => output]]), [days]);
  const costs = useMemo(() => series([["Cost", "cost-key", ({ cost }) => cost]]), [days]);
  const calls = useMemo(() => series([["Model calls", "input-key", ({ calls }) => calls]]), [days]);
  /** @type {[string, string][]} */
  const figures = [["Cost", cost(sum)], ["Model calls", short(sum.calls)], ["Tokens read", sum.areTokensKnown ? short(sum.input) : "not known"], ["of which cached", cachedShare(sum)], ["Tokens written", sum.areTokensKnown ? short(sum.output) : "not known"]];
  return html`
    <dl class="figures">${figures.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    <div class="charts">
      ${sum.areTokensKnown && html`<${Chart} label="Tokens by day" days=${names} series=${tokens} show=${short} />`}
      ${sum.isCostKnown ? html`<${Chart} label="Cost by day" days=${names} series=${costs} show=${(/** @type {number} */ value) => `$${value.toFixed(value < 1 ? 3 : 2)}`} />`
        : html`<${Chart} label="Model calls by day" days=${names} series=${calls} show=${short} />`}
    </div>
    <h2>By model</h2>
    <${Sums} first="Model" rows=${models.map(({ model, sum }) => ({ name: model, sum }))} />
    <h2>By day</h2>
    <${Sums} first="Day (UTC)" rows=${days.filter(({ sum }) => sum.calls > 0).reverse().map(({ day, sum }) => ({ name: day, sum }))} />`;
}

/** @param {{first: string, rows: {name: string, sum: import("../lib/usage.js").Sum}[]}} props */
function Sums({ first, rows }) {
  return html`<div class="table" tabindex="0" role="region" aria-label=${`Usage, ${first}`}><table class="numbers"><thead><tr>
    ${[first, "Model calls", "Tokens read", "Cached", "Tokens written", "Cost"].map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
    <tbody>${rows.map(({ name, sum }) => html`<tr key=${name}><th scope="row"><bdi>${visible(name)}</bdi></th><td>${sum.calls.toLocaleString("en")}</td><td>${told(sum, sum.input)}</td>
      <td>${cachedShare(sum)}</td><td>${told(sum, sum.output)}</td><td>${cost(sum)}</td></tr>`)}</tbody></table></div>`;
}
