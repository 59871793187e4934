// Cards of calls: what stands on the one line, what is in them when they are open, and what they ask.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { closeBrowser, lookAt, say, startPlace, until } from "./place.mjs";

const kinds = fileURLToPath(new URL("kinds.mjs", import.meta.url));
let place;
before(async () => {
  place = await startPlace({ config: `[mcp.servers.kinds]\ncommand = "node"\nargs = ${JSON.stringify([kinds, "."])}\nsampling = { allow = true }\n` });
});
after(async () => { await closeBrowser(); await place?.stop(); });

/** Calls a tool in a new conversation in which nothing asks, and opens its card. */
async function called(tool, input = {}) {
  const page = await lookAt(place);
  await page.getByLabel("What runs without asking").selectOption("all");
  await say(page, `tool ${tool} ${JSON.stringify(input)}`);
  await page.getByText("The tool said").waitFor();
  const card = page.locator(".card").first();
  await card.locator("summary").click();
  return { page, card };
}

test("a closed card is one line with state, name, server, the argument that says most, and time", async () => {
  const page = await lookAt(place);
  await say(page, 'tool filesystem__read {"path":"a.txt"}');
  await page.getByText("The tool said").waitFor();
  const line = page.locator(".card summary");
  const parts = Object.fromEntries(await Promise.all(["word", "tool", "server", "short"].map(async (part) => [part, await line.locator(`.${part}`).innerText()])));
  assert.deepEqual(parts, { word: "done", tool: "Read a file", server: "filesystem", short: "a.txt" });
  assert.match(await line.locator(".time").innerText(), /^\d+(\.\d)? (ms|s)$/);
  // The colour says what the word says.
  const colour = (part) => line.locator(part).evaluate((node) => getComputedStyle(node).backgroundColor);
  const good = await colour(".dot");
  const { height } = await line.boundingBox();
  assert.ok(height < 48, `${height} pixels`);
  await say(page, 'tool filesystem__read {"path":"nowhere.txt"}');
  const bad = page.locator(".card.bad summary");
  await bad.locator(".word", { hasText: "failed" }).waitFor();
  assert.notEqual(await bad.locator(".dot").evaluate((node) => getComputedStyle(node).backgroundColor), good);
});

test("a result is shown by its kind: text, resources, pictures that are none, sound, and what nobody knows", async () => {
  const { page, card } = await called("kinds__everything");
  await card.getByText("plain words").waitFor();
  await card.getByText("words of a resource").waitFor();
  await card.getByText("note://one").waitFor();
  await card.getByText("The second note").waitFor();
  await card.getByText("An image of the kind image/svg+xml, which is not shown.").waitFor();
  assert.equal(await card.locator("audio").count(), 1);
  await card.getByText("hologram: a kind of content that is not known here").waitFor();
  assert.deepEqual([page.wrong, page.strangers], [[], []]);
});

test("rows are a table, of which the first come first", async () => {
  const { page, card } = await called("kinds__rows");
  const table = card.getByRole("group", { name: "Table" });
  assert.deepEqual(await table.locator("th").allInnerTexts(), ["city", "people"]);
  assert.equal(await table.locator("tbody tr").count(), 50);
  await table.getByRole("button", { name: "Show all 60 rows" }).click();
  assert.equal(await table.locator("tbody tr").count(), 60);
  assert.deepEqual(page.wrong, []);
});

test("a diff has its colours, data is data, and nothing is said to be nothing", async () => {
  const diff = await called("kinds__patch");
  await diff.card.locator(".hljs-addition", { hasText: "new words" }).waitFor();
  const data = await called("kinds__data");
  // Told twice, as text and as data, it is shown once.
  await data.card.getByText('"of"').first().waitFor();
  assert.equal(await data.card.locator("pre").count(), 1);
  const nothing = await called("kinds__nothing");
  await nothing.card.getByText("It gave nothing back.").waitFor();
});

test("what failed says why, and is asked for again", async () => {
  const { page, card } = await called("kinds__refuses", { tray: 2 });
  await card.getByText("the printer is on fire").waitFor();
  assert.equal(await card.locator("summary .word").innerText(), "failed");
  await card.getByRole("button", { name: "Ask for it again" }).click();
  const composer = page.getByRole("textbox", { name: "Message" });
  assert.equal(await composer.inputValue(), 'Call kinds__refuses again with {"tray":2}');
  assert.equal(await composer.evaluate((box) => box === document.activeElement), true);
});

test("a call that runs shows how far it is, and its arguments while they are written", async () => {
  const page = await lookAt(place);
  await page.getByLabel("What runs without asking").selectOption("all");
  await say(page, 'partly written kinds__works {"folder":"the long way round"}');
  const card = page.locator(".card").first();
  await card.locator(".word", { hasText: "being written" }).waitFor();
  await card.locator(".short", { hasText: "the long" }).waitFor();
  place.model.gate("written").open();
  await card.locator(".word", { hasText: "running" }).waitFor();
  const bar = card.locator(".closed-only").getByRole("progressbar", { name: "Sorting" });
  await bar.waitFor();
  assert.deepEqual(await bar.evaluate(({ value, max }) => [value, max]), [1, 4]);
  await card.locator(".closed-only").getByText("Sorting 25 %").waitFor();
  writeFileSync(join(place.folder, "go on"), "");
  await card.locator(".word", { hasText: "done" }).waitFor();
  assert.equal(await card.getByRole("progressbar").count(), 0);
  assert.deepEqual(page.wrong, []);
});

test("a form names who asks, has its fields in the server's order, and is cancelled apart from being declined", async () => {
  const page = await lookAt(place);
  await page.getByLabel("What runs without asking").selectOption("all");
  await say(page, "tool kinds__asks {}");
  const form = page.getByRole("group", { name: "Question of kinds" });
  await form.getByText("The server kinds asks").waitFor();
  assert.deepEqual((await form.locator("div.field > label, .field > legend").allInnerTexts()).map((label) => label.replace(/ \(needed\)$/, "").trim()),
    ["Zebra", "Apple", "Mango", "Berry", "Cherry", "Damson"]);
  await form.getByLabel(/Zebra/).fill("striped");
  await form.getByLabel("Apple").fill("0");
  await form.getByRole("button", { name: "Answer" }).click();
  await form.getByRole("alert").waitFor();
  assert.equal(await form.getByLabel("Apple").getAttribute("aria-invalid"), "true");
  assert.equal(await form.getByLabel(/Zebra/).inputValue(), "striped", "what was typed is kept");
  // What only the browser sees is said too, and nothing is left out in silence.
  await form.getByLabel("Apple").fill("");
  await form.getByLabel("Apple").press("1");
  await form.getByLabel("Apple").press("e");
  await form.getByRole("button", { name: "Answer" }).click();
  await form.getByRole("alert").getByText("enter a number").waitFor();
  await form.getByLabel("Apple").fill("3");
  await form.getByLabel("Berry").selectOption("blue");
  await form.getByLabel("b", { exact: true }).check();
  await form.getByRole("button", { name: "Answer" }).click();
  await page.getByText("The tool said").waitFor();
  await page.locator(".card summary").first().click();
  await page.getByText(/striped/).first().waitFor();
  const said = await page.locator(".card .result").first().innerText();
  for (const piece of [/"action": "accept"/, /"apple": 3/, /"mango": true/, /"berry": "blue"/, /"b"/]) assert.match(said, piece);
  assert.doesNotMatch(said, /damson/);
  for (const [button, told, action] of [["Cancel", "Cancelled.", "cancel"], ["Decline", "Declined.", "decline"]]) {
    await page.getByRole("link", { name: "New conversation" }).click();
    await page.getByLabel("What runs without asking").selectOption("all");
    await say(page, "tool kinds__asks {}");
    await form.getByRole("button", { name: button, exact: true }).click();
    await page.getByText(told).waitFor();
    await page.getByText("The tool said").waitFor();
    await page.locator(".card summary").first().click();
    await page.getByText(`"${action}"`).first().waitFor();
  }
  assert.deepEqual(page.wrong, []);
});

test("a call that nobody knows the outcome of is asked about in its own words", async () => {
  const page = await lookAt(place);
  await say(page, `tool command__run ${JSON.stringify({ command: "touch began; sleep 300" })}`);
  await page.getByRole("button", { name: "Allow once" }).click();
  await page.locator(".word", { hasText: "running" }).waitFor();
  await until(async () => (await place.api("/approvals")).data.length === 0);
  await place.kill();
  await place.start();
  const question = page.getByRole("group", { name: /^Decision about/ });
  await question.getByText("nobody knows whether it happened").waitFor();
  assert.deepEqual(await question.getByRole("button").evaluateAll((buttons) => buttons.map(({ innerText }) => innerText.trim()).filter((words) => !words.startsWith("Copy"))),
    ["It happened", "Run it again", "Leave it out"]);
  await question.getByRole("button", { name: "Leave it out" }).click();
  await page.getByText("The tool said").waitFor();
  assert.deepEqual(page.wrong, []);
});

test("a tool that has changed is asked about with what changed, and set aside until a person agrees", async () => {
  const page = await lookAt(place);
  await say(page, "tool kinds__shifty {}");
  await page.getByRole("button", { name: "Allow once" }).click();
  await page.getByText("The tool said").waitFor();
  // One more waits when the tool becomes another one.
  await say(page, "tool kinds__shifty {}");
  await page.getByRole("button", { name: "Allow once" }).waitFor();
  const other = await lookAt(place);
  await other.getByLabel("What runs without asking").selectOption("all");
  await say(other, "tool kinds__change {}");
  await other.getByText("The tool said").waitFor();
  await other.goto(`${place.base}/#/servers`);
  const card = other.getByRole("article", { name: "Server kinds" });
  await card.getByRole("button", { name: /1 set aside/ }).click();
  await card.getByText("set aside", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Allow once" }).click();
  const question = page.getByRole("group", { name: /^Decision about/ });
  await question.getByText("The tool has changed since it was last allowed.").waitFor();
  await question.getByText("What changed in the tool").waitFor();
  await question.getByText(/Deletes what it is told to/).first().waitFor();
  await question.getByRole("button", { name: "Deny", exact: true }).click();
  await page.getByText("The tool said").nth(1).waitFor();
  await card.getByRole("button", { name: "Agree to it as it is now" }).click();
  await card.locator(".about", { hasText: "Deletes what it is told to" }).waitFor();
  assert.deepEqual([page.wrong, other.wrong], [[], []]);
});

test("what a tool has become is not agreed to by a person who was shown what it was before that", async () => {
  await place.api("/mcp/servers/kinds/tools/shifty/approve", {});
  const reason = async () => (await place.api("/mcp/servers/kinds/tools")).set_aside[0]?.reason ?? "";
  /** Has it change, and gives what it says then that it does. */
  const change = async () => {
    const before = await reason();
    await place.api("/tools/call", { name: "kinds__change", approve: "all" });
    await until(async () => await reason() !== before);
    return /\+ (\w+ what it is told to)/.exec(await reason())[1];
  };
  const shown = await change();
  const page = await lookAt(place, { path: "/#/servers" });
  const card = page.getByRole("article", { name: "Server kinds" });
  await card.getByRole("button", { name: /1 set aside/ }).click();
  await card.getByText(shown).waitFor();
  // While that is read it becomes another one.
  const now = await change();
  await card.getByText(shown).waitFor();
  const agree = card.getByRole("button", { name: "Agree to it as it is now" });
  await agree.click();
  await page.getByText(/changed once more since it was looked at/).waitFor();
  await card.getByText(now).waitFor();
  assert.match(await reason(), /agrees to/);
  await agree.click();
  await card.locator(".about", { hasText: now }).waitFor();
  assert.equal(await reason(), "");
  assert.deepEqual(page.wrong, []);
});

test("a command line is shown as it will run", async () => {
  const page = await lookAt(place);
  await say(page, `tool command__run ${JSON.stringify({ command: "printf 'a b' | wc -c" })}`);
  const question = page.getByRole("group", { name: /^Decision about/ });
  await question.getByText("Command", { exact: true }).waitFor();
  assert.equal((await question.locator("pre code").innerText()).trim(), "printf 'a b' | wc -c");
  // The letter opens the editor, and Escape leaves it; neither decides.
  await question.focus();
  await page.keyboard.press("e");
  await question.getByRole("textbox").first().waitFor();
  await page.keyboard.press("Escape");
  await question.getByRole("button", { name: "Allow once" }).waitFor();
  await question.getByRole("button", { name: "Deny", exact: true }).click();
  await page.getByText("The tool said").waitFor();
});

test("a call that waited and was stopped is said not to have run", async () => {
  const page = await lookAt(place);
  await say(page, 'tool command__run {"command":"true"}');
  await page.getByRole("group", { name: /^Decision about/ }).waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.locator(".card .word", { hasText: "did not run" }).waitFor();
  assert.equal(await page.locator(".card.bad").count(), 0);
  // Both ways on say what they are.
  await page.getByText("The same turn: what ran stays.").waitFor();
  await page.reload();
  await page.locator(".card .word", { hasText: "did not run" }).waitFor();
});

test("a question to a model has all that it is asked, how much it may answer, and the tools that it may ask for", async () => {
  const page = await lookAt(place);
  await say(page, "tool kinds__samples {}");
  await page.getByRole("button", { name: "Allow once" }).click();
  const asked = page.getByRole("group", { name: "Question of kinds" });
  await asked.getByText("It wants scripted/one asked this, for at most 1,500 tokens, and is told the answer:").waitFor();
  await asked.getByText("The model may ask for tools of the server: rhymes meanings").waitFor();
  assert.deepEqual(await asked.locator("pre").allInnerTexts(), ["One word.", "What rhymes with June?"]);
  await page.getByRole("link", { name: /Waiting for you/ }).click();
  await asked.getByText("at most 1,500 tokens").waitFor();
  await asked.getByText("tools of the server: rhymes meanings").waitFor();
  await asked.getByRole("button", { name: "Decline" }).click();
  await asked.waitFor({ state: "detached" });
  assert.deepEqual(page.wrong, []);
});
