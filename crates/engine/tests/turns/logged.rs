//! What the log says of turns.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use tracing_subscriber::fmt::MakeWriter;
use turnwright_core::{Control, Entry, ProviderFailure, ProviderFailureKind, Seq, TurnId};
use turnwright_engine::{Append, KeptBy, NewConversation, NewMessage, Store};
use turnwright_testkit::{Answer, Fuse, MemoryStore, ScriptedProvider, ScriptedSource, text};

use crate::support::{Setup, engine, id};

/// A log that is kept.
#[derive(Debug, Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Lines {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_said_of_a_turn_outside_of_its_driver_names_it() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt().with_writer(lines.clone()).with_ansi(false).finish();
    let _kept = tracing::subscriber::set_default(subscriber);
    let store = MemoryStore::default();
    let answers = || ScriptedProvider::new([Answer::whole([text("Done.")])]);
    let source = || Arc::new(ScriptedSource::new("tools", []));
    // It dies with what its turn began with stored, and no more.
    let first = engine(store.doomed_process(Fuse::After(1)), answers(), source(), Setup::default());
    first.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
    let message = NewMessage { kept_by: KeptBy::Servers, ..NewMessage::text("go") };
    let _died = first.send(&id(), message).await;
    first.shutdown().await;
    // Another one stores what does not fit.
    let other = Arc::new(store.another_process());
    let last = other.last_seq(&id()).await.unwrap().unwrap();
    let stray = Entry::Control(Control::CancelRequested { turn: TurnId(Seq::new(900).unwrap()) });
    let at = Seq::new(last.get() + 1).unwrap();
    other.append(Append { conversation: id(), at, entries: vec![stray], at_ms: 1_000, side: Vec::new() }).await.unwrap();
    let second = engine(other, answers(), source(), Setup::default());
    assert_eq!(second.resume_open_turns().await, Ok(0));
    second.shutdown().await;
    let log = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let line = log.lines().find(|line| line.contains("the journal is damaged")).unwrap_or(&log);
    assert!(line.contains("ERROR turn{conversation=c1 turn=turn_1}: "), "{line}");
}

#[tokio::test(start_paused = true)]
async fn how_a_model_call_failed_is_said_without_the_words_of_its_provider() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt().with_writer(lines.clone()).with_ansi(false).finish();
    let _kept = tracing::subscriber::set_default(subscriber);
    let refusal = ProviderFailure { status: Some(401), ..ProviderFailure::new(ProviderFailureKind::Auth, "no such key") };
    let model = ScriptedProvider::new([Answer::of([]).failing(refusal)]);
    let engine = engine(Arc::new(MemoryStore::default()), model, Arc::new(ScriptedSource::new("tools", [])), Setup::default());
    engine.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
    let sent = engine.send(&id(), NewMessage::text("go")).await.unwrap();
    engine.wait(&id(), sent.turn_id).await.unwrap();
    engine.shutdown().await;
    let log = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let line = log.lines().find(|line| line.contains("a model call failed")).unwrap_or(&log);
    let told = r#"a model call failed provider="test" model="scripted" kind="auth" status=401"#;
    assert!(!log.contains("no such key"), "{log}");
    assert!(line.contains(" INFO ") && line.contains("c1") && line.contains("turn_1") && line.contains(told), "{line}");
}
