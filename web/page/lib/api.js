// The HTTP API: JSON in and out, and failures as sentences for people.

import { exact, plain } from "./exact.js";

/** The longest that is waited before something is tried again. */
export const MOST_WAIT_MS = 5_000;

/** A request that was not carried out. */
export class Refused extends Error {
  /**
   * @param {number} status the HTTP status; 0 where the server was not reached
   * @param {string} message a sentence for people
   * @param {string} code
   * @param {{field: string, message: string}[]} errors what is wrong with single fields
   */
  constructor(status, message, code = "", errors = []) {
    super(message);
    this.status = status;
    this.code = code;
    this.errors = errors;
  }

  /** Whether the same request may succeed later. */
  get isPassing() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** @type {Record<number, string>} */
const sentences = {
  401: "The server wants you to sign in.",
  403: "The server does not answer to this page.",
  404: "The server does not have this.",
  413: "This is too large for the server.",
  429: "The server has too much to do. Try again in a moment.",
  500: "The server met an error of its own.",
  502: "The model's provider did not answer as it should.",
  503: "The server is not ready. Try again in a moment.",
};

/**
 * @param {Response} response
 * @returns {Promise<Refused>}
 */
export async function refusal(response) {
  if (response.status === 401) {
    const here = location.pathname + location.search + location.hash;
    location.assign(`login?return=${encodeURIComponent(here)}`);
  }
  const fallback = sentences[response.status] ?? `The server answered with status ${response.status}.`;
  try {
    const problem = await response.json();
    const detail = typeof problem.detail === "string" && problem.detail !== "" ? problem.detail : fallback;
    return new Refused(response.status, detail, String(problem.code ?? ""), Array.isArray(problem.errors) ? problem.errors : []);
  } catch {
    return new Refused(response.status, fallback);
  }
}

/**
 * All of a list, page by page.
 * @param {string} path below /api/v1, perhaps with a query
 * @param {{signal?: AbortSignal, isExact?: boolean}} [options]
 * @returns {Promise<any[]>}
 */
export async function listed(path, options) {
  return (await wholeList(path, options)).data;
}

/**
 * What waits for a person, with the rules that are proposed as they are to be stored.
 * @param {string} path
 * @param {{signal?: AbortSignal}} [options]
 * @returns {Promise<any[]>}
 */
export const waitsAt = async (path, options) =>
  (await listed(path, { ...options, isExact: true })).map((wait) => ({ ...plain(wait), always: wait.always }));

/**
 * The same with what the first page tells beside it.
 * @param {string} path below /api/v1, perhaps with a query
 * @param {{signal?: AbortSignal, isExact?: boolean}} [options]
 * @returns {Promise<any>}
 */
export async function wholeList(path, options) {
  const first = await call(path, options);
  const data = [...first.data];
  for (let page = first; page.has_more && page.next_cursor; ) {
    page = await call(`${path}${path.includes("?") ? "&" : "?"}cursor=${encodeURIComponent(page.next_cursor)}`, options);
    data.push(...page.data);
  }
  return { ...first, data };
}

/**
 * @param {string} path below /api/v1
 * @param {{method?: string, body?: unknown, form?: FormData, key?: string, signal?: AbortSignal, keepalive?: boolean, isExact?: boolean}} [options]
 * @returns {Promise<any>}
 */
export async function call(path, options = {}) {
  /** @type {Record<string, string>} */
  const headers = {};
  if (options.body !== undefined) headers["content-type"] = "application/json";
  if (options.key) headers["idempotency-key"] = options.key;
  let response;
  try {
    response = await fetch(`api/v1${path}`, {
      method: options.method ?? (options.body === undefined ? "GET" : "POST"),
      headers,
      body: options.form ?? (options.body === undefined ? null : JSON.stringify(options.body)),
      signal: options.signal ?? null,
      keepalive: options.keepalive ?? false,
      cache: "no-store",
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Refused(0, "The server cannot be reached.");
  }
  if (!response.ok) throw await refusal(response);
  if (response.status === 204) return null;
  try {
    return options.isExact ? exact(await response.text()) : await response.json();
  } catch {
    throw new Refused(0, "The server's answer broke off.");
  }
}

/** @param {string} text a part of a path */
export const part = (text) => encodeURIComponent(text);

/** @param {unknown} error */
export const sentence = (error) => (error instanceof Error ? error.message : String(error));

/** A new name that nobody else has. */
export function fresh() {
  return [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
