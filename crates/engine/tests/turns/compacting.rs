//! Conversations that people compact, and take that back.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Semaphore;
use turnwright_core::budget::most_tokens;
use turnwright_core::policy::Policy;
use turnwright_core::prompt::Prompt;
use turnwright_core::{
    Finish, FinishReason, MessageId, ModelFacts, ModelRef, ProviderFailure, ProviderFailureKind, Seq, StreamDelta, TurnSettings,
};
use turnwright_engine::{Engine, EngineError, EngineParts, ModelInfo, ModelStream, NewConversation, NewMessage, Provider};
use turnwright_testkit::{
    Answer, Fuse, ManualClock, MemoryStore, ScriptedProvider, ScriptedProviders, ScriptedSource, ScriptedTool, call, text,
};

use crate::support::{Setup, World, completed, engine, id, kinds, world};

fn says(what: &str) -> Answer {
    Answer::whole([text(what)])
}

async fn said(answers: impl IntoIterator<Item = Answer>) -> World {
    let provider = ScriptedProvider::new([says("hi"), says("then")].into_iter().chain(answers));
    let world = world(provider, ScriptedSource::new("tools", [ScriptedTool::echo("echo")]), Setup::default()).await;
    assert_eq!(world.turn("hello").await, completed());
    assert_eq!(world.turn("and now").await, completed());
    world
}

/// The lines of what the model was asked last, without the head of a summary.
fn last(world: &World) -> Vec<String> {
    let asked = world.provider.asked();
    let lines = asked.last().unwrap().lines().filter(|line| !line.is_empty() && !line.starts_with("user: [What was said"));
    lines.map(str::to_owned).collect()
}

#[tokio::test]
async fn what_a_person_compacts_is_told_as_a_summary_and_comes_back_whole_when_that_is_undone() {
    let world = said([says("They greeted."), says("three"), says("four")]).await;
    let entries = world.journal().await.entries().to_vec();
    let made = world.engine.compact(&world.id, None).await.unwrap();
    assert_eq!((made.summary.as_str(), made.model.clone()), ("They greeted.", Some(ModelRef::new("test", "scripted"))));
    assert_eq!(world.engine.compaction(&world.id).await.unwrap(), Some(made));
    let journal = world.journal().await;
    assert_eq!(journal.entries().get(..entries.len()), Some(entries.as_slice()), "the journal is as it was");
    assert_eq!(world.turn("go on").await, completed());
    assert!(last(&world).starts_with(&["They greeted.".to_owned()]), "{:?}", last(&world));
    assert!(!last(&world).contains(&"user: hello".to_owned()));
    assert_eq!(world.engine.uncompact(&world.id).await.unwrap(), None);
    assert_eq!(world.turn("once more").await, completed());
    assert_eq!(last(&world).first().map(String::as_str), Some("user: hello"));
    let nothing = world.engine.uncompact(&world.id).await.unwrap_err();
    assert!(matches!(&nothing, EngineError::Invalid { what } if what.contains("no summary to take back")), "{nothing}");
}

#[tokio::test]
async fn a_summary_whose_answer_was_lost_is_made_once_for_the_same_request() {
    let store = Arc::new(MemoryStore::default());
    let source = || Arc::new(ScriptedSource::new("tools", []));
    let first = engine(store.clone(), ScriptedProvider::new([says("hi"), says("then")]), source(), Setup::default());
    first.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
    for said in ["hello", "and now"] {
        let sent = first.send(&id(), NewMessage::text(said)).await.unwrap();
        assert_eq!(first.wait(&id(), sent.turn_id).await.unwrap(), completed());
    }
    first.shutdown().await;
    let key = |fingerprint: &str| Some(("compact k".to_owned(), fingerprint.to_owned()));
    // It is stored, and nobody hears of it.
    let doomed = store.doomed_process(Fuse::After(1));
    let dying = engine(doomed, ScriptedProvider::new([says("They greeted.")]), source(), Setup::default());
    dying.compact_once(&id(), None, key("f")).await.unwrap_err();
    let silent = ScriptedProvider::new([]);
    let next = engine(store.another_process(), silent.clone(), source(), Setup::default());
    let made = next.compact_once(&id(), None, key("f")).await.unwrap();
    assert_eq!((made.summary.as_str(), next.compaction(&id()).await.unwrap()), ("They greeted.", Some(made.clone())));
    assert_eq!(silent.asked(), Vec::<String>::new());
    let journal = next.journal(&id()).await.unwrap();
    assert_eq!(kinds(&journal).iter().filter(|kind| **kind == "compacted").count(), 1);
    // Also after it was taken back it is the same request, and another one under its key is refused.
    next.uncompact(&id()).await.unwrap();
    assert_eq!(next.compact_once(&id(), None, key("f")).await.unwrap(), made);
    let reused = next.compact_once(&id(), None, key("g")).await.unwrap_err();
    assert_eq!(reused, EngineError::KeyReused { key: "compact k".to_owned() });
}

#[tokio::test]
async fn where_the_model_gives_no_summary_one_is_put_together_without_it() {
    let failing = Answer::of([]).failing(ProviderFailure::new(ProviderFailureKind::Server, "down"));
    let world = said([failing]).await;
    let made = world.engine.compact(&world.id, None).await.unwrap();
    assert_eq!(made.model, None);
    assert!(made.summary.contains("User: hello"), "{}", made.summary);
}

#[tokio::test]
async fn what_the_model_refused_or_did_not_end_is_no_summary() {
    let finished = |reason| vec![StreamDelta::Finished(Finish { reason, raw: None })];
    let reasons = [FinishReason::ContentFilter, FinishReason::Refusal, FinishReason::Length, FinishReason::Error];
    for reason in reasons {
        let world = said([Answer::of([text("I am sorry."), finished(reason)])]).await;
        let made = world.engine.compact(&world.id, None).await.unwrap();
        assert_eq!(made.model, None, "{reason:?}");
        assert!(made.summary.contains("User: hello") && !made.summary.contains("sorry"), "{reason:?}: {}", made.summary);
    }
}

#[tokio::test]
async fn a_conversation_in_which_nothing_was_said_cannot_be_compacted() {
    let world = world(ScriptedProvider::new([]), ScriptedSource::new("tools", []), Setup::default()).await;
    let nothing = world.engine.compact(&world.id, None).await.unwrap_err();
    assert!(matches!(&nothing, EngineError::Invalid { what } if what.contains("nothing")), "{nothing}");
}

#[tokio::test]
async fn a_summary_that_may_tell_of_what_was_hidden_meanwhile_is_not_stored() {
    let gate = Arc::new(Semaphore::new(0));
    let world = said([says("They greeted.").gated(&gate)]).await;
    let (engine, id) = (world.engine.clone(), world.id.clone());
    let compacting = async move { engine.compact(&id, None).await };
    let hiding = async {
        while world.provider.asked().len() < 3 {
            tokio::task::yield_now().await;
        }
        world.engine.hide(&world.id, MessageId(Seq::FIRST)).await.unwrap();
        gate.add_permits(2);
    };
    let (made, ()) = tokio::join!(compacting, hiding);
    let refused = made.unwrap_err();
    assert!(matches!(&refused, EngineError::Invalid { what } if what.contains("meanwhile")), "{refused}");
    assert_eq!(world.engine.compaction(&world.id).await.unwrap(), None);
}

#[tokio::test]
async fn a_turn_that_waits_for_a_person_waits_on_when_its_conversation_is_compacted() {
    let setup = Setup { approve: turnwright_core::ApproveMode::Ask, ..Setup::default() };
    let answers = [says("hi"), Answer::whole([call(0, "tools__echo", "{}")]), says("They greeted.")];
    let source = ScriptedSource::new("tools", [ScriptedTool::echo("echo")]);
    let world = world(ScriptedProvider::new(answers), source, setup).await;
    assert_eq!(world.turn("hello").await, completed());
    assert_eq!(world.turn("echo").await, turnwright_engine::TurnState::Parked);
    world.engine.compact(&world.id, None).await.unwrap();
    let journal = world.journal().await;
    let turn = journal.open_turn().unwrap();
    assert!(turn.is_parked() && turn.is_suspended());
    assert_eq!(world.engine.waiting(&world.id).await.unwrap().len(), 1);
}

/// A scripted model with a small window, which counts four bytes for a token.
#[derive(Debug)]
struct Small(Arc<ScriptedProvider>);

#[async_trait]
impl Provider for Small {
    fn dialect(&self) -> &'static str {
        "scripted"
    }

    fn call(&self, model: &str, prompt: &Prompt<'_>) -> Result<ModelStream, ProviderFailure> {
        self.0.call(model, prompt)
    }

    fn facts(&self, _model: &str) -> ModelFacts {
        ModelFacts { context_window: Some(1_000), max_output_tokens: Some(100), ..ModelFacts::default() }
    }

    fn measure(&self, _model: &str, prompt: &Prompt<'_>) -> Option<u64> {
        Some(most_tokens(&prompt.messages) / 4)
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, ProviderFailure> {
        self.0.models().await
    }
}

/// An answer of which the provider does not say what it cost.
fn unmeasured(what: &str) -> Answer {
    let finish = Finish { reason: FinishReason::Stop, raw: None };
    Answer::of([vec![StreamDelta::Text(what.to_owned()), StreamDelta::Finished(finish)]])
}

fn small(answers: impl IntoIterator<Item = Answer>) -> (Engine, Arc<ScriptedProvider>) {
    let provider = ScriptedProvider::new(answers);
    let engine = Engine::new(EngineParts {
        providers: Arc::new(ScriptedProviders(Arc::new(Small(provider.clone())))),
        sources: vec![Arc::new(ScriptedSource::new("tools", [ScriptedTool::echo("echo")]))],
        store: Arc::new(MemoryStore::default()),
        clock: Arc::new(ManualClock::at(1_000)),
        policy: Policy::new(Vec::new()).unwrap(),
        defaults: TurnSettings::new(ModelRef::new("test", "scripted")),
    });
    (engine, provider)
}

async fn say(engine: &Engine, text: &str) -> turnwright_engine::TurnState {
    let sent = engine.send(&id(), NewMessage { create: true, ..NewMessage::text(text) }).await.unwrap();
    engine.wait(&id(), sent.turn_id).await.unwrap()
}

#[tokio::test]
async fn a_prompt_that_is_longer_than_its_model_takes_is_compacted_before_the_model_is_asked() {
    let (engine, provider) = small([unmeasured("one"), says("A summary."), says("two")]);
    assert_eq!(say(&engine, &"x".repeat(3_000)).await, completed());
    assert_eq!(say(&engine, &"y".repeat(2_000)).await, completed());
    let journal = engine.journal(&id()).await.unwrap();
    let expected =
        ["user", "claimed", "offered", "assistant", "ended", "user", "claimed", "failed", "compacted", "assistant", "ended"];
    assert_eq!(kinds(&journal), expected);
    let asked = provider.asked();
    assert_eq!(asked.len(), 3, "the model was never asked what it would have refused");
    assert!(asked[1].contains("The transcript"), "{}", asked[1]);
    assert!(asked[2].contains("A summary.") && !asked[2].contains("xxx") && asked[2].contains("yyy"), "{}", asked[2]);
    let length = engine.length(&id()).await.unwrap().unwrap();
    assert!(length.tokens < 900 && length.budget.unwrap().room() == 880, "{length:?}");
}

#[tokio::test]
async fn where_a_summary_would_not_help_the_provider_has_the_last_word() {
    let (engine, provider) = small([says("It fits after all.")]);
    assert_eq!(say(&engine, &"x".repeat(8_000)).await, completed());
    assert_eq!(provider.asked().len(), 1);
}

#[tokio::test]
async fn what_the_provider_said_of_the_last_prompt_counts_for_more_than_an_estimate() {
    // Its usage says 10 tokens, whatever the texts are.
    let (engine, provider) = small([says("one"), says("two")]);
    assert_eq!(say(&engine, &"x".repeat(3_900)).await, completed());
    assert_eq!(say(&engine, "short").await, completed());
    assert_eq!(provider.asked().len(), 2);
    let length = engine.length(&id()).await.unwrap().unwrap();
    assert_eq!(length.tokens, 15);
}

#[tokio::test]
async fn a_summary_that_is_longer_than_it_may_be_does_not_fill_the_window_again() {
    let (engine, provider) = small([unmeasured("one"), unmeasured(&"z".repeat(1_800)), says("two")]);
    assert_eq!(say(&engine, &"x".repeat(3_000)).await, completed());
    assert_eq!(say(&engine, &"y".repeat(2_000)).await, completed());
    let made = engine.compaction(&id()).await.unwrap().unwrap();
    assert!(made.model.is_some() && made.summary.contains("left out"), "{made:?}");
    assert!(made.summary.len() <= 400, "a hundred tokens is what the model may answer: {}", made.summary.len());
    assert_eq!(provider.asked().len(), 3);
    let (engine, _) = small([unmeasured("one"), unmeasured(&"z".repeat(4_000)), says("two")]);
    assert_eq!(say(&engine, &"x".repeat(3_000)).await, completed());
    assert_eq!(say(&engine, &"y".repeat(2_000)).await, completed());
    let made = engine.compaction(&id()).await.unwrap().unwrap();
    assert!(made.model.is_none() && made.summary.len() <= 400, "it is longer than what it stands for: {made:?}");
}

#[tokio::test]
async fn a_question_for_a_summary_that_is_too_long_after_all_is_asked_once_more_for_less() {
    let too_long = || Answer::of([]).failing(ProviderFailure::new(ProviderFailureKind::ContextLength, "it is too long"));
    let (engine, provider) = small([unmeasured("one"), too_long(), says("A summary."), says("two")]);
    assert_eq!(say(&engine, &"x".repeat(2_900)).await, completed());
    assert_eq!(say(&engine, &"y".repeat(2_000)).await, completed());
    let asked = provider.asked();
    assert!(asked[1].len() > 2_200 && asked[2].len() < 2_100, "{} and {}", asked[1].len(), asked[2].len());
    assert_eq!(engine.compaction(&id()).await.unwrap().unwrap().summary, "A summary.");
}
