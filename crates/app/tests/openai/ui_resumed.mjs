// A page that begins with a history and takes up the stream there, with one version of the library: ui_resumed.mjs FOLDER ROOT PLACE
// VERSION. What is not as it should be throws.
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

const [folder, root, place, version] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/`));
const name = version === '7' ? 'ai' : `ai-${version}`;
const { AbstractChat, DefaultChatTransport } = require(name);
assert.equal(require(`${name}/package.json`).version.split('.')[0], version);

/** What a page keeps its messages in. */
class Kept {
  status = 'ready';
  error = undefined;
  constructor(messages) { this.messages = messages; }
  pushMessage = (message) => { this.messages = [...this.messages, message]; };
  popMessage = () => { this.messages = this.messages.slice(0, -1); };
  replaceMessage = (at, message) => { this.messages = this.messages.with(at, structuredClone(message)); };
  snapshot = (value) => structuredClone(value);
}
class Page extends AbstractChat {
  constructor(id, messages, errors) {
    const transport = new DefaultChatTransport({
      api: `${root}/api/chat`, prepareReconnectToStreamRequest: ({ api, id }) => ({ api: `${api}/${id}/stream?ui=${version}` }),
    });
    super({ id, transport, state: new Kept(messages), onError: (error) => errors.push(error) });
  }
}

async function history(id) {
  const { data } = await (await fetch(`${root}/api/v1/conversations/${id}/messages?format=ai-sdk-ui&ui=${version}`)).json();
  return data;
}
async function until(isSo) {
  while (!await isSo()) await setTimeout(10);
}
/** As it is kept, without what is undefined and what no client is told alike twice. */
const plain = (messages) => JSON.parse(JSON.stringify(messages, (key, value) => (key === 'providerMetadata' || key === 'durationMs' ? undefined : value)));
const outline = (messages) => messages.map(({ id, role, parts }) => [id, role, parts.filter(({ type }) => type === 'text').map(({ text }) => text).join('')]);
const post = (path, body) => fetch(`${root}${path}`, {
  method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
});

// A tool runs, and somebody says more meanwhile.
const errors = [];
const sent = post('/api/v1/conversations/c/chat', { content: 'hold' });
await until(() => existsSync(join(place, 'running')));
// One page comes back before that, one after it.
const early = new Page('c', await history('c'), errors);
const resumedEarly = early.resumeStream();
await until(() => early.status === 'streaming');
const more = await (await post('/api/v1/conversations/c/messages', { content: 'and more' })).json();
const begun = await history('c');
assert.deepEqual(begun.map(({ id }) => id), ['msg_1', 'turn_1', more.message_id]);
const back = new Page('c', begun, errors);
const resumed = back.resumeStream();
await until(() => back.status === 'streaming');
writeFileSync(join(place, 'go'), '');
await Promise.all([sent, resumed, resumedEarly]);
assert.deepEqual(errors, []);
const whole = await history('c');
const said = outline(whole).map(([, , text]) => text);
assert.deepEqual(said, ['hold', 'I hold.', 'and more', said[3]]);
if (version === '5') {
  // It takes one message of a stream: all of the turn, each part once.
  assert.deepEqual(back.messages.map(({ id }) => id), ['msg_1', 'turn_1', more.message_id]);
  assert.equal(outline(back.messages)[1][2], `I hold.${said[3]}`);
  assert.deepEqual(outline(early.messages).map(([id, , text]) => [id, text]), [['msg_1', 'hold'], ['turn_1', `I hold.${said[3]}`]]);
} else {
  assert.deepEqual(plain(back.messages), plain(whole));
  // What was said later has no place there until the history is read again; its answer is the one of the history.
  assert.deepEqual(outline(early.messages), outline(whole).filter(([, role], at) => at === 0 || role === 'assistant'));
}
// Whoever begins with all of it is told nothing more.
await back.resumeStream();
const late = new Page('c', whole, errors);
await late.resumeStream();
assert.deepEqual(plain(late.messages), plain(whole));
assert.deepEqual(errors, []);
console.log('well');
