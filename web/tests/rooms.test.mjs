// The screens beside the chat: what was used, what a turn took, the settings, and the tools of servers.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { violations } from "./axe.mjs";
import { cachedShare, cost, total } from "../page/lib/usage.js";
import { closeBrowser, everything, lookAt, say, startPlace, until } from "./place.mjs";

let place;
before(async () => {
  place = await startPlace({
    config: `[models."scripted/one"]\nprices = { input = 2.0, cached_input = 1.0, output = 10.0 }\n${everything
      ? `[mcp.servers.everything]\ncommand = "node"\nargs = ${JSON.stringify([everything, "stdio"])}\n` : ""}`,
  });
});
after(async () => { await closeBrowser(); await place?.stop(); });

test("what was used is shown as charts with the table beside them, and had as CSV", async () => {
  const page = await lookAt(place);
  await say(page, "what does this cost?");
  await page.locator(".foot").waitFor();
  await page.getByRole("link", { name: "Usage" }).click();
  await page.locator(".plot canvas").nth(1).waitFor();
  const table = page.getByRole("region", { name: "Usage, Model" });
  assert.deepEqual(await table.locator("tbody tr").first().locator("th, td").allInnerTexts(), ["scripted/one", "1", "1,000", "40 %", "200", "$0.0036"]);
  await page.getByRole("img", { name: /Tokens by day: Read from the cache 400, Read anew 600, Written 200/ }).waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV of models" }).click()]);
  const lines = readFileSync(await download.path(), "utf8").trim().split("\r\n");
  assert.equal(lines[0], "day,model,model_calls,input_tokens,cached_input_tokens,cache_write_tokens,output_tokens,reasoning_tokens,cost_usd");
  assert.match(lines[1], /^\d{4}-\d\d-\d\d,scripted\/one,1,1000,400,,200,,0\.0036$/);
  await page.getByLabel("How far back").selectOption("7");
  await page.getByRole("img", { name: /Cost by day/ }).waitFor();
  assert.deepEqual([page.wrong, page.strangers], [[], []]);
});

test("what no provider told is not known, and costs that are known in part are at least so much", () => {
  const line = (usage) => ({ day: "2026-01-31", model: "a/one", model_calls: 1, usage });
  const known = line({ input_tokens: 1_000, cached_input_tokens: 400, output_tokens: 1, cost_usd: 0.5 });
  const unknown = line({ input_tokens: 9_000, cached_input_tokens: null, output_tokens: 1, cost_usd: null });
  const told = (...data) => [cachedShare(total({ data })), cost(total({ data }))];
  assert.deepEqual(told(known), ["40 %", "$0.5000"]);
  assert.deepEqual(told(unknown), ["not known", "not known"]);
  assert.deepEqual(told(known, unknown), ["40 %", "at least $0.5000"]);
});

test("what tools did is told by tool, by server and by day", async () => {
  const page = await lookAt(place);
  await say(page, 'both filesystem__read filesystem__missing {"path":"a.txt"}');
  await page.locator(".foot").waitFor();
  await page.getByRole("link", { name: "Usage" }).click();
  const rows = (/** @type {string} */ name) => page.getByRole("region", { name, exact: true }).locator("tbody tr");
  const cells = async (/** @type {any} */ row) => (await row.locator("th, td").allInnerTexts()).slice(0, 4);
  await rows("Usage, Tool").first().waitFor();
  assert.deepEqual(await cells(rows("Usage, Tool").filter({ hasText: "filesystem__read" })), ["filesystem__read", "1", "0", "0"]);
  assert.deepEqual(await cells(rows("Usage, Tool").filter({ hasText: "missing" })), ["filesystem__missing", "1", "1", "0"]);
  assert.deepEqual(await cells(rows("Usage, Server").filter({ hasText: "no such tool" })), ["no such tool", "1", "1", "0"]);
  await page.getByRole("img", { name: /Tool calls by day: Went well 1, Failed 1, Denied 0/ }).waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV of tools" }).click()]);
  const lines = readFileSync(await download.path(), "utf8").trim().split("\r\n");
  assert.equal(lines[0], "day,server,tool,calls,failures,denials,timed,total_ms,longest_ms");
  assert.match(lines[1], /^\d{4}-\d\d-\d\d,,filesystem__missing,1,1,0,0,0,0$/);
  assert.match(lines[2], /^\d{4}-\d\d-\d\d,filesystem,filesystem__read,1,0,0,1,\d+,\d+$/);
  assert.deepEqual(page.wrong, []);
});

test("a turn has a time line of its steps, its calls and what it waited for", async () => {
  const page = await lookAt(place);
  await say(page, 'tool filesystem__write {"path":"line.txt","content":"x"}');
  await page.getByRole("button", { name: "Allow once" }).click();
  await page.locator(".foot").waitFor();
  await page.getByRole("link", { name: "Time line" }).click();
  const line = page.getByRole("region", { name: "Time line" });
  await line.waitFor();
  assert.deepEqual((await line.locator("tbody th bdi").allInnerTexts()),
    ["Step 1: the model", "filesystem__write waited for a person", "filesystem__write", "Step 2: the model"]);
  await line.getByText("success").waitFor();
  await page.getByRole("link", { name: "Back to it" }).click();
  await page.getByText("The tool said").waitFor();
  assert.deepEqual(page.wrong, []);
});

test("rules are added, explained and forgotten", async () => {
  const page = await lookAt(place, { path: "/#/settings" });
  const rules = page.getByRole("region", { name: "Approval rules" });
  await rules.getByRole("button", { name: "Add a rule" }).click();
  const form = rules.getByRole("form", { name: "Add a rule" });
  await form.getByLabel("Action").selectOption("deny");
  await form.getByLabel(/^Tool/).fill("command__run");
  await form.getByLabel(/^Conditions/).fill('{"command": {"program": ["rm"]}}');
  await form.getByRole("button", { name: "Store" }).click();
  await rules.locator("li", { hasText: "command__run" }).waitFor();
  const explain = rules.getByRole("form", { name: "What would happen to a call" });
  await explain.getByLabel("Tool").fill("command__run");
  await explain.getByLabel("Arguments, as JSON").fill('{"command": "ls; rm -r x"}');
  await explain.getByRole("button", { name: "Explain" }).click();
  await explain.getByText("It would be denied.").waitFor();
  await explain.getByLabel("Arguments, as JSON").fill('{"command": "ls"}');
  await explain.getByRole("button", { name: "Explain" }).click();
  await explain.getByText("A person would be asked.").waitFor();
  await rules.getByRole("button", { name: /^Forget/ }).click();
  await rules.getByText("There are none.").waitFor();
});

test("providers are tested, and the page looks as it is told to", async () => {
  const page = await lookAt(place, { path: "/#/settings" });
  const providers = page.getByRole("region", { name: "Providers" });
  await providers.getByRole("button", { name: "Test all" }).click();
  await providers.locator("li", { hasText: "scripted" }).getByText("answers, 2 models").waitFor();
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await page.getByLabel("Colours").selectOption("dark");
  assert.notEqual(await ground(), light);
  await page.getByLabel(/^Text/).selectOption("large");
  await page.reload();
  await page.getByLabel("Colours").waitFor();
  assert.notEqual(await ground(), light);
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).fontSize), "18px");
});

test("an admin adds users, makes links and keeps somebody out", async () => {
  const page = await lookAt(place, { path: "/#/settings" });
  const users = page.getByRole("region", { name: "Users" });
  await users.getByRole("form", { name: "Add a user" }).getByLabel("Name").fill("anna");
  await users.getByRole("button", { name: "Add a user" }).click();
  await users.getByRole("button", { name: "Link for anna" }).click();
  await users.getByText("signs a browser in as anna").waitFor();
  assert.match(await users.locator(".secret code").innerText(), /\/login/);
  await users.getByRole("button", { name: "Keep out anna" }).click();
  await users.getByText("kept out").waitFor();
});

test("a tool of a server is tried, and what happens to its calls is chosen", { skip: !everything }, async () => {
  const page = await lookAt(place, { path: "/#/servers" });
  const card = page.getByRole("article", { name: "Server everything" });
  await card.getByRole("button", { name: /\d+ tools/ }).click();
  await card.getByRole("button", { name: "Try Get Sum Tool" }).click();
  const form = card.getByRole("form", { name: "Call get-sum" });
  await form.getByLabel(/^a/).fill("2");
  await form.getByLabel(/^b/).fill("40");
  await form.getByRole("button", { name: "Run it now" }).click();
  await form.getByText(/42/).waitFor();
  await card.getByLabel("What happens to calls of Get Sum Tool").selectOption("deny");
  const rules = async () => (await place.api("/approvals/rules")).data.map(({ tool, action }) => `${action} ${tool}`).join();
  await until(async () => (await rules()) === "deny everything__get-sum");
  await card.getByLabel("What happens to calls of Get Sum Tool").selectOption("");
  await until(async () => (await rules()) === "");
});

test("servers of another program's file are shown word for word and added one by one", { skip: !everything }, async () => {
  const page = await lookAt(place, { path: "/#/servers" });
  await page.getByRole("button", { name: "Import" }).click();
  const box = page.getByLabel("Its text");
  await box.fill("{");
  await page.getByText("It is not JSON").waitFor();
  await box.fill(JSON.stringify({ mcpServers: { brought: { command: "node", args: [everything, "stdio"], env: { TOKEN: "secret" } }, other: { url: "https://example.org/mcp" } } }));
  assert.equal(await page.getByLabel("What brought would run").innerText(), `node ${everything} stdio\nTOKEN=…`);
  await page.getByRole("button", { name: "Add and start brought" }).click();
  await page.getByRole("article", { name: "Server brought" }).getByText("ready", { exact: true }).waitFor();
  assert.equal(await page.getByRole("article", { name: "Server other" }).count(), 0);
  // What its own program does not start is not started, and none is taken for another one.
  const file = join(place.folder, "variables.env");
  writeFileSync(file, "TOKEN=secret\n");
  const one = { command: "node", args: [everything, "stdio"] };
  await box.fill(JSON.stringify({ mcpServers: { off: { ...one, disabled: true, envFile: file }, "a b": one, "a/b": one } }));
  assert.match(await page.getByLabel("What off would run").innerText(), new RegExp(`\\nvariables of ${file}$`));
  assert.deepEqual(await page.locator(".found strong").allInnerTexts(), ["off", "a_b", "a_b_2"]);
  await page.getByRole("button", { name: "Add switched off off" }).click();
  await page.getByRole("article", { name: "Server off" }).getByText("switched off", { exact: true }).waitFor();
  const { config, enabled } = await place.api("/mcp/servers/off");
  assert.deepEqual([enabled, config.env_file], [false, file]);
});

for (const theme of ["light", "dark"]) {
  for (const width of [1200, 390]) {
    test(`axe-core finds nothing on these screens, ${theme}, ${width} wide`, async () => {
      const page = await lookAt(place, { theme, width });
      await say(page, 'both filesystem__read filesystem__stat {"path":"a.txt"}');
      await page.locator(".foot").waitFor();
      const conversation = new URL(page.url()).hash;
      const found = {};
      await page.getByRole("button", { name: "More" }).click();
      found.menu = await violations(page);
      await page.getByRole("button", { name: "Settings…" }).click();
      found.dialog = await violations(page);
      await page.keyboard.press("Escape");
      await page.getByRole("textbox", { name: "Message" }).fill("/");
      await page.getByRole("option").first().waitFor();
      found.suggestions = await violations(page);
      await page.getByRole("textbox", { name: "Message" }).fill("");
      await say(page, 'tool filesystem__write {"path":"axe.txt","content":"x"}');
      await page.getByRole("button", { name: "always…" }).click();
      found.rule = await violations(page);
      await page.getByRole("button", { name: "Back" }).click();
      await page.getByRole("button", { name: "Edit arguments" }).click();
      await page.getByRole("button", { name: "As a form" }).click();
      found.form = await violations(page);
      await page.goto(`${place.base}/${conversation}/turn_1`);
      await page.getByRole("region", { name: "Time line" }).waitFor();
      found.turn = await violations(page);
      await page.goto(`${place.base}/#/usage`);
      await page.locator(".plot canvas").first().waitFor();
      found.usage = await violations(page);
      await page.goto(`${place.base}/#/settings`);
      await page.getByRole("button", { name: "Add a rule" }).click();
      await page.getByRole("region", { name: "Users" }).waitFor();
      found.settings = await violations(page);
      await page.goto(`${place.base}/#/servers`);
      await page.getByRole("button", { name: "Import" }).click();
      await page.getByLabel("Its text").fill('{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}');
      if (everything) {
        const card = page.getByRole("article", { name: "Server everything" });
        await card.getByRole("button", { name: /\d+ tools/ }).click();
        await card.getByRole("button", { name: /^Try/ }).first().click();
      }
      found.servers = await violations(page);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      for (const [screen, wrong] of Object.entries(found)) assert.deepEqual(wrong, [], screen);
      assert.equal(wide, 0);
      assert.deepEqual([page.wrong, page.strangers], [[], []]);
    });
  }
}
