// Files that the server keeps: where they are, and parts of them.

import { refusal } from "./api.js";

const ID = /^(?:artifact:|\/api\/v1\/artifacts\/)(art_[0-9a-f]{32})$/;

/** The id of the file that an address in a result or in a message names, where it names one. @param {unknown} uri */
export function artifactOf(uri) {
  return typeof uri === "string" ? ID.exec(uri)?.[1] ?? null : null;
}

/** Where a file is. @param {string} id */
export const artifactAddress = (id) => `api/v1/artifacts/${id}`;

/**
 * A part of a file of text. A character that is cut at its beginning belongs to the part before, one that is cut at its end
 * to this one.
 * @param {string} id @param {number} from the first byte @param {number} count how many bytes @param {AbortSignal} [signal]
 * @returns {Promise<{text: string, to: number, total: number}>}
 */
export async function readPart(id, from, count, signal) {
  // Three more than asked for: as much of a character as may be missing.
  const response = await fetch(artifactAddress(id), { headers: { range: `bytes=${from}-${from + count + 2}` }, signal: signal ?? null });
  if (!response.ok) throw await refusal(response);
  const total = Number(response.headers.get("content-range")?.split("/")[1] ?? 0);
  return { ...textOf(new Uint8Array(await response.arrayBuffer()), from, count), total };
}

/**
 * The characters that begin within the first `count` bytes.
 * @param {Uint8Array} bytes @param {number} from where they are in their file @param {number} count
 */
export function textOf(bytes, from, count) {
  const isInside = (/** @type {number} */ at) => ((bytes[at] ?? 0) & 0xc0) === 0x80;
  let begin = 0;
  while (from > 0 && begin < Math.min(3, bytes.length) && isInside(begin)) begin += 1;
  let end = Math.min(count, bytes.length);
  while (end < bytes.length && isInside(end)) end += 1;
  return { text: new TextDecoder().decode(bytes.subarray(begin, end)), to: from + Math.min(count, bytes.length) };
}
