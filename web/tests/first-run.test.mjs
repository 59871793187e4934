// The first run: practice with everything that it promises, and the way to a real model.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, readdirSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, test } from "node:test";
import { closeBrowser, lookAt, say, startPlace } from "./place.mjs";

const KEY = "sk-proj-0123456789abcdefghijklmnopqrstuv";

after(closeBrowser);

/** All files below a folder. */
const files = (folder) => readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));

/** Runs over a server that nobody configured. */
async function unconfigured(work) {
  const place = await startPlace({ model: "unsaid" });
  try {
    await work(place);
  } finally {
    await place.stop();
  }
}

test("the form to practise with is stored, outlives the server, and its answer reaches the model", () => unconfigured(async (place) => {
  const page = await lookAt(place);
  await page.getByText("This is practice.").waitFor();
  await page.getByRole("button", { name: "A form" }).click();
  const form = page.getByRole("group", { name: "Question of practice" });
  await form.waitFor();
  await place.kill();
  await place.start();
  await page.reload();
  await form.getByLabel("Your name").fill("Ada");
  await form.getByLabel("Where to").selectOption("sea");
  await form.getByRole("button", { name: "Answer" }).click();
  await page.getByText(/answered:[\s\S]*name: Ada/).waitFor();
  assert.match(await page.locator(".md").last().innerText(), /destination: sea/);
  assert.deepEqual(page.wrong, []);
}));

test("a key is pasted, tested, kept sealed, and answers from then on", () => unconfigured(async (place) => {
  place.model.lock(KEY);
  const page = await lookAt(place);
  const key = page.getByLabel("Key", { exact: true });
  const choice = page.getByRole("combobox", { name: "Provider" });
  for (const [begins, name] of [["sk-ant-api03-x", "anthropic"], ["AIzaSy", "gemini"], ["sk-or-v1-x", "openrouter"], ["gsk_x", "groq"], ["", ""], ["sk-x", "openai"]]) {
    await key.fill(begins);
    assert.equal(await choice.inputValue(), name);
  }
  await page.getByText("At another address").click();
  await page.getByLabel(/^Address/).fill(place.model.url);
  const wrong = `${KEY.slice(0, -4)}nope`;
  await key.fill(wrong);
  await page.getByRole("button", { name: "Test and connect" }).click();
  const alert = page.getByRole("alert");
  await alert.waitFor();
  const said = await alert.innerText();
  assert.match(said, /^Not connected: .*(key|401)/i);
  assert.ok(!said.includes(wrong), said);
  assert.equal(await key.inputValue(), wrong, "what was typed is kept");
  assert.deepEqual((await place.api("/providers")).data.filter(({ origin }) => origin === "added"), []);

  await key.fill(KEY);
  await key.press("Enter");
  await page.getByText("Connected: openai/one answers.").waitFor();
  await page.getByText("This is practice.").waitFor({ state: "detached" });
  await say(page, "hello");
  await page.getByText("You said: hello").first().waitFor();
  assert.equal((await place.api("/providers")).data.find(({ id }) => id === "openai").origin, "added");
  assert.deepEqual((await place.api("/tools")).data.filter(({ server_id }) => server_id === "practice"), []);

  const kept = files(join(place.folder, "data"));
  for (const file of kept) assert.ok(!readFileSync(file).includes(KEY), file);
  const sealed = kept.filter((file) => file.includes("/providers/") && file.endsWith(".sealed"));
  assert.equal(sealed.length, 1);
  for (const file of kept.filter((file) => file.includes("/providers/"))) assert.equal(statSync(file).mode & 0o777, 0o600, file);
  const told = await page.evaluate(async () => JSON.stringify([{ ...localStorage }, document.documentElement.outerHTML]) + (await (await fetch("api/v1/providers")).text()));
  assert.ok(!told.includes(KEY));

  await place.kill();
  await place.start();
  await page.goto(`${place.base}/#/`);
  await page.reload();
  await say(page, "again");
  await page.getByText("You said: again").first().waitFor();

  await page.goto(`${place.base}/#/settings`);
  await page.getByRole("button", { name: "Remove openai" }).click();
  await page.getByRole("button", { name: "Remove openai" }).waitFor({ state: "detached" });
  assert.deepEqual(files(join(place.folder, "data")).filter((file) => file.includes("/providers/") && file.endsWith(".sealed")), []);
  await page.goto(`${place.base}/#/`);
  await page.getByText("This is practice.").waitFor();
  assert.deepEqual([page.wrong, page.strangers], [[], []]);
}));

test("why a model was not connected is seen where the key was typed", () => unconfigured(async (place) => {
  place.model.lock(KEY);
  const page = await lookAt(place, { width: 1280 });
  const isSeen = (found) => found.evaluate((box) => box.getBoundingClientRect().bottom <= document.querySelector(".composer").getBoundingClientRect().top);
  assert.equal(await isSeen(page.getByRole("button", { name: "Test and connect" })), true);
  await page.getByRole("combobox", { name: "Provider" }).selectOption("openai");
  await page.getByText("At another address").click();
  await page.getByLabel(/^Address/).fill(place.model.url);
  await page.getByLabel("Key", { exact: true }).fill("not-the-key");
  await page.getByLabel("Key", { exact: true }).press("Enter");
  await page.getByRole("alert").waitFor();
  assert.deepEqual([await isSeen(page.getByRole("alert")), await isSeen(page.getByRole("button", { name: "Test and connect" }))], [true, true]);
}));

test("a server without a key is connected by its address, and a name that is taken is said to be", () => unconfigured(async (place) => {
  const page = await lookAt(place);
  await page.getByRole("combobox", { name: "Provider" }).selectOption("other");
  await page.getByLabel("Its name").fill("practice");
  await page.getByLabel(/^Address/).fill(place.model.url);
  await page.getByRole("button", { name: "Test and connect" }).click();
  await page.getByRole("alert").getByText("`practice` is the name of a provider that is always there").waitFor();
  await page.getByLabel("Its name").fill("here");
  await page.getByRole("button", { name: "Test and connect" }).click();
  await page.getByText("Connected: here/one answers.").waitFor();
  const refused = await place.api("/providers/openai", { api_key: "two words" }, "PUT");
  assert.equal(refused.status, 422);
  assert.deepEqual(page.wrong, []);
}));

test("a key is tried where the list of models is everybody's, and where it cannot be that is said", () => unconfigured(async (place) => {
  place.model.lock(KEY, { isListPublic: true, hasKeyPath: true });
  const page = await lookAt(place);
  const key = page.getByLabel("Key", { exact: true });
  const connect = page.getByRole("button", { name: "Test and connect" });
  await page.getByRole("combobox", { name: "Provider" }).selectOption("openrouter");
  await page.getByText("At another address").click();
  await page.getByLabel(/^Address/).fill(place.model.url);
  await key.fill("sk-or-v1-not-this-one-at-all-0123456789");
  await connect.click();
  await page.getByRole("alert").getByText(/refused the key/).waitFor();
  assert.deepEqual((await place.api("/providers")).data.filter(({ origin }) => origin === "added"), []);
  await key.fill(KEY);
  await connect.click();
  await page.getByText("Connected: openrouter/one answers.").waitFor();
  // One that nobody knows has nothing that says whether its key is right.
  await page.goto(`${place.base}/#/settings`);
  await page.getByText("Add a provider by its key").click();
  await page.getByRole("combobox", { name: "Provider" }).selectOption("other");
  await page.getByLabel("Its name").fill("elsewhere");
  await page.getByLabel(/^Address/).fill(place.model.url);
  await key.fill("not-this-one-either-0123456789");
  await connect.click();
  await page.getByText(/Connected: elsewhere\/one\. It lists its models without a key/).waitFor();
  assert.deepEqual(page.wrong, []);
}));

/** A server that speaks as Ollama does, at a port of this machine. */
async function ollama(port) {
  const server = createServer(async (request, response) => {
    for await (const piece of request) void piece;
    response.setHeader("content-type", "application/x-ndjson");
    if (request.url === "/api/tags") response.end(JSON.stringify({ models: [{ name: "qwen3:0.6b", model: "qwen3:0.6b" }] }));
    else response.end(`${JSON.stringify({ model: "qwen3:0.6b", message: { role: "assistant", content: "I am local." }, done: true, done_reason: "stop", prompt_eval_count: 9, eval_count: 4 })}\n`);
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return server;
}

test("a server that was found on this machine is used at the press of a button", async () => {
  const spot = createServer().listen(0, "127.0.0.1");
  await once(spot, "listening");
  const { port } = spot.address();
  spot.close();
  await once(spot, "close");
  const place = await startPlace({ model: "unsaid", env: { OLLAMA_HOST: `127.0.0.1:${port}` } });
  let local = null;
  try {
    const page = await lookAt(place, { path: "/#/settings" });
    const providers = page.getByRole("region", { name: "Providers" });
    await providers.getByRole("button", { name: "Test all" }).click();
    const row = providers.locator("li", { hasText: "ollama" });
    await row.getByText("not running").waitFor();
    assert.equal(await providers.locator(".failure, .dot.bad").count(), 0, "that nothing runs is no failure");
    await page.goto(`${place.base}/#/`);
    await page.getByText(/Looked for in vain: .*ollama/).waitFor();
    assert.equal(await page.getByRole("button", { name: "Use ollama" }).count(), 0);
    local = await ollama(port);
    await page.reload();
    await page.getByText("Found on this machine").waitFor();
    await page.getByRole("button", { name: "Use ollama" }).click();
    await page.getByText("Connected: ollama/qwen3:0.6b answers.").waitFor();
    await page.getByText("This is practice.").waitFor({ state: "detached" });
    await say(page, "who are you?");
    await page.getByText("I am local.").waitFor();
    await page.goto(`${place.base}/#/settings`);
    await providers.getByRole("button", { name: "Test all" }).click();
    await row.getByText("answers, 1 model").waitFor();
    assert.deepEqual([page.wrong, page.strangers], [[], []]);
  } finally {
    local?.close();
    await place.stop();
  }
});

test("only an admin connects a provider", async () => {
  const place = await startPlace({ model: "unsaid", config: '[server]\nauth = "tokens"\n' });
  try {
    const token = (words) => place.run(...words).trim().split(/\s+/).find((word) => word.length > 30);
    place.run("users", "add", "mel");
    const secret = token(["users", "token", "mel"]);
    const sent = (path, method, body) => fetch(`${place.base}/api/v1${path}`, {
      method, headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" }, body: body && JSON.stringify(body),
    });
    assert.equal((await sent("/me", "GET")).status, 200);
    assert.equal((await sent("/providers/here", "PUT", { base_url: place.model.url })).status, 403);
    assert.equal((await sent("/providers/here", "DELETE")).status, 403);
    assert.equal(place.model.requests.length, 0);
  } finally {
    await place.stop();
  }
});
