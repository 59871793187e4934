//! The one place that knows all secrets of a process, and models that are asked without telling any.

use std::collections::BTreeSet;
use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use tokio::time::{Instant, Sleep};
use turnwright_core::secrets::{SecretStream, Secrets};
use turnwright_core::{ProviderFailure, StreamDelta};

use crate::{Engine, ModelStream};

/// The secrets of a process: what its configuration took, and what came later, such as the token of a server that somebody signed
/// in to. Clones share what they know. Its `Debug` form shows none.
#[derive(Clone, Default)]
pub struct KnownSecrets {
    state: Arc<RwLock<State>>,
    /// What is hidden here too, without knowing of these.
    beyond: Option<Arc<Self>>,
}

#[derive(Default)]
struct State {
    values: BTreeSet<String>,
    compiled: Arc<Secrets>,
    /// What was known beyond when these were compiled.
    seen: Arc<Secrets>,
}

impl KnownSecrets {
    /// What hides these and what else it learns, which is hidden nowhere else: the secrets of somebody are nobody else's.
    pub fn within(&self) -> Self {
        Self { state: Arc::default(), beyond: Some(Arc::new(self.clone())) }
    }

    /// Hides these too, wherever anything is stored or told from now on.
    pub fn learn<'v>(&self, values: impl IntoIterator<Item = &'v str>) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let before = state.values.len();
        let long = values.into_iter().map(str::trim).filter(|value| value.len() >= Secrets::MIN_BYTES);
        state.values.extend(long.map(str::to_owned));
        if state.values.len() != before {
            state.compile(self.beyond.as_deref());
        }
    }

    /// What is known now.
    pub fn now(&self) -> Arc<Secrets> {
        let seen = self.beyond.as_ref().map(|beyond| beyond.now());
        {
            let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
            match seen {
                None => return state.compiled.clone(),
                Some(seen) if state.values.is_empty() => return seen,
                Some(seen) if Arc::ptr_eq(&seen, &state.seen) => return state.compiled.clone(),
                Some(_) => {}
            }
        }
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.compile(self.beyond.as_deref());
        state.compiled.clone()
    }

    fn values(&self) -> BTreeSet<String> {
        let mut values = self.beyond.as_ref().map(|beyond| beyond.values()).unwrap_or_default();
        values.extend(self.state.read().unwrap_or_else(PoisonError::into_inner).values.iter().cloned());
        values
    }
}

impl State {
    fn compile(&mut self, beyond: Option<&KnownSecrets>) {
        let Some(beyond) = beyond else {
            self.compiled = Arc::new(Secrets::new(self.values.iter().map(String::as_str)));
            return;
        };
        // Before its values: what it learns meanwhile is seen the next time.
        self.seen = beyond.now();
        let theirs = beyond.values();
        self.compiled = Arc::new(Secrets::new(theirs.union(&self.values).map(String::as_str)));
    }
}

impl PartialEq for KnownSecrets {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.state, &other.state) || self.values() == other.values()
    }
}

impl Eq for KnownSecrets {}

impl Engine {
    /// Hides these wherever a driver would store or tell them. What people say stays as they said it. Counts once, before the
    /// first turn.
    pub fn keep_secrets(&self, known: KnownSecrets) {
        self.inner().catalogs.hide(known.clone());
        if self.inner().secrets.set(known).is_err() {
            tracing::error!("the secrets of an engine are named once, before its first turn");
        }
    }

    /// What is hidden.
    pub fn secrets(&self) -> KnownSecrets {
        self.inner().secrets.get().cloned().unwrap_or_default()
    }
}

impl fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KnownSecrets").field(&self.now()).finish()
    }
}

/// After how long a silence of the model the end of a word is told, see [`SecretStream::stand_still`]: longer than a slow model
/// takes for a token.
const STANDS_STILL: Duration = Duration::from_millis(500);

/// A model's answer without secrets. What could still become one is held back until it is told apart.
pub(crate) fn hidden(stream: Result<ModelStream, ProviderFailure>, secrets: Arc<Secrets>) -> Result<Hidden, ProviderFailure> {
    match stream {
        Ok(inner) => Ok(Hidden {
            inner,
            secrets,
            texts: Vec::new(),
            ready: VecDeque::new(),
            is_over: false,
            heard_at: Instant::now(),
            still: None,
        }),
        Err(mut failure) => {
            secrets.hide_in_failure(&mut failure);
            Err(failure)
        }
    }
}

/// See [`hidden`].
pub(crate) struct Hidden {
    inner: ModelStream,
    secrets: Arc<Secrets>,
    /// What is held back, by what it is part of.
    texts: Vec<(Part, SecretStream)>,
    ready: VecDeque<Result<Vec<StreamDelta>, ProviderFailure>>,
    is_over: bool,
    /// When the model said something last.
    heard_at: Instant,
    still: Option<Pin<Box<Sleep>>>,
}

/// What a text is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Text,
    Reasoning,
    Refusal,
    /// The arguments of the call with this key.
    Arguments(u32),
}

impl Part {
    fn delta(self, text: String) -> StreamDelta {
        match self {
            Self::Text => StreamDelta::Text(text),
            Self::Reasoning => StreamDelta::Reasoning(text),
            Self::Refusal => StreamDelta::Refusal(text),
            Self::Arguments(key) => StreamDelta::CallArguments { key, text },
        }
    }
}

impl Hidden {
    /// What is held back, where nobody listens any longer.
    pub(crate) fn rest(&mut self) -> Vec<StreamDelta> {
        let mut rest = Vec::new();
        self.release(|_| true, &mut rest);
        rest
    }

    /// The ends of words, once the model has been silent for long enough.
    fn poll_still(&mut self, context: &mut Context<'_>) -> Poll<Vec<StreamDelta>> {
        if !self.texts.iter().any(|(_, held)| held.has_early()) {
            return Poll::Pending;
        }
        let due = self.heard_at + STANDS_STILL;
        let still = self.still.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
        if still.deadline() != due {
            still.as_mut().reset(due);
        }
        std::task::ready!(still.as_mut().poll(context));
        let early = self.texts.iter_mut().map(|(part, held)| (*part, held.stand_still()));
        Poll::Ready(early.filter(|(_, text)| !text.is_empty()).map(|(part, text)| part.delta(text)).collect())
    }

    fn take(&mut self, delta: StreamDelta, out: &mut Vec<StreamDelta>) {
        match delta {
            StreamDelta::Text(text) => self.text(Part::Text, &text, out),
            StreamDelta::Reasoning(text) => self.text(Part::Reasoning, &text, out),
            StreamDelta::Refusal(text) => self.text(Part::Refusal, &text, out),
            StreamDelta::CallArguments { key, text } => self.text(Part::Arguments(key), &text, out),
            // What is counted may come between two pieces of one text.
            delta @ StreamDelta::Usage(_) => out.push(delta),
            // No part of the message, so no text of it ends.
            delta @ StreamDelta::Notice(_) => out.extend(self.secrets.hide_in_delta(delta)),
            other => {
                self.release(|_| true, out);
                out.extend(self.secrets.hide_in_delta(other));
            }
        }
    }

    fn text(&mut self, part: Part, text: &str, out: &mut Vec<StreamDelta>) {
        // Arguments of several calls may come by turns; another kind of text ends the one before.
        let goes_on = |other: Part| other == part || matches!((other, part), (Part::Arguments(_), Part::Arguments(_)));
        self.release(|other| !goes_on(other), out);
        if !self.texts.iter().any(|(other, _)| *other == part) {
            self.texts.push((part, SecretStream::default()));
        }
        let Some((_, held)) = self.texts.iter_mut().find(|(other, _)| *other == part) else { return };
        let told = held.push(&self.secrets, text);
        if !told.is_empty() {
            out.push(part.delta(told));
        }
    }

    /// Tells the rest of what nothing more comes of.
    fn release(&mut self, is_over: impl Fn(Part) -> bool, out: &mut Vec<StreamDelta>) {
        let secrets = &self.secrets;
        self.texts.retain_mut(|(part, held)| {
            if !is_over(*part) {
                return true;
            }
            let rest = held.finish(secrets);
            if !rest.is_empty() {
                out.push(part.delta(rest));
            }
            false
        });
    }

    fn end(&mut self, failure: Option<ProviderFailure>) {
        self.is_over = true;
        let rest = self.rest();
        if !rest.is_empty() {
            self.ready.push_back(Ok(rest));
        }
        if let Some(mut failure) = failure {
            self.secrets.hide_in_failure(&mut failure);
            self.ready.push_back(Err(failure));
        }
    }
}

impl Stream for Hidden {
    type Item = Result<Vec<StreamDelta>, ProviderFailure>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Poll::Ready(Some(ready));
            }
            if self.is_over {
                return Poll::Ready(None);
            }
            let Poll::Ready(said) = self.inner.as_mut().poll_next(context) else {
                return self.poll_still(context).map(|early| Some(Ok(early)));
            };
            match said {
                Some(Ok(deltas)) if self.secrets.is_empty() => return Poll::Ready(Some(Ok(deltas))),
                Some(Ok(deltas)) => {
                    self.heard_at = Instant::now();
                    let mut out = Vec::with_capacity(deltas.len());
                    for delta in deltas {
                        self.take(delta, &mut out);
                    }
                    // Whoever listens hears a sign of life also where all was held back.
                    return Poll::Ready(Some(Ok(out)));
                }
                Some(Err(failure)) => self.end(Some(failure)),
                None => self.end(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;
    use turnwright_core::{Finish, FinishReason, NativeBlock, ProviderFailureKind};

    use super::*;

    const KEY: &str = "sk-live-7Yq0pZx9RtLm4";

    async fn told(deltas: Vec<StreamDelta>, failure: Option<ProviderFailure>) -> Vec<Result<StreamDelta, ProviderFailure>> {
        let known = KnownSecrets::default();
        known.learn([KEY, "short"]);
        let each = deltas.into_iter().map(|delta| Ok(vec![delta])).chain(failure.map(Err));
        let stream: ModelStream = Box::pin(futures_util::stream::iter(each.collect::<Vec<_>>()));
        let batches: Vec<_> = hidden(Ok(stream), known.now()).unwrap().collect().await;
        let mut told: Vec<Result<StreamDelta, ProviderFailure>> = Vec::new();
        for batch in batches {
            match batch {
                Ok(batch) => told.extend(batch.into_iter().map(Ok)),
                Err(failure) => told.push(Err(failure)),
            }
        }
        told
    }

    #[test]
    fn what_is_learned_within_is_hidden_there_alone_together_with_what_is_known_beyond() {
        let all = KnownSecrets::default();
        all.learn([KEY]);
        let own = all.within();
        let hidden = |known: &KnownSecrets, text: &str| known.now().hide(text).into_owned();
        assert_eq!(hidden(&own, KEY), "[secret]");
        own.learn(["function-of-mine"]);
        assert_eq!(hidden(&own, &format!("{KEY} function-of-mine")), "[secret] [secret]");
        assert_eq!(hidden(&all, &format!("{KEY} function-of-mine")), "[secret] function-of-mine");
        // What becomes known beyond is hidden within from then on.
        all.learn(["learned-afterwards"]);
        assert_eq!(hidden(&own, "learned-afterwards function-of-mine"), "[secret] [secret]");
        assert!(own != all && own == own.clone());
    }

    #[tokio::test]
    async fn a_secret_over_several_deltas_is_hidden_and_the_rest_keeps_its_order() {
        let (first, second) = KEY.split_at(9);
        let arguments = |key, text: &str| StreamDelta::CallArguments { key, text: text.to_owned() };
        let started = StreamDelta::CallStarted { key: 0, name: "t".to_owned(), provider_id: None };
        let finished = StreamDelta::Finished(Finish { reason: FinishReason::Stop, raw: None });
        let deltas = vec![
            StreamDelta::Reasoning(format!("it is {first}")),
            StreamDelta::Text(format!("{second}? {first}")),
            StreamDelta::Text(second.to_owned()),
            StreamDelta::BlockEnded { native: Some(NativeBlock(format!("{{\"text\":\"{KEY}\"}}"))) },
            started.clone(),
            arguments(0, &format!("{{\"a\":\"{first}")),
            arguments(1, "{\"b\":1}"),
            arguments(0, &format!("{second}\"}}")),
            finished.clone(),
        ];
        let told: Vec<StreamDelta> = told(deltas, None).await.into_iter().map(Result::unwrap).collect();
        let all = format!("{told:?}");
        assert!(!all.contains(KEY) && !all.contains(&format!("{first}{second}")), "{all}");
        let text = |part: fn(&StreamDelta) -> Option<&str>| told.iter().filter_map(part).collect::<String>();
        assert_eq!(
            text(|delta| if let StreamDelta::Text(text) = delta { Some(text) } else { None }),
            // The rest of a key by itself is more than half of it.
            "[secret]? [secret]"
        );
        let of_first = text(|delta| match delta {
            StreamDelta::CallArguments { key: 0, text } => Some(text),
            _ => None,
        });
        assert_eq!(of_first, r#"{"a":"[secret]"}"#);
        assert!(told.contains(&StreamDelta::BlockEnded { native: None }) && told.last() == Some(&finished));
        let at = |wanted: &StreamDelta| told.iter().position(|delta| delta == wanted);
        assert!(at(&started) > at(&StreamDelta::BlockEnded { native: None }));
    }

    #[tokio::test(start_paused = true)]
    async fn where_a_model_falls_silent_its_last_word_is_told() {
        let known = KnownSecrets::default();
        known.learn([KEY]);
        let (model, said) = futures_channel::mpsc::unbounded();
        let mut stream = hidden(Ok(Box::pin(said)), known.now()).unwrap();
        for (text, told) in [("n58 n59 ", vec!["n58 n", "59 "]), ("60", vec!["6", "0"])] {
            model.unbounded_send(Ok(vec![StreamDelta::Text(text.to_owned())])).unwrap();
            for text in told {
                let said = tokio::time::timeout(STANDS_STILL * 2, stream.next()).await.unwrap();
                assert_eq!(said, Some(Ok(vec![StreamDelta::Text(text.to_owned())])));
            }
            assert!(tokio::time::timeout(STANDS_STILL * 2, stream.next()).await.is_err(), "nothing more is told");
        }
    }

    #[tokio::test]
    async fn what_is_held_back_comes_before_the_failure_that_ends_the_answer() {
        let failure =
            ProviderFailure::new(ProviderFailureKind::Auth, format!("the key {KEY} is wrong")).with_raw(KEY.as_bytes());
        let told = told(vec![StreamDelta::Text("said sk-li".to_owned())], Some(failure)).await;
        let text: String = told
            .iter()
            .filter_map(|one| match one {
                Ok(StreamDelta::Text(text)) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(text, "said sk-li");
        let Some(Err(failure)) = told.last() else { panic!("{told:?}") };
        assert_eq!(
            (failure.message.as_str(), failure.said.as_ref().unwrap().raw.as_str()),
            ("the key [secret] is wrong", "[secret]")
        );
    }
}
