//! What people do to a conversation: send, decide, cancel, retry, hide.
//!
//! Each is stored before it is acknowledged, and tried again where somebody else appended first.

use std::sync::Arc;

use serde_json::{Map, Value};
use turnwright_core::budgets::Closed;
use turnwright_core::{
    AnsweredBy, CallId, Control, ConversationId, ElicitationId, Entry, JournalError, MessageId, Seq, StoredEntry, TurnId,
    Verdict, check, is_blank,
};

use super::reach::Bounds;
use super::{Engine, Remember};
use crate::driver::Before;
use crate::inner::Inner;
use crate::limits::admit_choices;
use crate::live::{Beside, Live, Retitled, State};
use crate::rules::is_rule;
use crate::{Append, EngineError, Fact, Reply, SettingsOverlay, SideRecord, Slot, StoreError};

mod answer;
mod answers;
mod decision;
mod message;
mod overdue;
mod results;
mod retry;
mod say;
mod title;

use answer::answer;
pub use answers::{Answers, Stale};
use decision::decided_and_remembered;
pub use decision::{About, Decided};
use message::Kept;
pub(super) use message::kept_summary;
pub use message::{Beneath, Joins, KnownAs, NewMessage, OnWaiting, Sent, SentState, beside_message};
pub(super) use overdue::Deadlines;
pub(super) use results::result;
pub use results::{ClientResult, Given};
use say::say;
pub(super) use title::{given as given_title, title_in};
use title::{retitled, title_of};

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
pub(super) struct Act<T> {
    pub(super) entries: Vec<Entry>,
    pub(super) side: Vec<SideRecord>,
    pub(super) answer: T,
    /// The place of the turn that it begins among those that run, where it begins one.
    pub(super) slot: Option<Slot>,
    /// Whether any node may take the turn that it begins: then it counts beside those of all nodes.
    pub(super) is_for_all: bool,
}

impl<T> Act<T> {
    /// One that begins no turn.
    pub(super) fn of(entries: Vec<Entry>, side: Vec<SideRecord>, answer: T) -> Self {
        Self { entries, side, answer, slot: None, is_for_all: false }
    }

    /// The same with another record.
    pub(super) fn with(mut self, record: Option<SideRecord>) -> Self {
        self.side.extend(record);
        self
    }
}

impl Engine {
    /// Stores a message and starts, or joins, its turn.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::Invalid`], [`EngineError::KeyReused`], [`EngineError::ShuttingDown`];
    /// [`EngineError::OtherSettings`] where it joins a turn and chooses more than another model;
    /// [`EngineError::OverLimit`] where it is too large, or would begin a turn for which there is no room;
    /// [`EngineError::NotAllowed`] and [`EngineError::PeopleOnly`] where more would run without a person than by the settings
    /// of the installation or of the conversation, or what waits would be declined or is decided, and no person asks; as
    /// [`Engine::answer_all`] for what is answered with it. Nothing is stored then. A message that was sent before is told whatever
    /// is answered with it.
    pub async fn send(&self, id: &ConversationId, message: NewMessage) -> Result<Sent, EngineError> {
        if is_blank(&message.content) {
            return Err(EngineError::Invalid { what: "the message is empty; say something".to_owned() });
        }
        if let Some(problem) = message.overlay.problem().or_else(|| message.conversation.problem()) {
            return Err(EngineError::Invalid { what: problem });
        }
        self.admits(&message.content)?;
        self.limits().admit_chosen(None, &message.overlay)?;
        self.limits().admit_chosen(None, &message.conversation)?;
        self.must_not_decide(&message.overlay).await?;
        self.must_not_decide(&message.conversation).await?;
        if !message.answers.is_empty() {
            self.may_answer(id, &message.answers).await?;
        }
        let own = |(key, fingerprint): (String, String)| (self.own_key(&key), fingerprint);
        let idempotency = message.idempotency.map(own);
        let known_as = message.known_as.map(|known| KnownAs { key: self.own_key(&known.key), ..known });
        let message = NewMessage { idempotency, known_as, ..message };
        if self.is_draining() {
            return Err(EngineError::ShuttingDown);
        }
        let (engine, id) = (self.clone(), id.clone());
        let send = async move {
            let bounds = engine.bounds();
            match engine.send_once(&id, &message, bounds).await {
                Err(EngineError::NotAllowed { what }) => {
                    let wider = engine.wider(bounds, what).await?;
                    engine.send_once(&id, &message, wider).await
                }
                sent => sent,
            }
        };
        self.inner.whole(send).await
    }

    async fn send_once(&self, id: &ConversationId, message: &NewMessage, bounds: Bounds) -> Result<Sent, EngineError> {
        let key = message.idempotency.as_ref();
        if let Some(sent) = self.sent_before(key).await? {
            return Ok(sent);
        }
        match self.say(id, message, bounds).await.inspect(|sent| self.tell_of(sent)) {
            // The same request may have come twice at once, and the other one was stored first.
            Err(error) => {
                if let Some(sent) = self.sent_before(key).await? {
                    return Ok(sent);
                }
                let known = message.known_as.as_ref().map(|known| (known.key.clone(), String::new()));
                self.sent_before(known.as_ref()).await?.ok_or(error)
            }
            sent => sent,
        }
    }

    /// Tells who watches over the engine of a turn that began.
    fn tell_of(&self, sent: &Sent) {
        match sent.state {
            SentState::Started => self.inner.telemetry().tell(&Fact::TurnBegan),
            SentState::Joined | SentState::Held => {}
        }
    }

    async fn say(&self, id: &ConversationId, message: &NewMessage, bounds: Bounds) -> Result<Sent, EngineError> {
        // A conversation that is not in memory is new more often than not: creating it says so without a read.
        if message.create && self.inner.registry.known(id).is_none() {
            match self.begin(id, message, bounds).await {
                Err(EngineError::Exists { .. }) => {}
                begun => return begun,
            }
        }
        let said = match self.load_chosen(id).await {
            Ok(live) => self.say_in(&live, message, bounds).await,
            Err(error) => Err(error),
        };
        match said {
            // It was deleted, by another process or a moment ago; or it is somebody else's.
            Err(EngineError::NotFound { .. }) if message.create => match self.begin(id, message, bounds).await {
                Err(EngineError::Exists { .. }) => Err(super::not_there(id)),
                begun => begun,
            },
            said => said,
        }
    }

    async fn say_in(&self, live: &Arc<Live>, message: &NewMessage, bounds: Bounds) -> Result<Sent, EngineError> {
        let say = |state: &State| say(&self.inner, live, state, message, bounds);
        let (sent, agreed) = act(&self.inner, live, say).await?;
        self.inner.keep_agreed(live, &agreed).await;
        Ok(sent)
    }

    /// Creates the conversation together with its first message, in one append.
    async fn begin(&self, id: &ConversationId, message: &NewMessage, bounds: Bounds) -> Result<Sent, EngineError> {
        let inner = &self.inner;
        let now = inner.clock.now_ms();
        let title = title_of(&message.content);
        let new = super::Conversation {
            id: id.clone(),
            owner: self.user.clone(),
            title,
            overlay: message.conversation.clone(),
            created_at_ms: now,
            updated_at_ms: now,
        };
        let record = super::record(&new)?;
        let live = Arc::new(crate::registry::live_of(&record)?);
        let (at, mut act, _) = draft(inner, &live, |state| say(inner, &live, state, message, bounds))?;
        act.side.insert(0, SideRecord::Create(record));
        act.side.extend(inner.room_elsewhere(&live.owner, act.is_for_all));
        let beside = Beside { slot: act.slot, ..beside(&act.entries, &act.side) };
        let _under_way = inner.acting.begin(id);
        let stored = inner.store.append(append(inner, &live, at, act.entries, act.side)).await;
        let stored = stored.map_err(|error| inner.refusal(error))?;
        acted(inner, &inner.registry.keep_made(live), stored, beside).await;
        Ok(act.answer.0)
    }

    /// Stores a person's decision about a call. Answered once: whoever comes second is told.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::NotWaiting`]; [`EngineError::Invalid`] where the call waits for another kind of
    /// decision, the arguments do not fit the tool or a deny rule matches them.
    pub async fn decide(&self, id: &ConversationId, call: CallId, choice: Choice) -> Result<(), EngineError> {
        self.decide_and_remember(id, call, choice, None).await.map(drop)
    }

    /// As [`Engine::decide`]; a rule is stored with the decision that answers the like from here on, and at once what else waits
    /// in the turn and matches it.
    ///
    /// # Errors
    /// As [`Engine::decide`]; [`EngineError::NotWaiting`] where the question that it is about is not open any more;
    /// [`EngineError::Invalid`] where the rule cannot be used or does not match the call.
    pub async fn decide_and_remember(
        &self,
        id: &ConversationId,
        about: impl Into<About>,
        choice: Choice,
        remember: Option<Remember>,
    ) -> Result<Decided, EngineError> {
        self.must_decide().await?;
        admit_choices(std::iter::once(&choice))?;
        if remember.is_some() && !self.inner.rules.are_kept() {
            return Err(EngineError::Invalid { what: "nothing is remembered here".to_owned() });
        }
        if let Some(remember) = &remember {
            self.must_have_room_for_rule(remember.scope).await?;
        }
        let (engine, id, about) = (self.clone(), id.clone(), about.into());
        let decide = async move {
            let live = engine.load_newest(&id).await?;
            engine.deny_overdue_before(&live).await?;
            engine.inner.refresh_sources().await;
            let decide =
                |state: &State| decided_and_remembered(&engine.inner, &live, state, (about, &choice), remember.as_ref());
            let (decided, agreed) = act(&engine.inner, &live, decide).await?;
            engine.inner.keep_agreed(&live, &agreed).await;
            Ok(decided)
        };
        self.inner.whole(decide).await
    }

    /// Asks an open turn to stop. Stored when this returns; it reaches the provider, the tools and what they started.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::NoOpenTurn`] where that turn is not open; [`EngineError::PeopleOnly`] where
    /// something waits in it for a person.
    pub async fn cancel(&self, id: &ConversationId, turn: Option<TurnId>) -> Result<TurnId, EngineError> {
        let (engine, id) = (self.clone(), id.clone());
        let cancel = async move {
            let live = engine.load_newest(&id).await?;
            let bounds = engine.bounds();
            match act(&engine.inner, &live, |state| cancel(&engine.inner, state, (turn, bounds))).await {
                Err(EngineError::NotAllowed { what }) => {
                    let wider = engine.wider(bounds, what).await?;
                    act(&engine.inner, &live, |state| cancel(&engine.inner, state, (turn, wider))).await
                }
                cancelled => cancelled,
            }
        };
        self.inner.whole(cancel).await
    }

    /// The open turn, where it goes on with what is chosen; `None` where none is open.
    ///
    /// # Errors
    /// [`EngineError::NotFound`]; [`EngineError::OtherSettings`] where something else was chosen than it began with.
    pub async fn open_turn(&self, id: &ConversationId, chosen: &SettingsOverlay) -> Result<Option<TurnId>, EngineError> {
        let live = self.load_newest(id).await?;
        let state = live.lock();
        let Some(turn) = state.journal.open_turn() else { return Ok(None) };
        say::fits(chosen, turn)?;
        Ok(Some(turn.id()))
    }

    /// Answers, once, what a call asks of people. The values of a form are checked and completed with its defaults; what is
    /// sent is returned.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::NotAsked`] where it was answered before or is closed,
    /// [`EngineError::Misfilled`], [`EngineError::Invalid`].
    pub async fn answer(
        &self,
        id: &ConversationId,
        question: ElicitationId,
        reply: Reply,
    ) -> Result<Option<Map<String, Value>>, EngineError> {
        self.answer_once(id, question, reply, None).await
    }

    /// As [`Engine::answer`], kept under an idempotency key (the key, and a hash of what was asked), where there is one.
    ///
    /// # Errors
    /// As [`Engine::answer`]; [`EngineError::KeyReused`].
    pub async fn answer_once(
        &self,
        id: &ConversationId,
        question: ElicitationId,
        reply: Reply,
        idempotency: Option<(String, String)>,
    ) -> Result<Option<Map<String, Value>>, EngineError> {
        self.must_decide().await?;
        let kept = self.to_keep(id, idempotency.clone()).await?;
        let answered = self.answer_by(id, question, reply, (AnsweredBy::Person, kept)).await;
        self.or_reused(answered, idempotency).await
    }

    pub(super) async fn answer_by(
        &self,
        id: &ConversationId,
        question: ElicitationId,
        reply: Reply,
        (by, kept): (AnsweredBy, Option<SideRecord>),
    ) -> Result<Option<Map<String, Value>>, EngineError> {
        let (engine, id) = (self.clone(), id.clone());
        let answering = async move {
            let live = engine.load_newest(&id).await?;
            engine.close_what_is_gone(&live, question).await?;
            let answer = |state: &State| Ok(answer(&engine.inner, state, question, (&reply, by))?.with(kept.clone()));
            act(&engine.inner, &live, answer).await
        };
        self.inner.whole(answering).await
    }

    /// Hides a message from people and models. Its entry stays.
    ///
    /// # Errors
    /// [`EngineError::NotFound`]; [`EngineError::TurnOpen`] where its turn is; [`EngineError::Invalid`] where it is a result.
    pub async fn hide(&self, id: &ConversationId, message: MessageId) -> Result<(), EngineError> {
        let (engine, id) = (self.clone(), id.clone());
        let hide = async move {
            let live = engine.load_newest(&id).await?;
            act(&engine.inner, &live, |state| hide(state, message)).await
        };
        self.inner.whole(hide).await
    }
}

/// Appends what `make` says, made anew where somebody else appended first, and sees to it that it is acted on.
pub(super) async fn act<T>(
    inner: &Arc<Inner>,
    live: &Arc<Live>,
    make: impl Fn(&State) -> Result<Act<T>, EngineError>,
) -> Result<T, EngineError> {
    loop {
        let (at, mut act, closed) = draft(inner, live, &make)?;
        if act.entries.is_empty() {
            return Ok(act.answer);
        }
        act.side.extend(inner.room_elsewhere(&live.owner, act.is_for_all));
        act.side.extend(inner.ledger_records(&live.owner, closed, &act.entries).await?);
        let beside = Beside { slot: act.slot, ..beside(&act.entries, &act.side) };
        let rules = rules_in(&act.side);
        let _under_way = inner.acting.begin(&live.id);
        match inner.store.append(append(inner, live, at, act.entries, act.side)).await {
            Ok(stored) => {
                // Before anybody goes on with the turn: what follows is decided by them.
                if !rules.is_empty() {
                    inner.rules.take(&rules);
                }
                acted(inner, live, stored, beside).await;
                return Ok(act.answer);
            }
            Err(StoreError::Conflict { next }) if next >= at => live.refresh(&*inner.store).await?,
            // Deleted; a journal that is shorter than what was stored is another's, of the same name.
            Err(StoreError::Conflict { .. } | StoreError::Gone { .. }) => {
                inner.bury(live);
                return Err(StoreError::Gone { conversation: live.id.clone() }.into());
            }
            Err(error) => return Err(inner.refusal(error)),
        }
    }
}

/// What `make` says about a conversation as it is known here, and the place of its first entry.
fn draft<T>(
    inner: &Inner,
    live: &Live,
    make: impl Fn(&State) -> Result<Act<T>, EngineError>,
) -> Result<(Seq, Act<T>, Vec<Closed>), EngineError> {
    if inner.shutdown.is_cancelled() {
        return Err(EngineError::ShuttingDown);
    }
    let state = live.lock();
    if let Some(error) = &state.broken {
        return Err(EngineError::Journal(error.clone()));
    }
    let act = make(&state)?;
    let closed = state.journal.closed_by(&act.entries);
    match check(&state.journal, &act.entries) {
        Ok(()) => Ok((state.journal.next_seq(), act, closed)),
        Err(JournalError::Misfit { why, .. }) => Err(EngineError::Invalid { what: why.to_owned() }),
        Err(error @ JournalError::OutOfOrder { .. }) => Err(EngineError::Journal(error)),
    }
}

fn append(inner: &Inner, live: &Live, at: Seq, entries: Vec<Entry>, mut side: Vec<SideRecord>) -> Append {
    if !side.iter().any(|record| matches!(record, SideRecord::Create(_))) {
        side.push(SideRecord::Of(live.incarnation()));
    }
    Append { conversation: live.id.clone(), at, entries, at_ms: inner.clock.now_ms(), side }
}

/// The rules that are stored or removed with an act.
fn rules_in(side: &[SideRecord]) -> Vec<(String, Option<String>)> {
    let rule = |record: &SideRecord| match record {
        SideRecord::Document { kind, key, body } if is_rule(kind) => Some((key.clone(), body.clone())),
        _ => None,
    };
    side.iter().filter_map(rule).collect()
}

/// What is known of a conversation, once this is stored, besides its entries.
fn beside(entries: &[Entry], side: &[SideRecord]) -> Beside {
    let mut beside = Beside::default();
    for entry in entries {
        match entry {
            Entry::Control(
                Control::Hidden { .. }
                | Control::Compacted(_)
                | Control::Uncompacted { .. }
                | Control::Reserved(_)
                | Control::Settled { .. },
            ) => continue,
            Entry::Control(Control::Claimed(claim)) => beside.claim = Some(claim.clone()),
            _ => {}
        }
        beside.moves_turn = true;
    }
    for record in side {
        match record {
            SideRecord::Title(title) => beside.retitled = Some(Retitled(title.clone())),
            SideRecord::TurnOpen { turn, kept_by, .. } => beside.keeper = Some((*turn, *kept_by)),
            SideRecord::Create(_)
            | SideRecord::Of(_)
            | SideRecord::Times(_)
            | SideRecord::TurnOver
            | SideRecord::Document { .. }
            | SideRecord::Holds { .. }
            | SideRecord::HoldsAs { .. }
            | SideRecord::RunningTurns { .. }
            | SideRecord::Reserve(_)
            | SideRecord::Settle { .. }
            | SideRecord::Idempotent { .. } => {}
        }
    }
    beside
}

/// Takes what was stored, and sees to it that it is acted on: by the driver of the claim that came with it, by the one that
/// drives already, or by one that takes over.
async fn acted(inner: &Arc<Inner>, live: &Arc<Live>, stored: Vec<StoredEntry>, beside: Beside) {
    let moves_turn = beside.moves_turn;
    match live.apply_act(stored, beside, &inner.running) {
        Some(claim) => inner.drive(live, (claim, Before::HasStopped), Vec::new()),
        None if !moves_turn => {}
        None => match inner.move_on(live).await {
            Ok(()) | Err(EngineError::ShuttingDown) => {}
            // It is stored, so whoever sent it is not told otherwise; servers look for open turns again and again.
            Err(error) => live.context().in_scope(|| tracing::warn!(%error, "the turn is not driven for the moment")),
        },
    }
}

fn cancel(inner: &Inner, state: &State, (turn, bounds): (Option<TurnId>, Bounds)) -> Result<Act<TurnId>, EngineError> {
    let open = state.journal.open_turn().filter(|open| turn.is_none_or(|turn| turn == open.id()));
    let Some(open) = open else {
        let why = turn.map_or_else(|| "no turn is open".to_owned(), |turn| format!("turn `{turn}` is not open"));
        return Err(EngineError::NoOpenTurn { why });
    };
    bounds.hold_stopping(open)?;
    let turn = open.id();
    let entries = vec![Entry::Control(Control::CancelRequested { turn })];
    Ok(Act::of(entries, vec![still_open(inner, state, turn)], turn))
}

fn hide(state: &State, message: MessageId) -> Result<Act<()>, EngineError> {
    let entries = match state.journal.entry(message.0).map(|stored| &*stored.entry) {
        Some(Entry::User(_) | Entry::Assistant(_)) if state.journal.is_hidden(message) => Vec::new(),
        // It is being answered; and the model would not know of the calls that it made there, and make them again.
        Some(Entry::User(_) | Entry::Assistant(_))
            if state.journal.open_turn().is_some_and(|turn| turn.id().0 <= message.0) =>
        {
            return Err(EngineError::TurnOpen { why: "the message is part of an open turn: cancel that first".to_owned() });
        }
        Some(Entry::User(_) | Entry::Assistant(_)) => vec![Entry::Control(Control::Hidden { message })],
        Some(Entry::Result(_)) => {
            let what = format!("`{message}` is the result of a call: hide the message of the model's that made it");
            return Err(EngineError::Invalid { what });
        }
        _ => return Err(EngineError::NotFound { what: format!("message `{message}` in this conversation") }),
    };
    let side = retitled(state.chosen.title.as_deref(), &state.journal, &entries);
    Ok(Act::of(entries, side.into_iter().collect(), ()))
}

/// The row of a turn that can go on.
fn still_open(inner: &Inner, state: &State, turn: TurnId) -> SideRecord {
    SideRecord::TurnOpen { turn, parked: false, kept_by: inner.keeper(state) }
}
