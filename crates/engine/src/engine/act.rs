//! What people do to a conversation: send, decide, cancel, retry, hide.
//!
//! Each is stored before it is acknowledged, and tried again where somebody else appended first.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use turnwright_core::{
    CallId, ContentBlock, Control, ConversationId, DecidedBy, Decision, Entry, MessageId, QuestionReason, Seq, TurnId,
    TurnSettings, TurnStatus, UserMessage, Verdict, check,
};

use super::Engine;
use crate::catalog::definition_hash;
use crate::inner::Inner;
use crate::live::{From, Live, State};
use crate::{Append, EngineError, Idempotent, KeptBy, SettingsOverlay, SideRecord, SourceState, StoreError};

/// A message to send.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMessage {
    /// What is said; at least one block.
    pub content: Vec<ContentBlock>,
    /// Settings for the turn that it opens, over the conversation's.
    pub overlay: SettingsOverlay,
    /// What happens where the conversation waits for a person's decision.
    pub on_waiting: OnWaiting,
    /// What takes the turn up again if this process ends.
    pub kept_by: KeptBy,
    /// Whether a conversation that is not there is created.
    pub create: bool,
    /// A key that makes a repetition harmless, and a hash of the request.
    pub idempotency: Option<(String, String)>,
}

impl NewMessage {
    /// A text, with nothing else chosen.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![ContentBlock::text(text)],
            overlay: SettingsOverlay::default(),
            on_waiting: OnWaiting::Hold,
            kept_by: KeptBy::Servers,
            create: false,
            idempotency: None,
        }
    }
}

/// What a message does to a parked turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnWaiting {
    /// It is held until a person has decided.
    #[default]
    Hold,
    /// It declines what waits.
    Deny,
}

/// A stored message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// The message.
    pub message_id: MessageId,
    /// The turn that it opened or joined.
    pub turn_id: TurnId,
    /// What became of it.
    pub state: SentState,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SentState {
    /// It opened a turn.
    Started,
    /// The open turn answers it at its next step.
    Joined,
    /// The open turn is parked; it answers once a person has decided.
    Held,
}

impl SentState {
    /// The turn's status in the words of the HTTP API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Started | Self::Joined => "running",
            Self::Held => "suspended",
        }
    }
}

/// A person's decision about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// What.
    pub verdict: Verdict,
    /// Other arguments to run with, JSON text; with [`Verdict::Allow`] and [`Verdict::RunAgain`] only.
    pub arguments: Option<String>,
    /// Why, for the model.
    pub reason: Option<String>,
}

/// What one act appends.
struct Act<T> {
    entries: Vec<Entry>,
    side: Vec<SideRecord>,
    answer: T,
}

impl Engine {
    /// Stores a message and starts, or joins, its turn.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::Invalid`], [`EngineError::KeyReused`].
    pub async fn send(&self, id: &ConversationId, message: NewMessage) -> Result<Sent, EngineError> {
        if message.content.is_empty() {
            return Err(EngineError::Invalid { what: "the message is empty".to_owned() });
        }
        if let Some(problem) = message.overlay.problem() {
            return Err(EngineError::Invalid { what: problem });
        }
        if let Some(sent) = self.sent_before(&message).await? {
            return Ok(sent);
        }
        let inner = &self.inner;
        let (live, sent) = match self.load(id).await {
            Err(EngineError::NotFound { .. }) if message.create => self.begin(id, &message).await?,
            Err(error) => return Err(error),
            Ok(live) => {
                let sent = act(inner, &live, |state| say(inner, state, &message)).await;
                (live, sent)
            }
        };
        let sent = match (sent, self.sent_before(&message).await) {
            // The same request came twice at once: the other one was stored.
            (_, Ok(Some(sent))) if message.idempotency.is_some() => sent,
            (sent, _) => sent?,
        };
        if sent.state == SentState::Started {
            let mut state = live.lock();
            state.kept_by = message.kept_by;
            if state.title.is_none() && sent.message_id.0 == Seq::FIRST {
                state.title = title_of(&message.content);
            }
        }
        self.go_on(&live).await?;
        Ok(sent)
    }

    /// Creates the conversation together with its first message, in one append.
    async fn begin(
        &self,
        id: &ConversationId,
        message: &NewMessage,
    ) -> Result<(Arc<Live>, Result<Sent, EngineError>), EngineError> {
        let inner = &self.inner;
        let now = inner.clock.now_ms();
        let title = title_of(&message.content);
        let new = super::Conversation {
            id: id.clone(),
            title,
            overlay: SettingsOverlay::default(),
            created_at_ms: now,
            updated_at_ms: now,
        };
        let record = super::record(&new)?;
        let live = Arc::new(crate::registry::live_of(&record)?);
        let sent = act(inner, &live, |state| {
            let mut act = say(inner, state, message)?;
            act.side.insert(0, SideRecord::Create(record.clone()));
            Ok(act)
        })
        .await;
        match sent {
            Ok(sent) => Ok((inner.registry.keep(live), Ok(sent))),
            // Somebody created it a moment ago.
            Err(EngineError::Exists { .. }) => {
                let live = self.load(id).await?;
                let sent = act(inner, &live, |state| say(inner, state, message)).await;
                Ok((live, sent))
            }
            Err(error) => Err(error),
        }
    }

    async fn sent_before(&self, message: &NewMessage) -> Result<Option<Sent>, EngineError> {
        let Some((key, fingerprint)) = &message.idempotency else { return Ok(None) };
        let Some(record) = self.inner.store.idempotent(key).await? else { return Ok(None) };
        if record.fingerprint != *fingerprint {
            return Err(EngineError::KeyReused { key: key.clone() });
        }
        let sent = serde_json::from_str(&record.answer);
        sent.map(Some).map_err(|error| {
            EngineError::Store(StoreError::Damaged { what: format!("idempotency key `{key}`"), reason: error.to_string() })
        })
    }

    /// Stores a person's decision about a call. Answered once: whoever comes second is told.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::NotWaiting`]; [`EngineError::Invalid`] where the arguments do not fit the
    /// tool or a deny rule matches them.
    pub async fn decide(&self, id: &ConversationId, call: CallId, choice: Choice) -> Result<(), EngineError> {
        let live = self.load_newest(id).await?;
        let inner = &self.inner;
        act(inner, &live, |state| decision(inner, state, call, &choice)).await?;
        self.go_on(&live).await
    }

    /// Asks an open turn to stop. Stored when this returns; it reaches the provider, the tools and what they started.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::NoOpenTurn`] where that turn is not open.
    pub async fn cancel(&self, id: &ConversationId, turn: Option<TurnId>) -> Result<TurnId, EngineError> {
        let live = self.load_newest(id).await?;
        let turn = act(&self.inner, &live, |state| {
            let open = state.journal.open_turn().filter(|open| turn.is_none_or(|turn| turn == open.id()));
            let Some(open) = open else {
                let why = turn.map_or_else(|| "no turn is open".to_owned(), |turn| format!("turn `{turn}` is not open"));
                return Err(EngineError::NoOpenTurn { why });
            };
            let turn = open.id();
            let entries = vec![Entry::Control(Control::CancelRequested { turn })];
            Ok(Act { entries, side: vec![still_open(state, turn)], answer: turn })
        })
        .await?;
        self.go_on(&live).await?;
        Ok(turn)
    }

    /// Takes the last turn up again that did not end well, with other settings where some are given.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::NoOpenTurn`] where the last turn is open or ended well.
    pub async fn retry(&self, id: &ConversationId, overlay: SettingsOverlay) -> Result<TurnId, EngineError> {
        if let Some(problem) = overlay.problem() {
            return Err(EngineError::Invalid { what: problem });
        }
        let live = self.load_newest(id).await?;
        let inner = &self.inner;
        let turn = act(inner, &live, |state| {
            let refuse = |why: &str| Err(EngineError::NoOpenTurn { why: why.to_owned() });
            let Some(last) = state.journal.turn() else { return refuse("there is no turn to retry") };
            match last.ended() {
                None => return refuse("the turn is still open"),
                Some(TurnStatus::Completed) => return refuse("the turn is completed"),
                Some(
                    TurnStatus::Cancelled | TurnStatus::Failed { .. } | TurnStatus::StepLimit | TurnStatus::Stopped { .. },
                ) => {}
            }
            let turn = last.id();
            let settings = (!overlay.is_empty()).then(|| Box::new(overlay.over(last.settings())));
            let claim = inner.next_claim(&state.journal);
            let entries = vec![Entry::Control(Control::Retried { turn, settings }), Entry::Control(Control::Claimed(claim))];
            Ok(Act { entries, side: vec![still_open(state, turn)], answer: turn })
        })
        .await?;
        self.go_on(&live).await?;
        Ok(turn)
    }

    /// Hides a message from people and models. Its entry stays.
    ///
    /// # Errors
    /// [`EngineError::NotFound`].
    pub async fn hide(&self, id: &ConversationId, message: MessageId) -> Result<(), EngineError> {
        let live = self.load_newest(id).await?;
        act(&self.inner, &live, |state| {
            let entry = Entry::Control(Control::Hidden { message });
            match state.journal.entry(message.0).map(|stored| &*stored.entry) {
                Some(Entry::User(_) | Entry::Assistant(_)) if state.journal.is_hidden(message) => {
                    Ok(Act { entries: vec![], side: vec![], answer: () })
                }
                Some(Entry::User(_) | Entry::Assistant(_)) => Ok(Act { entries: vec![entry], side: vec![], answer: () }),
                _ => Err(EngineError::NotFound { what: format!("message `{message}` in this conversation") }),
            }
        })
        .await
    }

    /// Sees to it that what was stored is acted on: starts the driver under the claim that came with it, or takes over.
    async fn go_on(&self, live: &Arc<Live>) -> Result<(), EngineError> {
        let claimed = {
            let mut state = live.lock();
            let mine = self.inner.store.driver();
            let newest = state.journal.entries().iter().rev().take(3);
            let is_fresh = newest
                .into_iter()
                .any(|stored| matches!(&*stored.entry, Entry::Control(Control::Claimed(claim)) if claim.driver == *mine));
            let claim = state
                .journal
                .open_turn()
                .and_then(|turn| turn.claim())
                .filter(|claim| is_fresh && claim.driver == *mine)
                .cloned();
            match claim {
                Some(claim) if !state.is_driven => {
                    state.is_driven = true;
                    Some(claim)
                }
                _ => None,
            }
        };
        match claimed {
            Some(claim) => self.inner.drive(live, claim, Vec::new()),
            None => drop(self.inner.ensure_driven(live).await?),
        }
        Ok(())
    }
}

/// Appends what `make` says, made anew where somebody else appended first.
async fn act<T>(inner: &Inner, live: &Live, make: impl Fn(&State) -> Result<Act<T>, EngineError>) -> Result<T, EngineError> {
    if inner.shutdown.is_cancelled() {
        return Err(EngineError::ShuttingDown);
    }
    loop {
        let (at, act) = {
            let state = live.lock();
            if let Some(error) = &state.broken {
                return Err(EngineError::Journal(error.clone()));
            }
            let act = make(&state)?;
            check(&state.journal, &act.entries)?;
            (state.journal.next_seq(), act)
        };
        if act.entries.is_empty() {
            return Ok(act.answer);
        }
        let append =
            Append { conversation: live.id.clone(), at, entries: act.entries, at_ms: inner.clock.now_ms(), side: act.side };
        match inner.store.append(append).await {
            Ok(stored) => {
                live.apply(stored, From::Others);
                return Ok(act.answer);
            }
            Err(StoreError::Conflict { .. }) => live.refresh(&*inner.store).await?,
            Err(error) => return Err(error.into()),
        }
    }
}

fn still_open(state: &State, turn: TurnId) -> SideRecord {
    SideRecord::TurnOpen { turn, parked: false, kept_by: state.kept_by }
}

/// A user message: opens a turn, joins the open one, or is held.
fn say(inner: &Inner, state: &State, message: &NewMessage) -> Result<Act<Sent>, EngineError> {
    let at = state.journal.next_seq();
    let settings = state.overlay.merged(&message.overlay).over(&inner.defaults);
    let user = Entry::User(UserMessage { content: message.content.clone(), settings: settings.clone() });
    let mut act = match state.journal.open_turn() {
        None => open(inner, state, message, user, &settings, at),
        Some(turn) if turn.is_parked() => match message.on_waiting {
            OnWaiting::Hold => {
                let answer = Sent { message_id: MessageId(at), turn_id: turn.id(), state: SentState::Held };
                Act { entries: vec![user], side: Vec::new(), answer }
            }
            OnWaiting::Deny => {
                let declined = turn.waiting().map(|(call, question)| decline(call.id, question.reason));
                let entries = std::iter::once(user).chain(declined).collect();
                let answer = Sent { message_id: MessageId(at), turn_id: turn.id(), state: SentState::Joined };
                Act { entries, side: vec![still_open(state, turn.id())], answer }
            }
        },
        Some(turn) => {
            let answer = Sent { message_id: MessageId(at), turn_id: turn.id(), state: SentState::Joined };
            Act { entries: vec![user], side: Vec::new(), answer }
        }
    };
    if let Some((key, fingerprint)) = &message.idempotency {
        let answer = serde_json::to_string(&act.answer).map_err(|error| EngineError::Invalid { what: error.to_string() })?;
        let record = Idempotent { fingerprint: fingerprint.clone(), answer };
        act.side.push(SideRecord::Idempotent { key: key.clone(), record });
    }
    Ok(act)
}

/// The message that opens a turn, with the claim of this process and, where no source is starting, what is offered.
fn open(inner: &Inner, state: &State, message: &NewMessage, user: Entry, settings: &TurnSettings, at: Seq) -> Act<Sent> {
    let turn = TurnId(at);
    let mut entries = vec![user, Entry::Control(Control::Claimed(inner.next_claim(&state.journal)))];
    let is_settled = inner.catalogs.sources().iter().all(|source| source.state() != SourceState::Starting);
    if is_settled && let Some(offered) = inner.newly_offered(&state.journal, settings) {
        entries.push(offered);
    }
    let mut side = vec![SideRecord::TurnOpen { turn, parked: false, kept_by: message.kept_by }];
    if state.title.is_none() && state.journal.last_seq().is_none() {
        side.extend(title_of(&message.content).map(SideRecord::Title));
    }
    Act { entries, side, answer: Sent { message_id: MessageId(at), turn_id: turn, state: SentState::Started } }
}

/// The longest title that is made from a message, in characters.
const MAX_TITLE_CHARS: usize = 60;

/// A title from a first message: its first line that says something, cut at a word.
fn title_of(content: &[ContentBlock]) -> Option<String> {
    let line = content.iter().find_map(|block| match block {
        ContentBlock::Text { text } => text.lines().map(str::trim).find(|line| !line.is_empty()),
        ContentBlock::Image { .. }
        | ContentBlock::Audio { .. }
        | ContentBlock::Resource { .. }
        | ContentBlock::ResourceLink { .. } => None,
    })?;
    if line.chars().count() <= MAX_TITLE_CHARS {
        return Some(line.to_owned());
    }
    let cut: String = line.chars().take(MAX_TITLE_CHARS).collect();
    let at_word = cut.rsplit_once(char::is_whitespace).map_or(cut.as_str(), |(words, _)| words);
    Some(format!("{}…", at_word.trim_end()))
}

fn decline(call: CallId, reason: QuestionReason) -> Entry {
    let verdict = match reason {
        QuestionReason::Approval | QuestionReason::DefinitionChanged => Verdict::Deny,
        QuestionReason::UnknownOutcome => Verdict::Skip,
    };
    let reason = Some("they sent another message instead".to_owned());
    Entry::Decision(Decision { call, verdict, by: DecidedBy::Person, definition_hash: None, arguments: None, reason })
}

fn decision(inner: &Inner, state: &State, call: CallId, choice: &Choice) -> Result<Act<()>, EngineError> {
    let journal = &state.journal;
    let Some(turn) = journal.open_turn() else {
        return Err(EngineError::NotWaiting { call, why: "no turn is open".to_owned() });
    };
    let Some(view) = turn.call(call) else {
        return Err(EngineError::NotFound { what: format!("call `{call}` in the open turn") });
    };
    let waits_for = turn.waiting().find(|(waiting, _)| waiting.id == call).map(|(_, question)| question.reason);
    let fits = match (choice.verdict, waits_for) {
        (_, None) => return Err(EngineError::NotWaiting { call, why: "it was decided already".to_owned() }),
        (Verdict::Allow | Verdict::Deny, Some(QuestionReason::Approval | QuestionReason::DefinitionChanged))
        | (Verdict::Happened | Verdict::RunAgain | Verdict::Skip, Some(QuestionReason::UnknownOutcome)) => Ok(()),
        (_, Some(QuestionReason::UnknownOutcome)) => Err("its outcome is unknown: decide happened, run_again or skip"),
        (_, Some(QuestionReason::Approval | QuestionReason::DefinitionChanged)) => {
            Err("it waits to be allowed: decide allow or deny")
        }
    };
    fits.map_err(|why: &str| EngineError::NotWaiting { call, why: why.to_owned() })?;
    let may_run = matches!(choice.verdict, Verdict::Allow | Verdict::RunAgain);
    if choice.arguments.is_some() && !may_run {
        return Err(EngineError::Invalid { what: "arguments can only be changed with allow or run_again".to_owned() });
    }
    let catalog = inner.catalogs.current();
    let now = catalog.get(view.name);
    let hash = now.map(|tool| tool.hash.clone()).or_else(|| journal.definition(view.name).map(|tool| definition_hash(tool)));
    if let Some(arguments) = &choice.arguments {
        let schema = now.map(|tool| &tool.definition).or_else(|| journal.definition(view.name));
        if let (Some(definition), Some(hash)) = (schema, &hash) {
            let object = inner.validators.check(hash, &definition.input_schema, arguments);
            let object = object.map_err(|problem| EngineError::Invalid { what: problem })?;
            if let Some(rule) = inner.policy.denied_by(view.name, &Value::Object(object)) {
                return Err(EngineError::Invalid { what: format!("the changed arguments are denied by {rule}") });
            }
        }
    }
    let entry = Entry::Decision(Decision {
        call,
        verdict: choice.verdict,
        by: DecidedBy::Person,
        definition_hash: hash.filter(|_| may_run).map(|hash| hash.to_string()),
        arguments: choice.arguments.clone(),
        reason: choice.reason.clone(),
    });
    Ok(Act { entries: vec![entry], side: vec![still_open(state, turn.id())], answer: () })
}
