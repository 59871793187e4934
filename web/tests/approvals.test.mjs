// Decisions: what is shown before them, what can be said, and what is remembered.

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { diff, ends } from "../page/lib/diff.js";
import { closeBrowser, lookAt, say, startPlace, until } from "./place.mjs";

const kinds = fileURLToPath(new URL("kinds.mjs", import.meta.url));
let place;
before(async () => {
  place = await startPlace({ config: `[mcp.servers.kinds]\ncommand = "node"\nargs = ${JSON.stringify([kinds, "."])}\n` });
});
after(async () => { await closeBrowser(); await place?.stop(); });

const write = (path, content = "line one\nline two\n") => `tool filesystem__write ${JSON.stringify({ path, content })}`;
const question = (page) => page.getByRole("group", { name: "Decision about Write a file" }).first();
const rules = async () => (await place.api("/approvals/rules")).data.map(({ scope, tool, when, action }) => ({ scope, tool, when, action }));
/** Presses a key until the last question is gone: one that came by itself takes none at once. */
const untilDecided = async (page, key) => {
  while (await page.locator(".approve").count() > 0) await page.keyboard.press(key);
};
const isOver = (page) => page.getByText("The tool said").last().waitFor();

test("a file that is there is shown as it is beside what it will be", async () => {
  const page = await lookAt(place);
  await say(page, write("a.txt", "hello file\nand more\n"));
  await question(page).getByText("Writes a.txt").waitFor();
  await question(page).getByText("1 line added, 0 removed").waitFor();
  assert.deepEqual(await question(page).locator("tbody tr").allInnerTexts().then((rows) => rows.map((row) => row.split(/\s*\t\s*/))),
    [["  hello file", "hello file"], ["", "+ and more"]]);
  await question(page).getByRole("button", { name: "Deny", exact: true }).click();
  await isOver(page);
  await say(page, 'tool filesystem__edit {"path":"a.txt","old_text":"hello","new_text":"good day"}');
  const edit = page.getByRole("group", { name: "Decision about Edit a file" });
  await edit.getByText("Changes a.txt").waitFor();
  await edit.locator("td.new", { hasText: "+ good day file" }).waitFor();
  await edit.locator("td.old", { hasText: "- hello file" }).waitFor();
  await edit.getByRole("button", { name: "Deny", exact: true }).click();
  await page.getByText("The tool said").nth(1).waitFor();
  assert.deepEqual(page.wrong, []);
});

const asked = async (page, words) => {
  await say(page, words);
  const box = page.locator(".approve").last();
  await box.getByRole("button", { name: "Deny", exact: true }).waitFor();
  return box;
};
const deny = async (page) => {
  const told = await page.getByText("The tool said").count();
  await page.locator(".approve").last().getByRole("button", { name: "Deny", exact: true }).click();
  await page.getByText("The tool said").nth(told).waitFor();
};

test("what only the ends of lines have otherwise is said", () => {
  assert.deepEqual(ends("a\nb\n", "a\nb"), ["no line break at the end any more"]);
  assert.deepEqual(ends("a\nb", "a\nb\n"), ["a line break at the end is added"]);
  assert.deepEqual(ends("a\r\nb\r\n", "a\nb\nc\n"), ["line ends change from CRLF to LF"]);
  assert.deepEqual(ends("a\r\nb\n", "a\nb\n"), []);
  assert.deepEqual([ends("", "a"), ends("a\n", "b\n")], [[], []]);
  // Then lines are compared without them; where ends are mixed they are part of the line.
  assert.deepEqual(diff("a\r\nb\r\n", "a\nc\n").map(({ kind }) => kind), ["same", "change"]);
  assert.deepEqual(diff("a\r\nb\n", "a\nb\n"), [{ kind: "change", before: "a\r", after: "a", number: 1 }, { kind: "same", before: "b", after: "b", number: 2 }]);
});

test("a write that changes line ends alone says so", async () => {
  const page = await lookAt(place);
  for (const [held, text, told] of [["one\n", "one", "no line break at the end any more"], ["one\r\ntwo\r\n", "one\ntwo\n", "line ends change from CRLF to LF"],
    ["one\r\ntwo\n", "one\ntwo\n", "1 line added, 1 removed"]]) {
    writeFileSync(join(place.folder, "ends.txt"), held);
    await say(page, write("ends.txt", text));
    await question(page).locator(".code-head").getByText(told, { exact: true }).waitFor();
    if (held.includes("two\n") && !held.endsWith("\r\n")) assert.match(await question(page).locator(".diff").innerText(), /- one␍/);
    await question(page).getByRole("button", { name: "Deny", exact: true }).click();
    await question(page).waitFor({ state: "detached" });
    await page.getByRole("link", { name: "New conversation" }).click();
  }
  assert.deepEqual(page.wrong, []);
});

test("all that will run is shown before it is decided about", async () => {
  const page = await lookAt(place);
  const shell = await asked(page, 'tool command__run {"command":"sh","stdin":"echo from the input","timeout_ms":700}');
  await shell.getByText("echo from the input", { exact: true }).waitFor();
  await shell.getByText('"timeout_ms": 700').waitFor();
  await deny(page);
  const line = await asked(page, `tool command__run {"command":"git status ${" ".repeat(400)}; echo far away"}`);
  const end = await line.getByText("far away").evaluate((code) => {
    const { right, width } = code.closest("pre").getBoundingClientRect();
    return { isWide: code.closest("pre").scrollWidth > width + 1, right, page: innerWidth };
  });
  assert.equal(end.isWide, false, "a long line goes on below");
  await deny(page);
  assert.deepEqual(page.wrong, []);
});

test("an edit that the tool finds by more than its letters is shown as it was asked for", async () => {
  writeFileSync(join(place.folder, "ends.txt"), "one\r\ntwo\r\nthree\r\n");
  const page = await lookAt(place);
  const edit = await asked(page, 'tool filesystem__edit {"path":"ends.txt","old_text":"one\\ntwo","new_text":"somebody else\\nwrote this"}');
  await edit.locator("td.new", { hasText: "+ wrote this" }).waitFor();
  await edit.getByText("does not hold that to the letter").waitFor();
  await deny(page);
  writeFileSync(join(place.folder, "all.txt"), "x\nx\n");
  const all = await asked(page, 'tool filesystem__edit {"path":"all.txt","edits":[{"old_text":"x","new_text":"y","all":true}]}');
  await all.getByText("2 lines added, 2 removed").waitFor();
  await deny(page);
  assert.deepEqual(page.wrong, []);
});

test("the model hears why a call is denied", async () => {
  const page = await lookAt(place);
  await say(page, write("no.txt"));
  await question(page).getByRole("button", { name: "Allow once" }).focus();
  await page.keyboard.press("n");
  await page.keyboard.type("the folder is for Ann alone");
  await page.keyboard.press("Enter");
  await isOver(page);
  const told = place.model.requests.at(-1).messages.findLast(({ role }) => role === "tool").content;
  assert.match(String(told), /the folder is for Ann alone/);
  assert.equal(existsSync(join(place.folder, "no.txt")), false);
});

test("what is allowed for a conversation is stored as it is shown, and asked about no more there", async () => {
  const page = await lookAt(place);
  await say(page, write("often.txt"));
  await question(page).getByRole("button", { name: "in this conversation" }).waitFor();
  const shown = await question(page).locator(".rule-line code").innerText();
  await page.getByRole("textbox").first().focus();
  await page.keyboard.press("Escape");
  await page.keyboard.press("c");
  await page.getByText(`Stored: ${shown}`).waitFor();
  await isOver(page);
  const stored = (await rules()).filter(({ scope }) => scope === "conversation");
  assert.equal(stored.length, 1);
  assert.equal(stored[0].tool, "filesystem__write");
  await say(page, write("often.txt", "again\n"));
  await page.getByText("The tool said").nth(1).waitFor();
  assert.equal(readFileSync(join(place.folder, "often.txt"), "utf8"), "again\n");
  await page.getByRole("link", { name: "New conversation" }).click();
  await say(page, write("often.txt", "elsewhere\n"));
  await question(page).getByRole("button", { name: "Deny", exact: true }).click();
  await isOver(page);
});

test("one decision for the turn answers for all calls like it", async () => {
  const page = await lookAt(place);
  await say(page, 'both filesystem__write filesystem__write {"path":"twice.txt","content":"x"}');
  await page.getByRole("button", { name: "in this turn" }).nth(1).waitFor();
  await question(page).focus();
  await page.keyboard.press("t");
  await isOver(page);
  assert.equal(await page.getByRole("button", { name: "Allow once" }).count(), 0);
});

test("a rule for always is seen and changed before it is stored, holds at once, and is taken back", async () => {
  const page = await lookAt(place);
  await say(page, write("notes/one.md"));
  await question(page).getByRole("button", { name: "always…" }).waitFor();
  await question(page).focus();
  await page.keyboard.press("a");
  const editor = page.getByRole("form", { name: "The rule that is stored" });
  await editor.getByLabel(/Conditions/).fill('{"path": {"below": "no');
  await editor.getByRole("button", { name: "Allow and store" }).click();
  await editor.getByText("The conditions are an object").waitFor();
  await editor.getByLabel(/Conditions/).fill('{"path": {"below": "elsewhere"}}');
  await editor.getByRole("button", { name: "Allow and store" }).click();
  await question(page).getByRole("alert").waitFor();
  assert.deepEqual((await rules()).filter(({ scope }) => scope === "user"), []);
  await editor.getByLabel(/Conditions/).fill(JSON.stringify({ path: { glob: "notes/**" } }));
  await editor.getByText(/notes\/\*\*/).first().waitFor();
  await editor.getByRole("button", { name: "Allow and store" }).click();
  await isOver(page);
  assert.deepEqual((await rules()).filter(({ scope }) => scope === "user"),
    [{ scope: "user", tool: "filesystem__write", when: { path: { glob: "notes/**" } }, action: "allow" }]);
  await page.getByRole("button", { name: "Undo" }).click();
  await until(async () => !(await rules()).some(({ scope }) => scope === "user"));
});

test("arguments are edited in a form that is made from the tool's schema", async () => {
  const page = await lookAt(place);
  await say(page, write("form.txt"));
  await question(page).getByRole("button", { name: "Edit arguments" }).click();
  await question(page).getByRole("button", { name: "As a form" }).click();
  await question(page).getByLabel(/^path/).fill("formed.txt");
  await question(page).getByLabel(/^content/).fill("by a form");
  await question(page).getByRole("button", { name: "As JSON" }).click();
  assert.deepEqual(JSON.parse(await question(page).getByRole("textbox").inputValue()), { path: "formed.txt", content: "by a form" });
  await question(page).getByRole("button", { name: "Allow as changed" }).click();
  await isOver(page);
  assert.equal(readFileSync(join(place.folder, "formed.txt"), "utf8"), "by a form");
});

test("what may be left out has a field of its own kind, and what is wrong stands at its field", async () => {
  const page = await lookAt(place);
  await say(page, 'tool command__run {"command":"true"}');
  const ask = page.getByRole("group", { name: "Decision about Run a command" });
  await ask.getByRole("button", { name: "Edit arguments" }).click();
  const whole = ask.getByLabel("Arguments, as JSON");
  assert.equal(await whole.evaluate((area) => area.spellcheck), false);
  await whole.fill('{"command": 5}');
  await ask.getByRole("button", { name: "Allow as changed" }).click();
  await ask.getByRole("alert").waitFor();
  await ask.getByRole("button", { name: "As a form" }).click();
  assert.equal(await ask.locator(".failure").count(), 0);
  assert.deepEqual([await ask.getByLabel(/^cwd/).getAttribute("type"), await ask.getByLabel(/^timeout_ms/).getAttribute("type")], ["text", "number"]);
  await ask.getByRole("button", { name: "Allow as changed" }).click();
  await ask.locator(".field", { hasText: "command" }).locator(".failure", { hasText: "is not of type" }).waitFor();
  assert.equal(await ask.getByRole("textbox", { name: /^command/ }).getAttribute("aria-invalid"), "true");
  assert.equal(await ask.locator(".failure").count(), 1);
  await ask.getByRole("textbox", { name: /^command/ }).fill("true");
  await ask.getByLabel(/^timeout_ms/).fill("900");
  await ask.getByLabel(/^timeout_ms/).fill("");
  assert.equal(await ask.locator(".failure").count(), 0);
  await ask.getByRole("button", { name: "As JSON" }).click();
  assert.deepEqual(JSON.parse(await whole.inputValue()), { command: "true" });
  await ask.getByRole("button", { name: "Leave as it was" }).click();
  await ask.getByRole("button", { name: "Deny", exact: true }).click();
  await isOver(page);
  assert.deepEqual(page.wrong, []);
});

test("a call that a person changed shows what ran, and what the model asked for", async () => {
  const page = await lookAt(place);
  await say(page, write("asked.txt"));
  await question(page).getByRole("button", { name: "Edit arguments" }).click();
  await question(page).getByRole("textbox").fill('{"path":"ran.txt","content":"x"}');
  await question(page).getByRole("button", { name: "Allow as changed" }).click();
  await isOver(page);
  const card = page.locator(".card");
  for (const again of [false, true]) {
    if (again) await page.reload();
    await card.locator("summary .short", { hasText: "changed: ran.txt" }).waitFor();
    await card.locator("summary").first().click();
    await card.getByText("Allowed by a person, with changed arguments.").waitFor();
    await card.getByText("What the model asked for").click();
    const [ran, asked] = await card.locator("pre code").allInnerTexts();
    assert.deepEqual([JSON.parse(ran).path, JSON.parse(asked).path], ["ran.txt", "asked.txt"]);
    await card.getByRole("button", { name: /^Copy as command/ }).click();
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /"path":"ran\.txt"/);
  }
  assert.deepEqual(page.wrong, []);
});

test("numbers that JavaScript would round are shown, edited, sent and stored as they are", async () => {
  const page = await lookAt(place);
  const ID = "1234567890123456789";
  const ask = page.getByRole("group", { name: "Decision about repeats" }).first();
  await say(page, `tool kinds__repeats {"to":${ID},"words":"hi"}`);
  await ask.getByText(`"to": ${ID}`).waitFor();
  await ask.getByRole("button", { name: "Edit arguments" }).click();
  assert.equal(await ask.getByRole("textbox").inputValue(), `{\n  "to": ${ID},\n  "words": "hi"\n}`);
  await ask.getByRole("button", { name: "As a form" }).click();
  assert.equal(await ask.getByLabel(/^to/).inputValue(), ID);
  await ask.getByLabel(/^words/).fill("hello");
  await ask.getByRole("button", { name: "Allow as changed" }).click();
  await isOver(page);
  const card = page.locator(".card");
  for (const again of [false, true]) {
    if (again) await page.reload();
    await card.locator("summary .short", { hasText: `changed: ${ID}` }).waitFor();
    await card.locator("summary").first().click();
    await card.getByText(`called with {"to":${ID},"words":"hello"}`).waitFor();
    await card.getByRole("button", { name: /^Copy as command/ }).click();
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), new RegExp(`"to":${ID}`));
  }
  // In a form a number is as it is typed, and so it is in a rule.
  await say(page, `tool kinds__repeats {"to":${ID}}`);
  await ask.getByRole("button", { name: "Edit arguments" }).click();
  await ask.getByRole("button", { name: "As a form" }).click();
  await ask.getByLabel(/^to/).fill("9876543210987654321");
  await ask.getByRole("button", { name: "As JSON" }).click();
  assert.match(await ask.getByRole("textbox").inputValue(), /: 9876543210987654321\n/);
  await ask.getByRole("button", { name: "Leave as it was" }).click();
  await ask.getByRole("button", { name: "always" }).click();
  const form = page.getByRole("form", { name: "The rule that is stored" });
  await form.getByLabel(/^Conditions/).fill(`{"to":{"one_of":[${ID}]}}`);
  await form.getByText(`[${ID}]`).first().waitFor();
  await form.getByRole("button", { name: "Allow and store" }).click();
  await page.getByText("The tool said").nth(1).waitFor();
  const told = await (await fetch(`${place.base}/api/v1/approvals/rules`)).text();
  assert.match(told, new RegExp(ID));
  assert.deepEqual(page.wrong, []);
});

test("after a decision the keys are at the next question", async () => {
  const page = await lookAt(place);
  await say(page, 'both filesystem__write filesystem__write {"path":"next.txt","content":"x"}');
  await page.getByRole("button", { name: "Allow once" }).nth(1).waitFor();
  await question(page).focus();
  await page.keyboard.press("y");
  await page.waitForFunction(() => document.querySelectorAll(".approve").length === 1 && document.activeElement?.closest(".approve"));
  await untilDecided(page, "d");
  await isOver(page);
  assert.deepEqual(await page.locator(".card .word").allInnerTexts(), ["done", "denied"]);
  assert.deepEqual(page.wrong, []);
});

test("the answers to a question are seen where they stay, whatever is still told of it", async () => {
  const page = await lookAt(place, { width: 390 });
  for (const path of ["**/conversations/*/calls", "**/tools/call"]) {
    await page.route(path, async (route) => {
      await setTimeout(700);
      await route.fallback();
    });
  }
  await page.evaluate(() => {
    window.places = new Set();
    let last;
    // After a picture, since what is scrolled is scrolled with it.
    const look = () => {
      const answer = document.querySelector(".approve button");
      const at = answer && getComputedStyle(answer).visibility === "visible" ? Math.round(answer.getBoundingClientRect().top) : undefined;
      if (at !== undefined && at === last) window.places.add(at);
      last = at;
      requestAnimationFrame(() => window.setTimeout(look));
    };
    look();
  });
  const gate = place.model.gate("still");
  await say(page, 'partly still filesystem__write {"path":"a.txt","content":"hello file\\nand more\\n"}');
  await gate.reached;
  gate.open();
  await question(page).focus();
  await page.keyboard.press("n");
  await page.getByRole("button", { name: "always" }).waitFor();
  await question(page).getByText("1 line added, 0 removed").waitFor();
  await page.waitForTimeout(300);
  assert.equal(await page.evaluate(() => window.places.size), 1);
  await page.keyboard.press("d");
  await isOver(page);
  assert.deepEqual(page.wrong, []);
});

test("a key that is held decides about nothing", async () => {
  const page = await lookAt(place);
  await say(page, write("held.txt"));
  await question(page).getByRole("button", { name: "Allow once" }).waitFor();
  await question(page).focus();
  for (const key of ["y", "t", "c", "d"]) {
    await question(page).evaluate((box, key) => box.dispatchEvent(new KeyboardEvent("keydown", { key, repeat: true, bubbles: true })), key);
  }
  await page.keyboard.press("n");
  await question(page).getByLabel("Why not, for the model").fill("not by holding");
  await page.keyboard.press("Enter");
  await isOver(page);
  const told = place.model.requests.at(-1).messages.findLast(({ role }) => role === "tool").content;
  assert.match(String(told), /not by holding/);
  assert.equal(existsSync(join(place.folder, "held.txt")), false);
});

test("a question that gets the keys by itself takes none for a moment", async () => {
  const page = await lookAt(place);
  await say(page, 'both filesystem__write filesystem__write {"path":"hasty.txt","content":"x"}');
  await page.getByRole("button", { name: "Allow once" }).nth(1).waitFor();
  await question(page).focus();
  // As somebody does who types faster than the next question comes.
  await page.evaluate(() => document.addEventListener("focusin", ({ target }) => {
    if (target.matches(".approve")) target.dispatchEvent(new KeyboardEvent("keydown", { key: "y", bubbles: true }));
  }));
  await page.keyboard.press("y");
  await page.waitForFunction(() => document.querySelectorAll(".approve").length === 1 && document.activeElement?.closest(".approve"));
  await untilDecided(page, "d");
  await isOver(page);
  assert.deepEqual(await page.locator(".card .word").allInnerTexts(), ["done", "denied"]);
});
