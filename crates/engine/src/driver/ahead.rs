//! Calls that begin while the message that asks for them is still being written.
//!
//! A call whose arguments are whole in the stream, that the policy allows and whose tool is declared read-only, begins at
//! once. What it gives counts where the message ends as it stood then; it is stored with it, as what [`super::early`] begins.
//! Where the message ends otherwise, or is cut off, it is stopped and what it gave is thrown away.

use std::collections::HashMap;
use std::future::poll_fn;
use std::task::Poll;

use tokio_util::sync::CancellationToken;
use turnwright_core::{AssistantBlock, CallId, CallView, Entry, KeyForm, Ruler, Ruling, RunsAt, Seq, StartRuling, ToolCall};

use super::call::Rest;
use super::{Driver, Job, Keyed};
use crate::ruler::{Begun, Ready, TurnRuler};
use crate::writes::Writing;

/// The longest arguments that are looked at before their message is whole, in bytes: they are read anew with each piece that
/// may be their last.
const MOST_ARGUMENT_BYTES: usize = 32 * 1024;

/// The calls of the message in flight.
#[derive(Default)]
pub(super) struct Ahead {
    /// Those that began.
    running: Vec<Run>,
    /// What is known of each call, in their order.
    known: Vec<Known>,
}

struct Run {
    id: CallId,
    cancel: CancellationToken,
    state: RunState,
}

enum RunState {
    Running(Job),
    Done(Rest),
}

/// A call that began ahead, to go on with.
pub(super) struct Taken {
    pub(super) cancel: CancellationToken,
    /// What it came to, or what must still run.
    pub(super) rest: Result<Rest, Job>,
}

/// How far a call of the message in flight is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// More of its arguments may come.
    Growing,
    /// It is whole, and had no slot yet.
    Whole,
    /// It began, or will not before its message is stored.
    Settled,
}

impl Drop for Ahead {
    fn drop(&mut self) {
        for run in &self.running {
            run.cancel.cancel();
        }
    }
}

impl Ahead {
    /// Waits until one of them is done.
    pub(super) async fn next(&mut self) {
        poll_fn(|context| {
            for run in &mut self.running {
                if let RunState::Running(job) = &mut run.state
                    && let Poll::Ready(rest) = job.as_mut().poll(context)
                {
                    run.state = RunState::Done(rest);
                    return Poll::Ready(());
                }
            }
            Poll::Pending
        })
        .await;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    fn take(&mut self, id: CallId) -> Option<Taken> {
        let at = self.running.iter().position(|run| run.id == id)?;
        let Run { cancel, state, .. } = self.running.remove(at);
        let rest = match state {
            RunState::Done(rest) => Ok(rest),
            RunState::Running(job) => Err(job),
        };
        Some(Taken { cancel, rest })
    }
}

impl Driver {
    /// More of a message came, or a call of it is done: begins what can begin.
    pub(super) fn begin_ahead(&mut self) {
        self.release_done();
        for (id, ready) in self.startable() {
            let cancel = CancellationToken::new();
            // The first decision about it is stored with its message.
            let keyed = Keyed::InTurn { attempt: 1, form: KeyForm::OfConversation };
            let job = self.job(id, keyed, ready, cancel.clone());
            self.ahead.running.push(Run { id, cancel, state: RunState::Running(job) });
        }
    }

    /// A call that is done does not keep others of its kind waiting.
    fn release_done(&mut self) {
        let is_done = |run: &Run| matches!(run.state, RunState::Done(_));
        let done: Vec<CallId> = self.ahead.running.iter().filter(|run| is_done(run)).map(|run| run.id).collect();
        self.slots.writing.retain(|call| !done.contains(&call));
    }

    /// The calls of the message in flight that may begin and have their slots now.
    fn startable(&mut self) -> Vec<(CallId, Ready)> {
        if !self.model.as_ref().is_some_and(|model| model.allows_calls) {
            return Vec::new();
        }
        let state = self.live.lock();
        let (Some(turn), Some(in_flight)) = (state.journal.open_turn(), &state.in_flight) else { return Vec::new() };
        // Where the model has said why it stopped, the plan is near, and knows whether its calls run.
        let is_over = in_flight.assembler.is_finished();
        if is_over || turn.is_cancelling() || turn.settings().parallel_calls == Some(false) || state.is_gone {
            return Vec::new();
        }
        // Which of them may run is counted once their message is whole.
        if turn.settings().max_tool_calls.is_some() {
            return Vec::new();
        }
        let calls: Vec<&ToolCall> = in_flight.assembler.blocks().iter().filter_map(call_of).collect();
        self.ahead.known.resize(calls.len(), Known::Growing);
        for (known, call) in self.ahead.known.iter_mut().zip(&calls) {
            if *known == Known::Growing && is_whole(&call.arguments) {
                *known = Known::Whole;
            }
        }
        if !self.ahead.known.contains(&Known::Whole) {
            return Vec::new();
        }
        let catalog = self.inner.catalogs.of(&self.live.owner);
        let policy = self.inner.policy_of(&self.live, turn.id());
        let mut ruler = TurnRuler {
            policy: &policy,
            settings: turn.settings(),
            offered: state.journal.offered(),
            found: Vec::new(),
            // A search is over as it starts: nothing is won by beginning it ahead.
            results: None,
            catalog: &catalog,
            validators: &self.inner.validators,
            slots: &mut self.slots,
            overall: self.inner.choices.calls.get(),
            ready: HashMap::new(),
            waiting: Writing::default(),
            is_quiet: self.unquiet_until.is_none(),
        };
        let mut begun = Vec::new();
        for ((known, call), index) in self.ahead.known.iter_mut().zip(calls).zip(0_u32..) {
            if *known != Known::Whole {
                continue;
            }
            let id = CallId { message: in_flight.seq(), index };
            *known = begins(&mut ruler, id, call);
            if let Some(ready) = ruler.ready.remove(&id) {
                let tool = ready.tool.hash.clone();
                let (name, arguments) = (call.name.clone(), call.arguments.clone());
                ruler.slots.ahead.insert(id, Begun { name, arguments, tool });
                begun.push((id, ready));
            }
        }
        // The plan waits for slots where it needs them; here nothing is waited for.
        self.slots.wanted.clear();
        begun
    }

    /// Before a plan from `first` at `at`: drops what does not fit to the message that is about to be stored.
    pub(super) fn prune_ahead(&mut self, first: &[Entry], at: Seq) {
        if self.ahead.is_empty() || self.model.is_some() {
            return;
        }
        let places = std::iter::successors(Some(at), |seq| Some(seq.next()));
        let message = first.iter().zip(places).find_map(|(entry, seq)| match entry {
            Entry::Assistant(message) => Some((seq, message)),
            _ => None,
        });
        let calls: Vec<&ToolCall> = message.iter().flat_map(|(_, message)| message.calls()).collect();
        let fits = |id: &CallId, begun: &Begun| {
            let call = usize::try_from(id.index).ok().and_then(|index| calls.get(index));
            message.is_some_and(|(seq, _)| seq == id.message)
                && call.is_some_and(|call| call.name == begun.name && call.arguments == begun.arguments)
        };
        let unfit: Vec<CallId> = self.slots.ahead.iter().filter(|(id, begun)| !fits(id, begun)).map(|(id, _)| *id).collect();
        for id in unfit {
            self.drop_ahead(id);
        }
    }

    /// What is left is of no use once its message is stored.
    pub(super) fn forget_ahead(&mut self) {
        if self.model.is_none() {
            let all: Vec<CallId> = self.slots.ahead.keys().copied().collect();
            for id in all {
                self.drop_ahead(id);
            }
            self.ahead = Ahead::default();
        }
    }

    fn drop_ahead(&mut self, id: CallId) {
        if let Some(taken) = self.take_ahead(id) {
            taken.cancel.cancel();
        }
        self.slots.writing.retain(|call| call != id);
    }

    /// The call that began ahead, for the plan that starts it.
    pub(super) fn take_ahead(&mut self, id: CallId) -> Option<Taken> {
        self.slots.ahead.remove(&id);
        self.ahead.take(id)
    }
}

/// Whether a whole call begins now. Where it does, the ruler has it.
fn begins(ruler: &mut TurnRuler<'_>, id: CallId, call: &ToolCall) -> Known {
    let mut view = CallView {
        id,
        name: &call.name,
        runs_at: ruler.settings.client_tool(&call.name).map_or(RunsAt::Here, |_| RunsAt::Client),
        arguments: &call.arguments,
        is_edited: false,
        is_answered: false,
        is_allowed: true,
        decided_hash: None,
        attempt: 1,
        starts: 0,
        key: KeyForm::OfConversation,
        denial: None,
        task: None,
    };
    if !ruler.catalog.get(&call.name).is_some_and(|tool| tool.definition.declared.read_only) {
        return Known::Settled;
    }
    let Ruling::Allow { definition_hash, .. } = ruler.rule(&view) else { return Known::Settled };
    view.decided_hash = Some(&definition_hash);
    match ruler.start(&view) {
        StartRuling::Later => Known::Whole,
        StartRuling::Start { .. }
        | StartRuling::Found { .. }
        | StartRuling::DefinitionChanged { .. }
        | StartRuling::Refuse(_) => Known::Settled,
    }
}

fn call_of(block: &AssistantBlock) -> Option<&ToolCall> {
    match block {
        AssistantBlock::Call(call) => Some(call),
        AssistantBlock::Text { .. }
        | AssistantBlock::Reasoning { .. }
        | AssistantBlock::Refusal { .. }
        | AssistantBlock::Opaque { .. } => None,
    }
}

/// Whether arguments are a JSON object to its end: no text that goes on after that is one.
fn is_whole(arguments: &str) -> bool {
    arguments.len() <= MOST_ARGUMENT_BYTES
        && arguments.trim_end().ends_with('}')
        && arguments.trim_start().starts_with('{')
        && serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok()
}

#[cfg(test)]
mod tests {
    use super::is_whole;

    #[test]
    fn only_a_whole_object_is_taken_for_the_arguments() {
        for whole in ["{}", " {\"a\": {\"b\": 1}} ", "{\"a\":\"}\"}"] {
            assert!(is_whole(whole), "{whole}");
        }
        for growing in ["", "{", "{\"a\": {}", "{\"a\":\"}", "1", "[{}]", "{}}", "null"] {
            assert!(!is_whole(growing), "{growing}");
        }
    }
}
