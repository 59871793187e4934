//! Calls that wait for a person, and the answer.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa::openapi::{Object, OneOf, Schema, Type};

use crate::{Approve, Question, Remember, Rule, RuleText};

/// A call that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Call {
    /// Its name, such as `call_13_0`; the question's, such as `question_13_0_0`, where the reason is `question`.
    pub id: String,
    /// The question about it, such as `appr_13_0`, and `appr_13_0-2` where it is asked about again; for whoever decides. None
    /// where the reason is `question`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
    /// Its conversation, where the list is over all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    /// The tool's name.
    pub name: String,
    /// The arguments that it would run with, JSON text.
    pub arguments: String,
    /// `approval | unknown_outcome | definition_changed | client_tool | loop | question`.
    pub reason: String,
    /// The rule that asks; null where none does.
    pub rule: Option<String>,
    /// The rule that "always" would store, where it waits to be allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<RuleText>,
    /// What it asks, where the reason is `question`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
}

/// An answer to the question whether a call may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionRequest {
    /// What is decided.
    pub decision: DecisionVerdict,
    /// The question that it answers, as the waiting call names it: where another is asked by then, it is refused (409). Whatever
    /// is asked by then is answered where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
    /// The arguments to run with instead, JSON text or an object.
    #[serde(default, deserialize_with = "text_or_json", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = text_or_object)]
    pub arguments: Option<String>,
    /// What to remember of it, so that the like is decided by itself from then on: a scope, or a scope and a rule.
    #[serde(default, deserialize_with = "crate::rule::scope_or_object", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = crate::rule::scope_or_remember)]
    pub remember: Option<Remember>,
    /// Why, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 10_000)]
    pub reason: Option<String>,
}

/// The choices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DecisionVerdict {
    /// It may run.
    Allow,
    /// It may not.
    Deny,
    /// Its outcome was unknown: it happened.
    Happened,
    /// Its outcome was unknown: run it again.
    RunAgain,
    /// Its outcome was unknown: go on without it.
    Skip,
}

/// What a decision is answered with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DecisionAnswer {
    /// The call.
    pub id: String,
    /// What was decided.
    pub decision: DecisionVerdict,
    /// The rule that was stored with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remembered: Option<Rule>,
    /// Other calls of the turn that waited, which this rule decided about at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<AlsoDecided>,
}

/// A call that a new rule decided about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AlsoDecided {
    /// The call.
    pub id: String,
    /// What was decided.
    pub decision: DecisionVerdict,
}

/// A call that a person makes by hand, outside of any conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolCallRequest {
    /// The tool's qualified name, such as `filesystem__read`.
    pub name: String,
    /// The arguments, JSON text or an object; none where not given.
    #[serde(default, deserialize_with = "text_or_json", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = text_or_object)]
    pub arguments: Option<String>,
    /// What may run; `read-only` where not given. Whoever asks is there: `ask` is not known here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve: Option<Approve>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToolCallAnswer {
    /// `success | denied`, or the kind of failure, such as `invalid_arguments` or `timeout`.
    pub outcome: String,
    /// Whether it failed, or the tool says so.
    pub is_error: bool,
    /// What it gave, as MCP writes content.
    #[schema(value_type = Vec<Object>)]
    pub content: Vec<Value>,
    /// What it gave as data; null where it gave none.
    pub structured_content: Option<Value>,
    /// How long it took, in milliseconds; null where it did not run.
    pub duration_ms: Option<u64>,
}

pub(crate) fn text_or_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    // An object stays the text that it is: read as one, a number of more digits than fit would be another, and nobody would tell.
    let Some(raw) = Option::<Box<RawValue>>::deserialize(deserializer)? else { return Ok(None) };
    let text = raw.get();
    if text.starts_with('"') {
        serde_json::from_str(text).map(Some).map_err(D::Error::custom)
    } else {
        Ok(Some(text.to_owned()))
    }
}

pub(crate) fn text_or_object() -> Schema {
    let object = Object::builder().schema_type(Type::Object).description(Some("The arguments."));
    let text = Object::builder().schema_type(Type::String).description(Some("The arguments as JSON text."));
    OneOf::builder().item(object).item(text).item(Object::builder().schema_type(Type::Null)).build().into()
}

#[cfg(test)]
mod tests {
    use super::{DecisionRequest, DecisionVerdict};

    #[test]
    fn changed_arguments_may_be_text_or_an_object() {
        let expected = DecisionRequest {
            decision: DecisionVerdict::Allow,
            approval_id: None,
            arguments: Some(r#"{"b":1,"a":2}"#.to_owned()),
            remember: None,
            reason: None,
        };
        for body in
            [r#"{"decision":"allow","arguments":"{\"b\":1,\"a\":2}"}"#, r#"{"decision":"allow","arguments":{"b":1,"a":2}}"#]
        {
            assert_eq!(serde_json::from_str::<DecisionRequest>(body).unwrap(), expected);
        }
    }

    #[test]
    fn numbers_of_changed_arguments_stay_as_they_were_written() {
        let arguments = r#"{"id":123456789012345678901234567890}"#;
        let body = format!(r#"{{"decision":"allow","arguments":{arguments}}}"#);
        let read = |body: &str| serde_json::from_str::<DecisionRequest>(body).unwrap().arguments;
        assert_eq!(read(&body).as_deref(), Some(arguments));
        assert_eq!(read(r#"{"decision":"allow","arguments":null}"#), None);
    }
}
