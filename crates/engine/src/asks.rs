//! Asking people from inside a call.
//!
//! A call that can stay open while people think asks by [`Asks`]. One that cannot, since its server forgets it, ends with
//! [`ToolReply::Asks`] and is made again with the answers. Both are stored before anybody is asked.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::Instant;
use turnwright_core::{AnswerAction, Elicitation, Sampled};

use crate::ToolOutput;

/// Asks people while a call runs and holds its connection.
#[async_trait]
pub trait Asks: Send + Sync + Debug {
    /// Asks, and waits for the answer, at most as long as the policy says. Dropping it takes the question back. `None` where
    /// nobody answers any more, since the call is over or its driver ended: then nothing may be said in anybody's name.
    async fn ask(&self, ask: Elicitation) -> Option<Reply>;

    /// Whose call it is: the same for all calls of a conversation, `None` where nobody can be asked.
    fn whose(&self) -> Option<&str>;

    /// Which user's it is; `None` where nobody can be asked.
    fn by(&self) -> Option<&str>;
}

/// Keeps that a call goes on by itself at its source.
#[async_trait]
pub trait Tasks: Send + Sync + Debug {
    /// The source accepted the call as a task: it goes on there whatever becomes of us. Returns once that is stored; then the
    /// call is never made again, and whoever drives next asks for the task. Said again of a task that was taken up
    /// ([`crate::CallContext::task`]), once its source has said that it goes on: so that waiting for it is no failure.
    async fn accepted(&self, task: Value);
}

/// What a source wanted people to open in a browser is done there (MCP `notifications/elicitation/complete`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completed {
    /// The tool source's name.
    pub source: String,
    /// The source's own name for the question.
    pub key: String,
}

/// What people answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// What.
    pub action: AnswerAction,
    /// The values, where a form was accepted.
    pub content: Option<Map<String, Value>>,
    /// What the model said, where that was asked and allowed.
    pub sampled: Option<Arc<Sampled>>,
    /// The rule that answered, or why nobody was asked.
    pub reason: Option<String>,
}

impl Reply {
    /// An answer without values.
    pub fn of(action: AnswerAction) -> Self {
        Self { action, content: None, sampled: None, reason: None }
    }

    /// An acceptance with these values.
    pub fn accept(content: Option<Map<String, Value>>) -> Self {
        Self { content, ..Self::of(AnswerAction::Accept) }
    }
}

/// Nobody can be asked: every question is declined.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

#[async_trait]
impl Asks for Nobody {
    async fn ask(&self, _ask: Elicitation) -> Option<Reply> {
        Some(Reply::of(AnswerAction::Decline))
    }

    fn whose(&self) -> Option<&str> {
        None
    }

    fn by(&self) -> Option<&str> {
        None
    }
}

#[async_trait]
impl Tasks for Nobody {
    async fn accepted(&self, _task: Value) {}
}

/// How a call of a tool that may ask came to rest.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolReply {
    /// It is done.
    Done(ToolOutput),
    /// It is over until people have answered, and is made again then with what they said.
    Asks {
        /// The questions; at least one.
        asks: Vec<Elicitation>,
        /// What the source needs to make it again, see [`crate::CallContext::resume`].
        resume: Value,
    },
    /// The tool is not what it was when it was offered. It was not called.
    Changed,
}

/// Lets the limits of a call stand still while people are asked.
#[derive(Debug, Clone)]
pub struct Standstill {
    open: Arc<watch::Sender<usize>>,
}

impl Default for Standstill {
    fn default() -> Self {
        Self { open: Arc::new(watch::Sender::new(0)) }
    }
}

impl Standstill {
    /// Limits stand still until this is dropped.
    #[must_use]
    pub fn hold(&self) -> Held {
        self.open.send_modify(|open| *open = open.saturating_add(1));
        Held(self.clone())
    }

    /// Waits until so much time has run, without that in which it stood still.
    pub async fn run_out(&self, limit: Duration) {
        let mut open = self.open.subscribe();
        let mut left = limit;
        loop {
            // The sender is here, so that this never fails.
            let _ = open.wait_for(|open| *open == 0).await.map(drop);
            let begun = Instant::now();
            tokio::select! {
                () = tokio::time::sleep(left) => return,
                _ = open.wait_for(|open| *open > 0) => left = left.saturating_sub(begun.elapsed()),
            }
        }
    }
}

/// See [`Standstill::hold`].
#[derive(Debug)]
pub struct Held(Standstill);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.open.send_modify(|open| *open = open.saturating_sub(1));
    }
}
