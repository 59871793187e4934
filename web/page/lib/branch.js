// Branches: a conversation of what was said before a message. The original stays as it is.

import { call, fresh, part } from "./api.js";
import { go, loadConversations, tell, use } from "./app.js";

/**
 * Says something else in place of a message, or asks another model, in a branch.
 * @param {import("./conversation.js").OpenConversation} conversation
 * @param {string} at the message
 * @param {any} content
 * @param {string | null} model
 */
export async function branch(conversation, at, content, model) {
  const title = conversation.info.value?.title;
  const made = await call(`${conversation.path}/fork`, { body: { at, ...(title && { title: branchOf(title) }) }, key: fresh() });
  const text = typeof content === "string" ? content : content.map((/** @type {any} */ block) => block.text ?? "").join("\n");
  use(made).send(text, content, model ? { model } : {});
  tell("This is a branch. The original is kept as it was.", () => go(conversation.id), 8_000, "Go back to it");
}

/** Copies a whole conversation. @param {any} conversation */
export async function copy(conversation) {
  const title = conversation.title;
  const made = await call(`/conversations/${part(conversation.id)}/fork`, { body: title ? { title: branchOf(title) } : {}, key: fresh() });
  void loadConversations();
  go(made.id);
}

/** @param {string} title */
function branchOf(title) {
  const [, name, number] = title.match(/^(.*?) \(branch(?: (\d+))?\)$/) ?? [null, title, "0"];
  const end = ` (branch${number === "0" ? "" : ` ${Number(number ?? 1) + 1}`})`;
  return [...name].slice(0, 200 - end.length).join("") + end;
}
