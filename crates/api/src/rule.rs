//! Approval rules: what is remembered of decisions, and what they would make of a call.

use std::collections::BTreeMap;

use serde::de::Unexpected;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::{Object, OneOf, Ref, Schema, Type};

use crate::Approve;

/// What a rule does with the calls that it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum RuleAction {
    /// They run.
    Allow,
    /// A person is asked.
    Ask,
    /// They do not run.
    Deny,
}

/// How far a rule reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum RuleScope {
    /// One turn.
    Turn,
    /// One conversation.
    Conversation,
    /// The conversations of one user.
    User,
    /// All conversations.
    Everyone,
    /// All conversations, by the configuration file.
    Configuration,
}

/// What a rule says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RuleText {
    /// A glob over qualified tool names.
    pub tool: String,
    /// What must hold of arguments, by name: a glob, or an object of `glob`, `below`, `min`, `max`, `one_of`, `program`.
    #[serde(default)]
    pub when: BTreeMap<String, Value>,
    /// What happens to the calls that match.
    pub action: RuleAction,
    /// The same in words.
    #[serde(default)]
    pub text: String,
}

/// A rule that holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Rule {
    /// Its name, such as `rule_3f9a0c41d2`; `configuration_1` for the first of the configuration.
    pub id: String,
    /// How far it reaches.
    pub scope: RuleScope,
    /// Its conversation, with the scopes turn and conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    /// Its turn, with the scope turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// What it says.
    #[serde(flatten)]
    pub rule: RuleText,
    /// When it was remembered, RFC 3339; null for those of the configuration.
    pub created_at: Option<String>,
}

/// A rule to remember.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleRequest {
    /// A glob over qualified tool names.
    #[schema(max_length = 4096)]
    pub tool: String,
    /// What must hold of up to 64 arguments: of each a glob of up to 4,096 bytes, or an object whose `one_of`, `below` and `program` have up to
    /// 1,000 values. All names, folders and values are up to 262,144 bytes as JSON.
    #[serde(default)]
    pub when: BTreeMap<String, Value>,
    /// What happens to the calls that match.
    pub action: RuleAction,
    /// How far it reaches: `turn` (the open one), `conversation`, `user` or `everyone`.
    #[serde(deserialize_with = "remembered_scope")]
    pub scope: RuleScope,
    /// Its conversation, with the scopes turn and conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
}

/// What to remember of a decision; the scope alone stands for the rule that is proposed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Remember {
    /// How far it reaches: `turn`, `conversation`, `user` or `everyone`.
    #[serde(deserialize_with = "remembered_scope")]
    pub scope: RuleScope,
    /// A glob over tools, the call's own where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 4096)]
    pub tool: Option<String>,
    /// What must hold of arguments; what is proposed for the call where neither this nor `tool` is given. As
    /// large as that of a rule which is added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<BTreeMap<String, Value>>,
}

/// A call to be explained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainRequest {
    /// The tool's qualified name.
    pub tool: String,
    /// Its arguments, JSON text or an object; none where left out.
    #[serde(default, deserialize_with = "crate::call::text_or_json", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = crate::call::text_or_object)]
    pub arguments: Option<String>,
    /// The conversation in which it would be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    /// The approve mode; the conversation's where left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve: Option<Approve>,
}

/// What would happen to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ExplainedAction {
    /// It runs.
    Allow,
    /// A person is asked.
    Ask,
    /// It does not run.
    Deny,
    /// It does not fit the tool; nobody is asked.
    Refuse,
}

/// A rule and what it says of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MatchedRule {
    /// What it does.
    pub action: RuleAction,
    /// Which rule.
    pub rule: String,
}

/// What would happen to a call, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// What happens.
    pub action: ExplainedAction,
    /// The rule or the approve mode that decides; null where it is refused.
    pub rule: Option<String>,
    /// Why it is refused.
    pub problem: Option<String>,
    /// The other rules that match, the strongest first.
    pub others: Vec<MatchedRule>,
    /// The rule that "always" would store.
    pub always: RuleText,
}

/// A scope; what is none is told with those that can be remembered.
fn remembered_scope<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RuleScope, D::Error> {
    let name = String::deserialize(deserializer)?;
    let scope = serde_json::from_value(Value::String(name.clone()));
    scope.map_err(|_| {
        serde::de::Error::custom(format_args!("`{name}` is no scope; there are `turn`, `conversation`, `user` and `everyone`"))
    })
}

/// The scope alone, or an object. Once is what a decision without it holds for.
pub(crate) fn scope_or_object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Remember>, D::Error> {
    match Option::<Value>::deserialize(deserializer)? {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(scope)) if scope == "once" => Ok(None),
        Some(scope @ Value::String(_)) => {
            let scope = remembered_scope(scope).map_err(serde::de::Error::custom)?;
            Ok(Some(Remember { scope, tool: None, when: None }))
        }
        Some(object @ Value::Object(_)) => serde_json::from_value(object).map(Some).map_err(serde::de::Error::custom),
        Some(other) => {
            let kind = match &other {
                Value::Bool(truth) => Unexpected::Bool(*truth),
                Value::Number(_) => Unexpected::Other("a number"),
                _ => Unexpected::Seq,
            };
            Err(serde::de::Error::invalid_type(
                kind,
                &"`once`, a scope (`turn`, `conversation`, `user`, `everyone`) or an object",
            ))
        }
    }
}

pub(crate) fn scope_or_remember() -> Schema {
    OneOf::builder()
        .item(Object::builder().schema_type(Type::String).enum_values(Some(["once"])))
        .item(Ref::from_schema_name("RuleScope"))
        .item(Ref::from_schema_name("Remember"))
        .item(Object::builder().schema_type(Type::Null))
        .description(Some("What to remember of it; nothing where it is left out, or `once`."))
        .build()
        .into()
}
