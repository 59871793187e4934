//! The terminal chat: streamed text, visible tool calls, approval prompts.
