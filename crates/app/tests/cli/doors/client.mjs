// Takes one turn through a door with the client that belongs to it: client.mjs FOLDER ROOT DOOR PROMPT. Prints the
// conversation and all text that the client read of it; what is not as it should be throws.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [folder, root, door, prompt] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/`));

async function api(method, path, body) {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${root}/api/v1/${path}`, { method, headers, body: body && JSON.stringify(body) });
  assert.ok(response.ok, `${path}: ${response.status} ${await response.clone().text()}`);
  return response.json();
}

/** Allows the call that waits; gives what is said from then on. */
async function allowed(conversation) {
  const { data } = await api('GET', `conversations/${conversation}/calls`);
  assert.equal(data.length, 1);
  await api('POST', `conversations/${conversation}/calls/${data[0].id}/decision`, { decision: 'allow' });
  const last = data[0].id.split('_')[1];
  const response = await fetch(`${root}/api/v1/conversations/${conversation}/events`, { headers: { 'last-event-id': last } });
  const { EventSourceParserStream } = require('eventsource-parser/stream');
  let text = '';
  for await (const { data } of response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream())) {
    const event = JSON.parse(data);
    if (event.type === 'text.delta') text += event.text;
    if (event.type === 'turn.finished') return text;
  }
  throw new Error('the stream ended before the turn');
}

const said = (message) => message.parts.filter(({ type }) => type === 'text').map(({ text }) => text).join('');

const doors = {
  /** The AI SDK reads the stream of a message that was sent by the API. */
  async stream() {
    const { readUIMessageStream, parseJsonEventStream, uiMessageChunkSchema } = require('ai');
    await api('POST', 'conversations', { id: 'c' });
    await api('POST', 'conversations/c/messages', { content: prompt });
    const response = await fetch(`${root}/api/v1/conversations/c/stream`);
    assert.equal(response.status, 200);
    const chunks = parseJsonEventStream({ stream: response.body, schema: uiMessageChunkSchema }).pipeThrough(new TransformStream({
      transform(part, controller) {
        if (!part.success) throw part.error;
        controller.enqueue(part.value);
      },
    }));
    let message;
    for await (message of readUIMessageStream({ stream: chunks, onError: (error) => { throw error; }, terminateOnError: true }));
    const asked = message.parts.find((part) => part.state === 'approval-requested');
    assert.equal(asked.toolName ?? asked.type, 'filesystem__write');
    return { conversation: 'c', text: said(message) + (await allowed('c')) };
  },

  /** What useChat of @ai-sdk/react does, without the hook around it. */
  async use_chat() {
    const { Chat } = require('@ai-sdk/react');
    const { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } = require('ai');
    let over;
    const finished = new Promise((resolve, reject) => { over = { resolve, reject }; });
    const chat = new Chat({
      id: 'c',
      transport: new DefaultChatTransport({ api: `${root}/api/chat` }),
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
      onError: (error) => over.reject(error),
      onFinish: ({ message }) => {
        const asked = message.parts.find((part) => part.state === 'approval-requested');
        if (asked) setTimeout(() => chat.addToolApprovalResponse({ id: asked.approval.id, approved: true }));
        else over.resolve();
      },
    });
    await chat.sendMessage({ text: prompt });
    await finished;
    assert.deepEqual(chat.messages.map(({ role }) => role), ['user', 'assistant']);
    const calls = chat.messages[1].parts.filter(({ type }) => type === 'dynamic-tool' || type.startsWith('tool-'));
    const done = [false, true, false, false].map((isError) => ['output-available', isError]);
    assert.deepEqual(calls.map(({ state, output }) => [state, output.isError ?? false]), done);
    return { conversation: 'c', text: said(chat.messages[1]) };
  },

  async completions() {
    const OpenAI = require('openai');
    const client = new OpenAI({ baseURL: `${root}/v1`, apiKey: 'any' });
    const runner = client.chat.completions.stream({ model: 'p/m', messages: [{ role: 'user', content: prompt }] });
    let conversation;
    runner.on('chunk', (chunk) => { conversation = chunk.turnwright?.conversation_id ?? conversation; });
    const whole = await runner.finalContent();
    const at = whole.indexOf('\n\n', whole.indexOf('I copy it.'));
    assert.match(whole.slice(at), /turnwright approvals decide call_/);
    return { conversation, text: whole.slice(0, at).replaceAll('\n\n', '') + (await allowed(conversation)) };
  },

  async responses() {
    const OpenAI = require('openai');
    const client = new OpenAI({ baseURL: `${root}/v1`, apiKey: 'any' });
    const read = (more) => client.responses.stream({ model: 'p/m', ...more }).finalResponse();
    const first = await read({ input: prompt });
    const kinds = ['message', 'mcp_call', 'mcp_call', 'message', 'mcp_call', 'mcp_approval_request'];
    const output = first.output.slice(0, -1);
    assert.deepEqual(output.map(({ type }) => type), kinds);
    assert.match(first.output.at(-1).content[0].text, /turnwright approvals decide call_/);
    const answer = { type: 'mcp_approval_response', approval_request_id: output.at(-1).id, approve: true };
    const second = await read({ input: [answer], previous_response_id: first.id });
    const said = (items) => items.filter(({ type }) => type === 'message').map(({ content }) => content[0].text).join('');
    return { conversation: second.turnwright.conversation_id, text: said(output) + second.output_text };
  },

  /** The AI SDK with its provider for endpoints that are compatible with OpenAI's. */
  async ai_sdk() {
    const { streamText } = require('ai');
    const { createOpenAICompatible } = require('@ai-sdk/openai-compatible');
    const model = createOpenAICompatible({ name: 'tw', baseURL: `${root}/v1`, apiKey: 'any' })('p/m');
    const result = streamText({ model, prompt, onError: ({ error }) => { throw error; } });
    let whole = '';
    for await (const part of result.fullStream) {
      assert.notEqual(part.type, 'error', JSON.stringify(part));
      if (part.type === 'text-delta') whole += part.text;
    }
    assert.equal(await result.finishReason, 'stop');
    const conversation = (await result.response).headers['x-turnwright-conversation'];
    const at = whole.indexOf('\n\n', whole.indexOf('I copy it.'));
    assert.match(whole.slice(at), /turnwright approvals decide call_/);
    return { conversation, text: whole.slice(0, at).replaceAll('\n\n', '') + (await allowed(conversation)) };
  },

  async ag_ui() {
    const { HttpAgent } = require('@ag-ui/client');
    const agent = new HttpAgent({ url: `${root}/ag-ui`, threadId: 'c' });
    agent.messages = [{ id: 'u1', role: 'user', content: prompt }];
    const outcomes = [];
    const seen = { onEvent: ({ event }) => { if (event.type === 'RUN_FINISHED') outcomes.push(event.outcome); } };
    await agent.runAgent({}, seen);
    assert.equal(outcomes[0].type, 'interrupt');
    await agent.runAgent({ resume: [{ interruptId: outcomes[0].interrupts[0].id, status: 'resolved', payload: { approved: true } }] }, seen);
    assert.deepEqual(outcomes[1], { type: 'success' });
    const text = agent.messages.filter(({ role }) => role === 'assistant').map(({ content }) => content ?? '').join('');
    assert.equal(agent.messages.filter(({ role }) => role === 'tool').length, 4);
    return { conversation: 'c', text };
  },
};

console.log(JSON.stringify(await doors[door]()));
