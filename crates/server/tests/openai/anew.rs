//! Requests that go on with a turn and ask for the rest of it otherwise than the one before.

use serde_json::{Value, json};
use turnwright_core::{Control, Entry, OutputFormat, StoredEntry, ToolChoice, TurnSettings};
use turnwright_testkit::{Answer, MemoryStore, ScriptedProvider, call, text};

use super::{Server, server, server_with, user};

fn tool(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}})
}

/// A request whose history holds a call of `one` with its result.
fn given(first: &Value, more: &[Value]) -> Value {
    let message = first["choices"][0]["message"].clone();
    let result = json!({"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "red"});
    let said = [json!({"role": "system", "content": "You are TWO."}), user("Go"), message, result];
    let said: Vec<Value> = said.into_iter().chain(more.iter().cloned()).collect();
    let form = json!({"type": "json_schema", "json_schema": {"name": "form", "schema": {"type": "object"}}});
    json!({"messages": said, "tools": [tool("two")], "tool_choice": "required", "temperature": 0.9, "response_format": form})
}

fn first() -> Value {
    let said = [json!({"role": "system", "content": "You are ONE."}), user("Go")];
    json!({"messages": said, "tools": [tool("one")], "temperature": 0.1})
}

fn calls_one() -> Answer {
    Answer::whole([call(0, "one", "{}")])
}

/// What was chosen anew in a conversation.
async fn settings(server: &Server, conversation: &str) -> Vec<TurnSettings> {
    let journal = server.engine.journal(&conversation.parse().unwrap()).await.unwrap();
    let settings = |stored: &StoredEntry| match &*stored.entry {
        Entry::Control(Control::Settings { settings }) => Some(TurnSettings::clone(settings)),
        _ => None,
    };
    journal.entries().iter().filter_map(settings).collect()
}

#[tokio::test]
async fn results_are_gone_on_with_as_the_request_that_brings_them_asks() {
    let server = server([calls_one(), Answer::whole([call(0, "two", "{}")])]);
    let begun = server.chat(&first()).await;
    let next = server.chat(&given(&begun.json(), &[])).await;
    assert_eq!(next.header("x-turnwright-conversation"), begun.header("x-turnwright-conversation"));
    assert_eq!(next.json()["choices"][0]["message"]["tool_calls"][0]["function"]["name"], "two", "{}", next.body);
    let chosen = settings(&server, next.header("x-turnwright-conversation")).await;
    assert_eq!(chosen.len(), 1);
    assert_eq!((&chosen[0].tool_choice, chosen[0].temperature), (&Some(ToolChoice::Required), Some(0.9)));
    let output = chosen[0].output.as_ref().and_then(|output| match output {
        OutputFormat::Schema(output) => Some(output.name.as_str()),
        OutputFormat::JsonObject => None,
    });
    assert_eq!((chosen[0].client_tools[0].name.as_str(), output), ("two", Some("form")));
    assert_eq!(chosen[0].system_prompt.as_deref(), Some("You are TWO."));
}

#[tokio::test]
async fn equal_settings_are_not_stored_again_and_a_demand_holds_for_each_request() {
    for (choice, stored) in [(Value::Null, 0), (json!("auto"), 0), (json!("required"), 1)] {
        let server = server([calls_one(), Answer::whole([call(0, "one", "{}")])]);
        let ask = |messages: Value| json!({"messages": messages, "tools": [tool("one")], "tool_choice": choice});
        let begun = server.chat(&ask(json!([user("Go")]))).await.json();
        let message = begun["choices"][0]["message"].clone();
        let result = json!({"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "red"});
        let next = server.chat(&ask(json!([user("Go"), message, result]))).await;
        assert_eq!(next.status, 200, "{}", next.body);
        let chosen = settings(&server, next.header("x-turnwright-conversation")).await;
        assert_eq!(chosen.len(), stored, "{choice}: {chosen:?}");
    }
}

#[tokio::test]
async fn a_result_and_a_message_are_stored_as_one_and_nobody_is_asked_between_them() {
    let answers = |asked: &str| match asked.contains("Never mind") {
        true => Answer::whole([text("Fine.")]),
        false if asked.contains("result: ") => Answer::whole([call(0, "lab__look", "{}")]),
        false => calls_one(),
    };
    for round in 0..10 {
        let server = server_with(MemoryStore::default(), ScriptedProvider::by(answers));
        let begun = server.chat(&first()).await;
        let mut next = given(&begun.json(), &[user("Never mind")]);
        next["tool_choice"] = Value::Null;
        let next = server.chat(&next).await;
        assert_eq!(next.json()["choices"][0]["message"]["content"], "Fine.", "round {round}: {}", next.body);
        assert_eq!((server.provider.asked().len(), server.source.effects().len()), (2, 0), "round {round}");
    }
}

#[tokio::test]
async fn a_message_with_another_prompt_is_taken_while_a_turn_waits() {
    let server = server([Answer::whole([call(0, "lab__touch", "{}")]), Answer::whole([text("Fine.")])]);
    let ask = |time: &str, said: &[Value]| {
        let system = json!({"role": "system", "content": format!("It is {time}.")});
        let messages: Vec<Value> = [system].into_iter().chain(said.iter().cloned()).collect();
        json!({"messages": messages, "metadata": {"conversation_id": "c1"}})
    };
    let waits = server.chat(&ask("9", &[user("Touch!")])).await;
    assert_eq!(waits.json()["turnwright"]["status"], "waiting", "{}", waits.body);
    let told = waits.json()["choices"][0]["message"].clone();
    let next = server.chat(&ask("10", &[user("Touch!"), told, user("Rather not.")])).await;
    assert_eq!((next.status, &next.json()["choices"][0]["message"]["content"]), (200, &json!("Fine.")), "{}", next.body);
    assert_eq!(settings(&server, "c1").await[0].system_prompt.as_deref(), Some("It is 10."));
    assert_eq!(server.source.effects().len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn requests_that_go_on_from_one_place_at_once_are_each_answered_alone() {
    let echo = |asked: &str| {
        let said = ["q-one", "q-two", "q-three"].into_iter().filter(|said| asked.contains(said)).collect::<Vec<_>>();
        Answer::whole([text(&format!("echo {}", said.join(" ")))])
    };
    for round in 0..20 {
        let server = server_with(MemoryStore::default(), ScriptedProvider::by(echo));
        let hello = server.chat(&json!({"messages": [user("hello")]})).await.json();
        let first = server.respond(&json!({"input": "hi"})).await.json();
        let greeting = hello["choices"][0]["message"].clone();
        let said = ["q-one", "q-two", "q-three"];
        let chats = said.map(|said| json!({"messages": [user("hello"), greeting, user(said)]}));
        let told = futures_util::future::join_all(chats.iter().map(|body| server.chat(body))).await;
        for (said, told) in said.iter().zip(told) {
            assert_eq!(told.json()["choices"][0]["message"]["content"], format!("echo {said}"), "round {round}");
        }
        let branches = said.map(|said| json!({"previous_response_id": first["id"], "input": said}));
        let told = futures_util::future::join_all(branches.iter().map(|body| server.respond(body))).await;
        for (said, told) in said.iter().zip(told) {
            assert_eq!(told.json()["output"][0]["content"][0]["text"], format!("echo {said}"), "round {round}");
        }
    }
}

#[tokio::test]
async fn what_was_said_and_answered_in_a_named_conversation_is_not_said_again_with_what_follows() {
    let server = server(["One.", "Two.", "Three."].map(|said| Answer::whole([text(said)])));
    let ask = |said: &[&str]| {
        let messages: Vec<Value> = said.iter().map(|said| user(said)).collect();
        json!({"messages": messages, "metadata": {"conversation_id": "c1"}})
    };
    for (said, answer) in [(&["a"][..], "One."), (&["a", "b"], "Two."), (&["a", "b", "c"], "Three.")] {
        let told = server.chat(&ask(said)).await.json();
        assert_eq!(told["choices"][0]["message"]["content"], answer);
    }
    let said: Vec<String> = server.messages("c1").await.into_iter().map(|(_, said)| said).collect();
    assert_eq!(said, ["a", "One.", "b", "Two.", "c", "Three."]);
}

#[tokio::test]
async fn a_history_that_ends_with_the_models_own_words_is_gone_on_with() {
    let server = server([Answer::whole([text("More.")]), Answer::whole([text("Hello.")])]);
    let told = json!({"role": "assistant", "content": "Once upon a time"});
    let next = server.chat(&json!({"messages": [user("Tell!"), told]})).await;
    assert_eq!((next.status, &next.json()["choices"][0]["message"]["content"]), (200, &json!("More.")), "{}", next.body);
    let begins = server.chat(&json!({"messages": [{"role": "system", "content": "Greet."}]})).await;
    assert_eq!(begins.json()["choices"][0]["message"]["content"], "Hello.", "{}", begins.body);
}

#[tokio::test]
async fn a_message_beside_a_result_that_comes_too_late_is_said_and_one_beside_another_result_is_refused() {
    let ask = |said: &[Value]| json!({"messages": said, "tools": [tool("one")]});
    let result =
        |message: &Value, said: &str| json!({"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": said});
    for was_declined in [true, false] {
        let server = server([calls_one(), Answer::whole([call(1, "one", "{}")]), Answer::whole([text("Fine.")])]);
        let begun = server.chat(&ask(&[user("Go")])).await;
        let message = begun.json()["choices"][0]["message"].clone();
        let named =
            [("content-type", "application/json"), ("x-turnwright-conversation", begun.header("x-turnwright-conversation"))];
        let next = if was_declined { user("Stop.") } else { result(&message, "red") };
        let body = ask(&[user("Go"), message.clone(), next]).to_string();
        let goes_on = server.send(http::Method::POST, "/v1/chat/completions", body.into(), &named).await;
        assert_eq!(goes_on.status, 200, "{}", goes_on.body);
        let late = ask(&[user("Go"), message.clone(), result(&message, "blue"), user("And?")]).to_string();
        let late = server.send(http::Method::POST, "/v1/chat/completions", late.into(), &named).await;
        assert_eq!(late.status, if was_declined { 200 } else { 400 }, "{}", late.body);
    }
}
