//! A journal that a test tells entry by entry.

use std::sync::Arc;

use serde_json::json;
use turnwright_core::{
    ApproveMode, AssistantBlock, AssistantMessage, CallId, Claim, Completion, ContentBlock, Control, CutOffCause, DecidedBy,
    Decision, Declared, DriverId, Entry, Finish, FinishReason, Journal, JournalError, MessageId, ModelRef, Origin, Outcome,
    ProviderFailure, Question, QuestionReason, Seq, Started, Step, StoredEntry, ToolCall, ToolDefinition, ToolErrorKind,
    ToolResult, Turn, TurnId, TurnSettings, TurnStatus, Usage, UserMessage, Verdict,
};

/// A journal, told in the words of the tests.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told {
    pub(crate) journal: Journal,
}

pub(crate) fn settings() -> TurnSettings {
    TurnSettings::new(ModelRef::new("scripted", "model"))
}

pub(crate) fn with_mode(approve: ApproveMode) -> TurnSettings {
    TurnSettings { approve, ..settings() }
}

pub(crate) fn with_max_steps(max_steps: u32) -> TurnSettings {
    TurnSettings { max_steps, ..settings() }
}

pub(crate) fn seq(number: u64) -> Seq {
    Seq::new(number).expect("not zero")
}

pub(crate) fn call_id(message: u64, index: u32) -> CallId {
    CallId { message: seq(message), index }
}

pub(crate) fn user_message(text: &str, settings: TurnSettings) -> Entry {
    Entry::User(UserMessage { content: vec![ContentBlock::text(text)], settings })
}

pub(crate) fn tool_call(name: &str, arguments: &str) -> AssistantBlock {
    AssistantBlock::Call(ToolCall {
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        provider_id: None,
        native: None,
        recovered: false,
    })
}

pub(crate) fn text(text: &str) -> AssistantBlock {
    AssistantBlock::Text { text: text.to_owned(), native: None }
}

pub(crate) fn message(saw: Seq, reason: FinishReason, blocks: Vec<AssistantBlock>) -> AssistantMessage {
    AssistantMessage {
        origin: Origin { dialect: "scripted".into(), provider: "scripted".into(), model: "model".into() },
        saw,
        blocks,
        finish: Finish { reason, raw: None },
        completion: Completion::Complete,
        usage: Usage::default(),
    }
}

pub(crate) fn decision(call: CallId, verdict: Verdict) -> Decision {
    Decision { call, verdict, by: DecidedBy::Person, definition_hash: None, arguments: None, reason: None, remembered: None }
}

pub(crate) fn claimed(epoch: u64) -> Entry {
    Entry::Control(Control::Claimed(Claim { driver: DriverId(format!("driver {epoch}")), epoch, folder: None }))
}

pub(crate) fn resumed(count: u32) -> Entry {
    Entry::Control(Control::Resumed { count })
}

pub(crate) fn ended(turn: u64, status: TurnStatus) -> Entry {
    Entry::Control(Control::Ended { turn: TurnId(seq(turn)), status })
}

pub(crate) fn cancel(turn: u64) -> Entry {
    Entry::Control(Control::CancelRequested { turn: TurnId(seq(turn)) })
}

pub(crate) fn retried(turn: u64) -> Entry {
    Entry::Control(Control::Retried { turn: TurnId(seq(turn)), settings: None, hides: None })
}

pub(crate) fn hidden(message: u64) -> Entry {
    Entry::Control(Control::Hidden { message: MessageId(seq(message)) })
}

pub(crate) fn started(call: CallId, replayable: bool) -> Entry {
    Entry::Started(Started::new(call, replayable))
}

pub(crate) fn question(call: CallId, reason: QuestionReason) -> Entry {
    Entry::Question(Question::new(call, reason))
}

pub(crate) fn success(call: CallId) -> Entry {
    Entry::Result(ToolResult::of(call, Outcome::Success, "done"))
}

pub(crate) fn failed(call: CallId) -> Entry {
    Entry::Result(ToolResult::failed(call, ToolErrorKind::ExecutionFailed, "no"))
}

impl Told {
    /// A turn opened at 1 and claimed at 2.
    pub(crate) fn new(settings: TurnSettings) -> Self {
        Self::default().tell(user_message("hello", settings)).tell(claimed(1))
    }

    pub(crate) fn offer(&mut self, entry: Entry) -> Result<(), JournalError> {
        self.journal.apply(StoredEntry { seq: self.journal.next_seq(), at_ms: 0, entry: Arc::new(entry) })
    }

    pub(crate) fn tell(mut self, entry: Entry) -> Self {
        let told = format!("{entry:?}");
        self.offer(entry).unwrap_or_else(|error| panic!("{error}: {told}"));
        self
    }

    pub(crate) fn user(self, said: &str) -> Self {
        self.tell(user_message(said, settings()))
    }

    /// A whole message that has seen everything.
    pub(crate) fn says(self, reason: FinishReason, blocks: Vec<AssistantBlock>) -> Self {
        let saw = self.journal.last_seq().expect("there is an entry");
        self.says_having_seen(saw.get(), reason, blocks)
    }

    pub(crate) fn says_having_seen(self, saw: u64, reason: FinishReason, blocks: Vec<AssistantBlock>) -> Self {
        self.tell(Entry::Assistant(message(seq(saw), reason, blocks)))
    }

    pub(crate) fn answers(self, said: &str) -> Self {
        self.says(FinishReason::Stop, vec![text(said)])
    }

    /// A whole message with so many calls of the tool `tool`.
    pub(crate) fn asks_for(self, calls: usize) -> Self {
        self.says(FinishReason::ToolCalls, (0..calls).map(|_| tool_call("tool", "{}")).collect())
    }

    pub(crate) fn gets_cut_off(self, cause: CutOffCause, blocks: Vec<AssistantBlock>) -> Self {
        let saw = self.journal.last_seq().expect("there is an entry");
        let mut cut_off = message(saw, FinishReason::Error, blocks);
        cut_off.completion = Completion::CutOff(cause);
        self.tell(Entry::Assistant(cut_off))
    }

    pub(crate) fn gets_cut_off_by_provider(self, blocks: Vec<AssistantBlock>) -> Self {
        self.gets_cut_off(CutOffCause::Provider(Box::new(ProviderFailure::cut_off())), blocks)
    }

    pub(crate) fn decides(self, call: CallId, verdict: Verdict) -> Self {
        self.tell(Entry::Decision(decision(call, verdict)))
    }

    /// The call runs to its result.
    pub(crate) fn runs(self, call: CallId) -> Self {
        self.decides(call, Verdict::Allow).tell(started(call, false)).tell(success(call))
    }

    pub(crate) fn turn(&self) -> &Turn {
        self.journal.turn().expect("there is a turn")
    }

    pub(crate) fn step(&self) -> Step {
        let step = self.turn().step();
        assert_eq!(step, self.turn().step(), "asked twice, another answer");
        assert_eq!(self.turn().is_parked(), step == Step::Park);
        step
    }

    /// Why the entry cannot stand next. Nothing has changed then.
    pub(crate) fn refuses(&self, entry: Entry) -> String {
        let mut tried = self.clone();
        let error = tried.offer(entry).expect_err("the entry must not fit");
        assert_eq!(tried.journal, self.journal, "an entry that does not fit changed the journal");
        match error {
            JournalError::Misfit { why, .. } => why.to_owned(),
            JournalError::OutOfOrder { .. } => error.to_string(),
        }
    }
}

/// A tool of the source `s` that takes anything.
pub(crate) fn tool(name: &str) -> Arc<ToolDefinition> {
    Arc::new(ToolDefinition {
        name: name.to_owned(),
        source: "s".to_owned(),
        tool: name.to_owned(),
        title: None,
        description: String::new(),
        input_schema: json!({"type": "object"}),
        annotations: None,
        declared: Declared::default(),
    })
}
