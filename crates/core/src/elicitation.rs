//! What a running tool asks before it goes on, and what is answered.
//!
//! MCP calls it elicitation. Two ways lead there. Where the tool's call is over until it is made again with the answers, the
//! turn parks and the question outlives every process. Where the call stays open, the question ends with it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{CallId, ElicitationId, Sampling};

/// A call asks people for something. Its questions are numbered over all that the call asks, in this order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Elicited {
    /// Which call.
    pub call: CallId,
    /// Who asks: the tool source's name.
    pub source: String,
    /// The questions; at least one.
    pub asks: Vec<Elicitation>,
    /// What the call does meanwhile.
    pub waits: Waits,
}

/// One question of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Elicitation {
    /// The source's own name for it, where it asks several at once; empty where it gave none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// What it says to the person.
    pub message: String,
    /// What it wants.
    pub wants: Wants,
}

/// What a question wants of a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wants {
    /// Values for the fields of a form, see [`crate::Form`].
    Form {
        /// The fields, as a flat JSON Schema of an object.
        schema: Value,
    },
    /// That an address is opened in a browser. Agreeing says nothing of what came of it there.
    Url {
        /// The address.
        url: String,
    },
    /// That a model is asked, which costs the person something. Accepting it allows that.
    Sampling {
        /// What the model is to be asked.
        request: Box<Sampling>,
    },
}

/// What a call does while its questions are open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waits {
    /// It runs, and holds its connection. The questions are closed with it, at the latest with its driver.
    Open {
        /// Until when, in milliseconds since 1970 UTC. Shown to people; decides nothing.
        until_ms: u64,
    },
    /// It is over. It is made again with the answers once all are there.
    Parked {
        /// What its source needs for that, in the source's own form.
        resume: Value,
    },
}

/// The one answer to a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    /// Which question.
    pub question: ElicitationId,
    /// What.
    pub action: AnswerAction,
    /// The values, where a form was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Map<String, Value>>,
    /// By whom.
    pub by: AnsweredBy,
    /// The rule that answered, or why nobody was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The choices about a question (MCP `ElicitResult.action`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerAction {
    /// Here it is.
    Accept,
    /// No.
    Decline,
    /// Neither yes nor no.
    Cancel,
}

impl AnswerAction {
    /// The word of the HTTP API, the command line and the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
        }
    }
}

/// Who answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnsweredBy {
    /// A person.
    Person,
    /// Nobody could be asked.
    Nobody,
    /// Nobody did in time.
    Deadline,
    /// Whoever asked does not want to know any more.
    Asker,
    /// The policy, or the budget of whoever asked.
    Policy,
}

impl AnsweredBy {
    /// Its word in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Nobody => "nobody",
            Self::Deadline => "deadline",
            Self::Asker => "asker",
            Self::Policy => "policy",
        }
    }
}
