//! What can be typed after `turnwright approvals`.

use clap::{Args, Subcommand, ValueEnum};
use turnwright_core::policy::{Action, Scope};
use turnwright_core::{ApprovalId, CallId, ConversationId, ElicitationId, Verdict};

use super::{Approve, Form, Listed};

/// Approvals.
#[derive(Debug, Subcommand)]
pub(crate) enum Approvals {
    /// List what waits: calls to be allowed, and what tools ask
    List(Listed),
    /// Decide about a call, and bring its turn to an end
    Decide(Decide),
    /// Answer what a tool asks, and bring its turn to an end
    Answer(Answer),
    /// The rules that decide without asking
    #[command(subcommand)]
    Rules(Rules),
    /// Say beforehand what would happen to a call, and by which rule
    Explain(Explain),
}

/// The rules that decide without asking.
#[derive(Debug, Subcommand)]
pub(crate) enum Rules {
    /// List those of the configuration and those that were remembered
    List(Listed),
    /// Remember one
    Add(AddRule),
    /// Forget a remembered one; what it has decided stays decided
    Remove {
        /// Its name, such as `rule_3f9a0c41d2`
        rule: String,
    },
}

/// Remembers a rule.
#[derive(Debug, Args)]
pub(crate) struct AddRule {
    /// What it does with the calls that match
    pub(crate) action: RuleAction,
    /// A glob over tools, such as `filesystem__write*`
    pub(crate) tool: String,
    /// What must hold of arguments, a JSON object such as {"path": "/tmp/**"}
    #[arg(long, value_name = "JSON")]
    pub(crate) when: Option<String>,
    /// How far it reaches; `conversation` where --conversation is given, else `everyone`
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Option<RuleScope>,
    /// Its conversation
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<ConversationId>,
}

/// Explains a call.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The tool's qualified name
    pub(crate) tool: String,
    /// Its arguments, a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) arguments: String,
    /// The conversation in which it would be made
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<ConversationId>,
    /// The approve mode; the conversation's unless given
    #[arg(long, value_name = "MODE")]
    pub(crate) approve: Option<Approve>,
    #[command(flatten)]
    pub(crate) listed: Listed,
}

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RuleAction {
    /// They run
    Allow,
    /// A person is asked
    Ask,
    /// They do not run
    Deny,
}

/// How far a rule reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RuleScope {
    /// The turn of the call
    Turn,
    /// Its conversation
    Conversation,
    /// The user's conversations
    User,
    /// All conversations
    Everyone,
}

impl From<RuleScope> for Scope {
    fn from(scope: RuleScope) -> Self {
        match scope {
            RuleScope::Turn => Self::Turn,
            RuleScope::Conversation => Self::Conversation,
            RuleScope::User => Self::User,
            RuleScope::Everyone => Self::Everyone,
        }
    }
}

impl From<RuleAction> for Action {
    fn from(action: RuleAction) -> Self {
        match action {
            RuleAction::Allow => Self::Allow,
            RuleAction::Ask => Self::Ask,
            RuleAction::Deny => Self::Deny,
        }
    }
}

/// Answers what a tool asks.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("action").required(true)))]
pub(crate) struct Answer {
    /// The question, such as `question_3_0_0`
    pub(crate) question: ElicitationId,
    /// Yes, with these values of the form; fields that are not given keep their defaults
    #[arg(long, value_name = "FIELD=VALUE", num_args = 0.., group = "action")]
    pub(crate) accept: Option<Vec<String>>,
    /// Yes, with the values as a JSON object
    #[arg(long, value_name = "JSON", group = "action")]
    pub(crate) content: Option<String>,
    /// No
    #[arg(long, group = "action")]
    pub(crate) decline: bool,
    /// Neither yes nor no
    #[arg(long, group = "action")]
    pub(crate) cancel: bool,
    /// Its conversation, where more than one has such a question
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<ConversationId>,
    /// How the answer is printed
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) output: Form,
}

/// Decides about a call.
#[derive(Debug, Args)]
pub(crate) struct Decide {
    /// The call, such as `call_3_0`
    pub(crate) call: CallId,
    /// What is decided
    pub(crate) decision: Choice,
    /// The question that it answers, such as `appr_3_0`, as `approvals list` shows it: where something else is asked about the call by
    /// then, nothing is decided
    #[arg(long, value_name = "ID")]
    pub(crate) approval: Option<ApprovalId>,
    /// Its conversation, where more than one has such a call
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<ConversationId>,
    /// Other arguments to run with, a JSON object
    #[arg(long, value_name = "JSON")]
    pub(crate) arguments: Option<String>,
    /// Why, for the model
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Decide the like by itself from now on, this far; `approvals list --json` shows the rule
    #[arg(long, value_name = "SCOPE")]
    pub(crate) remember: Option<RuleScope>,
    /// How the answer is printed
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) output: Form,
}

/// What can be decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Choice {
    /// It may run
    Allow,
    /// It may not
    Deny,
    /// Its outcome was unknown: it happened
    Happened,
    /// Its outcome was unknown: run it again
    #[value(alias = "run-again")]
    RunAgain,
    /// Its outcome was unknown: go on without it
    Skip,
}

impl From<Choice> for Verdict {
    fn from(choice: Choice) -> Self {
        match choice {
            Choice::Allow => Self::Allow,
            Choice::Deny => Self::Deny,
            Choice::Happened => Self::Happened,
            Choice::RunAgain => Self::RunAgain,
            Choice::Skip => Self::Skip,
        }
    }
}
