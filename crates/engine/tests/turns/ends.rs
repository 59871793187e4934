//! What outlives a request, and what ends a driver before its turn does.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tokio::sync::Semaphore;
use turnwright_core::{ConversationId, Declared, TurnStatus};
use turnwright_engine::{
    CallContext, CallLimits, EngineError, Forgets, NewConversation, NewMessage, SourceCall, SourceState, SourceTool, ToolError,
    ToolOutput, ToolSource, TurnState,
};
use turnwright_testkit::{Answer, MemoryStore, ScriptedProvider, ScriptedSource, ScriptedTool, call, text};

use crate::support::{Setup, completed, engine, id, results, world};

/// A tool that says when it began and when it was told to end, and does nothing until then.
fn until_cancelled(name: &str, begun: &Arc<Semaphore>, cancelled: &Arc<Semaphore>) -> ScriptedTool {
    let gates = (begun.clone(), cancelled.clone());
    ScriptedTool::new(name, move |_, context| {
        let (begun, cancelled) = gates.clone();
        async move {
            begun.add_permits(1);
            context.cancel.cancelled().await;
            cancelled.add_permits(1);
            std::future::pending().await
        }
    })
}

fn calls_then_answers(tool: &'static str) -> Arc<ScriptedProvider> {
    ScriptedProvider::by(move |asked| {
        if asked.contains("result: ") { Answer::whole([text("Done.")]) } else { Answer::whole([call(0, tool, "{}")]) }
    })
}

#[tokio::test(start_paused = true)]
async fn a_deleted_conversation_stops_its_tools_and_tells_who_waits() {
    let (begun, cancelled) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let source = ScriptedSource::new("tools", [until_cancelled("work", &begun, &cancelled)]);
    let provider = calls_then_answers("tools__work");
    let world = world(provider.clone(), source, Setup::default()).await;
    let sent = world.send("go").await;
    begun.acquire().await.unwrap().forget();
    let (waited, ()) = tokio::join!(world.engine.wait(&world.id, sent.turn_id), async {
        world.engine.delete(&world.id).await.unwrap();
    });
    assert_eq!(provider.forgotten()[0], world.id, "what is kept in memory to ask the model goes too");
    assert_eq!(waited.unwrap_err(), EngineError::NotFound { what: "conversation `c1`".to_owned() });
    cancelled.acquire().await.unwrap().forget();

    // The name is free: what comes next has nothing of what was.
    let again = NewMessage { create: true, ..NewMessage::text("anew") };
    world.engine.send(&world.id, again).await.unwrap();
    assert_eq!(world.kinds().await[..2], ["user", "claimed"]);
    world.engine.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_another_process_deleted_stops_its_tools_here() {
    let (begun, cancelled) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let source = Arc::new(ScriptedSource::new("tools", [until_cancelled("work", &begun, &cancelled)]));
    let disk = MemoryStore::default();
    let provider = calls_then_answers("tools__work");
    let process = || engine(disk.another_process(), provider.clone(), source.clone(), Setup::default());
    let (here, elsewhere) = (process(), process());
    here.send(&id(), NewMessage { create: true, ..NewMessage::text("go") }).await.unwrap();
    begun.acquire().await.unwrap().forget();
    elsewhere.delete(&id()).await.unwrap();
    cancelled.acquire().await.unwrap().forget();
    assert_eq!(here.journal(&id()).await.unwrap_err(), EngineError::NotFound { what: "conversation `c1`".to_owned() });
    assert!(provider.forgotten().len() > 1, "here too: {:?}", provider.forgotten());
}

/// Of what it was told that it is gone.
#[derive(Debug, Default)]
struct Gone(Mutex<Vec<ConversationId>>);

impl Forgets for Gone {
    fn forget(&self, conversation: &ConversationId) {
        self.0.lock().unwrap().push(conversation.clone());
    }

    fn kept(&self) -> Vec<ConversationId> {
        vec!["c3".parse().unwrap()]
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_in_memory_of_a_conversation_that_another_process_deleted_goes_at_the_next_look() {
    let disk = MemoryStore::default();
    let provider = ScriptedProvider::by(|_| Answer::whole([text("Done.")]));
    let source = Arc::new(ScriptedSource::new("tools", []));
    let process = || engine(disk.another_process(), provider.clone(), source.clone(), Setup::default());
    let (here, elsewhere) = (process(), process());
    let gone = Arc::new(Gone::default());
    let weak = Arc::downgrade(&gone);
    here.tell_gone_to(weak);
    let other: ConversationId = "c2".parse().unwrap();
    let third: ConversationId = "c3".parse().unwrap();
    elsewhere.create(NewConversation { id: Some(third.clone()), ..NewConversation::default() }).await.unwrap();
    for id in [&id(), &other] {
        let sent = here.send(id, NewMessage { create: true, ..NewMessage::text("go") }).await.unwrap();
        here.wait(id, sent.turn_id).await.unwrap();
    }
    here.forget_deleted().await.unwrap();
    elsewhere.delete(&id()).await.unwrap();
    elsewhere.delete(&third).await.unwrap();
    assert_eq!((gone.0.lock().unwrap().len(), here.workload().conversations), (0, 2), "nobody tells of it");
    here.forget_deleted().await.unwrap();
    assert_eq!((&*gone.0.lock().unwrap(), here.workload().conversations), (&vec![id(), third.clone()], 1));
    assert_eq!(provider.forgotten().last(), Some(&third));
    here.delete(&other).await.unwrap();
    assert_eq!(*gone.0.lock().unwrap(), [id(), third, other]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_end_of_the_process_cuts_short_is_no_failure_that_anybody_wanted() {
    let (begun, cancelled) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let declared = Declared { read_only: true, ..Declared::default() };
    let hangs = until_cancelled("look", &begun, &cancelled).declared(declared);
    let source = Arc::new(ScriptedSource::new("tools", [hangs]));
    let disk = MemoryStore::default();
    let process = || engine(disk.another_process(), calls_then_answers("tools__look"), source.clone(), Setup::default());
    let first = process();
    let sent = first.send(&id(), NewMessage { create: true, ..NewMessage::text("go") }).await.unwrap();
    begun.acquire().await.unwrap().forget();
    first.shutdown().await;
    source.set_tools([ScriptedTool::echo("look").declared(declared)]);
    let second = process();
    second.resume_open_turns().await.unwrap();
    assert_eq!(second.wait(&id(), sent.turn_id).await.unwrap(), completed());
    assert_eq!(results(&second.journal(&id()).await.unwrap()), ["call_4_0 Success {}"]);
}

#[tokio::test]
async fn a_request_that_is_dropped_half_way_is_carried_out_whole() {
    let provider = ScriptedProvider::new([Answer::whole([text("Hi.")])]);
    let world = world(provider, ScriptedSource::new("tools", []), Setup::default()).await;
    let mut send = Box::pin(world.engine.send(&world.id, NewMessage::text("go")));
    assert!(futures_util::poll!(&mut send).is_pending());
    drop(send);
    let turn = loop {
        match world.journal().await.turn() {
            Some(turn) => break turn.id(),
            None => tokio::task::yield_now().await,
        }
    };
    assert_eq!(world.engine.wait(&world.id, turn).await.unwrap(), completed());
}

#[tokio::test]
async fn a_slot_that_a_turn_has_no_use_for_is_free_for_others() {
    let source = ScriptedSource::new("tools", [ScriptedTool::echo("echo")]).slots(1);
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let provider = ScriptedProvider::by(move |asked| match asked {
        asked if !asked.contains("result: ") => Answer::whole((0..2).map(|key| call(key, "tools__echo", "{}"))),
        asked if asked.contains("user: first") => Answer::whole([text("Late.")]).gated(&held),
        _ => Answer::whole([text("Done.")]),
    });
    let world = world(provider.clone(), source, Setup::default()).await;
    let first = world.send("first").await;
    while provider.asked().len() < 2 {
        tokio::task::yield_now().await;
    }
    let other = "c2".parse().unwrap();
    let second = world.engine.send(&other, NewMessage { create: true, ..NewMessage::text("second") }).await.unwrap();
    assert_eq!(world.engine.wait(&other, second.turn_id).await.unwrap(), completed());
    gate.add_permits(9);
    assert_eq!(world.engine.wait(&world.id, first.turn_id).await.unwrap(), completed());
}

/// A source that never gets ready.
#[derive(Debug)]
struct Starting;

#[async_trait]
impl ToolSource for Starting {
    fn name(&self) -> &'static str {
        "slow"
    }
    fn state(&self) -> SourceState {
        SourceState::Starting
    }
    fn tools(&self) -> Arc<[SourceTool]> {
        Arc::from([])
    }
    async fn settled(&self) {
        std::future::pending::<()>().await;
    }
    async fn call(&self, _: SourceCall, _: CallContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::default())
    }
    fn limits(&self, _: &str) -> CallLimits {
        CallLimits::default()
    }
    async fn stop(&self) {}
}

#[tokio::test]
async fn a_stop_and_the_end_of_the_process_need_not_wait_for_a_source_that_starts() {
    let engine = engine(MemoryStore::default(), ScriptedProvider::new([]), Arc::new(Starting), Setup::default());
    engine.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
    let sent = engine.send(&id(), NewMessage::text("go")).await.unwrap();
    tokio::task::yield_now().await;
    engine.cancel(&id(), None).await.unwrap();
    assert_eq!(engine.wait(&id(), sent.turn_id).await.unwrap(), TurnState::Ended(TurnStatus::Cancelled));
    engine.send(&id(), NewMessage::text("again")).await.unwrap();
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_begins_once_a_stop_was_acknowledged_also_where_another_keeps_the_driver_from_hearing_of_it() {
    let (begun, gate) = (Arc::new(Semaphore::new(0)), Arc::new(std::sync::Barrier::new(2)));
    let (begins, opens) = (begun.clone(), gate.clone());
    // It waits as no tool should: its thread does nothing else meanwhile.
    let blocks = ScriptedTool::new("blocks", move |_, _| {
        let (begins, opens) = (begins.clone(), opens.clone());
        async move {
            begins.add_permits(1);
            opens.wait();
            Ok(ToolOutput::text("done"))
        }
    });
    let source = ScriptedSource::new("tools", [blocks]).writing(|_| turnwright_engine::Writes::Paths(Vec::new()));
    let both = Answer::whole([call(0, "tools__blocks", "{}"), call(1, "tools__blocks", "{}")]);
    let world = world(ScriptedProvider::new([both]), source, Setup::default()).await;
    let sent = world.send("go").await;
    begun.acquire().await.unwrap().forget();
    world.engine.cancel(&world.id, Some(sent.turn_id)).await.unwrap();
    tokio::task::spawn_blocking(move || gate.wait()).await.unwrap();
    let state = world.engine.wait(&world.id, sent.turn_id).await.unwrap();
    assert_eq!(state, TurnState::Ended(TurnStatus::Cancelled));
    assert_eq!(world.source.effects().len(), 1);
    let came = results(&world.journal().await);
    assert_eq!(came[1], "call_4_1 Error(Interrupted) The user stopped the turn before `tools__blocks` began; it did not run.");
}
