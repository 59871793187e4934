// Every state that a screen can be in, looked at by axe-core in both themes, wide and narrow: dialogs, menus, questions, errors, nothing at all.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { violations } from "./axe.mjs";
import { closeBrowser, everything, lookAt, say, startPlace } from "./place.mjs";

const kinds = fileURLToPath(new URL("kinds.mjs", import.meta.url));
const server = (name, ...args) => `[mcp.servers.${name}]\ncommand = "node"\nargs = ${JSON.stringify(args)}\n`;
const config = `${server("kinds", kinds, ".")}${everything ? server("everything", everything, "stdio") : ""}[mcp.servers.broken]
command = "no-such-program-here"
[providers.away]
dialect = "openai-chat"
base_url = "http://127.0.0.1:9/v1"
`;

let place;
let bare;
before(async () => {
  place = await startPlace({ config });
  bare = await startPlace({ model: "unsaid" });
});
after(async () => { await closeBrowser(); await place?.stop(); await bare?.stop(); });

/** Looks at states one after the other, and says at the end what is wrong with which. */
function looking(page) {
  const found = {};
  return {
    async at(state) {
      const wrong = await violations(page);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (over > 0) wrong.push(`${over} pixels too wide`);
      if (wrong.length > 0) found[state] = wrong;
    },
    end() {
      assert.deepEqual(found, {});
      assert.deepEqual([page.wrong, page.strangers], [[], []]);
    },
  };
}

for (const theme of ["light", "dark"]) {
  for (const width of [1200, 390]) {
    const how = `${theme}, ${width} wide`;

    test(`nobody is kept out of what is said and asked, ${how}`, async () => {
      const page = await lookAt(place, { theme, width });
      const look = looking(page);
      const composer = page.getByRole("textbox", { name: "Message" });
      const box = page.getByRole("group", { name: /^Decision about/ }).last();
      await page.getByLabel("What runs without asking").selectOption("all");
      await say(page, "tool kinds__everything {}");
      await page.getByText("The tool said").waitFor();
      await page.locator(".card summary").click();
      await look.at("results of all kinds");
      await say(page, "tool kinds__rows {}");
      await page.getByText("The tool said").nth(1).waitFor();
      await page.locator(".card summary").last().click();
      await look.at("a table");
      await say(page, "tool kinds__asks {}");
      const form = page.getByRole("group", { name: "Question of kinds" });
      await form.getByLabel("Apple").fill("0");
      await form.getByRole("button", { name: "Answer" }).click();
      await form.getByRole("alert").waitFor();
      await look.at("a form with something wrong");
      await form.getByRole("button", { name: "Decline" }).click();
      await page.getByText("Declined.").waitFor();
      await look.at("a form that was declined");
      await page.getByText("The tool said").nth(2).waitFor();
      place.model.failNext(1);
      await say(page, "please");
      await page.getByText("The turn failed.").waitFor();
      await look.at("a turn that failed");
      await page.goto(`${place.base}/#/`);
      await say(page, 'both filesystem__write filesystem__write {"path":"two.txt","content":"x"}');
      await page.getByRole("button", { name: "Allow once" }).nth(1).waitFor();
      await look.at("two questions at once");
      await page.getByRole("button", { name: "Deny with a reason" }).first().click();
      await look.at("a reason");
      await page.keyboard.press("Escape");
      // The first card has its buttons again: nothing below it moves any more.
      await page.getByRole("button", { name: "Edit arguments" }).nth(1).waitFor();
      await page.getByRole("button", { name: "Edit arguments" }).last().click();
      await box.getByRole("textbox").fill("{");
      await page.getByRole("button", { name: "Allow as changed" }).click();
      await box.getByRole("alert").waitFor();
      await look.at("arguments that are none");
      await page.getByRole("button", { name: "Stop" }).click();
      await page.getByText("Stopped.").waitFor();
      await look.at("a turn that was stopped");
      if (everything) {
        await composer.pressSequentially("#args");
        await page.getByRole("option", { name: /everything/ }).first().waitFor();
        await look.at("prompts");
        await page.keyboard.press("Enter");
        await page.getByRole("dialog").waitFor();
        await look.at("the arguments of a prompt");
        await page.keyboard.press("Escape");
        await composer.fill("");
        await composer.pressSequentially("@");
        await page.getByRole("option").first().waitFor();
        await page.keyboard.press("Enter");
        await page.locator(".attached li").waitFor();
        await look.at("a resource that is attached");
      }
      look.end();
    });

    test(`nobody is kept out of the list and of what goes wrong, ${how}`, async () => {
      const page = await lookAt(place, { theme, width });
      const look = looking(page);
      const menu = async () => {
        if (width < 800) await page.getByRole("button", { name: "Conversations" }).click();
      };
      await say(page, `found by ${how}`);
      await page.getByText(`You said: found by ${how}`).waitFor();
      await page.getByRole("button", { name: "More" }).click();
      await look.at("the menu");
      await page.getByRole("button", { name: "Rename…" }).click();
      await page.getByLabel("Title").waitFor();
      await look.at("renaming");
      await page.keyboard.press("Escape");
      await page.locator(".said").hover();
      await page.getByRole("button", { name: "Edit" }).last().click();
      await look.at("a message that is said otherwise");
      await page.getByRole("button", { name: "Cancel" }).click();
      await menu();
      await page.getByLabel("Search conversations").fill("found");
      await page.locator(".entry .excerpt").first().waitFor();
      await page.waitForTimeout(250);
      await look.at("conversations that were found");
      await page.getByLabel("Search conversations").fill("nowhere to be seen");
      await page.getByText("Nothing found.").waitFor();
      await look.at("none that was found");
      await page.getByLabel("Search conversations").fill("");
      await page.locator(".entry", { hasText: `found by ${how}` }).first().hover();
      await page.getByRole("button", { name: `Delete found by ${how}` }).focus();
      await page.keyboard.press("Enter");
      await page.getByRole("button", { name: "Undo" }).waitFor();
      await look.at("something that can be taken back");
      await page.getByRole("button", { name: "Undo" }).click();
      await page.goto(`${place.base}/#/c/conv_not_there`);
      await page.getByText("There is no such conversation.").waitFor();
      await look.at("a conversation that is not there");
      await page.goto(`${place.base}/#/`);
      await say(page, "begun");
      await page.getByText("You said: begun").waitFor();
      await page.route("**/messages", (route) => route.request().method() === "POST" ? route.fulfill({ status: 413, body: "" }) : route.fallback());
      await say(page, "too much");
      await page.getByText("Not sent:").waitFor();
      await look.at("a message that was refused");
      await page.unroute("**/messages");
      await page.getByRole("button", { name: "Discard" }).click();
      const turn = new URL(page.url()).hash;
      await page.goto(`${place.base}/${turn}/turn_999`);
      await page.getByText("There is no such turn.").waitFor();
      await look.at("a turn that is not there");
      await page.goto(`${place.base}/${turn}`);
      await page.getByText("You said: begun").waitFor();
      await page.context().setOffline(true);
      await say(page, "nobody hears this");
      await page.getByText("Sending again").waitFor();
      await look.at("a network that is away");
      await page.context().setOffline(false);
      await page.getByText("You said: nobody hears this").waitFor();
      look.end();
    });

    test(`nobody is kept out of the other screens, ${how}`, async () => {
      const page = await lookAt(place, { theme, width });
      const look = looking(page);
      await say(page, "tool kinds__asks {}");
      await page.getByRole("button", { name: "Allow once" }).click();
      await page.getByRole("group", { name: "Question of kinds" }).waitFor();
      await page.goto(`${place.base}/#/inbox`);
      const form = page.getByRole("group", { name: "Question of kinds" });
      await form.waitFor();
      await look.at("a form in the inbox");
      await form.getByRole("button", { name: "Cancel" }).click();
      await page.getByText("Nothing waits.").waitFor();
      await look.at("an inbox with nothing");
      await page.goto(`${place.base}/#/servers`);
      const broken = page.getByRole("article", { name: "Server broken" });
      await broken.locator(".failure").waitFor();
      const card = page.getByRole("article", { name: "Server kinds" });
      await card.getByRole("button", { name: /\d+ tools/ }).click();
      await card.getByRole("button", { name: "Try rows" }).click();
      await card.getByRole("button", { name: "Run it now" }).click();
      await card.getByRole("group", { name: "Table" }).waitFor();
      await look.at("a tool that was tried, and a server that cannot run");
      await page.getByRole("button", { name: "Add a server" }).click();
      for (const kind of ["url", "image"]) {
        await page.getByLabel("Kind", { exact: true }).selectOption(kind);
        await page.getByLabel(kind === "url" ? "Address" : "Image and arguments", { exact: true }).fill(kind === "url" ? "not an address" : "mcp/time --zone x");
        await page.getByLabel("Name", { exact: true }).fill("a b");
        if (kind === "url") await page.getByRole("button", { name: "Connect" }).click();
        if (kind === "url") await page.getByRole("region", { name: "Add an MCP server" }).getByRole("alert").waitFor();
        await look.at(`adding by ${kind}`);
      }
      await page.getByRole("button", { name: "Cancel" }).click();
      await page.getByRole("button", { name: "Import" }).click();
      await page.getByLabel("Its text").fill("{");
      await page.getByText("It is not JSON").waitFor();
      await look.at("a file that is none");
      await page.goto(`${place.base}/#/settings`);
      const providers = page.getByRole("region", { name: "Providers" });
      await providers.getByRole("button", { name: "Test all" }).click();
      await providers.locator(".dot.bad").first().waitFor();
      await page.getByText("Add a provider by its key").click();
      await page.getByLabel("Key", { exact: true }).fill("two words");
      await page.getByRole("combobox", { name: "Provider" }).selectOption("openai");
      await page.getByRole("button", { name: "Test and connect" }).click();
      await page.getByRole("alert").waitFor();
      await page.getByRole("form", { name: "What would happen to a call" }).getByLabel("Tool").fill("kinds__patch");
      await page.getByRole("button", { name: "Explain" }).click();
      await page.getByText("A person would be asked.").waitFor();
      await look.at("settings with answers and refusals");
      await page.route("**/api/v1/usage*", (route) => route.fulfill({ status: 503, body: "" }));
      await page.goto(`${place.base}/#/usage`);
      await page.getByRole("alert").first().waitFor();
      await look.at("usage that cannot be had");
      look.end();
    });

    test(`nobody is kept out of a page that nothing was done with, ${how}`, async () => {
      const page = await lookAt(bare, { theme, width });
      const look = looking(page);
      await page.getByText("This is practice.").waitFor();
      for (const summary of ["At another address", "Without the page"]) await page.getByText(summary).click();
      await page.getByText(/Looked for in vain/).click();
      await page.getByLabel("Key", { exact: true }).fill("two words");
      await page.getByRole("combobox", { name: "Provider" }).selectOption("openai");
      await page.getByRole("button", { name: "Test and connect" }).click();
      await page.getByRole("alert").waitFor();
      await look.at("a first run with everything open");
      for (const [screen, words] of [["servers", "No MCP server is configured."], ["inbox", "Nothing waits."], ["usage", "No model was asked"]]) {
        await page.goto(`${bare.base}/#/${screen}`);
        await page.getByText(words).waitFor();
        await look.at(`${screen} with nothing`);
      }
      await page.goto(`${bare.base}/#/settings`);
      await page.getByText("There are none.").waitFor();
      await look.at("settings with nothing");
      look.end();
    });
  }
}
