// Several people at one server: signing in and out, tokens, users, and what each of them used and may spend.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { violations } from "./axe.mjs";
import { closeBrowser, lookAt, say, startPlace } from "./place.mjs";

const config = `[server]
auth = "tokens"
[models."scripted/one"]
prices = { input = 2.0, output = 10.0 }
[budgets]
turn = { tokens = 30000 }
conversation = { tokens = 40000 }
user_day = { usd = 0.5 }
day = { tokens = 900000 }
`;

let place;
const tokens = {};
before(async () => {
  place = await startPlace({ config });
  for (const [name, role] of [["ann", "admin"], ["ben", "member"]]) {
    place.run("users", "add", name, "--role", role);
    tokens[name] = place.run("users", "token", name, ...(role === "admin" ? ["read", "chat", "approve", "admin"] : []).flatMap((scope) => ["--scope", scope])).match(/tw_\S+/)[0];
  }
});
after(async () => { await closeBrowser(); await place?.stop(); });

/** A window of somebody who has signed in. */
async function signedIn(name, options = {}) {
  const page = await lookAt(place, options);
  await page.getByLabel("Token").fill(tokens[name]);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("textbox", { name: "Message" }).waitFor();
  return page;
}

test("whoever signs in comes back to where they were, and out again", async () => {
  const page = await lookAt(place, { path: "/" });
  await page.getByRole("heading", { name: "Sign in to Turnwright" }).waitFor();
  for (const theme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: theme });
    assert.deepEqual(await violations(page), [], theme);
  }
  await page.getByLabel("Token").fill("tw_wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").waitFor();
  assert.deepEqual(await violations(page), []);
  await page.getByLabel("Token").fill(tokens.ben);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("textbox", { name: "Message" }).waitFor();
  await page.getByText("ben", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in to Turnwright" }).waitFor();
});

test("a token is made, shown once, and revoked", async () => {
  const page = await signedIn("ben");
  await page.getByRole("link", { name: "Settings" }).click();
  const own = page.getByRole("region", { name: "Your tokens" });
  const form = own.getByRole("form", { name: "Make a token" });
  // A session that may not is not asked whether its token may.
  assert.deepEqual(await form.getByRole("checkbox").count(), 3);
  await form.getByLabel("Name").fill("laptop");
  await form.getByLabel("approve").uncheck();
  await form.getByRole("button", { name: "Make a token" }).click();
  const secret = (await own.locator(".secret code").innerText()).trim();
  assert.match(secret, /^tw_/);
  const asked = (token) => fetch(`${place.base}/api/v1/me`, { headers: { authorization: `Bearer ${token}` } });
  assert.deepEqual((await (await asked(secret)).json()).scopes, ["read", "chat"]);
  assert.deepEqual(await violations(page), []);
  await page.reload();
  await own.locator("li", { hasText: "laptop" }).waitFor();
  assert.equal(await own.getByText(secret).count(), 0);
  await own.getByRole("button", { name: "Revoke laptop" }).click();
  await own.locator("li", { hasText: "laptop" }).waitFor({ state: "detached" });
  assert.equal((await asked(secret)).status, 401);
  const here = own.locator("li", { hasText: "this session" });
  assert.match(await here.innerText(), /token_/);
  await here.getByRole("button", { name: /^Revoke/ }).click();
  await here.getByRole("button", { name: /and sign out$/ }).waitFor();
  // What a member may not do is not offered.
  assert.equal(await page.getByRole("region", { name: "Users" }).count(), 0);
  assert.equal(await page.getByText("Add a provider by its key").count(), 0);
  assert.deepEqual([page.wrong, page.strangers], [[], []]);
});

test("who revokes the token of their session leaves nothing that was written to the next person", async () => {
  place.run("users", "add", "cleo", "--role", "member");
  tokens.cleo = place.run("users", "token", "cleo").match(/tw_\S+/)[0];
  const page = await signedIn("cleo");
  await page.getByRole("textbox", { name: "Message" }).fill("cleo's own draft");
  await page.getByRole("link", { name: "Settings" }).click();
  const here = page.getByRole("region", { name: "Your tokens" }).locator("li", { hasText: "this session" });
  await here.getByRole("button", { name: /^Revoke/ }).click();
  await here.getByRole("button", { name: /and sign out$/ }).click();
  await page.getByRole("heading", { name: "Sign in to Turnwright" }).waitFor();
  assert.deepEqual(await page.evaluate(() => Object.keys(localStorage).filter((name) => name.startsWith("draft "))), []);
  assert.deepEqual([page.wrong, page.strangers], [[], []]);
});

test("what was deleted is gone though its person leaves at once, and they stay where it cannot be", async () => {
  place.run("users", "add", "dora", "--role", "member");
  const fresh = () => place.run("users", "token", "dora").match(/tw_\S+/)[0];
  const api = fresh();
  const asked = (path, body) => fetch(`${place.base}/api/v1/conversations${path}`, {
    headers: { authorization: `Bearer ${api}`, "content-type": "application/json" }, ...(body && { method: "POST", body: JSON.stringify(body) }),
  });
  for (const id of ["private-1", "private-2"]) assert.equal((await asked("", { id, title: `Of ${id}` })).status, 201);
  const come = async () => {
    tokens.dora = fresh();
    return signedIn("dora");
  };
  const remove = async (page, id) => {
    await page.locator(".entry", { hasText: `Of ${id}` }).hover();
    await page.getByRole("button", { name: `Delete Of ${id}` }).click();
    await page.getByText(`Deleted “Of ${id}”`).waitFor();
  };
  const first = await come();
  await remove(first, "private-1");
  await first.route("**/conversations/private-1", (route) => route.abort());
  await first.getByRole("button", { name: "Sign out" }).click();
  await first.getByText("“Of private-1” is not deleted. The server cannot be reached.").waitFor();
  await first.locator(".entry", { hasText: "Of private-1" }).waitFor();
  await first.unroute("**/conversations/private-1");
  // Also while its deletion is under way: by who signs out twice, and by the page itself.
  for (const isSentAlready of [false, true]) {
    const held = [];
    await first.route("**/conversations/private-1", (route) => void held.push(route));
    await remove(first, "private-1");
    if (!isSentAlready) await first.getByRole("button", { name: "Sign out" }).click();
    while (held.length === 0) await first.waitForTimeout(20);
    await first.getByRole("button", { name: "Sign out" }).click();
    assert.equal(held.length, 1);
    await first.evaluate(() => fetch("/api/v1/me"));
    await held[0].abort();
    await first.locator(".entry", { hasText: "Of private-1" }).waitFor();
    assert.equal(await first.evaluate(() => fetch("/api/v1/me").then(({ status }) => status)), 200);
    await first.unroute("**/conversations/private-1");
  }
  await remove(first, "private-1");
  await first.getByRole("button", { name: "Sign out" }).click();
  await first.getByRole("heading", { name: "Sign in to Turnwright" }).waitFor();
  assert.equal((await asked("/private-1")).status, 404);
  const second = await come();
  await second.getByRole("link", { name: "Settings" }).click();
  const here = second.getByRole("region", { name: "Your tokens" }).locator("li", { hasText: "this session" });
  await here.getByRole("button", { name: /^Revoke/ }).click();
  await remove(second, "private-2");
  await here.getByRole("button", { name: /and sign out$/ }).click();
  await second.getByRole("heading", { name: "Sign in to Turnwright" }).waitFor();
  assert.equal((await asked("/private-2")).status, 404);
  assert.deepEqual([first.wrong, second.wrong], [[], []]);
});

test("what belongs to one is not there for the other", async () => {
  const ann = await signedIn("ann");
  await say(ann, "ann's own words");
  await ann.getByText("You said: ann's own words").waitFor();
  const hash = new URL(ann.url()).hash;
  const ben = await signedIn("ben");
  await ben.goto(`${place.base}/${hash}`);
  await ben.getByText("There is no such conversation.").waitFor();
  assert.equal(await ben.locator(".entry", { hasText: "ann" }).count(), 0);
  assert.deepEqual(await violations(ben), []);
});

for (const theme of ["light", "dark"]) {
  test(`admins see what each user used, and budgets are shown with what is left, ${theme}`, async () => {
    const other = await signedIn("ben");
    await say(other, "mine");
    await other.getByText("You said: mine").waitFor();
    const page = await signedIn("ann", { theme });
    await say(page, "how much is this?");
    await page.getByText("You said: how much is this?").waitFor();
    await page.getByRole("link", { name: "Usage" }).click();
    const rows = page.getByRole("region", { name: "Usage, User" }).locator("tbody tr");
    await rows.filter({ hasText: "ann" }).waitFor();
    const cells = await rows.filter({ hasText: "ann" }).locator("th, td").allInnerTexts();
    assert.equal(cells[0], "ann");
    assert.ok(Number(cells[1]) >= 1, cells.join());
    await page.getByRole("meter", { name: "user_day" }).waitFor();
    await page.getByText(/begins anew/).first().waitFor();
    assert.deepEqual(await violations(page), []);
    await page.getByRole("link", { name: "Settings" }).click();
    const users = page.getByRole("region", { name: "Users" });
    await users.getByRole("button", { name: "Link for ben" }).click();
    await users.getByText("signs a browser in as ben").waitFor();
    assert.deepEqual(await violations(page), []);
    assert.deepEqual(page.wrong, []);
  });
}

test("a turn that its budget does not suffice for is stopped, which is said with what was done, and goes on elsewhere", async () => {
  const page = await signedIn("ben");
  await say(page, "tool filesystem__list {}");
  await page.getByText("The tool said").waitFor();
  // What a conversation may take is used up after some turns.
  for (let at = 0; at < 40; at += 1) {
    await say(page, `turn ${at}`);
    await page.locator(".turn").nth(at + 1).locator(".foot, .stopped, .notice").first().waitFor();
    if (await page.getByText(/budget/i).count() > 0) break;
  }
  await page.getByText(/budget/i).first().waitFor();
  assert.match(await page.locator(".turn").last().innerText(), /conversation/);
  assert.deepEqual(await violations(page), []);
  await page.getByRole("link", { name: "New conversation" }).click();
  await say(page, "anew");
  await page.getByText("You said: anew").waitFor();
  assert.deepEqual(page.wrong, []);
});
