// What the page of an MCP server, an app in a frame, may ask for (MCP Apps, protocol 2026-01-26). Decisions over values alone:
// the frame and what is done are in view/mcp-app.js.

export const PROTOCOL = "2026-01-26";
/** The longest message that is read, in characters of its JSON. */
export const MOST_CHARACTERS = 1_000_000;
/** How high an app may make itself, in pixels. */
export const MOST_HEIGHT = 800;
const LEAST_HEIGHT = 48;
/** The longest address, and the longest text for a message, that people are shown. */
const MOST_ADDRESS = 2_000;
const MOST_WORDS = 20_000;

/**
 * What a message asks for. Everything that is not known is refused, or left alone where nobody waits for an answer.
 * @typedef {{act: "nothing"} | {act: "refuse", id: string | number, code: number, message: string} | {act: "answer", id: string | number, result: any}
 *   | {act: "answered", id: string | number} | {act: "initialize", id: string | number} | {act: "ready"} | {act: "size", height: number} | {act: "close"}
 *   | {act: "call", id: string | number, tool: string, input: any} | {act: "read", id: string | number, uri: string}
 *   | {act: "link", id: string | number, url: string} | {act: "message", id: string | number, text: string}
 *   | {act: "context", id: string | number, text: string} | {act: "download", id: string | number, files: {name: string, type: string, data: string | Uint8Array}[]}} Wish
 */

/**
 * @param {any} message as it came from the frame
 * @param {{isBegun: boolean, mode: string}} state whether the app was answered to its first request, and how it is shown
 * @returns {Wish}
 */
export function wish(message, { isBegun, mode }) {
  if (message === null || typeof message !== "object" || message.jsonrpc !== "2.0") return { act: "nothing" };
  const { id, method } = message;
  const isAsked = typeof id === "string" || typeof id === "number";
  const refuse = (/** @type {number} */ code, /** @type {string} */ why) =>
    /** @type {Wish} */ (isAsked ? { act: "refuse", id, code, message: why } : { act: "nothing" });
  const length = lengthOf(message);
  if (length > MOST_CHARACTERS) return refuse(-32600, `the message has ${length} characters, limit ${MOST_CHARACTERS}`);
  if (typeof method !== "string") return isAsked ? { act: "answered", id } : { act: "nothing" };
  const params = message.params !== null && typeof message.params === "object" ? message.params : {};
  if (!isAsked) return notice(method, params);
  if (method === "ping") return { act: "answer", id, result: {} };
  if (method === "ui/initialize") return { act: "initialize", id };
  if (!isBegun) return refuse(-32600, "ui/initialize comes first");
  switch (method) {
    case "tools/call": {
      const input = params.arguments ?? {};
      if (typeof params.name !== "string" || params.name === "") return refuse(-32602, "`name` must be the name of a tool");
      if (typeof input !== "object" || Array.isArray(input)) return refuse(-32602, "`arguments` must be an object");
      return { act: "call", id, tool: params.name, input };
    }
    case "resources/read":
      return typeof params.uri === "string" && params.uri.length <= MOST_ADDRESS ? { act: "read", id, uri: params.uri } : refuse(-32602, "`uri` must be an address");
    case "ui/open-link": {
      const url = address(params.url);
      return url ? { act: "link", id, url } : refuse(-32602, "`url` must be an http or https address without a user name");
    }
    case "ui/message": {
      const text = wordsOf(params.content);
      if (params.role !== "user" || text.trim() === "") return refuse(-32602, "a message has the role `user` and text");
      return { act: "message", id, text };
    }
    case "ui/update-model-context": {
      const structured = params.structuredContent === undefined ? "" : JSON.stringify(params.structuredContent);
      const text = [wordsOf(params.content), structured].filter((part) => part !== "").join("\n");
      return text.length > MOST_WORDS ? refuse(-32602, `the context has ${text.length} characters, limit ${MOST_WORDS}`) : { act: "context", id, text };
    }
    case "ui/download-file": {
      const files = filesOf(params.contents);
      return files.length > 0 ? { act: "download", id, files } : refuse(-32602, "`contents` must hold embedded resources with `text` or `blob`");
    }
    case "ui/request-display-mode":
      // Only a person makes it large.
      return { act: "answer", id, result: { mode } };
    default:
      return refuse(-32601, `the method ${method.slice(0, 100)} is not known here`);
  }
}

/**
 * @param {string} method
 * @param {any} params
 * @returns {Wish}
 */
function notice(method, params) {
  switch (method) {
    case "ui/notifications/initialized":
      return { act: "ready" };
    case "ui/notifications/size-changed":
      return Number.isFinite(params.height) ? { act: "size", height: Math.round(Math.min(MOST_HEIGHT, Math.max(LEAST_HEIGHT, params.height))) } : { act: "nothing" };
    case "ui/notifications/request-teardown":
      return { act: "close" };
    default:
      return { act: "nothing" };
  }
}

/** @param {any} message */
function lengthOf(message) {
  try {
    return JSON.stringify(message)?.length ?? 0;
  } catch {
    // What is no JSON is no message.
    return Infinity;
  }
}

/** An address that may be opened in a tab of its own. @param {any} url */
function address(url) {
  if (typeof url !== "string" || url.length > MOST_ADDRESS) return null;
  try {
    const read = new URL(url);
    return (read.protocol === "https:" || read.protocol === "http:") && read.username === "" && read.password === "" ? read.href : null;
  } catch {
    return null;
  }
}

/** @param {any} content blocks as MCP has them; those that are no text are left out */
function wordsOf(content) {
  const blocks = Array.isArray(content) ? content : [content];
  const texts = blocks.filter((block) => block?.type === "text" && typeof block.text === "string").map((block) => block.text);
  return texts.join("\n").slice(0, MOST_WORDS);
}

/** @param {any} contents */
function filesOf(contents) {
  if (!Array.isArray(contents) || contents.length > 20) return [];
  /** @type {{name: string, type: string, data: string | Uint8Array}[]} */
  const files = [];
  for (const block of contents) {
    const { uri, text, blob, mimeType } = block?.resource ?? {};
    const name = String(uri ?? "").split(/[/\\?#]/).findLast((part) => part !== "")?.replace(/[^\p{L}\p{N} ._-]+/gu, "_").replace(/^\.+/, "").slice(0, 80) || "file";
    const type = typeof mimeType === "string" ? mimeType : "application/octet-stream";
    if (typeof text === "string") files.push({ name, type, data: text });
    else if (typeof blob === "string" && isBase64(blob)) files.push({ name, type, data: Uint8Array.from(atob(blob), (letter) => letter.charCodeAt(0)) });
  }
  return files;
}

/** @param {string} text */
const isBase64 = (text) => /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text);

/** So many in so much time, and no more. */
export class Pace {
  /** @type {number[]} */
  #taken = [];

  /**
   * @param {number} most
   * @param {number} per_ms
   */
  constructor(most, per_ms) {
    this.most = most;
    this.per_ms = per_ms;
  }

  /** Whether one more fits. @param {number} now_ms */
  fits(now_ms) {
    this.#taken = this.#taken.filter((at) => at > now_ms - this.per_ms);
    if (this.#taken.length >= this.most) return false;
    this.#taken.push(now_ms);
    return true;
  }
}

/**
 * Arguments as far as they are written: what is open is closed, and what cannot be read yet is left out. Null where nothing can.
 * @param {string} text the beginning of an object as JSON
 */
export function soFar(text) {
  /** @type {string[]} */
  const open = [];
  let isString = false;
  let escape = 0;
  let whole = "";
  const closed = (/** @type {string} */ written) => written + open.toReversed().join("");
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at];
    if (isString) {
      if (letter === "\\") escape = at++;
      else isString = letter !== '"';
    } else if (letter === '"') {
      isString = true;
      escape = 0;
    } else if (letter === ",") whole = closed(text.slice(0, at));
    else if (letter === "{" || letter === "[") {
      open.push(letter === "{" ? "}" : "]");
      whole = closed(text.slice(0, at + 1));
    } else if (letter === "}" || letter === "]") {
      open.pop();
      whole = closed(text.slice(0, at + 1));
    }
  }
  // Neither a key nor an escape that is not whole can be read; a number may go on.
  const last = isString ? [closed(`${text}"`), escape > 0 ? closed(`${text.slice(0, escape)}"`) : ""] : [text.endsWith('"') ? closed(text) : ""];
  for (const written of [...last, whole]) {
    try {
      const read = JSON.parse(written);
      if (read !== null && typeof read === "object" && !Array.isArray(read)) return read;
    } catch {
      // What was whole before it is read.
    }
  }
  return null;
}

/**
 * What the app is told of the end of its call; null while there is none.
 * @param {import("./message.js").CallPart} part
 */
export function endOf(part) {
  if (part.state === "denied" || (part.state === "decided" && part.approval?.isApproved === false)) {
    return { method: "ui/notifications/tool-cancelled", params: { reason: part.approval?.answerReason || "The call was denied." } };
  }
  if (part.state !== "done" && part.state !== "failed") return null;
  return { method: "ui/notifications/tool-result", params: resultOf(part.output, part.state === "failed", part.errorText) };
}

/**
 * A result as the protocol has it.
 * @param {any} output
 * @param {boolean} isError
 * @param {string} [errorText]
 */
export function resultOf(output, isError, errorText = "") {
  const said = Array.isArray(output?.content) ? output.content : [];
  const content = said.length === 0 && errorText !== "" ? [{ type: "text", text: errorText }] : said;
  const structured = output?.structuredContent ?? output?.structured_content;
  return { content, ...(structured !== null && typeof structured === "object" && !Array.isArray(structured) && { structuredContent: structured }), ...(isError && { isError }) };
}
