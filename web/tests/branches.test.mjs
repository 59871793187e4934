// What people do with conversations besides talking: branches, commands, prompts and resources, files, settings.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { closeBrowser, everything, lookAt, say, startPlace } from "./place.mjs";

let place;
before(async () => {
  place = await startPlace({
    config: everything ? `[mcp.servers.everything]\ncommand = "node"\nargs = ${JSON.stringify([everything, "stdio"])}\n` : "",
  });
});
after(async () => { await closeBrowser(); await place?.stop(); });

const idOf = (page) => decodeURIComponent(new URL(page.url()).hash.split("/").at(-1));
const said = async (id) => (await place.api(`/conversations/${id}/messages`)).data.map(({ content }) => content);

test("a message is edited in a branch, and the original is kept", async () => {
  const page = await lookAt(place);
  await say(page, "first words");
  await page.getByText("You said: first words").waitFor();
  await say(page, "second wrods");
  await page.getByText("You said: second wrods").waitFor();
  const original = idOf(page);
  await page.locator(".said", { hasText: "second wrods" }).hover();
  await page.getByRole("button", { name: "Edit" }).last().click();
  const box = page.getByLabel("Your message, changed");
  assert.equal(await box.evaluate((area) => area === document.activeElement), true);
  await box.fill("second words");
  await page.keyboard.press("Enter");
  await page.getByText("You said: second words").waitFor();
  assert.notEqual(idOf(page), original);
  assert.deepEqual(await said(idOf(page)), ["first words", "You said: first words", "second words", "You said: second words"]);
  assert.deepEqual((await said(original)).slice(2), ["second wrods", "You said: second wrods"]);
  await page.getByRole("button", { name: "Go back to it" }).click();
  await page.getByText("You said: second wrods").waitFor();
  assert.deepEqual(page.wrong, []);
});

test("a message is edited where the title is as long as one may be, and stays a title", async () => {
  const { id } = await place.api("/conversations", { title: "😀".repeat(500) });
  const page = await lookAt(place, { path: `/#/c/${id}` });
  for (const [words, end] of [["first", /^(😀)+ \(branch\)$/u], ["second", /^(😀)+ \(branch 2\)$/u]]) {
    const before = idOf(page);
    await say(page, words);
    await page.getByText(`You said: ${words}`).waitFor();
    await page.locator(".said").last().hover();
    await page.getByRole("button", { name: "Edit" }).last().click();
    await page.getByLabel("Your message, changed").fill(`${words} of all`);
    await page.keyboard.press("Enter");
    await page.getByText(`You said: ${words} of all`).waitFor();
    assert.notEqual(idOf(page), before);
    const { title } = await place.api(`/conversations/${idOf(page)}`);
    assert.match(title, end);
    assert.equal([...title].length, 200);
  }
  assert.deepEqual(page.wrong, []);
});

test("an answer is made again with another model, in a branch", async () => {
  const page = await lookAt(place);
  await say(page, "which model?");
  await page.getByText("You said: which model?").waitFor();
  const original = idOf(page);
  // Hundreds of models below each answer would be slow: they are there once somebody turns to the list.
  assert.equal(await page.getByLabel("Answer again").locator("option").count(), 1);
  await page.getByLabel("Answer again").dispatchEvent("pointerdown");
  await page.getByLabel("Answer again").selectOption("scripted/two");
  await page.waitForFunction((before) => !location.hash.includes(before), original);
  await page.getByText("You said: which model?").waitFor();
  await page.locator(".foot", { hasText: "scripted/two" }).waitFor();
  assert.equal(place.model.requests.at(-1).model, "two");
  assert.equal((await said(original)).length, 2);
});

test("a conversation is pinned to the top where the server has it pinned, in every browser", async () => {
  const page = await lookAt(place);
  await say(page, "pinned one");
  await page.getByText("You said: pinned one").waitFor();
  const id = idOf(page);
  const mark = page.locator(".entry", { hasText: "Pinned: pinned one" });
  await page.route(`**/conversations/${id}`, (route) => (route.request().method() === "PATCH" ? route.abort() : route.fallback()));
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("button", { name: "Pin", exact: true }).click();
  await page.getByText("The server cannot be reached.").waitFor();
  assert.equal(await mark.count(), 0);
  await page.unroute(`**/conversations/${id}`);
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("button", { name: "Pin", exact: true }).click();
  await page.getByRole("link", { name: "New conversation" }).click();
  await say(page, "newer one");
  await page.getByText("You said: newer one").waitFor();
  await page.reload();
  await page.locator(".entry", { hasText: "newer one" }).waitFor();
  assert.match(await page.locator(".entry").first().innerText(), /pinned one/);
  assert.equal((await place.api(`/conversations/${id}`)).pinned, true);
  const elsewhere = await lookAt(place, { path: `/#/c/${id}` });
  await elsewhere.getByRole("button", { name: "Unpin pinned one" }).waitFor();
  await elsewhere.getByRole("button", { name: "More" }).click();
  await elsewhere.getByRole("button", { name: "Unpin", exact: true }).click();
  await elsewhere.getByRole("button", { name: "Pin pinned one", exact: true }).waitFor();
  await page.reload();
  await page.getByRole("button", { name: "Pin pinned one", exact: true }).waitFor();
  assert.equal(await mark.count(), 0);
});

test("a conversation is saved as text and as data", async () => {
  const page = await lookAt(place);
  await say(page, 'tool filesystem__write {"path":"asked.txt","content":"x"}');
  const question = page.getByRole("group", { name: /^Decision about/ });
  await question.getByRole("button", { name: "Edit arguments" }).click();
  await question.getByRole("textbox").fill('{"path":"ran.txt","content":"x"}');
  await question.getByRole("button", { name: "Allow as changed" }).click();
  await page.getByText("The tool said").waitFor();
  await place.api(`/conversations/${idOf(page)}`, { system_prompt: "Be brief." }, "PATCH");
  await say(page, 'tool filesystem__read {"path":"a.txt"}');
  await page.getByText("The tool said").nth(1).waitFor();
  const saved = async (name) => {
    await page.getByRole("button", { name: "More" }).click();
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name, exact: true }).click()]);
    return { name: download.suggestedFilename(), text: readFileSync(await download.path(), "utf8") };
  };
  const markdown = await saved("Markdown");
  assert.match(markdown.name, /\.md$/);
  assert.match(markdown.text, /## Instructions\n\nBe brief\.\n[\s\S]*asked\.txt[\s\S]*A person changed what \*\*filesystem__write\*\* was called with to\n\n```\n[^`]*ran\.txt/);
  assert.match(markdown.text, /Called \*\*filesystem__read\*\* with[\s\S]*hello file[\s\S]*The tool said/);
  const data = JSON.parse((await saved("JSON")).text);
  assert.deepEqual(data.messages.map(({ role }) => role), [0, 1].flatMap(() => ["user", "assistant", "tool", "assistant"]));
  const openai = JSON.parse((await saved("OpenAI messages")).text);
  assert.equal(openai.findLast(({ role }) => role === "tool").content.includes("hello file"), true);
  const names = new Set([markdown.name]);
  for (const form of ["JSON", "OpenAI messages"]) names.add((await saved(form)).name);
  for (const form of ["Anthropic messages", "Gemini contents", "AI SDK messages"]) {
    const { name, text } = await saved(form);
    names.add(name);
    const told = JSON.parse(text);
    assert.ok((told.messages ?? told.contents ?? told).length >= 2 && text.includes("hello file") && text.includes("The tool said"), form);
    assert.deepEqual(told.system ?? told.systemInstruction?.parts[0].text ?? told[0].content, "Be brief.", form);
  }
  // Each has a name of its own.
  assert.equal(names.size, 6);
});

test("a conversation is copied as a branch, which goes its own way", async () => {
  const page = await lookAt(place);
  await say(page, "the trunk");
  await page.getByText("You said: the trunk").waitFor();
  const original = idOf(page);
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("button", { name: "Copy as a branch" }).click();
  await page.waitForFunction((before) => !location.hash.includes(before), original);
  await page.getByText("You said: the trunk").waitFor();
  await say(page, "a twig");
  await page.getByText("You said: a twig").waitFor();
  assert.deepEqual(await said(original), ["the trunk", "You said: the trunk"]);
  assert.equal((await said(idOf(page))).length, 4);
});

test("commands are found by a slash and run, and what is none is said", async () => {
  const page = await lookAt(place);
  const composer = page.getByRole("textbox").first();
  await composer.fill("/mo");
  await page.getByRole("option", { name: /^\/model/ }).waitFor();
  await page.keyboard.press("Enter");
  assert.equal(await composer.inputValue(), "/model ");
  await page.keyboard.type("two");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector('[aria-label="Model"]').value === "scripted/two");
  await say(page, "/etc/passwd is what?");
  await page.getByText("You said: /etc/passwd is what?").waitFor();
  assert.equal(place.model.requests.at(-1).model, "two");
  await composer.fill("/model nowhere");
  await page.keyboard.press("Enter");
  await page.getByText("No model is called").waitFor();
  await composer.fill("/rename");
  await page.keyboard.press("Enter");
  await page.getByLabel("Title").waitFor();
  await page.keyboard.press("Escape");
  await composer.fill("/new");
  await page.keyboard.press("Enter");
  await page.getByText("What can I do for you?").waitFor();
  // What looks like a command is none of the model's business.
  for (const [words, why] of [["/nonsense", "There is no command /nonsense."], ["/rename", "There is no conversation yet for /rename."],
    ["/usage of it", "/usage takes nothing after it."]]) {
    await say(page, words);
    await page.getByText(`${why} With one more / before it it is a message.`).waitFor();
    assert.equal(await composer.inputValue(), words);
  }
  await say(page, "//nonsense of it");
  await page.getByText("You said: /nonsense of it").waitFor();
  await page.goto(`${place.base}/#/c/a%2Fb`);
  await page.getByText("There is no such conversation.").waitFor();
  assert.deepEqual(page.wrong, []);
});

test("a prompt of a server is put in by #, and a resource attached by @", { skip: !everything }, async () => {
  const page = await lookAt(place);
  const composer = page.getByRole("textbox").first();
  await composer.pressSequentially("#args");
  await page.getByRole("option", { name: /everything/ }).first().waitFor();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/^city/).fill("Paris");
  await dialog.getByRole("button", { name: "Put it in" }).click();
  await dialog.waitFor({ state: "detached" });
  assert.match(await composer.inputValue(), /Paris/);
  await composer.fill("Look at this: @");
  await page.getByRole("option").first().waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Tab");
  await page.locator(".attached li").waitFor();
  await page.keyboard.press("Enter");
  await page.locator(".answer .md").waitFor();
  assert.match(JSON.stringify(place.model.requests.at(-1).messages.at(-1)), /Look at this/);
  const [message] = (await place.api(`/conversations/${idOf(page)}/turns`)).data;
  assert.deepEqual(message.content.map(({ type }) => type), ["text", "resource"]);
  assert.deepEqual(page.wrong, []);
});

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** Gives the composer a file. */
const giver = (page) => (kind, name, type, base64) => page.getByRole("textbox", { name: "Message" }).evaluate((box, [kind, name, type, base64]) => {
  const data = new DataTransfer();
  data.items.add(new File([Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))], name, { type }));
  box.dispatchEvent(kind === "paste" ? new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true })
    : new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
}, [kind, name, type, base64]);

test("files are attached by paste and by drop, seen before they are sent, taken away, and kept whole", async () => {
  const page = await lookAt(place);
  const composer = page.getByRole("textbox", { name: "Message" });
  const given = giver(page);
  await given("paste", "dot.png", "image/png", pixel);
  const attached = page.locator(".attached li");
  await attached.filter({ hasText: "dot.png" }).locator("img").waitFor();
  await given("drop", "words.txt", "text/plain", Buffer.from("words of a file").toString("base64"));
  await given("drop", "other.txt", "text/plain", Buffer.from("not this one").toString("base64"));
  await attached.filter({ hasText: "other.txt" }).waitFor();
  await page.getByRole("button", { name: "Remove other.txt" }).click();
  await composer.fill("What is this?");
  await page.keyboard.press("Enter");
  await page.locator(".answer .md").waitFor();
  assert.equal(await attached.count(), 0);
  const [turn] = (await place.api(`/conversations/${idOf(page)}/turns`)).data;
  assert.deepEqual(turn.content.map(({ type }) => type), ["text", "image", "resource"]);
  assert.equal(turn.content[1].data, pixel);
  assert.equal(turn.content[2].resource.text, "words of a file");
  assert.match(JSON.stringify(place.model.requests.at(-1).messages.at(-1)), /words of a file/);
  await page.reload();
  await page.locator(".said", { hasText: "words of a file" }).getByRole("img", { name: "Attached image" }).waitFor();
  assert.deepEqual(page.wrong, []);
});

test("what a file is its bytes say, whatever its name has the browser think", async () => {
  const page = await lookAt(place);
  const given = giver(page);
  await given("drop", "s.sh", "application/x-shellscript", Buffer.from("echo hello").toString("base64"));
  await given("drop", "table.csv", "application/vnd.ms-excel", Buffer.from("a,b\n1,2\n").toString("base64"));
  await given("drop", "photo.jpg", "image/jpeg", pixel);
  await page.locator(".attached img").waitFor();
  await say(page, "What are these?");
  await page.locator(".answer .md").waitFor();
  const [turn] = (await place.api(`/conversations/${idOf(page)}/turns`)).data;
  assert.deepEqual(turn.content.map(({ type, resource, mimeType }) => mimeType ?? resource?.text ?? type), ["text", "echo hello", "a,b\n1,2\n", "image/png"]);
});

test("each file that is refused is named with its reason, and the others are attached", async () => {
  const page = await lookAt(place);
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.getByRole("button", { name: "Attach files" }).click()]);
  await chooser.setFiles([
    { name: "archive.zip", mimeType: "application/zip", buffer: Buffer.from("PK\x03\x04....") },
    { name: "words.txt", mimeType: "text/plain", buffer: Buffer.from("words of a file") },
    { name: "empty.txt", mimeType: "text/plain", buffer: Buffer.from("") },
  ]);
  await page.locator(".attached li", { hasText: "words.txt" }).waitFor();
  const told = page.locator(".toast > span");
  await told.waitFor();
  assert.match(await told.innerText(), /^archive\.zip: the file is `application\/zip`;[^\n]*\nempty\.txt: the file is empty$/);
  assert.deepEqual(page.wrong, []);
});

test("files are chosen by a button, kept with what is written over a reload and another conversation, and not once they are sent", async () => {
  const page = await lookAt(place);
  const attached = page.locator(".attached li");
  await page.getByRole("textbox", { name: "Message" }).fill("Look");
  await page.keyboard.press("Tab");
  // Before the page is asked something, whose answer says that the page knows of it: a key may get there first.
  const chooser = page.waitForEvent("filechooser");
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Attach files");
  await page.keyboard.press("Enter");
  await (await chooser).setFiles([
    { name: "dot.png", mimeType: "image/png", buffer: Buffer.from(pixel, "base64") },
    { name: "words.txt", mimeType: "text/plain", buffer: Buffer.from("words of a file") },
  ]);
  await attached.nth(1).waitFor();
  await page.reload();
  await attached.nth(1).waitFor();
  await page.waitForFunction(() => document.querySelector(".attached img")?.naturalWidth === 1);
  const { id } = await place.api("/conversations", {});
  await page.goto(`${place.base}/#/c/${id}`);
  await attached.first().waitFor({ state: "detached" });
  await page.goto(`${place.base}/#/`);
  await attached.nth(1).waitFor();
  await page.getByRole("textbox", { name: "Message" }).press("Enter");
  await page.locator(".answer .md").waitFor();
  const [turn] = (await place.api(`/conversations/${idOf(page)}/turns`)).data;
  assert.deepEqual(turn.content.map(({ type }) => type), ["text", "image", "resource"]);
  assert.deepEqual(await page.evaluate(() => Object.keys(localStorage).filter((name) => name.startsWith("draft "))), []);
  // What the server has no more is not attached.
  await page.evaluate(() => localStorage.setItem("draft new files", JSON.stringify([{ id: `art_${"0".repeat(32)}`, name: "gone.txt", type: "text/plain", size: 1 }])));
  const asked = page.waitForResponse((response) => response.url().includes("art_0000") && response.status() === 404);
  await page.getByRole("link", { name: "New conversation" }).click();
  await asked;
  await attached.first().waitFor({ state: "detached" });
  assert.deepEqual(page.wrong, []);
});

test("a file whose upload ends while another conversation is looked at is there, and sent", async () => {
  const page = await lookAt(place);
  const attached = page.locator(".attached li");
  const { id } = await place.api("/conversations", {});
  await page.goto(`${place.base}/#/c/${id}`);
  const held = [];
  await page.route("**/api/v1/artifacts", (route) => void held.push(route));
  await page.locator("input[type=file]").setInputFiles([{ name: "late.txt", mimeType: "text/plain", buffer: Buffer.from("a late file") }]);
  await attached.getByText("A file is being uploaded").waitFor();
  const composer = page.getByRole("textbox", { name: "Message" });
  await composer.fill("about the file");
  await page.goto(`${place.base}/#/`);
  await attached.first().waitFor({ state: "detached" });
  await page.goto(`${place.base}/#/c/${id}`);
  await attached.getByText("A file is being uploaded").waitFor();
  // Not sent without it.
  assert.equal(await page.getByRole("button", { name: "Send" }).isDisabled(), true);
  await page.goto(`${place.base}/#/`);
  const stored = page.waitForResponse((response) => response.url().endsWith("/artifacts"));
  await held[0].continue();
  await (await stored).finished();
  await page.goto(`${place.base}/#/c/${id}`);
  await attached.getByText("late.txt").waitFor();
  assert.equal(await attached.count(), 1);
  await composer.press("Enter");
  await page.locator(".answer .md").waitFor();
  const [turn] = (await place.api(`/conversations/${id}/turns`)).data;
  assert.deepEqual(turn.content.map(({ type }) => type), ["text", "resource"]);
  assert.deepEqual(await page.evaluate(() => Object.keys(localStorage).filter((name) => name.startsWith("draft "))), []);
  assert.deepEqual(page.wrong, []);
});

test("text that is pasted or dropped stays text, and a file is taken beside the composer, too", async () => {
  const page = await lookAt(place);
  const moved = (selector, kind, types) => page.locator(selector).evaluate((target, [kind, types, pixel]) => {
    const data = new DataTransfer();
    for (const type of types) {
      if (type.startsWith("text/")) data.setData(type, "1\t2");
      else data.items.add(new File([Uint8Array.from(atob(pixel), (letter) => letter.charCodeAt(0))], "image.png", { type }));
    }
    const [Kind, given] = kind === "paste" ? [ClipboardEvent, { clipboardData: data }] : [DragEvent, { dataTransfer: data }];
    // Where nobody takes it the browser does what it does with it.
    return !target.dispatchEvent(new Kind(kind, { ...given, bubbles: true, cancelable: true }));
  }, [kind, types, pixel]);
  const composer = ".composer textarea";
  const attached = page.locator(".attached li");
  await page.locator(composer).waitFor();
  assert.equal(await moved(composer, "drop", ["text/plain"]), false);
  assert.equal(await moved(composer, "dragover", ["text/plain"]), false);
  assert.equal(await moved(composer, "paste", ["text/plain", "text/html", "image/png"]), false);
  assert.equal(await attached.count(), 0);
  assert.equal(await moved(".transcript", "dragover", ["image/png"]), true);
  assert.equal(await moved(".transcript", "drop", ["image/png"]), true);
  await attached.first().waitFor();
  await page.getByRole("button", { name: "Remove image.png" }).click();
  // As a file is copied from a folder: its name is text.
  assert.equal(await moved(composer, "paste", ["text/plain", "image/png"]), true);
  await attached.first().waitFor();
  assert.deepEqual(page.wrong, []);
});

test("a picture that is sent while a turn runs is shown, and said again in a branch", async () => {
  const page = await lookAt(place);
  await say(page, "count through picture");
  await page.getByText("n59", { exact: false }).first().waitFor();
  await giver(page)("paste", "dot.png", "image/png", pixel);
  await page.locator(".attached img").waitFor();
  await say(page, "look at this");
  const shown = page.locator(".said", { hasText: "look at this" }).getByRole("img", { name: "Attached image" });
  await shown.waitFor();
  await page.waitForFunction(() => document.querySelector(".said img")?.naturalWidth === 1);
  place.model.gate("picture").open();
  await page.getByText("You said: look at this").waitFor();
  await page.getByLabel("Answer again").waitFor();
  await page.reload();
  await page.locator(".turn").locator(shown).waitFor();
  assert.equal(await page.getByText("[image, image/png]").count(), 0);
  const original = idOf(page);
  await page.getByLabel("Answer again").focus();
  await page.getByLabel("Answer again").selectOption("scripted/two");
  await page.waitForFunction((before) => !location.hash.includes(before), original);
  await page.getByLabel("Answer again").waitFor();
  const [turn] = (await place.api(`/conversations/${idOf(page)}/turns`)).data;
  assert.deepEqual(turn.content.map(({ type, text }) => text ?? type), ["count through picture", "look at this", "image"]);
  assert.deepEqual(page.wrong, []);
});

test("what is said while a call waits is shown as held", async () => {
  const page = await lookAt(place);
  await say(page, 'tool filesystem__write {"path":"held.txt","content":"x"}');
  await page.getByRole("button", { name: "Allow once" }).waitFor();
  await page.waitForFunction(() => document.querySelector(".composer textarea").placeholder.startsWith("Decide"));
  // The journal tells of it before the answer to who said it comes.
  await page.route("**/messages", async (route) => {
    const response = await route.fetch();
    await page.getByText("Held until the turn").waitFor();
    await route.fulfill({ response });
  });
  await page.evaluate(() => {
    window.most = 0;
    const look = () => window.most = Math.max(window.most, document.body.innerText.split("Held until the turn").length - 1);
    new MutationObserver(look).observe(document.body, { childList: true, subtree: true, characterData: true });
  });
  await say(page, "and one thing more");
  await page.locator(".said", { hasText: "and one thing more" }).first().waitFor();
  await page.getByText("Held until the turn").first().waitFor();
  await page.getByText("Sending…").waitFor({ state: "detached" });
  assert.equal(await page.evaluate(() => window.most), 1);
  await page.getByRole("button", { name: "Allow once" }).click();
  await page.getByText("Held until the turn").waitFor({ state: "detached" });
  assert.equal(await page.locator(".said", { hasText: "and one thing more" }).count(), 1);
});

test("instructions and limits of a conversation reach the model", async () => {
  const page = await lookAt(place);
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("button", { name: "Settings…" }).click();
  await page.getByLabel("Instructions for the model").fill("Answer like a pirate.");
  await page.getByLabel("Temperature").fill("0.3");
  await page.getByRole("button", { name: "Store" }).click();
  await say(page, "ahoy");
  await page.getByText("You said: ahoy").waitFor();
  const asked = place.model.requests.at(-1);
  assert.match(JSON.stringify(asked.messages[0]), /pirate/);
  assert.equal(asked.temperature, 0.3);
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("button", { name: "Settings…" }).click();
  assert.equal(await page.getByLabel("Instructions for the model").inputValue(), "Answer like a pirate.");
  await page.getByLabel("Temperature").fill("");
  await page.getByRole("button", { name: "Store" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await say(page, "again");
  await page.getByText("You said: again").waitFor();
  assert.equal("temperature" in place.model.requests.at(-1), false);
});

test("settings that the server does not take stay where they were written", async () => {
  const page = await lookAt(place);
  await say(page, "hello");
  await page.getByText("You said: hello").waitFor();
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("button", { name: "Settings…" }).click();
  const dialog = page.getByRole("dialog", { name: "Settings of this conversation" });
  await dialog.getByLabel("Instructions for the model").fill("written for long");
  await page.route("**/api/v1/conversations/*", (route) => (route.request().method() === "PATCH" ? route.abort() : route.fallback()));
  await dialog.getByRole("button", { name: "Store" }).click();
  await dialog.getByRole("alert").getByText("The server cannot be reached.").waitFor();
  assert.equal(await dialog.getByLabel("Instructions for the model").inputValue(), "written for long");
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await dialog.getByRole("button", { name: "Store" }).click();
  await dialog.waitFor({ state: "detached" });
  assert.equal((await place.api(`/conversations/${idOf(page)}`)).system_prompt, "written for long");
});
