// Pages of MCP servers in frames: servers nobody here wrote, and one that means harm.

import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { connect, createServer as createProxy } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { endOf, MOST_CHARACTERS, Pace, soFar, wish } from "../page/lib/mcp-app.js";
import { violations } from "./axe.mjs";
import { closeBrowser, everything, lookAt, say, startPlace } from "./place.mjs";

const official = everything && join(everything, "../../..");
const of = (name) => official && join(official, name, "dist/index.js");
const isThere = Boolean(official && existsSync(of("server-debug") ?? ""));
const hostile = fileURLToPath(new URL("hostile-app.mjs", import.meta.url));

let outside;
let reached;
let place;
before(async () => {
  reached = [];
  outside = createServer((request, response) => {
    reached.push(request.url);
    response.setHeader("access-control-allow-origin", "*");
    response.end("x");
  }).listen(0, "127.0.0.1");
  await once(outside, "listening");
  const server = (name, ...args) => `[mcp.servers.${name}]\ncommand = "node"\nargs = ${JSON.stringify(args)}\n`;
  place = await startPlace({
    config: server("hostile", hostile, `http://127.0.0.1:${outside.address().port}`)
      + (isThere ? server("basic", of("server-basic-vanillajs"), "--stdio") + server("debug", of("server-debug"), "--stdio") : ""),
  });
});
after(async () => {
  await closeBrowser();
  await place?.stop();
  outside?.close();
});

/** The app of a server in the page: its part of our page, and the document of the view. */
async function opened(page, title) {
  const section = page.getByRole("region", { name: title });
  await section.waitFor();
  const view = section.frameLocator("iframe").frameLocator("iframe");
  return { section, view };
}

/** The frame that a script can be run in, as the app's own. */
async function viewOf(page) {
  for (;;) {
    const found = page.frames().find((frame) => frame.url() === "about:srcdoc");
    if (found) return found;
    await page.waitForTimeout(20);
  }
}

async function show(page, tool, input = {}) {
  await page.getByLabel("What runs without asking").selectOption("all");
  await say(page, `tool ${tool} ${JSON.stringify(input)}`);
}

const strangers = (page) => page.strangers.filter((url) => !url.startsWith("http://apps.localhost:") && url !== "about:srcdoc");

test("what an app asks for is read as data: known, fitting and in its turn, or refused", () => {
  const begun = { isBegun: true, mode: "inline" };
  const of = (method, params, id = 7) => wish({ jsonrpc: "2.0", id, method, params }, begun);
  const code = (method, params) => of(method, params).code;
  for (const nothing of [null, "x", 7, [], {}, { jsonrpc: "1.0", id: 1, method: "ping" }, { jsonrpc: "2.0", method: "what/ever" }, { jsonrpc: "2.0" }]) {
    assert.deepEqual(wish(nothing, begun), { act: "nothing" });
  }
  assert.deepEqual(of("ping"), { act: "answer", id: 7, result: {} });
  assert.deepEqual(of("tools/call", { name: "t", arguments: { a: 1 } }), { act: "call", id: 7, tool: "t", input: { a: 1 } });
  assert.deepEqual(of("tools/call", { name: "t" }), { act: "call", id: 7, tool: "t", input: {} });
  assert.equal(code("tools/call", { name: 7 }), -32602);
  assert.equal(code("tools/call", { name: "t", arguments: [1] }), -32602);
  assert.deepEqual(of("resources/read", { uri: "ui://a" }), { act: "read", id: 7, uri: "ui://a" });
  assert.deepEqual(of("ui/open-link", { url: "https://a.test/x?y" }), { act: "link", id: 7, url: "https://a.test/x?y" });
  for (const url of ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "https://u:p@a.test", "//a.test", "", 7]) {
    assert.equal(code("ui/open-link", { url }), -32602, String(url));
  }
  assert.deepEqual(of("ui/message", { role: "user", content: [{ type: "text", text: "a" }, { type: "image" }, { type: "text", text: "b" }] }), { act: "message", id: 7, text: "a\nb" });
  assert.equal(code("ui/message", { role: "assistant", content: [{ type: "text", text: "a" }] }), -32602);
  assert.deepEqual(of("ui/update-model-context", { structuredContent: { a: 1 } }), { act: "context", id: 7, text: '{"a":1}' });
  const file = (resource) => of("ui/download-file", { contents: [{ type: "resource", resource }] });
  assert.deepEqual(file({ uri: "file:///../..\\.evil/../a b.txt", mimeType: "text/plain", text: "x" }), { act: "download", id: 7, files: [{ name: "a b.txt", type: "text/plain", data: "x" }] });
  assert.deepEqual(file({ uri: "x:", blob: "AAE=" }).files, [{ name: "x_", type: "application/octet-stream", data: new Uint8Array([0, 1]) }]);
  assert.equal(file({ uri: "x", blob: "?" }).code, -32602);
  assert.deepEqual(of("ui/request-display-mode", { mode: "fullscreen" }).result, { mode: "inline" });
  for (const method of ["sampling/createMessage", "tools/list", "ui/notifications/sandbox-resource-ready", "approvals/decide", "__proto__"]) {
    assert.equal(code(method, {}), -32601, method);
  }
  assert.equal(wish({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "t" } }, { isBegun: false, mode: "inline" }).code, -32600);
  assert.equal(of("tools/call", { name: "t", arguments: { a: "x".repeat(MOST_CHARACTERS) } }).code, -32600);
  const circle = {};
  circle.circle = circle;
  assert.equal(of("tools/call", { name: "t", arguments: circle }).code, -32600);
  const size = (height) => wish({ jsonrpc: "2.0", method: "ui/notifications/size-changed", params: { height } }, begun);
  assert.deepEqual([size(300.4), size(1e9), size(-5), size("7"), size(Infinity)].map(({ height }) => height), [300, 800, 48, undefined, undefined]);
  assert.deepEqual(wish({ jsonrpc: "2.0", id: "teardown", result: {} }, begun), { act: "answered", id: "teardown" });
});

test("so many in so much time are let through, and no more", () => {
  const pace = new Pace(2, 1_000);
  assert.deepEqual([0, 10, 20, 1_001, 1_005, 1_011].map((now) => pace.fits(now)), [true, true, false, true, false, true]);
});

test("an app is told how its call ended, once it has", () => {
  const call = (more) => endOf({ state: "done", output: null, errorText: "", approval: null, ...more });
  assert.equal(call({ state: "ready" }), null);
  assert.deepEqual(call({ output: { content: [{ type: "text", text: "a" }], structuredContent: { a: 1 } } }),
    { method: "ui/notifications/tool-result", params: { content: [{ type: "text", text: "a" }], structuredContent: { a: 1 } } });
  assert.deepEqual(call({ state: "failed", errorText: "no" }).params, { content: [{ type: "text", text: "no" }], isError: true });
  assert.deepEqual(call({ state: "denied", approval: { answerReason: "not today" } }), { method: "ui/notifications/tool-cancelled", params: { reason: "not today" } });
});

test("arguments are read as far as they are written, and nothing of them is made up or taken back", () => {
  const written = '{"city": "Par\\u00eds \\\\ \\"x\\"", "days": [12, 30, {"deep": "y"}], "is": true, "no": null, "none": {}}';
  const whole = JSON.parse(written);
  /** Whether a text is the beginning of the other, and everything else the same or not there yet. */
  const isPartOf = (one, other) => typeof one === "string" ? typeof other === "string" && other.startsWith(one)
    : one === null || typeof one !== "object" ? one === other
    : Object.keys(one).every((key) => key in other && isPartOf(one[key], other[key]));
  let before = {};
  for (let end = 1; end <= written.length; end += 1) {
    const read = soFar(written.slice(0, end));
    assert.ok(read && isPartOf(read, whole) && isPartOf(before, read), `${written.slice(0, end)}: ${JSON.stringify(read)}`);
    before = read;
  }
  assert.deepEqual(before, whole);
  for (const nothing of ["", "  ", "[1, 2", "12", '"x', "nonsense", "}{"]) assert.equal(soFar(nothing), null, nothing);
});

test("an app is told its arguments while they are written, then all of them, then the result", async () => {
  const page = await lookAt(place);
  await page.getByLabel("What runs without asking").selectOption("all");
  await say(page, 'partly app hostile__show {"city":"Paris and the country around it"}');
  const { section, view } = await opened(page, "App of hostile: show");
  await view.getByText("ready").waitFor();
  const frame = await viewOf(page);
  const told = () => frame.evaluate(() => window.inbox.filter(({ method }) => method.startsWith("ui/notifications/tool-")).map(({ method, params }) => [method.slice(22), params]));
  await frame.waitForFunction(() => window.inbox.some(({ method, params }) => method === "ui/notifications/tool-input-partial" && params.arguments.city));
  const partly = await told();
  assert.ok(partly.every(([what, { arguments: { city } }]) => what === "input-partial" && "Paris and the country around it".startsWith(city)), JSON.stringify(partly));
  place.model.gate("app").open();
  await frame.waitForFunction(() => window.inbox.some(({ method }) => method === "ui/notifications/tool-result"));
  const all = await told();
  assert.deepEqual(all.slice(-2).map(([what]) => what), ["input", "result"]);
  assert.deepEqual(all.at(-2)[1], { arguments: { city: "Paris and the country around it" } });
  assert.equal(all.filter(([what]) => what === "input").length, 1);
  assert.equal(await section.isVisible(), true);
  assert.deepEqual(page.wrong, []);
});

test("an app goes on where its turn is told from the beginning again", async () => {
  const cut = new Set();
  const proxy = createProxy((near) => {
    const far = connect(place.port, "127.0.0.1");
    for (const [one, other] of [[near, far], [far, near]]) one.on("error", () => {}).on("close", () => other.destroy()).pipe(other);
    cut.add(near);
  }).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const page = await lookAt({ base: `http://127.0.0.1:${proxy.address().port}` });
  await page.getByLabel("What runs without asking").selectOption("all");
  await say(page, 'partly again hostile__show {"city":"Paris"}');
  const { view } = await opened(page, "App of hostile: show");
  await view.getByText("ready").waitFor();
  const frame = await viewOf(page);
  await frame.evaluate(() => { window.isSame = true; });
  const { data: [{ id }] } = await place.api(`/conversations/${page.url().split("/").at(-1)}/turns`);
  // What is told at first is not as far as what was shown.
  let told = 0;
  await page.route("**/stream", (route) => {
    told += 1;
    if (told > 2) return route.fallback();
    return route.fulfill({ contentType: "text/event-stream", body: `data: ${JSON.stringify({ type: "start", messageMetadata: { turnId: id } })}\n\n` });
  });
  for (const connection of cut) connection.destroy();
  while (told < 3) await page.waitForTimeout(20);
  place.model.gate("again").open();
  await frame.waitForFunction(() => window.inbox.some(({ method }) => method === "ui/notifications/tool-result"));
  assert.equal(await frame.evaluate(() => window.isSame), true);
  await page.getByText("The tool said").waitFor();
  assert.equal(await frame.evaluate(() => window.isSame), true);
  assert.deepEqual(page.wrong, []);
  await page.close();
  proxy.close();
});

test("an app goes on where a notice before it goes, and where another call comes beside its own", async () => {
  const config = `[mcp.servers.hostile]\ncommand = "node"\nargs = ${JSON.stringify([hostile, "http://127.0.0.1:9"])}\n`
    + '[mcp.servers.slow]\ncommand = "sh"\nargs = ["-c", "until [ -e go ]; do sleep 0.1; done"]\n';
  const elsewhere = await startPlace({ config });
  try {
    const page = await lookAt(elsewhere);
    await page.getByLabel("What runs without asking").selectOption("all");
    await say(page, "partly beside hostile__show {} hostile__of_models {}");
    await page.getByText("waiting for what is starting").waitFor();
    writeFileSync(join(elsewhere.folder, "go"), "");
    const { view } = await opened(page, "App of hostile: show");
    await view.getByText("ready").waitFor();
    const frame = await viewOf(page);
    await frame.evaluate(() => { window.isSame = true; });
    elsewhere.model.gate("beside").open();
    await page.getByText("The tool said").waitFor();
    await page.getByRole("button", { name: "Copy answer" }).waitFor();
    await page.getByText("waiting for what is starting").waitFor({ state: "detached" });
    assert.equal(await page.getByRole("group", { name: "2 tool calls" }).count(), 1);
    assert.equal(await frame.evaluate(() => window.isSame), true);
    assert.deepEqual(page.wrong, []);
  } finally {
    await elsewhere.stop();
  }
});

test("while a person decides about its call the app is out of sight, and it is told where that was denied", async () => {
  const page = await lookAt(place);
  await say(page, 'partly unseen hostile__show {"city":"Rome"}');
  const { section, view } = await opened(page, "App of hostile: show");
  await view.getByText("ready").waitFor();
  place.model.gate("unseen").open();
  const deny = page.getByRole("button", { name: "Deny", exact: true });
  await deny.waitFor();
  await section.waitFor({ state: "hidden" });
  const frame = await viewOf(page);
  await deny.click();
  await frame.waitForFunction(() => window.inbox.some(({ method }) => method === "ui/notifications/tool-cancelled"));
  assert.deepEqual(page.wrong, []);
});

test("frames are loaded from the origin that the configuration names, and the page is no other's", async () => {
  const config = (port) => `[server]\nauth = "tokens"\npublic_url = "http://page.tw.test:${port}"\n[apps]\nsandbox_origin = "http://frames.tw.test:${port}"\n`
    + `[mcp.servers.hostile]\ncommand = "node"\nargs = ${JSON.stringify([hostile, "http://127.0.0.1:9"])}\n`;
  const elsewhere = await startPlace({ config });
  try {
    elsewhere.run("users", "add", "ann", "--role", "admin");
    const token = elsewhere.run("users", "token", "ann").match(/tw_\S+/)[0];
    const page = await lookAt({ base: `http://page.tw.test:${elsewhere.port}` });
    await page.getByLabel("Token").fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByLabel("What runs without asking").selectOption("all");
    await say(page, "tool hostile__show {}");
    const { section, view } = await opened(page, "App of hostile: show");
    await view.getByText("ready").waitFor();
    const origin = `http://frames.tw.test:${elsewhere.port}`;
    assert.ok((await section.locator("iframe").getAttribute("src")).startsWith(`${origin}/apps/frame?`));
    const strange = page.strangers.filter((url) => !url.startsWith(`${origin}/apps/frame?`) && url !== "about:srcdoc");
    assert.deepEqual(strange, []);
    const asked = (path, host) => new Promise((resolve, reject) => {
      request({ host: "127.0.0.1", port: elsewhere.port, path, headers: { host: `${host}:${elsewhere.port}` } }, (response) => {
        response.resume().on("end", () => resolve(response));
      }).on("error", reject).end();
    });
    const route = `/apps/frame?page=${encodeURIComponent(`http://page.tw.test:${elsewhere.port}`)}`;
    const frame = await asked(route, "frames.tw.test");
    assert.equal(frame.statusCode, 200);
    assert.match(frame.headers["content-security-policy"], new RegExp(`frame-ancestors http://page\\.tw\\.test:${elsewhere.port}$`));
    assert.equal((await asked(route, "page.tw.test")).statusCode, 404);
    assert.equal((await asked(route, "apps.localhost")).statusCode, 404);
    for (const path of ["/", "/login", "/api/v1/me", "/healthz"]) assert.equal((await asked(path, "frames.tw.test")).statusCode, 404, path);
    // Browsers say of a page without TLS what they do not take from it.
    assert.deepEqual(page.wrong.filter((line) => !line.includes("Cross-Origin-Opener-Policy")), []);
  } finally {
    await elsewhere.stop();
  }
});

test("an app of the official example shows, gets its result, calls its tool with a person's word, and its theme", { skip: !isThere }, async () => {
  const page = await lookAt(place);
  await say(page, "tool basic__get-time {}");
  await page.getByRole("button", { name: "Allow once" }).click();
  const { section, view } = await opened(page, "App of basic: Get Time");
  const time = view.locator("#server-time, #time").first();
  await view.getByText(/20\d\d-\d\d-\d\dT/).first().waitFor();
  const before = await time.innerText();
  await view.getByRole("button", { name: /get server time/i }).click();
  const question = section.getByRole("group", { name: "Decision about basic__get-time" });
  await question.waitFor();
  assert.match(await section.innerText(), /The app of basic wants to call this tool/);
  assert.equal(await time.innerText(), before);
  await question.getByRole("button", { name: "Allow once" }).click();
  await page.waitForFunction(() => document.querySelector(".app-ask") === null);
  await view.getByText(/20\d\d-\d\d-\d\dT/).filter({ hasNotText: before }).first().waitFor();
  // A denied call is told as an error, and nothing runs.
  await view.getByRole("button", { name: /get server time/i }).click();
  await question.getByRole("button", { name: "Deny", exact: true }).click();
  await question.waitFor({ state: "detached" });
  const height = await section.locator("iframe").evaluate((frame) => frame.clientHeight);
  assert.ok(height >= 48 && height <= 800, String(height));
  assert.deepEqual(strangers(page), []);
  assert.deepEqual(page.wrong, []);
});

test("an app of the official debug server meets a host that answers as the protocol says", { skip: !isThere }, async () => {
  const page = await lookAt(place);
  await show(page, "debug__debug-tool", { contentType: "mixed" });
  const { section, view } = await opened(page, "App of debug: Debug Tool");
  await view.getByText("Mixed content: text block").first().waitFor();
  const frame = await viewOf(page);
  await view.getByText("light", { exact: true }).waitFor();
  await page.emulateMedia({ colorScheme: "dark" });
  await view.getByText("dark", { exact: true }).waitFor();
  const before = await section.locator("iframe").evaluate((frame) => frame.clientHeight);
  await frame.evaluate(() => parent.postMessage({ jsonrpc: "2.0", method: "ui/notifications/size-changed", params: { height: 333 } }, "*"));
  await page.waitForFunction(() => document.querySelector(".app-frame").clientHeight === 333);
  assert.notEqual(before, 333);
  await section.getByRole("button", { name: "Larger" }).click();
  await frame.waitForFunction(() => innerHeight > 500);
  await page.keyboard.press("Escape");
  // How high it is then is the app's own word.
  await section.getByRole("button", { name: "Larger" }).waitFor();
  assert.equal(await page.locator(".app-view.large").count(), 0);
  await section.getByRole("button", { name: "Close the app of Debug Tool" }).click();
  await section.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Show the app of Debug Tool" }).click();
  await section.waitFor();
  assert.deepEqual(strangers(page), []);
});

test("what an app asks of people is shown to them, and done where they want it", async () => {
  const page = await lookAt(place);
  await show(page, "hostile__show");
  const { section, view } = await opened(page, "App of hostile: show");
  await view.getByText("ready").waitFor();
  const frame = await viewOf(page);
  const asking = (method, params) => frame.evaluate(([method, params]) => window.ask(method, params), [method, params]);
  const composer = page.getByRole("textbox", { name: "Message" });
  await composer.fill("mine");
  const message = asking("ui/message", { role: "user", content: [{ type: "text", text: "Tell me more" }] });
  await section.getByText("Tell me more").waitFor();
  const busy = await asking("ui/open-link", { url: "https://example.test/" });
  assert.equal(busy.error.code, -32000);
  await section.getByRole("button", { name: "Put it there" }).click();
  assert.deepEqual((await message).result, {});
  assert.equal(await composer.inputValue(), "mine\nTell me more");
  const link = asking("ui/open-link", { url: "https://example.test/" });
  await section.getByText("https://example.test/").waitFor();
  const pages = page.context().pages().length;
  await section.getByRole("button", { name: "No", exact: true }).click();
  assert.deepEqual((await link).result, { isError: true });
  assert.equal(page.context().pages().length, pages);
  const file = asking("ui/download-file", { contents: [{ type: "resource", resource: { uri: "file:///a/notes.txt", mimeType: "text/plain", text: "x" } }] });
  const download = page.waitForEvent("download");
  await section.getByRole("button", { name: "Save" }).click();
  assert.equal((await download).suggestedFilename(), "notes.txt");
  assert.deepEqual((await file).result, {});
  assert.deepEqual((await asking("ui/update-model-context", { content: [{ type: "text", text: "old" }] })).result, {});
  await asking("ui/update-model-context", { content: [{ type: "text", text: "the map is at Rome" }] });
  assert.equal(await page.getByText("Context of the app of hostile").count(), 1);
  await composer.press("Enter");
  await page.getByText("You said: mine").first().waitFor();
  const sent = JSON.stringify(place.model.requests.at(-1).messages.at(-1));
  assert.ok(sent.includes("the map is at Rome") && !sent.includes("old"), sent);
});

test("an app calls tools of its own server that are for pages, and no others", async () => {
  const page = await lookAt(place);
  await show(page, "hostile__show");
  const { view } = await opened(page, "App of hostile: show");
  await view.getByText("ready").waitFor();
  const offered = place.model.requests.at(-1).tools.map((tool) => tool.function.name).filter((name) => name.startsWith("hostile__"));
  assert.deepEqual(offered, ["hostile__missing", "hostile__of_models", "hostile__show", "hostile__silent"]);
  const frame = await viewOf(page);
  const called = (name, input = {}) => frame.evaluate(([name, input]) => window.ask("tools/call", { name, arguments: input }), [name, input]);
  assert.deepEqual((await called("counted", { by: 2 })).result, { content: [{ type: "text", text: "counted to 2" }], structuredContent: { counted: 2 } });
  assert.match((await called("counted", { by: "x" })).result.content[0].text, /integer/);
  for (const name of ["of_models", "filesystem__read", "read", "hostile__counted", "../x", "resources__read"]) {
    assert.match((await called(name)).error.message, /no tool|there is no/i, name);
  }
  const read = await frame.evaluate(() => window.ask("resources/read", { uri: "ui://hostile/silent" }));
  assert.equal(read.result.contents[0].text, "<p>nothing</p>");
  // A rule that denies holds for pages too.
  const rule = await place.api("/approvals/rules", { tool: "hostile__counted", action: "deny", scope: "user", when: {} });
  const denied = await called("counted");
  assert.equal(denied.result.isError, true);
  assert.match(denied.result.content[0].text, /denied/);
  await place.api(`/approvals/rules/${rule.id}`, undefined, "DELETE");
  const many = await frame.evaluate(() => Promise.all(Array.from({ length: 300 }, () => window.ask("ping", {}))));
  assert.ok(many.some(({ error }) => error?.code === -32000) && many.some(({ result }) => result), "a flood is answered in part");
});

test("an app cannot get out of its frame, by any way that is known here", async () => {
  const page = await lookAt(place);
  await page.evaluate(() => { localStorage.setItem("mine", "1"); document.cookie = "mine=1"; });
  await show(page, "hostile__show");
  const { view } = await opened(page, "App of hostile: show");
  await view.getByText("ready").waitFor();
  const frame = await viewOf(page);
  const tabs = page.context().pages().length;
  const asked = [];
  page.on("response", (response) => asked.push([response.url(), response.frame().parentFrame() !== null]));
  const found = await frame.evaluate((server) => window.attack(server), place.base);
  const outcomes = Object.fromEntries(Object.entries(found).filter(([, came]) => !came.startsWith("refused: ")));
  // What is not an exception is without effect, as is looked at below.
  for (const [name, came] of Object.entries(outcomes)) {
    assert.ok(["done", "null", "true", "false", "none", "undefined", "", "[object Promise]"].includes(came), `${name}: ${came}`);
  }
  for (const name of ["top document", "parent document", "top location read", "cookie read", "cookie write", "local storage", "indexed db", "fetch outside",
    "fetch without cors", "fetch the page", "decide", "call a tool by hand", "picture", "picture of the page", "script", "script of the frame", "style", "web socket", "events", "worker"]) {
    assert.match(found[name], /^refused: /, name);
  }
  assert.deepEqual(reached, []);
  assert.equal(page.context().pages().length, tabs);
  assert.ok(page.url().startsWith(place.base));
  // What our server answered to documents in the frame: nothing.
  const fromFrames = asked.filter(([url, isInFrame]) => isInFrame && url.startsWith(place.base)).map(([url]) => url);
  assert.deepEqual(fromFrames, []);
  assert.equal(await page.locator(".app-ask").count(), 0, "what goes past the frame is not heard");
  assert.equal(await page.locator(".app-frame").count(), 1);
  assert.equal((await place.api("/approvals")).data.length, 0);
  // It goes elsewhere itself: what comes is an error of the browser, and nobody outside hears of it.
  for (const by of ["form", "address"]) {
    const other = await lookAt(place);
    await show(other, "hostile__show");
    await (await opened(other, "App of hostile: show")).view.getByText("ready").waitFor();
    await (await viewOf(other)).evaluate((by) => void window.leave(by), by);
    await other.waitForFunction(() => document.querySelector(".app-frame") !== null);
    while (other.frames().some((frame) => frame.url() === "about:srcdoc")) await other.waitForTimeout(20);
    assert.ok(other.frames().every((frame) => !frame.url().startsWith(`http://127.0.0.1:${outside.address().port}`)));
  }
  assert.deepEqual(reached, []);
});

test("the frame is handed out under its own name alone, and nothing else there", async () => {
  const port = new URL(place.base).port;
  const asked = (path, host) => new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, path, headers: { host } }, (response) => {
      response.resume().on("end", () => resolve({ status: response.statusCode, headers: response.headers }));
    });
    sent.on("error", reject);
    sent.end();
  });
  const page = `page=${encodeURIComponent(place.base)}`;
  const frame = await asked(`/apps/frame?${page}`, `apps.localhost:${port}`);
  assert.equal(frame.status, 200);
  assert.match(frame.headers["content-security-policy"], new RegExp(`default-src 'none'.*connect-src 'none'; frame-src 'none'.*form-action 'none'; frame-ancestors ${place.base}$`));
  assert.equal(frame.headers["set-cookie"], undefined);
  assert.equal((await asked(`/apps/frame?${page}`, `localhost:${port}`)).status, 404);
  assert.equal((await asked("/apps/frame?page=https://evil.test", `apps.localhost:${port}`)).status, 400);
  assert.equal((await asked(`/apps/frame?${page}&connect=${encodeURIComponent("https://a.test;script-src")}`, `apps.localhost:${port}`)).status, 400);
  for (const path of ["/", "/page/main.js", "/api/v1/me", "/api/v1/approvals", "/healthz", "/docs", "/nowhere"]) {
    assert.equal((await asked(path, `apps.localhost:${port}`)).status, 404, path);
  }
});

test("an app that does not come is told in words, and the result is there without it", async () => {
  const page = await lookAt(place);
  await show(page, "hostile__missing");
  const section = page.getByRole("region", { name: "App of hostile: missing" });
  await section.getByRole("alert").waitFor();
  assert.match(await section.innerText(), /there is none/);
  await section.getByRole("button", { name: "Try again" }).waitFor();
  await page.locator(".card summary").first().click();
  await page.getByText("missing ran").waitFor();
});

test("where there is no second origin, the result is shown as any other's", async () => {
  const page = await lookAt(place);
  await page.route("**/apps/open", (route) => route.fulfill({ status: 409, contentType: "application/problem+json", body: JSON.stringify({ status: 409, code: "apps_off", detail: "pages of MCP servers are not shown here" }) }));
  await show(page, "hostile__show");
  await page.getByText("The tool said").waitFor();
  await page.waitForFunction(() => document.querySelector(".app-view") === null);
  assert.equal(await page.getByText("Show the app").count(), 0);
});

test("a card with an app has no barrier that axe knows of, in either theme, and the keyboard gets in and out", async () => {
  for (const theme of ["light", "dark"]) {
    const page = await lookAt(place, { theme });
    await show(page, "hostile__show");
    const { section, view } = await opened(page, "App of hostile: show");
    await view.getByText("ready").waitFor();
    const frame = await viewOf(page);
    await frame.evaluate(() => void window.ask("ui/open-link", { url: "https://example.test/" }));
    await section.getByRole("button", { name: "Open it" }).waitFor();
    await page.waitForFunction(() => !document.querySelector(".app-ask button:disabled"));
    assert.deepEqual(await violations(page, { iframes: false }), []);
    await section.getByRole("button", { name: "Larger" }).focus();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    // Focus goes into a frame of another origin a moment later.
    await page.waitForFunction(() => document.activeElement?.closest(".app-view") !== null);
  }
});
