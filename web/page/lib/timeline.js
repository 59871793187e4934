// When what happened in a turn, from its entries.

/**
 * @typedef {{key: string, kind: "model" | "wait" | "call", name: string, about: string, state: "good" | "bad" | "still" | "busy" | "asking", from: number, until: number | null}} Span
 *   times in milliseconds since 1970 UTC; `until` is null while it goes on
 */

/**
 * @param {{at_ms: number, seq: number, entry: any}[]} entries of one turn, in order
 * @returns {{spans: Span[], from: number, until: number | null}}
 */
export function timeline(entries) {
  const from = entries[0]?.at_ms ?? 0;
  /** @type {Span[]} */
  const spans = [];
  /** @type {Map<string, {name: string, asked: number}>} */
  const calls = new Map();
  /** @type {Map<string, Span>} */
  const running = new Map();
  let ready = from;
  let steps = 0;
  /** @type {number | null} */
  let until = null;
  for (const { at_ms, seq, entry } of entries) {
    if (entry.user || entry.control?.offered || entry.control?.claimed) ready = Math.max(ready, at_ms);
    if (entry.assistant) {
      steps += 1;
      const { origin, usage, completion } = entry.assistant;
      const about = [origin && `${origin.provider}/${origin.model}`, usage?.output_tokens !== undefined && `${usage.output_tokens} ${usage.output_tokens === 1 ? "token" : "tokens"}`].filter(Boolean).join(", ");
      spans.push({ key: `model ${seq}`, kind: "model", name: `Step ${steps}: the model`, about, state: completion === "complete" ? "good" : "bad", from: ready, until: at_ms });
      let index = 0;
      for (const block of entry.assistant.blocks ?? []) {
        if (block.call) calls.set(`call_${seq}_${index++}`, { name: block.call.name, asked: at_ms });
      }
      ready = at_ms;
    } else if (entry.decision) {
      const { call, by, verdict } = entry.decision;
      const asked = calls.get(call);
      if (asked && !by?.policy) {
        spans.push({ key: `wait ${seq}`, kind: "wait", name: `${asked.name} waited for a person`, about: String(verdict), state: verdict === "deny" ? "still" : "asking", from: asked.asked, until: at_ms });
      }
    } else if (entry.started) {
      const { call } = entry.started;
      /** @type {Span} */
      const span = { key: `call ${seq}`, kind: "call", name: calls.get(call)?.name ?? call, about: "", state: "busy", from: at_ms, until: null };
      running.set(call, span);
      spans.push(span);
    } else if (entry.result) {
      const span = running.get(entry.result.call);
      const { outcome } = entry.result;
      const word = typeof outcome === "string" ? outcome : (outcome?.error ?? Object.keys(outcome ?? {})[0] ?? "");
      if (span) Object.assign(span, { until: at_ms, about: String(word).replaceAll("_", " "), state: word === "success" ? "good" : "bad" });
      ready = at_ms;
    } else if (entry.control?.ended) {
      until = at_ms;
    }
  }
  return { spans, from, until };
}
