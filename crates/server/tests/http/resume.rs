//! What pages of AG-UI answer to interrupts, alone and with what they say beside it.

use futures_util::future::join_all;
use turnwright_engine::Limits;

use super::ag_ui::{body, kinds, said};
use super::*;

/// A server whose model touches something this often, and asks each time.
fn touching(times: usize) -> Server {
    let touch = |at: usize| Answer::whole([call(0, "lab__touch", &json!({"at": at}).to_string())]);
    server((0..times).map(touch).chain(["Touched.", "Once more."].map(|said| Answer::whole([text(said)]))))
}

/// The names of the interrupts with which a run ended.
fn asked(events: &[Value]) -> Vec<String> {
    let interrupts = events.last().unwrap()["outcome"]["interrupts"].as_array().cloned().unwrap_or_default();
    interrupts.iter().map(|interrupt| interrupt["id"].as_str().unwrap().to_owned()).collect()
}

fn answer(interrupt: &str, payload: &Value) -> Value {
    json!({"interruptId": interrupt, "status": "resolved", "payload": payload})
}

fn approves(interrupt: &str) -> Value {
    answer(interrupt, &json!({"approved": true}))
}

fn resumes(run: &str, messages: &Value, answers: &Value) -> Value {
    let mut body = body(run, messages);
    body["resume"] = answers.clone();
    body
}

/// What the page has that said this first, with something new.
fn and(new: &str) -> Value {
    json!([said("Touch!")[0], {"id": new, "role": "user", "content": new}])
}

fn refusal(events: &[Value]) -> &str {
    assert_eq!(kinds(events), ["RUN_ERROR"], "{events:?}");
    events[0]["message"].as_str().unwrap()
}

#[tokio::test]
async fn what_is_said_with_answers_to_nothing_that_is_open_declines_nothing() {
    let server = touching(2);
    let first = asked(&server.run(body("r1", &said("Touch!"))).await);
    let second = asked(&server.run(resumes("r2", &json!([]), &json!([approves(&first[0])]))).await);
    assert_eq!((second.len(), server.source.effects().len()), (1, 1));
    for stale in [json!([approves(&first[0])]), json!([answer("question_4_0_0_c1", &json!({"name": "x"}))])] {
        let refused = server.run(resumes("r3", &and("more"), &stale)).await;
        let is_never_asked = stale[0]["interruptId"] == "question_4_0_0_c1";
        let names = if is_never_asked { "question_4_0_0_c1" } else { second[0].as_str() };
        assert!(refusal(&refused).contains(names), "{refused:?}");
    }
    assert_eq!(server.said().await, ["Touch!"]);
    let resumed = server.run(resumes("r4", &json!([]), &json!([approves(&second[0])]))).await;
    assert_eq!((&resumed.last().unwrap()["outcome"]["type"], server.source.effects().len()), (&json!("success"), 2));
}

#[tokio::test]
async fn an_answer_of_ag_ui_that_is_another_than_the_stored_one_is_refused() {
    let server = touching(1);
    let asked = asked(&server.run(body("r1", &said("Touch!"))).await);
    let given = answer(&asked[0], &json!({"approved": true, "editedArgs": {"at": 7}}));
    let told = server.run(resumes("r2", &json!([]), &json!([given]))).await;
    for other in [
        json!({"approved": false}),
        json!({"approved": true}),
        json!({"approved": true, "editedArgs": {"at": 8}}),
        json!({"approved": true, "editedArgs": {"at": 7}, "reason": "because"}),
    ] {
        let refused = server.run(resumes("r3", &json!([]), &json!([answer(&asked[0], &other)]))).await;
        assert!(refusal(&refused).contains("was answered otherwise before"), "{refused:?}");
    }
    assert_eq!(server.run(resumes("r2", &json!([]), &json!([given]))).await, told);
    assert_eq!(server.source.effects().len(), 1);
}

#[tokio::test]
async fn a_request_of_ag_ui_that_is_refused_has_decided_nothing() {
    let server = touching(1);
    server.engine.limit(Limits { message_bytes: 100, ..Limits::default() });
    let asked = asked(&server.run(body("r1", &said("Touch!"))).await);
    let right = resumes("r2", &and("more"), &json!([approves(&asked[0])]));
    let mut no_model = right.clone();
    no_model["forwardedProps"] = json!({"model": "nope"});
    let mut no_tool = right.clone();
    no_tool["tools"] = json!([{"name": "bad name !"}]);
    let mut other_tool = right.clone();
    other_tool["tools"] = json!([{"name": "pick"}]);
    let too_long = resumes("r2", &and(&"x".repeat(200)), &json!([approves(&asked[0])]));
    for (wrong, status) in [(no_model, 404), (no_tool, 422), (other_tool, 409), (too_long, 413)] {
        let refused = server.post("/ag-ui", wrong.clone()).await;
        assert_eq!(refused.problem().0, status, "{wrong}");
        assert_eq!(server.get("/api/v1/conversations/c1/calls").await.json()["data"].as_array().unwrap().len(), 1, "{wrong}");
    }
    assert_eq!((server.said().await, server.source.effects().len()), (vec!["Touch!".to_owned()], 0));
    assert_eq!(server.run(right).await.last().unwrap()["outcome"]["type"], "success");
    assert_eq!((server.said().await.len(), server.source.effects().len()), (2, 1));
}

#[tokio::test]
async fn what_is_said_beside_an_answer_declines_nothing_that_is_asked_after_it() {
    let server = touching(2);
    let first = asked(&server.run(body("r1", &said("Touch!"))).await);
    let told = server.run(resumes("r2", &and("more"), &json!([approves(&first[0])]))).await;
    let second = asked(&told);
    assert_eq!((second.len(), server.source.effects().len()), (1, 1), "{told:?}");
    assert_eq!(server.said().await, ["Touch!", "more"]);
    // In one with the answer: a model sees both or none.
    let journal = server.engine.journal(&"c1".parse().unwrap()).await.unwrap();
    let kinds: Vec<bool> = journal
        .entries()
        .iter()
        .filter_map(|stored| match &*stored.entry {
            turnwright_core::Entry::User(_) => Some(true),
            turnwright_core::Entry::Decision(_) => Some(false),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, [true, true, false]);
    // The same again is told again, whatever is open by now.
    assert_eq!(server.run(resumes("r2", &and("more"), &json!([approves(&first[0])]))).await, told);
    assert_eq!(server.said().await, ["Touch!", "more"]);
}

#[tokio::test(start_paused = true)]
async fn the_same_answers_of_ag_ui_at_one_moment_are_one() {
    for messages in [said("Touch!"), and("more")] {
        let server = touching(1);
        let asked = asked(&server.run(body("r1", &said("Touch!"))).await);
        let answers = json!([approves(&asked[0])]);
        let runs = join_all(["r2", "r2", "r3", "r4"].map(|run| server.run(resumes(run, &messages, &answers)))).await;
        for told in runs {
            assert_eq!(told.last().unwrap()["outcome"], json!({"type": "success"}), "{told:?}");
        }
        assert_eq!((server.said().await.len(), server.source.effects().len()), (messages.as_array().unwrap().len(), 1));
    }
}

#[tokio::test]
async fn words_beside_an_answer_that_repeat_what_was_said_last_are_new_where_the_page_has_both() {
    let has_calls = json!({"id": "msg_4", "role": "assistant", "content": "",
        "toolCalls": [{"id": "call_4_0_c1", "type": "function", "function": {"name": "lab__touch", "arguments": "{}"}}]});
    let nameless = json!({"role": "user", "content": "Touch!"});
    let named = |id: &str| json!({"id": id, "role": "user", "content": "Touch!"});
    for (page, is_new) in [
        (json!([named("Touch!"), has_calls, named("u2")]), true),
        (json!([named("Touch!"), named("u2")]), true),
        (json!([nameless, has_calls, nameless]), true),
        (json!([named("u2")]), true),
        (json!([named("Touch!")]), false),
        (json!([nameless]), false),
        (json!([named("msg_1")]), false),
    ] {
        let server = touching(1);
        let asked = asked(&server.run(body("r1", &said("Touch!"))).await);
        let answers = json!([approves(&asked[0])]);
        // Also where another run says the same again.
        for run in ["r2", "r3"] {
            let told = server.run(resumes(run, &page, &answers)).await;
            assert_eq!(told.last().unwrap()["outcome"]["type"], "success", "{page}: {told:?}");
            assert_eq!(server.said().await.len(), if is_new { 2 } else { 1 }, "{page}");
        }
    }
}

#[tokio::test]
async fn a_result_in_a_new_thread_whose_call_is_not_there_is_refused_by_its_name() {
    let server = touching(0);
    let result = json!([{"id": "t", "role": "tool", "toolCallId": "call_9_0_zz", "content": "x"}]);
    let refused = server.post("/ag-ui", body("r1", &result)).await;
    assert_eq!(refused.problem().0, 422);
    let detail = refused.json()["detail"].clone();
    assert_eq!(detail, "`messages[0]` is the result of the call `call_9_0_zz`, which no answer before it holds");
}
