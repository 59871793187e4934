// Talking: what a person writes, what streams back, and what becomes of it when something breaks.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { numbers } from "./model.mjs";
import { closeBrowser, lookAt, say, startPlace } from "./place.mjs";

let place;
before(async () => { place = await startPlace(); });
after(async () => { await closeBrowser(); await place?.stop(); });

const whole = numbers(0, 120);
const answer = (page) => page.locator(".turn").last().locator(".answer > .md").last();
const textOf = async (page) => (await answer(page).innerText()).trim();

test("the page opens on the composer, and Enter sends what is in it", async () => {
  const page = await lookAt(place);
  const composer = page.getByRole("textbox").first();
  await composer.waitFor();
  assert.equal(await composer.evaluate((box) => box === document.activeElement), true);
  const { x, y, width, height } = await composer.boundingBox();
  const covers = await page.evaluate(([x, y]) => document.elementFromPoint(x, y)?.tagName, [x + width / 2, y + height / 2]);
  assert.equal(covers, "TEXTAREA");
  await page.keyboard.type("hello");
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type("there");
  await page.keyboard.press("Enter");
  await page.getByText("You said: hello").waitFor();
  assert.equal(await textOf(page), "You said: hello\nthere");
  assert.equal(await composer.inputValue(), "");
  assert.deepEqual(page.wrong, []);
});

test("below a path the page loads what it is made of, talks, and asks for nothing beside the path", async () => {
  const elsewhere = await startPlace({ below: "/turnwright" });
  try {
    const page = await lookAt(elsewhere);
    await say(page, "hello");
    await page.getByText("You said: hello").waitFor();
    await page.reload();
    await page.getByText("You said: hello").waitFor();
    assert.deepEqual(page.wrong, []);
    assert.deepEqual(page.strangers, []);
  } finally {
    await elsewhere.stop();
  }
});

test("Markdown streams in, code has colours and can be copied, reasoning is folded", async () => {
  const page = await lookAt(place);
  await say(page, "markdown");
  await page.locator(".md .hljs-keyword").first().waitFor();
  assert.equal(await page.locator(".md h1").innerText(), "A title");
  assert.deepEqual(await page.locator(".md td").allInnerTexts(), ["1", "2"]);
  const link = page.locator(".md a").first();
  assert.deepEqual(await link.evaluate((a) => [a.href, a.target, a.rel]), ["https://example.org/", "_blank", "noopener noreferrer nofollow"]);
  await page.getByRole("button", { name: "Copy code" }).click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), 'def greet(name):\n    return f"Hello {name}"');
  const thought = page.getByText("First a title, then the rest.");
  assert.equal(await thought.isVisible(), false);
  await page.getByText("Reasoning", { exact: true }).click();
  assert.equal(await thought.isVisible(), true);
  assert.deepEqual(page.wrong, []);
});

test("a reload in mid-stream loses and doubles nothing", async () => {
  const page = await lookAt(place);
  await say(page, "count through reload");
  await page.getByText("n59", { exact: false }).first().waitFor();
  await page.reload();
  await page.getByText("n59", { exact: false }).first().waitFor();
  place.model.gate("reload").open();
  await page.getByText("n119").first().waitFor();
  assert.equal(await textOf(page), whole);
});

test("a server that is killed in mid-stream and started again ends the answer as if nothing had been", async () => {
  const page = await lookAt(place);
  await say(page, "count through kill");
  await page.getByText("n59", { exact: false }).first().waitFor();
  await place.kill();
  await page.getByText("Trying again").waitFor();
  place.model.gate("kill").open();
  await place.start();
  await page.getByText("n119").first().waitFor();
  await page.getByRole("button", { name: "Copy answer" }).waitFor();
  assert.equal(await textOf(page), whole);
  await page.getByText("Trying again").waitFor({ state: "detached" });
  assert.equal(await page.locator(".turn").count(), 1);
});

test("a message that is sent while the network is away is stored once when it is back", async () => {
  const page = await lookAt(place);
  await say(page, "first");
  await page.getByText("You said: first").waitFor();
  await page.context().setOffline(true);
  await say(page, "second");
  await page.getByText("Sending again").waitFor();
  await page.context().setOffline(false);
  await page.getByText("You said: second").waitFor();
  const id = decodeURIComponent(new URL(page.url()).hash.split("/").at(-1));
  const { data } = await place.api(`/conversations/${id}/messages`);
  assert.deepEqual(data.map(({ content }) => content), ["first", "You said: first", "second", "You said: second"]);
  assert.equal(await page.locator(".said").count(), 2);
});

test("a network that goes away in mid-stream, and a machine that sleeps, lose and double nothing", async () => {
  const page = await lookAt(place);
  await say(page, "count through network");
  await page.getByText("n59", { exact: false }).first().waitFor();
  // What is open ends as it does where a cable is pulled; the turn goes on without us.
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  await session.send("Network.emulateNetworkConditions", { offline: true, latency: 0, downloadThroughput: 0, uploadThroughput: 0 });
  await page.evaluate(() => window.dispatchEvent(new Event("online")));
  place.model.gate("network").open();
  await session.send("Network.emulateNetworkConditions", { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: -1 });
  await page.evaluate(() => window.dispatchEvent(new Event("online")));
  await page.getByText("n119").first().waitFor();
  assert.equal(await textOf(page), whole);
  assert.equal(await page.locator(".turn").count(), 1);
  // Asleep, nothing of it runs; what happened meanwhile is there after.
  await session.send("Page.setWebLifecycleState", { state: "frozen" });
  const id = decodeURIComponent(new URL(page.url()).hash.split("/").at(-1));
  await place.api(`/conversations/${id}/chat`, { content: "said meanwhile" });
  await session.send("Page.setWebLifecycleState", { state: "active" });
  await page.getByText("You said: said meanwhile").waitFor();
  assert.equal(await page.locator(".turn").count(), 2);
  assert.deepEqual(page.wrong, []);
});

test("a turn is stopped, and what was said stays", async () => {
  const page = await lookAt(place);
  await say(page, "count through never");
  await page.getByText("n59", { exact: false }).first().waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("Stopped.").waitFor();
  assert.match(await textOf(page), /n59$/);
  place.model.gate("never").open();
});

test("a failed turn says why and is tried again, with another model too", async () => {
  const page = await lookAt(place);
  place.model.failNext(2);
  await say(page, "please");
  await page.getByText("the scripted model fails").waitFor();
  const failed = place.model.requests.length;
  await page.getByRole("button", { name: "Try again" }).click();
  while (place.model.requests.length === failed) await page.waitForTimeout(20);
  await page.waitForFunction(() => document.querySelectorAll(".failure").length === 1);
  const before = place.model.requests.length;
  await page.getByLabel("Try again with another model").focus();
  await page.getByLabel("Try again with another model").selectOption("scripted/two");
  await page.getByText("You said: please").waitFor();
  assert.equal(place.model.requests.slice(before).at(-1).model, "two");
});

test("an answer without a word is told as one", async () => {
  const page = await lookAt(place);
  await say(page, "think alone");
  await page.getByText("The answer is empty.").waitFor();
  await say(page, "hello");
  // The server is told both in one message, since nothing was said between them.
  await page.getByText(/You said: [^]*hello/).first().waitFor();
  await page.getByRole("button", { name: "Copy answer" }).nth(1).waitFor();
  assert.equal(await page.getByText("The answer is empty.").count(), 1);
});

test("a message that is sent while a turn runs is shown in its place and answered", async () => {
  const page = await lookAt(place);
  await say(page, "count through steer");
  await page.getByText("n59", { exact: false }).first().waitFor();
  await say(page, "and this?");
  await page.locator(".said", { hasText: "and this?" }).waitFor();
  place.model.gate("steer").open();
  await page.getByText("You said: and this?").waitFor();
  assert.equal(await page.locator(".said", { hasText: "and this?" }).count(), 1);
});

test("what two windows show is the same", async () => {
  const one = await lookAt(place);
  await say(one, "count through two");
  await one.getByText("n59", { exact: false }).first().waitFor();
  const two = await lookAt(place, { path: `/${new URL(one.url()).hash}` });
  await two.getByText("n59", { exact: false }).first().waitFor();
  place.model.gate("two").open();
  for (const page of [one, two]) {
    await page.getByText("n119").first().waitFor();
    assert.equal(await textOf(page), whole);
  }
  await say(two, "from the other window");
  await one.getByText("You said: from the other window").waitFor();
});

test("conversations are found, renamed, and deleted unless that is taken back", async () => {
  const page = await lookAt(place);
  await say(page, "a needle");
  await page.getByText("You said: a needle").waitFor();
  const entry = page.locator(".entry", { hasText: "a needle" });
  await entry.hover();
  await page.getByRole("button", { name: "Rename a needle" }).click();
  await page.getByLabel("Title").fill("Haystack");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Haystack" }).waitFor();
  await page.getByLabel("Search conversations").fill("haystack");
  await page.waitForFunction(() => document.querySelectorAll(".entry").length === 1);
  const found = page.locator(".entry", { hasText: "Haystack" });
  await found.hover();
  await page.getByRole("button", { name: "Delete Haystack" }).click();
  await found.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Undo" }).click();
  await found.waitFor();
  await found.hover();
  await page.getByRole("button", { name: "Delete Haystack" }).click();
  await page.waitForResponse((response) => response.request().method() === "DELETE" && response.status() === 204);
});

test("what a search found keeps its title beside a long excerpt", async () => {
  const page = await lookAt(place);
  const id = (await place.api("/conversations", { title: "A title that says enough" })).id;
  await page.goto(`${place.base}/#/c/${id}`);
  await say(page, `the haystraw ${"and much besides ".repeat(20)}`);
  await page.getByText(/You said: the haystraw/).first().waitFor();
  await page.getByLabel("Search conversations").fill("haystraw");
  await page.locator(".entry .excerpt").waitFor();
  const [title, excerpt] = await Promise.all([".entry bdi", ".entry .excerpt"].map((found) => page.locator(found).boundingBox()));
  assert.ok(title.width > 120, `${title.width}`);
  assert.ok(excerpt.y >= title.y + title.height - 4, `${title.y} ${excerpt.y}`);
});

test("the model of a conversation is chosen, and kept", async () => {
  const page = await lookAt(place);
  await page.getByLabel("Model", { exact: true }).selectOption("scripted/two");
  await say(page, "who?");
  await page.getByText("You said: who?").waitFor();
  assert.equal(place.model.requests.at(-1).model, "two");
  await page.reload();
  await page.getByText("You said: who?").waitFor();
  assert.equal(await page.getByLabel("Model", { exact: true }).inputValue(), "scripted/two");
});

test("a long list stays as far as it was shown, with each conversation once, and has the names of what waits", async () => {
  const elsewhere = await startPlace();
  try {
    const made = (id) => elsewhere.api("/conversations", { id, title: `Number ${id}` });
    await made("c0");
    await elsewhere.api("/conversations/c0/chat", { content: 'tool filesystem__write {"path":"x.txt","content":"x"}' });
    for (let at = 1; at < 180; at += 1) await made(`c${at}`);
    const page = await lookAt(elsewhere);
    const entries = page.locator(".entry");
    const count = (wanted) => page.waitForFunction((wanted) => document.querySelectorAll(".entry").length === wanted, wanted);
    const names = async () => (await entries.locator("bdi").allInnerTexts()).map((name) => name.replace("Number ", ""));
    const twice = async () => (await names()).filter((name, at, all) => all.indexOf(name) !== at);
    await count(50);
    // It is not among those that the list begins with.
    await page.getByRole("link", { name: /Waiting for you/ }).click();
    await page.locator(".wait-head a", { hasText: "Number c0" }).waitFor();
    await page.getByRole("button", { name: "Show more" }).click();
    await count(100);
    await page.getByRole("button", { name: "Show more" }).dblclick();
    await count(180);
    assert.deepEqual(await twice(), []);
    await page.locator(".entry a", { hasText: "Number c5" }).last().click();
    await page.getByRole("heading", { name: "Number c5", exact: true }).waitFor();
    await say(page, "hello");
    await page.getByText("You said: hello").waitFor();
    await page.waitForFunction(() => document.querySelector(".entry bdi")?.textContent === "Number c5");
    assert.deepEqual([await entries.count(), await twice()], [180, []]);
    await elsewhere.api("/conversations/c1", { pinned: true }, "PATCH");
    await page.reload();
    await count(51);
    await page.getByRole("button", { name: "Show more" }).click();
    await count(101);
    for (let more = 0; more < 2; more += 1) await page.getByRole("button", { name: "Show more" }).click();
    await count(180);
    assert.deepEqual([(await names())[0], await twice()], ["c1", []]);
    // What is asked for of one search is not shown in another.
    await page.reload();
    await count(51);
    let letGo;
    const held = new Promise((resolve) => (letGo = resolve));
    await page.route(/conversations\?limit=100$/, async (route) => { await held; await route.continue(); });
    const late = page.waitForResponse(/conversations\?limit=100$/);
    await page.getByRole("button", { name: "Show more" }).click();
    await page.getByLabel("Search conversations").fill("c17");
    await count(11);
    letGo();
    await (await late).finished();
    await page.waitForTimeout(200);
    assert.equal(await entries.count(), 11);
    assert.deepEqual(page.wrong, []);
  } finally {
    await elsewhere.stop();
  }
});

test("what could not be deleted is there again, and what somebody goes on with is not deleted", async () => {
  const page = await lookAt(place);
  const { id } = await place.api("/conversations", { title: "Not to be lost" });
  const entry = page.locator(".entry", { hasText: "Not to be lost" });
  await page.reload();
  await page.route(`**/conversations/${id}`, (route) => (route.request().method() === "DELETE" ? route.abort() : route.fallback()));
  const remove = async () => {
    await entry.hover();
    await page.getByRole("button", { name: "Delete Not to be lost" }).click();
    await entry.waitFor({ state: "detached" });
  };
  await remove();
  await page.getByText("The server cannot be reached.").waitFor();
  await entry.waitFor();
  await page.unroute(`**/conversations/${id}`);
  let isDeleted = false;
  page.on("request", (request) => (isDeleted ||= request.method() === "DELETE"));
  await entry.getByRole("link").click();
  await page.getByRole("heading", { name: "Not to be lost" }).waitFor();
  await page.clock.install();
  await remove();
  await page.goBack();
  await say(page, "one more thing");
  await page.getByText("You said: one more thing").waitFor();
  await entry.waitFor();
  await page.clock.fastForward(10_000);
  await page.evaluate(() => window.dispatchEvent(new Event("pagehide")));
  assert.equal(isDeleted, false);
  assert.deepEqual(page.wrong, []);
});
