//! What comes over the wire.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::lenient::{Arguments, Count, OneOrMany, Text};

/// A line of a stream, or a whole reply.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Line<'a> {
    #[serde(borrow, default)]
    pub(super) model: Text<'a>,
    #[serde(borrow, default)]
    pub(super) message: OneOrMany<Message<'a>>,
    #[serde(borrow, default)]
    done: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) done_reason: Text<'a>,
    #[serde(default)]
    pub(super) prompt_eval_count: Count,
    #[serde(default)]
    pub(super) eval_count: Count,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

impl Line<'_> {
    pub(super) fn is_done(&self) -> bool {
        self.done.is_some_and(|raw| raw.get() == "true")
    }
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    pub(super) thinking: Text<'a>,
    #[serde(borrow, default)]
    pub(super) content: Text<'a>,
    #[serde(borrow, default)]
    pub(super) tool_calls: OneOrMany<Call<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Call<'a> {
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) function: OneOrMany<Function<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Function<'a> {
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) arguments: Arguments<'a>,
}
