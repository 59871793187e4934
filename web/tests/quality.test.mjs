// What holds for all screens: nobody is kept out, nothing foreign runs, nothing stands still.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { violations } from "./axe.mjs";
import { closeBrowser, lookAt, say, startPlace } from "./place.mjs";

let place;
before(async () => { place = await startPlace(); });
after(async () => { await closeBrowser(); await place?.stop(); });

for (const theme of ["light", "dark"]) {
  for (const width of [1200, 390]) {
    test(`axe-core finds nothing on any screen, ${theme}, ${width} wide`, async () => {
      const page = await lookAt(place, { theme, width });
      const found = {};
      await page.getByRole("textbox").first().waitFor();
      found.first = await violations(page);
      await say(page, "markdown");
      await page.locator(".md .hljs-keyword").first().waitFor();
      await page.getByText("Reasoning", { exact: true }).click();
      found.answer = await violations(page);
      await say(page, 'both filesystem__read filesystem__stat {"path":"a.txt"}');
      await page.getByText("The tool said").waitFor();
      for (const summary of await page.locator(".card summary").all()) await summary.click();
      found.cards = await violations(page);
      await say(page, 'tool command__run {"command":"date && echo two"}');
      await page.getByRole("button", { name: "Edit arguments" }).click();
      found.approval = await violations(page);
      await page.getByRole("button", { name: "Tools" }).click();
      await page.getByRole("dialog").getByLabel(/Read a file/).waitFor();
      found.tools = await violations(page);
      await page.keyboard.press("Escape");
      if (width < 800) {
        await page.getByRole("button", { name: "Conversations" }).click();
        await page.waitForTimeout(300);
        found.menu = await violations(page);
      }
      await page.goto(`${place.base}/#/inbox`);
      await page.locator("article.card").first().waitFor();
      found.inbox = await violations(page);
      await page.goto(`${place.base}/#/servers`);
      await page.getByRole("button", { name: "Add a server" }).click();
      await page.getByLabel("Command", { exact: true }).fill("uvx mcp-server-time");
      found.servers = await violations(page);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      for (const [screen, wrong] of Object.entries(found)) assert.deepEqual(wrong, [], screen);
      assert.equal(wide, 0);
      assert.deepEqual([page.wrong, page.strangers], [[], []]);
    });
  }
}

test("nothing of hostile content runs, and no request leaves", async () => {
  const page = await lookAt(place);
  await say(page, "hostile");
  await page.getByRole("button", { name: "Copy answer" }).waitFor();
  const path = JSON.stringify({ command: `printf '%s' '<img src=https://evil.example/x onerror=window.hacked=20>\u202e\u001b]0;title\u0007'` });
  await say(page, `tool command__run ${path}`);
  await page.getByRole("button", { name: "Allow once" }).click();
  await page.getByText("The tool said").waitFor();
  for (const summary of await page.locator(".card summary").all()) await summary.click();
  await page.reload();
  await page.getByText("The tool said").waitFor();
  for (const link of await page.locator(".md a").all()) await link.hover({ force: true });
  const found = await page.evaluate(() => ({
    hacked: window.hacked,
    foreign: document.querySelectorAll("#root script, #root iframe, .md form, .md svg:not(.icon), .md style, .md img, .md [style], .md [onmouseover]").length,
    links: [...document.querySelectorAll(".md a[href]")].map((link) => link.protocol),
    turned: /[\u202a-\u202e]/.test(document.querySelector(".inner").innerText),
  }));
  assert.deepEqual({ ...found, links: [...new Set(found.links)] }, { hacked: undefined, foreign: 0, links: ["https:"], turned: false });
  assert.deepEqual([page.strangers, page.wrong], [[], []]);
});

test("without a model the page opens on practice, says so, and its examples work", async () => {
  const practice = await startPlace({ model: false });
  try {
    const page = await lookAt(practice);
    await page.getByText("This is practice.").waitFor();
    assert.equal(await page.locator(".example").count(), 4);
    await page.getByLabel("Key", { exact: true }).fill("sk-ant-x");
    for (const theme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme: theme });
      assert.deepEqual(await violations(page), [], theme);
    }
    await page.getByRole("button", { name: "Two calls at once" }).click();
    await page.getByRole("group", { name: "2 tool calls" }).waitFor();
    await page.getByRole("link", { name: "New conversation" }).click();
    await page.getByRole("button", { name: "An approval" }).click();
    await page.getByRole("button", { name: "Allow once" }).waitFor();
    await page.getByRole("link", { name: "New conversation" }).click();
    await page.getByRole("button", { name: "A failing tool" }).click();
    await page.locator(".word", { hasText: "failed" }).waitFor();
    assert.deepEqual(page.wrong, []);
  } finally {
    await practice.stop();
  }
});
