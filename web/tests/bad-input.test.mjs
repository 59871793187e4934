// What goes wrong is said in a sentence, has a way on, and loses nothing that was typed.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request } from "node:http";
import { after, before, test } from "node:test";
import { closeBrowser, closePage, looking, say, startPlace } from "./place.mjs";

let place;
before(async () => { place = await startPlace(); });
after(async () => { await closeBrowser(); await place?.stop(); });

const look = looking();

/** A conversation in which something was answered. */
async function begun() {
  const page = await look(place);
  await say(page, "first");
  await page.getByText("You said: first").waitFor();
  return page;
}

const failing = (status) => (route) => route.request().method() === "POST"
  ? (status === 0 ? route.abort() : route.fulfill({ status, contentType: "text/html", body: "<h1>not JSON</h1>" }))
  : route.fallback();

for (const [status, words] of [[403, /does not answer to this page/], [404, /does not have this/], [413, /too large/]]) {
  test(`a message that is refused with ${status} says why, is kept over a reload, and is sent again`, async () => {
    const page = await begun();
    await page.route("**/messages", failing(status));
    await say(page, "kept words");
    const refused = page.getByRole("alert");
    await refused.waitFor();
    assert.match(await refused.innerText(), words);
    await page.reload();
    await page.getByText("Not sent:").waitFor();
    await page.unroute("**/messages");
    await page.getByRole("button", { name: "Send again" }).click();
    await page.getByText("You said: kept words").waitFor();
    assert.deepEqual(page.wrong, []);
  });
}

for (const [status, words] of [[429, /too much to do/], [500, /error of its own/], [0, /not reached|reached|answer/]]) {
  test(`a message that meets ${status || "nothing"} is sent again by itself, once`, async () => {
    const page = await begun();
    await page.route("**/messages", failing(status));
    await say(page, "kept words");
    await page.getByText("Sending again…").waitFor();
    assert.match(await page.getByText("Sending again…").innerText(), words);
    await page.unroute("**/messages");
    await page.getByText("You said: kept words").waitFor();
    assert.equal(await page.getByText("kept words", { exact: true }).count(), 1);
    assert.deepEqual(page.wrong, []);
  });
}

test("who has to sign in finds what was typed when they come back, sent", async () => {
  const page = await begun();
  await page.route("**/messages", failing(401), { times: 1 });
  const left = page.waitForRequest(/login\?return=/);
  await say(page, "typed before");
  const back = new URL((await left).url()).searchParams.get("return");
  await page.getByText("What can I do for you?").waitFor();
  await page.goto(place.base + back);
  await page.getByText("You said: typed before").waitFor();
  assert.equal(await page.getByText("typed before", { exact: true }).count(), 1);
});

for (const status of [413, 429, 500, 0]) {
  test(`a new conversation that meets ${status || "nothing"} leaves the words in the composer`, async () => {
    const page = await look(place);
    await page.route("**/api/v1/conversations", failing(status));
    await say(page, "the words");
    await page.locator(".toast").waitFor();
    assert.ok((await page.locator(".toast").innerText()).length > 20);
    await page.reload();
    assert.equal(await page.getByRole("textbox").first().inputValue(), "the words");
    await page.unroute("**/api/v1/conversations");
    await page.getByRole("textbox").first().press("Enter");
    await page.getByText("You said: the words").waitFor();
  });
}

const streams = {
  "that stops": (body) => body.slice(0, body.length / 2),
  "that repeats": (body) => body.replace("data: [DONE]", "") + body,
  "of a newer version": (body) => `event: news\ndata: {"type":"hologram","depth":3}\n\nretry: 5\n${body.replace(/data: \{/, 'data: {"type":"data-future","data":[1]}\n\ndata: {"version":99,')}`,
  "that is no stream": () => "<h1>Welcome to the hotel's network</h1>",
};
for (const [what, change] of Object.entries(streams)) {
  test(`a stream ${what} ends in the answer as it is stored`, async () => {
    const page = await begun();
    let changed = 0;
    await page.route("**/stream", async (route) => {
      changed += 1;
      if (changed > 2) return route.fallback();
      const response = await route.fetch();
      return response.status() === 200 ? route.fulfill({ response, body: change(await response.text()) }) : route.fulfill({ response });
    });
    await say(page, "markdown");
    await page.getByRole("button", { name: "Copy answer" }).nth(1).waitFor();
    await page.locator(".md .hljs-keyword").first().waitFor();
    await page.reload();
    await page.locator(".md h1", { hasText: "A title" }).waitFor();
    assert.equal(await page.locator(".md h1").count(), 1);
    assert.deepEqual(page.wrong, []);
  });
}

test("a field of a kind that is not known is written as JSON", async () => {
  const practice = await startPlace({ model: "unsaid" });
  try {
    const page = await look(practice);
    const strange = async (route) => {
      const response = await route.fetch();
      return route.fulfill({ response, body: (await response.text()).replaceAll('"type":"integer"', '"type":"colour"') });
    };
    await page.route("**/turns?*", strange);
    await page.route("**/stream", strange);
    await page.getByRole("button", { name: "A form" }).click();
    const form = page.getByRole("group", { name: "Question of practice" });
    await form.getByLabel("Your name").fill("Ada");
    await form.getByLabel("Where to").selectOption("city");
    await form.getByLabel(/How many come along.*as JSON/).fill("many");
    await form.getByRole("button", { name: "Answer" }).click();
    await form.getByRole("alert").waitFor();
    assert.equal(await form.getByLabel("Your name").inputValue(), "Ada");
    await form.getByLabel(/How many come along.*as JSON/).fill("3");
    await form.getByRole("button", { name: "Answer" }).click();
    await page.getByText(/answered:[\s\S]*people: 3/).first().waitFor();
    assert.deepEqual(page.wrong, []);
    await closePage(page);
  } finally {
    await practice.stop();
  }
});

test("behind a proxy that does not hand on the name the page says so, with the lines that mend it, and is not blank", async () => {
  // As nginx' plain `proxy_pass` does it.
  const proxy = createServer((asked, answer) => {
    const headers = { ...asked.headers, host: `127.0.0.1:${place.port}` };
    asked.pipe(request({ port: place.port, host: "127.0.0.1", method: asked.method, path: asked.url, headers }, (told) => {
      answer.writeHead(told.statusCode, told.headers);
      told.pipe(answer);
    }));
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const base = `http://me.tw.test:${proxy.address().port}`;
  try {
    const page = await look({ ...place, base });
    const told = page.getByRole("alert");
    await told.waitFor();
    assert.deepEqual(await told.locator("code").allInnerTexts(),
      [base, `127.0.0.1:${place.port}`, "server.allowed_origins", 'auth = "tokens"', `public_url = "${base}"`, "[server]"]);
    assert.equal(await page.getByRole("textbox", { name: "Message" }).count(), 0);
  } finally {
    proxy.close();
    proxy.closeAllConnections();
  }
});

test("a result of 200 MB is a card that is read in parts", async () => {
  const page = await begun();
  await say(page, `tool command__run ${JSON.stringify({ command: "head -c 209715200 /dev/zero | tr '\\0' 'a'" })}`);
  await page.getByRole("button", { name: "Allow once" }).click();
  page.setDefaultTimeout(120_000);
  await page.getByText("The tool said").waitFor();
  await page.locator(".card summary").first().click();
  assert.ok((await page.locator(".card").first().innerText()).length < 200_000);
  await page.getByRole("textbox").first().fill("still here");
  assert.deepEqual(page.wrong, []);
});

test("an address that was mangled leads to the chat", async () => {
  for (const address of ["/#/c/100%25%", "/#/c/%/turn"]) {
    const page = await look(place);
    await page.goto(place.base + address);
    await page.reload();
    await page.getByText("What can I do for you?").waitFor();
    assert.deepEqual(page.wrong, []);
  }
});
