//! Answers that are to have a form: their text is that alone.

use serde_json::{Value, json};
use turnwright_core::StreamDelta;
use turnwright_testkit::{Answer, call, text};

use super::{picks, server, user};

fn answers() -> [Answer; 2] {
    [Answer::whole([text("Let me STOP look."), call(0, "lab__look", "{}")]), Answer::whole([text("{\"a\":"), text("5}")])]
}

fn form() -> Value {
    json!({"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}}})
}

#[tokio::test]
async fn what_a_response_says_beside_its_calls_is_what_the_model_thinks() {
    let asked = |stream: bool| json!({"input": "Look!", "text": form(), "stream": stream});
    let server_of_two = server(answers());
    let whole = server_of_two.respond(&asked(false)).await.json();
    let output = whole["output"].as_array().unwrap();
    let kinds: Vec<&Value> = output.iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, ["reasoning", "mcp_call", "message"], "{whole}");
    let told = (&output[0]["summary"], &output[2]["content"][0]["text"]);
    assert_eq!(told, (&json!([{"type": "summary_text", "text": "Let me STOP look."}]), &json!("{\"a\":5}")));

    let streamed = server(answers()).respond(&asked(true)).await.chunks();
    let deltas = |kind: &str| -> String {
        streamed.iter().filter(|event| event["type"] == kind).map(|event| event["delta"].as_str().unwrap()).collect()
    };
    assert_eq!(deltas("response.output_text.delta"), "{\"a\":5}");
    assert_eq!(deltas("response.reasoning_summary_text.delta"), "Let me STOP look.");
    let last = &streamed.last().unwrap()["response"];
    assert_eq!(last["output"].as_array().unwrap().len(), 3);

    let path = format!("/v1/responses/{}?stream=true", whole["id"].as_str().unwrap());
    let later = server_of_two.get(&path).await.chunks();
    let numbers = |events: &[Value]| events.iter().map(|event| event["sequence_number"].clone()).collect::<Vec<_>>();
    assert_eq!(numbers(&later), numbers(&streamed), "it is told later as it was told first");
}

#[tokio::test]
async fn so_is_what_it_says_beside_a_call_of_its_clients() {
    let server = server([picks(), Answer::whole([text("{}")])]);
    let tool = json!({"type": "function", "name": "pick", "parameters": {"type": "object"}});
    let first = server.respond(&json!({"input": "Pick!", "tools": [tool], "text": form()})).await.json();
    let kinds: Vec<&Value> = first["output"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, ["reasoning", "function_call"]);
}

#[tokio::test]
async fn a_stop_takes_nothing_from_what_is_said_beside_calls() {
    let format = json!({"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}});
    for stream in [false, true] {
        let asked = json!({"messages": [user("Look!")], "response_format": format, "stop": ["STOP"], "stream": stream});
        let answered = server(answers()).chat(&asked).await;
        let told = |field: &str| -> String {
            if !stream {
                return answered.json()["choices"][0]["message"][field].as_str().unwrap_or_default().to_owned();
            }
            let deltas = answered.chunks().into_iter().filter_map(|chunk| Some(chunk["choices"].get(0)?["delta"].clone()));
            deltas.filter_map(|delta| delta[field].as_str().map(str::to_owned)).collect()
        };
        assert_eq!(
            (told("content").as_str(), told("reasoning_content").as_str()),
            ("{\"a\":5}", "Let me STOP look."),
            "{stream}"
        );
    }
}

#[tokio::test]
async fn what_is_thought_in_several_messages_of_a_completion_is_a_paragraph_of_each() {
    let thought = |said: &str| vec![StreamDelta::Reasoning(said.to_owned())];
    let answers = || {
        [
            Answer::whole([thought("I have "), thought("to look."), text("Let me."), call(0, "lab__look", "{}")]),
            Answer::whole([thought("Seen."), text("{\"a\":5}")]),
        ]
    };
    let format = json!({"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}});
    for (format, expected) in [(Value::Null, "I have to look.\n\nSeen."), (format, "I have to look.\n\nLet me.\n\nSeen.")] {
        for stream in [false, true] {
            let asked = json!({"messages": [user("Look!")], "response_format": format, "stream": stream});
            let answered = server(answers()).chat(&asked).await;
            let told: String = if stream {
                let deltas = answered.chunks().into_iter().filter_map(|chunk| Some(chunk["choices"].get(0)?["delta"].clone()));
                deltas.filter_map(|delta| delta["reasoning_content"].as_str().map(str::to_owned)).collect()
            } else {
                answered.json()["choices"][0]["message"]["reasoning_content"].as_str().unwrap_or_default().to_owned()
            };
            assert_eq!(told, expected, "{stream}");
        }
    }
}
