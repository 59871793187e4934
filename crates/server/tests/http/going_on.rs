//! What a page of AG-UI says of its tools and of what it shows, where it goes on with a turn.

use turnwright_core::StreamDelta;

use super::ag_ui::{body, kinds, said};
use super::*;

/// A run of a page with these tools, which shows this.
fn run(run: &str, messages: &Value, (tools, context): (Value, Value)) -> Value {
    let mut run = body(run, messages);
    (run["tools"], run["context"]) = (tools, context);
    run
}

fn tool(name: &str) -> Value {
    json!({"name": name, "description": "", "parameters": {"type": "object"}})
}

/// What the page says that has what its tool gave.
fn gave(first: &[Value], content: &str) -> Value {
    let call = first.last().unwrap()["outcome"]["pendingToolCallIds"][0].clone();
    let calls = json!([{"id": call, "type": "function", "function": {"name": "pick", "arguments": "{}"}}]);
    json!([said("Pick!")[0], {"id": "a", "role": "assistant", "content": "", "toolCalls": calls},
           {"id": "t", "role": "tool", "toolCallId": call, "content": content}])
}

/// The names of what the model is offered, and what it is told before the conversation.
async fn told(server: &Server) -> (Vec<String>, Option<String>) {
    let look = |journal: &turnwright_core::Journal| {
        let names = journal.offered().iter().map(|tool| tool.name.clone()).collect();
        (names, journal.turn().unwrap().settings().system_prompt.clone())
    };
    server.engine.look(&"c1".parse().unwrap(), look).await.unwrap()
}

#[tokio::test]
async fn the_tools_and_the_context_of_a_run_are_all_that_its_page_has() {
    let context = json!([{"description": "Place", "value": "Here"}]);
    let shown = "What the user's page shows:\n- Place: Here";
    let all = ["lab__look", "lab__touch", "pick"];
    for (own, tools, shows, expected) in [
        (None, json!([]), json!([]), (&all[..2], None)),
        (Some("Be brief."), json!([]), json!([]), (&all[..2], Some("Be brief.".to_owned()))),
        (Some("Be brief."), json!([]), context.clone(), (&all[..2], Some(format!("Be brief.\n\n{shown}")))),
        (None, json!([tool("pick")]), context.clone(), (&all[..], Some(shown.to_owned()))),
        // A page that says nothing of them.
        (None, Value::Null, Value::Null, (&all[..], Some(shown.to_owned()))),
    ] {
        let server = server([Answer::whole([call(0, "pick", "{}")]), Answer::whole([text("Picked.")])]);
        server.post("/api/v1/conversations", json!({"id": "c1", "settings": {"system_prompt": own}})).await;
        let first = server.run(run("r1", &said("Pick!"), (json!([tool("pick")]), context.clone()))).await;
        let (offered, prompt) = told(&server).await;
        assert_eq!((&offered[..], prompt.unwrap().ends_with(shown)), (&all.map(str::to_owned)[..], true));
        let events = server.run(run("r2", &gave(&first, "red"), (tools.clone(), shows.clone()))).await;
        assert_eq!(events.last().unwrap()["outcome"], json!({"type": "success"}), "{events:?}");
        let (offered, prompt) = told(&server).await;
        let offered: Vec<&str> = offered.iter().map(String::as_str).collect();
        assert_eq!((&offered[..], prompt), expected, "{tools} {shows}");
        // What its tool gave, the page knows.
        assert!(!kinds(&events).contains(&"TOOL_CALL_RESULT"), "{events:?}");
    }
}

#[tokio::test]
async fn a_call_without_arguments_has_an_empty_object_of_them_for_a_page() {
    let server = server([Answer::whole([call(0, "lab__look", "")]), Answer::whole([call(0, "lab__touch", "")])]);
    let events = server.run(body("r1", &said("Touch!"))).await;
    let given: Vec<&Value> =
        events.iter().filter(|event| event["type"] == "TOOL_CALL_ARGS").map(|event| &event["delta"]).collect();
    assert_eq!(given, ["{}", "{}"], "{events:?}");
    let back = server.run(body("r2", &json!([]))).await;
    let messages = back[1]["messages"].as_array().unwrap();
    let calls: Vec<&Value> = messages.iter().filter_map(|message| message["toolCalls"].get(0)).collect();
    assert_eq!(calls.iter().map(|call| &call["function"]["arguments"]).collect::<Vec<_>>(), ["{}", "{}"], "{back:?}");
}

#[tokio::test]
async fn a_run_whose_model_refused_by_its_words_alone_says_so() {
    let server = server([Answer::whole([vec![StreamDelta::Refusal("I won't.".to_owned())]])]);
    let events = server.run(body("r1", &said("go"))).await;
    let [.., notice, end] = &events[..] else { panic!("{events:?}") };
    let expected = json!({"level": "warning", "text": "The model refused, or its provider withheld the answer.",
                          "reason": "content_filter", "stop": "refused"});
    assert_eq!((&notice["name"], &notice["value"]), (&json!("turnwright.notice"), &expected));
    assert_eq!(end["outcome"], json!({"type": "success"}));
}
