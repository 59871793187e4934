// A conversation as a file: as text to read, or in the forms that APIs take.

import { call, part } from "./api.js";

/** What can be had. @type {Record<string, string>} */
export const forms = {
  markdown: "Markdown", json: "JSON", openai: "OpenAI messages", anthropic: "Anthropic messages", gemini: "Gemini contents", "ai-sdk": "AI SDK messages",
};

/**
 * @param {any} conversation
 * @param {string} form
 */
export async function download(conversation, form) {
  const isText = form === "markdown";
  const { messages, system } = await all(conversation.id, isText || form === "json" ? "" : form);
  /** What is more than a list of messages. @type {Record<string, any>} */
  const whole = {
    json: { ...conversation, messages },
    anthropic: { system, messages },
    gemini: { systemInstruction: system && { parts: [{ text: system }] }, contents: messages },
  };
  const text = isText ? asMarkdown(conversation, messages) : JSON.stringify(whole[form] ?? messages, null, 2);
  const name = (conversation.title ?? conversation.id).replace(/[^\p{L}\p{N} ._-]+/gu, "_").slice(0, 80);
  save(`${name}.${isText ? "md" : form === "json" ? form : `${form}.json`}`, isText ? "text/markdown" : "application/json", text);
}

/**
 * Gives somebody a file.
 * @param {string} name
 * @param {string} type
 * @param {string | Uint8Array} text
 */
export function save(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([/** @type {BlobPart} */ (text)], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/**
 * @param {string} id
 * @param {string} form
 */
async function all(id, form) {
  /** @type {any[]} */
  const messages = [];
  let cursor = "";
  let system;
  do {
    const page = await call(`/conversations/${part(id)}/messages?limit=100${form && `&format=${form}`}${cursor && `&cursor=${part(cursor)}`}`);
    messages.push(...page.data);
    system ??= page.system;
    cursor = page.has_more ? (page.next_cursor ?? "") : "";
  } while (cursor !== "");
  return { messages, system };
}

/**
 * @param {any} conversation
 * @param {any[]} messages
 */
function asMarkdown(conversation, messages) {
  const parts = [`# ${conversation.title ?? "Conversation"}`];
  for (const { role, content, tool_calls, name, is_error, changed_arguments } of [{ role: "system", content: conversation.system_prompt }, ...messages]) {
    if (changed_arguments) parts.push(`A person changed what **${name}** was called with to`, fenced(changed_arguments));
    if (role === "tool") parts.push(`**${name}** ${is_error ? "failed" : "gave"}:`, fenced(content ?? ""));
    else if (content) parts.push(`## ${role === "user" ? "You" : role === "assistant" ? "Answer" : "Instructions"}`, content);
    for (const called of tool_calls ?? []) parts.push(`Called **${called.function.name}** with`, fenced(called.function.arguments));
  }
  return `${parts.join("\n\n")}\n`;
}

/** @param {string} text */
function fenced(text) {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}
