// The old text beside the new one.

import { useMemo, useState } from "preact/hooks";
import { diff, ends, folded } from "../lib/diff.js";
import { html } from "../lib/html.js";

const FIRST_ROWS = 200;

/** @param {{label: string, before: string | null, after: string}} props `before` is null where there was nothing */
export function Diff({ label, before, after }) {
  const rows = useMemo(() => folded(diff(before ?? "", after)), [before, after]);
  const [most, more] = useState(FIRST_ROWS);
  const isNew = before === null;
  const changes = rows.flatMap((row) => (row.kind === "change" ? [row] : []));
  const come = changes.filter((row) => row.after !== null).length;
  const gone = changes.filter((row) => row.before !== null).length;
  const told = [...(changes.length > 0 ? [`${come} ${come === 1 ? "line" : "lines"} added${isNew ? "" : `, ${gone} removed`}`] : []), ...ends(before ?? "", after)];
  return html`<div class="code">
    <div class="code-head"><span>${label}</span><span>${told.join(", ") || "nothing changes"}</span></div>
    <div class="diff" tabindex="0" role="group" aria-label=${label}>
      <table class=${isNew ? "is-new" : ""}><thead class="unseen"><tr>${!isNew && html`<th scope="col">Before</th>`}<th scope="col">After</th></tr></thead>
        <tbody>${rows.slice(0, most).map((row, at) => row.kind === "gap"
          ? html`<tr key=${at} class="gap"><td colspan=${isNew ? 1 : 2}>${row.lines} unchanged ${row.lines === 1 ? "line" : "lines"}</td></tr>`
          : html`<tr key=${at} class=${row.kind}>${!isNew && html`<${Side} text=${row.before} isOld=${true} kind=${row.kind} />`}
            <${Side} text=${row.after} isOld=${false} kind=${row.kind} /></tr>`)}</tbody></table>
    </div>
    ${rows.length > most && html`<button type="button" class="plain wide" onClick=${() => more(most + 2_000)}>Show ${rows.length - most} more rows</button>`}
  </div>`;
}

/** @param {{text: string | null, isOld: boolean, kind: string}} props */
function Side({ text, isOld, kind }) {
  if (text === null) return html`<td class=${isOld ? "old none" : "new none"}></td>`;
  const sign = kind === "same" ? "  " : isOld ? "- " : "+ ";
  return html`<td class=${`${isOld ? "old" : "new"} ${kind}`}><span class="sign">${sign}</span>${kind === "same" ? text : text.replace(/\r$/, "␍")}</td>`;
}
