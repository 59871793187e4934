//! Which rounds of a turn repeat. A round is what one message asked for, with what came of it.

use std::sync::Arc;

use super::call::Call;
use crate::loops::{Repetition, mark_of_call, mark_of_result};
use crate::{CallId, ToolDefinition, ToolResult};

/// The longest cycle that is noticed, in rounds.
const MAX_PERIOD: usize = 6;

/// The newest rounds since the newest user message, and how long each period has held.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Rounds {
    /// The tools whose calls are not counted.
    polled: Arc<[String]>,
    /// The newest, oldest first; at most [`MAX_PERIOD`].
    newest: Arc<Vec<Round>>,
    /// For each period, the shortest first: how many of the newest rounds are the same as the one so many before.
    same: [usize; MAX_PERIOD],
    /// The round that is going on.
    open: Option<Arc<Round>>,
    /// Whether the model was told of the newest round.
    is_told: bool,
    /// Whether a person let the loop go on.
    is_let_go_on: bool,
}

/// The calls of a message that count, in an order of their own: parallel calls have none.
#[derive(Debug, Clone, PartialEq)]
struct Round {
    calls: Vec<Counted>,
}

#[derive(Debug, Clone, PartialEq)]
struct Counted {
    id: CallId,
    mark: u64,
    result: Came,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Came {
    Nothing,
    /// A result with this mark.
    Result(u64),
    /// It did not run since a person declined it as a repetition: it changes nothing about the loop.
    Declined,
}

impl Rounds {
    /// What is offered from here on.
    pub(super) fn offer<'a>(&mut self, definitions: impl Iterator<Item = &'a Arc<ToolDefinition>>) {
        let polled: Vec<String> = definitions.filter(|tool| tool.declared.polled).map(|tool| tool.name.clone()).collect();
        if *polled != *self.polled {
            self.polled = polled.into();
        }
    }

    /// The same with these besides.
    pub(super) fn offer_more<'a>(&mut self, definitions: impl Iterator<Item = &'a Arc<ToolDefinition>>) {
        let polled = definitions.filter(|tool| tool.declared.polled).map(|tool| tool.name.clone());
        let more: Vec<String> = polled.filter(|name| !self.polled.contains(name)).collect();
        if !more.is_empty() {
            self.polled = self.polled.iter().cloned().chain(more).collect();
        }
    }

    /// The conversation goes on from something else than a result: nothing before it counts any more.
    pub(super) fn forget(&mut self) {
        let (polled, open) = (std::mem::take(&mut self.polled), self.open.take());
        *self = Self { polled, open, ..Self::default() };
    }

    /// A message asks for these.
    pub(super) fn open(&mut self, calls: &[Call]) {
        let counted = calls.iter().filter(|call| !self.polled.iter().any(|name| **name == *call.name));
        let counted =
            counted.map(|call| Counted { id: call.id, mark: mark_of_call(&call.name, &call.arguments), result: Came::Nothing });
        let calls: Vec<Counted> = counted.collect();
        self.open = (!calls.is_empty()).then(|| Arc::new(Round { calls }));
    }

    /// A call of the open round has its result.
    pub(super) fn take(&mut self, result: &ToolResult, is_declined: bool) {
        let Some(open) = &mut self.open else { return };
        if let Some(call) = Arc::make_mut(open).calls.iter_mut().find(|call| call.id == result.call) {
            call.result = if is_declined { Came::Declined } else { Came::Result(mark_of_result(result)) };
        }
    }

    /// All calls of the message have their results.
    pub(super) fn close(&mut self, ask: Option<u32>) {
        let Some(open) = self.open.take() else { return };
        let mut round = Arc::unwrap_or_clone(open);
        round.calls.sort_by_key(|call| (call.mark, call.id.index));
        for (same, before) in self.same.iter_mut().zip(self.newest.iter().rev().map(Some).chain(std::iter::repeat(None))) {
            *same = match before {
                Some(before) if before.is_same(&round) => same.saturating_add(1),
                Some(_) | None => 0,
            };
        }
        let newest = Arc::make_mut(&mut self.newest);
        if newest.len() == MAX_PERIOD {
            newest.remove(0);
        }
        newest.push(round);
        self.is_told = false;
        if ask.is_none_or(|ask| self.repetition().is_none_or(|repetition| repetition.times < ask)) {
            self.is_let_go_on = false;
        }
    }

    /// The newest rounds as a repetition of what came before, that which came most often.
    pub(super) fn repetition(&self) -> Option<Repetition> {
        self.repetitions().map(|(repetition, _)| repetition).reduce(|a, b| if b.times > a.times { b } else { a })
    }

    /// What the model is to be told about the newest round, and beside the result of which call.
    pub(super) fn to_tell(&self, nudge: Option<u32>) -> Option<(Repetition, CallId)> {
        let nudge = nudge.filter(|_| !self.is_told)?;
        let whole = self.repetitions().filter(|(_, is_whole)| *is_whole).map(|(repetition, _)| repetition);
        let repetition = whole.reduce(|a, b| if b.times > a.times { b } else { a })?;
        let call = self.newest.last()?.calls.iter().map(|call| call.id).max()?;
        (repetition.times >= nudge).then_some((repetition, call))
    }

    /// The loop that a call of the open round would take further, where a person should be asked about that.
    pub(super) fn to_ask(&self, id: CallId, ask: Option<u32>) -> Option<Repetition> {
        let ask = ask.filter(|_| !self.is_let_go_on)?;
        let open = self.open.as_ref()?;
        open.calls.iter().find(|call| call.id == id)?;
        let goes_on = |repetition: &Repetition| {
            let before = self.newest.iter().rev().nth(usize::try_from(repetition.period.saturating_sub(1)).ok()?)?;
            (repetition.times >= ask && before.asks_for_the_same(open)).then_some(())
        };
        self.repetitions().map(|(repetition, _)| repetition).find(|repetition| goes_on(repetition).is_some())
    }

    /// The model was told of the newest round.
    pub(super) fn tell(&mut self) {
        self.is_told = true;
    }

    /// What a person said about the loop.
    pub(super) fn let_go_on(&mut self, goes_on: bool) {
        self.is_let_go_on = goes_on;
    }

    /// What repeats, the shortest period first, each with whether its last repetition is whole.
    fn repetitions(&self) -> impl Iterator<Item = (Repetition, bool)> {
        (1_u32..).zip(self.same).filter_map(|(period, same)| {
            let same = u32::try_from(same).unwrap_or(u32::MAX);
            let times = same.checked_div(period)?.saturating_add(1);
            let is_whole = same.checked_rem(period) == Some(0);
            (times >= 2).then_some((Repetition { times, period }, is_whole))
        })
    }
}

impl Round {
    /// The marks of its calls; of those that ask for the same in one message, one.
    fn marks(&self) -> Vec<u64> {
        let mut marks: Vec<u64> = self.calls.iter().map(|call| call.mark).collect();
        marks.sort_unstable();
        marks.dedup();
        marks
    }

    fn asks_for_the_same(&self, other: &Self) -> bool {
        self.marks() == other.marks()
    }

    /// Whether the other asks for the same and got the same.
    fn is_same(&self, other: &Self) -> bool {
        let got_the_same = |a: &Counted, b: &Counted| match (a.result, b.result) {
            (Came::Declined, _) | (_, Came::Declined) => true,
            (a, b) => a == b,
        };
        let all = |these: &Self, those: &Self| {
            these.calls.iter().all(|a| those.calls.iter().any(|b| a.mark == b.mark && got_the_same(a, b)))
        };
        self.asks_for_the_same(other) && all(self, other) && all(other, self)
    }
}
