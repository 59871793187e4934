// Drawn signs. They only accompany words.

import { html } from "../lib/html.js";

/** @type {Record<string, string>} */
const shapes = {
  plus: "M12 5v14M5 12h14",
  menu: "M4 7h16M4 12h16M4 17h16",
  send: "M12 19V6M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  tools: "M14 7a4 4 0 0 0-5 5l-5 5 3 3 5-5a4 4 0 0 0 5-5l-2 2-3-3z",
  inbox: "M4 13l3-8h10l3 8v6H4zM4 13h5l1 3h4l1-3h5",
  server: "M5 5h14v6H5zM5 13h14v6H5zM8 8h.01M8 16h.01",
  edit: "M5 19h3l10-10-3-3L5 16z",
  trash: "M5 7h14M10 7V5h4v2M7 7l1 12h8l1-12",
  copy: "M9 9h10v10H9zM5 15V5h10",
  retry: "M5 12a7 7 0 1 0 2-5M5 4v4h4",
  close: "M6 6l12 12M18 6L6 18",
  down: "M12 5v13M6 12l6 6 6-6",
  more: "M4.5 12h1M11.5 12h1M18.5 12h1",
  pin: "M9 4h6l-1 6 3 3H7l3-3zM12 13v7",
  chart: "M5 19V5M5 19h14M9 16v-4M13 16V8M17 16v-6",
  settings: "M5 7h8M17 7h2M5 17h2M11 17h8M15 5v4M9 15v4",
  clock: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16M12 8v4l3 2",
  clip: "M8 12l5-5a2.8 2.8 0 0 1 4 4l-7 7a4.2 4.2 0 0 1-6-6l7-7",
  chevron: "M9 6l6 6-6 6",
};

/** @param {{name: string}} props */
export function Icon({ name }) {
  return html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path d=${shapes[name]} /></svg>`;
}
