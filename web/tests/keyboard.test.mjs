// Without a mouse, and without looking: every way is a way of keys, and what happens is said.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { closeBrowser, lookAt, say, startPlace } from "./place.mjs";

let place;
before(async () => { place = await startPlace(); });
after(async () => { await closeBrowser(); await place?.stop(); });

/** Goes on by Tab until what has the focus is called so. */
async function tabTo(page, name, key = "Tab") {
  const seen = [];
  for (let at = 0; at < 80; at += 1) {
    await page.keyboard.press(key);
    const called = await page.evaluate(() => {
      const at = document.activeElement;
      return (at?.getAttribute("aria-label") ?? at?.innerText ?? "").trim();
    });
    if (called === name || (name instanceof RegExp && name.test(called))) {
      // What has the focus shows it.
      const shows = await page.evaluate(() => {
        const style = getComputedStyle(document.activeElement);
        return style.outlineStyle !== "none" || style.boxShadow !== "none";
      });
      assert.ok(shows, `${called} does not show that it has the focus`);
      return;
    }
    seen.push(called);
  }
  assert.fail(`Tab does not lead to ${name}, but to ${seen.join(", ")}`);
}

const said = (page, words) => page.waitForFunction((words) => [...document.querySelectorAll("[role=status], [role=alert], [aria-live]")].some((box) => box.textContent.includes(words)), words);

test("a conversation is had, decided about and left by keys alone, and what happens is said", async () => {
  const page = await lookAt(place);
  await page.waitForFunction(() => document.activeElement?.tagName === "TEXTAREA");
  await page.keyboard.type('tool filesystem__write {"path":"keys.txt","content":"x"}');
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Allow once" }).waitFor();
  // Two say so, in the order in which they learn of it.
  await said(page, "for your decision");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.activeElement?.classList.contains("approve"));
  await tabTo(page, /^Allow once/);
  await page.keyboard.press("Enter");
  await page.getByText("The tool said").waitFor();
  await said(page, "The answer is complete");
  // The focus goes back to where one writes.
  await page.waitForFunction(() => document.activeElement?.tagName === "TEXTAREA");
  await tabTo(page, /^done/);
  await page.keyboard.press("Enter");
  await page.getByText("Allowed by a person.").waitFor();
  await tabTo(page, "Copy answer");
  await page.keyboard.press("Enter");
  await said(page, "Copied answer");
});

test("dialogs take the focus, keep it, and give it back", async () => {
  const page = await lookAt(place);
  await say(page, "something");
  await page.getByText("You said: something").waitFor();
  const inDialog = () => page.evaluate(() => document.activeElement?.closest("dialog") !== null);
  for (const [name, close] of [["Tools", "Escape"], ["Rename something", "Escape"]]) {
    const button = page.getByRole("button", { name, exact: true });
    if (name !== "Tools") await page.getByRole("link", { name: "something" }).focus();
    await button.focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    for (let at = 0; at < 30; at += 1) {
      await page.keyboard.press("Tab");
      // Between the last and the first the browser's own controls have it.
      assert.ok(await inDialog() || await page.evaluate(() => document.activeElement === document.body), `${name} lets the focus go`);
    }
    await page.keyboard.press(close);
    await page.getByRole("dialog").waitFor({ state: "detached" });
    assert.equal(await button.evaluate((at) => at === document.activeElement), true, `${name} gives the focus back`);
  }
});

test("the menu opens, is gone through and closes by keys, and a conversation is deleted and taken back", async () => {
  const page = await lookAt(place);
  await say(page, "to be kept");
  await page.getByText("You said: to be kept").waitFor();
  await tabTo(page, "More");
  await page.keyboard.press("Enter");
  await tabTo(page, "Rename…");
  await page.keyboard.press("Escape");
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("aria-label")), "More");
  assert.equal(await page.getByRole("group", { name: "This conversation" }).count(), 0);
  await page.getByRole("link", { name: "to be kept" }).focus();
  await tabTo(page, "Delete to be kept");
  await page.keyboard.press("Enter");
  await said(page, "Deleted");
  await tabTo(page, "Undo");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Delete to be kept" }).waitFor();
});

test("narrow, the list opens by its button, and Escape gives the focus back", async () => {
  const page = await lookAt(place, { width: 390 });
  await page.getByRole("textbox", { name: "Message" }).waitFor();
  await tabTo(page, "Conversations");
  await page.keyboard.press("Enter");
  assert.equal(await page.getByRole("button", { name: "Conversations" }).getAttribute("aria-expanded"), "true");
  await tabTo(page, "Settings", "Shift+Tab");
  await page.keyboard.press("Escape");
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("aria-label")), "Conversations");
});

test("what stops a turn or deletes a conversation leaves the keys where one goes on", async () => {
  const page = await lookAt(place);
  const isAt = (selector) => page.waitForFunction((selector) => document.activeElement?.matches(selector), selector);
  await say(page, "count through halted");
  await page.getByText("n59", { exact: false }).first().waitFor();
  await page.getByRole("button", { name: "Stop" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("Stopped.").waitFor();
  place.model.gate("halted").open();
  await isAt(".composer textarea");
  await place.api("/conversations", { title: "to be left" });
  await page.getByLabel("Search conversations").fill("to be");
  await page.getByRole("button", { name: "Delete to be left" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Delete to be left" }).waitFor({ state: "detached" });
  await isAt(".side a");
});

test("narrow, what was deleted in the list is taken back above it", async () => {
  await place.api("/conversations", { title: `narrowly kept ${"and_without_a_space".repeat(6)}` });
  const page = await lookAt(place, { width: 390 });
  await page.getByRole("button", { name: "Conversations" }).click();
  await page.getByRole("button", { name: /^Delete narrowly kept/ }).click();
  const undo = page.getByRole("button", { name: "Undo" });
  const { x, width } = await undo.boundingBox();
  assert.ok(x + width <= 390, `${x} ${width}`);
  await undo.click();
  await page.getByRole("button", { name: /^Delete narrowly kept/ }).waitFor();
});
