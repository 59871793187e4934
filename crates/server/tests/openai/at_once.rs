//! Answers to one question that come at the same moment.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Semaphore;
use turnwright_testkit::{Answer, MemoryStore, call, text};

use super::{server_on, user};

/// More than a test stores.
const MANY: usize = 1_000;
/// Far more rounds than a request takes to look at what waits.
const ROUNDS: usize = 200;

#[tokio::test]
async fn of_two_answers_at_one_moment_the_other_one_is_refused_as_one_that_came_later() {
    for beside in [None, Some(user("Gently!"))] {
        let store = MemoryStore::default();
        let gate = Arc::new(Semaphore::new(MANY));
        store.acknowledge_through(&gate);
        let server = server_on(store, [Answer::whole([call(0, "lab__touch", "{}")]), Answer::whole([text("Touched.")])]);
        let first = server.respond(&json!({"input": [user("Touch!")]})).await.json();
        let answer = |approve: bool| {
            let answer =
                json!({"type": "mcp_approval_response", "approval_request_id": first["output"][0]["id"], "approve": approve});
            let input: Vec<_> = [answer].into_iter().chain(beside.clone()).collect();
            json!({"previous_response_id": first["id"], "input": input})
        };
        // What is stored is known to nobody until the gate opens again: both see that the call waits.
        gate.forget_permits(MANY);
        let (one, other) = (answer(true), answer(false));
        let opens = async {
            for _ in 0..ROUNDS {
                tokio::task::yield_now().await;
            }
            gate.add_permits(MANY);
        };
        let (yes, no, ()) = tokio::join!(server.respond(&one), server.respond(&other), opens);
        assert_eq!((yes.status, server.source.effects().len()), (200, 1), "{}", yes.body);
        let message = no.json()["error"]["message"].clone();
        assert_eq!(no.status, 400, "{}", no.body);
        assert!(message.as_str().unwrap().ends_with("was decided about otherwise before"), "{message}");
        assert_eq!(no.json()["error"]["param"], "input[0].approval_request_id");
    }
}
