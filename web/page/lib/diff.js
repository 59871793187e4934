// What is other between two texts, line by line.

/**
 * @typedef {{kind: "same" | "change", before: string | null, after: string | null, number: number}
 *   | {kind: "gap", lines: number}} Row a line of one or both texts, or lines that are left out; `number` is the line's in the newer
 *   text, or in the older one where it goes
 */

/** Texts that differ in more are told as one that goes and one that comes. */
const MOST_PAIRS = 1_000_000;

/** How the lines of a text end, where all end alike. @param {string} text */
const endOf = (text) => (!text.includes("\r\n") ? text.includes("\n") && "LF" : !/(^|[^\r])\n/.test(text) && "CRLF");

/**
 * Where all lines end otherwise: how they did and how they do.
 * @param {string} before
 * @param {string} after
 */
function otherEnds(before, after) {
  const [old, now] = [endOf(before), endOf(after)];
  return old && now && old !== now ? [old, now] : null;
}

/**
 * What is other where lines end, which no line shows.
 * @param {string} before
 * @param {string} after
 */
export function ends(before, after) {
  const other = otherEnds(before, after);
  const [was, is] = [before, after].map((text) => text.endsWith("\n"));
  return [
    ...(other ? [`line ends change from ${other[0]} to ${other[1]}`] : []),
    ...(before && after && was !== is ? [was ? "no line break at the end any more" : "a line break at the end is added"] : []),
  ];
}

/** @param {string} text */
const linesOf = (text) => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));

/**
 * @param {string} before
 * @param {string} after
 * @returns {Row[]} every line
 */
export function diff(before, after) {
  const isOther = otherEnds(before, after) !== null;
  const [old = [], now = []] = [before, after].map((text) => linesOf(isOther ? text.replaceAll("\r\n", "\n") : text));
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let end = 0;
  while (end < old.length - start && end < now.length - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end += 1;
  const rows = [];
  for (let at = 0; at < start; at += 1) rows.push(same(now[at] ?? "", at));
  rows.push(...middle(old.slice(start, old.length - end), now.slice(start, now.length - end), start));
  for (let at = end; at > 0; at -= 1) rows.push(same(now[now.length - at] ?? "", now.length - at));
  return rows;
}

/**
 * @param {string} line
 * @param {number} at
 * @returns {Row}
 */
const same = (line, at) => ({ kind: "same", before: line, after: line, number: at + 1 });

/**
 * @param {string[]} old
 * @param {string[]} now
 * @param {number} from lines before them
 */
function middle(old, now, from) {
  /** @type {Row[]} */
  const rows = [];
  /** @type {string[]} */
  let gone = [];
  /** @type {[string, number][]} */
  let come = [];
  const flush = () => {
    for (let at = 0; at < Math.max(gone.length, come.length); at += 1) {
      rows.push({ kind: "change", before: gone[at] ?? null, after: come[at]?.[0] ?? null, number: come[at]?.[1] ?? from + 1 });
    }
    gone = [];
    come = [];
  };
  const shared = old.length * now.length > MOST_PAIRS ? null : longest(old, now);
  let i = 0;
  let j = 0;
  while (i < old.length || j < now.length) {
    const width = now.length + 1;
    if (shared && i < old.length && j < now.length && old[i] === now[j]) {
      flush();
      rows.push(same(now[j] ?? "", from + j));
      i += 1;
      j += 1;
    } else if (j >= now.length || (i < old.length && (!shared || (shared[(i + 1) * width + j] ?? 0) >= (shared[i * width + j + 1] ?? 0)))) {
      gone.push(old[i] ?? "");
      i += 1;
    } else {
      come.push([now[j] ?? "", from + j + 1]);
      j += 1;
    }
  }
  flush();
  return rows;
}

/**
 * How many lines are common from each pair of places on.
 * @param {string[]} old
 * @param {string[]} now
 */
function longest(old, now) {
  const width = now.length + 1;
  const table = new Uint16Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      table[i * width + j] = old[i] === now[j] ? (table[(i + 1) * width + j + 1] ?? 0) + 1
        : Math.max(table[(i + 1) * width + j] ?? 0, table[i * width + j + 1] ?? 0);
    }
  }
  return table;
}

/**
 * Leaves out what stays the same, but for a few lines around what does not.
 * @param {Row[]} rows
 * @param {number} [around]
 * @returns {Row[]}
 */
export function folded(rows, around = 3) {
  const near = new Uint8Array(rows.length);
  rows.forEach((row, at) => {
    if (row.kind === "same") return;
    near.fill(1, Math.max(0, at - around), at + around + 1);
  });
  /** @type {Row[]} */
  const shown = [];
  rows.forEach((row, at) => {
    const last = shown.at(-1);
    if (near[at] === 1) shown.push(row);
    else if (last?.kind === "gap") last.lines += 1;
    else shown.push({ kind: "gap", lines: 1 });
  });
  return shown;
}
