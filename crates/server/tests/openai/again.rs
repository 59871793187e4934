//! Decisions and results that come again with their key, or others with the same one.

use serde_json::{Value, json};
use turnwright_testkit::{Answer, MemoryStore, ScriptedProvider, call, text};

use super::{pick, picks, server, server_on, server_with, user};

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
    // With a key of its own it is what was given before, or refused.
    assert_eq!(server.keyed("/v1/chat/completions", "other", &given("blue")).await.status, 400);
    assert_eq!(server.keyed("/v1/chat/completions", "third", &given("red")).await.json(), picked);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn equal_requests_with_one_key_that_come_at_once_get_one_answer_whatever_they_bring() {
    let script = || {
        ScriptedProvider::by(|asked| {
            let has_results = asked.contains("result: ");
            let both = || Answer::whole([call(0, "pick", "{}"), call(1, "lab__touch", "{}")]);
            if has_results { Answer::whole([text("Done.")]) } else { both() }
        })
    };
    let tool = json!({"type": "function", "name": "pick", "parameters": {"type": "object"}});
    for round in 0..20 {
        for words in [None, Some("Quick!")] {
            let store = MemoryStore::default();
            let servers = [server_with(store.another_process(), script()), server_with(store.another_process(), script())];
            for server in &servers {
                server.engine.keep_resuming();
            }
            let first = servers[0].respond(&json!({"input": "Touch!", "tools": [tool]})).await.json();
            let item = |kind: &str| {
                let items = first["output"].as_array().unwrap();
                items.iter().find(|item| item["type"] == kind).unwrap_or_else(|| panic!("{first}")).clone()
            };
            let result = json!({"type": "function_call_output", "call_id": item("function_call")["call_id"], "output": "red"});
            let request = item("mcp_approval_request")["id"].clone();
            let answer = json!({"type": "mcp_approval_response", "approval_request_id": request, "approve": true});
            let said = words.map(|words| json!({"role": "user", "content": words}));
            let input: Vec<Value> = [result, answer].into_iter().chain(said).collect();
            let body = json!({"previous_response_id": first["id"], "input": input, "tools": [tool]});
            let requests = (0..6).map(|number| servers[number % 2].keyed("/v1/responses", "k", &body));
            let answers = futures_util::future::join_all(requests).await;
            for answered in &answers {
                assert_eq!(answered.status, 200, "round {round}, {words:?}: {}", answered.body);
                let (one, other) = (answered.json(), answers[0].json());
                assert_eq!((&one["id"], &one["output"]), (&other["id"], &other["output"]), "round {round}, {words:?}");
            }
            let effects: usize = servers.iter().map(|server| server.source.effects().len()).sum();
            assert_eq!(effects, 1, "round {round}, {words:?}");
            let messages = servers[1].messages(answers[0].header("x-turnwright-conversation")).await;
            let users = messages.iter().filter(|(role, _)| role == "user").count();
            assert_eq!(users, 1 + usize::from(words.is_some()), "round {round}: {messages:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn equal_requests_with_one_key_that_go_on_from_an_older_answer_or_a_history_at_once_are_one() {
    let function = json!({"name": "find", "arguments": "{}"});
    let calls = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "call_abc", "type": "function", "function": function}]});
    let result = json!({"role": "tool", "tool_call_id": "call_abc", "content": "it"});
    let history = json!({"messages": [user("Find!"), calls, result]});
    for round in 0..20 {
        let store = MemoryStore::default();
        let script = || ScriptedProvider::by(|_| Answer::whole([text("So.")]));
        let servers = [server_with(store.another_process(), script()), server_with(store.another_process(), script())];
        for server in &servers {
            server.engine.keep_resuming();
        }
        let older = servers[0].respond(&json!({"input": "One"})).await.json();
        let newer = json!({"previous_response_id": older["id"], "input": "Two"});
        assert_eq!(servers[0].respond(&newer).await.status, 200);
        let on = json!({"previous_response_id": older["id"], "input": "Three"});
        for (path, body) in [("/v1/responses", &on), ("/v1/chat/completions", &history)] {
            let requests = (0..6).map(|number| servers[number % 2].keyed(path, "k", body));
            let answers = futures_util::future::join_all(requests).await;
            for answered in &answers {
                assert_eq!(
                    (answered.status, answered.json()["id"].clone()),
                    (200, answers[0].json()["id"].clone()),
                    "round {round}, {path}: {}",
                    answered.body
                );
            }
        }
        let asked: usize = servers.iter().map(|server| server.provider.asked().len()).sum();
        assert_eq!(asked, 4, "round {round}");
    }
}
