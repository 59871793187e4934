// What is written: from right to left, as formulas, as wide tables, and what is filled in and not sent.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { closeBrowser, lookAt, looking, say, startPlace } from "./place.mjs";

const kinds = fileURLToPath(new URL("kinds.mjs", import.meta.url));
let place;
before(async () => {
  place = await startPlace({ config: `[mcp.servers.kinds]\ncommand = "node"\nargs = ${JSON.stringify([kinds, "."])}\n` });
});
after(async () => { await closeBrowser(); await place?.stop(); });
const look = looking();

/** The first answer that repeats this. */
async function answered(page, words) {
  await say(page, words);
  await page.getByRole("button", { name: "Copy answer" }).waitFor();
  return page.locator(".answer .md");
}

const direction = (found) => found.evaluate((node) => getComputedStyle(node).direction);

const ARABIC = `.

مرحبا بك في \`npm run\` اليوم.

- الأول
- second

> قال شيئا

| الاسم | value |
|---|---|
| قلم | 1 |

\`\`\`python
print("مرحبا")
\`\`\`

Words from left to right.`;

test("what is written from right to left is shown so, and code is not", async () => {
  const page = await look(place);
  const composer = page.getByRole("textbox", { name: "Message" });
  await composer.fill("مرحبا");
  assert.equal(await direction(composer), "rtl");
  await composer.fill("");
  assert.equal(await direction(composer), "ltr");
  const answer = await answered(page, `مرحبا${ARABIC}`);
  assert.equal(await direction(page.locator(".said .words")), "rtl");
  const told = {};
  for (const found of ["p:has-text('npm')", "p code", "ul", "blockquote", "table", "pre", "p:has-text('Words')"]) told[found] = await direction(answer.locator(found).first());
  assert.deepEqual(told, { "p:has-text('npm')": "rtl", "p code": "ltr", ul: "rtl", blockquote: "rtl", table: "rtl", pre: "ltr", "p:has-text('Words')": "ltr" });
  // Bullets, lines and cells stand at the side at which the writing begins.
  const side = (found, property) => answer.locator(found).first().evaluate((node, property) => getComputedStyle(node)[property], property);
  assert.deepEqual([await side("ul", "paddingLeft"), await side("blockquote", "borderLeftWidth"), await side("td", "paddingRight")], ["0px", "0px", "0px"]);
  // An item of the other writing goes its own way, beside its mark.
  const item = answer.locator("li", { hasText: "second" });
  const [left, right] = await item.evaluate((node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    const [text, all] = [range.getBoundingClientRect(), node.getBoundingClientRect()];
    return [text.left - all.left, all.right - text.right];
  });
  assert.equal(await item.evaluate((node) => getComputedStyle(node).unicodeBidi), "plaintext");
  assert.ok(left > 20 && right < 2, `${left} ${right}`);
  const id = page.url().split("/").at(-1);
  await place.api(`/conversations/${id}`, { title: "عنوان طويل جدا" }, "PATCH");
  await page.reload();
  const title = page.locator("h1.title", { hasText: "عنوان" });
  await title.waitFor();
  assert.deepEqual([await direction(title), await direction(page.locator(".entry bdi", { hasText: "عنوان" }))], ["rtl", "rtl"]);
  assert.deepEqual(page.wrong, []);
});

const FORMULAS = `x

The sum $a_1 * b_2 * c_3$ and \\(x^* + y^*\\) cost $5 and $6, **not $a*b$ here**.

$$
\\begin{aligned} a_1 &= b*c \\\\ d &= e*f \\end{aligned}
$$

Then
\\[ \\int_0^1 f(x)\\,dx \\]`;

test("formulas stay as they are written and can be copied, prices are none", async () => {
  const page = await look(place);
  const answer = await answered(page, FORMULAS);
  assert.deepEqual(await answer.locator("code.math").allInnerTexts(), ["$a_1 * b_2 * c_3$", "\\(x^* + y^*\\)", "$a*b$"]);
  const blocks = answer.locator(".code");
  const display = "$$\n\\begin{aligned} a_1 &= b*c \\\\ d &= e*f \\end{aligned}\n$$";
  assert.deepEqual((await blocks.locator("pre").allInnerTexts()).map((text) => text.trim()), [display, "\\[ \\int_0^1 f(x)\\,dx \\]"]);
  assert.equal(await answer.locator("p", { hasText: "cost" }).innerText(), "The sum $a_1 * b_2 * c_3$ and \\(x^* + y^*\\) cost $5 and $6, not $a*b$ here.");
  assert.equal(await answer.locator("strong").innerText(), "not $a*b$ here");
  assert.equal(await answer.locator("em").count(), 0);
  await blocks.first().getByRole("button", { name: "Copy code" }).click();
  await page.waitForFunction((text) => navigator.clipboard.readText().then((copied) => copied === text), display);
  assert.deepEqual(page.wrong, []);
});

test("a wide table scrolls within itself, and breaks no word that a line has room for", async () => {
  const page = await lookAt(place, { width: 360, height: 740 });
  const heads = ["Region", "Responsibilities", "Infrastructure", "Configuration", "Availability"];
  const row = ["Northern Europe", "Administration", "Kubernetes 1.31", "https://example.org/a/very/long/address/that/nobody/reads/to/its/end", "99.95 percent"];
  const line = (cells) => `| ${cells.join(" | ")} |`;
  const answer = await answered(page, ["x", "", line(heads), line(heads.map((_, at) => (at === 4 ? "--:" : "---"))), line(row)].join("\n"));
  const table = answer.locator("table");
  const { own, seen, page: wide } = await table.evaluate((node) => ({
    own: node.scrollWidth, seen: node.clientWidth, page: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  }));
  assert.ok(own > seen, `${own} ${seen}`);
  assert.equal(wide, 0);
  // Each word of these cells stands in one line.
  const lines = await answer.locator("th").evaluateAll((cells) => cells.map((cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return range.getClientRects().length;
  }));
  assert.deepEqual(lines, heads.map(() => 1));
  // A column goes where the answer says.
  const sides = await answer.locator("td").evaluateAll((cells) => cells.slice(3).map((cell) => getComputedStyle(cell).textAlign.replace("-webkit-", "")));
  assert.deepEqual(sides, ["left", "right"]);
  assert.ok((await answer.locator("td").nth(3).boundingBox()).width <= 360);
  await page.context().close();
});

test("what is filled into a form is kept over a reload and while another conversation is looked at, until it is answered", async () => {
  const page = await look(place);
  await page.getByLabel("What runs without asking").selectOption("all");
  await say(page, "tool kinds__asks {}");
  const form = page.getByRole("group", { name: "Question of kinds" });
  await form.getByLabel(/Zebra/).fill("striped");
  await form.getByLabel("Berry").selectOption("blue");
  const here = page.url();
  await page.reload();
  await form.waitFor();
  const filled = async () => [await form.getByLabel(/Zebra/).inputValue(), await form.getByLabel("Berry").evaluate((list) => list.selectedOptions[0].label)];
  assert.deepEqual(await filled(), ["striped", "blue"]);
  await page.getByRole("link", { name: "New conversation" }).click();
  await form.waitFor({ state: "detached" });
  // Where all that waits is shown, it is the same form.
  await page.getByRole("link", { name: /Waiting for you/ }).click();
  await form.waitFor();
  assert.deepEqual(await filled(), ["striped", "blue"]);
  await form.getByLabel("Apple").fill("3");
  await page.goto(here);
  await form.waitFor();
  assert.equal(await form.getByLabel("Apple").inputValue(), "3");
  await form.getByRole("button", { name: "Answer" }).click();
  await page.getByText("The tool said").waitFor();
  assert.deepEqual(await page.evaluate(() => Object.keys(localStorage).filter((name) => name.startsWith("form "))), []);
  assert.deepEqual(page.wrong, []);
});

test("changed arguments are kept until they are decided about or given up, and take no focus by themselves", async () => {
  const page = await look(place);
  await say(page, 'tool filesystem__write {"path":"kept.txt","content":"one"}');
  await page.getByRole("button", { name: "Edit arguments" }).click();
  const editor = page.getByLabel("Arguments, as JSON");
  const changed = '{"path":"kept.txt","content":"two"';
  await editor.fill(changed);
  await editor.press("Escape");
  await page.getByRole("button", { name: "Edit arguments" }).click();
  assert.equal(await editor.inputValue(), changed);
  await page.reload();
  await editor.waitFor();
  assert.equal(await editor.inputValue(), changed, "also while it is no JSON yet");
  assert.equal(await page.getByRole("textbox", { name: "Message" }).evaluate((box) => box === document.activeElement), true);
  await page.getByRole("button", { name: "Leave as it was" }).click();
  await page.reload();
  await page.getByRole("button", { name: "Edit arguments" }).click();
  assert.equal(JSON.parse(await editor.inputValue()).content, "one");
  await editor.fill(`${changed}}`);
  await page.reload();
  await page.getByRole("button", { name: "Allow as changed" }).click();
  await page.getByText("The tool said").waitFor();
  assert.deepEqual(await page.evaluate(() => Object.keys(localStorage).filter((name) => name.startsWith("arguments "))), []);
  assert.deepEqual(page.wrong, []);
});

test("a reason for a denial is kept until it is given or given up", async () => {
  const page = await look(place);
  await say(page, 'tool filesystem__write {"path":"denied.txt","content":"one"}');
  const reason = page.getByLabel("Why not, for the model");
  const begin = page.getByRole("button", { name: "Deny with a reason" });
  await begin.click();
  await reason.fill("not on a Friday");
  await page.reload();
  await reason.waitFor();
  assert.equal(await reason.inputValue(), "not on a Friday");
  await page.getByRole("button", { name: "Back" }).click();
  await page.reload();
  await begin.click();
  assert.equal(await reason.inputValue(), "");
  await reason.fill("ask Ann first");
  await page.reload();
  await page.getByRole("button", { name: "Deny", exact: true }).click();
  await page.getByText("The tool said").waitFor();
  assert.match(String(place.model.requests.at(-1).messages.findLast(({ role }) => role === "tool").content), /ask Ann first/);
  assert.deepEqual(await page.evaluate(() => Object.keys(localStorage).filter((name) => name.startsWith("reason "))), []);
  assert.deepEqual(page.wrong, []);
});

test("a message that is said otherwise is kept until it is sent or given up", async () => {
  const page = await look(place);
  await answered(page, "first wrods");
  const edit = page.getByRole("button", { name: "Edit" }).last();
  const box = page.getByLabel("Your message, changed");
  const kept = () => page.evaluate(() => Object.keys(localStorage).filter((name) => name.startsWith("edited ")));
  await edit.click();
  assert.deepEqual(await kept(), []);
  await box.fill("first words, and more");
  // A key that ends the composition of a character is no other.
  await box.evaluate((area) => area.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", isComposing: true, bubbles: true })));
  await page.reload();
  await box.waitFor();
  assert.equal(await box.inputValue(), "first words, and more");
  assert.equal(await page.getByRole("textbox", { name: "Message", exact: true }).evaluate((area) => area === document.activeElement), true);
  await page.getByRole("button", { name: "Cancel" }).click();
  assert.deepEqual(await kept(), []);
  await edit.click();
  assert.equal(await box.inputValue(), "first wrods");
  await box.fill("first words");
  await page.reload();
  await page.getByRole("button", { name: "Send in a branch" }).click();
  await page.getByText("You said: first words").waitFor();
  assert.deepEqual(await kept(), []);
  assert.deepEqual(page.wrong, []);
});

test("a picture within a link is its words, a link to nowhere is text, and a cell may have lines", async () => {
  const page = await look(place);
  const answer = await answered(page, ["x", "", "[![build](https://ci.example/badge.svg) of it](https://ci.example/run) and [the guide](docs/guide.md) and ![a chart](https://ci.example/chart.png)", "",
    "| a | b |", "|---|---|", "| one<br>two<BR/>three | `<br>` <b>no</b> |", "", "four<br>five"].join("\n"));
  const links = await answer.locator("a").evaluateAll((all) => all.map((a) => [a.getAttribute("href"), a.textContent]));
  assert.deepEqual(links, [["https://ci.example/run", "build of it"], [null, "the guide"], ["https://ci.example/chart.png", "a chart"]]);
  const colours = await answer.locator("p", { hasText: "the guide" }).evaluate((words) => [words, ...words.querySelectorAll("a")].map((node) => getComputedStyle(node).color));
  assert.equal(colours[2], colours[0]);
  assert.notEqual(colours[1], colours[0]);
  assert.deepEqual(await answer.locator("td").evaluateAll((cells) => cells.map((cell) => cell.innerHTML)), ["one<br>two<br>three", "<code dir=\"ltr\">&lt;br&gt;</code> &lt;b&gt;no&lt;/b&gt;"]);
  assert.equal(await answer.locator("p", { hasText: "four" }).innerText(), "four<br>five");
  assert.deepEqual(page.wrong, []);
});
