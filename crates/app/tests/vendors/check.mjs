// Hands exported messages to the AI SDK: check.mjs FOLDER ai-sdk|ai-sdk-ui FILE.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [folder, form, path] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/`));
const { modelMessageSchema, validateUIMessages, convertToModelMessages } = require('ai');

const messages = JSON.parse(readFileSync(path, 'utf8'));
if (messages.length === 0) throw new Error('there are no messages');
if (form === 'ai-sdk') {
  messages.forEach((message) => modelMessageSchema.parse(message));
} else {
  const valid = await validateUIMessages({ messages });
  (await convertToModelMessages(valid)).forEach((message) => modelMessageSchema.parse(message));
}
console.log('accepted');
