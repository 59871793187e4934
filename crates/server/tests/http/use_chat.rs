//! What stock `useChat` asks and is told besides the plain case.

use std::time::Duration;

use tokio::time::timeout;
use turnwright_core::{ApproveMode, Control, Entry, Journal, ProviderFailure, ProviderFailureKind, TurnStatus, Verdict};
use turnwright_engine::TurnState;
use turnwright_testkit::Fuse;

use super::*;

fn says(text: &str) -> Value {
    json!({"id": "c1", "trigger": "submit-message",
           "messages": [{"id": text, "role": "user", "parts": [{"type": "text", "text": text}]}]})
}

/// The page's answers to calls of the message with this name.
fn answers(message: &str, answers: &[(&str, bool)]) -> Value {
    let parts: Vec<Value> = answers
        .iter()
        .map(|(call, approved)| {
            let approval = json!({"id": call.replacen("call_", "appr_", 1), "approved": approved});
            json!({"type": "dynamic-tool", "toolName": "lab__touch", "toolCallId": call, "state": "approval-responded",
                   "input": {}, "approval": approval})
        })
        .collect();
    json!({"id": "c1", "trigger": "submit-message", "messages": [{"id": message, "role": "assistant", "parts": parts}]})
}

/// A page whose person allowed one call of the turn's first message, and then said all this.
fn allows_and_says(call: &str, said: &[&str]) -> Value {
    let messages = [says("Touch!"), answers("turn_1", &[(call, true)])].into_iter().chain(said.iter().map(|said| says(said)));
    let messages: Vec<Value> = messages.map(|page| page["messages"][0].clone()).collect();
    json!({"id": "c1", "trigger": "submit-message", "messages": messages})
}

/// The calls that a stream asks about.
fn asked_about(answer: &Answered) -> Vec<String> {
    let chunks = answer.chunks();
    let asked = chunks.iter().filter(|chunk| chunk.contains("tool-approval-request"));
    asked.map(|chunk| serde_json::from_str::<Value>(chunk).unwrap()["toolCallId"].as_str().unwrap().to_owned()).collect()
}

/// The kinds of a stream's chunks, and what they say.
fn outline(answer: &Answered) -> Vec<String> {
    let chunks = answer.chunks();
    let told = chunks.iter().filter_map(|chunk| serde_json::from_str::<Value>(chunk).ok()).map(|chunk| {
        let more = ["messageId", "toolCallId", "approved", "delta", "finishReason"].map(|key| &chunk[key]);
        let more =
            more.into_iter().filter(|more| !more.is_null()).map(|more| more.as_str().map_or(more.to_string(), str::to_owned));
        std::iter::once(chunk["type"].as_str().unwrap().to_owned()).chain(more).collect::<Vec<_>>().join(" ")
    });
    told.filter(|told| !told.starts_with("data-")).collect()
}

impl Server {
    pub(super) async fn decide(&self, call: &str, decision: &str) {
        let path = format!("/api/v1/conversations/c1/calls/{call}/decision");
        let decided = self.post(&path, json!({"decision": decision})).await;
        assert!(decided.status.is_success(), "{}", decided.body);
    }
}

#[tokio::test]
async fn a_history_has_the_words_with_which_a_person_denied() {
    let server = server([Answer::whole([call(0, "lab__touch", "{}")]), Answer::whole([text("Then not.")])]);
    let first = server.post("/api/chat?ui=6", says("Touch!")).await;
    let mut denies = answers("turn_1", &[(&asked_about(&first)[0], false)]);
    denies["messages"][0]["parts"][0]["approval"]["reason"] = json!("Not today.");
    server.post("/api/chat?ui=6", denies.clone()).await;
    for version in ["6", "7"] {
        let path = format!("/api/v1/conversations/c1/messages?format=ai-sdk-ui&ui={version}");
        let parts = server.get(&path).await.json()["data"][1]["parts"].clone();
        let of_call = parts.as_array().unwrap().iter().find(|part| part["toolCallId"].is_string()).unwrap();
        assert_eq!(of_call["approval"]["reason"], "Not today.", "{version} {parts}");
    }
}

#[tokio::test]
async fn a_yes_to_what_only_another_client_can_run_is_refused() {
    let server = server([Answer::whole([call(0, "pick", "{}")]), Answer::whole([text("Then not.")])]);
    let pick = json!({"type": "function", "function": {"name": "pick", "parameters": {"type": "object"}}});
    let asks = json!({"model": "test/scripted", "messages": [{"role": "user", "content": "Pick!"}], "tools": [pick],
        "metadata": {"conversation_id": "c1"}});
    server.post("/v1/chat/completions", asks).await;
    let parts = server.get("/api/v1/conversations/c1/messages?format=ai-sdk-ui&ui=6").await.json()["data"][1]["parts"].clone();
    let call = parts.as_array().unwrap().iter().find_map(|part| part["toolCallId"].as_str()).unwrap().to_owned();
    let refused = server.post("/api/chat?ui=6", answers("turn_1", &[(&call, true)])).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["code"]), (422, &json!("invalid_request")), "{}", refused.body);
    let denied = server.post("/api/chat?ui=6", answers("turn_1", &[(&call, false)])).await;
    assert!(denied.body.contains("Then not."), "{}", denied.body);
}

#[tokio::test]
async fn use_chat_is_told_what_another_door_decided_and_what_came_of_it() {
    let server = server([Answer::whole([call(0, "lab__touch", "{}")]), Answer::whole([text("Then not.")])]);
    let first = server.post("/api/chat?ui=7", says("Touch!")).await;
    let asked = asked_about(&first);
    server.decide(&asked[0], "deny").await;
    server.engine.wait(&"c1".parse().unwrap(), "turn_1".parse().unwrap()).await.unwrap();
    // The page does not know it, and comes late with another answer.
    let second = server.post("/api/chat?ui=7", answers("turn_1", &[(&asked[0], true)])).await;
    let call = &asked[0];
    let expected = [
        "start turn_1".to_owned(),
        "tool-approval-response false".to_owned(),
        format!("tool-output-denied {call}"),
        "start-step".to_owned(),
        "text-start".to_owned(),
        "text-delta Then not.".to_owned(),
        "text-end".to_owned(),
        "finish-step".to_owned(),
        "finish stop".to_owned(),
    ];
    assert_eq!(outline(&second), expected);
    assert!(server.source.effects().is_empty());
}

#[tokio::test]
async fn use_chat_is_told_of_each_call_that_it_knows_nothing_of_yet() {
    let calls = [call(0, "lab__touch", r#"{"n":1}"#), call(1, "lab__touch", r#"{"n":2}"#)];
    let server = server([Answer::whole(calls), Answer::whole([text("Both.")])]);
    let asked = asked_about(&server.post("/api/chat?ui=6", says("Touch!")).await);
    let [one, two] = &asked[..] else { panic!("{asked:?}") };
    server.decide(one, "allow").await;
    let state = server.engine.wait(&"c1".parse().unwrap(), "turn_1".parse().unwrap()).await.unwrap();
    assert_eq!(state, TurnState::Parked);
    let second = server.post("/api/chat?ui=6", answers("turn_1", &[(one, true), (two, true)])).await;
    let told = outline(&second);
    for call in [one, two] {
        assert!(told.contains(&format!("tool-output-available {call}")), "{told:?}");
    }
    assert_eq!(told.last().unwrap(), "finish stop");
    assert_eq!(server.source.effects().len(), 2);
}

#[tokio::test]
async fn what_is_said_beside_an_open_approval_declines_it_and_is_answered() {
    let server = server([
        Answer::whole([call(0, "lab__touch", "{}")]),
        Answer::whole([call(0, "lab__touch", r#"{"again":1}"#)]),
        Answer::whole([text("Touched.")]),
    ]);
    let first = asked_about(&server.post("/api/chat?ui=7", says("Touch!")).await);
    let joined = server.post("/api/chat?ui=7", says("never mind")).await;
    let told = outline(&joined);
    let named = told[0].strip_prefix("start ").unwrap().to_owned();
    assert!(named.starts_with("turn_1_"), "{told:?}");
    // The client takes no answer to what it was not told of in the same message.
    let place = |kind: &str| told.iter().position(|told| told.starts_with(kind)).unwrap();
    assert!(place("tool-input-available") < place("tool-approval-request"), "{told:?}");
    assert!(place("tool-approval-request") < place("tool-approval-response false"), "{told:?}");
    assert!(place("tool-approval-response false") < place(&format!("tool-output-denied {}", first[0])), "{told:?}");
    assert_eq!(told.last().unwrap(), "finish tool-calls");
    // Who comes back is told the message before too, and that one as its own.
    let back = server.get("/api/chat/c1/stream?ui=7").await;
    let begun: Vec<String> = outline(&back).into_iter().filter(|told| told.starts_with("start ")).collect();
    assert_eq!((begun, asked_about(&back)), (vec!["start turn_1".to_owned(), told[0].clone()], asked_about(&joined)));
    // What is asked there is answered there.
    let asked = asked_about(&joined);
    let last = server.post("/api/chat?ui=7", answers(&named, &[(asked.last().unwrap(), true)])).await;
    let told = outline(&last);
    assert_eq!(told[0], format!("start {named}"));
    assert!(told.contains(&"text-delta Touched.".to_owned()), "{told:?}");
    assert_eq!(server.source.effects().len(), 1);
}

#[tokio::test]
async fn who_comes_back_before_anybody_joined_is_told_a_later_answer_under_its_own_name() {
    let gate = Arc::new(Semaphore::new(0));
    let looks = Answer::whole([text("Look."), call(0, "lab__look", "{}")]).gated(&gate);
    let server = server([looks, Answer::whole([text("Both.")])]);
    let path = "/api/v1/conversations/c1/messages";
    server.post("/api/v1/conversations", json!({"id": "c1"})).await;
    server.post(path, json!({"content": "first"})).await;
    let request = Request::builder().uri("/api/chat/c1/stream").header("host", "127.0.0.1:8700");
    let back = server.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let joined = server.post(path, json!({"content": "second"})).await;
    assert_eq!(joined.status, StatusCode::ACCEPTED, "{}", joined.body);
    let joined = joined.json();
    gate.add_permits(9);
    let (parts, body) = back.into_parts();
    let body = String::from_utf8(to_bytes(body, usize::MAX).await.unwrap().to_vec()).unwrap();
    let told = outline(&Answered { status: parts.status, headers: parts.headers, body });
    let begun: Vec<&String> = told.iter().filter(|told| told.starts_with("start ")).collect();
    let message = joined["message_id"].as_str().unwrap().strip_prefix("msg_").unwrap();
    assert_eq!(begun, ["start turn_1", &format!("start turn_1_{message}")], "{told:?}");
    assert_eq!(told.last().unwrap(), "finish stop");
}

#[tokio::test]
async fn what_is_said_may_wait_beside_an_open_approval_where_that_is_chosen() {
    let server = server([Answer::whole([call(0, "lab__touch", "{}")])]);
    server.post("/api/chat", says("Touch!")).await;
    let mut held = says("and more");
    held["on_waiting"] = json!("hold");
    let told = outline(&server.post("/api/chat", held).await);
    assert!(told.iter().all(|told| !told.starts_with("tool-output")), "{told:?}");
    assert_eq!(server.engine.waiting(&"c1".parse().unwrap()).await.unwrap().len(), 1);
    let back = server.get("/api/chat/c1/stream").await;
    assert_eq!(asked_about(&back).len(), 1, "who comes back can answer");
}

#[tokio::test]
async fn what_is_decided_beside_what_is_said_is_taken_and_the_rest_declined() {
    for (on_waiting, effects, waits) in [("deny", 1, 0), ("hold", 1, 1)] {
        let calls = [call(0, "lab__touch", r#"{"n":1}"#), call(1, "lab__touch", r#"{"n":2}"#)];
        let server = server([Answer::whole(calls), Answer::whole([text("One of them.")])]);
        let asked = asked_about(&server.post("/api/chat?ui=7", says("Touch!")).await);
        let mut page = allows_and_says(&asked[0], &["not the other"]);
        page["on_waiting"] = json!(on_waiting);
        let told = outline(&server.post("/api/chat?ui=7", page).await);
        let conversation = "c1".parse().unwrap();
        server.engine.wait(&conversation, "turn_1".parse().unwrap()).await.unwrap();
        assert_eq!(server.source.effects().len(), effects, "{on_waiting}: {told:?}");
        assert_eq!(server.engine.waiting(&conversation).await.unwrap().len(), waits, "{on_waiting}: {told:?}");
        if on_waiting == "deny" {
            assert!(told.contains(&format!("tool-output-available {}", asked[0])), "{told:?}");
            assert!(told.contains(&format!("tool-output-denied {}", asked[1])), "{told:?}");
            assert!(told.contains(&"text-delta One of them.".to_owned()), "{told:?}");
            // The client takes no output of a call that it was not told of in the same message.
            let place = |kind: &str| told.iter().position(|told| told.starts_with(kind)).unwrap();
            assert!(place("tool-input-available") < place("tool-output-available"), "{told:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn wherever_a_process_dies_what_is_decided_beside_what_is_said_is_decided_so_and_runs_at_most_once() {
    let answers = || [Answer::whole([text("One of them.")]), Answer::whole([text("Yes?")]), Answer::whole([text("No more.")])];
    let on = |store: MemoryStore, answers: Vec<Answer>| server_on(Arc::new(store), Arc::<MemoryDocuments>::default(), answers);
    let mut ran = 0;
    for fuse in (1..=8).flat_map(|append| [Fuse::Before(append), Fuse::After(append)]) {
        let store = MemoryStore::default();
        let calls = [call(0, "lab__touch", r#"{"n":1}"#), call(1, "lab__touch", r#"{"n":2}"#)];
        let asking = on(store.another_process(), vec![Answer::whole(calls)]);
        let asked = asked_about(&asking.post("/api/chat?ui=7", says("Touch!")).await);
        asking.engine.shutdown().await;

        let doomed = on(store.doomed_process(fuse), answers().into());
        let page = allows_and_says(&asked[0], &["not the other"]);
        let _died = timeout(Duration::from_mins(5), doomed.post("/api/chat?ui=7", page)).await;
        doomed.engine.shutdown().await;

        let next = on(store.another_process(), answers().into());
        next.engine.resume_open_turns().await.unwrap();
        let (conversation, turn) = ("c1".parse().unwrap(), "turn_1".parse().unwrap());
        // What nobody knows of may be asked about meanwhile.
        next.engine.wait(&conversation, turn).await.unwrap();
        let told = next.post("/api/chat?ui=7", allows_and_says(&asked[0], &["not the other", "and?"])).await;
        assert_eq!(told.status, StatusCode::OK, "{fuse:?}: {}", told.body);
        next.engine.wait(&conversation, turn).await.unwrap();
        let decisions = |journal: &Journal| {
            let decided = journal.entries().iter().filter_map(|stored| match &*stored.entry {
                Entry::Decision(decision) => Some((decision.call.to_string(), decision.verdict)),
                _ => None,
            });
            decided.take(2).collect::<Vec<_>>()
        };
        let expected = [(asked[0].clone(), Verdict::Allow), (asked[1].clone(), Verdict::Deny)];
        assert_eq!(next.engine.look(&conversation, decisions).await.unwrap(), expected, "{fuse:?}");
        let effects = doomed.source.effects().len() + next.source.effects().len();
        assert!(effects <= 1, "{fuse:?}: {effects} effects");
        ran += effects;
    }
    assert!(ran >= 12, "{ran}");
}

#[tokio::test]
async fn an_answer_to_what_nobody_asked_is_refused_so_that_no_page_sends_it_for_ever() {
    let server = server([Answer::whole([call(0, "lab__touch", "{}")])]);
    server.post("/api/chat", says("Touch!")).await;
    for unknown in ["call_3_7", "call_1_0", "call_99_0", "call_x"] {
        let refused = server.post("/api/chat", answers("turn_1", &[(unknown, true)])).await;
        assert_eq!(refused.problem(), (422, "invalid_request".to_owned()), "{unknown}");
    }
}

#[tokio::test]
async fn what_a_page_of_use_chat_wants_by_no_known_word_is_refused_and_nothing_is_said() {
    let server = server([Answer::whole([text("Hello.")])]);
    for unknown in ["submit-user-message", "Submit-message", ""] {
        let mut page = says("Hello");
        page["trigger"] = json!(unknown);
        let refused = server.post("/api/chat", page).await;
        let words = format!("`trigger`: unknown variant `{unknown}`, expected `submit-message` or `regenerate-message`");
        assert_eq!(refused.problem(), (422, "invalid_request".to_owned()), "{unknown}");
        assert_eq!(refused.json()["detail"], json!(format!("the request body is wrong: {words}")));
    }
    for absent in [Value::Null, json!("submit-message")] {
        let mut page = says("Hello");
        page["trigger"] = absent;
        assert!(server.post("/api/chat", page).await.body.contains("Hello."));
    }
}

#[tokio::test]
async fn a_history_for_use_chat_fits_the_stream() {
    let server = server([
        Answer::whole([call(0, "lab__touch", "{}")]),
        Answer::whole([call(0, "lab__touch", r#"{"again":1}"#)]),
        Answer::whole([text("Touched.")]),
    ]);
    let history = async || {
        let page = server.get("/api/v1/conversations/c1/messages?format=ai-sdk-ui").await.json();
        let messages = page["data"].as_array().unwrap().iter();
        messages.map(|message| (message["id"].as_str().unwrap().to_owned(), message["parts"].clone())).collect::<Vec<_>>()
    };
    let asked = asked_about(&server.post("/api/chat", says("Touch!")).await);
    let approval = json!({"id": asked[0].replacen("call_", "appr_", 1), "requestReason": "asked by approve mode ask"});
    let waits = json!({"type": "dynamic-tool", "toolName": "lab__touch", "toolCallId": asked[0], "state": "approval-requested",
                       "input": {}, "approval": approval, "toolMetadata": {"server": "lab", "tool": "touch"}});
    let told = history().await;
    assert_eq!(told.last().unwrap(), &("turn_1".to_owned(), json!([{"type": "step-start"}, waits])));
    // A message that joins is answered in one of its own, here too.
    let joined = outline(&server.post("/api/chat", says("never mind")).await)[0].strip_prefix("start ").unwrap().to_owned();
    let told = history().await;
    let names: Vec<&str> = told.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(names, ["msg_1", "turn_1", names[2], joined.as_str()]);
    assert_eq!(told[1].1[1]["state"], "output-denied");
    // A turn as it is shown whole is one message, in which what joined has its place.
    let turns = server.get("/api/v1/conversations/c1/turns").await.json();
    let chunks = turns["data"][0]["chunks"].as_array().unwrap();
    let count = |kind: &str| chunks.iter().filter(|chunk| chunk["type"] == kind).count();
    assert_eq!((count("start"), count("steering-message")), (1, 1), "{chunks:?}");
    assert_eq!(told[3].1[1]["state"], "approval-requested");
    let again = told[3].1[1]["toolCallId"].as_str().unwrap().to_owned();
    let last = server.post("/api/chat", answers(&joined, &[(&again, true)])).await;
    assert_eq!(outline(&last)[0], format!("start {joined}"));
    let page = server.get("/api/v1/conversations/c1/messages?format=ai-sdk-ui&limit=1").await.json();
    let cursor = page["next_cursor"].as_str().unwrap();
    let next = server.get(&format!("/api/v1/conversations/c1/messages?format=ai-sdk-ui&limit=1&cursor={cursor}")).await.json();
    assert_eq!(next["data"][0]["id"], "turn_1", "also where a page begins with it");
}

#[tokio::test]
async fn a_history_for_use_chat_has_the_parts_that_its_stream_left() {
    let calls = [
        text("Let me."),
        call(0, "lab__touch", r#"{"at":1}"#),
        call(1, "lab__touch", r#"{"at":2}"#),
        call(2, "lab__look", "[1"),
    ];
    let server = server([Answer::whole(calls), Answer::whole([text("Done.")])]);
    let file =
        json!({"type": "file", "mediaType": "text/plain", "filename": "a.txt", "url": "data:text/plain;base64,aGVsbG8="});
    let said = json!([{"type": "text", "text": "Touch!"}, file]);
    let page = json!({"id": "c1", "trigger": "submit-message", "messages": [{"id": "m", "role": "user", "parts": said}]});
    let asked = asked_about(&server.post("/api/chat?ui=7", page).await);
    let history = async |query: &str| {
        let page = server.get(&format!("/api/v1/conversations/c1/messages?format=ai-sdk-ui{query}")).await.json();
        let mut messages = page["data"].as_array().unwrap().clone();
        let parts = messages.iter_mut().flat_map(|message| message["parts"].as_array_mut().unwrap());
        for part in parts {
            part.get_mut("toolMetadata").and_then(Value::as_object_mut).map(|metadata| metadata.remove("durationMs"));
        }
        messages
    };
    let of_touch = json!({"server": "lab", "tool": "touch"});
    let waits = json!({"type": "dynamic-tool", "toolName": "lab__touch", "toolCallId": asked[1], "state": "approval-requested",
                       "input": {"at": 2}, "toolMetadata": of_touch,
                       "approval": {"id": "appr_4_1", "requestReason": "asked by approve mode ask"}});
    assert_eq!(history("").await[1]["parts"][3], waits);
    server.decide(&asked[0], "allow").await;
    server.decide(&asked[1], "deny").await;
    server.engine.wait(&"c1".parse().unwrap(), "turn_1".parse().unwrap()).await.unwrap();

    let told = history("").await;
    assert_eq!(told[0]["parts"], said);
    let expected = json!([
        {"type": "step-start"},
        {"type": "text", "text": "Let me.", "state": "done"},
        {"type": "dynamic-tool", "toolName": "lab__touch", "toolCallId": asked[0], "state": "output-available", "input": {"at": 1},
         "output": {"content": [{"type": "text", "text": "{\"at\":1}"}]}, "toolMetadata": of_touch,
         "approval": {"id": "appr_4_0", "requestReason": "asked by approve mode ask", "approved": true}},
        {"type": "dynamic-tool", "toolName": "lab__touch", "toolCallId": asked[1], "state": "output-denied", "input": {"at": 2},
         "toolMetadata": of_touch,
         "approval": {"id": "appr_4_1", "requestReason": "asked by approve mode ask", "approved": false}},
        {"type": "dynamic-tool", "toolName": "lab__look", "toolCallId": "call_4_2", "state": "output-available", "input": "[1",
         "output": told[1]["parts"][4]["output"], "toolMetadata": {"server": "lab", "tool": "look"}},
        {"type": "step-start"},
        {"type": "text", "text": "Done.", "state": "done"},
        {"type": "data-usage", "id": "usage", "data": told[1]["parts"][7]["data"]},
    ]);
    assert_eq!(told[1]["parts"], expected);
    assert_eq!(told[1]["parts"][4]["output"]["isError"], true);
    assert_eq!(told[1]["metadata"]["turnId"], "turn_1");
    // Clients before 6 know no approvals, and none that was denied.
    assert_eq!(history("&ui=5").await[1]["parts"][3]["state"], "output-error");
}

#[tokio::test(start_paused = true)]
async fn a_history_has_what_the_stream_tells_where_a_message_joined_and_the_turn_was_tried_again() {
    let gate = Arc::new(Semaphore::new(0));
    let failure = ProviderFailure::new(ProviderFailureKind::InvalidRequest, "no");
    let half = Answer::of([text("Half an")]).gated(&gate).failing(failure);
    let touches = Answer::whole([text("I touch."), call(0, "lab__touch", "{}")]);
    let server = server([half, touches, Answer::whole([text("Then not.")])]);
    let chat = server.post("/api/v1/conversations/c1/chat", json!({"content": "Touch!"}));
    let others = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        gate.add_permits(1);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let said = server.post("/api/v1/conversations/c1/messages", json!({"content": "and more"})).await;
        assert_eq!(said.status, StatusCode::ACCEPTED);
        gate.add_permits(9);
    };
    tokio::join!(chat, others);
    let (conversation, turn) = ("c1".parse().unwrap(), "turn_1".parse().unwrap());
    server.engine.wait(&conversation, turn).await.unwrap();
    server.post("/api/v1/conversations/c1/retry", json!({})).await;
    assert_eq!(server.engine.wait(&conversation, turn).await.unwrap(), TurnState::Parked);

    let history = async |ui: &str| {
        let page = server.get(&format!("/api/v1/conversations/c1/messages?format=ai-sdk-ui&ui={ui}")).await.json();
        page["data"].as_array().unwrap().iter().filter(|said| said["role"] == "assistant").cloned().collect::<Vec<_>>()
    };
    let [said] = &history("7").await[..] else { panic!("one answer") };
    let (name, waits) = (said["id"].as_str().unwrap().to_owned(), said["parts"][2].clone());
    assert!(name.starts_with("turn_1_"), "{name}");
    assert_eq!(
        (&waits["state"], &waits["approval"]["requestReason"]),
        (&json!("approval-requested"), &json!("asked by approve mode ask"))
    );
    for ui in ["6", "7"] {
        let starts: Vec<String> = outline(&server.get(&format!("/api/chat/c1/stream?ui={ui}")).await)
            .into_iter()
            .filter(|told| told.starts_with("start "))
            .collect();
        assert_eq!(starts, [format!("start {name}")], "{ui}");
    }
    assert_eq!(history("5").await[0]["parts"][2]["state"], "input-available");
    server.decide(waits["toolCallId"].as_str().unwrap(), "deny").await;
    server.engine.wait(&conversation, turn).await.unwrap();
    let denied = history("7").await[0]["parts"][2].clone();
    assert_eq!((&denied["state"], &denied["approval"]["approved"]), (&json!("output-denied"), &json!(false)));
}

#[tokio::test(start_paused = true)]
async fn a_page_whose_stream_broke_is_told_what_it_came_to_by_regenerate_and_another_answer_by_the_next() {
    let answers = || {
        let look = || Answer::whole([call(0, "lab__look", "{}")]);
        [look(), Answer::whole([text("Seen.")]), look(), Answer::whole([text("Seen anew.")])]
    };
    let on = |store: MemoryStore, answers: Vec<Answer>| server_on(Arc::new(store), Arc::<MemoryDocuments>::default(), answers);
    let (conversation, turn) = ("c1".parse().unwrap(), "turn_1".parse().unwrap());
    let again = json!({"id": "c1", "trigger": "regenerate-message", "messages": [
        {"id": "Look!", "role": "user", "parts": [{"type": "text", "text": "Look!"}]}]});
    let mut broken = 0;
    for has_read in [false, true] {
        for append in 1..=6 {
            let store = MemoryStore::default();
            let doomed = on(store.doomed_process(Fuse::After(append)), answers().into());
            let _died = timeout(Duration::from_mins(5), doomed.post("/api/chat?ui=7", says("Look!"))).await;
            doomed.engine.shutdown().await;
            let said = |journal: &Journal| {
                journal.entries().iter().filter(|stored| matches!(&*stored.entry, Entry::Assistant(_))).count()
            };
            let between = on(store.another_process(), Vec::new());
            let Ok(said) = between.engine.look(&conversation, said).await else { continue };
            between.engine.shutdown().await;
            let next = on(store.another_process(), answers().into_iter().skip(said).collect());
            next.engine.resume_open_turns().await.unwrap();
            next.engine.wait(&conversation, turn).await.unwrap();
            let is_broken = |journal: &Journal| {
                let mut entries = journal.entries().iter();
                let is_resumed = entries.any(|stored| matches!(&*stored.entry, Entry::Control(Control::Resumed { .. })));
                is_resumed && journal.turn().and_then(|turn| turn.ended()) == Some(&TurnStatus::Completed)
            };
            if !next.engine.look(&conversation, is_broken).await.unwrap() {
                continue;
            }
            broken += 1;
            let effects = next.source.effects().len();
            if has_read {
                next.get("/api/v1/conversations/c1/messages?format=ai-sdk-ui").await;
            } else {
                let told = next.post("/api/chat?ui=7", again.clone()).await;
                assert!(told.body.contains("Seen.") && told.body.contains("[DONE]"), "{append}: {}", told.body);
                assert_eq!(next.source.effects().len(), effects, "{append}");
            }
            let told = next.post("/api/chat?ui=7", again.clone()).await;
            assert!(!told.body.contains("Seen.\"") && told.body.contains("Seen anew."), "{append}: {}", told.body);
        }
    }
    assert!(broken >= 4, "{broken}");
}

#[tokio::test]
async fn another_answer_is_asked_for_with_the_settings_of_its_question() {
    let server = server(["One", "Two", "Three"].map(|word| Answer::whole([text(word)])));
    let settings = json!({
        "temperature": 0.3, "max_output_tokens": 77, "max_steps": 3, "reasoning_effort": "low", "approve": "none", "tool_choice": "none",
        "output": {"name": "o", "schema": {"type": "object"}}, "system_prompt": "Be brief.", "tools": ["lab__*"],
    });
    server.post("/api/v1/conversations", json!({"id": "c1", "settings": {"temperature": 1.5, "approve": "ask"}})).await;
    let said = server.post("/api/v1/conversations/c1/chat", json!({"content": "q", "settings": settings})).await;
    assert_eq!(said.status, StatusCode::OK, "{}", said.body);
    let newest = async || {
        let journal = server.engine.journal(&"c1".parse().unwrap()).await.unwrap();
        let said = journal.entries().iter().rev().find_map(|stored| match &*stored.entry {
            Entry::User(said) => Some((stored.seq, said.settings.clone())),
            _ => None,
        });
        said.unwrap()
    };
    let (mut at, first) = newest().await;
    assert_eq!((first.temperature, first.max_steps, first.approve), (Some(0.3), 3, ApproveMode::None));
    let messages = json!([{"id": "x", "role": "user", "parts": [{"type": "text", "text": "q"}]}]);
    for _ in 0..2 {
        let again = json!({"id": "c1", "trigger": "regenerate-message", "messages": messages});
        assert_eq!(server.post("/api/chat?ui=7", again).await.status, StatusCode::OK);
        let (place, settings) = newest().await;
        assert!(place > at);
        assert_eq!(settings, first);
        at = place;
    }
}

#[tokio::test]
async fn another_answer_while_a_turn_is_open_is_refused_with_the_way_to_stop_it() {
    let gate = Arc::new(Semaphore::new(0));
    let server = server([Answer::whole([text("Done.")]).gated(&gate), Answer::whole([text("Again.")])]);
    server.post("/api/v1/conversations", json!({"id": "c1"})).await;
    let said = server.post("/api/v1/conversations/c1/messages", json!({"content": "Go"})).await.json();
    let user = json!({"id": said["message_id"], "role": "user", "parts": [{"type": "text", "text": "Go"}]});
    let again = json!({"id": "c1", "trigger": "regenerate-message", "messages": [user]});
    let refused = server.post("/api/chat", again.clone()).await;
    assert_eq!(refused.problem(), (409, "turn_open".to_owned()));
    let detail = refused.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.ends_with("(POST /api/v1/conversations/c1/cancel stops it)"), "{detail}");
    let stops = server.post("/api/v1/conversations/c1/cancel", Value::Null).await;
    assert_eq!(stops.status, StatusCode::ACCEPTED, "{}", stops.body);
    gate.add_permits(9);
    server.engine.wait(&"c1".parse().unwrap(), "turn_1".parse().unwrap()).await.unwrap();
    let told = server.post("/api/chat", again).await;
    assert!(told.body.contains("Again.") || told.body.contains("Done."), "{}", told.body);
}
