//! Pages whose client of AG-UI is older than 1.0, as `@copilotkit/runtime` has it: they say no version, and fail at what they do not
//! know of an outcome.

use turnwright_core::{ContentBlock, EmbeddedResource, Entry, Finish, FinishReason, StreamDelta, ToolChoice};

use super::ag_ui::kinds;
use super::*;

/// What `HttpAgent` of `@ag-ui/client` 0.0.59 sends.
fn body(run: &str, messages: &Value) -> Value {
    let pick = json!({"name": "pick", "description": "Picks.", "parameters": {"type": "object"}});
    json!({"threadId": "c1", "runId": run, "tools": [pick], "context": [], "forwardedProps": {}, "state": {}, "messages": messages})
}

fn said(text: &str) -> Value {
    json!({"id": text, "role": "user", "content": text})
}

#[tokio::test]
async fn a_page_before_1_0_is_told_of_its_calls_beside_an_outcome_that_it_knows() {
    let server = server([Answer::whole([call(0, "pick", "{}"), call(1, "pick", "{}")]), Answer::whole([text("Red.")])]);
    let asked = server.run(body("r1", &json!([said("Pick!")]))).await;
    let starts: Vec<&Value> = asked.iter().filter(|event| event["type"] == "TOOL_CALL_START").collect();
    let calls: Vec<&Value> = starts.iter().map(|start| &start["toolCallId"]).collect();
    let end = asked.last().unwrap();
    assert_eq!(end["outcome"], json!({"type": "success"}));
    assert_eq!(end["result"], json!({"pendingToolCallIds": calls}));

    let function = json!({"name": "pick", "arguments": "{}"});
    let made = calls.iter().map(|call| json!({"id": call, "type": "function", "function": function})).collect::<Value>();
    let mut page = vec![said("Pick!"), json!({"id": starts[0]["parentMessageId"], "role": "assistant", "toolCalls": made})];
    page.extend(
        calls.iter().map(|call| json!({"id": format!("of {call}"), "role": "tool", "toolCallId": call, "content": "red"})),
    );
    let told = server.run(body("r2", &json!(page))).await;
    let end = told.last().unwrap();
    assert_eq!((&end["outcome"], end.get("result")), (&json!({"type": "success"}), None), "{told:?}");
    assert!(told.iter().any(|event| event["delta"] == "Red."), "{told:?}");
}

#[tokio::test]
async fn a_page_before_1_0_is_told_in_a_notice_that_its_run_was_cancelled() {
    let gate = Arc::new(Semaphore::new(1));
    let ends = StreamDelta::Finished(Finish { reason: FinishReason::Stop, raw: None });
    let server = server([Answer::of([text("Hal"), vec![StreamDelta::Text("f.".to_owned()), ends]]).gated(&gate)]);
    let stops = async {
        while gate.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert!(server.post("/api/v1/conversations/c1/cancel", Value::Null).await.status.is_success());
    };
    let (told, ()) = tokio::join!(server.run(body("r1", &json!([said("Go")]))), stops);
    let [.., notice, end] = told.as_slice() else { panic!("{told:?}") };
    let value = json!({"level": "warning", "text": "The turn was cancelled.", "reason": "cancelled"});
    assert_eq!(*notice, json!({"type": "CUSTOM", "name": "turnwright.notice", "value": value}));
    assert_eq!(end["outcome"], json!({"type": "success"}));
}

#[tokio::test]
async fn the_bytes_of_a_page_before_1_0_are_taken_in_its_form() {
    let server = server([Answer::whole([text("Seen.")])]);
    let part = |mime_type: &str, data: &str| json!({"type": "binary", "mimeType": mime_type, "data": data});
    let mut document = part("application/pdf", "JVBERi0=");
    document["filename"] = json!("plan.pdf");
    let parts = json!([{"type": "text", "text": "See"}, part("image/png", "aW1n"), part("audio/wav", "d2F2"), document]);
    let told = server.run(body("r1", &json!([{"id": "u1", "role": "user", "content": parts}]))).await;
    assert_eq!(told.last().unwrap()["type"], "RUN_FINISHED", "{told:?}");
    let journal = server.engine.journal(&"c1".parse().unwrap()).await.unwrap();
    let Entry::User(message) = &*journal.entries()[0].entry else { panic!("nothing was said") };
    let resource = EmbeddedResource {
        uri: "file:///plan.pdf".to_owned(),
        mime_type: Some("application/pdf".to_owned()),
        text: None,
        blob: Some("JVBERi0=".to_owned()),
    };
    let expected = [
        ContentBlock::text("See"),
        ContentBlock::Image { data: "aW1n".to_owned(), mime_type: "image/png".to_owned() },
        ContentBlock::Audio { data: "d2F2".to_owned(), mime_type: "audio/wav".to_owned() },
        ContentBlock::Resource { resource },
    ];
    assert_eq!(message.content, expected);
    // An address is refused, as in the form of 1.0.
    let address = json!([{"type": "binary", "mimeType": "image/png", "url": "https://example.com/a.png"}]);
    let refused = server.post("/ag-ui", body("r2", &json!([{"id": "u2", "role": "user", "content": address}]))).await;
    assert_eq!(refused.problem(), (422, "invalid_request".to_owned()));
    assert_eq!(kinds(&server.run(body("r3", &json!([]))).await), ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]);
}

#[tokio::test]
async fn what_a_page_forwards_as_its_tool_choice_is_heeded_in_the_form_of_chat_completions_alone() {
    let named = |name: &str| json!({"type": "function", "function": {"name": name}});
    for (forwarded, expected) in [
        (named("pick"), Some(ToolChoice::Tool("pick".to_owned()))),
        (named("lab__look"), Some(ToolChoice::Tool("lab__look".to_owned()))),
        (json!("required"), Some(ToolChoice::Required)),
        (named("no_such_tool"), None),
        (json!({"type": "tool", "toolName": "pick"}), None),
        (json!(7), None),
    ] {
        let server = server([Answer::whole([call(0, "pick", "{}")])]);
        let mut run = body("r1", &json!([said("Suggest!")]));
        run["forwardedProps"] = json!({"toolChoice": forwarded});
        assert_eq!(server.run(run).await.last().unwrap()["type"], "RUN_FINISHED", "{forwarded}");
        let look = |journal: &turnwright_core::Journal| journal.turn().unwrap().settings().tool_choice.clone();
        let chosen = server.engine.look(&"c1".parse().unwrap(), look).await.unwrap();
        assert_eq!(chosen, expected, "{forwarded}");
    }
}
