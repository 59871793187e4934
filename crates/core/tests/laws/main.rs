//! What the conversation model promises, a sentence each.
#![expect(clippy::expect_used, clippy::panic, reason = "a helper that cannot go on stops its test")]

mod asking;
mod assembler;
mod cancel;
mod compaction;
mod context;
mod entry;
mod failures;
mod form;
mod id;
mod journal;
mod loops;
mod planning;
mod prompt;
mod properties;
mod steps;
mod summaries;
mod table;
mod told;
