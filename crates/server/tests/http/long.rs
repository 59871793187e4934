//! A conversation that is long.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwright_core::policy::Policy;
use turnwright_core::{ModelRef, TurnSettings};
use turnwright_engine::{Engine, EngineParts};
use turnwright_server::{ServerOptions, ServerState, router};
use turnwright_testkit::{Answer, ManualClock, ScriptedProvider, ScriptedProviders, call, text};

use super::{Server, server};

const TURNS: usize = 80;

/// A server whose process has just begun, over what another has stored.
fn begun_anew(server: &Server) -> Server {
    let store = Arc::new(server.store.another_process());
    let engine = Engine::new(EngineParts {
        providers: Arc::new(ScriptedProviders(ScriptedProvider::new([]))),
        sources: Vec::new(),
        store: store.clone(),
        clock: Arc::new(ManualClock::at(1_736_622_000_000)),
        policy: Policy::default(),
        defaults: TurnSettings::new(ModelRef::new("test", "scripted")),
    });
    let router = router(ServerState::new(engine.clone(), ServerOptions::default()));
    Server { router, engine, source: server.source.clone(), store }
}

async fn page(server: &Server, query: &str) -> Value {
    server.get(&format!("/api/v1/conversations/c1/messages?{query}")).await.json()
}

#[tokio::test]
async fn the_first_page_of_a_long_conversation_is_the_same_where_only_its_beginning_is_read() {
    let turn = |at: usize| [Answer::whole([call(0, "lab__look", "{}")]), Answer::whole([text(&format!("answer {at}"))])];
    let server = server((0..TURNS).flat_map(turn));
    for at in 0..TURNS {
        let answered = server.post("/api/v1/conversations/c1/chat", json!({"content": format!("question {at}")})).await;
        assert_eq!(answered.json()["success"], true);
    }
    for query in ["limit=1", "limit=2", "limit=3", "limit=7&cursor=msg_3", "limit=100&cursor=msg_500", "cursor=msg_2"] {
        assert_eq!(page(&begun_anew(&server), query).await, page(&server, query).await, "{query}");
    }
    let (mut query, mut read) = (String::new(), 0);
    loop {
        let part = page(&begun_anew(&server), &query).await;
        assert_eq!(part, page(&server, &query).await, "{query}");
        read += part["data"].as_array().unwrap().len();
        let Some(cursor) = part["next_cursor"].as_str() else { break };
        query = format!("cursor={cursor}");
    }
    assert_eq!(read, TURNS * 4);
    let fresh = begun_anew(&server);
    page(&fresh, "limit=100").await;
    assert_eq!(fresh.engine.workload().conversations, 0, "it was not read whole");

    let hidden = server.send(http::Method::DELETE, "/api/v1/conversations/c1/messages/msg_1", &Value::Null, &[]).await;
    assert_eq!(hidden.status, 204);
    let now = page(&begun_anew(&server), "limit=3").await;
    assert_eq!(now, page(&server, "limit=3").await);
    assert_ne!(now["data"][0]["id"], "msg_1");
    assert_eq!(begun_anew(&server).get("/api/v1/conversations/c2/messages").await.status, 404);
}
