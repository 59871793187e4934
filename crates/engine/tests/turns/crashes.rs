//! A process that dies at every append, and the one that comes after it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use turnwright_core::{ApproveMode, Control, Entry, Verdict};
use turnwright_engine::{Choice, KeptBy, NewConversation, NewMessage, TurnState};
use turnwright_testkit::{Answer, Fuse, MemoryStore, ScriptedProvider, ScriptedSource, ScriptedTool, call, text};

use crate::support::{Setup, completed, engine, id, results};

fn script() -> Arc<ScriptedProvider> {
    ScriptedProvider::by(|asked| {
        if asked.contains("result: ") {
            Answer::whole([text("Done.")])
        } else {
            Answer::whole([call(0, "tools__unsafe", r#"{"n":1}"#), call(1, "tools__unsafe", r#"{"n":2}"#)])
        }
    })
}

fn source() -> Arc<ScriptedSource> {
    Arc::new(ScriptedSource::new("tools", [ScriptedTool::echo("unsafe")]))
}

/// Runs the turn in a process that dies at `fuse`, then in one that takes it up; the effects and how it ended.
async fn world(fuse: Fuse, approve: ApproveMode) -> Option<(usize, TurnState, Vec<String>)> {
    let disk = MemoryStore::default();
    let (provider, source) = (script(), source());
    let setup = || Setup { approve, rules: vec![], ..Setup::default() };
    let first = engine(disk.doomed_process(fuse), provider.clone(), source.clone(), setup());
    first.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
    let sent = first.send(&id(), NewMessage::text("go")).await;
    let turn = match sent {
        Ok(sent) => sent.turn_id,
        Err(_) if fuse == Fuse::Before(1) => return None,
        Err(_) => turnwright_core::TurnId(turnwright_core::Seq::FIRST),
    };
    // What it knows and cannot store it holds until its end.
    let _died = timeout(Duration::from_mins(5), first.wait(&id(), turn)).await;
    first.shutdown().await;
    let second = engine(disk.another_process(), provider, source.clone(), setup());
    second.resume_open_turns().await.unwrap();
    let mut ended = second.wait(&id(), turn).await.unwrap();
    while ended == TurnState::Parked {
        for waiting in second.waiting(&id()).await.unwrap() {
            let verdict = match waiting.reason {
                turnwright_core::QuestionReason::UnknownOutcome => Verdict::Happened,
                _ => Verdict::Allow,
            };
            second.decide(&id(), waiting.call, Choice { verdict, arguments: None, reason: None }).await.unwrap();
        }
        ended = second.wait(&id(), turn).await.unwrap();
    }
    let journal = second.journal(&id()).await.unwrap();
    let results = results(&journal);
    second.shutdown().await;
    Some((source.effects().len(), ended, results))
}

#[tokio::test(start_paused = true)]
async fn wherever_a_process_dies_the_next_one_ends_the_turn_and_no_effect_happens_twice() {
    let mut worlds = 0;
    for approve in [ApproveMode::All, ApproveMode::Ask] {
        for fuse in (1..=8).flat_map(|append| [Fuse::Before(append), Fuse::After(append)]) {
            let Some((effects, ended, results)) = world(fuse, approve).await else { continue };
            assert_eq!(ended, completed(), "{fuse:?} {approve:?}");
            assert_eq!(results.len(), 2, "{fuse:?} {approve:?}: {results:?}");
            assert!(effects <= 2, "{fuse:?} {approve:?}: {effects} effects");
            worlds += 1;
        }
    }
    println!("{worlds} worlds");
    assert!(worlds >= 28);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_a_chat_keeps_is_not_taken_up_by_servers() {
    let disk = MemoryStore::default();
    let (provider, source) = (script(), source());
    let first = engine(disk.doomed_process(Fuse::After(2)), provider.clone(), source.clone(), Setup::default());
    first.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
    let sent = first.send(&id(), NewMessage { kept_by: KeptBy::Chat, ..NewMessage::text("go") }).await.unwrap();
    let _died = timeout(Duration::from_mins(5), first.wait(&id(), sent.turn_id)).await;
    let second = engine(disk.another_process(), provider, source, Setup::default());
    assert_eq!(second.resume_open_turns().await.unwrap(), 0);
    assert_eq!(second.resume(&id()).await.unwrap(), Some(sent.turn_id));
    assert_eq!(second.wait(&id(), sent.turn_id).await.unwrap(), completed());
}

#[tokio::test(start_paused = true)]
async fn a_server_goes_on_with_a_turn_that_nobody_drives_once_somebody_waits_for_it() {
    for (is_server, kept_by) in [(true, KeptBy::Servers), (true, KeptBy::Chat), (false, KeptBy::Servers)] {
        let disk = MemoryStore::default();
        let (provider, source) = (script(), source());
        let first = engine(disk.doomed_process(Fuse::After(2)), provider.clone(), source.clone(), Setup::default());
        first.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
        let sent = first.send(&id(), NewMessage { kept_by, ..NewMessage::text("go") }).await.unwrap();
        let _died = timeout(Duration::from_mins(5), first.wait(&id(), sent.turn_id)).await;
        first.shutdown().await;
        let second = engine(disk.another_process(), provider, source, Setup::default());
        if is_server {
            second.keep_resuming();
        }
        let waited = second.wait(&id(), sent.turn_id).await;
        let may_go_on = is_server && kept_by == KeptBy::Servers;
        assert_eq!(waited.ok(), may_go_on.then(completed), "{kept_by:?}");
        second.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_decision_in_one_process_reaches_the_turn_of_another() {
    let disk = MemoryStore::default();
    let (provider, source) = (script(), source());
    let setup = || Setup { approve: ApproveMode::Ask, ..Setup::default() };
    let first = engine(disk.another_process(), provider.clone(), source.clone(), setup());
    let second = engine(disk.another_process(), provider, source.clone(), setup());
    first.keep_resuming();
    first.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
    let sent = first.send(&id(), NewMessage::text("go")).await.unwrap();
    assert_eq!(first.wait(&id(), sent.turn_id).await.unwrap(), TurnState::Parked);
    for waiting in second.waiting(&id()).await.unwrap() {
        let allow = Choice { verdict: Verdict::Allow, arguments: None, reason: None };
        second.decide(&id(), waiting.call, allow).await.unwrap();
    }
    assert_eq!(second.wait(&id(), sent.turn_id).await.unwrap(), completed());
    assert_eq!(source.effects().len(), 2);
    let journal = first.journal(&id()).await.unwrap();
    let drivers: BTreeSet<&str> = journal
        .entries()
        .iter()
        .filter_map(|stored| match &*stored.entry {
            Entry::Control(Control::Claimed(claim)) => Some(claim.driver.0.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(drivers.len(), 1, "only the server drives: {drivers:?}");
}
