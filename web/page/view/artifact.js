// What a tool gave back that is too large for a message, or is neither text nor image: read in parts, or saved.

import { useEffect, useState } from "preact/hooks";
import { sentence } from "../lib/api.js";
import { artifactAddress, readPart } from "../lib/artifact.js";
import { html } from "../lib/html.js";

/** What is shown at once, in bytes. */
const PART = 32_768;

/** @param {{id: string, name: string, kind: string, bytes?: number | undefined}} props */
export function Artifact({ id, name, kind, bytes }) {
  const [from, go] = useState(/** @type {number | null} */ (null));
  const isText = kind.startsWith("text/") || kind === "application/json";
  return html`<div class="artifact">
    <p><bdi>${name}</bdi> <span class="faint">${kind}, ${bytes} bytes</span>
      ${isText && html` <button type="button" onClick=${() => go(from === null ? 0 : null)}>${from === null ? "Read it" : "Hide it"}</button>`}
      ${" "}<a href=${artifactAddress(id)} download=${name}>Save</a></p>
    ${from !== null && html`<${Part} id=${id} name=${name} from=${from} go=${go} />`}
  </div>`;
}

/** One part, and the way to the others. @param {{id: string, name: string, from: number, go: (from: number) => void}} props */
function Part({ id, name, from, go }) {
  const [shown, show] = useState(/** @type {{text: string, to: number, total: number} | null} */ (null));
  useEffect(() => {
    const stop = new AbortController();
    readPart(id, from, PART, stop.signal).then(show, (error) => { if (!stop.signal.aborted) show({ text: sentence(error), to: from, total: 0 }); });
    return () => stop.abort();
  }, [id, from]);
  if (!shown) return null;
  const { text, to, total } = shown;
  const last = Math.max(0, Math.ceil(total / PART) - 1) * PART;
  return html`<div>
    <pre class="plain-text" tabindex="0" aria-label=${`Part of ${name}`}>${text}</pre>
    ${total > PART && html`<p role="group" aria-label="Parts">
      <button type="button" disabled=${from === 0} onClick=${() => go(Math.max(0, from - PART))}>Back</button>${" "}
      <button type="button" disabled=${from >= last} onClick=${() => go(from + PART)}>On</button>${" "}
      <button type="button" disabled=${from >= last} onClick=${() => go(last)}>Last</button>
      <span aria-live="polite"> ${from} to ${to} of ${total} bytes</span></p>`}
  </div>`;
}
