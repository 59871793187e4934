//! Tools that pages of AG-UI run: what their people say meanwhile, what fails, and what the page calls the results.

use turnwright_core::{Entry, Outcome, ToolErrorKind, text_of};

use super::ag_ui::{body, said};
use super::*;

fn runs_pick(run: &str, messages: &[Value]) -> Value {
    let mut body = body(run, &json!(messages));
    body["tools"] = json!([{"name": "pick", "description": "Picks.", "parameters": {"type": "object"}}]);
    body
}

/// What a page has once its tool was called, and the name of the call.
async fn asked(server: &Server) -> (Vec<Value>, Value) {
    let page = said("Go").as_array().unwrap().clone();
    let events = server.run(runs_pick("r1", &page)).await;
    let start = events.iter().find(|event| event["type"] == "TOOL_CALL_START").unwrap();
    let function = json!({"name": "pick", "arguments": "{}"});
    let call = json!({"id": start["toolCallId"], "type": "function", "function": function});
    let answer = json!({"id": start["parentMessageId"], "role": "assistant", "toolCalls": [call]});
    ([page, vec![answer]].concat(), start["toolCallId"].clone())
}

fn result(call: &Value, content: &Value) -> Value {
    json!({"id": "t1", "role": "tool", "toolCallId": call, "content": content})
}

fn picks() -> Answer {
    Answer::whole([call(0, "pick", "{}")])
}

#[tokio::test]
async fn what_a_person_says_before_the_result_of_a_page_is_said_once_and_stays() {
    let server = server([picks(), Answer::whole([text("Rouge.")])]);
    let (mut page, call) = asked(&server).await;
    page.extend([json!({"id": "u2", "role": "user", "content": "In French."}), result(&call, &json!("red"))]);
    let told = server.run(runs_pick("r2", &page)).await;
    assert_eq!(told.last().unwrap()["outcome"]["type"], "success", "{told:?}");
    assert_eq!(server.said().await, ["Go", "In French."]);
    // A page that lost the answer says nothing new, by whatever run.
    let again = server.run(runs_pick("r3", &page)).await;
    assert!(again.iter().any(|event| event["delta"] == "Rouge."), "{again:?}");
    assert_eq!(server.said().await, ["Go", "In French."]);

    let mut back = page.clone();
    back.push(json!({"id": "x", "role": "assistant", "content": "Rou"}));
    let back = server.run(runs_pick("r4", &back)).await;
    let snapshot = back[1]["messages"].as_array().unwrap();
    let names: Vec<&str> = snapshot.iter().map(|message| message["id"].as_str().unwrap()).collect();
    let (answer, last) = (page[1]["id"].as_str().unwrap(), names[names.len() - 1]);
    assert_eq!(names, ["Go", answer, "t1", "u2", last]);
    assert_eq!(server.said().await, ["Go", "In French."]);
}

#[tokio::test]
async fn a_tool_of_a_page_that_failed_is_told_as_one() {
    let outcomes = async |server: &Server| {
        let journal = server.engine.journal(&"c1".parse().unwrap()).await.unwrap();
        let results = journal.entries().iter().filter_map(|stored| match &*stored.entry {
            Entry::Result(result) => Some((text_of(&result.content), result.outcome)),
            _ => None,
        });
        results.collect::<Vec<_>>()
    };
    let failed = Outcome::Error(ToolErrorKind::ExecutionFailed);
    for (content, expected) in [
        (json!(""), "the camera is off"),
        (json!("no picture"), "the camera is off\nno picture"),
        (json!([{"type": "text", "text": "no picture"}]), "the camera is off\nno picture"),
    ] {
        let (here, moved) = (server([picks(), Answer::whole([text("Oh.")])]), server([Answer::whole([text("Oh.")])]));
        let (page, call) = asked(&here).await;
        let mut gave = result(&call, &content);
        gave["error"] = json!("the camera is off");
        let page = [page, vec![gave]].concat();
        here.run(runs_pick("r2", &page)).await;
        // The same where the thread is new and the history is taken over.
        moved.run(runs_pick("r1", &page)).await;
        for server in [here, moved] {
            assert_eq!(outcomes(&server).await, [(expected.to_owned(), failed)], "{content}");
        }
    }
    let server = server([picks(), Answer::whole([text("Fine.")])]);
    let (page, call) = asked(&server).await;
    let mut gave = result(&call, &json!("red"));
    gave["error"] = Value::Null;
    server.run(runs_pick("r2", &[page, vec![gave]].concat())).await;
    assert_eq!(outcomes(&server).await, [("red".to_owned(), Outcome::Success)]);
}
