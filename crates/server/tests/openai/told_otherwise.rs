//! Histories that are like another in part, or whose conversation's name is another's by now: each model sees what its client said.

use axum::body::Body;
use http::Method;
use serde_json::{Value, json};
use turnwright_testkit::{Answer, MemoryStore, ScriptedProvider, text};

use super::killed::conversation;
use super::{Server, server_on, server_with, user};

fn said(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

fn echoes() -> Server {
    server_with(MemoryStore::default(), ScriptedProvider::by(|_| Answer::whole([text("Well.")])))
}

async fn delete(server: &Server, name: &str) {
    let gone = server.send(Method::DELETE, &format!("/api/v1/conversations/{name}"), Body::empty(), &[]).await;
    assert_eq!(gone.status, 204, "{}", gone.body);
    // Conversations of one name are told apart by when they were made.
    server.clock.advance(5);
}

fn last_shown(server: &Server) -> String {
    server.provider.asked().last().unwrap().clone()
}

#[tokio::test]
async fn a_name_that_is_used_again_gives_no_history_what_another_said() {
    for taken_over in [true, false] {
        let server = echoes();
        let history = |word: &str| if taken_over { vec![user(word), said("Aha."), user("So?")] } else { vec![user(word)] };
        let named = |word: &str| json!({"messages": history(word), "metadata": {"conversation_id": "mine"}});
        server.chat(&named("walrus")).await;
        delete(&server, "mine").await;
        server.chat(&named("ocelot")).await;
        let mut again = history("walrus");
        if taken_over {
            again.pop();
            again.push(user("Really?"));
        } else {
            again.extend([said("Well."), user("Really?")]);
        }
        let next = server.chat(&json!({"messages": again})).await;
        let shown = last_shown(&server);
        assert!(shown.contains("walrus") && !shown.contains("ocelot"), "{taken_over}: {shown}");
        assert_ne!(conversation(&next), "mine");
    }
}

#[tokio::test]
async fn results_and_arguments_of_calls_elsewhere_are_part_of_what_a_history_says() {
    let function = |arguments: &str| json!({"type": "function", "function": {"name": "look", "arguments": arguments}});
    let custom = |arguments: &str| json!({"type": "custom", "custom": {"name": "look", "input": arguments}});
    elsewhere(&function).await;
    elsewhere(&custom).await;
}

/// That histories are told apart by the calls in them, which are made of arguments.
async fn elsewhere(call: &dyn Fn(&str) -> Value) {
    let history = |arguments: &str, result: &str| {
        let mut call = call(arguments);
        call["id"] = json!("call_1");
        let calls = json!({"role": "assistant", "content": null, "tool_calls": [call]});
        let given = json!({"role": "tool", "tool_call_id": "call_1", "content": result});
        vec![user("Look"), calls, given, said("Done."), user("So?")]
    };
    let store = MemoryStore::default();
    for begins_again in [false, true] {
        let mut server = server_on(store.another_process(), (0..9).map(|_| Answer::whole([text("Well.")])).collect::<Vec<_>>());
        let first = server.chat(&json!({"messages": history("{\"at\": 1}", "walrus")})).await;
        if begins_again {
            server = server_on(store.another_process(), (0..9).map(|_| Answer::whole([text("Well.")])).collect::<Vec<_>>());
        }
        let goes_on = async |arguments: &str, result: &str| {
            let mut messages = history(arguments, result);
            messages.extend([said("Well."), user("And then?")]);
            conversation(&server.chat(&json!({"messages": messages})).await).to_owned()
        };
        let other = goes_on("{\"at\": 1}", "ocelot").await;
        let shown = last_shown(&server);
        assert!(shown.contains("ocelot") && !shown.contains("walrus"), "{shown}");
        assert_ne!(other, conversation(&first));
        assert_ne!(goes_on("{\"at\": 2}", "walrus").await, conversation(&first));
        assert_eq!(goes_on("{\"at\": 1}", "walrus").await, conversation(&first));
    }
}
