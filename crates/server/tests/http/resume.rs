//! What pages of AG-UI answer to interrupts, alone and with what they say beside it.

use futures_util::future::join_all;
use turnwright_core::{ProviderFailure, ProviderFailureKind};
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

/// A run that is told again: without what the page is told beside it, which comes with it.
fn again(events: &[Value]) -> (Vec<Value>, Vec<Value>) {
    events.iter().cloned().partition(|event| !["MESSAGES_SNAPSHOT", "CUSTOM"].contains(&event["type"].as_str().unwrap()))
}

#[tokio::test]
async fn an_answer_of_ag_ui_that_is_another_than_the_stored_one_changes_nothing_and_is_told_that() {
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
        let (run, beside) = again(&server.run(resumes("r2", &json!([]), &json!([answer(&asked[0], &other)]))).await);
        assert_eq!(run, told);
        let text = "lab__touch had been allowed with other arguments before this answer came; that counts.";
        assert_eq!(beside[1]["value"], json!({"level": "warning", "text": text}), "{beside:?}");
    }
    let (run, beside) = again(&server.run(resumes("r2", &json!([]), &json!([given]))).await);
    assert_eq!((run, beside.len()), (told, 1));
    assert_eq!(server.source.effects().len(), 1);
}

#[tokio::test]
async fn a_page_of_ag_ui_hears_what_was_decided_at_another_door_whatever_it_answers() {
    for (elsewhere, mine, had, effects) in [("deny", true, "denied", 0), ("allow", false, "allowed", 1)] {
        let server = touching(1);
        let asked = asked(&server.run(body("r1", &said("Touch!"))).await);
        let decided = server.post("/api/v1/conversations/c1/calls/call_4_0/decision", json!({"decision": elsewhere})).await;
        assert!(decided.status.is_success(), "{}", decided.body);
        let late = json!([answer(&asked[0], &json!({"approved": mine}))]);
        let told = server.run(resumes("r2", &said("Touch!"), &late)).await;
        let text = format!("lab__touch had been {had} before this answer came; that counts.");
        assert!(told.iter().any(|event| event["value"]["text"] == text.as_str()), "{told:?}");
        let has = |kind: &str| kinds(&told).contains(&kind);
        assert!(has("TOOL_CALL_RESULT") && has("TEXT_MESSAGE_CONTENT"), "{told:?}");
        assert_eq!(told.last().unwrap()["outcome"], json!({"type": "success"}));
        // What is said beside it is said.
        let page = json!([said("Touch!")[0], {"id": "msg_9", "role": "assistant", "content": "Touched."}, said("more")[0]]);
        let told = server.run(resumes("r3", &page, &late)).await;
        assert_eq!(told.last().unwrap()["outcome"], json!({"type": "success"}), "{told:?}");
        assert_eq!(
            (server.said().await, server.source.effects().len()),
            (vec!["Touch!".to_owned(), "more".to_owned()], effects)
        );
    }
}

#[tokio::test]
async fn the_same_answers_again_are_told_after_what_was_said_before_them_so_that_a_page_holds_each_once() {
    let server = touching(1);
    let asked = asked(&server.run(body("r1", &said("Touch!"))).await);
    let request = resumes("r2", &said("Touch!"), &json!([approves(&asked[0])]));
    let told = server.run(request.clone()).await;
    let (run, beside) = again(&server.run(request).await);
    assert_eq!(run, told);
    let call = json!({"id": "call_4_0_c1", "type": "function", "function": {"name": "lab__touch", "arguments": "{\"at\":0}"}});
    let before = json!([said("Touch!")[0], {"id": "msg_4", "role": "assistant", "content": "", "toolCalls": [call]}]);
    assert_eq!(beside, [json!({"type": "MESSAGES_SNAPSHOT", "messages": before})]);
}

#[tokio::test]
async fn what_a_page_brought_itself_is_in_what_it_is_told_as_it_comes_back() {
    let gate = Arc::new(Semaphore::new(0));
    let server = server([Answer::whole([call(0, "pick", "{}")]), Answer::whole([text("Red.")]).gated(&gate)]);
    let with_tool = |run: &str, messages: &Value| {
        let mut body = body(run, messages);
        body["tools"] = json!([{"name": "pick", "description": "Picks.", "parameters": {"type": "object"}}]);
        body
    };
    let first = server.run(with_tool("r1", &said("Pick!"))).await;
    let pending = first.last().unwrap()["outcome"]["pendingToolCallIds"][0].clone();
    let made = json!({"id": "msg_4", "role": "assistant", "content": "", "toolCalls": [
        {"id": pending, "type": "function", "function": {"name": "pick", "arguments": "{}"}}]});
    let result = json!({"id": "r", "role": "tool", "toolCallId": pending, "content": "red"});
    let page = json!([said("Pick!")[0], made, result]);
    let mut half = page.clone();
    half.as_array_mut().unwrap().push(json!({"id": "msg_9", "role": "assistant", "content": "Re"}));
    // The page loses the answer in the middle of it.
    let comes_back = async {
        let has_result = |journal: &turnwright_core::Journal| {
            journal.entries().iter().any(|stored| matches!(&*stored.entry, turnwright_core::Entry::Result(_)))
        };
        while !server.engine.look(&"c1".parse().unwrap(), has_result).await.unwrap() {
            tokio::task::yield_now().await;
        }
        let goes_on = async {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            gate.add_permits(9);
        };
        tokio::join!(server.run(with_tool("r3", &half)), goes_on).0
    };
    let (told, back) = tokio::join!(server.run(with_tool("r2", &page)), comes_back);
    assert_eq!(told.last().unwrap()["outcome"]["type"], "success", "{told:?}");
    let snapshot = back.iter().find(|event| event["type"] == "MESSAGES_SNAPSHOT").unwrap();
    let results: Vec<&Value> =
        snapshot["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "tool").collect();
    assert_eq!(results.len(), 1, "{back:?}");
    assert_eq!((&results[0]["toolCallId"], &results[0]["content"]), (&pending, &json!("red")));
    assert!(kinds(&back).contains(&"TEXT_MESSAGE_CONTENT"), "{back:?}");
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
    let too_long = resumes("r2", &and(&"x".repeat(200)), &json!([approves(&asked[0])]));
    for (wrong, status) in [(no_model, 404), (no_tool, 422), (too_long, 413)] {
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
    let (run, _) = again(&server.run(resumes("r2", &and("more"), &json!([approves(&first[0])]))).await);
    assert_eq!(run, told);
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

#[tokio::test]
async fn a_page_of_ag_ui_is_told_files_as_it_sent_them_and_tries_a_turn_again_with_them() {
    let data = |kind: &str, mime_type: &str, value: &str| json!({"type": kind, "source": {"type": "data", "value": value, "mimeType": mime_type}});
    for file in [
        data("document", "application/pdf", "JVBERi0xLjQK"),
        data("document", "text/plain", "bm90ZSB0ZXh0"),
        data("video", "video/mp4", "AAAAHGZ0eXA="),
    ] {
        let failing = Answer::of([]).failing(ProviderFailure::new(ProviderFailureKind::InvalidRequest, "no"));
        let server = server([failing, Answer::whole([text("Read.")])]);
        let content = json!([{"type": "text", "text": "Read!"}, file]);
        let sent = json!([{"id": "u1", "role": "user", "content": content}]);
        assert_eq!(server.run(body("r1", &sent)).await.last().unwrap()["type"], "RUN_ERROR");
        let back = server.run(body("r2", &json!([]))).await;
        let held = back.iter().find(|event| event["type"] == "MESSAGES_SNAPSHOT").unwrap()["messages"].clone();
        assert_eq!(held, json!([{"id": "msg_1", "role": "user", "content": content}]));
        let tried = server.run(body("r3", &held)).await;
        assert_eq!(tried.last().unwrap()["outcome"]["type"], "success", "{tried:?}");
        assert_eq!(server.said().await.len(), 1, "{file}");
    }
}
