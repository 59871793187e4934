// A request that the official library sends again by itself, since its server is killed: killed.mjs FOLDER ROOT DOOR. Prints the
// conversation and the answer.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [folder, root, door] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/`));
const OpenAI = require('openai');
// As often as the next server takes to start.
const client = new OpenAI({ baseURL: `${root}/v1`, apiKey: 'any', maxRetries: 20 });

const doors = {
  async completions() {
    const { choices, turnwright } = await client.chat.completions.create({ model: 'p/m', messages: [{ role: 'user', content: 'Go.' }] });
    return { conversation: turnwright.conversation_id, text: choices[0].message.content };
  },

  async responses() {
    const { output, output_text: text, turnwright } = await client.responses.create({ model: 'p/m', input: 'Go.' });
    if (output[0].type !== 'mcp_call') throw new Error(JSON.stringify(output));
    return { conversation: turnwright.conversation_id, text };
  },
};

console.log(JSON.stringify(await doors[door]()));
