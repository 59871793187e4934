// Talks to a server with AG-UI's own client: ag_ui.mjs FOLDER ADDRESS. What is not as it should be throws.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [folder, address] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/`));
const { HttpAgent } = require('@ag-ui/client');

const pick = { name: 'pick', description: 'Picks.', parameters: { type: 'object', properties: { from: { type: 'string' } } } };

function agent(threadId) {
  return new HttpAgent({ url: `${address}/ag-ui`, threadId });
}

async function run(agent, input = {}) {
  const events = [];
  const seen = { onEvent: ({ event }) => { events.push(event); } };
  await agent.runAgent({ forwardedProps: { model: 'p/m' }, ...input }, seen);
  return events;
}

function user(agent, content) {
  agent.messages = [...agent.messages, { id: `u${agent.messages.length}`, role: 'user', content }];
}

const last = (events) => events.at(-1);
const texts = (agent) => agent.messages.filter(({ role }) => role === 'assistant').map(({ content }) => content ?? '');

// Tools on the server's side.
const ours = agent('t-ours');
user(ours, 'ours');
const events = await run(ours);
assert.deepEqual([events[0].type, last(events).type, last(events).outcome], ['RUN_STARTED', 'RUN_FINISHED', { type: 'success' }]);
assert.equal(texts(ours).at(-1), 'Got hello file\n');
assert.equal(ours.messages.find(({ role }) => role === 'tool').content, 'hello file\n');
user(ours, 'hello');
await run(ours);
assert.equal(texts(ours).at(-1), 'Hello there.');

// A page that comes back with what it has holds nothing twice.
const back = agent('t-ours');
back.messages = ours.messages.slice(0, -1).concat({ ...ours.messages.at(-1), content: 'Hel' });
await run(back);
// A message of calls alone has no text in a stream.
const held = ({ messages }) => messages.map((message) => ({ content: '', ...message }));
assert.deepEqual(held(back), held(ours));

// A tool of the page's.
const theirs = agent('t-theirs');
user(theirs, 'both');
const pending = last(await run(theirs, { tools: [pick] })).outcome;
assert.equal(pending.type, 'success');
assert.equal(pending.pendingToolCallIds.length, 1);
theirs.messages = [...theirs.messages, { id: 'r1', role: 'tool', toolCallId: pending.pendingToolCallIds[0], content: 'red' }];
await run(theirs, { tools: [pick] });
assert.equal(texts(theirs).at(-1), 'Got red');

// Approval.
const asked = agent('t-asked');
user(asked, 'write');
const { outcome } = last(await run(asked));
assert.equal(outcome.type, 'interrupt');
assert.equal(outcome.interrupts[0].reason, 'tool_call');
const resume = [{ interruptId: outcome.interrupts[0].id, status: 'resolved', payload: { approved: true } }];
const resumed = await run(asked, { resume });
assert.deepEqual(resumed.filter(({ type }) => type.startsWith('TOOL_CALL')).map(({ type }) => type), ['TOOL_CALL_RESULT']);
assert.equal(last(resumed).outcome.type, 'success');
assert.match(texts(asked).at(-1), /^Got /);

// Whoever says something instead of answering.
const said = async (thread) => {
  const { data } = await (await fetch(`${address}/api/v1/conversations/${thread}/messages`)).json();
  return data.filter(({ role }) => role === 'user').map(({ content }) => content);
};
const instead = agent('t-instead');
user(instead, 'write');
const open = last(await run(instead)).outcome.interrupts[0];
const unanswered = await run(instead).catch((error) => [{ type: 'RUN_ERROR', error }]);
assert.equal(last(unanswered).type, 'RUN_ERROR');
assert.deepEqual(await said('t-instead'), ['write']);

// A page that comes back knows nothing, and is told what is asked.
const fresh = agent('t-instead');
assert.deepEqual(last(await run(fresh)).outcome.interrupts, [open]);
assert.deepEqual(fresh.messages.map(({ role }) => role), ['user', 'assistant']);
assert.equal(fresh.messages[1].toolCalls[0].id, open.toolCallId);
user(instead, 'hello');
await run(instead, { resume: [{ interruptId: open.id, status: 'cancelled' }] });
assert.deepEqual(await said('t-instead'), ['write', 'hello']);
assert.deepEqual(await said('t-asked'), ['write']);

// What the page shows stands beside what the operator says, and is not kept.
const shows = agent('t-shows');
user(shows, 'prompt');
await run(shows, { context: [{ description: 'page', value: 'blue' }] });
assert.match(texts(shows).at(-1), /Be brief\.[^]*page: blue/);
user(shows, 'prompt');
await run(shows, {});
assert.doesNotMatch(texts(shows).at(-1), /blue/);

// A model that fails.
const failing = agent('t-limit');
user(failing, 'limit');
const failed = await run(failing).catch((error) => [{ type: 'RUN_ERROR', error }]);
assert.equal(last(failed).type, 'RUN_ERROR');
// The same messages once more have it tried again, and say nothing twice.
const triedAgain = await run(failing).catch((error) => [{ type: 'RUN_ERROR', error }]);
assert.equal(last(triedAgain).type, 'RUN_ERROR');
assert.deepEqual(await said('t-limit'), ['limit']);
console.log('well');
