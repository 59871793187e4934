//! The stored facts of a conversation (docs/journal.md).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::budgets::{Amount, Purpose};
use crate::policy::Remembered;
use crate::{
    Answered, AnsweredBy, AssistantMessage, CallId, Context, DriverId, Elicited, MessageId, Origin, ProviderFailure, Reserved,
    Sampled, Seq, StopReason, ToolDefinition, ToolResult, TurnId, TurnSettings, TurnStatus, Usage, UserMessage, Wants,
};

/// The newest version of the stored form of entries that this build reads. Each entry is written in the oldest version that
/// holds it, see [`Entry::version`].
pub const ENTRY_VERSION: u8 = 12;

/// One stored fact. The list of them decides what happens next; nothing else does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// A person said something; opens a turn where none is open.
    User(UserMessage),
    /// A model answered.
    Assistant(AssistantMessage),
    /// A person, or the policy, decided about a call.
    Decision(Decision),
    /// A person is asked about a call.
    Question(Question),
    /// The call may touch the world from here on. Stored before it does.
    Started(Started),
    /// A call that was started goes on by itself at its source, which can be asked how far it is.
    TaskAccepted(TaskAccepted),
    /// A call that was started asks people for something before it goes on.
    Elicited(Elicited),
    /// The one answer to what a call asks.
    Answered(Answered),
    /// What a model said to a call that was allowed to ask it.
    Sampled(Sampled),
    /// The one answer to a call.
    Result(ToolResult),
    /// Something that steers the conversation.
    Control(Control),
}

/// What was decided about a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Which call.
    pub call: CallId,
    /// What.
    pub verdict: Verdict,
    /// By whom.
    pub by: DecidedBy,
    /// The hash of the tool's definition that the decision was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition_hash: Option<String>,
    /// The arguments to run with, JSON text, where a person changed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// Why, in the person's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The rule that was stored with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remembered: Option<Box<Remembered>>,
}

/// The choices about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may run.
    Allow,
    /// It may not.
    Deny,
    /// Its outcome was unknown: a person saw that it happened.
    Happened,
    /// Its outcome was unknown: a person wants it run again.
    RunAgain,
    /// Its outcome was unknown: a person wants to go on without it.
    Skip,
}

impl Verdict {
    /// Whether the call runs, once more where it may have run.
    pub const fn lets_run(self) -> bool {
        match self {
            Self::Allow | Self::RunAgain => true,
            Self::Deny | Self::Happened | Self::Skip => false,
        }
    }
}

/// Who decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    /// The policy, by this rule.
    Policy {
        /// The rule as `approvals explain` names it.
        rule: String,
    },
    /// A person.
    Person,
}

/// A question to a person about a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Which call.
    pub call: CallId,
    /// Why a person is asked.
    pub reason: QuestionReason,
    /// The rule that asks, where the policy does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The hash of the definition that is asked about, where it changed. What was stored without it asks about the one there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition_hash: Option<String>,
}

impl Question {
    /// A question that no rule asks.
    pub fn new(call: CallId, reason: QuestionReason) -> Self {
        Self { call, reason, rule: None, definition_hash: None }
    }
}

/// Why a person is asked about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionReason {
    /// The policy wants a person to allow it.
    Approval,
    /// It was started by a driver that is gone, and may have happened.
    UnknownOutcome,
    /// The tool's definition changed since it was allowed.
    DefinitionChanged,
    /// The tool is the client's own: it runs there, and its result is waited for.
    ClientTool,
    /// The model goes in circles, and this call would be the next round.
    Loop,
}

impl QuestionReason {
    /// The word of the HTTP API and the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::UnknownOutcome => "unknown_outcome",
            Self::DefinitionChanged => "definition_changed",
            Self::ClientTool => "client_tool",
            Self::Loop => "loop",
        }
    }
}

impl QuestionReason {
    /// What a person must know before they answer, besides what the call is; `None` where that is all.
    pub fn to_know(self) -> Option<&'static str> {
        match self {
            Self::UnknownOutcome => Some("it was interrupted and may have happened; allow it to run it again"),
            Self::DefinitionChanged => Some("the tool has changed since this was allowed"),
            Self::Loop => Some("it was called again and again with the same result; allow it to let it go on"),
            Self::Approval | Self::ClientTool => None,
        }
    }
}

/// A call has its slot and may touch the world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// Which call.
    pub call: CallId,
    /// Whether it may be run again by itself if its outcome is lost, as declared when it started.
    pub replayable: bool,
    /// Of what its idempotency key is made.
    #[serde(default, skip_serializing_if = "KeyForm::is_of_names")]
    pub key: KeyForm,
}

impl Started {
    /// A call that starts, with the key that calls have which start here.
    pub fn new(call: CallId, replayable: bool) -> Self {
        Self { call, replayable, key: KeyForm::OfConversation }
    }
}

/// Of what a call's idempotency key is made, besides its place, its arguments and the decision. A call that is made again has the key
/// that it had, also where an older version made it first: its effect must not come twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyForm {
    /// Of the conversation's name, which a later conversation may have too: of versions that did not say which form it is.
    #[default]
    OfNames,
    /// Of the conversation itself, of whose it is, and of the tool.
    OfConversation,
}

impl KeyForm {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
    fn is_of_names(&self) -> bool {
        *self == Self::OfNames
    }
}

/// A source goes on with a call by itself. Whoever drives asks how far it is, and never makes the call again. Stored when it is
/// accepted, and again by each driver that takes it up once the source says that it goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskAccepted {
    /// Which call.
    pub call: CallId,
    /// The tool source's name.
    pub source: String,
    /// What the source needs to ask for it, in the source's own form.
    pub task: Value,
}

/// A driver's hold on a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Which process drives.
    pub driver: DriverId,
    /// Counts the claims of a conversation, from 1. The highest holds.
    pub epoch: u64,
    /// The folder in which the tools of this driver work that nobody gave one: that of its process. `None` where its
    /// configuration names theirs, and in what older versions stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

/// Something that steers the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// A driver takes the open turn.
    Claimed(Claim),
    /// The driver whose claim came before was gone; counts such resumptions since the last real progress, from 1.
    Resumed {
        /// How many.
        count: u32,
    },
    /// What is offered to the model from here on.
    Offered {
        /// The tools, in the order in which every request lists them.
        definitions: Vec<Arc<ToolDefinition>>,
    },
    /// Tools that were held back are offered from here on, after those that were offered before.
    Found {
        /// The tools, in the order in which every request lists them.
        definitions: Vec<Arc<ToolDefinition>>,
    },
    /// Models are shown this besides what was said, see [`crate::context`].
    Context(Context),
    /// A person wants the turn to stop.
    CancelRequested {
        /// Which turn.
        turn: TurnId,
    },
    /// Nothing can go on before a person answers.
    Suspended,
    /// A model call failed and there is no message of it. The next model of the turn's fallback chain is asked, the
    /// conversation is compacted, or the turn ends.
    Failed(ProviderFailure),
    /// What was said up to some place is shown to models as a summary from here on.
    Compacted(Compacted),
    /// The newest summary is shown no more: what it stands for is, or the summary that was shown before it.
    Uncompacted {
        /// The place of its entry.
        summary: Seq,
    },
    /// Whoever runs tools of the open turn itself asks with their results for the rest of it: other settings hold from here on, and the
    /// model is asked as if for the first time.
    Settings {
        /// All of them.
        settings: Box<TurnSettings>,
    },
    /// An ended turn is taken up again.
    Retried {
        /// Which turn.
        turn: TurnId,
        /// The settings from here on, where they change.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        settings: Option<Box<TurnSettings>>,
        /// The message that is shown no more, where that is one ([`crate::Turn::hidden_by_retry`]): for those who do not know the
        /// turn. Older entries do not say it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hides: Option<MessageId>,
    },
    /// The model goes in circles, and is told so beside the result of a call.
    Nudged {
        /// Which call.
        call: CallId,
        /// What it is told.
        text: String,
    },
    /// A model is asked next, and this is what that may come to; stored where there are budgets. What the call came to, the entry
    /// tells that holds its end, see [`crate::budgets::Books`].
    Reserved(Reserved),
    /// A reservation came to this, which no other entry says: the call was made beside the turn. Nothing, where it is settled.
    Settled {
        /// The place of its entry.
        reservation: Seq,
        /// What the call came to.
        amount: Amount,
    },
    /// A message is shown to nobody any more.
    Hidden {
        /// Which message.
        message: MessageId,
    },
    /// The open turn was taken over from elsewhere: its calls ran there, so their results come without decisions.
    Imported {
        /// From where, such as `chatgpt`.
        source: String,
    },
    /// The turn is over.
    Ended {
        /// Which turn.
        turn: TurnId,
        /// How it ended.
        status: TurnStatus,
    },
}

/// What models are shown in the place of the beginning of a conversation. The entries that it stands for stay as they are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compacted {
    /// The turn that was open, where one was. What people say in it is shown in their own words all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// The summary stands for the messages up to this place, with the results of their calls.
    pub through: Seq,
    /// What models are shown.
    pub summary: String,
    /// Who wrote it; `None` where it was put together from the beginnings of what was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// What it cost.
    #[serde(default)]
    pub usage: Usage,
}

/// An entry in its place.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEntry {
    /// Its place.
    pub seq: Seq,
    /// When it was stored, in milliseconds since 1970 UTC. Shown to people; decides nothing.
    pub at_ms: u64,
    /// The fact.
    pub entry: Arc<Entry>,
}

/// A stored text that is not an entry of this build.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A newer node wrote it. The turn is released to a node that knows it, never damaged.
    #[error("entry is of version {version}, this build reads up to {ENTRY_VERSION}")]
    Newer {
        /// Its version.
        version: u8,
    },
    /// It is damaged, or of a kind that this build does not know.
    #[error("entry cannot be read: {reason}")]
    Unreadable {
        /// What the reader says.
        reason: String,
    },
}

impl Decision {
    /// The arguments to run with, where a person changed them and the call may run.
    pub fn changed_arguments(&self) -> Option<&str> {
        match self.verdict {
            Verdict::Allow | Verdict::RunAgain => self.arguments.as_deref(),
            Verdict::Deny | Verdict::Happened | Verdict::Skip => None,
        }
    }
}

fn version_of(wants: &Wants) -> u8 {
    match wants {
        Wants::Form { .. } | Wants::Url { .. } => 4,
        Wants::Sampling { request } if request.has_tools() => 6,
        Wants::Sampling { .. } => 5,
    }
}

impl Entry {
    /// The stored form: JSON text, of [`Entry::version`].
    ///
    /// # Errors
    /// Where a JSON value inside cannot be written, which no value of ours causes.
    pub fn encode(&self) -> Result<String, DecodeError> {
        serde_json::to_string(self).map_err(|error| DecodeError::Unreadable { reason: error.to_string() })
    }

    /// The version of its stored form: nodes that read an older one alone let the conversation be.
    pub fn version(&self) -> u8 {
        match self {
            Self::User(message) => message.settings.version().unwrap_or(1),
            Self::Control(Control::Retried { settings, .. }) => {
                settings.as_ref().and_then(|settings| settings.version()).unwrap_or(1)
            }
            Self::Control(Control::Settings { settings }) => settings.version().unwrap_or(10).max(10),
            Self::Elicited(elicited) => elicited.asks.iter().map(|ask| version_of(&ask.wants)).max().unwrap_or(4),
            Self::Question(Question { reason: QuestionReason::ClientTool, .. })
            | Self::Sampled(_)
            | Self::Answered(Answered { by: AnsweredBy::Policy, .. }) => 5,
            // An older node does not know it after a start.
            Self::Question(Question { reason: QuestionReason::DefinitionChanged, .. }) => 9,
            Self::Control(Control::Reserved(Reserved { purpose: Purpose::SummaryByHand, .. }) | Control::Settled { .. }) => 12,
            Self::Control(
                Control::Reserved(_) | Control::Ended { status: TurnStatus::Stopped { reason: StopReason::Budget(_), .. }, .. },
            ) => 8,
            Self::Question(Question { reason: QuestionReason::Loop, .. })
            | Self::Control(
                Control::Nudged { .. }
                | Control::Ended { status: TurnStatus::Stopped { reason: StopReason::Loop, .. }, .. }
                | Control::Compacted(Compacted { turn: None, .. })
                | Control::Uncompacted { .. }
                | Control::Found { .. }
                | Control::Context(_),
            ) => 7,
            // What it finds is in entries that an older node does not know.
            Self::Control(Control::Offered { definitions }) if definitions.iter().any(|tool| tool.is_search()) => 7,
            Self::Result(result) if result.is_cached => 7,
            Self::Decision(Decision { remembered: Some(_), .. }) | Self::TaskAccepted(_) => 6,
            Self::Answered(_) => 4,
            Self::Control(Control::Imported { .. }) => 3,
            Self::Control(Control::Compacted(_)) => 2,
            Self::Assistant(_)
            | Self::Decision(_)
            | Self::Question(_)
            | Self::Started(_)
            | Self::Result(_)
            | Self::Control(_) => 1,
        }
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// [`DecodeError::Newer`] for a version above ours, [`DecodeError::Unreadable`] for anything else that does not fit.
    pub fn decode(version: u8, text: &str) -> Result<Self, DecodeError> {
        if version > ENTRY_VERSION {
            return Err(DecodeError::Newer { version });
        }
        serde_json::from_str(text).map_err(|error| DecodeError::Unreadable { reason: error.to_string() })
    }

    /// The entry's kind in one word, for errors and logs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::User(_) => "user",
            Self::Assistant(_) => "assistant",
            Self::Decision(_) => "decision",
            Self::Question(_) => "question",
            Self::Started(_) => "started",
            Self::TaskAccepted(_) => "task_accepted",
            Self::Elicited(_) => "elicited",
            Self::Answered(_) => "answered",
            Self::Sampled(_) => "sampled",
            Self::Result(_) => "result",
            Self::Control(control) => match control {
                Control::Claimed(_) => "claimed",
                Control::Resumed { .. } => "resumed",
                Control::Offered { .. } => "offered",
                Control::Found { .. } => "found",
                Control::Context(_) => "context",
                Control::CancelRequested { .. } => "cancel_requested",
                Control::Suspended => "suspended",
                Control::Failed(_) => "failed",
                Control::Compacted(_) => "compacted",
                Control::Uncompacted { .. } => "uncompacted",
                Control::Settings { .. } => "settings",
                Control::Retried { .. } => "retried",
                Control::Nudged { .. } => "nudged",
                Control::Reserved(_) => "reserved",
                Control::Settled { .. } => "settled",
                Control::Hidden { .. } => "hidden",
                Control::Imported { .. } => "imported",
                Control::Ended { .. } => "ended",
            },
        }
    }
}
