// Bars by day. What they show stands in a table beside them.

import { useEffect, useRef } from "preact/hooks";
import { html } from "../lib/html.js";

/** @typedef {{label: string, colour: string, values: number[]}} Series the colour is the name of a variable of the style */

/** @param {{label: string, days: string[], series: Series[], show: (value: number) => string}} props the series stand on one another */
export function Chart({ label, days, series, show }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  useEffect(() => {
    const { current } = box;
    if (!current) return undefined;
    /** @type {any} */
    let plot = null;
    let isGone = false;
    /** @type {ResizeObserver | null} */
    let grown = null;
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const draw = () => import("uplot").then(({ default: Plot }) => {
      if (isGone) return;
      plot?.destroy();
      plot = new Plot(/** @type {any} */ (options(current, Plot, series, show)), /** @type {any} */ (stacked(days, series)), current);
    }).catch(() => current.classList.add("failed"));
    draw().then(() => {
      if (isGone) return;
      grown = new ResizeObserver(() => plot?.setSize({ width: current.clientWidth, height: HEIGHT }));
      grown.observe(current);
    });
    dark.addEventListener("change", draw);
    return () => {
      isGone = true;
      dark.removeEventListener("change", draw);
      grown?.disconnect();
      plot?.destroy();
    };
  }, [days, series]);
  const words = series.map(({ label, values }) => `${label} ${show(values.reduce((sum, value) => sum + value, 0))}`).join(", ");
  return html`<figure class="chart"><figcaption>${label}
      <span class="legend">${series.map(({ label, colour }) => html`<span><span class=${`key ${colour}`} aria-hidden="true"></span>${label}</span>`)}</span></figcaption>
    <div class="plot" ref=${box} role="img" aria-label=${`${label}: ${words}. The table below has every day.`}></div></figure>`;
}

const HEIGHT = 190;

/**
 * The last series is drawn first and is the highest: each stands on those before it.
 * @param {string[]} days
 * @param {Series[]} series
 */
function stacked(days, series) {
  const sums = days.map(() => 0);
  const rows = series.map(({ values }) => values.map((value, at) => (sums[at] = (sums[at] ?? 0) + value)));
  return [days.map((day) => Date.parse(day) / 1_000), ...rows.reverse()];
}

/**
 * @param {HTMLElement} box
 * @param {any} Plot
 * @param {Series[]} series
 * @param {(value: number) => string} show
 */
function options(box, Plot, series, show) {
  const colour = (/** @type {string} */ name) => {
    const probe = document.createElement("span");
    probe.className = `key ${name}`;
    box.append(probe);
    const { backgroundColor } = getComputedStyle(probe);
    probe.remove();
    return backgroundColor;
  };
  const isWhole = series.every(({ values }) => values.every(Number.isInteger));
  const [ink, line] = [colour("faint-key"), colour("line-key")];
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "12px system-ui, sans-serif" };
  return {
    width: box.clientWidth, height: HEIGHT, legend: { show: false }, cursor: { show: false }, tzDate: (/** @type {number} */ seconds) => Plot.tzDate(new Date(seconds * 1_000), "Etc/UTC"),
    // Bars stand around their day.
    scales: { x: { range: (/** @type {any} */ _, /** @type {number} */ first, /** @type {number} */ last) => [first - 43_200, last + 43_200] }, y: { range: (/** @type {any} */ _, /** @type {number} */ __, /** @type {number} */ most) => [0, most === 0 ? 1 : most * 1.08] } },
    axes: [{ ...axis, grid: { show: false }, values: (/** @type {any} */ _, /** @type {number[]} */ ticks) => ticks.map((tick) => (tick % 86_400 === 0
      ? new Date(tick * 1_000).toLocaleDateString("en", { day: "numeric", month: "short", timeZone: "UTC" }) : "")) },
    { ...axis, size: 62, values: (/** @type {any} */ _, /** @type {number[]} */ ticks) => ticks.map((tick) => (isWhole && tick % 1 !== 0 ? "" : show(tick))) }],
    series: [{}, ...[...series].reverse().map((one) => ({ label: one.label, fill: colour(one.colour), width: 0, points: { show: false }, paths: Plot.paths.bars({ size: [0.7, 48], radius: 0.15 }) }))],
  };
}
