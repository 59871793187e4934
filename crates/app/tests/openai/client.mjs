// Talks to a server with the official library and with the AI SDK: client.mjs FOLDER BASE_URL. What is not as it should be throws.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [folder, baseURL] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/`));
const OpenAI = require('openai');
const { generateText, streamText, tool, jsonSchema, stepCountIs, isStepCount } = require('ai');
const { createOpenAICompatible } = require('@ai-sdk/openai-compatible');
const { createOpenAI } = require('@ai-sdk/openai');

const client = new OpenAI({ baseURL, apiKey: 'any' });
const user = (content) => [{ role: 'user', content }];
const parameters = { type: 'object', properties: { from: { type: 'string' } }, required: ['from'], additionalProperties: false };
const tools = [{ type: 'function', function: { name: 'pick', parameters } }];
const completions = client.chat.completions;

// Chat Completions.
const plain = await completions.create({ model: 'p/m', messages: user('hello') });
assert.equal(plain.choices[0].message.content, 'Hello there.');
let text = '';
const reasons = [];
for await (const chunk of await completions.create({ model: 'p/m', messages: user('ours'), stream: true })) {
  text += chunk.choices[0].delta.content ?? '';
  if (chunk.choices[0].finish_reason) reasons.push(chunk.choices[0].finish_reason);
}
assert.deepEqual([text, reasons], ['Reading.\n\nGot hello file\n', ['stop']]);
const helper = completions.runTools({
  model: 'p/m', stream: true, messages: user('both'),
  tools: [{ type: 'function', function: { name: 'pick', parameters, parse: JSON.parse, function: ({ from }) => `from ${from}` } }],
});
assert.equal(await helper.finalContent(), 'Got from x');
await assert.rejects(completions.create({ model: 'gpt-9', messages: user('hello') }), OpenAI.NotFoundError);
await assert.rejects(completions.create({ model: 'p/m', messages: user('limit') }), OpenAI.RateLimitError);
await assert.rejects(async () => {
  for await (const _ of await completions.create({ model: 'p/m', messages: user('limit'), stream: true }));
}, OpenAI.RateLimitError);

// Responses. The helper throws at every event that it does not know.
const stream = client.responses.stream({ model: 'p/m', input: 'ours' });
const kinds = [];
for await (const event of stream) kinds.push(event.type);
const response = await stream.finalResponse();
assert.equal(response.output_text, 'Reading.Got hello file\n');
assert.deepEqual(response.output.map((item) => item.type), ['message', 'mcp_call', 'message']);
assert.equal(kinds.at(-1), 'response.completed');
const asked = await client.responses.create({ model: 'p/m', input: 'write' });
const [request, told] = asked.output.slice(-2);
assert.equal(request.type, 'mcp_approval_request');
assert.match(told.content[0].text, /turnwright approvals decide call_/);
const denied = await client.responses.create({
  model: 'p/m', previous_response_id: asked.id,
  input: [{ type: 'mcp_approval_response', approval_request_id: request.id, approve: false, reason: 'not now' }],
});
assert.match(denied.output_text, /denied by the user: not now/);

// A stream that fails is none that ended.
const failing = async () => {
  for await (const event of await client.responses.create({ model: 'p/m', input: 'limit', stream: true })) assert.notEqual(event.type, 'error');
};
await assert.rejects(failing, ({ code }) => code === 'rate_limit_exceeded');

// The AI SDK, over both.
const pick = (calls) => ({
  pick: tool({ inputSchema: jsonSchema(parameters), execute: ({ from }) => { calls.push(from); return `from ${from}`; } }),
});
for (const model of [createOpenAICompatible({ name: 'tw', baseURL, apiKey: 'any' })('p/m'), createOpenAI({ baseURL, apiKey: 'any' }).responses('p/m')]) {
  const calls = [];
  const steps = (isStepCount ?? stepCountIs)(5);
  const both = await generateText({ model, prompt: 'both', tools: pick(calls), stopWhen: steps });
  assert.deepEqual([both.text, calls], ['Got from x', ['x']]);
  let streamed = '';
  const result = streamText({ model, prompt: 'ours', onError: ({ error }) => { throw error; } });
  for await (const part of result.fullStream) {
    assert.notEqual(part.type, 'error', JSON.stringify(part));
    if (part.type === 'text-delta') streamed += part.text;
  }
  assert.match(streamed, /Got hello file/);
  assert.equal(await result.finishReason, 'stop');
}
console.log('well');
