//! An engine over scripted ports, and the words to look at it with.

use std::sync::Arc;

use turnwright_core::policy::{Policy, RuleText};
use turnwright_core::{ApproveMode, CallId, ConversationId, Entry, Journal, ModelRef, TurnSettings, TurnStatus};
use turnwright_engine::{
    Answers, Choice, Engine, EngineParts, NewConversation, NewMessage, Sent, Store, ToolSource, TurnState,
};
use turnwright_testkit::{ManualClock, MemoryStore, ScriptedProvider, ScriptedProviders, ScriptedSource};

pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) provider: Arc<ScriptedProvider>,
    pub(crate) source: Arc<ScriptedSource>,
    pub(crate) id: ConversationId,
}

pub(crate) struct Setup {
    pub(crate) approve: ApproveMode,
    pub(crate) max_steps: u32,
    pub(crate) rules: Vec<RuleText>,
}

impl Default for Setup {
    fn default() -> Self {
        Self { approve: ApproveMode::All, max_steps: 25, rules: Vec::new() }
    }
}

pub(crate) fn id() -> ConversationId {
    "c1".parse().unwrap()
}

pub(crate) fn engine(
    store: impl Into<Arc<MemoryStore>>,
    provider: Arc<ScriptedProvider>,
    source: Arc<dyn ToolSource>,
    setup: Setup,
) -> Engine {
    engine_at(store, provider, source, setup, Arc::new(ManualClock::at(1_000)))
}

/// The same at a time that can be changed.
pub(crate) fn engine_at(
    store: impl Into<Arc<MemoryStore>>,
    provider: Arc<ScriptedProvider>,
    source: Arc<dyn ToolSource>,
    setup: Setup,
    clock: Arc<ManualClock>,
) -> Engine {
    let defaults = TurnSettings {
        approve: setup.approve,
        max_steps: setup.max_steps,
        ..TurnSettings::new(ModelRef::new("test", "scripted"))
    };
    Engine::new(EngineParts {
        providers: Arc::new(ScriptedProviders(provider)),
        sources: vec![source],
        store: store.into() as Arc<dyn Store>,
        clock,
        policy: Policy::new(setup.rules).unwrap(),
        defaults,
    })
}

pub(crate) async fn world(provider: Arc<ScriptedProvider>, source: ScriptedSource, setup: Setup) -> World {
    let source = Arc::new(source);
    let store = Arc::new(MemoryStore::default());
    let engine = engine(store.clone(), provider.clone(), source.clone(), setup);
    engine.keep_rules(store).await;
    engine.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
    World { engine, provider, source, id: id() }
}

impl World {
    pub(crate) async fn send(&self, text: &str) -> Sent {
        self.engine.send(&self.id, NewMessage::text(text)).await.unwrap()
    }

    pub(crate) async fn turn(&self, text: &str) -> TurnState {
        let sent = self.send(text).await;
        self.engine.wait(&self.id, sent.turn_id).await.unwrap()
    }

    pub(crate) async fn journal(&self) -> Journal {
        self.engine.journal(&self.id).await.unwrap()
    }

    pub(crate) async fn kinds(&self) -> Vec<&'static str> {
        kinds(&self.journal().await)
    }
}

pub(crate) fn kinds(journal: &Journal) -> Vec<&'static str> {
    journal.entries().iter().map(|stored| stored.entry.kind()).collect()
}

pub(crate) fn results(journal: &Journal) -> Vec<String> {
    let text = |entry: &Entry| match entry {
        Entry::Result(result) => {
            Some(format!("{} {:?} {}", result.call, result.outcome, turnwright_core::text_of(&result.content)))
        }
        _ => None,
    };
    journal.entries().iter().filter_map(|stored| text(&stored.entry)).collect()
}

pub(crate) fn completed() -> TurnState {
    TurnState::Ended(TurnStatus::Completed)
}

pub(crate) fn decisions(made: impl IntoIterator<Item = (CallId, Choice)>) -> Answers {
    Answers { decisions: made.into_iter().map(|(call, choice)| (call.into(), choice)).collect(), ..Answers::default() }
}
