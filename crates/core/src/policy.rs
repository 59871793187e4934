//! Whether a call may run: rules over tool names and arguments, and the approve mode where no rule decides.
//!
//! Deny wins over ask, ask over allow; what a person had remembered answers a configured rule that asks (docs/approval.md).
//! Every decision names the rule that made it. Nothing here trusts what a tool source says about its tools; only what the
//! operator declared counts. What cannot be judged for certain is never allowed by a rule, and always denied by one.

mod builtins;
mod glob;
mod limits;
mod outputs;
mod path;
mod predicate;
mod programs;
mod propose;
mod rule;
mod scope;
mod shell;
mod word;
mod wrappers;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use predicate::{PredicateText, Tests, check_glob};
pub use rule::{RuleError, RuleText};
pub use scope::{Reach, Remembered, Scope, Whose};

use crate::{ApproveMode, Declared};
use builtins::Dialect;
use predicate::Habits;
use rule::Rule;

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

impl Action {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// Whether something matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Match {
    Yes,
    No,
    /// It may.
    Unknown,
}

impl Match {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Yes, Self::Yes) => Self::Yes,
            (Self::Unknown, Self::Yes | Self::Unknown) | (Self::Yes, Self::Unknown) => Self::Unknown,
        }
    }

    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Yes, _) | (_, Self::Yes) => Self::Yes,
            (Self::No, Self::No) => Self::No,
            (Self::Unknown, Self::No | Self::Unknown) | (Self::No, Self::Unknown) => Self::Unknown,
        }
    }
}

/// The rules that hold somewhere, ready for use. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    configured: Arc<[Rule]>,
    remembered: Vec<Arc<Rule>>,
    /// Where the relative paths of `filesystem` begin.
    start: Option<Arc<str>>,
    /// How the shell of `command` reads its lines.
    shell: Dialect,
}

/// A remembered rule, ready for use.
#[derive(Debug, Clone)]
pub struct ReadyRule {
    rule: Arc<Rule>,
    /// The rule as it is stored.
    pub remembered: Remembered,
}

/// What the policy says, and by which rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What happens.
    pub action: Action,
    /// The rule, as people read it: `rule 2 (deny command__*)` or `approve mode ask`.
    pub rule: String,
}

/// A call that the policy is asked about.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The approve mode of its turn.
    pub mode: ApproveMode,
    /// The tool's qualified name.
    pub name: &'a str,
    /// What the operator declared of it.
    pub declared: Declared,
    /// Its validated arguments.
    pub arguments: &'a Value,
    /// Whether the request wants a person to be asked where it would run.
    pub is_always_asked: bool,
}

/// What would happen to a call, and all that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// What happens, and by which rule.
    pub verdict: Verdict,
    /// The other rules that match, the strongest first.
    pub others: Vec<Verdict>,
}

impl ReadyRule {
    /// Makes a remembered rule ready.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(remembered: Remembered) -> Result<Self, RuleError> {
        let rule = Arc::new(Rule::remembered(&remembered)?);
        Ok(Self { rule, remembered })
    }

    /// The rule as people read it: `rule_3f9a, remembered for this conversation (allow …)`.
    pub fn described(&self) -> String {
        self.rule.to_string()
    }
}

impl Policy {
    /// Makes the rules of a configuration ready.
    ///
    /// # Errors
    /// The first rule that cannot be used.
    pub fn new(rules: impl IntoIterator<Item = RuleText>) -> Result<Self, RuleError> {
        let configured =
            rules.into_iter().zip(1..).map(|(text, number)| Rule::configured(text, number)).collect::<Result<_, _>>()?;
        Ok(Self { configured, ..Self::default() })
    }

    /// The same, where the relative paths of the built-in `filesystem` begin in this folder.
    #[must_use]
    pub fn starting_at(self, folder: Option<&str>) -> Self {
        Self { start: folder.map(Arc::from), ..self }
    }

    /// The same, where this shell, by name or path, reads the lines of the built-in `command`; `sh` where it is not said. Of
    /// one that is not known no line can be read for certain.
    #[must_use]
    pub fn with_shell(self, shell: Option<&str>) -> Self {
        Self { shell: shell.map_or_else(Dialect::default, Dialect::of_shell), ..self }
    }

    /// The same with remembered rules: those of them that hold for whom it is asked.
    #[must_use]
    pub fn with<'a>(&self, rules: impl IntoIterator<Item = &'a ReadyRule>, whose: Whose<'_>) -> Self {
        let rules = rules.into_iter().filter(|rule| rule.remembered.reach.holds(whose));
        Self { remembered: rules.map(|rule| rule.rule.clone()).collect(), ..self.clone() }
    }

    /// The rules of the configuration.
    pub fn configured(&self) -> Vec<RuleText> {
        self.configured.iter().map(|rule| rule.text.clone()).collect()
    }

    /// Whether this rule would match such a call if it were among these.
    pub fn would_match(&self, rule: &ReadyRule, name: &str, arguments: &Value) -> bool {
        rule.rule.matches(name, arguments, self.habits_of(name))
    }

    /// The rule that covers this call of `tool`: its exact name; of a command, the programs that it starts; of a path, that path and
    /// what lies below it. What cannot be said in that way is named value by value.
    pub fn proposed(&self, tool: &str, arguments: &Value, action: Action) -> RuleText {
        propose::proposed(tool, arguments, action, self.habits_of(tool).shell)
    }

    /// How this tool reads its arguments, where it is ours.
    fn habits_of(&self, name: &str) -> Habits<'_> {
        Habits {
            start: self.start.as_deref().filter(|_| name.starts_with("filesystem__")),
            shell: if name.starts_with("command__") { self.shell } else { Dialect::default() },
        }
    }

    /// What happens to a call of the tool `name` with these validated `arguments`.
    pub fn decide(&self, mode: ApproveMode, name: &str, declared: Declared, arguments: &Value) -> Verdict {
        self.verdict(Asked { mode, name, declared, arguments, is_always_asked: false })
    }

    /// What happens to a call.
    pub fn verdict(&self, asked: Asked<'_>) -> Verdict {
        let Asked { mode, name, declared, arguments, is_always_asked } = asked;
        let verdict = match self.matching(name, arguments).min_by_key(|rule| strength(rule)) {
            Some(rule) => Self::by_rule(mode, rule),
            None => Self::by_mode(mode, declared),
        };
        if verdict.action == Action::Allow && is_always_asked {
            return Verdict { action: Action::Ask, rule: "the request".to_owned() };
        }
        verdict
    }

    /// What would happen to a call, and which rules match it besides.
    pub fn explain(&self, asked: Asked<'_>) -> Explanation {
        let verdict = self.verdict(asked);
        let is_the_requests = asked.is_always_asked && self.verdict(Asked { is_always_asked: false, ..asked }) != verdict;
        let mut others: Vec<&Rule> = self.matching(asked.name, asked.arguments).collect();
        others.sort_by_key(|rule| strength(rule));
        let others = others.into_iter().skip(usize::from(!is_the_requests));
        let others = others.map(|rule| Verdict { action: rule.text.action, rule: rule.to_string() }).collect();
        Explanation { verdict, others }
    }

    /// A deny rule that matches these arguments; asked again where a person changed them (law 6).
    pub fn denied_by(&self, name: &str, arguments: &Value) -> Option<String> {
        self.matching(name, arguments).find(|rule| rule.text.action == Action::Deny).map(ToString::to_string)
    }

    fn matching<'a>(&'a self, name: &'a str, arguments: &'a Value) -> impl Iterator<Item = &'a Rule> {
        let habits = self.habits_of(name);
        let all = self.configured.iter().chain(self.remembered.iter().map(Arc::as_ref));
        all.filter(move |rule| rule.matches(name, arguments, habits))
    }

    /// A rule that asks fails closed where the mode says that nobody is there to ask; `all` is a person's word that covers it.
    fn by_rule(mode: ApproveMode, rule: &Rule) -> Verdict {
        let verdict = Verdict { action: rule.text.action, rule: rule.to_string() };
        match (verdict.action, mode) {
            (Action::Allow | Action::Deny, _) | (Action::Ask, ApproveMode::Ask) => verdict,
            (Action::Ask, ApproveMode::All) => {
                Verdict { action: Action::Allow, rule: format!("approve mode all over {}", verdict.rule) }
            }
            (Action::Ask, ApproveMode::None | ApproveMode::ReadOnly) => Verdict { action: Action::Deny, ..verdict },
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

/// The strongest first: what denies, what a person had remembered, what asks, what allows. A remembered rule is the answer
/// to a configured one that asks, which could never be answered for good otherwise.
fn strength(rule: &Rule) -> u8 {
    match (rule.text.action, rule.is_remembered()) {
        (Action::Deny, _) => 0,
        (Action::Ask, true) => 1,
        (Action::Allow, true) => 2,
        (Action::Ask, false) => 3,
        (Action::Allow, false) => 4,
    }
}

#[cfg(test)]
mod tests;
