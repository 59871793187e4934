//! What is told, as JSON. Pure.

use jiff::Timestamp;
use serde::Serialize;
use sha2::{Digest, Sha256};
use turnwright_engine::{Awaited, TurnWaits, Wait};

/// The event, and the name under which it is told again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    /// The same for the same waits, in every process.
    pub(super) id: String,
    /// JSON.
    pub(super) body: String,
}

/// How an event is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Telling<'a> {
    /// Where people find the page.
    pub(super) base: &'a str,
    /// Whether what was said is told too.
    pub(super) has_content: bool,
}

#[derive(Serialize)]
struct Body<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    timestamp: String,
    data: Data<'a>,
}

#[derive(Serialize)]
struct Data<'a> {
    conversation_id: &'a str,
    turn_id: String,
    user_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    url: String,
    waiting: Vec<Waiting<'a>>,
}

#[derive(Serialize)]
struct Waiting<'a> {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_id: Option<String>,
    reason: &'static str,
    tool: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'a str>,
    asked_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

/// The event of these waits of a turn; `None` where there are none.
pub(super) fn event(turn: &TurnWaits, waits: &[&Wait], telling: Telling<'_>) -> Option<Event> {
    let newest = waits.iter().max_by_key(|wait| wait.seq)?;
    let conversation = turn.conversation.as_str();
    let named = format!("{conversation}\n{}\n{}", newest.seq, newest.at_ms);
    let hash = Sha256::digest(named);
    let start = hash.iter().take(16).fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
    let id = format!("wait_{start:032x}");
    let with_content = |text| telling.has_content.then_some(text);
    let waiting = waits.iter().map(|wait| match &wait.what {
        Awaited::Call(call) => Waiting {
            id: call.call.to_string(),
            approval_id: Some(call.approval.to_string()),
            reason: call.reason.as_str(),
            tool: &call.name,
            source: None,
            rule: call.rule.as_deref(),
            asked_at: timestamp(wait.at_ms),
            arguments: with_content(call.arguments.as_str()),
            message: None,
        },
        Awaited::Question(question) => Waiting {
            id: question.id.to_string(),
            approval_id: None,
            reason: "question",
            tool: &question.name,
            source: Some(&question.source),
            rule: None,
            asked_at: timestamp(wait.at_ms),
            arguments: with_content(question.arguments.as_str()),
            message: with_content(question.ask.message.as_str()),
        },
    });
    let body = Body {
        id: &id,
        kind: "turn.waiting",
        timestamp: timestamp(newest.at_ms),
        data: Data {
            conversation_id: conversation,
            turn_id: turn.turn.to_string(),
            user_id: turn.owner.as_str(),
            title: turn.title.as_deref().and_then(with_content),
            url: format!("{}/#/c/{}", telling.base, encoded(conversation)),
            waiting: waiting.collect(),
        },
    };
    let body = serde_json::to_string(&body).ok()?;
    Some(Event { id, body })
}

fn timestamp(at_ms: u64) -> String {
    let at = i64::try_from(at_ms).ok().and_then(|at_ms| Timestamp::from_millisecond(at_ms).ok());
    at.unwrap_or_default().to_string()
}

/// A name as a part of an address.
fn encoded(text: &str) -> String {
    crate::oidc::encoded(text)
}
