//! One rule: its written form, and that form ready for use.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::glob::strange_in_names;
use super::predicate::{Around, Habits, Predicate, compile};
use super::{Action, Match, PredicateText, Remembered, Scope};
use crate::Glob;

/// A rule as it is written in the configuration (`[[approval.rules]]`), or remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleText {
    /// A glob over qualified tool names, such as `filesystem__write*`.
    pub tool: String,
    /// What must hold of arguments, by name, or by JSON pointer where the name begins with `/`. All must hold.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub when: BTreeMap<String, PredicateText>,
    /// What happens to the calls that match.
    pub action: Action,
}

/// A rule that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("approval {rule}: `{at}` {reason}")]
pub struct RuleError {
    /// Which rule: `rule 2` of the configuration, or a remembered one by name.
    pub rule: String,
    /// Where in it: `tool`, `when.path.below`.
    pub at: String,
    /// What is wrong there, and what would be right.
    pub reason: String,
}

/// A rule, ready for use.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) text: RuleText,
    pub(super) origin: Origin,
    tool: Glob,
    when: Vec<(String, Predicate)>,
}

/// Where a rule comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    /// The configuration, by place from 1.
    Configured(usize),
    /// A person.
    Remembered(String, Scope),
}

impl Rule {
    pub(super) fn configured(text: RuleText, number: usize) -> Result<Self, RuleError> {
        let wrong = text.names_no_tool();
        let rule = Self::read(text, Origin::Configured(number))?;
        match wrong {
            Some(reason) => Err(RuleError { rule: format!("rule {number}"), at: "tool".into(), reason }),
            None => Ok(rule),
        }
    }

    pub(super) fn remembered(remembered: &Remembered) -> Result<Self, RuleError> {
        Self::read(remembered.rule.clone(), Origin::Remembered(remembered.id.clone(), remembered.reach.scope()))
    }

    fn read(text: RuleText, origin: Origin) -> Result<Self, RuleError> {
        let name = match &origin {
            Origin::Configured(number) => format!("rule {number}"),
            Origin::Remembered(id, _) => format!("rule {id}"),
        };
        let error = |at: String, reason: String| RuleError { rule: name.clone(), at, reason };
        if text.tool.is_empty() {
            return Err(error("tool".into(), "is empty, so that it could never match; `*` means all tools".into()));
        }
        let tool = compile("tool", &text.tool).map_err(|_| {
            error("tool".into(), format!("is `{}`, which is not a glob; `filesystem__write*` would be one", text.tool))
        })?;
        let when = text.when.iter().map(|(key, predicate)| {
            if !can_point(key) {
                let what =
                    "is no JSON pointer, so that it could never match: in one, `~` is written `~0`, and `/` in a name `~1`";
                return Err(error(format!("when.{key}"), what.to_owned()));
            }
            let predicate = Predicate::read(predicate).map_err(|wrong| {
                let at = if wrong.at.is_empty() { format!("when.{key}") } else { format!("when.{key}.{}", wrong.at) };
                error(at, wrong.what)
            })?;
            Ok((key.clone(), predicate))
        });
        let when = when.collect::<Result<_, RuleError>>()?;
        Ok(Self { text, origin, tool, when })
    }

    /// Whether it decides about a call: one that allows where that is certain, one that asks or denies where it may be.
    pub(super) fn matches(&self, name: &str, arguments: &Value, habits: Habits<'_>) -> bool {
        if !self.tool.is_match(name) {
            return false;
        }
        let around = Around { action: self.text.action, arguments, habits };
        let all = self.when.iter().map(|(key, predicate)| predicate.matches(key, around)).fold(Match::Yes, Match::and);
        match (self.text.action, all) {
            (_, Match::Yes) | (Action::Ask | Action::Deny, Match::Unknown) => true,
            (_, Match::No) | (Action::Allow, Match::Unknown) => false,
        }
    }

    pub(super) fn is_remembered(&self) -> bool {
        matches!(self.origin, Origin::Remembered(..))
    }
}

/// Whether the name of an argument is no pointer, or one that may lead somewhere.
fn can_point(key: &str) -> bool {
    !key.starts_with('/') || key.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']))
}

impl RuleText {
    /// Why the rule could never match, where its glob asks for what no tool's name has.
    pub(super) fn names_no_tool(&self) -> Option<String> {
        let strange = strange_in_names(&self.tool)?;
        Some(format!(
            "is `{}`, so that it could never match: names of tools have letters, digits, `_` and `-`, and no `{strange}`; `turnwright \
             tools list` prints them",
            self.tool
        ))
    }
}

impl std::fmt::Display for RuleText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.action.as_str(), self.tool)?;
        for (index, (key, predicate)) in self.when.iter().enumerate() {
            write!(f, " {} {key} {predicate}", if index == 0 { "when" } else { "and" })?;
        }
        Ok(())
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.origin {
            Origin::Configured(number) => write!(f, "rule {number} ({})", self.text),
            Origin::Remembered(id, scope) => write!(f, "{id}, remembered for {scope} ({})", self.text),
        }
    }
}
