//! A conversation, told by the turn machine itself.

use std::sync::Arc;

use turnwright_core::prompt::{self, Prompt, PromptMessage};
use turnwright_core::{
    AssistantMessage, CallId, Claim, Compacted, Completion, ContentBlock, Control, ConversationId, CutOffCause, DriverId,
    Entry, Journal, MessageId, Next, Outcome, ProviderFailure, ProviderFailureKind, Seq, StoredEntry, ToolErrorKind,
    ToolResult, Turn, TurnSettings, TurnStatus, Usage, UserMessage, compaction, plan,
};

use super::content;
use super::endpoint::{self, Endpoint};
use super::features::Features;
use super::people::{self, Rules};
use super::random::Random;
use super::speech;

/// A conversation and those who take part in it.
#[derive(Debug)]
pub(crate) struct Story {
    pub(crate) journal: Journal,
    pub(crate) features: Features,
    conversation: ConversationId,
    random: Random,
    running: Vec<CallId>,
    /// What the last plan said; `None` where no driver holds the turn.
    next: Option<Next>,
    /// The endpoint that the turn asks.
    endpoint: usize,
    /// The endpoints of earlier turns.
    before: Vec<usize>,
    spoken: usize,
    is_calm: bool,
}

/// A place where a model is to be asked.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) allow_calls: bool,
    pub(crate) settings: TurnSettings,
    pub(crate) endpoint: &'static Endpoint,
}

impl Story {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            journal: Journal::default(),
            features: Features::default(),
            conversation: "conversation".parse().unwrap(),
            random: Random::new(seed),
            running: Vec::new(),
            next: None,
            endpoint: 0,
            before: Vec::new(),
            spoken: 0,
            is_calm: false,
        }
    }

    /// A story that is left where a model is to be asked, after so many answers as the seed says.
    pub(crate) fn told(seed: u64) -> (Self, Asked) {
        let mut story = Self::new(seed);
        let answers = *story.random.pick(&[0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 8, 10]);
        let asked = loop {
            let asked = story.go_on();
            if story.spoken >= answers {
                break asked;
            }
            story.answer(&asked);
        };
        (story, asked)
    }

    /// Others that begin with what happened up to the end of its newest turn, and go on as each seed says. None where a turn is
    /// open, or nothing happened.
    pub(crate) fn branches(&self, seeds: impl IntoIterator<Item = u64>) -> Vec<Self> {
        let last = self.journal.last_seq().filter(|_| self.journal.open_turn().is_none());
        let Some(beginning) = last.and_then(|last| self.journal.begin_with(last)) else { return Vec::new() };
        let begun = |seed| Self {
            journal: beginning.clone(),
            conversation: format!("branch-{seed}").parse().unwrap(),
            endpoint: self.endpoint,
            before: self.before.clone(),
            ..Self::new(seed)
        };
        seeds.into_iter().map(begun).collect()
    }

    pub(crate) fn prompt<'a>(&'a self, asked: &'a Asked) -> Prompt<'a> {
        prompt::of(&self.conversation, &self.journal, &asked.settings, asked.allow_calls)
    }

    /// Lets things happen until a model is to be asked.
    pub(crate) fn go_on(&mut self) -> Asked {
        for _ in 0..10_000 {
            match self.next.take() {
                Some(Next::CallModel { allow_calls }) => {
                    let (settings, model) = (self.turn().settings().clone(), self.turn().model().clone());
                    if model != settings.model {
                        self.features.saw("a fallback to another model");
                    }
                    self.next = Some(Next::CallModel { allow_calls });
                    let endpoint = endpoint::all().iter().find(|endpoint| endpoint.model() == model).unwrap();
                    return Asked { allow_calls, settings, endpoint };
                }
                Some(Next::Wait) => self.wait(),
                Some(Next::Compact) => self.compact(),
                Some(Next::Parked) => self.parked(),
                Some(Next::Ended(_)) => self.ended(),
                None if self.journal.open_turn().is_some() => self.claim(),
                None => self.open(),
            }
        }
        panic!("the story goes on for ever: {:?}", self.journal.turn().map(Turn::step));
    }

    fn turn(&self) -> &Turn {
        self.journal.turn().unwrap()
    }

    /// The model answers, is disturbed, or fails.
    pub(crate) fn answer(&mut self, asked: &Asked) {
        self.spoken += 1;
        let saw = self.journal.last_seq().unwrap();
        if self.random.percent(6) {
            self.features.saw("a model call that failed");
            let kind = *self.random.pick(&[ProviderFailureKind::Overloaded, ProviderFailureKind::ContextLength]);
            let failure = ProviderFailure::new(kind, "no");
            return self.happens(vec![Entry::Control(Control::Failed(failure))]);
        }
        let speaker = asked.endpoint;
        let tools: Vec<&str> = self.journal.offered().iter().map(|tool| tool.name.as_str()).collect();
        let mut message = speech::answer(&mut self.random, &mut self.features, speaker, &tools, saw);
        self.looks_at(&message);
        if self.random.percent(8) {
            self.features.saw("a message that arrived in the middle");
            let entry = self.user(asked.settings.clone());
            self.append(vec![entry]);
        }
        if self.random.percent(3) {
            self.cancel();
            if self.turn().cancels(saw) && message.completion == Completion::Complete {
                message.completion = Completion::CutOff(CutOffCause::Cancelled);
            }
        }
        if self.random.percent(2) {
            // The driver dies before its message is stored: whoever comes next asks again.
            self.features.saw("a crash while the model spoke");
            return self.claim();
        }
        self.happens(vec![Entry::Assistant(message)]);
    }

    fn looks_at(&mut self, message: &AssistantMessage) {
        let calls = message.calls().count();
        if calls > 1 {
            self.features.saw("parallel calls");
        }
        if message.completion != Completion::Complete {
            self.features.saw("a cut-off message");
            if calls > 0 {
                self.features.saw("a cut-off message with calls");
            }
        }
        for call in message.calls() {
            if call.native.is_some() {
                self.features.saw("a native block of a call");
            }
        }
    }

    fn user(&mut self, settings: TurnSettings) -> Entry {
        Entry::User(UserMessage { content: content::said(&mut self.random, &mut self.features), settings })
    }

    fn append(&mut self, entries: Vec<Entry>) {
        for entry in entries {
            let stored = StoredEntry { seq: self.journal.next_seq(), at_ms: 0, entry: Arc::new(entry) };
            self.journal.apply(stored).unwrap();
        }
    }

    /// Stores what happened and what follows from it.
    fn happens(&mut self, first: Vec<Entry>) {
        let mode = self.journal.turn().map(|turn| turn.settings().approve).unwrap_or_default();
        let free_slots = 2_usize.saturating_sub(self.running.len());
        let mut rules = Rules { random: &mut self.random, features: &mut self.features, free_slots, mode };
        let planned = plan(&self.journal, first, &mut rules).unwrap();
        self.append(planned.entries);
        self.running.extend(planned.run);
        self.next = Some(planned.next);
    }

    /// A driver takes the turn; whoever held it is gone, and what it ran with it.
    fn claim(&mut self) {
        let claim = Claim { driver: DriverId("driver".to_owned()), epoch: self.journal.next_epoch(), folder: None };
        let turn = self.turn();
        let mut entries = vec![Entry::Control(Control::Claimed(claim))];
        if turn.holder().is_some() && !turn.is_parked() {
            entries.push(Entry::Control(Control::Resumed { count: turn.next_resumption() }));
        }
        self.running.clear();
        self.happens(entries);
    }

    fn cancel(&mut self) {
        if let Some(turn) = self.journal.open_turn().map(Turn::id) {
            self.features.saw("a cancel");
            self.append(vec![Entry::Control(Control::CancelRequested { turn })]);
        }
    }

    /// The conversation goes on with a summary of its beginning.
    fn compact(&mut self) {
        self.features.saw("a compaction");
        let cut = compaction::cut(&self.journal).unwrap();
        let (turn, through, summary) = (cut.turn, cut.through, cut.digest());
        let compacted = Compacted { turn, through, summary, origin: None, usage: Usage::default() };
        self.happens(vec![Entry::Control(Control::Compacted(compacted))]);
    }

    /// Calls run.
    fn wait(&mut self) {
        match self.random.below(30) {
            _ if self.is_calm => {}
            0 => {
                self.features.saw("a crash while calls ran");
                return self.claim();
            }
            1 => {
                self.features.saw("a message that arrived in the middle");
                let settings = self.turn().settings().clone();
                let entry = self.user(settings);
                return self.happens(vec![entry]);
            }
            2 => self.cancel(),
            _ => {}
        }
        if self.running.is_empty() {
            return self.claim();
        }
        let place = self.random.below(self.running.len());
        let call = self.running.swap_remove(place);
        let result = if self.turn().is_cancelling() && self.random.percent(70) {
            self.features.saw("an interrupted call");
            ToolResult::failed(call, ToolErrorKind::Interrupted, "It was stopped.")
        } else {
            content::result(&mut self.random, &mut self.features, call)
        };
        self.happens(vec![Entry::Result(result)]);
    }

    /// Only a person can go on.
    fn parked(&mut self) {
        match if self.is_calm { 9 } else { self.random.below(10) } {
            0 => {
                self.features.saw("a message to a parked turn");
                let settings = self.turn().settings().clone();
                let entry = self.user(settings);
                self.append(vec![entry]);
                self.next = Some(Next::Parked);
            }
            1 => {
                self.cancel();
                self.claim();
            }
            _ => {
                let turn = self.journal.turn().unwrap();
                let decision = turn
                    .waiting()
                    .next()
                    .map(|(call, question)| people::decision(&mut self.random, &mut self.features, &call, question));
                self.append(decision.map(Entry::Decision).into_iter().collect());
                self.claim();
            }
        }
    }

    /// A turn is over: it is taken up again, or what was said is hidden, or nothing of the kind.
    fn ended(&mut self) {
        self.running.clear();
        let turn = self.turn();
        let (id, status) = (turn.id(), turn.ended().cloned());
        if status == Some(TurnStatus::StepLimit) {
            self.features.saw("the step limit");
        }
        if !matches!(status, Some(TurnStatus::Completed)) && self.random.percent(60) {
            self.features.saw("a retry");
            let settings = self.random.percent(40).then(|| {
                self.switch();
                self.settings()
            });
            let retried = Entry::Control(Control::Retried { turn: id, settings: settings.map(Box::new), hides: None });
            let stored = StoredEntry { seq: self.journal.next_seq(), at_ms: 0, entry: Arc::new(retried) };
            // Where the message that it answers is hidden there is nothing to take up.
            if self.journal.apply(stored).is_ok() {
                return;
            }
        }
        while self.random.percent(15) {
            let message = Seq::new(u64::try_from(self.random.below(self.journal.entries().len())).unwrap() + 1).unwrap();
            let hidden = Entry::Control(Control::Hidden { message: MessageId(message) });
            let stored = StoredEntry { seq: self.journal.next_seq(), at_ms: 0, entry: Arc::new(hidden) };
            if self.journal.apply(stored).is_ok() {
                self.features.saw("a hidden message");
            }
        }
    }

    fn settings(&mut self) -> TurnSettings {
        let model = endpoint::all()[self.endpoint].model();
        let mut settings = people::settings(&mut self.random, &mut self.features, model, self.journal.offered());
        if self.random.percent(70) {
            let fallback = [self.random.below(endpoint::all().len()), self.random.below(endpoint::all().len())];
            settings.fallback = fallback.map(|place| endpoint::all()[place].model()).to_vec();
        }
        settings
    }

    /// Another model, or one that was asked before.
    fn switch(&mut self) {
        self.before.push(self.endpoint);
        let now =
            if self.random.percent(50) { *self.random.pick(&self.before) } else { self.random.below(endpoint::all().len()) };
        if now != self.endpoint {
            self.features.saw("a switch of the model");
            if self.before.contains(&now) {
                self.features.saw("a switch back");
            }
        }
        self.endpoint = now;
    }

    /// A new turn.
    fn open(&mut self) {
        if self.journal.entries().is_empty() || self.random.percent(40) {
            self.switch();
        }
        let settings = self.settings();
        let user = self.user(settings);
        self.append(vec![user]);
        if self.journal.offered().is_empty() || self.random.percent(20) {
            let definitions = people::tools(&mut self.random);
            self.features.saw(if definitions.is_empty() { "no tools offered" } else { "tools offered" });
            let gone = self.journal.offered().iter().any(|tool| definitions.iter().all(|kept| kept.name != tool.name));
            if gone {
                self.features.saw("a tool that went away");
            }
            self.append(vec![Entry::Control(Control::Offered { definitions })]);
        }
        if self.random.percent(8) {
            self.features.saw("several user messages in a row");
            let settings = self.turn().settings().clone();
            let user = self.user(settings);
            self.append(vec![user]);
        }
    }
}

/// A conversation in which nothing goes wrong, told turn by turn: calls run or wait for a person.
impl Story {
    pub(crate) fn calm(seed: u64) -> Self {
        Self { is_calm: true, ..Self::new(seed) }
    }

    /// Opens a turn. A server that was away offers the same tools again; where `is_changed`, a person changed what is enabled.
    pub(crate) fn begin(&mut self, is_changed: bool, turn: usize) {
        let mut settings = TurnSettings::new(endpoint::all()[0].model());
        settings.system_prompt = Some("Be brief.".to_owned());
        let content = vec![ContentBlock::text(format!("Question {turn}: {}", "what then? ".repeat(8)))];
        self.append(vec![Entry::User(UserMessage { content, settings })]);
        if is_changed || turn.is_multiple_of(4) {
            let definitions = people::some_tools(if turn < 11 {
                3
            } else if turn < 21 {
                5
            } else {
                4
            });
            self.append(vec![Entry::Control(Control::Offered { definitions })]);
        }
        self.next = None;
    }

    /// The model calls twice and then answers. Says whether the turn is over.
    pub(crate) fn answer_calmly(&mut self, asked: &Asked, turn: usize) -> bool {
        let saw = self.journal.last_seq().unwrap();
        let steps = self.turn().steps();
        let tools: Vec<String> = self.journal.offered().iter().map(|tool| tool.name.clone()).collect();
        let message = speech::calm(&mut self.random, asked.endpoint, &tools, usize::try_from(steps).unwrap() < 2, saw, turn);
        self.happens(vec![Entry::Assistant(message)]);
        matches!(self.next, Some(Next::Ended(_)))
    }
}

/// What the machine itself says of these calls, for the list of what occurred.
pub(crate) fn outcomes(story: &Story, features: &mut Features) {
    for stored in story.journal.entries() {
        if let Entry::Result(result) = &*stored.entry {
            features.saw(match result.outcome {
                Outcome::Success => "outcome success",
                Outcome::Denied => "outcome denied",
                Outcome::Error(ToolErrorKind::Cancelled) => "outcome cancelled",
                Outcome::Error(ToolErrorKind::Interrupted) => "outcome interrupted",
                Outcome::Error(ToolErrorKind::InvalidArguments) => "outcome invalid arguments",
                Outcome::Error(_) => "outcome failed",
            });
        }
    }
    let prompt = prompt::messages(&story.journal);
    if matches!(prompt.last(), Some(PromptMessage::Assistant { .. })) {
        features.saw("a pause to go on from");
    }
}
