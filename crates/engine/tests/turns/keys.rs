//! The idempotency keys that tools are given.

use std::collections::BTreeSet;
use std::sync::Arc;

use turnwright_core::{ApproveMode, text_of};
use turnwright_engine::{NewMessage, PageCall, ToolOutput};
use turnwright_testkit::{Answer, ManualClock, MemoryStore, ScriptedProvider, ScriptedSource, ScriptedTool, call, text};

use crate::support::{Setup, World, completed, engine_at, id, world};

fn parts(turns: usize) -> (Arc<ScriptedProvider>, ScriptedSource, Setup) {
    let says_where = |name: &str| {
        ScriptedTool::new(name, |_, context| async move { Ok(ToolOutput::text(format!("{:?}", context.conversation))) })
    };
    let turn = || [Answer::whole([call(0, "tools__pay", "{}")]), Answer::whole([text("paid")])];
    let provider = ScriptedProvider::new((0..turns).flat_map(|_| turn()));
    let source = ScriptedSource::new("tools", [says_where("pay"), says_where("refund")]);
    (provider, source, Setup::default())
}

async fn paying() -> World {
    let (provider, source, setup) = parts(0);
    world(provider, source, setup).await
}

fn keys(source: &ScriptedSource) -> Vec<String> {
    source.effects().into_iter().map(|effect| effect.idempotency_key).collect()
}

fn different(keys: &[String]) -> usize {
    keys.iter().collect::<BTreeSet<_>>().len()
}

#[tokio::test]
async fn each_call_of_no_turn_has_a_key_of_its_own_and_belongs_to_no_conversation() {
    let world = paying().await;
    let ben = world.engine.acting_for("ben".parse().unwrap());
    for (engine, tool) in [(&world.engine, "pay"), (&world.engine, "pay"), (&world.engine, "refund"), (&ben, "pay")] {
        let came = engine.call_tool(&format!("tools__{tool}"), "{}", ApproveMode::All).await.unwrap();
        assert_eq!(text_of(&came.content), "None");
        let page = PageCall { source: "tools", tool, arguments: "{}", conversation: None, is_allowed: true, key: None };
        engine.call_for_page(page).await.unwrap();
    }
    assert_eq!(different(&keys(&world.source)), 8);
}

#[tokio::test]
async fn a_request_that_comes_again_gives_its_tool_the_same_key_and_nobody_elses_does() {
    let world = paying().await;
    let ben = world.engine.acting_for("ben".parse().unwrap());
    for (engine, key, tool) in [
        (&world.engine, "k1", "pay"),
        (&world.engine, "k1", "pay"),
        (&world.engine, "k2", "pay"),
        (&world.engine, "k1", "refund"),
        (&ben, "k1", "pay"),
    ] {
        engine.call_tool_as(key, &format!("tools__{tool}"), "{}", ApproveMode::All).await.unwrap();
    }
    let keys = keys(&world.source);
    assert_eq!((&keys[0], different(&keys)), (&keys[1], 4));
}

#[tokio::test]
async fn a_conversation_that_is_made_anew_under_its_name_has_other_keys() {
    let ((provider, source, setup), clock) = (parts(2), Arc::new(ManualClock::at(1_000)));
    let source = Arc::new(source);
    let engine = engine_at(Arc::new(MemoryStore::default()), provider, source.clone(), setup, clock.clone());
    for _ in 0..2 {
        let sent = engine.send(&id(), NewMessage { create: true, ..NewMessage::text("pay") }).await.unwrap();
        assert_eq!(engine.wait(&id(), sent.turn_id).await.unwrap(), completed());
        engine.delete(&id()).await.unwrap();
        clock.advance(1);
    }
    let keys = keys(&source);
    assert_eq!((keys.len(), different(&keys)), (2, 2));
}
