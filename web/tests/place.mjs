// A folder in which the real binary serves, and a browser that looks at it.

import { spawn, spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach } from "node:test";
import { setTimeout } from "node:timers/promises";
import { chromium } from "playwright-core";
import { startModel } from "./model.mjs";

const binary = process.env.TURNWRIGHT_BINARY;
const servers = process.env.TURNWRIGHT_TEST_SERVERS;
export const everything = servers && join(servers, "npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js");

let schemas = 0;

/** The address of a schema that nobody else has, where the tests are to use the server of `scripts/start-test-postgres`. */
function ownDatabase() {
  if (process.env.TURNWRIGHT_TEST_DATABASE !== "postgres") return {};
  const server = process.env.TURNWRIGHT_TEST_POSTGRES;
  if (!server) throw new Error("these tests are run by scripts/start-test-postgres");
  schemas += 1;
  return { TURNWRIGHT_DATABASE: `${server}?schema=w${process.pid}_${schemas}` };
}

/**
 * A port that is this place's alone, also while its server is killed: below those that the system gives to whoever asks for any, with UDP of
 * the same number bound as the mark that it is taken (as `turnwright_testkit::Port` does).
 */
async function reservePort() {
  for (;;) {
    const port = 10_000 + randomInt(10_000);
    const mark = createSocket("udp4").unref();
    const server = createServer();
    try {
      mark.bind(port, "127.0.0.1");
      await once(mark, "listening");
      server.listen(port, "127.0.0.1");
      await once(server, "listening");
      server.close();
      await once(server, "close");
      return { port, free: () => mark.close() };
    } catch (error) {
      if (error.code !== "EADDRINUSE") throw error;
      mark.close();
    }
  }
}

/**
 * @param {{config?: string | ((port: number) => string), model?: boolean | "unsaid", below?: string, env?: Record<string, string>}} [options]
 * `config`: where it has to know the port of the server, a function of it; `model`: the scripted one, practice, or none that the
 * configuration names; `below`: the path that the server is told to be below; `env`: what its environment holds besides
 */
export async function startPlace({ config = "", model: isScripted = true, below = "", env = {} } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "turnwright-page-"));
  const model = await startModel();
  const chosen = isScripted === "unsaid" ? "" : isScripted
    ? `model = "scripted/one"\n[providers.scripted]\ndialect = "openai-chat"\nbase_url = "${model.url}"\nmodels = ["one", "two"]\nmax_retries = 0\n`
    : 'model = "practice/practice"\n';
  const { port, free } = await reservePort();
  const own = typeof config === "string" ? config : config(port);
  writeFileSync(join(folder, "turnwright.toml"), `${chosen}${own}${below && `[server]\nbase_path = "${below}"\n`}`);
  writeFileSync(join(folder, "a.txt"), "hello file\n");
  mkdirSync(join(folder, "config"));
  writeFileSync(join(folder, "config/mcp-servers.json"), '{"mcpServers": {}}');
  // No server of this machine is taken for one that was found.
  const environment = { PATH: process.env.PATH, HOME: folder, TURNWRIGHT_DATA_DIR: join(folder, "data"), OLLAMA_HOST: "127.0.0.1:9", ...ownDatabase(), ...env };
  let child = null;
  const place = {
    folder, model, port, base: `http://127.0.0.1:${port}${below}`,
    async start() {
      child = spawn(binary, ["serve", "--listen", `127.0.0.1:${port}`], {
        cwd: folder, stdio: ["ignore", "ignore", "pipe"], env: environment,
      });
      let said = "";
      await new Promise((resolve, reject) => {
        child.stderr.on("data", (piece) => {
          said += piece;
          if (said.includes("listening on")) resolve();
        });
        child.once("exit", (code) => reject(new Error(`the server ended with ${code}: ${said}`)));
      });
    },
    /** Runs a command over the same data. */
    run(...words) {
      const ran = spawnSync(binary, words, { cwd: folder, env: environment });
      if (ran.status !== 0) throw new Error(String(ran.stderr));
      return String(ran.stdout);
    },
    /** Kills it as a power cut would. */
    async kill() {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
    async api(path, body, method) {
      const response = await fetch(`${place.base}/api/v1${path}`, {
        method: method ?? (body === undefined ? "GET" : "POST"), headers: { "content-type": "application/json" },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
      return response.status === 204 ? null : response.json();
    },
    async stop() {
      if (child?.exitCode === null && child.signalCode === null) {
        const ended = once(child, "exit");
        child.kill("SIGTERM");
        await ended;
      }
      model.close();
      free();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  await place.start();
  return place;
}

let browser = null;

/** A browser window. What the page does wrong is collected in `wrong`, what it asks of others in `strangers`. */
export async function lookAt(place, { path = "/", theme = "light", width = 1200, height = 800 } = {}) {
  // Names of the kind that nobody has lead to this machine, so that origins can be told apart.
  browser ??= await chromium.launch({ executablePath: process.env.TURNWRIGHT_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--host-resolver-rules=MAP *.tw.test 127.0.0.1"] });
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, permissions: ["clipboard-read", "clipboard-write"] });
  const page = await context.newPage();
  page.wrong = [];
  page.strangers = [];
  page.on("pageerror", (error) => page.wrong.push(String(error)));
  page.on("console", (line) => {
    if (line.type() === "error" && !/Failed to load resource|net::ERR/.test(line.text())) page.wrong.push(line.text());
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(`${place.base}/`) && !/^(data|blob):/.test(request.url())) page.strangers.push(request.url());
  });
  page.setDefaultTimeout(20_000);
  await page.goto(place.base + path);
  return page;
}

/** Looks at a place, with pages that are closed after each test: what is still fetched there breaks off with them. */
export function looking() {
  const seen = [];
  afterEach(() => Promise.all(seen.splice(0).map(closePage)));
  return async (place) => {
    const page = await lookAt(place);
    seen.push(page);
    return page;
  };
}

/** Closes a page, and what routes of it still fetch breaks off: before the place is stopped from which they do. */
export async function closePage(page) {
  if (page.isClosed()) return;
  const context = page.context();
  await context.unrouteAll({ behavior: "ignoreErrors" });
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await context.close();
}

export async function closeBrowser() {
  for (const page of (browser?.contexts() ?? []).flatMap((context) => context.pages())) await closePage(page);
  await browser?.close();
  browser = null;
}

/** Waits until something is so at the server. `waitForFunction` of a page is none for this: it takes every promise for a yes. */
export async function until(isSo) {
  for (const latest = Date.now() + 20_000; !(await isSo()); await setTimeout(20)) if (Date.now() > latest) throw new Error(`it never was so: ${isSo}`);
}

/** Says something in the composer, as a person does. */
export async function say(page, words) {
  const composer = page.getByRole("textbox").first();
  await composer.click();
  await composer.fill(words);
  await composer.press("Enter");
}
