//! What pages of AG-UI are told that come back, ask twice, or reach an end of their own.

use std::time::Duration;

use tokio::time::timeout;
use turnwright_core::{Finish, FinishReason, ProviderFailure, ProviderFailureKind, StreamDelta};
use turnwright_testkit::Fuse;

use super::*;

pub(super) fn body(run: &str, messages: &Value) -> Value {
    json!({"threadId": "c1", "runId": run, "protocolVersion": "1.0", "messages": messages, "tools": [], "context": []})
}

pub(super) fn said(text: &str) -> Value {
    json!([{"id": text, "role": "user", "content": text}])
}

impl Server {
    pub(super) async fn run(&self, body: Value) -> Vec<Value> {
        let answer = self.post("/ag-ui", body).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        answer.chunks().iter().map(|event| serde_json::from_str(event).unwrap()).collect()
    }

    /// What people said, in its order.
    pub(super) async fn said(&self) -> Vec<String> {
        let journal = self.engine.journal(&"c1".parse().unwrap()).await.unwrap();
        let said = journal.entries().iter().filter_map(|stored| match &*stored.entry {
            turnwright_core::Entry::User(message) => Some(turnwright_core::text_of(&message.content)),
            _ => None,
        });
        said.collect()
    }

    async fn ends(&self) {
        self.engine.wait(&"c1".parse().unwrap(), "turn_1".parse().unwrap()).await.unwrap();
    }
}

/// What a provider says that is not asked again by itself.
fn refusal() -> ProviderFailure {
    ProviderFailure::new(ProviderFailureKind::InvalidRequest, "no")
}

pub(super) fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_fresh_page_of_ag_ui_is_told_what_was_said_and_what_is_asked_and_can_answer() {
    let server = server([Answer::whole([text("I touch."), call(0, "lab__touch", "{}")]), Answer::whole([text("Touched.")])]);
    let first = server.run(body("r1", &said("Touch!"))).await;
    let asked = first.last().unwrap()["outcome"].clone();
    assert_eq!(asked["type"], "interrupt");
    for messages in [json!([]), said("Touch!")] {
        let back = server.run(body("r2", &messages)).await;
        assert_eq!(kinds(&back), ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"], "{messages}");
        let call = asked["interrupts"][0]["toolCallId"].clone();
        let function = json!({"name": "lab__touch", "arguments": "{}"});
        // A message that the page has keeps the name that the page gave it.
        let said = if messages == json!([]) { "msg_1" } else { "Touch!" };
        let snapshot = json!([
            {"id": said, "role": "user", "content": "Touch!"},
            {"id": "msg_4", "role": "assistant", "content": "I touch.",
             "toolCalls": [{"id": call, "type": "function", "function": function}]},
        ]);
        assert_eq!(back[1]["messages"], snapshot);
        assert_eq!(back[2]["outcome"], asked);
    }
    let refused = server.run(body("r3", &said("and more"))).await;
    let interrupt = asked["interrupts"][0]["id"].as_str().unwrap();
    assert!(refused[0]["message"].as_str().unwrap().ends_with(interrupt), "{refused:?}");
    let mut answer = body("r4", &json!([]));
    answer["resume"] = json!([{"interruptId": interrupt, "status": "resolved", "payload": {"approved": true}}]);
    let resumed = server.run(answer).await;
    assert_eq!(resumed.last().unwrap()["outcome"]["type"], "success");
    assert_eq!(server.source.effects().len(), 1);
}

#[tokio::test]
async fn arguments_that_a_page_of_ag_ui_changes_keep_their_numbers_or_are_refused() {
    let server = server([Answer::whole([call(0, "lab__touch", r#"{"at":1}"#)]), Answer::whole([text("Touched.")])]);
    let asked = server.run(body("r1", &said("Touch!"))).await.last().unwrap()["outcome"]["interrupts"][0]["id"].clone();
    let answer = async |number: &str| {
        let mut answer = body("r2", &json!([]));
        let payload = json!({"approved": true, "editedArgs": {"at": "NUMBER"}});
        answer["resume"] = json!([{"interruptId": asked, "status": "resolved", "payload": payload}]);
        let written = answer.to_string().replace("\"NUMBER\"", number);
        let request = Request::post("/ag-ui").header("host", "127.0.0.1:8700").header("content-type", "application/json");
        let told = server.ask(request.body(Body::from(written)).unwrap()).await;
        (told.body, server.source.effects().len())
    };
    let (told, effects) = answer("123456789012345678901").await;
    assert!(told.contains("the number 123456789012345678901 in the arguments cannot be passed on"), "{told}");
    assert_eq!(effects, 0);
    let (told, effects) = answer("18446744073709551615").await;
    assert!(told.contains("18446744073709551615") && effects == 1, "{told}");
}

#[tokio::test]
async fn a_result_of_ag_ui_says_first_that_a_person_changed_the_arguments() {
    let server = server([Answer::whole([call(0, "lab__touch", r#"{"at":1}"#)]), Answer::whole([text("Touched.")])]);
    let asked = server.run(body("r1", &said("Touch!"))).await.last().unwrap()["outcome"]["interrupts"][0]["id"].clone();
    let mut answer = body("r2", &json!([]));
    let payload = json!({"approved": true, "editedArgs": {"at": 2}});
    answer["resume"] = json!([{"interruptId": asked, "status": "resolved", "payload": payload}]);
    let told = server.run(answer).await;
    let result = told.iter().find(|event| event["type"] == "TOOL_CALL_RESULT").unwrap();
    let content = result["content"].as_str().unwrap();
    assert!(content.starts_with("[The user changed the arguments of this call to: {\"at\":2}]\n"), "{content}");
    // Whoever comes back is told the same.
    let back = server.run(body("r3", &json!([]))).await;
    let messages = back[1]["messages"].as_array().unwrap();
    assert_eq!(messages.iter().find(|message| message["role"] == "tool").unwrap()["content"], content);
}

#[tokio::test]
async fn a_page_of_ag_ui_that_lost_its_run_is_told_what_goes_on_of_it() {
    let gate = Arc::new(Semaphore::new(0));
    let server = server([Answer::whole([call(0, "lab__look", r#"{"at":1}"#)]), Answer::whole([text("Seen.")]).gated(&gate)]);
    server.post("/api/v1/conversations", json!({"id": "c1"})).await;
    server.post("/api/v1/conversations/c1/messages", json!({"content": "Look!"})).await;
    let half = json!([{"id": "u", "role": "user", "content": "Look!"}, {"id": "a", "role": "assistant", "content": "hal"}]);
    let back = server.run(body("r2", &half));
    let (back, ()) = tokio::join!(back, async { gate.add_permits(2) });
    assert_eq!(kinds(&back)[..2], ["RUN_STARTED", "MESSAGES_SNAPSHOT"]);
    assert_eq!(back[1]["messages"][0]["content"], "Look!");
    let said: Vec<&Value> = back.iter().filter(|event| event["type"] == "TEXT_MESSAGE_CONTENT").collect();
    assert_eq!((said.len(), &said[0]["delta"]), (1, &json!("Seen.")));
    assert_eq!(back.last().unwrap()["outcome"], json!({"type": "success"}));
    // Once it is over it is told so, and nothing is said again.
    server.ends().await;
    let over = server.run(body("r3", &half)).await;
    assert_eq!(kinds(&over), ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]);
    let roles: Vec<&Value> = over[1]["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
    assert_eq!(server.source.effects().len(), 1);
}

#[tokio::test]
async fn a_page_of_ag_ui_that_comes_back_after_a_decision_elsewhere_is_told_what_came_of_it() {
    let calls = [call(0, "lab__touch", r#"{"n":1}"#), call(1, "lab__touch", r#"{"n":2}"#)];
    let server = server([Answer::whole(calls)]);
    let asked = server.run(body("r1", &said("Touch!"))).await.last().unwrap()["outcome"]["interrupts"].clone();
    assert_eq!(asked.as_array().unwrap().len(), 2);
    let path = "/api/v1/conversations/c1/calls/call_4_0/decision";
    assert!(server.post(path, json!({"decision": "allow"})).await.status.is_success());
    server.ends().await;
    let back = server.run(body("r2", &json!([]))).await;
    assert_eq!(kinds(&back), ["RUN_STARTED", "MESSAGES_SNAPSHOT", "TOOL_CALL_RESULT", "RUN_FINISHED"]);
    assert_eq!(back[2]["toolCallId"], asked[0]["toolCallId"]);
    assert_eq!(back[3]["outcome"]["interrupts"], json!([asked[1]]));
}

#[tokio::test]
async fn the_same_run_of_ag_ui_is_said_once_and_another_with_its_name_is_another() {
    let server = server(["One.", "Two."].map(|said| Answer::whole([text(said)])));
    let first = server.run(body("r1", &said("go"))).await;
    assert_eq!(server.run(body("r1", &said("go"))).await, first);
    assert_eq!(kinds(&server.run(body("r1", &said("go on"))).await), kinds(&first));
    let messages = server.get("/api/v1/conversations/c1/messages").await.json();
    assert_eq!(messages["data"].as_array().unwrap().len(), 4, "{messages}");
}

#[tokio::test]
async fn a_run_of_ag_ui_says_why_it_ended_where_its_outcome_does_not() {
    let finished = |reason| vec![StreamDelta::Finished(Finish { reason, raw: None })];
    for (reason, name) in [(FinishReason::Length, "length"), (FinishReason::ContentFilter, "content_filter")] {
        let server = server([Answer::of([text("Half an"), finished(reason)])]);
        let events = server.run(body("r1", &said("go"))).await;
        let [.., notice, end] = &events[..] else { panic!("{events:?}") };
        assert_eq!((&notice["name"], &notice["value"]["reason"]), (&json!("turnwright.notice"), &json!(name)));
        assert_eq!(end["outcome"], json!({"type": "success"}));
    }
    let server = server([Answer::whole([call(0, "lab__look", "{}")])]);
    server.post("/api/v1/conversations", json!({"id": "c1", "settings": {"max_steps": 1}})).await;
    let events = server.run(body("r1", &said("go"))).await;
    let [.., notice, end] = &events[..] else { panic!("{events:?}") };
    assert_eq!((&notice["name"], &notice["value"]["reason"]), (&json!("turnwright.notice"), &json!("step_limit")));
    assert_eq!(end["outcome"], json!({"type": "success"}));
}

/// What the official client makes of a stream: a text or a call is put into the message that has its name.
fn assembled(events: &[Value]) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::new();
    let place = |messages: &mut Vec<Value>, id: &Value, role: &str| {
        let known = messages.iter().position(|message| message["id"] == *id);
        known.unwrap_or_else(|| {
            messages.push(json!({"id": id, "role": role, "content": ""}));
            messages.len() - 1
        })
    };
    for event in events {
        let id = &event["messageId"];
        match event["type"].as_str().unwrap() {
            "TEXT_MESSAGE_START" | "REASONING_MESSAGE_START" => {
                place(&mut messages, id, event["role"].as_str().unwrap());
            }
            "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT" => {
                let at = place(&mut messages, id, "");
                let said = messages[at]["content"].as_str().unwrap().to_owned() + event["delta"].as_str().unwrap();
                messages[at]["content"] = json!(said);
            }
            "TOOL_CALL_START" => {
                let at = place(&mut messages, &event["parentMessageId"], "assistant");
                let function = json!({"name": event["toolCallName"], "arguments": ""});
                let call = json!({"id": event["toolCallId"], "type": "function", "function": function});
                match messages[at]["toolCalls"].as_array_mut() {
                    Some(calls) => calls.push(call),
                    None => messages[at]["toolCalls"] = json!([call]),
                }
            }
            "TOOL_CALL_ARGS" => {
                let calls = messages.iter_mut().filter_map(|message| message.get_mut("toolCalls")?.as_array_mut()).flatten();
                let call = calls.into_iter().find(|call| call["id"] == event["toolCallId"]).unwrap();
                call["function"]["arguments"] = event["delta"].clone();
            }
            "TOOL_CALL_RESULT" => {
                messages
                    .push(json!({"id": id, "role": "tool", "toolCallId": event["toolCallId"], "content": event["content"]}));
            }
            _ => {}
        }
    }
    messages
}

#[tokio::test]
async fn a_page_of_ag_ui_has_every_message_under_one_name() {
    let gate = Arc::new(Semaphore::new(0));
    let thought = |said: &str| vec![StreamDelta::Reasoning(said.to_owned())];
    let server = server([
        Answer::whole([thought("Hm."), text("I look."), thought("And."), text("Again."), call(0, "lab__look", r#"{"at":1}"#)]),
        Answer::whole([call(0, "lab__look", r#"{"at":2}"#)]),
        Answer::whole([text("Seen.")]).gated(&gate),
        Answer::whole([text("And that.")]),
    ]);
    let page = said("Look!");
    let mut first = std::pin::pin!(server.run(body("r1", &page)));
    // Somebody else says something meanwhile, so that what is being said is stored at another place.
    let aside = async {
        while server.source.effects().len() < 2 || server.engine.journal(&"c1".parse().unwrap()).await.is_err() {
            tokio::task::yield_now().await;
        }
        server.post("/api/v1/conversations/c1/messages", json!({"content": "And that?"})).await;
        gate.add_permits(9);
    };
    let (events, ()) = tokio::join!(&mut first, aside);
    assert_eq!(events.last().unwrap()["outcome"]["type"], "success", "{events:?}");
    let back = server.run(body("r2", &json!([page[0], {"id": "x", "role": "assistant", "content": "hal"}]))).await;
    let snapshot = back[1]["messages"].as_array().unwrap();
    let (people, others): (Vec<&Value>, Vec<&Value>) = snapshot.iter().partition(|message| message["role"] == "user");
    assert_eq!(people.iter().map(|message| &message["content"]).collect::<Vec<_>>(), ["Look!", "And that?"]);
    // The page's own message keeps the name that the page gave it.
    assert_eq!(people[0]["id"], "Look!");
    assert_eq!(others, assembled(&events).iter().collect::<Vec<_>>());
    let names: std::collections::BTreeSet<&str> = snapshot.iter().map(|message| message["id"].as_str().unwrap()).collect();
    assert_eq!(names.len(), snapshot.len(), "{snapshot:?}");
}

#[tokio::test]
async fn a_run_of_ag_ui_that_failed_is_tried_again_by_the_same_messages() {
    let half = json!({"id": "msg_4", "role": "assistant", "content": "Hal"});
    for has_half in [false, true] {
        let server = server([
            Answer::of([text("Hal")]).failing(refusal()),
            Answer::of([]).failing(refusal()),
            Answer::whole([text("Better.")]),
            Answer::whole([text("Again.")]),
        ]);
        let mut page = said("go");
        assert_eq!(server.run(body("r1", &page)).await.last().unwrap()["type"], "RUN_ERROR");
        if has_half {
            page.as_array_mut().unwrap().push(half.clone());
        }
        // Without messages a page comes back to it, and nothing runs.
        let back = server.run(body("r2", &json!([]))).await;
        assert_eq!(back.last().unwrap()["type"], "RUN_ERROR");
        let failed = server.run(body("r3", &page)).await;
        assert_eq!(failed.last().unwrap()["type"], "RUN_ERROR");
        let tried = server.run(body("r4", &page)).await;
        let snapshot = json!([{"id": "go", "role": "user", "content": "go"}]);
        assert_eq!(kinds(&tried)[..2], ["RUN_STARTED", "MESSAGES_SNAPSHOT"]);
        let better = assembled(&tried);
        assert_eq!((&tried[1]["messages"], better.len()), (&snapshot, 1), "{tried:?}");
        let better = better[0].clone();
        assert_eq!(better["content"], "Better.");
        assert_eq!(tried.last().unwrap()["outcome"], json!({"type": "success"}));
        // The same request once more runs nothing.
        assert_eq!(assembled(&server.run(body("r4", &page)).await), std::slice::from_ref(&better));
        // Who says the same after an answer wants another.
        let more = json!([snapshot[0], better, {"id": "u2", "role": "user", "content": "go"}]);
        assert_eq!(assembled(&server.run(body("r5", &more)).await)[0]["content"], "Again.");
        assert_eq!(server.said().await, ["go", "go"]);
    }
}

#[tokio::test(start_paused = true)]
async fn words_of_ag_ui_that_repeat_what_was_said_last_are_new_where_the_page_has_both() {
    let half = json!({"id": "msg_9", "role": "assistant", "content": "Go"});
    let both = json!([said("go")[0], half, {"id": "u2", "role": "user", "content": "go"}]);
    // While the turn runs, and once it failed.
    let gate = Arc::new(Semaphore::new(0));
    let [hi, going, again] = ["Hi.", "Going.", "Again."].map(|said| Answer::whole([text(said)]));
    let running = server([hi.clone(), going.gated(&gate), again.clone()]);
    let failed = server([hi, Answer::of([]).failing(refusal()), again]);
    for server in [&running, &failed] {
        server.post("/api/v1/conversations/c1/chat", json!({"content": "hello"})).await;
    }
    let runs = futures_util::future::join(running.run(body("r1", &said("go"))), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let runs = running.run(body("r2", &both));
        let opens = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            gate.add_permits(9);
        };
        futures_util::join!(runs, opens).0
    });
    let (_, again) = runs.await;
    assert_eq!(assembled(&again).last().unwrap()["content"], "Again.", "{again:?}");
    assert_eq!(failed.run(body("r1", &said("go"))).await.last().unwrap()["type"], "RUN_ERROR");
    let again = failed.run(body("r2", &both)).await;
    assert_eq!(assembled(&again)[0]["content"], "Again.", "{again:?}");
    for server in [running, failed] {
        assert_eq!(server.said().await, ["hello", "go", "go"]);
    }
}

#[tokio::test]
async fn one_message_alone_of_ag_ui_is_said_again_where_it_has_our_name() {
    for is_named in [false, true] {
        let server = server([Answer::whole([text("Hi.")]), Answer::of([]).failing(refusal()), Answer::whole([text("Gone.")])]);
        server.post("/api/v1/conversations/c1/chat", json!({"content": "hello"})).await;
        assert_eq!(server.run(body("r1", &said("go"))).await.last().unwrap()["type"], "RUN_ERROR");
        let back = server.run(body("r2", &json!([]))).await;
        let newest = back[1]["messages"].as_array().unwrap().last().unwrap().clone();
        let page = if is_named { json!([newest]) } else { said("go") };
        assert_eq!(assembled(&server.run(body("r3", &page)).await)[0]["content"], "Gone.");
        let expected = if is_named { vec!["hello", "go"] } else { vec!["hello", "go", "go"] };
        assert_eq!(server.said().await, expected);
    }
}

#[tokio::test]
async fn a_run_of_ag_ui_that_failed_is_tried_again_where_another_one_failed_before_it() {
    let fails = || Answer::of([]).failing(refusal());
    let server = server([fails(), fails(), Answer::whole([text("Gone.")])]);
    assert_eq!(server.run(body("r1", &said("go"))).await.last().unwrap()["type"], "RUN_ERROR");
    let more = json!([said("go")[0], {"id": "u2", "role": "user", "content": "more"}]);
    assert_eq!(server.run(body("r2", &more)).await.last().unwrap()["type"], "RUN_ERROR");
    assert_eq!(assembled(&server.run(body("r3", &more)).await)[0]["content"], "Gone.");
    assert_eq!(server.said().await, ["go", "more"]);
}

#[tokio::test]
async fn a_run_of_ag_ui_that_tried_again_is_the_same_run_after_more_was_said_and_after_a_restart() {
    let answers = ["Better.", "More."].map(|said| Answer::whole([text(said)]));
    let server = server([Answer::of([]).failing(refusal())].into_iter().chain(answers));
    let page = said("go");
    assert_eq!(server.run(body("r1", &page)).await.last().unwrap()["type"], "RUN_ERROR");
    let tried = server.run(body("r2", &page)).await;
    let better = assembled(&tried);
    assert_eq!((better.len(), &better[0]["content"]), (1, &json!("Better.")));
    assert_eq!(server.run(body("r2", &page)).await, tried);
    let more = json!([page[0], better[0], {"id": "u2", "role": "user", "content": "more"}]);
    assert_eq!(assembled(&server.run(body("r3", &more)).await)[0]["content"], "More.");
    let next = server_on(Arc::new(server.store.another_process()), Arc::new(MemoryDocuments::default()), []);
    for server in [&server, &next] {
        assert_eq!(assembled(&server.run(body("r2", &page)).await), better);
        assert_eq!(server.said().await, ["go", "more"]);
    }
}

#[tokio::test(start_paused = true)]
async fn wherever_a_process_dies_a_run_of_ag_ui_that_tries_again_does_so_once() {
    let better = || Answer::whole([text("Better.")]);
    for fuse in (1..=3).flat_map(|append| [Fuse::Before(append), Fuse::After(append)]) {
        let failed = server([Answer::of([]).failing(refusal())]);
        let page = said("go");
        assert_eq!(failed.run(body("r1", &page)).await.last().unwrap()["type"], "RUN_ERROR");
        failed.engine.shutdown().await;

        let doomed = Arc::new(failed.store.doomed_process(fuse));
        let doomed = server_on(doomed.clone(), doomed, [better()]);
        doomed.engine.keep_resuming();
        let _died = timeout(Duration::from_mins(5), doomed.post("/ag-ui", body("r2", &page))).await;
        doomed.engine.shutdown().await;
        let next = Arc::new(failed.store.another_process());
        let next = server_on(next.clone(), next, [better()]);
        next.engine.resume_open_turns().await.unwrap();
        let tried = assembled(&next.run(body("r2", &page)).await);
        assert_eq!((tried.len(), &tried[0]["content"]), (1, &json!("Better.")), "{fuse:?}");
        assert_eq!(next.said().await, ["go"], "{fuse:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn runs_of_ag_ui_that_try_again_at_once_are_told_one_answer() {
    let gate = Arc::new(Semaphore::new(0));
    let server = server([Answer::of([]).failing(refusal()), Answer::whole([text("Better.")]).gated(&gate)]);
    let page = said("go");
    assert_eq!(server.run(body("r1", &page)).await.last().unwrap()["type"], "RUN_ERROR");
    let runs = futures_util::future::join_all(["r2", "r3", "r4"].map(|run| server.run(body(run, &page))));
    // The clock stands still until nothing else happens: all wait for the model by then.
    let opens = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        gate.add_permits(9);
    };
    for events in futures_util::join!(runs, opens).0 {
        assert_eq!(assembled(&events)[0]["content"], "Better.", "{events:?}");
    }
    assert_eq!(server.said().await, ["go"]);
}

#[tokio::test]
async fn an_answer_of_ag_ui_that_does_not_fit_or_is_of_another_thread_decides_nothing() {
    let calls = || Answer::whole([call(0, "lab__touch", "{}")]);
    let server = server([calls(), calls(), Answer::whole([text("Touched.")])]);
    let mut other = body("r1", &said("Touch!"));
    other["threadId"] = json!("c2");
    let of = |told: &[Value]| told.last().unwrap()["outcome"]["interrupts"][0]["id"].clone();
    let elsewhere = of(&server.run(other).await);
    let asked = of(&server.run(body("r1", &said("Touch!"))).await);
    let answer = |run: &str, interrupt: &Value, payload: Value| {
        let mut answer = body(run, &json!([]));
        answer["resume"] = json!([{"interruptId": interrupt, "status": "resolved", "payload": payload}]);
        answer
    };
    let refused = server.run(answer("r2", &elsewhere, json!({"approved": true}))).await;
    let message = refused[0]["message"].as_str().unwrap();
    assert!(message.contains(elsewhere.as_str().unwrap()) && message.contains("in this thread"), "{message}");
    for (payload, said) in [
        (Value::Null, "`approved` is missing"),
        (json!({}), "`approved` is missing"),
        (json!({"approve": true}), "`approved` is missing"),
        (json!({"approved": "yes"}), "`approved` is \"yes\", it must be true or false"),
        (json!({"approved": 1}), "`approved` is 1"),
        (json!([true]), "is [true], it must be an object"),
        (json!({"approved": true, "editedArgs": "{\"at\":2}"}), "as `editedArgs`, it must be an object"),
        (json!({"approved": true, "editedArgs": 5}), "has 5 as `editedArgs`"),
        (json!({"approved": false, "reason": 5}), "has 5 as `reason`, it must be a text"),
    ] {
        let refused = server.run(answer("r2", &asked, payload.clone())).await;
        assert_eq!(kinds(&refused), ["RUN_ERROR"], "{payload}");
        assert!(refused[0]["message"].as_str().unwrap().contains(said), "{payload}: {refused:?}");
    }
    assert_eq!(server.source.effects().len(), 0);
    let resumed = server.run(answer("r2", &asked, json!({"approved": true, "editedArgs": null, "reason": null}))).await;
    assert_eq!(resumed.last().unwrap()["outcome"]["type"], "success");
    assert_eq!(server.source.effects().len(), 1);
}

#[tokio::test]
async fn a_page_of_ag_ui_that_goes_on_after_a_turn_without_an_answer_says_what_is_new_alone() {
    let fails = || Answer::of([]).failing(refusal());
    let server = server([fails(), fails(), Answer::whole([text("Three.")])]);
    let user = |id: &str, text: &str| json!({"id": id, "role": "user", "content": text});
    let all = [user("u1", "one"), user("u2", "two"), user("u3", "three")];
    for count in 1..=3 {
        // What is lost on its way comes again.
        for run in ["a", "b"] {
            let told = server.run(body(&format!("r{count}{run}"), &json!(all[..count]))).await;
            if count < 3 {
                assert_eq!(told.last().unwrap()["type"], "RUN_ERROR", "{told:?}");
                break;
            }
            assert_eq!(told.last().unwrap()["outcome"]["type"], "success", "{told:?}");
        }
    }
    assert_eq!(server.said().await, ["one", "two", "three"]);
}

#[tokio::test(start_paused = true)]
async fn a_page_of_ag_ui_that_comes_back_says_nothing_again_that_was_said_while_its_turn_ran() {
    let gate = Arc::new(Semaphore::new(0));
    let [first, going, more] = ["A.", "Going.", "More."].map(|said| Answer::whole([text(said)]));
    let server = server([first, going.gated(&gate), more]);
    let mut page = said("go").as_array().unwrap().clone();
    let told = server.run(body("r1", &json!(page))).await;
    page.extend(assembled(&told));
    page.push(json!({"id": "u2", "role": "user", "content": "go"}));
    let more = [page.clone(), vec![json!({"id": "u3", "role": "user", "content": "more"})]].concat();
    let runs = futures_util::future::join(server.run(body("r2", &json!(page))), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let steers = server.run(body("r3", &json!(more)));
        let comes_back = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            server.run(body("r4", &json!(more))).await
        };
        let opens = async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            gate.add_permits(9);
        };
        futures_util::join!(steers, comes_back, opens).1
    });
    let (_, back) = runs.await;
    assert_eq!(kinds(&back)[..2], ["RUN_STARTED", "MESSAGES_SNAPSHOT"], "{back:?}");
    assert_eq!(server.said().await, ["go", "go", "more"]);
}

#[tokio::test(start_paused = true)]
async fn what_was_said_while_an_answer_came_in_that_failed_is_said_once() {
    let gate = Arc::new(Semaphore::new(0));
    let half = Answer::of([text("Hal")]).gated(&gate).failing(refusal());
    let fails = Answer::of([]).failing(refusal());
    let server = server([half, fails, Answer::whole([text("Three.")])]);
    let user = |id: &str, text: &str| json!({"id": id, "role": "user", "content": text});
    let half = json!({"id": "msg_4", "role": "assistant", "content": "Hal"});
    let page = [user("u1", "one"), half, user("u2", "two"), user("u3", "three")];
    let (first, second) = (body("r1", &json!(page[..1])), body("r2", &json!(page[..3])));
    let later = async |seconds: u64| tokio::time::sleep(Duration::from_secs(seconds)).await;
    let permits = async {
        later(1).await;
        gate.add_permits(1);
        later(2).await;
        gate.add_permits(9);
    };
    let steers = async {
        later(2).await;
        server.run(second).await
    };
    let (_, steered, ()) = futures_util::join!(server.run(first), steers, permits);
    assert_eq!(steered.last().unwrap()["type"], "RUN_ERROR", "{steered:?}");
    assert_eq!(server.said().await, ["one", "two"]);
    assert_eq!(server.run(body("r3", &json!(page[..3]))).await.last().unwrap()["type"], "RUN_ERROR");
    assert_eq!(server.said().await, ["one", "two"]);
    assert_eq!(assembled(&server.run(body("r4", &json!(page))).await)[0]["content"], "Three.");
    assert_eq!(server.said().await, ["one", "two", "three"]);
}
