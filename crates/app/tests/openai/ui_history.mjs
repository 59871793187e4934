// Whether a history has the parts that the stream left in a client, with one version of the library: ui_history.mjs FOLDER ROOT PLACE
// VERSION. What is not as it should be throws.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { setTimeout } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

const [folder, root, , version] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/`));
const name = version === '7' ? 'ai' : `ai-${version}`;
const { DefaultChatTransport, readUIMessageStream } = require(name);
assert.equal(require(`${name}/package.json`).version.split('.')[0], version);

const ask = (path, body) => fetch(`${root}${path}`, body && {
  method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
});
const api = async (path, body) => {
  const answer = await ask(`/api/v1/conversations/${path}`, body);
  assert.ok(answer.ok, `${path}: ${answer.status}`);
  return answer.json();
};
/** Without what is told alike by chance alone; version 5 drops what it is told of a tool besides its name. */
const dropped = version === '5' ? ['durationMs', 'title', 'toolMetadata'] : ['durationMs'];
const plain = (value) => JSON.parse(JSON.stringify(value, (key, value) => (dropped.includes(key) ? undefined : value)));

/** The history is what a client has that reads the stream of the first turn from its beginning. */
async function isTheSame(chatId, when) {
  const transport = new DefaultChatTransport({
    api: `${root}/api/chat`, prepareReconnectToStreamRequest: ({ api, id }) => ({ api: `${api}/${id}/stream?ui=${version}&after=0` }),
  });
  const stream = await transport.reconnectToStream({ chatId });
  let message;
  for await (message of readUIMessageStream({ stream, onError: (error) => { throw error; }, terminateOnError: true }));
  const { data } = await api(`${chatId}/messages?format=ai-sdk-ui&ui=${version}`);
  const told = data.find(({ id }) => id === message.id);
  const parts = (of) => plain(of.parts).map((part) => (version === '7' ? part : decided(part)));
  assert.deepEqual(parts(told), parts(message), `${chatId}, ${when}`);
  assert.deepEqual(plain(told.metadata), plain(message.metadata), `${chatId}, ${when}`);
  return message;
}
/** A reader of these versions is not told how an approval was answered: its page knows it. */
function decided({ approval, ...part }) {
  return approval && part.state === 'approval-requested' ? { approval, ...part } : part;
}
const states = (message) => message.parts.filter(({ type }) => type === 'dynamic-tool').map(({ state }) => state);
const form = (message) => message.parts.filter(({ type }) => type === 'data-elicitation').map(({ data }) => data.state);
const calls = async (id) => (await api(`${id}/calls`)).data;
async function until(isSo) {
  while (!await isSo()) await setTimeout(10);
}
const isOver = async (id) => (await api(`${id}/turns`)).data.every(({ status }) => status === 'completed');
const answer = (id, question) => api(`${id}/questions/${question}/answer`, { action: 'accept', content: { name: 'Ann', nights: 3 } });
const allow = (id, call, decision = 'allow') => api(`${id}/calls/${call}/decision`, { decision });

/** Lets the tool run that asks for a form, until that is asked for. */
async function untilAsked(id) {
  const { id: call } = (await calls(id)).find(({ name }) => name === 'asks__book');
  await isTheSame(id, 'before anything was decided');
  await allow(id, call);
  await until(async () => (await calls(id)).some(({ reason }) => reason === 'question'));
  await until(async () => (await api(`${id}/turns`)).data[0].status === 'suspended');
}

// A form and an approval, answered in either order.
for (const order of ['form', 'approval']) {
  const id = `both-${order}`;
  await api(`${id}/chat`, { content: 'both' });
  await untilAsked(id);
  const first = await isTheSame(id, 'while both wait');
  assert.deepEqual(form(first), ['open']);
  if (version !== '5') assert.equal(states(first)[1], 'approval-requested');
  const waiting = await calls(id);
  const question = waiting.find(({ reason }) => reason === 'question').id;
  const call = waiting.find(({ reason }) => reason === 'approval').id;
  const steps = [() => answer(id, question), () => allow(id, call, 'deny')];
  if (order === 'approval') steps.reverse();
  await steps[0]();
  await until(async () => (await calls(id)).length === 1);
  await until(async () => (await api(`${id}/turns`)).data[0].status === 'suspended');
  await isTheSame(id, 'while one waits');
  await steps[1]();
  await until(() => isOver(id));
  assert.deepEqual(form(await isTheSame(id, 'in the end')), ['answered']);
}

// A tool of the client's beside both.
const tools = [{ type: 'function', function: { name: 'pick', parameters: { type: 'object' } } }];
const prompt = { role: 'user', content: 'all' };
const begun = await ask('/v1/chat/completions', { model: 'p/m', messages: [prompt], tools, metadata: { conversation_id: 'all' } });
const { choices: [{ message }] } = await begun.json();
await untilAsked('all');
await isTheSame('all', 'while people and a client are waited for');
const waiting = await calls('all');
await answer('all', waiting.find(({ reason }) => reason === 'question').id);
await allow('all', waiting.find(({ reason }) => reason === 'approval').id);
await until(async () => (await calls('all')).every(({ reason }) => reason !== 'question' && reason !== 'approval'));
await until(async () => (await api('all/turns')).data[0].status === 'suspended');
await isTheSame('all', 'while a client is waited for');
const result = { role: 'tool', tool_call_id: message.tool_calls[0].id, content: 'red' };
assert.equal((await ask('/v1/chat/completions', { model: 'p/m', messages: [prompt, message, result], tools, metadata: { conversation_id: 'all' } })).status, 200);
await until(() => isOver('all'));
const whole = await isTheSame('all', 'in the end');
assert.deepEqual(states(whole), ['output-available', 'output-available', 'output-available']);
console.log('well');
