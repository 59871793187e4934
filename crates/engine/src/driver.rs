//! Drives one open turn: plans, appends, carries out, waits for what happens, plans again.
//!
//! One task per driven conversation. Everything it decides, [`turnwright_core::plan`] decides; here is only the carrying
//! out. It lets go where the turn is over or parked, where another driver has claimed it, and where the engine ends.

use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use turnwright_core::{CallId, Claim, Control, Entry, JournalError, KeyForm, Next, Plan, Seq, Step, Turn, TurnStatus, plan};

use crate::inner::Inner;
use crate::live::Live;
use crate::ruler::{Ready, Slots, TurnRuler};
use crate::writes::Writing;
use crate::{SideRecord, StoreError};

mod ahead;
mod apart;
mod asked;
mod attempt;
mod call;
mod early;
mod fence;
mod gathering;
mod key;
mod model;
mod moved;
mod occurring;
mod offer;
mod reserving;
mod resting;
mod sampling;
mod slot_waits;
mod storing;
mod summary;
mod tasks;

use ahead::Ahead;
use apart::Apart;
use asked::Asked;
pub(crate) use call::{Aids, run_alone};
use call::{Asking, CallJob, Rest};
use early::Early;
use fence::{Fence, STOPS_WITHIN};
use gathering::Gathering;
pub(crate) use key::Keyed;
use model::ModelCall;
pub(crate) use model::longest_answer;
use reserving::Reserving;
use sampling::Samplings;
use slot_waits::SlotWaits;
use storing::{Worth, hold, store};
use summary::{Summary, still_true};

/// A call under way.
type Job = Pin<Box<dyn Future<Output = Rest> + Send>>;

/// A plan, the place of its first entry, and the calls that got their slots.
type Planned = (Seq, Plan, HashMap<CallId, Ready>);

/// The driver of one conversation's open turn.
pub(crate) struct Driver {
    inner: Arc<Inner>,
    live: Arc<Live>,
    claim: Claim,
    slots: Slots,
    slot_waits: SlotWaits,
    calls: FuturesUnordered<Job>,
    /// Those that came to rest while something was stored.
    rested: Vec<Rest>,
    running: HashMap<CallId, CancellationToken>,
    /// Fires when this driver ends although the turn is open.
    halts: CancellationToken,
    /// The tasks that were called off.
    called_off: HashSet<CallId>,
    asked: Asked,
    ahead: Ahead,
    samplings: Samplings,
    model: Option<ModelCall>,
    summary: Option<Summary>,
    /// The last entry that the summary which was made last can tell of.
    summary_saw: Option<Seq>,
    gathering: Option<Gathering>,
    reserving: Reserving,
    /// The reservation with which the newest model call was made.
    used: Option<Seq>,
    /// For which messages it was gathered.
    gathered_for: gathering::Asked,
    /// Whether this turn's sources were waited for.
    has_offered: bool,
    foreign: watch::Receiver<u64>,
    /// Keeps what the model says apart from all else that is waited for.
    apart: Apart,
    /// The right by which it drives.
    fence: Fence,
    /// Ends once that is lost.
    lost: BoxFuture<'static, ()>,
    /// Until when what the driver before it began may still be ending.
    unquiet_until: Option<Instant>,
    /// Whether it heard that its process is to end.
    is_draining: bool,
    /// Whether it gave the conversation up.
    has_let_go: bool,
}

/// However a driver ends, the conversation is not driven any more, and who waits for the turn hears of it.
impl Drop for Driver {
    fn drop(&mut self) {
        if !self.has_let_go {
            let mut state = self.live.lock();
            state.in_flight = None;
            state.is_driven = false;
            state.slot = None;
            state.watchers.release();
            drop(state);
            self.live.settled.notify_waiters();
        }
        self.inner.registry.weigh(&self.live);
    }
}

/// What a plan led to.
enum Course {
    /// Something runs, or will.
    Going,
    /// Nothing is left to do here.
    LetGo,
}

/// What is known of the driver that had the turn before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before {
    /// Nothing of it runs any more, or there was none.
    HasStopped,
    /// Its lease ran out; its process may not have seen that yet.
    MayStillStop,
}

/// Why the driver stops although the turn is open.
enum Halt {
    /// Somebody else drives, the conversation is gone, or the engine ends.
    Quietly,
    /// The store failed.
    Store(StoreError),
    /// The journal failed.
    Broken(String),
}

impl Driver {
    pub(crate) fn new(inner: Arc<Inner>, live: Arc<Live>, claim: Claim, before: Before) -> Self {
        let foreign = inner.store.foreign_writes();
        let fence = Fence::new(Arc::clone(&inner.store));
        let unquiet_until = match before {
            Before::MayStillStop => Some(Instant::now() + STOPS_WITHIN),
            Before::HasStopped => None,
        };
        Self {
            inner,
            live,
            claim,
            slots: Slots::default(),
            slot_waits: SlotWaits::default(),
            calls: FuturesUnordered::new(),
            rested: Vec::new(),
            running: HashMap::new(),
            halts: CancellationToken::new(),
            called_off: HashSet::new(),
            asked: Asked::default(),
            ahead: Ahead::default(),
            samplings: Samplings::default(),
            model: None,
            summary: None,
            summary_saw: None,
            gathering: None,
            reserving: Reserving::default(),
            used: None,
            gathered_for: gathering::Asked::default(),
            has_offered: false,
            foreign,
            apart: Apart::default(),
            lost: Box::pin(fence.clone().lost()),
            fence,
            unquiet_until,
            is_draining: false,
            has_let_go: false,
        }
    }

    /// Drives until there is nothing left to do. `first` is stored with the first plan: the claim, where it is not stored. Boxed, since an
    /// `async fn` that is given a value keeps room for it twice, for as long as an answer streams.
    pub(crate) async fn run(mut self: Box<Self>, mut first: Vec<Entry>) {
        loop {
            match self.advance_beside_calls(first).await {
                Ok(Course::Going) if self.inner.draining.is_cancelled() && self.is_at_rest() => {
                    return Box::pin(self.halt(Halt::Quietly)).await;
                }
                Ok(Course::Going) => {}
                Ok(Course::LetGo) => match self.let_go() {
                    None => return,
                    Some(entries) => {
                        first = entries;
                        continue;
                    }
                },
                Err(halt) => return Box::pin(self.halt(halt)).await,
            }
            let live = self.live.clone();
            let occurred = {
                let occurrence = std::pin::pin!(self.next_occurrence());
                releasing(&live, occurrence).await
            };
            first = match occurred {
                // What comes of it is told together, as far as nothing is waited for.
                Ok(entries) => {
                    live.lock().watchers.hold();
                    entries
                }
                Err(halt) => return Box::pin(self.halt(halt)).await,
            };
        }
    }

    /// Whether nothing runs here: the turn stands between two steps, or waits for what goes on by itself elsewhere.
    fn is_at_rest(&self) -> bool {
        let runs_elsewhere = || {
            let state = self.live.lock();
            let is_task = |call: &&CallId| state.journal.turn().is_some_and(|turn| turn.task(**call).is_some());
            self.calls.len() == self.running.keys().filter(is_task).count()
        };
        self.model.is_none()
            && self.summary.is_none()
            && self.gathering.is_none()
            && self.reserving.is_empty()
            && self.samplings.is_empty()
            && self.rested.is_empty()
            && runs_elsewhere()
    }

    /// Gives the conversation up; or, where somebody appended meanwhile, says with what entries to go on.
    fn let_go(&mut self) -> Option<Vec<Entry>> {
        self.model = None;
        self.summary = None;
        self.gathering = None;
        self.reserving.clear();
        let mut state = self.live.lock();
        let open = state.journal.open_turn().filter(|turn| !turn.is_suspended() || !turn.is_parked());
        let Some(turn) = open else {
            state.is_driven = false;
            state.slot = None;
            state.watchers.release();
            self.has_let_go = true;
            drop(state);
            self.live.settled.notify_waiters();
            return None;
        };
        self.has_offered = false;
        let is_mine = |claim: &Claim| claim.driver == self.claim.driver;
        match (turn.holder(), turn.claim()) {
            (Some(holder), _) if is_mine(holder) => {
                self.claim = holder.clone();
                Some(Vec::new())
            }
            // It was let go as it parked. That it is driven again, others see by a new claim alone.
            (None, claim) if claim.is_none_or(is_mine) => {
                self.claim = self.inner.next_claim(&state.journal);
                Some(vec![Entry::Control(Control::Claimed(self.claim.clone()))])
            }
            // Another's: the next plan sees that.
            (Some(_) | None, _) => Some(Vec::new()),
        }
    }

    /// Plans from `first`, stores the plan and starts what it starts.
    async fn advance(&mut self, mut first: Vec<Entry>) -> Result<Course, Halt> {
        let mut tries = 0;
        let secrets = self.inner.secrets();
        for entry in &mut first {
            secrets.hide_in_entry(entry);
        }
        loop {
            self.offer(&mut first).await?;
            self.inner.refresh_rules().await;
            // What came of calls and models cannot be had again, nor can what comes of the calls that run.
            let holds = first.iter().any(asked::is_dear);
            let holds = holds || !self.running.is_empty();
            let at = self.live.lock().journal.next_seq();
            self.prune_ahead(&first, at);
            let Some((at, mut plan, mut ready)) = self.plan(&first, Some(at))? else { continue };
            self.call_off(&first, &plan).await;
            if plan.entries.is_empty() {
                self.forget_ahead();
                if !self.fence.holds() {
                    return Err(Halt::Quietly);
                }
                return Ok(self.carry_out(&plan, ready));
            }
            let mut early = Early::default();
            if !self.run_early(at, &mut plan, &mut ready, &mut early).await? {
                self.forget_slots(&ready, &early);
                continue;
            }
            let side = self.side_records(&plan);
            let worth = if holds { Worth::Dear } else { Worth::Cheap };
            let entries = std::mem::take(&mut plan.entries);
            let stored = match store(&self.inner, &self.live, (at, worth), entries, side).await {
                Ok(()) => {
                    self.keep_early(early);
                    self.forget_ahead();
                    if !self.fence.holds() || self.is_anothers() {
                        // What is stored is stored; what comes of it is whoever drives next's.
                        return Err(Halt::Quietly);
                    }
                    return Ok(self.carry_out(&plan, ready));
                }
                Err(StoreError::Conflict { next }) if next >= at => {
                    self.forget_slots(&ready, &early);
                    self.live.refresh(&*self.inner.store).await
                }
                // A journal that is shorter than what was stored is another's, of the same name.
                Err(StoreError::Conflict { .. }) => Err(StoreError::Gone { conversation: self.live.id.clone() }),
                // Others were quicker with what is left: it is looked at anew.
                Err(StoreError::OverBudget) => {
                    self.forget_slots(&ready, &early);
                    first.retain(|entry| !matches!(entry, Entry::Control(Control::Reserved(_))));
                    Ok(())
                }
                Err(error) => {
                    self.forget_slots(&ready, &early);
                    Err(error)
                }
            };
            match stored {
                Ok(()) => {}
                Err(StoreError::Gone { .. }) => {
                    self.inner.bury(&self.live);
                    return Err(Halt::Quietly);
                }
                Err(error) => {
                    if !holds || self.inner.shutdown.is_cancelled() {
                        return Err(Halt::Store(error));
                    }
                    self.live.lock().watchers.release();
                    hold(&self.inner, &self.live, &mut tries, &error).await;
                }
            }
        }
    }

    /// Whether another driver has claimed the turn: where it is known late that something was stored, others had time to.
    fn is_anothers(&self) -> bool {
        let state = self.live.lock();
        let holder = state.journal.open_turn().and_then(Turn::holder);
        holder.is_some_and(|holder| holder.driver != self.claim.driver)
    }

    /// The plan from `first`; `None` where it should stand at a place that somebody else took.
    fn plan(&mut self, first: &[Entry], at: Option<Seq>) -> Result<Option<Planned>, Halt> {
        let catalog = self.inner.catalogs.of(&self.live.owner);
        let state = self.live.lock();
        if at.is_some_and(|at| at != state.journal.next_seq()) {
            return Ok(None);
        }
        if let Some(error) = &state.broken {
            return Err(Halt::Broken(error.to_string()));
        }
        let Some(turn) = state.journal.turn().filter(|_| !state.is_gone) else { return Err(Halt::Quietly) };
        let claims_first = first.iter().any(|entry| matches!(entry, Entry::Control(Control::Claimed(_))));
        let is_mine = if claims_first { self.claim.epoch >= state.journal.next_epoch() } else { turn.is_held_by(&self.claim) };
        if turn.ended().is_none() && !is_mine {
            return Err(Halt::Quietly);
        }
        let policy = self.inner.policy_of(&self.live, turn.id());
        let mut ruler = TurnRuler {
            policy: &policy,
            settings: turn.settings(),
            offered: state.journal.offered(),
            found: Vec::new(),
            results: self
                .inner
                .choices
                .hold_back
                .get()
                .filter(|_| state.journal.holds_back())
                .map(|hold_back| hold_back.results),
            catalog: &catalog,
            validators: &self.inner.validators,
            slots: &mut self.slots,
            overall: self.inner.choices.calls.get(),
            ready: HashMap::new(),
            waiting: Writing::default(),
            is_quiet: self.unquiet_until.is_none(),
        };
        let plan = match turn.ended() {
            Some(status) => Ok(Plan { entries: Vec::new(), run: Vec::new(), next: Next::Ended(status.clone()) }),
            None => plan(&state.journal, still_true(first, self.summary_saw, &state.journal), &mut ruler),
        };
        let ready = ruler.ready;
        match plan {
            Ok(plan) => Ok(Some((state.journal.next_seq(), plan, ready))),
            Err(error @ (JournalError::Misfit { .. } | JournalError::OutOfOrder { .. })) => {
                Err(Halt::Broken(error.to_string()))
            }
        }
    }

    fn side_records(&self, plan: &Plan) -> Vec<SideRecord> {
        let state = self.live.lock();
        let Some(turn) = state.journal.turn() else { return Vec::new() };
        let kept_by = self.inner.keeper(&state);
        let open = |parked| SideRecord::TurnOpen { turn: turn.id(), parked, kept_by };
        match plan.next {
            Next::Ended(_) => vec![SideRecord::TurnOver],
            Next::Parked => vec![open(true)],
            Next::CallModel { .. } | Next::Compact | Next::Wait => {
                let claims = plan.entries.iter().any(|entry| matches!(entry, Entry::Control(Control::Claimed(_))));
                if claims { vec![open(false)] } else { Vec::new() }
            }
        }
    }

    /// Gives back the slots of calls that were not started after all.
    fn forget_slots(&mut self, ready: &HashMap<CallId, Ready>, early: &Early) {
        self.slots.writing.retain(|call| !ready.contains_key(&call) && !early.has_begun(call));
    }

    fn carry_out(&mut self, plan: &Plan, mut ready: HashMap<CallId, Ready>) -> Course {
        for id in &plan.run {
            if let Some(ready) = ready.remove(id) {
                self.start(*id, ready);
            }
        }
        self.asked.deliver(self.live.lock().journal.turn());
        self.ask_for_tools();
        // What was waited for and not taken is for others.
        self.slots.granted.clear();
        self.slot_waits.only(std::mem::take(&mut self.slots.wanted));
        match plan.next {
            Next::Ended(TurnStatus::Cancelled) => {
                self.inner.end_of(&self.live.id);
                Course::LetGo
            }
            Next::Ended(_) | Next::Parked => Course::LetGo,
            Next::Wait => Course::Going,
            Next::CallModel { .. } => {
                if self.model.is_none() && self.gathering.is_none() && !self.inner.draining.is_cancelled() {
                    self.gathering = Gathering::start(&self.inner, &self.live, &mut self.gathered_for);
                    if self.gathering.is_none() {
                        self.ask_model();
                    }
                }
                Course::Going
            }
            Next::Compact => {
                if self.summary.is_none() && !self.inner.draining.is_cancelled() {
                    self.ask_for_summary();
                }
                Course::Going
            }
        }
    }

    fn start(&mut self, id: CallId, ready: Ready) {
        let cancel = CancellationToken::new();
        self.running.insert(id, cancel.clone());
        let keyed = self.keyed(id, 0);
        let job = self.job(id, keyed, ready, cancel);
        self.calls.push(job);
    }

    /// Which call it is, once so many decisions about it are stored as well.
    fn keyed(&self, id: CallId, decisions: u32) -> Keyed {
        let state = self.live.lock();
        let call = state.journal.turn().and_then(|turn| turn.call(id));
        let (before, form) = call.map_or((0, KeyForm::OfConversation), |call| (call.attempt, call.key));
        Keyed::InTurn { attempt: before.saturating_add(decisions), form }
    }

    fn job(&mut self, id: CallId, keyed: Keyed, ready: Ready, cancel: CancellationToken) -> Job {
        let (resume, task, model, tools) = {
            let state = self.live.lock();
            let turn = state.journal.turn();
            let model = turn.map(|turn| turn.model().clone());
            let tools = turn.and_then(|turn| turn.settings().tools.clone());
            (turn.and_then(|turn| turn.resumption(id)), turn.and_then(|turn| turn.task(id).cloned()), model, tools)
        };
        let asking = Asking::Turn { questions: self.asked.door(), resume, task };
        let (live, halts) = (self.live.clone(), self.halts.clone());
        let aids = Aids::of(&self.inner, &self.live.owner).among(tools.as_deref());
        let asks = model.and_then(|model| self.inner.providers.get(model.provider()).ok());
        let aids = if asks.is_some_and(|asks| asks.takes_results_whole()) { aids.giving_whole() } else { aids };
        let fence = Some(self.fence.clone());
        let moved = self.moved(id, &ready.tool.definition);
        Box::pin(Box::new(CallJob { id, keyed, ready, cancel, halts, live, asking, aids, fence, moved }).run())
    }

    /// Somebody appended. A cancel reaches the model and the tools here.
    fn hear_of_others(&mut self) -> Vec<Entry> {
        let mut state = self.live.lock();
        let Some(turn) = state.journal.turn() else { return Vec::new() };
        if turn.is_cancelling() {
            for cancel in self.running.values() {
                cancel.cancel();
            }
        }
        self.summary = self.summary.take().filter(|summary| summary.is_wanted(&state.journal));
        if !matches!(turn.step(), Step::CallModel { .. }) {
            self.gathering = None;
        }
        self.reserving.keep(|purpose| turn.asks_for(purpose));
        let stops_model = self.model.as_ref().is_some_and(|model| turn.cancels(model.saw()));
        let model = if stops_model { self.model.take() } else { None };
        model.and_then(|model| model.cancelled(&mut state)).into_iter().collect()
    }
}

/// How often other tasks may run before what was held is told although the model's answer is ending: its last bytes may be
/// on their way from another task.
const ENDING_ROUNDS: u8 = 4;

/// Waits, and where it really has to, tells what was held first.
fn releasing<F: Future>(live: &Live, mut wait: Pin<&mut F>) -> impl Future<Output = F::Output> {
    let mut rounds = ENDING_ROUNDS;
    poll_fn(move |context| {
        let polled = wait.as_mut().poll(context);
        if polled.is_pending() {
            let mut state = live.lock();
            if rounds > 0 && ModelCall::is_ending(&state) {
                rounds -= 1;
                context.waker().wake_by_ref();
            } else {
                state.watchers.release();
            }
        }
        polled
    })
}
