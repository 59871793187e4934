//! Whether a call may run: rules over tool names and arguments, and the approve mode where no rule decides.
//!
//! Deny wins over ask, ask over allow (docs/approval.md). Every decision names the rule that made it. Nothing here trusts
//! what a tool source says about its tools; only what the operator declared counts.

use globset::{GlobBuilder, GlobMatcher};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ApproveMode, Declared};

/// What a rule does with the calls that it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// They run.
    Allow,
    /// A person is asked.
    Ask,
    /// They do not run.
    Deny,
}

/// A rule as it is written in the configuration (`[[approval.rules]]`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleText {
    /// A glob over qualified tool names, such as `filesystem__write*`.
    pub tool: String,
    /// Globs over the text of arguments, by name: `{"path" = "/tmp/**"}`. All must match; `*` stops at `/`, `**` does not.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub when: std::collections::BTreeMap<String, String>,
    /// What happens to the calls that match.
    pub action: Action,
}

/// A rule that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("approval rule {number}: `{glob}` is not a glob: {reason}")]
pub struct RuleError {
    /// Which rule, from 1.
    pub number: usize,
    /// The text that is not a glob.
    pub glob: String,
    /// Why.
    pub reason: String,
}

/// The rules of an installation, ready for use.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone)]
struct Rule {
    text: RuleText,
    number: usize,
    tool: GlobMatcher,
    when: Vec<(String, GlobMatcher)>,
}

/// What the policy says, and by which rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What happens.
    pub action: Action,
    /// The rule, as people read it: `rule 2 (deny command__*)` or `approve mode ask`.
    pub rule: String,
}

impl Policy {
    /// Makes the rules ready.
    ///
    /// # Errors
    /// The first glob that is none.
    pub fn new(rules: impl IntoIterator<Item = RuleText>) -> Result<Self, RuleError> {
        let rules = rules
            .into_iter()
            .zip(1..)
            .map(|(text, number)| {
                let tool = compile(&text.tool, number)?;
                let when = text.when.iter().map(|(name, glob)| Ok((name.clone(), compile(glob, number)?))).collect::<Result<
                    _,
                    RuleError,
                >>(
                )?;
                Ok(Rule { text, number, tool, when })
            })
            .collect::<Result<_, RuleError>>()?;
        Ok(Self { rules })
    }

    /// What happens to a call of the tool `name` with these validated `arguments`.
    pub fn decide(&self, mode: ApproveMode, name: &str, declared: Declared, arguments: &Value) -> Verdict {
        let matching = |action: Action| {
            let matches = |rule: &&Rule| rule.text.action == action && rule.matches(name, arguments);
            self.rules.iter().find(matches).map(|rule| Verdict { action, rule: rule.to_string() })
        };
        matching(Action::Deny)
            .or_else(|| matching(Action::Ask).map(|verdict| Self::where_nobody_is_asked(mode, verdict)))
            .or_else(|| matching(Action::Allow))
            .unwrap_or_else(|| Self::by_mode(mode, declared))
    }

    /// A deny rule that matches these arguments; asked again where a person changed them (law 6).
    pub fn denied_by(&self, name: &str, arguments: &Value) -> Option<String> {
        self.rules
            .iter()
            .find(|rule| rule.text.action == Action::Deny && rule.matches(name, arguments))
            .map(ToString::to_string)
    }

    /// A rule that asks fails closed where the mode says that nobody is there to ask; `all` is a person's word that covers it.
    fn where_nobody_is_asked(mode: ApproveMode, verdict: Verdict) -> Verdict {
        match mode {
            ApproveMode::Ask => verdict,
            ApproveMode::All => Verdict { action: Action::Allow, rule: format!("approve mode all over {}", verdict.rule) },
            ApproveMode::None | ApproveMode::ReadOnly => Verdict { action: Action::Deny, ..verdict },
        }
    }

    fn by_mode(mode: ApproveMode, declared: Declared) -> Verdict {
        let (action, rule) = match (mode, declared.read_only) {
            (ApproveMode::All, _) => (Action::Allow, "approve mode all"),
            (ApproveMode::Ask, true) => (Action::Allow, "approve mode ask: declared read-only"),
            (ApproveMode::Ask, false) => (Action::Ask, "approve mode ask"),
            (ApproveMode::ReadOnly, true) => (Action::Allow, "approve mode read-only: declared read-only"),
            (ApproveMode::ReadOnly, false) => (Action::Deny, "approve mode read-only: not declared read-only"),
            (ApproveMode::None, _) => (Action::Deny, "approve mode none"),
        };
        Verdict { action, rule: rule.to_owned() }
    }
}

impl Rule {
    fn matches(&self, name: &str, arguments: &Value) -> bool {
        self.tool.is_match(name) && self.when.iter().all(|(key, glob)| predicate(self.text.action, glob, arguments.get(key)))
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let action = match self.text.action {
            Action::Allow => "allow",
            Action::Ask => "ask",
            Action::Deny => "deny",
        };
        write!(f, "rule {} ({action} {}", self.number, self.text.tool)?;
        for (key, glob) in &self.text.when {
            write!(f, " when {key} = {glob}")?;
        }
        f.write_str(")")
    }
}

/// Whether an argument matches. An argument that climbs with `..` is never inside what a glob names: it matches no rule
/// that allows, and every rule that asks or denies.
fn predicate(action: Action, glob: &GlobMatcher, value: Option<&Value>) -> bool {
    let Some(value) = value else { return false };
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) | Value::Null => value.to_string(),
        Value::Array(_) | Value::Object(_) => return action != Action::Allow,
    };
    if text.split(['/', '\\']).any(|part| part == "..") {
        return action != Action::Allow;
    }
    glob.is_match(&text)
}

fn compile(glob: &str, number: usize) -> Result<GlobMatcher, RuleError> {
    GlobBuilder::new(glob)
        .literal_separator(true)
        .backslash_escape(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| RuleError { number, glob: glob.to_owned(), reason: error.kind().to_string() })
}

#[cfg(test)]
mod tests;
