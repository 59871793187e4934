//! Several processes on the same data.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;
use turnwright_core::policy::{Action, RuleText};
use turnwright_core::{
    ApproveMode, Declared, Entry, ProviderFailure, ProviderFailureKind, QuestionReason, StoredEntry, ToolErrorKind, TurnId,
    Verdict,
};
use turnwright_engine::{
    Choice, ConversationChange, Engine, EngineError, Event, KeptBy, NewConversation, NewMessage, SentState, SettingsOverlay,
    Store, StoreError, ToolError, ToolOutput, TurnState, WatchFrom,
};
use turnwright_testkit::{Answer, Disk, Fuse, MemoryStore, ScriptedProvider, ScriptedSource, ScriptedTool, call, text};

use crate::support::{Setup, completed, engine, id};

fn process(store: impl Into<Arc<MemoryStore>>, provider: &Arc<ScriptedProvider>, approve: ApproveMode) -> Engine {
    let source = Arc::new(ScriptedSource::new("tools", [ScriptedTool::echo("echo")]));
    engine(store, provider.clone(), source, Setup { approve, ..Setup::default() })
}

/// Two processes, which ask before nothing.
fn two(disk: &MemoryStore, provider: &Arc<ScriptedProvider>) -> [Engine; 2] {
    [disk.another_process(), disk.another_process()].map(|store| process(store, provider, ApproveMode::All))
}

fn begins(text: &str) -> NewMessage {
    NewMessage { create: true, ..NewMessage::text(text) }
}

#[tokio::test(start_paused = true)]
async fn who_watches_an_idle_conversation_is_told_what_another_process_does_in_it() {
    let disk = MemoryStore::default();
    let provider = ScriptedProvider::by(|_| Answer::whole([text("Hi.")]));
    let [here, elsewhere] = two(&disk, &provider);
    let first = here.send(&id(), begins("one")).await.unwrap();
    here.wait(&id(), first.turn_id).await.unwrap();
    let mut watch = here.watch(&id(), WatchFrom::Now).await.unwrap();
    let second = elsewhere.send(&id(), NewMessage::text("two")).await.unwrap();
    let is_end = |event: &Event| matches!(event, Event::TurnFinished { turn_id, .. } if *turn_id == second.turn_id);
    while !watch.next().await.unwrap().events.iter().any(is_end) {}
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_the_turn_of_another_process_hears_of_its_end_and_goes_on_after_its_death() {
    let (id, disk) = (id(), MemoryStore::default());
    let (gate, never) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let provider = ScriptedProvider::new([
        Answer::whole([text("One.")]).gated(&gate),
        Answer::whole([text("Two.")]).gated(&never),
        Answer::whole([text("Two.")]),
    ]);
    let store = Arc::new(disk.another_process());
    let driving = process(store.clone(), &provider, ApproveMode::All);
    let waiting = process(disk, &provider, ApproveMode::All);
    let sent = driving.send(&id, begins("go")).await.unwrap();
    let (ended, ()) = tokio::join!(waiting.wait(&id, sent.turn_id), async { gate.add_permits(2) });
    assert_eq!(ended.unwrap(), completed());

    let sent = driving.send(&id, NewMessage::text("more")).await.unwrap();
    let dies = async {
        while provider.asked().len() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        store.die();
    };
    let (ended, ()) = tokio::join!(waiting.wait(&id, sent.turn_id), dies);
    assert_eq!(ended.unwrap(), completed());
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_held_where_another_process_parked_waits_for_nothing() {
    let disk = MemoryStore::default();
    let provider = ScriptedProvider::new([Answer::whole([call(0, "tools__echo", "{}")])]);
    let parking = process(disk.another_process(), &provider, ApproveMode::Ask);
    let sending = process(disk, &provider, ApproveMode::Ask);
    let sent = parking.send(&id(), begins("go")).await.unwrap();
    assert_eq!(parking.wait(&id(), sent.turn_id).await.unwrap(), TurnState::Parked);
    let held = sending.send(&id(), NewMessage::text("hello?")).await.unwrap();
    assert_eq!((held.state, held.turn_id), (SentState::Held, sent.turn_id));
    assert_eq!(sending.wait(&id(), sent.turn_id).await.unwrap(), TurnState::Parked);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_another_process_deleted_is_not_there_or_begins_anew() {
    let disk = MemoryStore::default();
    let provider = ScriptedProvider::by(|_| Answer::whole([text("Hi.")]));
    let [here, elsewhere] = two(&disk, &provider);
    for say in [NewMessage::text("two"), begins("two")] {
        let first = here.send(&id(), begins("one")).await.unwrap();
        here.wait(&id(), first.turn_id).await.unwrap();
        elsewhere.delete(&id()).await.unwrap();
        let expected = if say.create { Ok(first) } else { Err(EngineError::NotFound { what: "conversation `c1`".to_owned() }) };
        assert_eq!(here.send(&id(), say).await, expected);
    }
}

/// What takes the open turn of the only conversation up again, as it is stored.
async fn keeper(store: &MemoryStore) -> Option<(TurnId, KeptBy)> {
    store.open_turns().await.unwrap().first().map(|open| (open.turn, open.kept_by))
}

#[tokio::test(start_paused = true)]
async fn who_acts_on_a_turn_does_not_change_who_keeps_it() {
    let disk = MemoryStore::default();
    let failure = ProviderFailure::new(ProviderFailureKind::Overloaded, "try later");
    let asks = Answer::whole([call(0, "tools__echo", "{}"), call(1, "tools__echo", "{}")]);
    let provider = ScriptedProvider::new([Answer::whole([text("One.")]), Answer::of([]).failing(failure), asks]);
    let server = process(disk.another_process(), &provider, ApproveMode::Ask);
    server.keep_resuming();
    let other = process(disk.another_process(), &provider, ApproveMode::Ask);
    let first = other.send(&id(), NewMessage { kept_by: KeptBy::Chat, ..begins("one") }).await.unwrap();
    other.wait(&id(), first.turn_id).await.unwrap();
    let second = server.send(&id(), NewMessage::text("two")).await.unwrap();
    server.wait(&id(), second.turn_id).await.unwrap();
    assert_eq!(keeper(&disk).await, None);

    // What a server tries again it keeps, though the row that said so went with the turn's end.
    server.retry(&id(), SettingsOverlay::default()).await.unwrap();
    assert_eq!(server.wait(&id(), second.turn_id).await.unwrap(), TurnState::Parked);
    assert_eq!(keeper(&disk).await, Some((second.turn_id, KeptBy::Servers)));
    // Who began another turn of the conversation as a chat leaves this one to the servers.
    server.shutdown().await;
    let waiting = other.waiting(&id()).await.unwrap();
    let allow = Choice { verdict: Verdict::Allow, arguments: None, reason: None };
    other.decide(&id(), waiting[0].call, allow).await.unwrap();
    assert_eq!(other.wait(&id(), second.turn_id).await.unwrap(), TurnState::Parked);
    assert_eq!(keeper(&disk).await, Some((second.turn_id, KeptBy::Servers)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_requests_with_one_key_that_come_at_once_one_is_stored_and_all_get_its_answer() {
    for round in 0..50 {
        let disk = MemoryStore::default();
        let provider = ScriptedProvider::by(|_| Answer::whole([text("Once.")]));
        let one = process(disk.another_process(), &provider, ApproveMode::All);
        let other = process(disk, &provider, ApproveMode::All);
        let requests = (0..8).map(|number| {
            let engine = if number % 2 == 0 { one.clone() } else { other.clone() };
            let message = NewMessage { idempotency: Some(("k".to_owned(), "f".to_owned())), ..begins("go") };
            async move { engine.send(&id(), message).await.unwrap() }
        });
        let sent = futures_util::future::join_all(requests).await;
        assert!(sent.iter().all(|answer| *answer == sent[0]), "round {round}: {sent:?}");
        one.wait(&id(), sent[0].turn_id).await.unwrap();
        assert_eq!(provider.asked(), ["user: go"], "round {round}");
        one.shutdown().await;
        other.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_driver_whose_lease_ran_out_does_no_effect_and_the_next_claim_goes_on() {
    let (mut let_go, mut had_no_effect) = (0, 0);
    for at in 1..=8 {
        let disk = MemoryStore::default();
        let provider = ScriptedProvider::new([
            Answer::whole([call(0, "tools__echo", "{}")]),
            Answer::whole([text("Done.")]),
            Answer::whole([text("Done again.")]),
        ]);
        let source = Arc::new(ScriptedSource::new("tools", [ScriptedTool::echo("echo")]));
        let store = disk.doomed_process(Fuse::Lease(at));
        let engine = engine(store, provider, source.clone(), Setup::default());
        let sent = engine.send(&id(), begins("go")).await.unwrap();
        match engine.wait(&id(), sent.turn_id).await {
            Ok(ended) => assert_eq!(ended, completed()),
            Err(EngineError::NoOpenTurn { .. }) => {
                let_go += 1;
                had_no_effect += u32::from(source.effects().is_empty());
                assert_eq!(engine.resume(&id()).await.unwrap(), Some(sent.turn_id), "the same process claims anew");
                assert_eq!(engine.wait(&id(), sent.turn_id).await.unwrap(), completed());
            }
            Err(error) => panic!("{error}"),
        }
        assert!(source.effects().len() <= 1, "{at}: {:?}", source.effects());
    }
    // With the append that starts the call, and with that of its result. The first comes before the claim is driven under, and
    // the last before nothing.
    assert_eq!((let_go, had_no_effect), (2, 1));
}

/// A process whose tool `long` goes on until it is told to end, takes a while for that and then says so; `quick` waits for the
/// gate.
fn long(store: Arc<MemoryStore>, gate: &Arc<Semaphore>) -> (Engine, Arc<ScriptedSource>, Arc<AtomicBool>) {
    let has_ended = Arc::new(AtomicBool::new(false));
    let (gate, says) = (gate.clone(), has_ended.clone());
    let quick = ScriptedTool::new("quick", move |_, _| {
        let gate = gate.clone();
        async move {
            let _open = gate.acquire().await;
            Ok(ToolOutput::text("Quick."))
        }
    });
    let long = ScriptedTool::new("long", move |_, context| {
        let says = says.clone();
        async move {
            context.cancel.cancelled().await;
            tokio::time::sleep(Duration::from_millis(900)).await;
            says.store(true, Ordering::Relaxed);
            Err(ToolError::new(ToolErrorKind::Interrupted, "It was told to end."))
        }
    });
    let source = Arc::new(ScriptedSource::new("tools", [quick, long]));
    let calls = Answer::whole([call(0, "tools__quick", "{}"), call(1, "tools__long", "{}")]);
    let provider = ScriptedProvider::new([calls, Answer::whole([text("Done.")])]);
    let rule = RuleText { tool: "tools__*".to_owned(), when: BTreeMap::new(), action: Action::Allow };
    let setup = Setup { approve: ApproveMode::Ask, rules: vec![rule], ..Setup::default() };
    (engine(store, provider, source.clone(), setup), source, has_ended)
}

#[tokio::test(start_paused = true)]
async fn what_another_process_chose_for_a_conversation_holds_for_its_next_turn() {
    let disk = MemoryStore::default();
    let calls = || Answer::whole([call(0, "tools__echo", "{}")]);
    let provider = ScriptedProvider::new([calls(), Answer::whole([text("Done.")]), calls()]);
    let here = process(disk.another_process(), &provider, ApproveMode::All);
    let elsewhere = process(disk, &provider, ApproveMode::All);
    let sent = here.send(&id(), begins("go")).await.unwrap();
    assert_eq!(here.wait(&id(), sent.turn_id).await.unwrap(), completed());

    let overlay = SettingsOverlay { approve: Some(ApproveMode::Ask), ..SettingsOverlay::default() };
    let change = ConversationChange { overlay: Some(overlay.clone()), ..ConversationChange::default() };
    let changed = elsewhere.update(&id(), change).await.unwrap();
    assert_eq!((changed.title.as_deref(), changed.overlay), (Some("go"), overlay));

    let sent = here.send(&id(), NewMessage::text("again")).await.unwrap();
    assert_eq!(here.wait(&id(), sent.turn_id).await.unwrap(), TurnState::Parked);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_what_another_process_changed_since_is_refused_where_it_says_what_it_was_made_of() {
    let disk = MemoryStore::default();
    let provider = ScriptedProvider::new([]);
    let [here, elsewhere] = two(&disk, &provider);
    let seen = here.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
    let titled = |title: &str| ConversationChange { title: Some(Some(title.to_owned())), ..ConversationChange::default() };
    let first = elsewhere.update(&id(), ConversationChange { of: Some(seen.clone()), ..titled("first") }).await.unwrap();

    let late = here.update(&id(), ConversationChange { of: Some(seen), ..titled("late") }).await;
    assert_eq!(late.unwrap_err(), EngineError::Store(StoreError::Changed { conversation: id() }));
    assert_eq!(here.conversation(&id()).await.unwrap(), first);
    assert_eq!(here.update(&id(), titled("last")).await.unwrap().title.as_deref(), Some("last"));
}

async fn until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(is_so(), "waited in vain");
}

#[tokio::test(start_paused = true)]
async fn what_runs_is_stopped_as_the_lease_runs_out_also_while_a_result_waits_for_the_store() {
    let (disk, gate) = (MemoryStore::default(), Arc::new(Semaphore::new(0)));
    let store = Arc::new(disk.another_process());
    let (engine, source, has_ended) = long(store.clone(), &gate);
    engine.send(&id(), begins("go")).await.unwrap();
    until(|| source.effects().len() == 2).await;
    store.set_full(Disk::Full);
    gate.add_permits(1);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!has_ended.load(Ordering::Relaxed), "while the lease is held it goes on, whatever the store says");
    store.lose_lease();
    until(|| has_ended.load(Ordering::Relaxed)).await;
    // What is known is not forgotten: nobody else has claimed.
    store.set_full(Disk::HasRoom);
    let is_stored = |stored: &StoredEntry| matches!(&*stored.entry, Entry::Result(_));
    let mut stored = 0;
    while stored == 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        stored = engine.journal(&id()).await.unwrap().entries().iter().filter(|stored| is_stored(stored)).count();
    }
    assert_eq!(stored, 1, "the one that was stopped has none: whoever drives next decides what becomes of it");
}

#[tokio::test(start_paused = true)]
async fn who_waits_at_a_server_whose_lease_runs_out_hears_what_becomes_of_the_turn_once_it_has_another() {
    let (disk, gate) = (MemoryStore::default(), Arc::new(Semaphore::new(0)));
    let store = Arc::new(disk.another_process());
    let (engine, source, _) = long(store.clone(), &gate);
    engine.keep_resuming();
    let sent = engine.send(&id(), begins("go")).await.unwrap();
    until(|| source.effects().len() == 2).await;
    let (id, losing) = (id(), async { store.lose_lease() });
    let (waited, ()) = tokio::join!(engine.wait(&id, sent.turn_id), losing);
    assert_eq!(waited.unwrap(), TurnState::Parked, "what became of the calls is asked");
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_turn_whose_driver_can_store_nothing_hears_of_the_store() {
    let (store, stored) = (Arc::new(MemoryStore::default()), Arc::new(Semaphore::new(0)));
    let calls = Answer::whole([call(0, "tools__echo", "{}")]);
    let provider = ScriptedProvider::new([calls, Answer::whole([text("Done.")])]);
    let engine = process(store.clone(), &provider, ApproveMode::Ask);
    let sent = engine.send(&id(), begins("go")).await.unwrap();
    assert_eq!(engine.wait(&id(), sent.turn_id).await.unwrap(), TurnState::Parked);
    let waiting = engine.waiting(&id()).await.unwrap().remove(0);
    store.acknowledge_through(&stored);
    let full = async {
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        // The decision is stored, and nothing can be after it.
        store.set_full(Disk::Full);
        stored.add_permits(1);
    };
    let allow = Choice { verdict: Verdict::Allow, arguments: None, reason: None };
    let id = id();
    let (decided, ()) = tokio::join!(engine.decide(&id, waiting.call, allow), full);
    decided.unwrap();
    let waited = engine.wait(&id, sent.turn_id).await;
    assert!(matches!(waited, Err(EngineError::Store(StoreError::Unusable { .. }))), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_what_became_of_a_call_before_the_process_that_ran_it_has_stopped_it() {
    let (disk, gate) = (MemoryStore::default(), Arc::new(Semaphore::new(0)));
    let store = Arc::new(disk.another_process().by_leases());
    let (engine, source, has_ended) = long(store.clone(), &gate);
    let (next, _, _) = long(Arc::new(disk.another_process().by_leases()), &gate);
    let sent = engine.send(&id(), begins("go")).await.unwrap();
    until(|| source.effects().len() == 2).await;
    store.lose_lease();
    // It is claimed at once, and waits.
    assert_eq!(next.resume(&id()).await.unwrap(), Some(sent.turn_id));
    assert_eq!(next.wait(&id(), sent.turn_id).await.unwrap(), TurnState::Parked);
    assert!(has_ended.load(Ordering::Relaxed), "it was asked about while it still ran");
    let waiting = next.waiting(&id()).await.unwrap();
    let reasons: Vec<QuestionReason> = waiting.iter().map(|call| call.reason).collect();
    assert_eq!(reasons, [QuestionReason::UnknownOutcome; 2]);
}

/// Waits for the gate, as for a server that starts, and then has its effect unless it was told to end.
fn starting(gate: &Arc<Semaphore>, waits: &Arc<AtomicBool>, had_effect: &Arc<AtomicBool>) -> ScriptedTool {
    let (gate, waits, had_effect) = (gate.clone(), waits.clone(), had_effect.clone());
    ScriptedTool::new("starting", move |_, context| {
        let (gate, waits, had_effect) = (gate.clone(), waits.clone(), had_effect.clone());
        async move {
            waits.store(true, Ordering::Relaxed);
            tokio::select! {
                biased;
                () = context.cancel.cancelled() => Err(ToolError::new(ToolErrorKind::Cancelled, "It was told to end.")),
                _open = gate.acquire() => {
                    had_effect.store(true, Ordering::Relaxed);
                    Ok(ToolOutput::text("Done."))
                }
            }
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_lease_ran_out_while_its_server_started_has_no_effect() {
    let (disk, gate) = (MemoryStore::default(), Arc::new(Semaphore::new(0)));
    let store = Arc::new(disk.another_process());
    let (waits, had_effect) = (Arc::default(), Arc::default());
    let source = Arc::new(ScriptedSource::new("tools", [starting(&gate, &waits, &had_effect)]));
    let provider = ScriptedProvider::new([Answer::whole([call(0, "tools__starting", "{}")])]);
    let engine = engine(store.clone(), provider, source, Setup::default());
    let sent = engine.send(&id(), begins("go")).await.unwrap();
    until(|| waits.load(Ordering::Relaxed)).await;
    // It stood still: what it waited for is there before it hears that its lease is over.
    store.lose_lease_unheard();
    gate.add_permits(1);
    assert!(matches!(engine.wait(&id(), sent.turn_id).await, Err(EngineError::NoOpenTurn { .. })), "it lets go of the turn");
    assert!(!had_effect.load(Ordering::Relaxed));
}

#[tokio::test(start_paused = true)]
async fn no_call_begins_after_a_pause_or_after_another_call_where_the_lease_ran_out_meanwhile() {
    let replayable = Declared { replayable: true, ..Declared::default() };
    for (declared, cached_for, calls) in [(replayable, Duration::ZERO, 1), (Declared::default(), Duration::from_mins(1), 2)] {
        let store = Arc::new(MemoryStore::default());
        let loses = store.clone();
        let tool = ScriptedTool::new("tool", move |_, _| {
            let loses = loses.clone();
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                loses.lose_lease_unheard();
                Err(ToolError::new(ToolErrorKind::Unavailable, "not there"))
            }
        });
        let source = Arc::new(ScriptedSource::new("tools", [tool.declared(declared)]).cached_for(cached_for));
        let provider = ScriptedProvider::new([Answer::whole((0..calls).map(|key| call(key, "tools__tool", "{}")))]);
        let engine = engine(store, provider, source.clone(), Setup::default());
        let sent = engine.send(&id(), begins("go")).await.unwrap();
        assert!(
            matches!(engine.wait(&id(), sent.turn_id).await, Err(EngineError::NoOpenTurn { .. })),
            "it lets go of the turn"
        );
        assert_eq!(source.effects().len(), 1);
    }
}

/// What a conversation holds, said after it was deleted and made again by somebody else.
async fn made_again(elsewhere: &Engine, by: &Engine) -> Vec<StoredEntry> {
    elsewhere.delete(&id()).await.unwrap();
    let mut sent = by.send(&id(), begins("theirs")).await.unwrap();
    for more in ["more", "and more"] {
        by.wait(&id(), sent.turn_id).await.unwrap();
        sent = by.send(&id(), NewMessage::text(more)).await.unwrap();
    }
    by.wait(&id(), sent.turn_id).await.unwrap();
    by.journal(&id()).await.unwrap().entries().to_vec()
}

#[tokio::test(start_paused = true)]
async fn a_name_that_somebody_else_has_now_shows_nothing_of_theirs_to_whom_it_belonged() {
    let disk = MemoryStore::default();
    let provider = ScriptedProvider::by(|_| Answer::whole([text("Hi.")]));
    let [here, elsewhere] = two(&disk, &provider);
    let as_user = |engine: &Engine, name: &str| engine.acting_for(name.parse().unwrap());
    let (anna, ben) = (as_user(&here, "anna"), as_user(&here, "ben"));
    let sent = anna.send(&id(), begins("hers")).await.unwrap();
    anna.wait(&id(), sent.turn_id).await.unwrap();
    let mut watch = anna.watch(&id(), WatchFrom::Now).await.unwrap();

    let theirs = made_again(&as_user(&elsewhere, "anna"), &as_user(&elsewhere, "ben")).await;

    let not_found = EngineError::NotFound { what: "conversation `c1`".to_owned() };
    assert_eq!(anna.journal(&id()).await.unwrap_err(), not_found);
    assert_eq!(anna.send(&id(), NewMessage::text("late")).await.unwrap_err(), not_found);
    assert!(watch.next().await.is_none() && watch.is_deleted());
    assert_eq!(ben.journal(&id()).await.unwrap().entries(), theirs);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_another_process_freed_is_anybodys_here_too() {
    for looks_first in [true, false] {
        let disk = MemoryStore::default();
        let provider = ScriptedProvider::by(|_| Answer::whole([text("Hi.")]));
        let [here, elsewhere] = two(&disk, &provider);
        let as_user = |engine: &Engine, name: &str| engine.acting_for(name.parse().unwrap());
        let (anna, ben) = (as_user(&here, "anna"), as_user(&here, "ben"));
        let sent = anna.send(&id(), begins("hers")).await.unwrap();
        anna.wait(&id(), sent.turn_id).await.unwrap();
        as_user(&elsewhere, "anna").delete(&id()).await.unwrap();
        // Made there, and read here before she looks again; or made here.
        let (by, says) = if looks_first { (as_user(&elsewhere, "ben"), "there") } else { (ben.clone(), "here") };
        let sent = by.send(&id(), begins(says)).await.unwrap();

        assert_eq!(ben.wait(&id(), sent.turn_id).await.unwrap(), completed(), "{says}");
        let journal = ben.journal(&id()).await.unwrap();
        assert_eq!(journal.entries(), by.journal(&id()).await.unwrap().entries(), "{says}");
        let not_found = EngineError::NotFound { what: "conversation `c1`".to_owned() };
        assert_eq!(anna.journal(&id()).await.unwrap_err(), not_found, "{says}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_of_a_deleted_conversation_stores_nothing_in_the_next_of_its_name() {
    let disk = MemoryStore::default();
    let gate = Arc::new(Semaphore::new(0));
    let slow = ScriptedProvider::new([Answer::whole([text("Hers.")]).gated(&gate)]);
    let quick = ScriptedProvider::by(|_| Answer::whole([text("Hi.")]));
    let (here, elsewhere) = (process(disk.another_process(), &slow, ApproveMode::All), process(disk, &quick, ApproveMode::All));
    let anna = |engine: &Engine| engine.acting_for("anna".parse().unwrap());
    let ben = elsewhere.acting_for("ben".parse().unwrap());
    anna(&here).send(&id(), begins("hers")).await.unwrap();

    let theirs = made_again(&anna(&elsewhere), &ben).await;
    gate.add_permits(9);
    here.shutdown().await;

    assert_eq!(ben.journal(&id()).await.unwrap().entries(), theirs);
}

#[tokio::test(start_paused = true)]
async fn what_another_process_says_in_a_turn_that_is_driven_here_is_seen_at_once() {
    let disk = MemoryStore::default();
    let (gate, stored) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let calls = Answer::whole([call(0, "tools__echo", "{}")]).gated(&gate);
    let provider = ScriptedProvider::new([calls, Answer::whole([text("Hi.")])]);
    let store = Arc::new(disk.another_process());
    let here = process(store.clone(), &provider, ApproveMode::All);
    let elsewhere = process(disk, &provider, ApproveMode::All);
    let sent = here.send(&id(), begins("one")).await.unwrap();
    // Its driver stands still and looks at nothing by itself.
    store.acknowledge_through(&stored);
    gate.add_permits(9);
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }

    let joined = elsewhere.send(&id(), NewMessage::text("two")).await.unwrap();
    assert_eq!((joined.turn_id, joined.state), (sent.turn_id, SentState::Joined));

    let (known, all) = (here.journal(&id()).await.unwrap(), elsewhere.journal(&id()).await.unwrap());
    assert_eq!(known.entries(), all.entries());
    stored.add_permits(1);
    assert_eq!(here.wait(&id(), sent.turn_id).await.unwrap(), completed());
}
