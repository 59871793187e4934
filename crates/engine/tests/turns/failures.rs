//! Models that fail: the next one of the chain, a shorter conversation, and what is held while nothing can be stored.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;
use turnwright_core::{
    ApproveMode, ContentBlock, Control, Entry, Finish, FinishReason, Journal, ModelRef, ProviderFailure,
    ProviderFailureKind as Kind, StreamDelta, TurnSettings, TurnStatus, Usage,
};
use turnwright_engine::{
    Engine, EngineError, EngineParts, Event, NewConversation, NewMessage, Provider, Providers, SettingsOverlay, Store,
    TurnState, WatchFrom,
};
use turnwright_testkit::{
    Answer, Disk, Fuse, ManualClock, MemoryStore, ScriptedProvider, ScriptedSource, ScriptedTool, call, text,
};

use crate::support::{completed, id, kinds, results};

/// Two providers, `a` and `b`; models of `a` fall back to `b/two`.
#[derive(Debug)]
struct Pair {
    a: Arc<ScriptedProvider>,
    b: Arc<ScriptedProvider>,
}

impl Providers for Pair {
    fn get(&self, name: &str) -> Result<Arc<dyn Provider>, ProviderFailure> {
        match name {
            "a" => Ok(self.a.clone()),
            "b" => Ok(self.b.clone()),
            name => Err(ProviderFailure::new(Kind::Unavailable, format!("there is no provider `{name}`"))),
        }
    }

    fn fallback(&self, model: &ModelRef) -> Vec<ModelRef> {
        if model.provider() == "a" { vec![ModelRef::new("b", "two")] } else { Vec::new() }
    }

    fn names(&self) -> Vec<String> {
        vec!["a".to_owned(), "b".to_owned()]
    }
}

fn engine(store: Arc<MemoryStore>, a: &Arc<ScriptedProvider>, b: &Arc<ScriptedProvider>, source: ScriptedSource) -> Engine {
    Engine::new(EngineParts {
        providers: Arc::new(Pair { a: a.clone(), b: b.clone() }),
        sources: vec![Arc::new(source)],
        store: store as Arc<dyn Store>,
        clock: Arc::new(ManualClock::at(1_000)),
        policy: turnwright_core::policy::Policy::new(Vec::new()).unwrap(),
        defaults: TurnSettings { approve: ApproveMode::All, ..TurnSettings::new(ModelRef::new("a", "one")) },
    })
}

fn echo() -> ScriptedSource {
    ScriptedSource::new("tools", [ScriptedTool::echo("echo")])
}

fn failing(kind: Kind) -> Answer {
    Answer::of([]).failing(ProviderFailure::new(kind, "it failed"))
}

fn look() -> Answer {
    Answer::whole([call(0, "tools__echo", r#"{"n":1}"#)])
}

fn script(answers: impl IntoIterator<Item = Answer>) -> Arc<ScriptedProvider> {
    ScriptedProvider::new(answers)
}

async fn begun(engine: &Engine) {
    engine.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
}

async fn turn(engine: &Engine, message: &str) -> TurnState {
    let sent = engine.send(&id(), NewMessage::text(message)).await.unwrap();
    engine.wait(&id(), sent.turn_id).await.unwrap()
}

/// The models that answered, in order.
fn origins(journal: &Journal) -> Vec<String> {
    let origin = |entry: &Entry| match entry {
        Entry::Assistant(message) => Some(format!("{}/{}", message.origin.provider, message.origin.model)),
        _ => None,
    };
    journal.entries().iter().filter_map(|stored| origin(&stored.entry)).collect()
}

fn summaries(journal: &Journal) -> Vec<&turnwright_core::Compacted> {
    let summary = |entry: &'_ Entry| matches!(entry, Entry::Control(Control::Compacted(_)));
    let found = journal.entries().iter().filter(|stored| summary(&stored.entry));
    found
        .map(|stored| match &*stored.entry {
            Entry::Control(Control::Compacted(compacted)) => compacted,
            _ => unreachable!("it was looked for"),
        })
        .collect()
}

#[tokio::test]
async fn where_a_model_is_overloaded_the_next_of_the_chain_answers_to_the_end_of_the_turn() {
    let mut overloaded = ProviderFailure::new(Kind::Overloaded, "it failed");
    overloaded.request_id = Some("req_7".into());
    let a = script([Answer::of([]).failing(overloaded), Answer::whole([text("From a.")])]);
    let b = script([look(), Answer::whole([text("From b.")])]);
    let engine = engine(Arc::default(), &a, &b, echo());
    begun(&engine).await;
    let mut watch = engine.watch(&id(), WatchFrom::Now).await.unwrap();
    assert_eq!(turn(&engine, "go").await, completed());
    let journal = engine.journal(&id()).await.unwrap();
    assert_eq!(kinds(&journal)[3..5], ["failed", "assistant"]);
    assert_eq!((origins(&journal), a.asked().len()), (vec!["b/two".to_owned(), "b/two".to_owned()], 1));
    let mut notices = Vec::new();
    'told: while let Some(frame) = watch.next().await {
        for event in frame.events.iter() {
            match event {
                Event::Notice { text, .. } => notices.push(text.clone()),
                Event::TurnFinished { .. } => break 'told,
                _ => {}
            }
        }
    }
    assert_eq!(notices, ["it failed (request req_7); going on with `b/two`"]);
    // The next turn begins with the first model again.
    assert_eq!(turn(&engine, "and now").await, completed());
    let journal = engine.journal(&id()).await.unwrap();
    assert_eq!(origins(&journal).last().map(String::as_str), Some("a/one"));
}

#[tokio::test]
async fn a_refused_request_is_not_passed_on_and_can_be_asked_of_another_model() {
    let (a, b) = (script([failing(Kind::InvalidRequest)]), script([Answer::whole([text("From b.")])]));
    let engine = engine(Arc::default(), &a, &b, echo());
    begun(&engine).await;
    assert_eq!(turn(&engine, "go").await, TurnState::Ended(TurnStatus::Failed { reason: "it failed".to_owned() }));
    assert_eq!(b.asked().len(), 0);
    let overlay = SettingsOverlay { model: Some(ModelRef::new("b", "two")), ..SettingsOverlay::default() };
    let retried = engine.retry(&id(), overlay).await.unwrap();
    assert_eq!(engine.wait(&id(), retried).await.unwrap(), completed());
    assert_eq!(b.asked(), ["user: go"]);
}

#[tokio::test]
async fn a_message_that_joins_a_turn_with_another_model_is_answered_by_that_model() {
    let gate = Arc::new(Semaphore::new(0));
    let (a, b) = (script([look().gated(&gate)]), script([Answer::whole([text("From b.")])]));
    let engine = engine(Arc::default(), &a, &b, echo());
    begun(&engine).await;
    let first = engine.send(&id(), NewMessage::text("go")).await.unwrap();
    let overlay = SettingsOverlay { model: Some(ModelRef::new("b", "two")), ..SettingsOverlay::default() };
    let joined = engine.send(&id(), NewMessage { overlay, ..NewMessage::text("and you?") }).await.unwrap();
    assert_eq!(joined.turn_id, first.turn_id);
    gate.add_permits(2);
    assert_eq!(engine.wait(&id(), first.turn_id).await.unwrap(), completed());
    assert_eq!(origins(&engine.journal(&id()).await.unwrap()), ["a/one", "b/two"]);
    let shown = "user: go\nassistant:  [tools__echo]\nresult: {\"n\":1}\nuser: and you?";
    assert_eq!(b.asked(), [shown]);
}

#[tokio::test]
async fn a_turn_whose_chain_is_at_its_end_says_what_failed_and_can_be_retried() {
    let a = script([failing(Kind::Timeout), Answer::whole([text("From a.")])]);
    let b = script([failing(Kind::RateLimit)]);
    let engine = engine(Arc::default(), &a, &b, echo());
    begun(&engine).await;
    let reason = "it failed; failed before it: `a/one`".to_owned();
    assert_eq!(turn(&engine, "go").await, TurnState::Ended(TurnStatus::Failed { reason }));
    let retried = engine.retry(&id(), SettingsOverlay::default()).await.unwrap();
    assert_eq!(engine.wait(&id(), retried).await.unwrap(), completed());
    assert_eq!(origins(&engine.journal(&id()).await.unwrap()), ["a/one"]);
}

#[tokio::test]
async fn a_conversation_that_is_too_long_goes_on_with_a_summary() {
    let a =
        script([look(), failing(Kind::ContextLength), Answer::whole([text("They echoed 1.")]), Answer::whole([text("Done.")])]);
    let engine = engine(Arc::default(), &a, &script([]), echo());
    begun(&engine).await;
    assert_eq!(turn(&engine, "go").await, completed());
    let journal = engine.journal(&id()).await.unwrap();
    let summaries = summaries(&journal);
    assert_eq!(summaries.len(), 1);
    assert_eq!(summaries[0].summary, "They echoed 1.");
    assert_eq!(summaries[0].origin.as_ref().map(|origin| origin.model.as_str()), Some("one"));
    assert_eq!(summaries[0].usage, Usage { input_tokens: Some(10), output_tokens: Some(5), ..Usage::default() });
    let asked = a.asked();
    assert!(asked[2].starts_with("user: The transcript:\n\nAssistant called tools__echo {\"n\":1}\nResult"), "{}", asked[2]);
    assert!(asked[3].starts_with("user: go\nuser: [What was said"), "{}", asked[3]);
    assert!(asked[3].ends_with("They echoed 1.") && !asked[3].contains("result:"), "{}", asked[3]);
    let told = engine.watch(&id(), WatchFrom::After(None)).await.unwrap().next().await.unwrap();
    let tokens = told.events.iter().find_map(|event| match event {
        Event::Usage { usage } => usage.input_tokens,
        _ => None,
    });
    assert_eq!(tokens, Some(30), "the summary is paid for too");
}

#[tokio::test]
async fn where_the_model_makes_no_summary_one_is_put_together() {
    for answer in [failing(Kind::ContextLength), Answer::whole([text("  ")]), Answer::of([text("Half")]).failing(cut_off())] {
        let a = script([look(), failing(Kind::ContextLength), answer, Answer::whole([text("Done.")])]);
        let engine = engine(Arc::default(), &a, &script([]), echo());
        begun(&engine).await;
        assert_eq!(turn(&engine, "go").await, completed());
        let journal = engine.journal(&id()).await.unwrap();
        let summary = summaries(&journal)[0];
        assert_eq!(summary.origin, None);
        assert!(summary.summary.starts_with("Assistant called tools__echo {\"n\":1}\nResult of tools__echo (done): "));
    }
}

fn cut_off() -> ProviderFailure {
    ProviderFailure::cut_off()
}

#[tokio::test]
async fn a_conversation_that_stays_too_long_fails_and_can_be_gone_on_with() {
    let a = script([
        look(),
        failing(Kind::ContextLength),
        Answer::whole([text("A summary.")]),
        failing(Kind::ContextLength),
        Answer::whole([text("Better.")]),
    ]);
    let engine = engine(Arc::default(), &a, &script([]), echo());
    begun(&engine).await;
    let reason = "it failed; its beginning was put into a summary, and it is still too long".to_owned();
    assert_eq!(turn(&engine, "go").await, TurnState::Ended(TurnStatus::Failed { reason }));
    assert_eq!(turn(&engine, "shorter").await, completed());
}

#[tokio::test]
async fn what_is_told_of_a_call_while_it_is_waited_for_reaches_who_watches_and_who_comes_then() {
    let gate = Arc::new(Semaphore::new(0));
    let busy = vec![StreamDelta::Notice("asked again in 50 s".to_owned())];
    let said = text("Here.").into_iter().chain([StreamDelta::Finished(Finish { reason: FinishReason::Stop, raw: None })]);
    let a = script([Answer::of([busy, said.collect()]).gated(&gate)]);
    let engine = engine(Arc::default(), &a, &script([]), echo());
    begun(&engine).await;
    let is_told = |event: &Event| matches!(event, Event::Notice { text, .. } if text == "asked again in 50 s");
    let mut watch = engine.watch(&id(), WatchFrom::Now).await.unwrap();
    let sent = engine.send(&id(), NewMessage::text("go")).await.unwrap();
    gate.add_permits(1);
    while !watch.next().await.unwrap().events.iter().any(is_told) {}
    let mut late = engine.watch(&id(), WatchFrom::Now).await.unwrap();
    assert!(late.next().await.unwrap().events.iter().any(is_told));
    gate.add_permits(2);
    assert_eq!(engine.wait(&id(), sent.turn_id).await.unwrap(), completed());
    let journal = engine.journal(&id()).await.unwrap();
    let stored = journal.entries().iter().find_map(|stored| match &*stored.entry {
        Entry::Assistant(message) => Some(message.text()),
        _ => None,
    });
    assert_eq!(stored.as_deref(), Some("Here."));
}

#[tokio::test]
async fn a_stop_reaches_a_summary_that_is_being_made() {
    let gate = Arc::new(Semaphore::new(0));
    let a = script([look(), failing(Kind::ContextLength), Answer::whole([text("A summary.")]).gated(&gate)]);
    let engine = engine(Arc::default(), &a, &script([]), echo());
    begun(&engine).await;
    let mut watch = engine.watch(&id(), WatchFrom::Now).await.unwrap();
    let sent = engine.send(&id(), NewMessage::text("go")).await.unwrap();
    let is_notice = |event: &Event| matches!(event, Event::Notice { .. });
    while !watch.next().await.unwrap().events.iter().any(is_notice) {}
    engine.cancel(&id(), None).await.unwrap();
    assert_eq!(engine.wait(&id(), sent.turn_id).await.unwrap(), TurnState::Ended(TurnStatus::Cancelled));
    assert_eq!(summaries(&engine.journal(&id()).await.unwrap()).len(), 0);
}

/// Answers by what it is asked, so that a repetition of a question has the same answer.
fn troubled() -> Arc<ScriptedProvider> {
    ScriptedProvider::by(|asked| match asked {
        _ if asked.starts_with("user: The transcript:") => Answer::whole([text("They echoed.")]),
        _ if asked.contains("They echoed.") => Answer::whole([text("Done.")]),
        _ if asked.contains("result: ") => failing(Kind::ContextLength),
        _ => look(),
    })
}

#[tokio::test(start_paused = true)]
async fn wherever_a_process_dies_around_a_fallback_and_a_summary_the_next_one_goes_on() {
    let mut worlds = 0;
    for fuse in (2..=12).flat_map(|append| [Fuse::Before(append), Fuse::After(append)]) {
        let disk = MemoryStore::default();
        let (a, b) = (ScriptedProvider::by(|_| failing(Kind::Overloaded)), troubled());
        let first = engine(Arc::new(disk.doomed_process(fuse)), &a, &b, echo());
        begun(&first).await;
        let sent = first.send(&id(), NewMessage::text("go")).await;
        let turn = sent.map_or(turnwright_core::TurnId(turnwright_core::Seq::FIRST), |sent| sent.turn_id);
        let _died = timeout(Duration::from_mins(5), first.wait(&id(), turn)).await;
        first.shutdown().await;
        let second = engine(Arc::new(disk.another_process()), &a, &b, echo());
        second.resume_open_turns().await.unwrap();
        assert_eq!(second.wait(&id(), turn).await.unwrap(), completed(), "{fuse:?}");
        let journal = second.journal(&id()).await.unwrap();
        assert_eq!(summaries(&journal).len(), 1, "{fuse:?} {:?}", kinds(&journal));
        assert!(origins(&journal).iter().all(|origin| origin == "b/two"), "{fuse:?} {:?}", origins(&journal));
        assert_eq!(results(&journal).len(), 1, "{fuse:?}");
        second.shutdown().await;
        worlds += 1;
    }
    assert_eq!(worlds, 22);
}

#[tokio::test(start_paused = true)]
async fn a_known_result_is_held_for_as_long_as_nothing_can_be_stored() {
    let (begun_gate, go_on) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let gates = (begun_gate.clone(), go_on.clone());
    let tool = ScriptedTool::new("work", move |_, _| {
        let (begun, go_on) = gates.clone();
        async move {
            begun.add_permits(1);
            go_on.acquire().await.unwrap().forget();
            Ok(turnwright_engine::ToolOutput { content: vec![ContentBlock::text("it happened")], ..Default::default() })
        }
    });
    let a = script([Answer::whole([call(0, "tools__work", "{}")]), Answer::whole([text("Done.")])]);
    let disk = Arc::new(MemoryStore::default());
    let engine = engine(disk.clone(), &a, &script([]), ScriptedSource::new("tools", [tool]));
    begun(&engine).await;
    let sent = engine.send(&id(), NewMessage::text("go")).await.unwrap();
    begun_gate.acquire().await.unwrap().forget();
    disk.set_full(Disk::Full);
    go_on.add_permits(1);
    let waited = timeout(Duration::from_hours(5), engine.wait(&id(), sent.turn_id)).await;
    assert!(waited.is_err(), "{waited:?}");
    disk.set_full(Disk::HasRoom);
    assert_eq!(engine.wait(&id(), sent.turn_id).await.unwrap(), completed());
    assert_eq!(results(&engine.journal(&id()).await.unwrap()), ["call_4_0 Success it happened"]);
}

/// Panics where it is asked, or in what it streams.
#[derive(Debug)]
struct Broken {
    streams: bool,
}

#[async_trait::async_trait]
impl Provider for Broken {
    fn dialect(&self) -> &'static str {
        "broken"
    }

    fn call(
        &self,
        _model: &str,
        _prompt: &turnwright_core::prompt::Prompt<'_>,
    ) -> Result<turnwright_engine::ModelStream, ProviderFailure> {
        assert!(self.streams, "it is broken");
        let is_broken = self.streams;
        Ok(Box::pin(futures_util::stream::once(async move {
            assert!(!is_broken, "it is broken");
            Ok(Vec::new())
        })))
    }

    async fn models(&self) -> Result<Vec<turnwright_engine::ModelInfo>, ProviderFailure> {
        Ok(Vec::new())
    }
}

impl Providers for Broken {
    fn get(&self, _name: &str) -> Result<Arc<dyn Provider>, ProviderFailure> {
        Ok(Arc::new(Self { streams: self.streams }))
    }

    fn names(&self) -> Vec<String> {
        vec!["mine".to_owned()]
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_panics_has_failed_and_the_turn_says_so() {
    for streams in [false, true] {
        let engine = Engine::new(EngineParts {
            providers: Arc::new(Broken { streams }),
            sources: Vec::new(),
            store: Arc::new(MemoryStore::default()),
            clock: Arc::new(ManualClock::at(1_000)),
            policy: turnwright_core::policy::Policy::new(Vec::new()).unwrap(),
            defaults: TurnSettings::new(ModelRef::new("mine", "m")),
        });
        let sent = engine.send(&id(), NewMessage { create: true, ..NewMessage::text("hi") }).await.unwrap();
        let came = timeout(Duration::from_mins(5), engine.wait(&id(), sent.turn_id)).await.unwrap().unwrap();
        let TurnState::Ended(TurnStatus::Failed { reason }) = came else { panic!("{came:?}") };
        assert!(reason.contains("the provider `mine` failed inside; this is a fault of the provider"), "{reason}");
    }
}

#[tokio::test]
async fn a_model_that_could_not_be_read_again_is_refused_before_anything_is_stored() {
    for (model, said) in [
        (ModelRef::new("", "m"), "`/m` is not a model (PROVIDER/MODEL)"),
        (ModelRef::new("mine", ""), "`mine/` is not a model (PROVIDER/MODEL)"),
        (ModelRef::new("mine/x", "m"), "the provider's name is `mine/x`; it must be one without `/`"),
    ] {
        let engine = Engine::new(EngineParts {
            providers: Arc::new(Broken { streams: false }),
            sources: Vec::new(),
            store: Arc::new(MemoryStore::default()),
            clock: Arc::new(ManualClock::at(1_000)),
            policy: turnwright_core::policy::Policy::new(Vec::new()).unwrap(),
            defaults: TurnSettings::new(model.clone()),
        });
        let chosen = SettingsOverlay { model: Some(model), ..SettingsOverlay::default() };
        for overlay in [SettingsOverlay::default(), chosen] {
            let refused = engine.send(&id(), NewMessage { create: true, overlay, ..NewMessage::text("hi") }).await;
            assert_eq!(refused.unwrap_err(), EngineError::Invalid { what: said.to_owned() });
        }
        assert!(engine.conversations(None, 9).await.unwrap().is_empty());
    }
}
