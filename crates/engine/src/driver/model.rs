//! One model call: asks, listens, and gives the entry that it came to.

use std::sync::Arc;

use futures_util::StreamExt;
use tokio::task::coop::consume_budget;
use tracing::Instrument;
use turnwright_core::{
    AssistantBlock, Control, CutOffCause, Entry, ModelRef, Origin, ProviderFailure, Reserved, Seq, Step, StreamDelta,
    TurnSettings, prompt,
};

use crate::Event;
use crate::asked::ask;
use crate::budget;
use crate::in_flight::InFlight;
use crate::inner::Inner;
use crate::live::{Live, State};
use crate::report::Report;
use crate::secrets::{Hidden, hidden};
use crate::telemetry::spans;

/// A model call under way.
pub(super) struct ModelCall {
    stream: Result<Hidden, ProviderFailure>,
    origin: Origin,
    saw: Seq,
    /// Whether the calls that it makes may run.
    pub(super) allows_calls: bool,
    report: Report,
}

/// What the driver must know of what came from the model.
pub(super) enum Said {
    /// It asks for calls, which may begin.
    Calls,
    /// The end, with its terminal marker.
    End,
    /// The end, without.
    Failed(ProviderFailure),
}

impl ModelCall {
    /// Asks the model at which the turn is, for an answer that is no longer than what is reserved. `None` where the turn does not want that any more: somebody appended since it
    /// was planned, of whom the driver is about to hear.
    pub(super) fn start(inner: &Arc<Inner>, live: &Arc<Live>, reserved: Option<&Reserved>) -> Option<Self> {
        let (journal, settings, saw, allow_calls) = {
            let mut state = live.lock();
            let turn = state.journal.turn()?;
            let Step::CallModel { allow_calls } = turn.step() else { return None };
            let (model, fallback) = (turn.model().clone(), turn.next_models().to_vec());
            let max_output_tokens = reserved.map(longest_answer).or(turn.settings().max_output_tokens);
            let settings = TurnSettings { model, fallback, max_output_tokens, ..turn.settings().clone() };
            let in_flight = InFlight::new(state.journal.next_seq());
            let mut events = Vec::new();
            in_flight.tell_all(&mut events);
            state.in_flight = Some(in_flight);
            state.tell(events);
            (state.journal.clone(), settings, state.shown_now(), allow_calls)
        };
        // The request is as long as the conversation: it is built while others may look at that.
        let prompt = prompt::of(&live.id, &journal, &settings, allow_calls);
        let provider = inner.providers.get(settings.model.provider());
        let dialect = provider.as_ref().map_or_else(|_| String::new(), |provider| provider.dialect().to_owned());
        spans::turn_asks(&dialect, &settings.model);
        let report = Report::new(inner.telemetry().clone(), spans::model_call(&live.id, &dialect, &settings.model), &prompt);
        let asks_no_model = provider.as_ref().is_ok_and(|provider| provider.asks_no_model());
        let report = if asks_no_model { report.of_no_model() } else { report };
        let stream = report.span.in_scope(|| {
            let provider = provider?;
            let refusal = journal.turn().and_then(|turn| budget::refusal(&*provider, turn, &journal, &prompt));
            refusal.map_or_else(|| ask(&*provider, &settings.model, &prompt), Err)
        });
        let stream = hidden(stream, inner.secrets());
        Some(Self { stream, origin: origin(dialect, &settings.model), saw, allows_calls: allow_calls, report })
    }

    /// The last entry that the model was shown.
    pub(super) fn saw(&self) -> Seq {
        self.saw
    }

    /// Whether the model has said why it stopped, so that the end of its answer is near.
    pub(super) fn is_ending(state: &State) -> bool {
        state.in_flight.as_ref().is_some_and(|in_flight| in_flight.assembler.is_finished())
    }

    /// Hears the model until the driver must know of it.
    async fn next(&mut self, live: &Live) -> Said {
        loop {
            // A model that never waits lets others run.
            consume_budget().await;
            let stream = match &mut self.stream {
                Ok(stream) => stream,
                Err(failure) => return Said::Failed(failure.clone()),
            };
            match stream.next().instrument(self.report.span.clone()).await {
                Some(Ok(deltas)) => {
                    for delta in &deltas {
                        self.report.hear(delta);
                    }
                    let has_calls = Self::take(deltas, &mut live.lock());
                    if has_calls && self.allows_calls {
                        return Said::Calls;
                    }
                }
                Some(Err(failure)) => return Said::Failed(failure),
                None => return Said::End,
            }
        }
    }

    /// The entry that the call came to, once it is over.
    pub(super) fn hear(&mut self, said: Said, state: &mut State) -> Option<Entry> {
        match said {
            Said::Calls => None,
            Said::End => {
                // The message in flight stays for watchers until its entry is applied.
                let assembler = state.in_flight.as_ref().map(|in_flight| in_flight.assembler.clone()).unwrap_or_default();
                let said = assembler.complete(self.origin.clone(), self.saw);
                self.report.complete(&self.origin, &said);
                Some(Entry::Assistant(said))
            }
            Said::Failed(failure) => {
                self.report.fail(&self.origin, &failure);
                let partial = self.partial(state, CutOffCause::Provider(Box::new(failure.clone())));
                if partial.is_none() {
                    state.in_flight = None;
                }
                partial.or(Some(Entry::Control(Control::Failed(failure))))
            }
        }
    }

    /// Takes more of the answer; whether it asks for calls.
    fn take(deltas: Vec<StreamDelta>, state: &mut State) -> bool {
        let is_watched = state.is_watched();
        let mut events: Vec<Event> = Vec::new();
        let mut has_calls = false;
        if let Some(in_flight) = &mut state.in_flight {
            in_flight.push(deltas, is_watched.then_some(&mut events));
            has_calls = in_flight.assembler.blocks().iter().any(|block| matches!(block, AssistantBlock::Call(_)));
            if in_flight.assembler.is_finished() {
                // What becomes of the message is told with its last words.
                state.watchers.hold();
            }
        }
        state.tell(events);
        has_calls
    }

    /// The call is dropped since a person stops the turn; what was said is kept.
    pub(super) fn cancelled(mut self, state: &mut State) -> Option<Entry> {
        self.report.cancel(&self.origin);
        if let Ok(stream) = &mut self.stream {
            Self::take(stream.rest(), state);
        }
        let partial = self.partial(state, CutOffCause::Cancelled);
        if partial.is_none() {
            state.in_flight = None;
        }
        partial
    }

    fn partial(&self, state: &State, cause: CutOffCause) -> Option<Entry> {
        let in_flight = state.in_flight.as_ref().filter(|in_flight| !in_flight.assembler.is_empty())?;
        Some(Entry::Assistant(in_flight.assembler.clone().cut_off(self.origin.clone(), self.saw, cause)))
    }
}

/// The longest answer that a reservation has room for, in tokens.
pub(crate) fn longest_answer(reserved: &Reserved) -> u32 {
    u32::try_from(reserved.output.tokens).unwrap_or(u32::MAX)
}

fn origin(dialect: String, model: &ModelRef) -> Origin {
    Origin { dialect, provider: model.provider().to_owned(), model: model.model().to_owned() }
}

/// What the model says next, where one is asked.
pub(super) async fn next_said(model: &mut Option<ModelCall>, live: &Live) -> Said {
    match model {
        Some(model) => model.next(live).await,
        None => std::future::pending().await,
    }
}
