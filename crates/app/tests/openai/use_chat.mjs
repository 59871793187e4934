// What useChat of @ai-sdk/react does, without the hook around it: use_chat.mjs FOLDER ROOT PLACE WHAT. What is not as it should
// be throws.
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

const [folder, root, place, what] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/`));
const { Chat } = require('@ai-sdk/react');
const { DefaultChatTransport } = require('ai');

/** A chat as a page has it; `fetch` may be one that breaks. */
function chat(more = {}, fetching) {
  const errors = [];
  const made = new Chat({
    id: 'c', transport: new DefaultChatTransport({ api: `${root}/api/chat`, fetch: fetching }),
    onError: (error) => errors.push(error), ...more,
  });
  return { chat: made, errors };
}

const texts = (message, kind = 'text') => message.parts.filter(({ type }) => type === kind).map(({ text }) => text).join('');
const outline = ({ messages }) => messages.map((message) => `${message.role}: ${texts(message)}`);
async function until(isSo) {
  while (!isSo()) await setTimeout(10);
}

const all = {
  /** What the model thinks is a part of its own. */
  async reasoning() {
    const { chat: page, errors } = chat();
    await page.sendMessage({ text: 'think' });
    assert.deepEqual(errors, []);
    const [, answer] = page.messages;
    assert.deepEqual(answer.parts.map(({ type }) => type).filter((type) => !type.startsWith('data-')), ['step-start', 'reasoning', 'text']);
    assert.deepEqual([texts(answer, 'reasoning'), texts(answer)], ['Let me see. It is clear.', 'Clear.']);
    assert.ok(answer.parts.every(({ state }) => state === undefined || state === 'done'));
  },

  /** The connection breaks while a tool runs; the page comes back as it does once it is visible again. */
  async resume() {
    const cut = new AbortController();
    const breaking = async (url, options) => {
      const response = await fetch(url, options);
      if (options?.method !== 'POST') return response;
      const reader = response.body.getReader();
      const body = new ReadableStream({
        async pull(controller) {
          const broken = new Promise((_, reject) => cut.signal.addEventListener('abort', () => reject(new TypeError('network error'))));
          try {
            const { done, value } = await Promise.race([reader.read(), broken]);
            if (done) controller.close();
            else controller.enqueue(value);
          } catch (error) {
            void reader.cancel();
            controller.error(error);
          }
        },
      });
      return new Response(body, { status: response.status, headers: response.headers });
    };
    const { chat: page, errors } = chat({}, breaking);
    const sent = page.sendMessage({ text: 'hold' });
    await until(() => existsSync(join(place, 'running')));
    await until(() => page.messages.at(-1)?.parts.some(({ type }) => type === 'dynamic-tool'));
    cut.abort();
    await sent;
    assert.equal(errors.length, 1);
    assert.equal(page.status, 'error');
    const resumed = page.resumeStream();
    await until(() => page.status === 'streaming');
    writeFileSync(join(place, 'go'), '');
    await resumed;
    assert.equal(errors.length, 1);
    assert.deepEqual(outline(page), ['user: hold', 'assistant: I hold.Held.']);
    const calls = page.messages[1].parts.filter(({ type }) => type === 'dynamic-tool');
    assert.deepEqual(calls.map(({ state }) => state), ['output-available']);
    // Nothing is open any more.
    await page.resumeStream();
    assert.deepEqual(outline(page), ['user: hold', 'assistant: I hold.Held.']);
  },

  /** A reader that keeps the ids comes back with the last of them, and the library's own code puts the message together. */
  async position() {
    const { readUIMessageStream, uiMessageChunkSchema, asSchema } = require('ai');
    const { EventSourceParserStream } = require('eventsource-parser/stream');
    const events = (response) => response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
    let last;
    /** The chunks up to the first that is the last wanted, checked by the library's own schema. */
    const chunks = (response, isLast) => new ReadableStream({
      async start(controller) {
        for await (const { id, data } of events(response)) {
          last = id;
          if (data === '[DONE]') break;
          const chunk = JSON.parse(data);
          const { success, error } = await asSchema(uiMessageChunkSchema).validate(chunk);
          if (!success) throw error;
          controller.enqueue(chunk);
          if (isLast(chunk)) break;
        }
        controller.close();
      },
    });
    async function read(response, message, isLast = () => false) {
      assert.equal(response.status, 200);
      const stream = chunks(response, isLast);
      for await (message of readUIMessageStream({ message, stream, onError: (error) => { throw error; }, terminateOnError: true }));
      return message;
    }
    const url = `${root}/api/chat/c/stream?ui=7`;
    const sent = await fetch(`${root}/api/chat?ui=7`, {
      method: 'POST', headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id: 'c', messages: [{ id: 'u', role: 'user', parts: [{ type: 'text', text: 'hold' }] }] }),
    });
    const begun = await read(sent, undefined, ({ type }) => type === 'tool-input-available');
    assert.equal(texts(begun), 'I hold.');
    await until(() => existsSync(join(place, 'running')));
    writeFileSync(join(place, 'go'), '');
    while ((await fetch(url)).status !== 204) await setTimeout(10);
    const whole = await read(await fetch(url, { headers: { 'last-event-id': last } }), begun);
    assert.equal(texts(whole), 'I hold.Held.');
    const kinds = whole.parts.map(({ type }) => type).filter((type) => !type.startsWith('data-'));
    assert.deepEqual(kinds, ['step-start', 'text', 'dynamic-tool', 'step-start', 'text']);
    assert.equal((await fetch(url, { headers: { 'last-event-id': last } })).status, 204);
    const fresh = await read(await fetch(`${url}&after=0`));
    assert.deepEqual([fresh.id, fresh.parts], [whole.id, whole.parts]);
  },

  /** A form of an MCP server is a part, is answered, and the message goes on. */
  async form() {
    // From before the turn's first entry, so that it is told also where it has ended by then.
    const after = () => Number(page.messages.at(-1).id.split('_')[1]) - 1;
    const prepareReconnectToStreamRequest = ({ api, id }) => ({ api: `${api}/${id}/stream?after=${after()}` });
    const transport = new DefaultChatTransport({ api: `${root}/api/chat`, prepareReconnectToStreamRequest });
    const { chat: page, errors } = chat({ transport });
    await page.sendMessage({ text: 'book' });
    const form = () => page.messages[1].parts.find(({ type }) => type === 'data-elicitation').data;
    assert.deepEqual([form().state, form().mode, form().server], ['open', 'form', 'asks']);
    assert.deepEqual(Object.keys(form().requestedSchema.properties), ['name', 'nights', 'breakfast']);
    const answer = { action: 'accept', content: { name: 'Ann', nights: 3 } };
    const answered = await fetch(`${root}/api/v1/conversations/c/questions/${form().id}/answer`, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(answer),
    });
    assert.equal(answered.status, 200, await answered.text());
    await page.resumeStream();
    assert.deepEqual(errors, []);
    assert.deepEqual([form().state, form().action], ['answered', 'accept']);
    assert.match(texts(page.messages[1]), /booked Oslo for Ann, 3 nights/);
    assert.equal(page.messages.length, 2);
  },

  /** What a person allowed asks for something else: the library sends the same answer again for as long as it takes it for news. */
  async answered() {
    const { lastAssistantMessageIsCompleteWithApprovalResponses: isToBeSent } = require('ai');
    let posts = 0;
    const counted = (url, options) => {
      posts += options?.method === 'POST' ? 1 : 0;
      return fetch(url, options);
    };
    const { chat: page, errors } = chat({ sendAutomaticallyWhen: isToBeSent }, counted);
    await page.sendMessage({ text: 'pay' });
    const [, message] = page.messages;
    const asked = message.parts.find(({ state }) => state === 'approval-requested');
    await page.addToolApprovalResponse({ id: asked.approval.id, approved: true });
    await until(() => posts === 2 && page.status === 'ready');
    assert.deepEqual(errors, []);
    const form = page.messages[1].parts.find(({ type }) => type === 'data-elicitation').data;
    assert.deepEqual([form.state, form.mode], ['open', 'url']);
    assert.equal(isToBeSent({ messages: page.messages }), false);
    const api = `${root}/api/v1/conversations/c`;
    const done = await fetch(`${api}/questions/${form.id}/answer`, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ action: 'accept' }),
    });
    // The server's own word that it is done may come first.
    assert.ok([200, 409].includes(done.status), await done.text());
    let told;
    do {
      await setTimeout(50);
      told = await (await fetch(`${api}/messages?format=ai-sdk-ui`)).text();
    } while (!told.includes('It said: '));
    assert.match(told, /It said: .*paid/);
    assert.equal(posts, 2);
  },

  /** Another answer, of another model, and a question that is said otherwise: what was there is not shown to the model. */
  async again() {
    const { chat: page, errors } = chat();
    await page.sendMessage({ text: 'one' });
    await page.sendMessage({ text: 'two' });
    assert.deepEqual(outline(page), ['user: one', 'assistant: m: one (0)', 'user: two', 'assistant: m: one|two (1)']);
    await page.regenerate();
    assert.deepEqual(outline(page).slice(2), ['user: two', 'assistant: m: one|two (1)'], 'the answer before is not shown');
    await page.regenerate({ body: { model: 'p/n' } });
    assert.deepEqual(outline(page).slice(2), ['user: two', 'assistant: n: one|two (1)']);
    await page.sendMessage({ text: 'deux', messageId: page.messages[2].id });
    assert.deepEqual(outline(page).slice(2), ['user: deux', 'assistant: m: one|deux (1)'], 'what was said before is not shown');
    await page.regenerate({ messageId: page.messages[1].id });
    assert.deepEqual(outline(page), ['user: one', 'assistant: m: one (0)'], 'what came after it is not shown either');
    await page.sendMessage({ text: 'three' });
    assert.equal(outline(page).at(-1), 'assistant: m: one|three (1)');
    await page.sendMessage({ text: 'un', messageId: page.messages[0].id });
    assert.deepEqual(outline(page), ['user: un', 'assistant: m: un (0)']);
    assert.deepEqual(errors, []);
    const told = await (await fetch(`${root}/api/v1/conversations/c/messages`)).json();
    assert.deepEqual(told.data.map(({ content }) => content), ['un', 'm: un (0)']);
    const turns = await (await fetch(`${root}/api/v1/conversations/c/turns`)).json();
    assert.equal(turns.data.length, 1);
  },
};

await all[what]();
console.log('well');
