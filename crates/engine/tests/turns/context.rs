//! What is gathered for a message and shown besides it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::timeout;
use turnwright_core::{ContextKind, ContextPart, Control, Entry, ProviderFailure, ProviderFailureKind};
use turnwright_engine::{ContextAsk, ContextSource, Event, Gathered, NewConversation, NewMessage, WatchFrom};
use turnwright_testkit::{Answer, Fuse, MemoryStore, ScriptedProvider, ScriptedSource, ScriptedTool, call, text};

use crate::support::{Setup, completed, engine, id, kinds, world};

/// Finds something else each time, unless it has nothing or never ends.
#[derive(Debug, Default)]
struct Library {
    asked: Mutex<Vec<ContextAsk>>,
    has_nothing: bool,
    never_ends: bool,
}

impl Library {
    fn said(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|ask| ask.said.clone()).collect()
    }
}

#[async_trait]
impl ContextSource for Library {
    async fn gather(&self, ask: ContextAsk) -> Vec<Gathered> {
        let count = {
            let mut asked = self.asked.lock().unwrap();
            asked.push(ask);
            asked.len()
        };
        if self.never_ends {
            std::future::pending::<()>().await;
        }
        if self.has_nothing {
            return Vec::new();
        }
        let part = ContextPart {
            kind: ContextKind::Knowledge,
            source: "notes".to_owned(),
            document: "a.md".to_owned(),
            place: None,
            version: Some(count.to_string()),
        };
        vec![Gathered { text: format!("facts {count}"), parts: vec![part], notices: Vec::new() }]
    }
}

fn echo() -> ScriptedSource {
    ScriptedSource::new("tools", [ScriptedTool::echo("echo")])
}

#[tokio::test]
async fn what_was_gathered_is_stored_before_the_model_sees_it_and_once_for_each_message() {
    let provider = ScriptedProvider::new([
        Answer::whole([call(0, "tools__echo", "{}")]),
        Answer::whole([text("Done.")]),
        Answer::whole([text("Again.")]),
    ]);
    let library = Arc::new(Library::default());
    let world = world(provider, echo(), Setup::default()).await;
    world.engine.show_besides(library.clone());
    assert_eq!(world.turn("go").await, completed());
    assert_eq!(world.turn("on").await, completed());
    let expected =
        ["user", "claimed", "offered", "context", "assistant", "decision", "started", "result", "assistant", "ended"];
    assert_eq!(world.kinds().await[..10], expected);
    assert_eq!(world.kinds().await[10..], ["user", "claimed", "context", "assistant", "ended"]);
    let asked = world.provider.asked();
    assert_eq!(asked[0], "context: facts 1\nuser: go");
    assert!(asked[1].starts_with(&asked[0]) && !asked[1].contains("facts 2"), "{asked:?}");
    assert!(asked[2].ends_with("assistant: Done. []\ncontext: facts 2\nuser: on"), "{asked:?}");
    assert_eq!(library.said(), ["go", "on"]);
}

#[tokio::test]
async fn where_nothing_is_found_nothing_is_stored_and_it_is_not_asked_again() {
    let failure = ProviderFailure::new(ProviderFailureKind::Overloaded, "busy");
    let provider = ScriptedProvider::new([Answer::of([]).failing(failure)]);
    let library = Arc::new(Library { has_nothing: true, ..Library::default() });
    let world = world(provider, echo(), Setup::default()).await;
    world.engine.show_besides(library.clone());
    world.turn("go").await;
    assert!(!world.kinds().await.contains(&"context"));
    assert_eq!(library.said(), ["go"]);
}

#[tokio::test(start_paused = true)]
async fn what_takes_too_long_is_left_out_and_told() {
    let provider = ScriptedProvider::new([Answer::whole([text("Done.")])]);
    let world = world(provider, echo(), Setup::default()).await;
    world.engine.show_besides(Arc::new(Library { never_ends: true, ..Library::default() }));
    assert_eq!(world.turn("go").await, completed());
    assert_eq!(world.provider.asked(), ["user: go"]);
    let journal = world.journal().await;
    let notice = journal.entries().iter().find_map(|stored| match &*stored.entry {
        Entry::Control(Control::Context(context)) => context.notices.first().cloned(),
        _ => None,
    });
    assert!(notice.unwrap().contains("longer than 30 seconds"));
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_gathering() {
    let provider = ScriptedProvider::new([]);
    let world = world(provider, echo(), Setup::default()).await;
    world.engine.show_besides(Arc::new(Library { never_ends: true, ..Library::default() }));
    let sent = world.send("go").await;
    world.engine.cancel(&world.id, Some(sent.turn_id)).await.unwrap();
    let ended = timeout(Duration::from_secs(5), world.engine.wait(&world.id, sent.turn_id)).await;
    assert_eq!(ended.unwrap().unwrap(), turnwright_engine::TurnState::Ended(turnwright_core::TurnStatus::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn wherever_a_process_dies_what_was_stored_is_what_the_next_one_shows() {
    for fuse in (1..=4).flat_map(|append| [Fuse::Before(append), Fuse::After(append)]) {
        let disk = MemoryStore::default();
        let provider = ScriptedProvider::by(|_| Answer::whole([text("Done.")]));
        let source = Arc::new(echo());
        let library = Arc::new(Library::default());
        let first = engine(disk.doomed_process(fuse), provider.clone(), source.clone(), Setup::default());
        first.show_besides(library.clone());
        first.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
        let Ok(sent) = first.send(&id(), NewMessage::text("go")).await else { continue };
        let _died = timeout(Duration::from_mins(5), first.wait(&id(), sent.turn_id)).await;
        first.shutdown().await;
        let second = engine(disk.another_process(), provider.clone(), source, Setup::default());
        second.show_besides(library);
        second.resume_open_turns().await.unwrap();
        assert_eq!(second.wait(&id(), sent.turn_id).await.unwrap(), completed(), "{fuse:?}");
        let journal = second.journal(&id()).await.unwrap();
        let stored: Vec<&str> = journal
            .entries()
            .iter()
            .filter_map(|stored| match &*stored.entry {
                Entry::Control(Control::Context(context)) => Some(context.text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(stored.len(), 1, "{fuse:?}: {:?}", kinds(&journal));
        let asked = provider.asked();
        assert_eq!(asked.last().unwrap(), &format!("context: {}\nuser: go", stored[0]), "{fuse:?}");
    }
}

#[tokio::test]
async fn watchers_are_told_what_was_gathered_also_those_who_come_later() {
    let provider = ScriptedProvider::new([Answer::whole([text("Done.")])]);
    let world = world(provider, echo(), Setup::default()).await;
    world.engine.show_besides(Arc::new(Library::default()));
    assert_eq!(world.turn("go").await, completed());
    let mut watch = world.engine.watch(&world.id, WatchFrom::After(None)).await.unwrap();
    let mut told = Vec::new();
    while let Some(frame) = watch.next().await {
        for event in frame.events.iter() {
            if let Event::ContextGathered { message_id, parts } = event {
                told.push(format!("{message_id}: {}", parts[0]));
            }
        }
        if frame.has_caught_up {
            break;
        }
    }
    assert_eq!(told, ["msg_1: a.md"]);
}
