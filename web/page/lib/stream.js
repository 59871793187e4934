// Server-sent events over fetch, which unlike EventSource says why it ended.

import { Refused, refusal } from "./api.js";

/** The server says something at least every 15 s; a connection that is silent for longer is dead. */
const SILENCE_MS = 40_000;
const LOOK_EVERY_MS = 5_000;

/**
 * Reads events until the stream ends. Connections that fell asleep are given up.
 * @param {string} path
 * @param {(data: string, id: string) => void} onEvent
 * @param {AbortSignal} signal
 * @returns {Promise<"ended" | "nothing">} "nothing" where the server has nothing to tell
 */
export async function follow(path, onEvent, signal) {
  const given_up = new AbortController();
  const stop = () => given_up.abort();
  signal.addEventListener("abort", stop);
  let heard = Date.now();
  const watch = setInterval(() => {
    if (Date.now() - heard > SILENCE_MS) stop();
  }, LOOK_EVERY_MS);
  try {
    const response = await fetch(path, {
      headers: { accept: "text/event-stream" },
      signal: given_up.signal,
      cache: "no-store",
    });
    if (response.status === 204) return "nothing";
    if (!response.ok || !response.body) throw await refusal(response);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const split = splitter(onEvent);
    for (;;) {
      const { done, value } = await reader.read();
      heard = Date.now();
      if (done) return "ended";
      split(value);
    }
  } catch (error) {
    if (signal.aborted || error instanceof Refused) throw error;
    throw new Refused(0, "The connection to the server was lost.");
  } finally {
    clearInterval(watch);
    signal.removeEventListener("abort", stop);
    stop();
  }
}

/**
 * Puts events together from pieces that are cut anywhere.
 * @param {(data: string, id: string) => void} onEvent
 */
function splitter(onEvent) {
  let rest = "";
  let id = "";
  /** @type {string[]} */
  let data = [];
  return (/** @type {string} */ piece) => {
    rest += piece;
    let from = 0;
    for (;;) {
      const end = rest.indexOf("\n", from);
      if (end < 0) break;
      const line = rest.slice(from, rest[end - 1] === "\r" ? end - 1 : end);
      from = end + 1;
      if (line === "") {
        if (data.length > 0) onEvent(data.join("\n"), id);
        data = [];
      } else if (line.startsWith("data:")) {
        data.push(line.slice(line[5] === " " ? 6 : 5));
      } else if (line.startsWith("id:")) {
        id = line.slice(3).trim();
      }
    }
    rest = rest.slice(from);
  };
}
