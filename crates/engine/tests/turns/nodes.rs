//! Several nodes that share turns: who drives, who is told, and what becomes of hints that are lost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::sync::Semaphore;
use turnwright_core::{ApproveMode, Control, Entry, Finish, FinishReason, Seq, StoredEntry, StreamDelta, Verdict, text_of};
use turnwright_engine::nodes::Condition;
use turnwright_engine::{
    Choice, Engine, Event, NewMessage, Nodes, SettingsOverlay, Store, ToolOutput, TurnState, Watch, WatchFrom,
};
use turnwright_testkit::{
    Answer, Exchange, Handing, MemoryStore, ScriptedProvider, ScriptedSource, ScriptedTool, TestNode, call, text,
};

use crate::support::{Setup, completed, engine, id};

struct Here {
    engine: Engine,
    store: Arc<MemoryStore>,
    node: Arc<TestNode>,
}

/// A node over the same data as the others.
fn node(exchange: &Exchange, disk: &MemoryStore, provider: &Arc<ScriptedProvider>, approve: ApproveMode) -> Here {
    let store = Arc::new(disk.another_process());
    let source = Arc::new(ScriptedSource::new("tools", [ScriptedTool::echo("echo")]));
    let engine = engine(store.clone(), provider.clone(), source, Setup { approve, ..Setup::default() });
    let node = exchange.node(store.driver());
    engine.join(node.clone());
    engine.keep_resuming();
    Here { engine, store, node }
}

fn two(provider: &Arc<ScriptedProvider>, approve: ApproveMode) -> (Exchange, Here, Here) {
    let (exchange, disk) = (Exchange::default(), MemoryStore::default());
    let (one, other) = (node(&exchange, &disk, provider, approve), node(&exchange, &disk, provider, approve));
    (exchange, one, other)
}

fn begins(text: &str) -> NewMessage {
    NewMessage { create: true, ..NewMessage::text(text) }
}

/// What somebody saw who reads as the API's documentation says: blocks by message, entries by place.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    entries: Vec<(Seq, Arc<Entry>)>,
    blocks: BTreeMap<u32, String>,
    messages: Vec<Vec<String>>,
    progress: usize,
}

impl Seen {
    fn take(&mut self, event: &Event) {
        match event {
            Event::Entry { seq, entry, .. } => {
                let before = self.entries.last().map_or(0, |(seq, _)| seq.get());
                assert_eq!(seq.get(), before + 1, "an entry was missed or told twice");
                if let Entry::Assistant(message) = &**entry {
                    let whole: Vec<String> = std::mem::take(&mut self.blocks).into_values().collect();
                    assert_eq!(whole.concat(), message.text(), "what was told is not what is stored");
                    self.messages.push(whole);
                }
                self.entries.push((*seq, entry.clone()));
            }
            Event::StepStarted { .. } | Event::StepReset => self.blocks.clear(),
            Event::TextDelta { block, offset, text } => {
                let told = self.blocks.entry(*block).or_default();
                assert_eq!(usize::try_from(*offset).unwrap(), told.len(), "text was missed or told twice: {text:?}");
                told.push_str(text);
            }
            Event::ToolProgress { .. } => self.progress += 1,
            _ => {}
        }
    }

    async fn until(mut self, watch: &mut Watch, is_last: impl Fn(&Event) -> bool) -> Self {
        loop {
            let frame = watch.next().await.unwrap();
            for event in frame.events.iter() {
                self.take(event);
            }
            if frame.events.iter().any(&is_last) {
                return self;
            }
        }
    }
}

fn is_end(event: &Event) -> bool {
    matches!(event, Event::TurnFinished { .. })
}

fn words(count: usize) -> Answer {
    let batches = (0..count).map(|number| vec![StreamDelta::Text(format!("word {number} "))]);
    // The last batch carries the end.
    Answer::of(batches.chain([vec![StreamDelta::Text("end".to_owned()), finish()]]))
}

fn finish() -> StreamDelta {
    StreamDelta::Finished(Finish { reason: FinishReason::Stop, raw: None })
}

/// Lets everything that is ready run.
async fn rest() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

/// Waits until nothing is offered any more.
async fn nothing_is_offered(exchange: &Exchange) {
    let mut tries = 0;
    while exchange.offers() != (0, 0) {
        tries += 1;
        assert!(tries < 1_000, "{:?}", exchange.offers());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn asked(provider: &ScriptedProvider, times: usize) {
    while provider.asked().len() < times {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_watches_at_any_node_is_told_the_same_and_all_of_it() {
    let gate = Arc::new(Semaphore::new(0));
    let provider = ScriptedProvider::new([words(20).gated(&gate)]);
    let (_exchange, one, other) = two(&provider, ApproveMode::All);
    one.engine.send(&id(), begins("go")).await.unwrap();
    let mut watches = [
        one.engine.watch(&id(), WatchFrom::After(None)).await.unwrap(),
        other.engine.watch(&id(), WatchFrom::After(None)).await.unwrap(),
    ];
    asked(&provider, 1).await;
    for _ in 0..22 {
        gate.add_permits(1);
        rest().await;
    }
    let [first, second] = watches.each_mut();
    let (first, second) = tokio::join!(Seen::default().until(first, is_end), Seen::default().until(second, is_end));
    assert_eq!(first, second);
    assert!(first.messages[0][0].starts_with("word 0 word 1 "), "{first:?}");
}

#[tokio::test(start_paused = true)]
async fn who_comes_in_the_middle_is_told_from_the_beginning_at_every_node() {
    let gate = Arc::new(Semaphore::new(0));
    let provider = ScriptedProvider::new([words(20).gated(&gate)]);
    let (exchange, one, other) = two(&provider, ApproveMode::All);
    one.engine.send(&id(), begins("go")).await.unwrap();
    asked(&provider, 1).await;
    gate.add_permits(5);
    rest().await;
    let after = one.engine.journal(&id()).await.unwrap().last_seq();
    let mut watches = [
        one.engine.watch(&id(), WatchFrom::After(None)).await.unwrap(),
        other.engine.watch(&id(), WatchFrom::After(None)).await.unwrap(),
    ];
    rest().await;
    // Frames that are lost are asked for again.
    exchange.lose_frames(2);
    gate.add_permits(2);
    rest().await;
    gate.add_permits(6);
    rest().await;
    let mut late = [
        one.engine.watch(&id(), WatchFrom::After(after)).await.unwrap(),
        other.engine.watch(&id(), WatchFrom::After(after)).await.unwrap(),
    ];
    gate.add_permits(100);
    for watch in &mut watches {
        Seen::default().until(watch, is_end).await;
    }
    for watch in &mut late {
        let before = Seen { entries: (1..=after.unwrap().get()).map(placeholder).collect(), ..Seen::default() };
        before.until(watch, is_end).await;
    }
}

fn placeholder(number: u64) -> (Seq, Arc<Entry>) {
    (Seq::new(number).unwrap(), Arc::new(Entry::Control(Control::Suspended)))
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_stopped_and_its_calls_decided_through_any_node() {
    let gate = Arc::new(Semaphore::new(0));
    let asks = Answer::whole([call(0, "tools__echo", "{\"a\":1}")]);
    let provider = ScriptedProvider::new([asks, words(20).gated(&gate)]);
    let (_exchange, one, other) = two(&provider, ApproveMode::Ask);
    let sent = one.engine.send(&id(), begins("go")).await.unwrap();
    let mut watch = one.engine.watch(&id(), WatchFrom::After(None)).await.unwrap();
    assert_eq!(one.engine.wait(&id(), sent.turn_id).await.unwrap(), TurnState::Parked);
    let waiting = other.engine.waiting(&id()).await.unwrap();
    let allow = Choice { verdict: Verdict::Allow, arguments: None, reason: None };
    other.engine.decide(&id(), waiting[0].call, allow).await.unwrap();
    asked(&provider, 2).await;
    gate.add_permits(3);
    rest().await;
    // Both can stop it; one of them does not drive it.
    other.engine.cancel(&id(), None).await.unwrap();
    let seen = Seen::default().until(&mut watch, is_end).await;
    assert!(matches!(&*seen.entries.last().unwrap().1, Entry::Control(Control::Ended { .. })), "{seen:?}");
    assert_eq!(provider.asked().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_dies_in_the_middle_loses_no_turn() {
    let gate = Arc::new(Semaphore::new(0));
    let provider = ScriptedProvider::new([words(20).gated(&gate), Answer::whole([text("Again.")])]);
    let (_exchange, one, other) = two(&provider, ApproveMode::All);
    let sent = one.engine.send(&id(), begins("go")).await.unwrap();
    asked(&provider, 1).await;
    gate.add_permits(5);
    rest().await;
    let drives = |here: &Here| here.engine.workload().driven_turns == 1;
    let (dead, lives) = if drives(&one) { (one, other) } else { (other, one) };
    assert!(drives(&dead) && !drives(&lives));
    let mut watch = lives.engine.watch(&id(), WatchFrom::After(None)).await.unwrap();
    dead.store.die();
    dead.node.cut();
    let seen = Seen::default().until(&mut watch, is_end).await;
    assert_eq!(seen.messages.last().unwrap(), &["Again."]);
    assert_eq!(lives.engine.wait(&id(), sent.turn_id).await.unwrap(), completed());
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_was_never_offered_goes_on_once_its_node_is_found_dead_and_waits_for_no_sweep() {
    let gate = Arc::new(Semaphore::new(0));
    let provider = ScriptedProvider::new([words(20).gated(&gate), Answer::whole([text("Again.")])]);
    let (_exchange, one, other) = two(&provider, ApproveMode::All);
    one.node.cut();
    let sent = one.engine.send(&id(), begins("go")).await.unwrap();
    asked(&provider, 1).await;
    // The clock stands still for as long as something blocks: no sweep becomes due.
    let (goes_on, stands_still) = std::sync::mpsc::channel::<()>();
    let clock = tokio::task::spawn_blocking(move || stands_still.recv().is_ok());
    one.store.die();
    let mut tries = 0;
    while provider.asked().len() < 2 {
        tries += 1;
        assert!(tries < 1_000, "nobody took it up");
        rest().await;
    }
    goes_on.send(()).unwrap();
    assert!(clock.await.unwrap());
    assert_eq!(other.engine.wait(&id(), sent.turn_id).await.unwrap(), completed());
}

#[tokio::test(start_paused = true)]
async fn an_offer_that_is_lost_is_found_by_the_sweep() {
    let provider = ScriptedProvider::new([Answer::whole([text("Hi.")])]);
    let (exchange, one, _other) = two(&provider, ApproveMode::All);
    exchange.lose_offers(1);
    let sent = one.engine.send(&id(), begins("go")).await.unwrap();
    assert_eq!(one.engine.wait(&id(), sent.turn_id).await.unwrap(), completed());
    nothing_is_offered(&exchange).await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_in_which_something_is_stored_all_the_time_is_not_looked_at_by_other_nodes() {
    let gate = Arc::new(Semaphore::new(0));
    let steps = (0..8).map(|at| Answer::whole([call(0, "tools__echo", &json!({"a": at}).to_string())]).gated(&gate));
    let provider = ScriptedProvider::new(steps.chain([Answer::whole([text("Done.")])]));
    let (_exchange, one, other) = two(&provider, ApproveMode::All);
    let sent = one.engine.send(&id(), begins("go")).await.unwrap();
    asked(&provider, 1).await;
    let (driving, idle) = if one.engine.workload().driven_turns == 1 { (one, other) } else { (other, one) };
    let before = idle.store.records_read();
    for _ in 0..8 {
        tokio::time::sleep(Duration::from_secs(4)).await;
        gate.add_permits(2);
    }
    assert_eq!(driving.engine.wait(&id(), sent.turn_id).await.unwrap(), completed());
    assert_eq!(idle.store.records_read(), before);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_drains_hands_its_turn_over_at_the_end_of_its_step() {
    let gate = Arc::new(Semaphore::new(0));
    let asks = Answer::whole([call(0, "tools__echo", "{\"a\":1}")]).gated(&gate);
    let provider = ScriptedProvider::new([asks, Answer::whole([text("Done.")])]);
    let (exchange, one, other) = two(&provider, ApproveMode::All);
    let sent = one.engine.send(&id(), begins("go")).await.unwrap();
    asked(&provider, 1).await;
    let (drains, stays) = if one.engine.workload().driven_turns == 1 { (one, other) } else { (other, one) };
    let (has_rested, ()) = tokio::join!(drains.engine.drain(Duration::from_secs(10)), async {
        while !drains.engine.is_draining() {
            tokio::task::yield_now().await;
        }
        gate.add_permits(100);
    });
    assert!(has_rested);
    // The process that drained still lives: nobody waits for its end.
    assert_eq!(stays.engine.wait(&id(), sent.turn_id).await.unwrap(), completed());
    assert!(drains.store.lives());
    assert_eq!(provider.asked().len(), 2);
    nothing_is_offered(&exchange).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_cut_off_goes_on_and_comes_back() {
    let gate = Arc::new(Semaphore::new(0));
    let provider =
        ScriptedProvider::new([words(4).gated(&gate), Answer::whole([text("Alone.")]), Answer::whole([text("Together.")])]);
    let (exchange, one, other) = two(&provider, ApproveMode::All);
    let first = one.engine.send(&id(), begins("go")).await.unwrap();
    asked(&provider, 1).await;
    one.node.cut();
    other.node.cut();
    assert!(matches!(one.engine.nodes(), Condition::Unreachable { .. }));
    gate.add_permits(100);
    assert_eq!(other.engine.wait(&id(), first.turn_id).await.unwrap(), completed());
    let second = one.engine.send(&id(), NewMessage::text("alone")).await.unwrap();
    assert_eq!(one.engine.wait(&id(), second.turn_id).await.unwrap(), completed());
    let journal = one.engine.journal(&id()).await.unwrap();
    let mut claims = journal.entries().iter().filter_map(|stored| match &*stored.entry {
        Entry::Control(Control::Claimed(claim)) => Some(claim.driver.clone()),
        _ => None,
    });
    assert_eq!(claims.next_back().as_ref(), Some(one.store.driver()), "it is driven where it was asked for");
    one.node.mend();
    other.node.mend();
    assert_eq!(one.engine.nodes(), Condition::Connected { nodes: Some(2), troubles: Vec::new() });
    let third = other.engine.send(&id(), NewMessage::text("together")).await.unwrap();
    assert_eq!(one.engine.wait(&id(), third.turn_id).await.unwrap(), completed());
    nothing_is_offered(&exchange).await;
    assert_eq!(provider.asked().len(), 3, "nothing was asked twice");
}

#[tokio::test(start_paused = true)]
async fn turns_of_one_conversation_follow_one_another_whoever_sends_them() {
    let provider = ScriptedProvider::by(|_| Answer::whole([text("Hi.")]));
    let (exchange, one, other) = two(&provider, ApproveMode::All);
    for number in 0..20 {
        let here = if number % 2 == 0 { &one } else { &other };
        let there = if number % 3 == 0 { &one } else { &other };
        let sent = here.engine.send(&id(), begins(&format!("{number}"))).await.unwrap();
        assert_eq!(there.engine.wait(&id(), sent.turn_id).await.unwrap(), completed());
    }
    assert_eq!(provider.asked().len(), 20);
    let retried = one.engine.retry(&id(), SettingsOverlay::default()).await;
    assert!(retried.is_err(), "the last one ended well");
    nothing_is_offered(&exchange).await;
    one.engine.shutdown().await;
    other.engine.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_turn_nobody_watches_elsewhere_tells_nothing() {
    let provider = ScriptedProvider::new([words(10)]);
    let (exchange, one, _other) = two(&provider, ApproveMode::All);
    let sent = one.engine.send(&id(), begins("go")).await.unwrap();
    assert_eq!(one.engine.wait(&id(), sent.turn_id).await.unwrap(), completed());
    assert_eq!(exchange.frames(), 0);
    assert!(one.node.is_shared());
}

/// A node whose source counts its calls, and keeps the count.
fn counting(exchange: &Exchange, disk: &MemoryStore, provider: &Arc<ScriptedProvider>) -> Here {
    let store = Arc::new(disk.another_process());
    let count = Arc::new(AtomicU64::new(0));
    let add = ScriptedTool::new("add", move |_, _| {
        let sum = count.fetch_add(1, Ordering::Relaxed) + 1;
        async move { Ok(ToolOutput { structured_content: Some(json!(sum)), ..ToolOutput::default() }) }
    });
    let source = Arc::new(ScriptedSource::new("counter", [add]).keeping_state());
    let engine = engine(store.clone(), provider.clone(), source, Setup { approve: ApproveMode::All, ..Setup::default() });
    let node = exchange.node(store.driver());
    engine.join(node.clone());
    engine.keep_resuming();
    Here { engine, store, node }
}

/// A model that calls the counter once in each turn.
fn calls_once() -> Arc<ScriptedProvider> {
    ScriptedProvider::by(|asked| {
        let has_called = asked.rsplit("user: ").next().is_some_and(|turn| turn.contains("result: "));
        if has_called { Answer::whole([text("Done.")]) } else { Answer::whole([call(0, "counter__add", "{}")]) }
    })
}

/// What the model is told that its calls came to, in their order.
async fn results(here: &Here) -> Vec<String> {
    let journal = here.engine.journal(&id()).await.unwrap();
    let result = |stored: &StoredEntry| match &*stored.entry {
        Entry::Result(result) if result.content.is_empty() => Some(result.structured_content.as_ref().unwrap().to_string()),
        Entry::Result(result) => Some(text_of(&result.content)),
        _ => None,
    };
    journal.entries().iter().filter_map(result).collect()
}

async fn turn_at(here: &Here, there: &Here) {
    let sent = here.engine.send(&id(), begins("go")).await.unwrap();
    assert_eq!(there.engine.wait(&id(), sent.turn_id).await.unwrap(), completed());
}

#[tokio::test(start_paused = true)]
async fn turns_of_a_conversation_go_where_a_source_keeps_what_its_calls_left() {
    let (exchange, disk, provider) = (Exchange::default(), MemoryStore::default(), calls_once());
    let nodes = [(); 3].map(|()| counting(&exchange, &disk, &provider));
    for turn in 0..9 {
        turn_at(&nodes[turn % 3], &nodes[(turn / 2) % 3]).await;
    }
    assert_eq!(results(&nodes[0]).await, (1..=9).map(|count| count.to_string()).collect::<Vec<_>>());
    nothing_is_offered(&exchange).await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_handed_over_in_vain_or_twice_is_driven_once() {
    for handing in [Handing::IsLost, Handing::IsUnheard, Handing::IsDoubled] {
        let (exchange, disk, provider) = (Exchange::default(), MemoryStore::default(), calls_once());
        let nodes = [(); 3].map(|()| counting(&exchange, &disk, &provider));
        turn_at(&nodes[0], &nodes[0]).await;
        exchange.set_handing(handing);
        for turn in 1..6 {
            turn_at(&nodes[turn % 3], &nodes[0]).await;
        }
        let results = results(&nodes[0]).await;
        assert_eq!(results.len(), 6, "{handing:?}: {results:?}");
        assert_eq!(provider.asked().len(), 12, "{handing:?}: nothing was asked twice");
        nothing_is_offered(&exchange).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_lost_with_a_node_is_said_once_in_the_result() {
    let (exchange, disk, provider) = (Exchange::default(), MemoryStore::default(), calls_once());
    let nodes = [(); 2].map(|()| counting(&exchange, &disk, &provider));
    turn_at(&nodes[0], &nodes[0]).await;
    let journal = nodes[0].engine.journal(&id()).await.unwrap();
    let home = journal.turn().unwrap().claim().unwrap().driver.clone();
    let (dead, lives) = if home == *nodes[0].store.driver() { (0, 1) } else { (1, 0) };
    nodes[dead].store.die();
    nodes[dead].node.cut();
    for _ in 0..2 {
        turn_at(&nodes[lives], &nodes[lives]).await;
    }
    let lost = "Note: the server process in which `counter` ran for this conversation before has ended. `counter` runs anew: what it held in memory for this conversation is lost.\n1";
    assert_eq!(results(&nodes[lives]).await, ["1", lost, "2"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_ends_is_handed_nothing_and_the_result_says_that_what_it_has_is_elsewhere() {
    let (exchange, disk, provider) = (Exchange::default(), MemoryStore::default(), calls_once());
    let nodes = [(); 2].map(|()| counting(&exchange, &disk, &provider));
    turn_at(&nodes[0], &nodes[0]).await;
    let journal = nodes[0].engine.journal(&id()).await.unwrap();
    let home = journal.turn().unwrap().claim().unwrap().driver.clone();
    let (ends, stays) = if home == *nodes[0].store.driver() { (0, 1) } else { (1, 0) };
    assert!(nodes[ends].engine.drain(Duration::from_secs(10)).await);
    turn_at(&nodes[stays], &nodes[stays]).await;
    let elsewhere = "Note: `counter` ran for this conversation in another server process before. What it held in memory for this conversation is there and not here.\n1";
    assert_eq!(results(&nodes[stays]).await, ["1", elsewhere]);
    assert!(nodes[ends].store.lives());
}
