// Bars by day, drawn as SVG: colours and sizes follow the style by themselves. What they show stands in a table beside them.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { html } from "../lib/html.js";

/** @typedef {{label: string, colour: string, values: number[]}} Series the colour is the name of a class of the style */

const HEIGHT = 190;
/** What is left around the bars, in pixels. */
const [LEFT, RIGHT, TOP, BOTTOM] = [62, 24, 10, 24];
const WIDEST = 48;
/** How much room the name of a day takes. */
const DAY_WIDTH = 64;

/** @param {{label: string, days: string[], series: Series[], show: (value: number) => string}} props the series stand on one another */
export function Chart({ label, days, series, show }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [width, measure] = useState(0);
  useLayoutEffect(() => {
    const { current } = box;
    if (!current) return undefined;
    const watch = new ResizeObserver(() => measure(current.clientWidth));
    watch.observe(current);
    return () => watch.disconnect();
  }, []);
  const words = series.map(({ label, values }) => `${label} ${show(values.reduce((sum, value) => sum + value, 0))}`).join(", ");
  return html`<figure class="chart"><figcaption>${label}
      <span class="legend">${series.map(({ label, colour }) => html`<span><span class=${`key ${colour}`} aria-hidden="true"></span>${label}</span>`)}</span></figcaption>
    <div class="plot" ref=${box} role="img" aria-label=${`${label}: ${words}. The table below has every day.`}>
      ${width > 0 && html`<svg width=${width} height=${HEIGHT} aria-hidden="true"><${Bars} days=${days} series=${series} show=${show} width=${width} /></svg>`}</div></figure>`;
}

/** @param {{days: string[], series: Series[], show: (value: number) => string, width: number}} props */
function Bars({ days, series, show, width }) {
  const step = (width - LEFT - RIGHT) / Math.max(1, days.length);
  const size = Math.min(WIDEST, step * 0.7);
  const every = Math.max(1, Math.ceil(DAY_WIDTH / step));
  const sums = days.map((_, at) => series.reduce((sum, { values }) => sum + (values[at] ?? 0), 0));
  const ticks = ticksTo(Math.max(...sums, 0));
  const y = (/** @type {number} */ value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / (ticks.at(-1) ?? 1));
  const name = (/** @type {string} */ day) => new Date(day).toLocaleDateString("en", { day: "numeric", month: "short", timeZone: "UTC" });
  return html`<g>
    ${ticks.map((tick) => html`<line class="line-key" x1=${LEFT} x2=${width - RIGHT} y1=${y(tick)} y2=${y(tick)} /><text x=${LEFT - 8} y=${y(tick) + 4} text-anchor="end">${show(tick)}</text>`)}
    ${days.map((day, at) => {
      const middle = LEFT + (at + 0.5) * step;
      let below = 0;
      return html`${series.map(({ colour, values }) => {
        const value = values[at] ?? 0;
        const from = y(below);
        below += value;
        return value > 0 && html`<rect class=${colour} x=${middle - size / 2} width=${size} y=${y(below)} height=${from - y(below)} />`;
      })}${(days.length - 1 - at) % every === 0 && html`<text x=${middle} y=${HEIGHT - 6} text-anchor="middle">${name(day)}</text>`}`;
    })}</g>`;
}

/**
 * Round numbers from nothing to above the most: 1, 2 or 5 of a power of ten apart.
 * @param {number} most
 */
export function ticksTo(most) {
  if (!(most > 0)) return [0, 1];
  const power = 10 ** Math.floor(Math.log10(most / 4));
  const step = [1, 2, 5, 10].map((times) => times * power).find((step) => most / step <= 5) ?? power * 10;
  return Array.from({ length: Math.ceil(most / step - 1e-9) + 1 }, (_, at) => Number((at * step).toPrecision(6)));
}
