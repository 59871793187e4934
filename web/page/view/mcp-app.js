// The page of an MCP server (MCP Apps) in a frame of another origin. Whatever comes from the frame is foreign: it is read as
// data, answered, and people are asked before anything is done for it.

import { effect } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { call, part as inPath, Refused, sentence } from "../lib/api.js";
import { announce, toolNamed } from "../lib/app.js";
import { appearance } from "../lib/appearance.js";
import { save } from "../lib/export.js";
import { html } from "../lib/html.js";
import { endOf, MOST_HEIGHT, Pace, PROTOCOL, resultOf, soFar, wish } from "../lib/mcp-app.js";
import { plain } from "../lib/exact.js";
import { Approve } from "./approval.js";
import { addContext, addWords } from "./composer.js";
import { Icon } from "./icon.js";

/** How long an app may take to say its first word, and to put its things away. */
const START_MS = 15_000;
const END_MS = 1_000;
/** When a question can be answered: it must not come under a finger that was on its way to something else. */
const LOOK_MS = 500;

/** Whether the server said that there is no place for apps here. */
let isOff = false;

/** @param {{part: import("../lib/message.js").CallPart, rev: number, conversation: import("../lib/conversation.js").OpenConversation, isOpen: boolean}} props */
export function McpApp({ part, conversation, isOpen }) {
  const [tool, know] = useState(/** @type {any} */ (null));
  const [isShown, show] = useState(isOpen);
  const isBegun = useRef(false);
  // The question comes before the app: it is not begun while a person decides, and out of sight where it was.
  const isDue = !isOff && (isBegun.current || (part.state === "writing" ? isOpen : part.state !== "asking" && part.state !== "denied"));
  useEffect(() => {
    if (isDue && tool === null) toolNamed(part.name).then((tool) => know(tool ?? {}), () => {});
  }, [isDue]);
  if (!isDue || !tool?.app) return null;
  isBegun.current = isShown;
  const name = tool.title ?? tool.tool_name;
  if (!isShown) {
    return html`<div class="app-row"><button type="button" class="plain small" onClick=${() => show(true)}><${Icon} name="tool" />Show the app<span class="unseen"> of ${name}</span></button></div>`;
  }
  return html`<${App} part=${part} tool=${tool} name=${name} conversation=${conversation} close=${() => show(false)} />`;
}

/** @typedef {{kind: "call" | "link" | "message" | "download", words: string, detail: string, yes: string, tool?: any, answer: (body: any) => any}} Question */

/** @param {{part: import("../lib/message.js").CallPart, tool: any, name: string, conversation: import("../lib/conversation.js").OpenConversation, close: () => void}} props */
function App({ part, tool, name, conversation, close }) {
  const [app, have] = useState(/** @type {any} */ (null));
  const [failure, fail] = useState("");
  const [given, give] = useState(/** @type {string[]} */ ([]));
  const [question, ask] = useState(/** @type {Question | null} */ (null));
  const [isLarge, enlarge] = useState(false);
  const [round, again] = useState(0);
  const frame = useRef(/** @type {HTMLIFrameElement | null} */ (null));
  const session = useRef(/** @type {Session | null} */ (null));
  const server = tool.server_id;
  useEffect(() => {
    let isMeant = true;
    fail("");
    have(null);
    call(`/mcp/servers/${inPath(server)}/apps/open`, { body: { uri: tool.app } }).then((app) => isMeant && have(app), (error) => {
      if (!isMeant) return;
      isOff ||= error instanceof Refused && error.code === "apps_off";
      if (isOff) close();
      else fail(sentence(error));
    });
    return () => { isMeant = false; };
  }, [round]);
  // Before the frame can say anything.
  useLayoutEffect(() => {
    if (!app || !frame.current) return undefined;
    const made = new Session({ frame: frame.current, app, tool, given, conversation, ask, fail, close });
    session.current = made;
    made.tell(part);
    return () => {
      session.current = null;
      made.end();
      ask(null);
    };
  }, [app, given]);
  useEffect(() => session.current?.tell(part), [part.state, part.rev]);
  useEffect(() => session.current?.resized(isLarge ? "fullscreen" : "inline"), [isLarge]);
  const wanted = (app?.permissions ?? []).filter((/** @type {string} */ one) => !given.includes(one));
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape" && isLarge) enlarge(false);
  };
  return html`<section class=${isLarge ? "app-view large" : "app-view"} hidden=${part.state === "asking"} aria-label=${`App of ${server}: ${name}`} onKeyDown=${onKey}>
    <div class="app-head"><span class="faint">App of <bdi>${server}</bdi>${app?.reaches.length > 0 && html`, which may reach ${app.reaches.join(", ")}`}</span>
      <button type="button" class="plain small" onClick=${() => enlarge(!isLarge)}>${isLarge ? "Smaller" : "Larger"}</button>
      <button type="button" class="plain small" aria-label=${`Close the app of ${name}`} onClick=${() => session.current ? session.current.leave() : close()}><${Icon} name="close" /></button></div>
    ${wanted.length > 0 && html`<p class="app-row">It asks for: ${wanted.join(", ")}. <button type="button" class="small" onClick=${() => give([...given, ...wanted])}>Allow, and begin again</button></p>`}
    ${failure !== "" && html`<div class="app-row" role="alert"><p class="failure">${failure}</p><p class="faint">The result is above, without the app.</p>
      <button type="button" class="small" onClick=${() => again(round + 1)}>Try again</button></div>`}
    ${app && failure === "" && html`<iframe key=${`${round} ${given}`} ref=${frame} class="app-frame" title=${`${name}, a page of the MCP server ${server}`} src=${app.frame}
      sandbox="allow-scripts allow-same-origin allow-forms" referrerpolicy="no-referrer" allow=${given.join("; ")}></iframe>`}
    ${question && html`<${Ask} question=${question} server=${server} />`}
    ${!app && failure === "" && html`<p class="faint app-row" role="status">The app is being loaded …</p>`}
  </section>`;
}

/** What the app wants a person to allow. @param {{question: Question, server: string}} props */
function Ask({ question, server }) {
  const [isLooked, look] = useState(false);
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  useEffect(() => {
    look(false);
    box.current?.scrollIntoView({ block: "nearest" });
    announce(`The app of ${server} asks: ${question.words}`);
    const timer = setTimeout(() => look(true), LOOK_MS);
    return () => clearTimeout(timer);
  }, [question]);
  const { tool } = question;
  if (tool) {
    return html`<div class="app-ask" ref=${box}><p><strong>${question.words}</strong></p>
      <fieldset disabled=${!isLooked}><${Approve} name=${tool.name} title=${tool.name} server=${server} text=${JSON.stringify(tool.input)}
        wait=${{ reason: "approval", rule: tool.rule }} decide=${async (/** @type {any} */ body) => question.answer(body)} /></fieldset></div>`;
  }
  return html`<div class="app-ask" ref=${box} role="group" aria-label=${question.words}><p><strong>${question.words}</strong></p>
    <pre class="plain-text" tabindex="0" aria-label="What it is">${question.detail}</pre>
    <div class="row"><button type="button" class="main-action" disabled=${!isLooked} onClick=${() => question.answer(true)}>${question.yes}</button>
      <button type="button" disabled=${!isLooked} onClick=${() => question.answer(false)}>No</button></div></div>`;
}

/** One life of an app in its frame. */
class Session {
  #isLoaded = false;
  #isBegun = false;
  #isReady = false;
  #isOver = false;
  #isInputTold = false;
  #partlyTold = "";
  #isEndTold = false;
  #mode = "inline";
  #open = 0;
  #width = 0;
  /** @type {Question | null} */
  #question = null;
  /** @type {import("../lib/message.js").CallPart | null} */
  #part = null;
  /** @type {(() => void) | null} */
  #gone = null;
  #pace = new Pace(100, 1_000);
  #calls = new Pace(60, 60_000);
  #questions = new Pace(10, 60_000);

  /** @param {{frame: HTMLIFrameElement, app: any, tool: any, given: string[], conversation: import("../lib/conversation.js").OpenConversation, ask: (question: Question | null) => void, fail: (why: string) => void, close: () => void}} parts */
  constructor(parts) {
    this.parts = parts;
    this.origin = new URL(parts.app.frame).origin;
    window.addEventListener("message", this.#onMessage);
    this.watch = new ResizeObserver(() => {
      // Its height is its own word.
      if (parts.frame.clientWidth !== this.#width) this.resized(this.#mode);
    });
    this.watch.observe(parts.frame);
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.scheme.addEventListener("change", this.#onLook);
    this.unlook = effect(() => {
      void appearance.value;
      this.#onLook();
    });
    this.starting = setTimeout(() => {
      parts.fail(this.#isLoaded ? "The app did not start." : `The app could not be loaded from ${this.origin}.`);
    }, START_MS);
  }

  /** @param {MessageEvent} event */
  #onMessage = ({ source, origin, data }) => {
    // Both: frames within the frame may post here too, and what is in the frame may have changed.
    if (source !== this.parts.frame.contentWindow || origin !== this.origin) return;
    if (data?.method === "ui/notifications/sandbox-proxy-ready") {
      if (this.#isLoaded) return;
      this.#isLoaded = true;
      const allow = this.parts.given.map((one) => `${one} *`).join("; ");
      this.#post({ method: "ui/notifications/sandbox-resource-ready", params: { html: this.parts.app.html, allow } });
      return;
    }
    if (!this.#isLoaded || this.#isOver) return;
    const wanted = wish(data, { isBegun: this.#isBegun, mode: this.#mode });
    if (!this.#pace.fits(performance.now())) {
      if ("id" in wanted && wanted.act !== "answered") this.#refuse(wanted.id, -32000, "too many messages at once");
      return;
    }
    this.#carryOut(wanted).catch((error) => {
      if ("id" in wanted) this.#refuse(wanted.id, -32000, sentence(error));
    });
  };

  /** @param {import("../lib/mcp-app.js").Wish} wanted */
  async #carryOut(wanted) {
    const { app, tool, conversation } = this.parts;
    switch (wanted.act) {
      case "nothing":
        return;
      case "answered":
        return;
      case "refuse":
        return this.#refuse(wanted.id, wanted.code, wanted.message);
      case "answer":
        return this.#answer(wanted.id, wanted.result);
      case "initialize":
        clearTimeout(this.starting);
        this.#isBegun = true;
        return this.#answer(wanted.id, {
          protocolVersion: PROTOCOL, hostInfo: { name: "turnwright", version: "1" },
          hostCapabilities: {
            openLinks: {}, downloadFile: {}, serverTools: {}, serverResources: {}, message: { text: {} }, updateModelContext: { text: {}, structuredContent: {} },
            sandbox: { permissions: Object.fromEntries(this.parts.given.map((one) => [one.replace("-w", "W"), {}])) },
          },
          hostContext: {
            ...this.#look(), ...this.#room(), displayMode: this.#mode, availableDisplayModes: ["inline", "fullscreen"], locale: navigator.language,
            timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone, platform: "web", userAgent: "turnwright",
            deviceCapabilities: { touch: navigator.maxTouchPoints > 0, hover: matchMedia("(hover: hover)").matches },
            toolInfo: { id: this.#part?.key ?? "", tool: { name: tool.tool_name, description: tool.description, inputSchema: tool.input_schema } },
          },
        });
      case "ready":
        this.#isReady = this.#isBegun;
        return this.#tellAll();
      case "size":
        if (this.#mode === "inline") this.parts.frame.style.height = `${wanted.height}px`;
        return;
      case "close":
        return this.leave();
      case "call":
        return this.#call(wanted.id, wanted.tool, wanted.input);
      case "read": {
        if (!this.#calls.fits(performance.now())) return this.#refuse(wanted.id, -32000, "too many requests in a minute");
        const { contents } = await call(`/mcp/servers/${inPath(tool.server_id)}/resources/read`, { body: { uri: wanted.uri } });
        return this.#answer(wanted.id, { contents: contents.map((/** @type {any} */ one) => ({ uri: one.uri, ...(one.mime_type && { mimeType: one.mime_type }), ...(one.text === null ? { blob: one.blob ?? "" } : { text: one.text }) })) });
      }
      case "context":
        addContext(`${tool.server_id} ${app.frame} ${this.#part?.key}`, `Context of the app of ${tool.server_id}`, wanted.text);
        return this.#answer(wanted.id, {});
      case "link":
        return this.#asked(wanted.id, { kind: "link", words: `The app of ${tool.server_id} wants to open this address in a new tab.`, detail: wanted.url, yes: "Open it" },
          () => void window.open(wanted.url, "_blank", "noopener,noreferrer"));
      case "message":
        return this.#asked(wanted.id, { kind: "message", words: `The app of ${tool.server_id} wants to put this into your message. Nothing is sent yet.`, detail: wanted.text, yes: "Put it there" },
          () => addWords(wanted.text));
      case "download":
        return this.#asked(wanted.id, { kind: "download", words: `The app of ${tool.server_id} wants to give you ${wanted.files.length === 1 ? "a file" : `${wanted.files.length} files`}.`, detail: wanted.files.map(({ name }) => name).join("\n"), yes: "Save" },
          () => wanted.files.forEach(({ name, type, data }) => save(name, type, data)));
    }
  }

  /**
   * Asks a person, and does it where they want it.
   * @param {string | number} id
   * @param {Omit<Question, "answer">} question
   * @param {() => void} act
   */
  async #asked(id, question, act) {
    const isWanted = await this.#decision(id, question);
    if (isWanted === null) return;
    if (isWanted) act();
    this.#answer(id, isWanted ? {} : { isError: true });
  }

  /**
   * What a person answers; null where nobody was asked, which the app is told.
   * @param {string | number} id
   * @param {Omit<Question, "answer">} question
   * @returns {Promise<any>}
   */
  async #decision(id, question) {
    if (this.#question || !this.#questions.fits(performance.now())) {
      this.#refuse(id, -32000, "a person is asked one thing at a time, and not so often");
      return null;
    }
    const answer = await new Promise((resolve) => {
      this.#question = { ...question, answer: resolve };
      this.parts.ask(this.#question);
    });
    this.#question = null;
    if (this.#isOver) return null;
    this.parts.ask(null);
    return answer;
  }

  /**
   * @param {string | number} id
   * @param {string} name
   * @param {any} input
   */
  async #call(id, name, input) {
    const { tool, conversation } = this.parts;
    if (this.#open >= 4 || !this.#calls.fits(performance.now())) return this.#refuse(id, -32000, "too many calls at once or in a minute");
    this.#open += 1;
    try {
      const send = (/** @type {any} */ input, allowed = false) =>
        call(`/mcp/servers/${inPath(tool.server_id)}/apps/call`, { body: { tool: name, arguments: input, conversation_id: conversation.id, allowed } });
      let came = await send(input);
      if (came.outcome === "asks") {
        const words = `The app of ${tool.server_id} wants to call this tool.`;
        const decided = await this.#decision(id, { kind: "call", words, detail: "", yes: "", tool: { name: came.name, rule: came.rule, input } });
        if (decided === null) return undefined;
        if (decided.decision !== "allow") {
          const why = `A person did not allow this call${decided.reason ? `: ${decided.reason}` : ""}.`;
          return this.#answer(id, { content: [{ type: "text", text: why }], isError: true });
        }
        came = await send(decided.arguments ?? input, true);
      }
      return this.#answer(id, resultOf(came, came.is_error || came.outcome === "denied"));
    } finally {
      this.#open -= 1;
    }
  }

  /** Where the call is. @param {import("../lib/message.js").CallPart} part */
  tell(part) {
    this.#part = part;
    this.#tellAll();
  }

  #tellAll() {
    if (!this.#isReady || !this.#part) return;
    if (this.#part.state === "writing") return this.#tellPartly(this.#part.inputText);
    if (!this.#isInputTold) {
      this.#isInputTold = true;
      this.#post({ method: "ui/notifications/tool-input", params: { arguments: plain(this.#part.input ?? {}) } });
    }
    const end = endOf(this.#part);
    if (!end || this.#isEndTold) return;
    this.#isEndTold = true;
    this.#post(end);
  }

  /** @param {string} text the arguments as far as the model wrote them */
  #tellPartly(text) {
    const read = soFar(text);
    const told = JSON.stringify(read);
    if (read === null || told === this.#partlyTold) return;
    this.#partlyTold = told;
    this.#post({ method: "ui/notifications/tool-input-partial", params: { arguments: read } });
  }

  /** @param {string} mode how it is shown from now on */
  resized(mode) {
    const isOther = mode !== this.#mode;
    this.#mode = mode;
    if (isOther) this.parts.frame.style.height = "";
    if (this.#isReady) this.#post({ method: "ui/notifications/host-context-changed", params: { ...this.#room(), ...(isOther && { displayMode: mode }) } });
  }

  #onLook = () => {
    if (this.#isReady) this.#post({ method: "ui/notifications/host-context-changed", params: this.#look() });
  };

  #look() {
    const { theme } = appearance.value;
    const style = getComputedStyle(document.documentElement);
    const of = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
    return {
      theme: theme === "dark" || (theme !== "light" && this.scheme.matches) ? "dark" : "light",
      styles: {
        variables: {
          "--color-background-primary": of("--raised"), "--color-background-secondary": of("--ground"), "--color-background-tertiary": of("--sunken"),
          "--color-text-primary": of("--ink"), "--color-text-secondary": of("--faint"), "--color-text-danger": of("--bad"), "--color-text-success": of("--good"),
          "--color-border-primary": of("--strong-line"), "--color-border-secondary": of("--line"), "--color-ring-primary": of("--accent"),
          "--border-radius-md": of("--radius"), "--font-mono": of("--mono"), "--font-sans": getComputedStyle(document.body).fontFamily,
        },
      },
    };
  }

  #room() {
    const { clientWidth, clientHeight } = this.parts.frame;
    this.#width = clientWidth;
    return { containerDimensions: { width: clientWidth, ...(this.#mode === "inline" ? { maxHeight: MOST_HEIGHT } : { height: clientHeight }) } };
  }

  /** Lets the app put its things away, for a second at most, and takes it from the page. */
  async leave() {
    if (this.#isOver) return;
    this.#isOver = this.#isReady;
    if (this.#isReady) {
      const gone = new Promise((resolve) => (this.#gone = () => resolve(undefined)));
      window.addEventListener("message", this.#onLastMessage);
      this.#post({ id: "teardown", method: "ui/resource-teardown", params: { reason: "closed" } });
      await Promise.race([gone, new Promise((resolve) => setTimeout(resolve, END_MS))]);
    }
    this.parts.close();
  }

  /** @param {MessageEvent} event */
  #onLastMessage = ({ source, origin, data }) => {
    if (source === this.parts.frame.contentWindow && origin === this.origin && data?.id === "teardown" && data.method === undefined) this.#gone?.();
  };

  /** The frame is gone. */
  end() {
    this.#isOver = true;
    this.#question?.answer(false);
    clearTimeout(this.starting);
    window.removeEventListener("message", this.#onMessage);
    window.removeEventListener("message", this.#onLastMessage);
    this.scheme.removeEventListener("change", this.#onLook);
    this.unlook();
    this.watch.disconnect();
  }

  /**
   * @param {string | number} id
   * @param {any} result
   */
  #answer(id, result) {
    this.#post({ id, result });
  }

  /**
   * @param {string | number} id
   * @param {number} code
   * @param {string} message
   */
  #refuse(id, code, message) {
    this.#post({ id, error: { code, message } });
  }

  /** @param {any} message */
  #post(message) {
    this.parts.frame.contentWindow?.postMessage({ jsonrpc: "2.0", ...message }, this.origin);
  }
}
