// Pictures of every screen in both themes, into docs/screens. Run by hand: `node tests/screens.mjs FOLDER`, with the
// variables that the tests have. They are looked at before they are committed.

import { join } from "node:path";
import { closeBrowser, everything, lookAt, say, startPlace } from "./place.mjs";

const folder = process.argv[2];
const size = { width: 1000, height: 680 };
const prices = '[models."scripted/one"]\nprices = { input = 2.0, cached_input = 1.0, output = 10.0 }\n';
const app = everything && join(everything, "../../../server-basic-vanillajs/dist/index.js");
const config = prices + (everything ? `[mcp.servers.everything]\ncommand = "node"\nargs = ${JSON.stringify([everything, "stdio"])}\n[mcp.servers.basic]\ncommand = "node"\nargs = ${JSON.stringify([app, "--stdio"])}\n` : "");
const place = await startPlace({ config });
const practice = await startPlace({ model: false, config });
const shared = await startPlace({ config: '[server]\nauth = "tokens"\n' });
shared.run("users", "add", "ann", "--role", "admin");
shared.run("users", "add", "ben", "--role", "member");
const token = shared.run("users", "token", "ann", "--scope", "read", "--scope", "chat", "--scope", "approve", "--scope", "admin").match(/tw_\S+/)[0];

for (const theme of ["light", "dark"]) {
  const shoot = async (page, name) => {
    await page.waitForTimeout(700);
    await page.screenshot({ path: join(folder, `${name}-${theme}.png`) });
  };
  const first = await lookAt(practice, { theme, ...size });
  await first.getByText("This is practice.").waitFor();
  await shoot(first, "first-run");
  await first.getByLabel("Key", { exact: true }).fill("sk-ant-");
  await first.getByRole("button", { name: "Test and connect" }).scrollIntoViewIfNeeded();
  await shoot(first, "connect");

  const page = await lookAt(place, { theme, ...size });
  await say(page, "How do I greet somebody in Python?");
  await page.locator(".md .hljs-keyword").first().waitFor();
  await shoot(page, "answer");

  await page.getByRole("link", { name: "New conversation" }).click();
  await say(page, "What is in this folder?");
  await page.getByText("The tool said").waitFor();
  const asked = new URL(page.url()).hash;
  await page.locator(".card summary").nth(1).click();
  await say(page, "Note the weather in Paris");
  await page.getByRole("button", { name: "Allow once" }).waitFor();
  await shoot(page, "approval");

  await page.goto(`${place.base}/#/inbox`);
  await page.locator("article.card").first().waitFor();
  await shoot(page, "inbox");
  await page.locator("article.card").first().getByRole("button", { name: "Deny", exact: true }).click();

  await page.goto(`${place.base}/#/`);
  await page.getByLabel("What runs without asking").selectOption("all");
  await page.getByRole("button", { name: "Tools" }).click();
  await page.getByRole("dialog").getByLabel(/Read a file/).waitFor();
  await shoot(page, "tools");
  await page.keyboard.press("Escape");
  if (everything) {
    await say(page, "Sign me up");
    await page.getByRole("group", { name: "Question of everything" }).waitFor();
    await shoot(page, "form");
    await page.getByRole("button", { name: "Decline" }).click();
    await page.getByText("The tool said").waitFor();
    await page.goto(`${place.base}/#/`);
    await page.getByLabel("What runs without asking").selectOption("ask");
    await say(page, "What time is it at the server?");
    await page.getByRole("button", { name: "Allow once" }).click();
    const view = page.locator(".app-frame").contentFrame().locator("iframe").contentFrame();
    await view.getByText(/20\d\d-/).first().waitFor();
    await view.getByRole("button", { name: /get server time/i }).click();
    await page.locator(".app-ask").waitFor();
    await shoot(page, "app");
    await page.locator(".app-ask").getByRole("button", { name: "Allow once" }).click();
  }

  await page.goto(`${place.base}/#/servers`);
  await page.getByRole("button", { name: "Add a server" }).click();
  await page.getByLabel("Name", { exact: true }).fill("time");
  await page.getByLabel("Command", { exact: true }).fill("uvx mcp-server-time --local-timezone Europe/Paris");
  await shoot(page, "servers");
  await page.goto(`${place.base}/#/usage`);
  await page.locator(".plot canvas").first().waitFor();
  await shoot(page, "usage");
  await page.goto(`${place.base}/#/settings`);
  await page.getByRole("button", { name: "Test all" }).click();
  await page.getByText("All were asked").waitFor();
  await shoot(page, "settings");
  const rules = page.getByRole("region", { name: "Approval rules" });
  await rules.getByRole("button", { name: "Add a rule" }).click();
  await rules.scrollIntoViewIfNeeded();
  await rules.evaluate((element) => element.scrollIntoView());
  await shoot(page, "rules");
  await page.goto(`${place.base}/${asked}`);
  await page.getByRole("link", { name: "Time line" }).last().click();
  await page.getByRole("region", { name: "Time line" }).waitFor();
  await shoot(page, "turn");
  const narrow = await lookAt(place, { theme, width: 390, height: 680, path: "/" });
  await say(narrow, "How do I greet somebody in Python?");
  await narrow.locator(".md .hljs-keyword").first().waitFor();
  await shoot(narrow, "narrow");

  const visitor = await lookAt(shared, { theme, ...size });
  await visitor.getByLabel("Token").waitFor();
  await shoot(visitor, "sign-in");
  await visitor.getByLabel("Token").fill(token);
  await visitor.getByRole("button", { name: "Sign in" }).click();
  await visitor.getByRole("link", { name: "Settings" }).click();
  await visitor.getByRole("region", { name: "Users" }).waitFor();
  await visitor.getByRole("region", { name: "Your tokens" }).evaluate((element) => element.scrollIntoView());
  await shoot(visitor, "people");
}
await closeBrowser();
await place.stop();
await practice.stop();
await shared.stop();
