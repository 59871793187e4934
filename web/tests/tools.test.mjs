// Tools: calls as cards, decisions, forms, and the servers that bring them.

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { artifactOf, textOf } from "../page/lib/artifact.js";
import { startGuarded } from "./guarded.mjs";
import { closeBrowser, everything, lookAt, say, startPlace, until } from "./place.mjs";

let place;
before(async () => {
  place = await startPlace({
    config: everything ? `[mcp.servers.everything]\ncommand = "node"\nargs = ${JSON.stringify([everything, "stdio"])}\n` : "",
  });
});
after(async () => { await closeBrowser(); await place?.stop(); });

const write = (path) => `tool filesystem__write ${JSON.stringify({ path, content: "line one\nline two\n" })}`;

test("a call that needs a person shows what it will do and why, and runs once it is allowed", async () => {
  const page = await lookAt(place);
  await say(page, write("one.txt"));
  const question = page.getByRole("group", { name: "Decision about Write a file" });
  await question.getByText("Writes one.txt").waitFor();
  assert.match(await question.innerText(), /\+ line one\n\+ line two/);
  await question.getByText("approve mode ask").waitFor();
  await page.waitForFunction(() => document.title.startsWith("(1) "));
  assert.equal(existsSync(join(place.folder, "one.txt")), false);
  await question.getByRole("button", { name: "Allow once" }).click();
  await page.getByText("The tool said").waitFor();
  assert.equal(readFileSync(join(place.folder, "one.txt"), "utf8"), "line one\nline two\n");
  await page.locator(".card", { hasText: "done" }).locator("summary").click();
  await page.getByText("Allowed by a person.").waitFor();
  await page.waitForFunction(() => !document.title.startsWith("("));
  assert.deepEqual(page.wrong, []);
});

test("a call is denied by a key, and the model hears of it", async () => {
  const page = await lookAt(place);
  await say(page, write("two.txt"));
  const question = page.getByRole("group", { name: "Decision about Write a file" });
  await question.getByRole("button", { name: "Deny", exact: true }).focus();
  await page.keyboard.press("d");
  await page.getByText("The tool said").waitFor();
  await page.locator(".word", { hasText: "denied" }).waitFor();
  assert.equal(existsSync(join(place.folder, "two.txt")), false);
});

test("a turn that waits is stopped, and its call never runs", async () => {
  const page = await lookAt(place);
  await say(page, write("never.txt"));
  await page.getByRole("button", { name: "Allow once" }).waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("Stopped.").waitFor();
  assert.equal(await page.getByRole("button", { name: "Allow once" }).count(), 0);
  assert.equal(existsSync(join(place.folder, "never.txt")), false);
});

test("arguments are edited before the call is allowed, and what is wrong with them is said", async () => {
  const page = await lookAt(place);
  await say(page, write("three.txt"));
  const question = page.getByRole("group", { name: "Decision about Write a file" });
  await question.getByRole("button", { name: "Edit arguments" }).click();
  const box = question.getByRole("textbox");
  await box.fill('{"path": 3}');
  await question.getByRole("button", { name: "Allow as changed" }).click();
  await question.getByRole("alert").waitFor();
  await box.fill('{"path": "four.txt", "content": "changed"}');
  await question.getByRole("button", { name: "Allow as changed" }).click();
  await page.getByText("The tool said").waitFor();
  assert.equal(readFileSync(join(place.folder, "four.txt"), "utf8"), "changed");
});

test("a decision that one window takes is seen in the other, and one inbox has them all", async () => {
  const one = await lookAt(place);
  await say(one, write("five.txt"));
  await one.getByRole("button", { name: "Allow once" }).waitFor();
  const two = await lookAt(place, { path: "/#/inbox" });
  const waiting = two.locator("article.card");
  await waiting.getByText("Writes five.txt").waitFor();
  await waiting.getByRole("button", { name: "Allow once" }).click();
  await one.getByText("The tool said").waitFor();
  await two.getByText("Nothing waits.").waitFor();
});

test("calls of a step stand together, and one that fails says so", async () => {
  const page = await lookAt(place);
  await say(page, 'both filesystem__read filesystem__stat {"path":"nowhere.txt"}');
  const group = page.getByRole("group", { name: "2 tool calls" });
  await group.getByText("failed").nth(1).waitFor();
  await group.locator("summary").first().click();
  await group.locator(".failure, .result.bad").first().waitFor();
  await page.getByRole("button", { name: "Copy as command call as a command" }).first().click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()),
    `turnwright tools call filesystem__read --arguments '{"path":"nowhere.txt"}'`);
});

test("tools are chosen for a conversation", async () => {
  const page = await lookAt(place);
  await page.getByRole("button", { name: "Tools" }).click();
  await page.getByRole("dialog").getByLabel(/Read a file/).waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "None" }).click();
  await page.getByRole("dialog").getByLabel(/Read a file/).check();
  // While something is searched for, all and none are those that are found.
  const search = page.getByLabel("Search tools");
  const choose = async (words, name) => {
    await search.fill(words);
    await page.waitForFunction(() => document.querySelectorAll(".tool-choice").length === 1);
    await page.getByRole("dialog").getByRole("button", { name }).click();
    await search.fill("");
  };
  await choose("filesystem__stat", "All");
  await choose("command__run", "All");
  await choose("filesystem__stat", "None");
  await page.getByRole("button", { name: "Close" }).click();
  // What was chosen is so where one looks again.
  await page.getByRole("button", { name: "Tools" }).click();
  await page.getByRole("dialog").getByLabel(/Read a file/).waitFor();
  assert.equal(await page.getByRole("dialog").getByRole("checkbox", { checked: true }).count(), 2);
  await page.getByRole("button", { name: "Close" }).click();
  await say(page, "which?");
  await page.getByText("You said: which?").waitFor();
  assert.deepEqual(place.model.requests.at(-1).tools.map((tool) => tool.function.name).sort(), ["command__run", "filesystem__read"]);
});

test("a tool that is chosen and not there at the moment stays chosen", async () => {
  const { id } = await place.api("/conversations", { tools: ["filesystem__read", "gone__tool", "later__*"] });
  const page = await lookAt(place, { path: `/#/c/${id}` });
  await page.getByRole("button", { name: "Tools", exact: true }).click();
  const answered = page.waitForResponse((answer) => answer.request().method() === "PATCH");
  await page.getByRole("dialog").getByLabel(/Run a command/).check();
  await (await answered).finished();
  assert.deepEqual((await place.api(`/conversations/${id}`)).tools, ["filesystem__read", "gone__tool", "later__*", "command__run"]);
  assert.deepEqual(page.wrong, []);
});

test("a tool that is kept out and not there at the moment stays so", async () => {
  const { id } = await place.api("/conversations", { tools: ["*", "!gone__tool"] });
  const page = await lookAt(place, { path: `/#/c/${id}` });
  await page.getByRole("button", { name: "Tools", exact: true }).click();
  const box = page.getByRole("dialog").getByLabel(/Run a command/);
  for (const [isOn, tools] of [[false, ["*", "!gone__tool", "!command__run"]], [true, ["*", "!gone__tool", "command__run"]]]) {
    const answered = page.waitForResponse((answer) => answer.request().method() === "PATCH");
    await box.setChecked(isOn);
    await (await answered).finished();
    assert.deepEqual((await place.api(`/conversations/${id}`)).tools, tools);
  }
  assert.deepEqual(page.wrong, []);
});

test("a list that only keeps out is all others, and one whose last tool goes is none", async () => {
  const one = await place.api("/conversations", { tools: ["!gone__tool", "!command__run"] });
  const other = await place.api("/conversations", { tools: ["filesystem__read"] });
  for (const [id, label, isOn, tools] of [
    [one.id, /Run a command/, true, ["*", "!gone__tool", "command__run"]],
    [other.id, /Read a file/, false, []],
  ]) {
    const page = await lookAt(place, { path: `/#/c/${id}` });
    await page.getByRole("button", { name: "Tools", exact: true }).click();
    const box = page.getByRole("dialog").getByLabel(label);
    await box.waitFor();
    assert.equal(await box.isChecked(), !isOn);
    const answered = page.waitForResponse((answer) => answer.request().method() === "PATCH");
    await box.setChecked(isOn);
    await (await answered).finished();
    assert.deepEqual((await place.api(`/conversations/${id}`)).tools, tools);
    assert.deepEqual(page.wrong, []);
  }
});

test("the boxes of the tools are what is stored, however long that takes and where it is refused", async () => {
  const page = await lookAt(place);
  await say(page, "hello");
  await page.getByText("You said: hello").waitFor();
  const id = decodeURIComponent(new URL(page.url()).hash.split("/").at(-1));
  await page.getByRole("button", { name: "Tools", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "Tools of this conversation" });
  const box = (name) => dialog.getByRole("checkbox", { name });
  await box(/^Delete a file/).waitFor();
  const held = [];
  await page.route("**/api/v1/conversations/*", (route) => (route.request().method() === "PATCH" ? void held.push(route) : route.fallback()));
  const next = async (count) => {
    while (held.length < count) await page.waitForTimeout(20);
    return held[count - 1];
  };
  await box(/^Delete a file/).uncheck();
  const first = await next(1);
  await box(/^Run a command/).uncheck();
  await page.evaluate(() => fetch("/api/v1/me"));
  assert.equal(held.length, 1);
  await first.continue();
  await (await next(2)).continue();
  await until(async () => (await place.api(`/conversations/${id}`)).tools?.includes("!command__run"));
  assert.deepEqual((await place.api(`/conversations/${id}`)).tools, ["*", "!filesystem__delete", "!command__run"]);
  await box(/^Write a file/).uncheck();
  await (await next(3)).abort();
  await dialog.getByRole("alert").getByText("The server cannot be reached.").waitFor();
  assert.deepEqual(await Promise.all([/^Delete a file/, /^Run a command/, /^Write a file/].map((name) => box(name).isChecked())), [false, false, true]);
  await box(/^Write a file/).uncheck();
  await (await next(4)).continue();
  await dialog.getByRole("alert").waitFor({ state: "detached" });
  await page.unrouteAll({ behavior: "ignoreErrors" });
});

test("a form has the fields of the server's schema, and its answer reaches the server", { skip: !everything }, async () => {
  const page = await lookAt(place);
  await page.getByLabel("What runs without asking").selectOption("all");
  await say(page, "tool everything__trigger-elicitation-request {}");
  const form = page.getByRole("group", { name: "Question of everything" });
  await form.waitFor();
  await page.waitForFunction(() => document.title.startsWith("(1) "));
  const labels = await form.locator("label, legend").allInnerTexts();
  assert.ok(labels.length >= 5, labels.join());
  await form.getByRole("button", { name: "Answer" }).click();
  await form.getByRole("alert").waitFor();
  await form.getByRole("textbox").first().fill("Ann");
  await form.getByRole("button", { name: "Answer" }).click();
  await page.getByText("The tool said").waitFor();
  await page.locator(".card summary").first().click();
  await page.getByText("Ann").first().waitFor();
  await page.getByText("Answered.").waitFor();
  assert.deepEqual(page.wrong, []);
});

test("a form is declined", { skip: !everything }, async () => {
  const page = await lookAt(place);
  await page.getByLabel("What runs without asking").selectOption("all");
  await say(page, "tool everything__trigger-elicitation-request {}");
  await page.getByRole("group", { name: "Question of everything" }).getByRole("button", { name: "Decline" }).click();
  await page.getByText("Declined.").waitFor();
  await page.getByText("The tool said").waitFor();
});

test("an image that a tool gives is shown", { skip: !everything }, async () => {
  const page = await lookAt(place);
  await page.getByLabel("What runs without asking").selectOption("all");
  await say(page, "tool everything__get-tiny-image {}");
  await page.getByText("The tool said").waitFor();
  await page.locator(".card summary").first().click();
  const image = page.getByRole("img", { name: "Image from the tool" });
  await image.waitFor();
  assert.ok((await image.evaluate((shown) => shown.naturalWidth)) > 0);
});

test("a server is added with a view of what will run, looked at, stopped, started and removed", { skip: !everything }, async () => {
  const page = await lookAt(place, { path: "/#/servers" });
  await page.getByRole("button", { name: "Add a server" }).click();
  await page.getByLabel("Name", { exact: true }).fill("second");
  const shown = async () => (await page.getByLabel("What will run").innerText()).split("\n").map((line) => line.replace(/^(program|argument) +/, ""));
  for (const [line, words] of [
    [String.raw`run --root="/my docs" a\ b 'it is'"'s" ""`, ["run", "--root=/my docs", "a b", "it is's", ""]],
    [String.raw`run "\d \"x\" \\" '\d' it's`, ["run", String.raw`\d "x" \ `.trimEnd(), String.raw`\d`, "it's"]],
  ]) {
    await page.getByLabel("Command", { exact: true }).fill(line);
    assert.deepEqual(await shown(), words);
  }
  await page.getByLabel("Command", { exact: true }).fill(`node "${everything}" stdio`);
  assert.equal(await page.getByLabel("What will run").innerText(), `program   node\nargument  ${everything}\nargument  stdio`);
  await page.getByRole("button", { name: "Add and start" }).click();
  const card = page.getByRole("article", { name: "Server second" });
  await card.getByText("ready", { exact: true }).waitFor();
  await card.getByRole("button", { name: /\d+ tools/ }).click();
  await card.getByText("get-sum", { exact: true }).waitFor();
  await card.getByRole("button", { name: "What it wrote" }).click();
  await card.getByLabel("What second wrote").waitFor();
  await card.getByRole("button", { name: "Stop" }).click();
  await card.getByText("stopped", { exact: true }).waitFor();
  await card.getByRole("button", { name: "Start" }).click();
  await card.getByText("ready", { exact: true }).waitFor();
  await card.getByRole("button", { name: "Remove" }).click();
  await card.getByRole("button", { name: "Remove", exact: true }).click();
  await card.waitFor({ state: "detached" });
});

test("a server that wants a sign-in is signed in to by a button, and by another go where that was refused", async () => {
  const guarded = await startGuarded();
  try {
    const page = await lookAt(place, { path: "/#/servers" });
    await page.getByRole("button", { name: "Add a server" }).click();
    await page.getByLabel("Kind", { exact: true }).selectOption("url");
    await page.getByLabel("Name", { exact: true }).fill("guarded");
    await page.getByLabel("Address", { exact: true }).fill(guarded.url);
    assert.equal(await page.getByLabel("What will run").innerText(), guarded.url);
    await page.getByRole("button", { name: "Connect" }).click();
    const card = page.getByRole("article", { name: "Server guarded" });
    await card.getByText("needs a sign-in", { exact: true }).waitFor();
    const visit = async () => {
      await card.getByRole("button", { name: "Sign in" }).click();
      await card.getByText(new URL(guarded.url).host).first().waitFor();
      const tab = page.context().waitForEvent("page");
      await card.getByRole("link", { name: "Open it" }).click();
      await (await tab).waitForLoadState();
      await (await tab).close();
    };
    guarded.state.isWilling = false;
    await visit();
    assert.equal(guarded.state.visits, 1);
    await page.reload();
    guarded.state.isWilling = true;
    await visit();
    await card.getByText("ready", { exact: true }).waitFor();
    await card.getByRole("button", { name: "1 tool" }).click();
    await card.getByText("Behind a sign-in").waitFor();
    assert.deepEqual(page.wrong, []);
  } finally {
    guarded.close();
  }
});

test("a server that cannot run says why", async () => {
  const page = await lookAt(place, { path: "/#/servers" });
  await page.getByRole("button", { name: "Add a server" }).click();
  await page.getByLabel("Name", { exact: true }).fill("broken");
  await page.getByLabel("Command", { exact: true }).fill("no-such-program-here");
  await page.getByRole("button", { name: "Add and start" }).click();
  const card = page.getByRole("article", { name: "Server broken" });
  await card.locator(".failure").waitFor();
  assert.match(await card.locator(".failure").innerText(), /no-such-program-here/);
});

test("a result that is too large for a message is read in parts and saved whole", async () => {
  const whole = Array.from({ length: 20_000 }, (_, number) => `line ${number}\n`).join("");
  writeFileSync(join(place.folder, "long.txt"), whole);
  const page = await lookAt(place);
  await say(page, `tool filesystem__read ${JSON.stringify({ path: "long.txt" })}`);
  await page.getByText("The tool said").waitFor();
  await page.locator(".card", { hasText: "done" }).locator("summary").click();
  const kept = page.locator(".artifact");
  await kept.getByRole("button", { name: "Read it" }).click();
  const part = kept.getByLabel("Part of filesystem__read.txt");
  await part.waitFor();
  assert.equal(await part.textContent(), whole.slice(0, 32_768));
  assert.equal(await kept.getByRole("button", { name: "Back" }).isDisabled(), true);
  await kept.getByRole("button", { name: "On" }).click();
  await kept.getByText("32768 to 65536 of 208890 bytes").waitFor();
  assert.equal(await part.textContent(), whole.slice(32_768, 65_536));
  await kept.getByRole("button", { name: "Last" }).click();
  await kept.getByText("to 208890 of").waitFor();
  assert.equal(await part.textContent(), whole.slice(196_608));
  assert.equal(await kept.getByRole("button", { name: "On" }).isDisabled(), true);
  const saving = page.waitForEvent("download");
  await kept.getByRole("link", { name: "Save" }).click();
  assert.equal(readFileSync(await (await saving).path(), "utf8"), whole);
  assert.deepEqual(page.wrong, []);
});

test("a part of a text begins and ends with whole characters, and parts put together are the text", () => {
  const text = "a€😀é".repeat(9);
  const bytes = new TextEncoder().encode(text);
  for (const count of [1, 2, 3, 4, 5, 7, 50]) {
    let whole = "";
    for (let from = 0; from < bytes.length; from += count) whole += textOf(bytes.slice(from, from + count + 3), from, count).text;
    assert.equal(whole, text, String(count));
  }
  const id = `art_${"0a".repeat(16)}`;
  assert.equal(artifactOf(`artifact:${id}`), id);
  for (const other of [`artifact:${id}/..`, `https://x/${id}`, "artifact:art_1", undefined]) assert.equal(artifactOf(other), null);
});
