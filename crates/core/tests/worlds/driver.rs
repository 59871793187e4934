//! Carries out plans, one thing at a time, as the engine does with many.

use std::cell::RefCell;

use turnwright_core::budgets::{BudgetKind, Budgeted, Estimate, Most, Purpose, reserve};
use turnwright_core::{
    AnswerAction, Answered, AnsweredBy, CallId, CallView, Claim, Compacted, Completion, Control, CutOffCause, DriverId,
    ElicitationId, Entry, Journal, MessageId, Next, Outcome, ProviderFailure, ProviderFailureKind, Sampled, SamplingOutcome,
    Settled, Step, StopReason, StoredEntry, TaskAccepted, ToolErrorKind, ToolResult, Turn, TurnSettings, TurnStatus, Usage,
    Waits, compaction, plan, prompt,
};

use crate::laws::{Depth, well_formed};
use crate::script::{
    RESERVED, ROUNDS, Rules, SAMPLED, Service, TURN_TOKENS, answer, fill_asks, is_replayable, talk_asks, think_asks, trouble,
};
use crate::world::{Conflict, Crash, World};

/// How a driver left its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    Ended,
    Parked,
    Crashed,
    /// Another driver claimed it.
    Superseded,
}

impl From<Crash> for Left {
    fn from(_: Crash) -> Self {
        Self::Crashed
    }
}

/// Drives the world until nothing is open any more: a new driver after each crash, a decision wherever a turn parks, one
/// retry for each failure.
pub(crate) fn live(world: &mut World) {
    for _ in 0..200 {
        let idle = world.idle_claim.take();
        let Some(turn) = world.shadow.turn() else { return };
        match turn.ended() {
            None if idle.is_some() => {
                let _ = drive(world, idle);
            }
            None if turn.is_parked() => {
                world.decide_first();
                let _ = drive(world, None);
            }
            None => {
                let _ = drive(world, None);
            }
            Some(TurnStatus::Failed { .. }) => {
                let turn = turn.id();
                world.put(vec![Entry::Control(Control::Retried { turn, settings: None, hides: None })]);
            }
            Some(_) => return,
        }
    }
    panic!("the turn goes on for ever\n{}", world.story());
}

/// The entries with which a driver takes a turn.
pub(crate) fn claim_entries(driver: String, journal: &Journal, turn: &Turn) -> (Claim, Vec<Entry>) {
    let claim = Claim { driver: DriverId(driver), epoch: journal.next_epoch(), folder: None };
    let mut entries = vec![Entry::Control(Control::Claimed(claim.clone()))];
    if turn.holder().is_some() && !turn.is_parked() {
        entries.push(Entry::Control(Control::Resumed { count: turn.next_resumption() }));
    }
    (claim, entries)
}

/// One driver, from its claim to where it lets go. It goes on under `held`, or claims.
pub(crate) fn drive(world: &mut World, held: Option<Claim>) -> Result<Left, Left> {
    let journal = world.journal();
    let Some(turn) = journal.open_turn() else { return Ok(Left::Ended) };
    let claim = match held {
        Some(claim) if turn.is_held_by(&claim) => claim,
        Some(_) => return Ok(Left::Superseded),
        None => {
            let name = world.driver();
            return Driver { world, journal, claim: None, running: Vec::new(), asked: RefCell::default() }.claim(&name);
        }
    };
    Driver { world, journal, claim: Some(claim), running: Vec::new(), asked: RefCell::default() }.run()
}

struct Driver<'w> {
    world: &'w mut World,
    journal: Journal,
    claim: Option<Claim>,
    running: Vec<CallId>,
    /// The questions that calls of this driver asked over their connections.
    asked: RefCell<Vec<ElicitationId>>,
}

impl Driver<'_> {
    fn claim(mut self, name: &str) -> Result<Left, Left> {
        loop {
            let Some(turn) = self.journal.open_turn() else { return Ok(Left::Ended) };
            let (claim, first) = claim_entries(name.to_owned(), &self.journal, turn);
            match self.append(&first)? {
                Ok(next) => {
                    self.claim = Some(claim);
                    return self.go_on(next);
                }
                Err(Conflict) => self.read()?,
            }
        }
    }

    fn run(mut self) -> Result<Left, Left> {
        let next = self.store(&[])?;
        self.go_on(next)
    }

    fn go_on(mut self, mut next: Next) -> Result<Left, Left> {
        loop {
            let first = match next {
                Next::Ended(_) => return Ok(Left::Ended),
                Next::Parked => return Ok(Left::Parked),
                Next::CallModel { allow_calls } => match self.reserve(Purpose::Answer) {
                    Some(reserved) => vec![reserved],
                    None => self.ask_model(allow_calls)?,
                },
                Next::Compact => self.compact()?,
                Next::Wait => match self.running.pop() {
                    Some(call) => self.run_call(call)?,
                    None => self.ask_for_tool()?,
                },
            };
            next = self.store(&first)?;
        }
    }

    /// Stores what just happened, with all that follows from it.
    fn store(&mut self, first: &[Entry]) -> Result<Next, Left> {
        loop {
            match self.append(first)? {
                Ok(next) => return Ok(next),
                Err(Conflict) => self.read()?,
            }
        }
    }

    fn append(&mut self, first: &[Entry]) -> Result<Result<Next, Conflict>, Left> {
        let mut rules = Rules { mode: self.world.script.mode, running: self.running.len() };
        let planned = plan(&self.journal, first.to_vec(), &mut rules)
            .unwrap_or_else(|error| panic!("{error}: {first:?}\n{}", self.world.story()));
        if !planned.entries.is_empty() {
            self.world.point()?;
            match self.world.append(self.journal.next_seq(), planned.entries) {
                Err(Conflict) => return Ok(Err(Conflict)),
                Ok(stored) => {
                    for entry in stored {
                        self.journal.apply(entry).expect("what was planned fits");
                    }
                }
            }
            if self.world.depth == Depth::EveryPrefix {
                assert_eq!(self.journal, self.world.journal(), "the live state is another\n{}", self.world.story());
            }
            self.world.point()?;
        }
        self.running.extend(planned.run);
        Ok(Ok(planned.next))
    }

    /// Takes what others appended.
    fn read(&mut self) -> Result<(), Left> {
        let known = self.journal.entries().len();
        for entry in &self.world.log[known..] {
            self.journal.apply(entry.clone()).expect("what is stored fits");
        }
        let held = |claim: &Claim| self.journal.turn().is_some_and(|turn| turn.is_held_by(claim));
        match &self.claim {
            Some(claim) if !held(claim) => Err(Left::Superseded),
            _ => Ok(()),
        }
    }

    /// What is to be stored before a model is asked, where there is a budget and nothing is reserved under this claim: the
    /// reservation, or the end that the budget makes.
    fn reserve(&self, purpose: Purpose) -> Option<Entry> {
        if self.world.script.provider != Service::Spending {
            return None;
        }
        let books = self.journal.books();
        let epoch = self.claim.as_ref().map(|claim| claim.epoch);
        if books.open().iter().any(|open| open.reserved.purpose == purpose && Some(open.epoch) == epoch) {
            return None;
        }
        let turn = self.journal.open_turn().expect("a turn is open");
        let budget = Budgeted {
            kind: BudgetKind::Turn,
            most: Most { tokens: Some(TURN_TOKENS), nano_usd: None },
            spent: books.turn(),
            reserved: books.reserved_besides(purpose),
            resets_at_ms: None,
        };
        let (input_tokens, output_tokens) = RESERVED;
        let estimate = Estimate { purpose, model: turn.model().clone(), input_tokens, output_tokens, prices: None };
        Some(match (reserve(&[budget], &estimate), purpose) {
            (Ok(reserved), _) => Entry::Control(Control::Reserved(reserved)),
            (Err(_), Purpose::Sampling(question)) => {
                let failure = ProviderFailure::new(ProviderFailureKind::Limit, "over budget");
                let outcome = SamplingOutcome::Failed { failure, usage: Usage::default() };
                Entry::Sampled(Sampled { question, outcome })
            }
            (Err(stop), Purpose::Answer | Purpose::Summary | Purpose::SummaryByHand) => {
                let status = TurnStatus::stopped(StopReason::Budget(stop));
                Entry::Control(Control::Ended { turn: turn.id(), status })
            }
        })
    }

    fn ask_model(&mut self, allow_calls: bool) -> Result<Vec<Entry>, Left> {
        let saw = self.journal.last_seq().expect("there is a user message");
        let turn = self.journal.turn().expect("a turn is open");
        let conversation = "c".parse().expect("an id");
        let settings = TurnSettings { model: turn.model().clone(), ..turn.settings().clone() };
        let prompt = prompt::of(&conversation, &self.journal, &settings, allow_calls);
        if let Err(broken) = well_formed(&prompt.messages) {
            panic!("{broken}\n{}", self.world.story());
        }
        assert!(
            !matches!(prompt.messages.last(), Some(prompt::PromptMessage::Assistant { .. })),
            "the model is shown its own words last\n{}",
            self.world.story()
        );
        let is_retried =
            self.journal.entries().iter().any(|stored| matches!(*stored.entry, Entry::Control(Control::Retried { .. })));
        let is_said = |stored: &StoredEntry| {
            matches!(*stored.entry, Entry::Assistant(_)) && !self.journal.is_hidden(MessageId(stored.seq))
        };
        let said = self.journal.entries().iter().filter(|stored| is_said(stored)).count();
        let trouble = match self.world.script.provider {
            Service::Good | Service::Asking | Service::Working | Service::Circling | Service::Spending => None,
            Service::Troubled => trouble(turn.model(), &self.journal, said),
        };
        let mut message = answer(&prompt, self.world.script.provider, saw, said, is_retried);
        self.world.point()?;
        self.read()?;
        let is_stopped = self.journal.turn().is_some_and(|turn| turn.cancels(saw));
        if let Some(failure) = trouble {
            return Ok(if is_stopped { Vec::new() } else { vec![Entry::Control(Control::Failed(failure))] });
        }
        if self.journal.turn().is_some_and(|turn| turn.cancels(saw)) {
            message.completion = Completion::CutOff(CutOffCause::Cancelled);
        }
        Ok(vec![Entry::Assistant(message)])
    }

    /// Makes a summary. Where others have moved the turn on meanwhile, it is of no use any more.
    fn compact(&mut self) -> Result<Vec<Entry>, Left> {
        self.world.point()?;
        let cut = compaction::cut(&self.journal).expect("there is something to compact");
        let (turn, through, summary) = (cut.turn, cut.through, cut.digest());
        self.world.point()?;
        self.read()?;
        let is_wanted = self.journal.turn().is_some_and(|turn| turn.step() == Step::Compact);
        let compacted = Compacted { turn, through, summary, origin: None, usage: Usage::default() };
        Ok(is_wanted.then_some(Entry::Control(Control::Compacted(compacted))).into_iter().collect())
    }

    fn run_call(&mut self, id: CallId) -> Result<Vec<Entry>, Left> {
        self.world.point()?;
        if self.journal.turn().is_some_and(Turn::is_cancelling) {
            return Ok(vec![Entry::Result(ToolResult::failed(id, ToolErrorKind::Interrupted, "stopped"))]);
        }
        let turn = self.journal.turn().expect("a turn is open");
        let call = turn.call(id).expect("the call is of the newest message");
        let is_started = self.world.log.iter().any(|stored| match &*stored.entry {
            Entry::Started(started) => started.call == id && started.replayable == is_replayable(call.name),
            _ => false,
        });
        assert!(is_started, "{id} runs and was not stored as started\n{}", self.world.story());
        if let Some(entry) = self.asks(turn, &call) {
            if matches!(&entry, Entry::Elicited(elicited) if matches!(elicited.waits, Waits::Parked { .. })) {
                return Ok(vec![entry]);
            }
            self.running.push(id);
            return Ok(vec![entry]);
        }
        if let Some(task) = turn.task(id) {
            // It is only asked for, by whoever drives.
            assert_eq!(**task, *"the task", "another task is known\n{}", self.world.story());
            let output = format!("output of the task of {id}");
            return Ok(vec![Entry::Result(ToolResult::of(id, Outcome::Success, output))]);
        }
        let (is_task, name) = (call.name == "job", call.name.to_owned());
        self.world.effects.entry(id).or_default().push(call.arguments.to_owned());
        self.world.point()?;
        if is_task {
            self.running.push(id);
            let accepted = TaskAccepted { call: id, source: "scripted".to_owned(), task: "the task".into() };
            return Ok(vec![Entry::TaskAccepted(accepted)]);
        }
        let output = if name == "look" { "nothing".to_owned() } else { format!("output of {id}") };
        Ok(vec![Entry::Result(ToolResult::of(id, Outcome::Success, output))])
    }

    /// Asks a model what a call wants it to be asked. What it said and nobody wants to know any more is of no use.
    fn ask_for_tool(&mut self) -> Result<Vec<Entry>, Left> {
        self.world.point()?;
        self.read()?;
        let Some(question) = self.journal.turn().and_then(|turn| turn.samplings().next()).map(|(id, _)| id) else {
            assert!(self.journal.turn().is_some_and(Turn::is_cancelling), "stuck\n{}", self.world.story());
            return Ok(Vec::new());
        };
        let is_paid = |stored: &StoredEntry| matches!(&*stored.entry, Entry::Sampled(sampled) if sampled.question == question);
        assert!(!self.world.log.iter().any(is_paid), "{question} is paid for twice\n{}", self.world.story());
        if let Some(reserved) = self.reserve(Purpose::Sampling(question)) {
            return Ok(vec![reserved]);
        }
        self.world.point()?;
        self.read()?;
        if !self.journal.turn().is_some_and(|turn| turn.asks_for(Purpose::Sampling(question))) {
            return Ok(Vec::new());
        }
        let failure = ProviderFailure::new(ProviderFailureKind::Server, "nothing to say");
        let usage = match self.world.script.provider {
            Service::Spending => Usage { input_tokens: Some(SAMPLED.0), output_tokens: Some(SAMPLED.1), ..Usage::default() },
            Service::Good | Service::Asking | Service::Working | Service::Circling | Service::Troubled => Usage::default(),
        };
        let outcome = SamplingOutcome::Failed { failure, usage };
        Ok(vec![Entry::Sampled(Sampled { question, outcome })])
    }

    /// What a call that runs asks next, or what becomes of its question that nobody answers.
    fn asks(&self, turn: &Turn, call: &CallView<'_>) -> Option<Entry> {
        match call.name {
            "think" => match turn.resumption(call.id) {
                Some(resumption) => {
                    let is_denied = |settled: &Settled| settled.answer.action != AnswerAction::Accept;
                    let is_whole = |settled: &Settled| settled.sampled.is_some() || is_denied(settled);
                    assert!(resumption.answers.iter().all(is_whole), "nobody was asked\n{}", self.world.story());
                    None
                }
                None => Some(Entry::Elicited(think_asks(call.id))),
            },
            "fill" => {
                let round = turn.rounds(call.id);
                if let Some(before) = round.checked_sub(1) {
                    let resumption = turn.resumption(call.id).expect("it is made again with the answers");
                    assert_eq!(*resumption.resume, before, "the state is another\n{}", self.world.story());
                    let keys: Vec<u32> =
                        resumption.answers.iter().map(|settled| settled.ask.key.parse().expect("a number")).collect();
                    assert_eq!(keys, (before..ROUNDS).collect::<Vec<_>>(), "not all is answered\n{}", self.world.story());
                }
                (round < ROUNDS).then(|| Entry::Elicited(fill_asks(call.id, round)))
            }
            "talk" => {
                let open = turn.questions().find(|question| question.id.call == call.id);
                let next = turn.next_question(call.id);
                let newest = next.index.checked_sub(1).map(|index| ElicitationId { index, ..next });
                let is_asked_here = self.asked.borrow().contains(&newest.unwrap_or(next));
                match (open, is_asked_here) {
                    // Nobody answered in time.
                    (Some(question), _) => Some(Entry::Answered(Answered {
                        question: question.id,
                        action: AnswerAction::Cancel,
                        content: None,
                        by: AnsweredBy::Deadline,
                        reason: None,
                    })),
                    (None, true) => None,
                    (None, false) => {
                        self.asked.borrow_mut().push(next);
                        Some(Entry::Elicited(talk_asks(call.id)))
                    }
                }
            }
            _ => None,
        }
    }
}
