// The message that a turn is, put together from the chunks of the AI SDK UI message stream.

import { plain } from "./exact.js";

/**
 * @typedef {{kind: "text" | "reasoning", key: string, text: string, isDone: boolean, rev: number}} TextPart
 * @typedef {{id: string, reason: string, isAutomatic: boolean, isApproved: boolean | null, answerReason: string}} Approval
 * @typedef {"writing" | "ready" | "asking" | "decided" | "done" | "failed" | "denied" | "unrun"} CallState
 * @typedef {object} CallPart
 * @property {"call"} kind
 * @property {string} key the call's id
 * @property {string} name
 * @property {string} server
 * @property {string} tool
 * @property {string} title
 * @property {string} inputText
 * @property {any} input with numbers as they are written
 * @property {any} changed what a person put in its place, which is what ran
 * @property {CallState} state
 * @property {Approval | null} approval
 * @property {any} output
 * @property {string} errorText
 * @property {number | null} durationMs
 * @property {{progress: number, total: number | null, message: string} | null} progress
 * @property {number} rev
 * @typedef {{kind: "question", key: string, data: any, rev: number}} QuestionPart
 * @typedef {{kind: "notice", key: string, level: string, text: string, rev: number}} NoticePart
 * @typedef {{kind: "context", key: string, parts: any[], rev: number}} ContextListPart
 * @typedef {{kind: "said", key: string, content: any[], rev: number}} SaidPart
 * @typedef {{kind: "step", key: string, rev: number}} StepPart
 * @typedef {{kind: "file", key: string, block: any, rev: number}} FilePart
 * @typedef {TextPart | CallPart | QuestionPart | FilePart | NoticePart | ContextListPart | SaidPart | StepPart} Part
 * @typedef {object} Message
 * @property {Part[]} parts
 * @property {string} model
 * @property {string} createdAt
 * @property {any} usage
 * @property {string} errorText
 * @property {boolean} isStopped
 * @property {string} finish
 * @property {boolean} isOver
 * @property {number} steps
 */

/** @returns {Message} */
export function emptyMessage() {
  return {
    parts: [], model: "", createdAt: "", usage: null, errorText: "", isStopped: false, finish: "", isOver: false, steps: 0,
  };
}

/** How far a call is, so that what is told again can be compared. */
const CALL_STATES = ["writing", "ready", "asking", "decided", "done", "failed", "denied", "unrun"];

/**
 * Whether a message that is put together anew says as much as the one that is shown.
 * @param {Message} message
 * @param {Message} shown
 */
export function isAsFar(message, shown) {
  if (message.isOver) return true;
  /** @param {Part | undefined} part */
  const reached = (part) => part === undefined ? -1 : part.kind === "call" ? CALL_STATES.indexOf(part.state)
    : part.kind === "text" || part.kind === "reasoning" ? part.text.length : 0;
  // What is told only while it holds, such as what is waited for, is not told again.
  return shown.parts.every((part) => part.kind === "notice" || reached(message.parts.findLast(({ key }) => key === part.key)) >= reached(part));
}

/**
 * Takes a chunk. One of a kind that is not known is left alone: a newer server may say more.
 * @param {Message} message
 * @param {any} told
 */
export function take(message, told) {
  // All numbers are to reckon with, but for those that somebody is to decide about.
  const chunk = told.delta === undefined ? plain(told) : told;
  switch (chunk.type) {
    case "start":
      message.model = chunk.messageMetadata?.model ?? "";
      message.createdAt = chunk.messageMetadata?.createdAt ?? "";
      break;
    case "start-step":
      message.steps += 1;
      message.parts.push({ kind: "step", key: `step${message.steps}`, rev: 0 });
      break;
    case "reset-step": {
      const last = message.parts.findLastIndex((part) => part.kind === "step");
      // What a person said meanwhile is not the model's to take back.
      message.parts = message.parts.filter((part, at) => at <= last || part.kind === "said");
      break;
    }
    case "text-start":
    case "reasoning-start":
      message.parts.push({
        kind: chunk.type === "text-start" ? "text" : "reasoning", key: chunk.id, text: "", isDone: false, rev: 0,
      });
      break;
    case "text-delta":
    case "reasoning-delta": {
      const part = textOf(message, chunk.id);
      if (part) {
        part.text += chunk.delta;
        part.rev += 1;
      }
      break;
    }
    case "text-end":
    case "reasoning-end": {
      const part = textOf(message, chunk.id);
      if (part) {
        part.isDone = true;
        part.rev += 1;
      }
      break;
    }
    case "file":
      message.parts.push({
        kind: "file", key: `file${message.parts.length}`, rev: 0,
        block: { type: chunk.mediaType.split("/")[0], mimeType: chunk.mediaType, data: chunk.url.split(",")[1] },
      });
      break;
    case "data-elicitation":
      question(message, chunk);
      break;
    case "data-usage":
      message.usage = chunk.data;
      break;
    case "data-notice":
      message.parts.push({
        kind: "notice", key: `notice${message.parts.length}`, level: chunk.data.level, text: chunk.data.text, rev: 0,
      });
      break;
    case "data-context":
      message.parts.push({ kind: "context", key: `context${message.parts.length}`, parts: chunk.data.parts, rev: 0 });
      break;
    case "steering-message":
      // A text alone is a part as it is a block.
      message.parts.push({ kind: "said", key: chunk.id, content: chunk.content ?? chunk.parts, rev: 0 });
      break;
    case "error":
      message.errorText = chunk.errorText;
      message.isOver = true;
      break;
    case "abort":
      message.isStopped = true;
      message.isOver = true;
      break;
    case "finish":
      message.finish = chunk.finishReason ?? "";
      message.isOver = true;
      break;
    default:
      if (String(chunk.type).startsWith("tool-")) takeOfCall(message, chunk, told);
      else if (chunk.type === "data-progress") progress(message, chunk.data);
  }
}

/**
 * @param {Message} message
 * @param {any} chunk
 * @param {any} told the same with numbers as they are written
 */
function takeOfCall(message, chunk, told) {
  const id = chunk.toolCallId ?? callOfApproval(chunk.approvalId);
  const call = callOf(message, id) ?? (chunk.toolName ? newCall(message, id) : null);
  if (!call) return;
  call.rev += 1;
  call.name = chunk.toolName ?? call.name;
  call.title = chunk.title ?? call.title;
  call.server = chunk.toolMetadata?.server ?? call.server;
  call.tool = chunk.toolMetadata?.tool ?? call.tool;
  call.changed = told.toolMetadata?.changedArguments ?? call.changed;
  call.durationMs = chunk.toolMetadata?.durationMs ?? call.durationMs;
  switch (chunk.type) {
    case "tool-input-delta":
      call.inputText += chunk.inputTextDelta;
      break;
    case "tool-input-available":
      call.input = told.input;
      call.state = "ready";
      break;
    case "tool-input-error":
      call.inputText = typeof chunk.input === "string" ? chunk.input : JSON.stringify(chunk.input);
      call.errorText = chunk.errorText;
      call.state = "failed";
      break;
    case "tool-approval-request":
      call.approval = {
        id: chunk.approvalId, reason: chunk.reason ?? "", isAutomatic: chunk.isAutomatic === true, isApproved: null,
        answerReason: "",
      };
      if (!call.approval.isAutomatic) call.state = "asking";
      break;
    case "tool-approval-response":
      if (call.approval) {
        call.approval.isApproved = chunk.approved;
        call.approval.answerReason = chunk.reason ?? "";
      }
      call.state = "decided";
      break;
    case "tool-output-available":
      call.output = chunk.output;
      call.state = chunk.output?.isError ? "failed" : "done";
      call.progress = null;
      break;
    case "tool-output-error":
      call.errorText = chunk.errorText;
      // Nobody had decided about it yet.
      call.state = call.state === "asking" ? "unrun" : "failed";
      call.progress = null;
      break;
    case "tool-output-denied":
      call.state = "denied";
      break;
  }
}

/**
 * @param {Message} message
 * @param {string} id
 * @returns {CallPart}
 */
function newCall(message, id) {
  /** @type {CallPart} */
  const call = {
    kind: "call", key: id, name: "", server: "", tool: "", title: "", inputText: "", input: undefined, changed: undefined, state: "writing",
    approval: null, output: null, errorText: "", durationMs: null, progress: null, rev: 0,
  };
  message.parts.push(call);
  return call;
}

/**
 * @param {Message} message
 * @param {any} data
 */
function progress(message, data) {
  const call = callOf(message, data.callId);
  if (!call) return;
  call.progress = { progress: data.progress, total: data.total ?? null, message: data.message ?? "" };
  call.rev += 1;
}

/**
 * @param {Message} message
 * @param {any} chunk
 */
function question(message, chunk) {
  const known = message.parts.find((part) => part.kind === "question" && part.key === chunk.id);
  if (known?.kind === "question") {
    known.data = chunk.data;
    known.rev += 1;
  } else {
    message.parts.push({ kind: "question", key: chunk.id, data: chunk.data, rev: 0 });
  }
}

/**
 * @param {Message} message
 * @param {string} id
 */
function textOf(message, id) {
  const part = message.parts.findLast((part) => part.key === id);
  return part?.kind === "text" || part?.kind === "reasoning" ? part : null;
}

/**
 * @param {Message} message
 * @param {string | undefined} id
 */
function callOf(message, id) {
  const part = message.parts.findLast((part) => part.kind === "call" && part.key === id);
  return part?.kind === "call" ? part : null;
}

/** @param {string | undefined} approval */
const callOfApproval = (approval) => approval?.replace(/^appr_(\d+_\d+).*$/, "call_$1");
