// What is said is sent as the page showed it, in the order in which it was said, once, whatever becomes of a request.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { changed, shownTo } from "../page/lib/conversation.js";
import { closeBrowser, lookAt, looking, say, startPlace, until } from "./place.mjs";

let place;
before(async () => { place = await startPlace(); });
after(async () => { await closeBrowser(); await place?.stop(); });

const look = looking();

/** A conversation in which something was answered, and its id. */
async function begun() {
  const page = await look(place);
  await say(page, "first");
  await page.getByRole("button", { name: "Copy answer" }).waitFor();
  return { page, id: decodeURIComponent(new URL(page.url()).hash.split("/").at(-1)) };
}

const write = (path) => `tool filesystem__write ${JSON.stringify({ path, content: "x" })}`;
const isWritten = (path) => existsSync(join(place.folder, path));
const approve = (page) => page.getByLabel("What runs without asking");
const isAsked = (page) => page.getByRole("group", { name: "Decision about Write a file" }).waitFor();
const said = async (id) => (await place.api(`/conversations/${id}/messages`)).data.filter(({ role }) => role === "user").map(({ content }) => content);

/** Requests of a kind wait from now on until they are let go on. */
async function hold(page, url, method) {
  let letGo;
  const open = new Promise((resolve) => (letGo = resolve));
  const held = [];
  await page.route(url, async (route) => {
    if (route.request().method() !== method) return route.fallback();
    held.push(route);
    await open;
    return route.continue();
  });
  return { held, letGo };
}

const refuse = (page, url, method) => page.route(url, (route) => (route.request().method() === method ? route.abort() : route.fallback()));

test("a message has what is shown, but that all runs, and the model where it begins a turn", () => {
  const byDefault = { approve: "ask", model: "a/one" };
  const info = { model: "a/two", settings: { approve: "read-only" } };
  assert.deepEqual(shownTo(info, byDefault, false), { model: "a/two", settings: { approve: "read-only" } });
  assert.deepEqual(shownTo(info, byDefault, true), { settings: { approve: "read-only" } });
  assert.deepEqual(shownTo({ model: null, settings: {} }, byDefault, false), { model: "a/one", settings: { approve: "ask" } });
  assert.deepEqual(shownTo({ model: null, settings: { approve: "all" } }, byDefault, false), { model: "a/one" });
  assert.deepEqual(shownTo({ model: null, settings: {} }, { approve: "all", model: undefined }, false), {});
  assert.deepEqual(shownTo(null, byDefault, false), { settings: { approve: "ask" } });
  assert.deepEqual(changed({ title: "t", settings: { approve: "all", max_steps: 3 } }, { model: "a/two", settings: { approve: "ask" } }),
    { title: "t", model: "a/two", settings: { approve: "ask", max_steps: 3 } });
});

test("what is said right after a choice waits until it is stored, and has it", async () => {
  const { page } = await begun();
  await approve(page).selectOption("all");
  await say(page, write("all.txt"));
  await page.getByText("The tool said").waitFor();
  assert.equal(isWritten("all.txt"), true);
  const choices = await hold(page, "**/api/v1/conversations/*", "PATCH");
  const messages = await hold(page, "**/messages", "POST");
  messages.letGo();
  await approve(page).selectOption("ask");
  await page.getByLabel("Model", { exact: true }).selectOption("scripted/two");
  await say(page, write("asked.txt"));
  await page.getByText("Sending…").waitFor();
  assert.deepEqual([choices.held.length, messages.held.length], [1, 0]);
  choices.letGo();
  await isAsked(page);
  assert.equal(isWritten("asked.txt"), false);
  assert.equal(place.model.requests.at(-1).model, "two");
  assert.deepEqual(page.wrong, []);
});

test("a choice that is not stored is not shown any more, and what was said after it is not sent by itself", async () => {
  const { page, id } = await begun();
  const choices = await hold(page, "**/api/v1/conversations/*", "PATCH");
  await approve(page).selectOption("none");
  await say(page, "after it");
  await page.getByText("Sending…").waitFor();
  assert.equal(await approve(page).inputValue(), "none");
  await choices.held[0].abort();
  await page.getByText("Not sent: The server cannot be reached.").waitFor();
  assert.equal(await approve(page).inputValue(), "");
  assert.deepEqual(await said(id), ["first"]);
  await page.getByRole("button", { name: "Send again" }).click();
  await page.getByText("You said: after it").waitFor();
});

test("what is said in a conversation that was deleted elsewhere is sent in a new one, which has what was chosen", async () => {
  const { page, id } = await begun();
  await place.api(`/conversations/${id}`, { system_prompt: "Be brief." }, "PATCH");
  await page.reload();
  await page.getByRole("button", { name: "Copy answer" }).waitFor();
  // Deleted by somebody else, while this page does not hear of it.
  await place.api(`/conversations/${id}`, undefined, "DELETE");
  for (const words of ["words one", "words two"]) await say(page, words);
  await page.getByText("Not sent: This conversation was deleted.").nth(1).waitFor();
  assert.equal(await page.getByText("/api/v1").count(), 0);
  assert.equal(await page.getByRole("button", { name: "Send again" }).count(), 0);
  await page.reload();
  const composer = page.getByRole("textbox", { name: "Message" });
  await composer.fill("not said yet");
  // One more click while it is made makes no other one.
  const made_before = (await place.api("/conversations")).data.length;
  const { held, letGo } = await hold(page, "**/api/v1/conversations", "POST");
  const anew = page.getByRole("button", { name: "Send in a new conversation" });
  await anew.first().click();
  await anew.first().click();
  await anew.nth(1).click();
  await page.evaluate(() => fetch("/api/v1/me"));
  assert.equal(held.length, 1);
  letGo();
  await page.waitForFunction((id) => !location.hash.endsWith(id), id);
  assert.equal(await composer.inputValue(), "not said yet");
  assert.equal((await place.api("/conversations")).data.length, made_before + 1);
  const made = decodeURIComponent(new URL(page.url()).hash.split("/").at(-1));
  // Answered together or one by one, as the second came before the model was asked or after it.
  await page.getByText(/^You said: words/).first().waitFor();
  await until(async () => (await said(made)).length === 2);
  assert.deepEqual(await said(made), ["words one", "words two"]);
  assert.equal((await place.api(`/conversations/${made}`)).system_prompt, "Be brief.");
  assert.deepEqual(page.wrong, []);
});

for (const chosen of ["ask", null]) {
  test(`what a page shows counts where another one chose otherwise since (${chosen ?? "nothing"})`, async () => {
    const { page, id } = await begun();
    if (chosen) {
      // Its answer too, before another one chooses: it may tell of that.
      const answered = page.waitForResponse((answer) => answer.request().method() === "PATCH");
      await approve(page).selectOption(chosen);
      await (await answered).finished();
    }
    await until(async () => ((await place.api(`/conversations/${id}`)).settings.approve ?? null) === chosen);
    // The page may be looking how the conversation stands: it hears of the other's choice only after its own words are sent.
    const looks = await hold(page, `**/api/v1/conversations/${id}`, "GET");
    await place.api(`/conversations/${id}`, { model: "scripted/two", settings: { approve: "all" } }, "PATCH");
    assert.equal(await approve(page).inputValue(), chosen ?? "");
    const sent = page.waitForRequest((request) => request.method() === "POST" && request.url().endsWith("/messages"));
    await say(page, write(`elsewhere-${chosen}.txt`));
    await sent;
    looks.letGo();
    await isAsked(page);
    assert.equal(isWritten(`elsewhere-${chosen}.txt`), false);
    // Not that for a title, which may be asked for since, of the model that another one chose.
    const asked = place.model.requests.findLast((request) => JSON.stringify(request.messages).includes(`elsewhere-${chosen}`));
    assert.equal(asked.model, "one");
    // Where somebody let less run since, no more does than that.
    await page.getByRole("button", { name: "Deny", exact: true }).click();
    await page.getByText("The tool said").waitFor();
    await page.waitForFunction(() => document.querySelector("[aria-label='What runs without asking']").value === "all");
    await place.api(`/conversations/${id}`, { settings: { approve: "none" } }, "PATCH");
    await say(page, write(`less-${chosen}.txt`));
    await page.getByText("The tool said").nth(1).waitFor();
    assert.equal(isWritten(`less-${chosen}.txt`), false);
  });
}

test("a turn that is tried again asks where the page shows that it does", async () => {
  const { page } = await begun();
  await approve(page).selectOption("all");
  place.model.failNext(1);
  await say(page, write("again.txt"));
  await page.getByText("the scripted model fails").waitFor();
  await approve(page).selectOption("ask");
  await page.getByRole("button", { name: "Try again" }).click();
  await isAsked(page);
  assert.equal(isWritten("again.txt"), false);
});

test("messages are stored in the order in which they were said, also after failures and a reload", async () => {
  const { page, id } = await begun();
  await refuse(page, "**/messages", "POST");
  await say(page, "one");
  await page.getByText("Sending again…").waitFor();
  await say(page, "two");
  await say(page, "three");
  await page.reload();
  await page.getByText("Sending again…").waitFor();
  await say(page, "four");
  await page.locator(".said", { hasText: "four" }).waitFor();
  await page.unroute("**/messages");
  await page.locator(".turn", { hasText: "four" }).waitFor();
  assert.deepEqual(await said(id), ["first", "one", "two", "three", "four"]);
  assert.deepEqual(page.wrong, []);
});

test("what is not sent yet is sent while another conversation is looked at, and the list says so until then", async () => {
  const { page, id } = await begun();
  await refuse(page, "**/messages", "POST");
  await say(page, "still mine");
  await page.getByText("Sending again…").waitFor();
  const { id: other } = await place.api("/conversations", { title: "Another" });
  for (const again of [false, true]) {
    await page.goto(`${place.base}/#/c/${other}`);
    if (again) await page.reload();
    await page.locator(".entry", { hasText: "first" }).getByText("not sent").waitFor();
  }
  await page.unroute("**/messages");
  await page.getByText("not sent").waitFor({ state: "detached" });
  assert.deepEqual(await said(id), ["first", "still mine"]);
  assert.deepEqual(await said(other), []);
  await page.goto(`${place.base}/#/c/${id}`);
  await page.getByText("You said: still mine").waitFor();
  assert.equal(await page.locator(".said", { hasText: "still mine" }).count(), 1);
});

test("what is written while a conversation is made stays, and comes back where it was not made", async () => {
  const page = await look(place);
  const composer = page.getByRole("textbox").first();
  const made = await hold(page, "**/api/v1/conversations", "POST");
  await say(page, "begin");
  await page.waitForFunction(() => document.querySelector(".composer textarea").value === "");
  await page.keyboard.type("not made");
  await made.held[0].abort();
  await page.waitForFunction(() => document.querySelector(".composer textarea").value === "begin\nnot made");
  await page.unroute("**/api/v1/conversations");
  const next = await hold(page, "**/api/v1/conversations", "POST");
  await composer.press("Enter");
  await page.waitForFunction(() => document.querySelector(".composer textarea").value === "");
  await page.keyboard.type("second thought");
  next.letGo();
  await page.getByText("You said: begin").waitFor();
  assert.equal(await composer.inputValue(), "second thought");
  await page.keyboard.type("s");
  await page.reload();
  await page.getByText("You said: begin").waitFor();
  assert.equal(await composer.inputValue(), "second thoughts");
  await page.getByRole("link", { name: "New conversation" }).click();
  await page.waitForFunction(() => document.querySelector(".composer textarea").value === "");
  assert.deepEqual(page.wrong, []);
});

test("where nothing is chosen, the installation's own way of asking counts", async () => {
  const elsewhere = await startPlace({ env: { TURNWRIGHT_APPROVE: "all" } });
  try {
    const page = await lookAt(elsewhere);
    await say(page, write("free.txt"));
    await page.getByText("The tool said").waitFor();
    assert.equal(existsSync(join(elsewhere.folder, "free.txt")), true);
  } finally {
    await elsewhere.stop();
  }
});

test("the first screen promises no question, and counts no tools where somebody chose them", async () => {
  const page = await look(place);
  const told = page.locator(".welcome");
  await told.getByText(/^\d+ tools are offered\.$/).waitFor();
  assert.doesNotMatch(await told.innerText(), /asks/);
  const { id } = await place.api("/conversations", { tools: ["filesystem__read"] });
  await page.goto(`${place.base}/#/c/${id}`);
  await page.getByRole("heading", { name: "Conversation", exact: true }).waitFor();
  await told.getByText("tools are offered").waitFor({ state: "detached" });
});
