//! Decisions and results that come again with their key, or others with the same one.

use serde_json::{Value, json};
use turnwright_testkit::{Answer, MemoryStore, call, text};

use crate::{pick, picks, server, server_on, user};

fn reused() -> (u16, String, String) {
    (400, "invalid_request_error".to_owned(), "idempotency_key_reused".to_owned())
}

#[tokio::test]
async fn a_key_that_brought_a_decision_brings_no_other() {
    let store = MemoryStore::default();
    let touches = Answer::whole([call(0, "lab__touch", r#"{"a":1}"#)]);
    let server = server_on(store.another_process(), [touches, Answer::whole([text("Done.")])]);
    let first = server.respond(&json!({"input": "Touch!"})).await.json();
    let answer = |approve: bool, reason: Value| {
        let answer = json!({"type": "mcp_approval_response", "approval_request_id": first["output"][0]["id"],
                            "approve": approve, "reason": reason});
        json!({"previous_response_id": first["id"], "input": [answer]})
    };
    let done = server.keyed("/v1/responses", "k", &answer(true, Value::Null)).await.json();
    assert_eq!(done["output"][1]["content"][0]["text"], "Done.", "{done}");
    assert_eq!(server.keyed("/v1/responses", "k", &answer(true, Value::Null)).await.json()["output"], done["output"]);
    let next = server_on(store.another_process(), []);
    for others in [answer(false, Value::Null), answer(true, json!("why not")), json!({"input": "Go"})] {
        assert_eq!(server.keyed("/v1/responses", "k", &others).await.error(), reused(), "{others}");
        assert_eq!(next.keyed("/v1/responses", "k", &others).await.error(), reused(), "after a restart: {others}");
    }
    assert_eq!(next.keyed("/v1/responses", "k", &answer(true, Value::Null)).await.json()["output"], done["output"]);
    assert_eq!((server.source.effects().len(), next.source.effects().len()), (1, 0));
}

#[tokio::test]
async fn a_key_that_brought_results_brings_no_others() {
    let server = server([picks(), Answer::whole([text("Picked.")])]);
    let asked = json!({"messages": [user("Pick!")], "tools": [pick()], "metadata": {"conversation_id": "c1"}});
    let waits = server.chat(&asked).await.json()["choices"][0]["message"].clone();
    let given = |content: &str| {
        let result = json!({"role": "tool", "tool_call_id": waits["tool_calls"][0]["id"], "content": content});
        json!({"messages": [user("Pick!"), waits, result], "tools": [pick()], "metadata": {"conversation_id": "c1"}})
    };
    let picked = server.keyed("/v1/chat/completions", "k", &given("red")).await.json();
    assert_eq!(picked["choices"][0]["message"]["content"], "Picked.");
    assert_eq!(server.keyed("/v1/chat/completions", "k", &given("red")).await.json(), picked);
    assert_eq!(server.keyed("/v1/chat/completions", "k", &given("blue")).await.error(), reused());
    // With a key of its own it is what was given before, whatever it says.
    assert_eq!(server.keyed("/v1/chat/completions", "other", &given("blue")).await.json(), picked);
}
