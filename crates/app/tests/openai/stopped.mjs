// A turn that is stopped while a deaf tool runs, as the official library sees it: stopped.mjs FOLDER ROOT OTHER_ROOT PLACE DOOR.
// What is not as it should be throws.
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

const [folder, root, otherRoot, place, door] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/`));
const OpenAI = require('openai');
const client = new OpenAI({ baseURL: `${root}/v1`, apiKey: 'any' });

/** Stops the turn by the other server, once its command runs. */
async function stop() {
  while (!existsSync(join(place, 'running'))) await setTimeout(10);
  const { data: [{ id: conversation }] } = await (await fetch(`${otherRoot}/api/v1/conversations`)).json();
  const url = `${otherRoot}/api/v1/conversations/${conversation}/cancel`;
  const stopped = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' });
  assert.equal(stopped.status, 202, await stopped.text());
}

const letGo = () => writeFileSync(join(place, 'go'), '');
let told = 0;
const stopping = stop();

const doors = {
  async completions() {
    const runner = client.chat.completions.stream({ model: 'p/m', messages: [{ role: 'user', content: 'Go.' }] });
    runner.on('chunk', ({ turnwright }) => {
      if (turnwright?.is_stopping) {
        told += 1;
        letGo();
      }
    });
    const whole = await runner.finalChatCompletion();
    assert.equal(whole.choices[0].finish_reason, 'stop');
  },

  async responses() {
    const stream = client.responses.stream({ model: 'p/m', input: 'Go.' });
    let last;
    for await (const event of stream) {
      last = event;
      if (event.type === 'response.in_progress' && event.response.turnwright.is_stopping) {
        told += 1;
        assert.equal(event.response.output.at(-1).status, 'in_progress');
        letGo();
      }
    }
    assert.equal(last.response.status, 'cancelled');
    assert.equal(last.response.output.at(-1).type, 'mcp_call');
    assert.ok(!last.response.turnwright.is_stopping);
  },
};

await doors[door]();
await stopping;
assert.equal(told, 1);
console.log('well');
