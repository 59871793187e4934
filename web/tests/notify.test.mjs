// Pages that nobody looks at: notifications of the browser, and connections that are let go.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { closeBrowser, lookAt, say, startPlace } from "./place.mjs";

let place;
before(async () => { place = await startPlace(); });
after(async () => { await closeBrowser(); await place?.stop(); });

/** Whether the page is seen, and what it shows, in the place of the system's own. */
const instead = () => {
  window.shown = [];
  window.asked = 0;
  let seen = "visible";
  window.look = (state) => { seen = state; document.dispatchEvent(new Event("visibilitychange")); };
  Object.defineProperty(document, "visibilityState", { get: () => seen });
  window.Notification = class {
    static permission = "default";
    static async requestPermission() {
      window.asked += 1;
      return (this.permission = "granted");
    }
    constructor(title, options) { window.shown.push({ title, ...options }); }
    close() {}
  };
};

const park = async (id) => {
  await place.api("/conversations", { id, title: `The turn ${id}` });
  const text = `tool filesystem__write ${JSON.stringify({ path: `${id}.txt`, content: "x" })}`;
  const answer = await place.api(`/conversations/${id}/chat`, { content: text });
  assert.equal(answer.turn.status, "suspended");
};

test("a turn that parks out of view is told once, where a person wanted that", async () => {
  const page = await lookAt(place);
  await page.addInitScript(instead);
  await page.reload();
  const button = page.getByRole("button", { name: "Notify me of what waits" });
  await button.waitFor();
  assert.equal(await page.evaluate(() => window.asked), 0);
  await button.click();
  await button.waitFor({ state: "detached" });
  assert.equal(await page.evaluate(() => window.asked), 1);
  // In view nothing is shown.
  await park("seen");
  await page.waitForFunction(() => document.title.startsWith("(1) "));
  await page.evaluate(() => window.look("hidden"));
  await park("hidden");
  await page.waitForFunction(() => document.title.startsWith("(2) "));
  await page.waitForFunction(() => window.shown.length > 0);
  const shown = await page.evaluate(() => window.shown);
  // Also where the list of conversations does not have it: it is not read while nobody looks.
  assert.deepEqual(shown.map(({ title, tag, body }) => ({ title, tag, body })), [{ title: "Turnwright waits for you", tag: "turnwright hidden", body: "The turn hidden\nfilesystem__write" }]);
  await park("later");
  await page.waitForFunction(() => document.title.startsWith("(3) ") && window.shown.length > 1);
  assert.deepEqual(await page.evaluate(() => window.shown.map((shown) => shown.tag)), ["turnwright hidden", "turnwright later"]);
  assert.deepEqual(page.wrong, []);
});

test("pages out of view leave the few connections that a browser opens to those in view, and catch up when they are looked at", async () => {
  const context = (await lookAt(place)).context();
  await context.addInitScript(instead);
  const open = async (id) => {
    await place.api("/conversations", { id });
    const page = await context.newPage();
    await page.clock.install();
    const listens = page.waitForResponse((response) => response.url().includes("/events?"));
    await page.goto(`${place.base}/#/c/${id}`);
    await listens;
    return page;
  };
  // One more than a browser opens to a server over HTTP/1.1, of all its pages together.
  const pages = [];
  for (const number of [0, 1, 2, 3, 4, 5, 6]) {
    const page = await open(`tab${number}`);
    pages.push(page);
    await page.evaluate(() => window.look("hidden"));
    await page.clock.fastForward(11_000);
  }
  const [first, last] = [pages[0], pages[6]];
  await place.api("/conversations/tab0/chat", { content: "said elsewhere" });
  await last.evaluate(() => window.look("visible"));
  await say(last, "hello");
  await last.getByText("You said: hello").waitFor();
  assert.equal(await first.getByText("said elsewhere").count(), 0);
  await first.evaluate(() => window.look("visible"));
  await first.getByText("You said: said elsewhere").waitFor();
});
