// Reads the UI message stream with one version of the library: ui_versions.mjs FOLDER ROOT PLACE VERSION. What is not as it should
// be throws.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [folder, root, , version] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/`));
const name = version === '7' ? 'ai' : `ai-${version}`;
const { DefaultChatTransport, readUIMessageStream } = require(name);
assert.equal(require(`${name}/package.json`).version.split('.')[0], version);
const transport = new DefaultChatTransport({ api: `${root}/api/chat?ui=${version}` });

/** The parts of what comes of a message, without what is no part of a conversation; the reader throws at what it does not know. */
async function parts(chatId) {
  const messages = [{ id: 'u1', role: 'user', parts: [{ type: 'text', text: chatId }] }];
  const stream = await transport.sendMessages({ chatId, messages, trigger: 'submit-message', messageId: undefined, abortSignal: undefined });
  let message;
  for await (message of readUIMessageStream({ stream, onError: (error) => { throw error; }, terminateOnError: true }));
  return message.parts.filter(({ type }) => !type.startsWith('data-'));
}

const thought = await parts('think');
assert.deepEqual(thought.map(({ type, text }) => [type, text]), [
  ['step-start', undefined], ['reasoning', 'Let me see. It is clear.'], ['text', 'Clear.'],
]);

const looked = await parts('look');
assert.deepEqual(looked.map(({ type }) => type), ['step-start', 'text', 'dynamic-tool', 'step-start', 'text']);
assert.deepEqual([looked[2].toolName, looked[2].state, looked[2].input], ['filesystem__read', 'output-available', { path: 'a.txt' }]);
assert.match(looked[2].output.content[0].text, /hello file/);

const written = await parts('write');
const call = written.find(({ type }) => type === 'dynamic-tool');
if (version === '5') {
  assert.equal(call.state, 'output-error');
  assert.match(written.at(-1).text, /^It said: /, 'the model is told that nobody can be asked');
} else {
  assert.equal(call.state, 'approval-requested');
  assert.equal(written.at(-1), call);
}
console.log('well');
