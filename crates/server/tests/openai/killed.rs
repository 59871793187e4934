//! Requests that OpenAI's libraries send again to another process than that which began their turn: that one was killed, or lives.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use turnwright_core::policy::{Action, Policy, RuleText};
use turnwright_core::{ConversationId, QuestionReason, Seq, TurnId};
use turnwright_engine::Limits;
use turnwright_testkit::{Answer, Fuse, MemoryStore, ScriptedProvider, call, text};

use super::joining::sent_again;
use super::{Answered, Server, pick, picks, server_as, server_on, server_with, user};

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";

/// A model that looks, and then says so.
fn looking() -> Arc<ScriptedProvider> {
    ScriptedProvider::by(|asked| {
        let has_looked = asked.contains("result: ");
        Answer::whole([if has_looked { text("Seen.") } else { call(0, "lab__look", "{}") }])
    })
}

pub(crate) async fn conversations(server: &Server) -> usize {
    server.engine.conversations(None, 100).await.unwrap().len()
}

pub(crate) fn conversation(answered: &Answered) -> &str {
    answered.header("x-turnwright-conversation")
}

#[tokio::test(start_paused = true)]
async fn wherever_a_process_dies_the_request_that_is_sent_again_has_one_turn_and_its_whole_answer() {
    for (path, body) in [(CHAT, json!({"messages": [user("Look!")]})), (RESPONSES, json!({"input": "Look!"}))] {
        for fuse in (1..=7).flat_map(|append| [Fuse::Before(append), Fuse::After(append)]) {
            let store = MemoryStore::default();
            let first = server_with(store.doomed_process(fuse), looking());
            // What it knows and cannot store it holds until its end.
            let died = timeout(Duration::from_mins(5), sent_again(&first, path, &body, "0")).await;
            first.engine.shutdown().await;

            let next = server_with(store.another_process(), looking());
            next.engine.resume_open_turns().await.unwrap();
            let seen = sent_again(&next, path, &body, "1").await;
            assert!(seen.status == 200 && seen.body.contains("Seen."), "{path} {fuse:?}: {}", seen.body);
            if let Some(told) = died.ok().filter(|told| told.status == 200) {
                assert_eq!(seen.json(), told.json(), "{path} {fuse:?}");
            }
            assert_eq!(conversations(&next).await, 1, "{path} {fuse:?}");
            let said = next.messages(conversation(&seen)).await;
            assert_eq!(said.iter().filter(|(role, _)| role == "user").count(), 1, "{path} {fuse:?}: {said:?}");
            assert_eq!(sent_again(&next, path, &body, "2").await.json(), seen.json(), "{path} {fuse:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn wherever_a_process_dies_what_a_developer_said_is_said_in_all_that_follows() {
    let mut cut_off = 0;
    for (fuse, comes_again) in
        (1..=8).flat_map(|append| [Fuse::Before(append), Fuse::After(append)]).flat_map(|fuse| [(fuse, true), (fuse, false)])
    {
        let store = MemoryStore::default();
        let answers = || (1..=4).map(|number| Answer::whole([text(&format!("{number}."))]));
        let first = server_on(store.another_process(), answers());
        let one = first.respond(&json!({"input": "1"})).await.json();
        let name: ConversationId = one["turnwright"]["conversation_id"].as_str().unwrap().parse().unwrap();
        first.engine.shutdown().await;
        let input = json!([{"role": "developer", "content": "Kept."}, user("2")]);
        let asks = json!({"input": input, "previous_response_id": one["id"]});
        let doomed = server_on(store.doomed_process(fuse), answers());
        let _died = timeout(Duration::from_mins(5), sent_again(&doomed, RESPONSES, &asks, "0")).await;
        doomed.engine.shutdown().await;

        let next = server_on(store.another_process(), answers());
        next.engine.resume_open_turns().await.unwrap();
        let last = async || {
            let last = |journal: &turnwright_core::Journal| {
                journal.turn().map(|turn| (turn.id(), turn.settings().system_prompt.clone().unwrap_or_default()))
            };
            next.engine.look(&name, last).await.unwrap().unwrap()
        };
        if comes_again {
            assert_eq!(sent_again(&next, RESPONSES, &asks, "1").await.status, 200, "{fuse:?}");
        }
        let (second, _) = last().await;
        if second == TurnId(Seq::FIRST) {
            continue;
        }
        next.engine.wait(&name, second).await.unwrap();
        cut_off += usize::from(next.engine.conversation(&name).await.unwrap().overlay.system_prompt.is_none());
        // The response after a message is called by its place.
        let previous = format!("resp_{}_{name}", second.0);
        let third = next.respond(&json!({"input": "3", "previous_response_id": previous})).await;
        assert_eq!(third.status, 200, "{fuse:?}: {}", third.body);
        assert_eq!(last().await.1, "Kept.", "{fuse:?}, comes again: {comes_again}");
    }
    assert!(cut_off > 0);
}

/// A model that touches once, and says so.
fn touches() -> Arc<ScriptedProvider> {
    ScriptedProvider::by(|asked| {
        let has_touched = asked.contains("result: ");
        Answer::whole([if has_touched { text("Touched.") } else { call(0, "lab__touch", "{}") }])
    })
}

#[tokio::test(start_paused = true)]
async fn wherever_a_process_dies_words_beside_an_approval_are_said_once_and_its_call_runs_at_most_once() {
    let mut ran = 0;
    for fuse in (1..=6).flat_map(|append| [Fuse::Before(append), Fuse::After(append)]) {
        let store = MemoryStore::default();
        let asking = server_with(store.another_process(), touches());
        let first = asking.respond(&json!({"input": "Touch!"})).await.json();
        asking.engine.shutdown().await;
        let answer = json!({"type": "mcp_approval_response", "approval_request_id": first["output"][0]["id"], "approve": true});
        let body = json!({"previous_response_id": first["id"], "input": [answer, user("Gently!")]});

        let doomed = server_with(store.doomed_process(fuse), touches());
        let _died = timeout(Duration::from_mins(5), sent_again(&doomed, RESPONSES, &body, "0")).await;
        doomed.engine.shutdown().await;
        let next = server_with(store.another_process(), touches());
        next.engine.resume_open_turns().await.unwrap();
        let done = sent_again(&next, RESPONSES, &body, "1").await;
        assert_eq!(done.status, 200, "{fuse:?}: {}", done.body);
        // A call of which nobody knows whether it happened is asked about.
        let is_asked = done.json()["output"].as_array().unwrap().iter().any(|item| item["type"] == "mcp_approval_request");
        assert!(is_asked || done.body.contains("Touched."), "{fuse:?}: {}", done.body);
        assert_eq!(conversations(&next).await, 1, "{fuse:?}");
        let said = next.messages(conversation(&done)).await;
        let users: Vec<&str> = said.iter().filter(|(role, _)| role == "user").map(|(_, text)| text.as_str()).collect();
        assert_eq!(users, ["Touch!", "Gently!"], "{fuse:?}");
        let effects = doomed.source.effects().len() + next.source.effects().len();
        assert!(effects <= 1, "{fuse:?}: {effects} effects");
        ran += effects;
    }
    assert!(ran >= 10, "{ran}");
}

#[tokio::test(start_paused = true)]
async fn a_yes_that_comes_again_is_none_to_whether_a_lost_call_runs_again() {
    let mut asked_again = 0;
    for fuse in (1..=4).flat_map(|append| [Fuse::Before(append), Fuse::After(append)]) {
        let store = MemoryStore::default();
        let asking = server_with(store.another_process(), touches());
        let first = asking.respond(&json!({"input": "Touch!"})).await.json();
        asking.engine.shutdown().await;
        let allows = |response: &Value, asked: &Value| {
            let answer = json!({"type": "mcp_approval_response", "approval_request_id": asked["id"], "approve": true});
            json!({"previous_response_id": response["id"], "input": [answer]})
        };
        let stale = allows(&first, &first["output"][0]);
        let doomed = server_with(store.doomed_process(fuse), touches());
        let _died = timeout(Duration::from_mins(5), doomed.respond(&stale)).await;
        doomed.engine.shutdown().await;

        let next = server_with(store.another_process(), touches());
        next.engine.resume_open_turns().await.unwrap();
        let conversation = first["conversation"]["id"].as_str().unwrap().parse().unwrap();
        next.engine.wait(&conversation, "turn_1".parse().unwrap()).await.unwrap();
        let waiting = next.engine.waiting(&conversation).await.unwrap();
        if waiting.first().is_none_or(|waiting| waiting.reason != QuestionReason::UnknownOutcome) {
            continue;
        }
        asked_again += 1;
        let told = next.respond(&stale).await.json();
        assert_eq!(sent_again(&next, RESPONSES, &stale, "1").await.json()["output"], told["output"], "{fuse:?}");
        let asked = told["output"].as_array().unwrap().iter().find(|item| item["type"] == "mcp_approval_request").unwrap();
        assert_ne!(asked["id"], first["output"][0]["id"], "{fuse:?}");
        let told_text = told["output"].to_string();
        assert!(told_text.contains("lab__touch: it was interrupted and may have happened"), "{fuse:?}: {told_text}");
        assert_eq!(next.engine.waiting(&conversation).await.unwrap(), waiting, "{fuse:?}");
        assert!(next.source.effects().is_empty(), "{fuse:?}");
        // What is said under a key is known by what it decides, and not by the call.
        let done = sent_again(&next, RESPONSES, &allows(&told, asked), "1").await;
        assert!(done.body.contains("Touched."), "{fuse:?}: {}", done.body);
        let ran = done.json()["output"].as_array().unwrap().iter().find(|item| item["type"] == "mcp_call").unwrap().clone();
        assert_eq!((&ran["approval_request_id"], next.source.effects().len()), (&asked["id"], 1), "{fuse:?}");
    }
    assert!(asked_again > 0);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_sent_again_to_another_process_joins_the_turn_that_runs() {
    for body in [json!({"messages": [user("Go")]}), json!({"messages": [user("Go")], "stream": true})] {
        let (store, gate) = (MemoryStore::default(), Arc::new(Semaphore::new(0)));
        let one = server_on(store.another_process(), [Answer::whole([text("Once.")]).gated(&gate)]);
        let other = server_on(store.another_process(), []);
        let asks_again = async {
            while one.provider.asked().is_empty() {
                tokio::task::yield_now().await;
            }
            let opens = async { gate.add_permits(2) };
            futures_util::join!(sent_again(&other, CHAT, &body, "1"), opens).0
        };
        let (first, again) = futures_util::join!(sent_again(&one, CHAT, &body, "0"), asks_again);
        assert!(first.body.contains("Once.") && again.body.contains("Once."), "{}\n{}", first.body, again.body);
        assert_eq!(conversation(&first), conversation(&again));
        assert_eq!((conversations(&other).await, other.provider.asked().len()), (1, 0));
    }
}

#[tokio::test]
async fn results_and_approvals_that_are_sent_again_after_more_was_said_get_the_answer_that_came_of_them() {
    let store = MemoryStore::default();
    let server = server_on(
        store.another_process(),
        [
            picks(),
            Answer::whole([text("Picked.")]),
            Answer::whole([call(0, "lab__touch", "{}")]),
            Answer::whole([text("Touched.")]),
            Answer::whole([text("More.")]),
            Answer::whole([text("More.")]),
        ],
    );
    let waits = server.chat(&json!({"messages": [user("Pick!")], "tools": [pick()]})).await;
    let message = waits.json()["choices"][0]["message"].clone();
    let result = json!({"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "red"});
    let given = json!({"messages": [user("Pick!"), message, result], "tools": [pick()]});
    let picked = sent_again(&server, CHAT, &given, "0").await;
    assert_eq!(picked.json()["choices"][0]["message"]["content"], "Picked.");

    let first = server.respond(&json!({"input": "Touch!"})).await.json();
    let answer = json!({"type": "mcp_approval_response", "approval_request_id": first["output"][0]["id"], "approve": true});
    let approves = json!({"previous_response_id": first["id"], "input": [answer]});
    // The first conversation goes on meanwhile, and so does the second.
    let say = async |conversation: &str| {
        let path = format!("/api/v1/conversations/{conversation}/chat");
        assert_eq!(server.post(&path, &json!({"content": "More"})).await.status, 200);
    };
    let touched = sent_again(&server, RESPONSES, &approves, "0").await;
    assert!(touched.body.contains("Touched."), "{}", touched.body);
    say(conversation(&picked)).await;
    say(conversation(&touched)).await;

    let next = server_on(store.another_process(), []);
    assert_eq!(sent_again(&next, CHAT, &given, "1").await.json(), picked.json());
    assert_eq!(sent_again(&next, RESPONSES, &approves, "1").await.json()["output"], touched.json()["output"]);
    assert_eq!((conversations(&next).await, next.source.effects().len()), (2, 0));
}

#[tokio::test]
async fn a_history_that_goes_on_with_results_of_elsewhere_goes_on_once() {
    let store = MemoryStore::default();
    let server = server_on(store.another_process(), [Answer::whole([text("Found.")])]);
    let function = json!({"name": "find", "arguments": "{}"});
    let calls = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "call_abc", "type": "function", "function": function}]});
    let result = json!({"role": "tool", "tool_call_id": "call_abc", "content": "it"});
    let body = json!({"messages": [user("Find!"), calls, result]});
    let found = sent_again(&server, CHAT, &body, "0").await;
    assert_eq!(found.json()["choices"][0]["message"]["content"], "Found.", "{}", found.body);
    let next = server_on(store.another_process(), []);
    assert_eq!(sent_again(&next, CHAT, &body, "1").await.json(), found.json());
    assert_eq!(conversations(&next).await, 1);
}

#[tokio::test]
async fn the_same_request_is_a_new_one_where_it_comes_anew_after_an_hour_or_after_its_conversation_was_deleted() {
    let body = json!({"messages": [user("Hi")]});
    let answers = || (0..4).map(|number| Answer::whole([text(&format!("Hello {number}."))]));
    let store = MemoryStore::default();
    let (server, next) = (server_on(store.another_process(), answers()), server_on(store.another_process(), answers()));
    let both = futures_util::join!(sent_again(&server, CHAT, &body, "0"), sent_again(&server, CHAT, &body, "0"));
    assert_ne!(conversation(&both.0), conversation(&both.1), "two that come at once are two");
    server.clock.advance(1);
    next.clock.advance(1);
    let anew = sent_again(&server, CHAT, &body, "0").await;
    let again = sent_again(&next, CHAT, &body, "1").await;
    assert_eq!((again.json(), next.provider.asked().len()), (anew.json(), 0), "it is the newest");

    next.clock.advance(60 * 60 * 1_000);
    assert_eq!(sent_again(&next, CHAT, &body, "2").await.json(), anew.json(), "for an hour");
    next.clock.advance(1);
    let later = sent_again(&next, CHAT, &body, "2").await;
    assert_eq!(later.json()["choices"][0]["message"]["content"], "Hello 0.");

    let path = format!("/api/v1/conversations/{}", conversation(&later));
    assert_eq!(next.send(http::Method::DELETE, &path, axum::body::Body::empty(), &[]).await.status, 204);
    let last = sent_again(&next, CHAT, &body, "1").await;
    assert_eq!(last.json()["choices"][0]["message"]["content"], "Hello 1.");
}

#[tokio::test]
async fn a_request_that_one_server_refused_runs_once_at_another_whatever_their_clocks_say() {
    let (store, gate) = (MemoryStore::default(), Arc::new(Semaphore::new(0)));
    let busy =
        server_on(store.another_process(), [Answer::whole([text("Slow.")]).gated(&gate), Answer::whole([text("Anew.")])]);
    let other = server_with(store.another_process(), looking());
    // Its clock is ahead of the other's.
    busy.clock.advance(1_000);
    busy.engine.limit(Limits {
        turns: 1,
        turns_per_user: 9,
        message_bytes: 1_000,
        attachments: 1,
        attachment_bytes: 1_000,
        ..Limits::default()
    });
    let body = json!({"messages": [user("Look!")]});
    let asks = async {
        while busy.provider.asked().is_empty() {
            tokio::task::yield_now().await;
        }
        let refused = sent_again(&busy, CHAT, &body, "0").await;
        let answered = sent_again(&other, CHAT, &body, "1").await;
        gate.add_permits(9);
        (refused.status, answered)
    };
    let slow = json!({"messages": [user("Slowly!")]});
    let (_, (refused, answered)) = futures_util::join!(busy.chat(&slow), asks);
    assert_eq!((refused, &answered.json()["choices"][0]["message"]["content"]), (503, &json!("Seen.")));
    assert_eq!(sent_again(&busy, CHAT, &body, "2").await.json(), answered.json());
    assert_eq!((conversations(&busy).await, other.source.effects().len()), (2, 1));

    let anew = sent_again(&busy, CHAT, &body, "0").await;
    let newest = sent_again(&other, CHAT, &body, "0").await;
    assert_ne!(conversation(&anew), conversation(&newest));
    assert_eq!(sent_again(&busy, CHAT, &body, "1").await.json(), newest.json(), "by the clocks it came before");
}

#[tokio::test]
async fn a_turn_that_failed_before_a_restart_is_taken_up_by_the_request_that_is_sent_again() {
    let store = MemoryStore::default();
    let looks = || Answer::whole([call(0, "lab__look", "{}")]);
    for keyed in [false, true] {
        let server = server_on(store.another_process(), [looks()]);
        let next = server_on(store.another_process(), [Answer::whole([text("Seen.")])]);
        let body = json!({"messages": [user("Look!")]});
        let send = async |server: &Server, times: &str| {
            let mut headers = vec![("content-type", "application/json"), ("x-stainless-retry-count", times)];
            headers.extend(keyed.then_some(("idempotency-key", "k")));
            server.send(http::Method::POST, CHAT, axum::body::Body::from(body.to_string()), &headers).await
        };
        let failed = send(&server, "0").await;
        let seen = send(&next, "1").await;
        assert_eq!((failed.status, conversation(&failed)), (502, conversation(&seen)));
        assert_eq!(seen.json()["choices"][0]["message"]["content"], "Seen.", "{}", seen.body);
        assert_eq!((server.source.effects().len(), next.source.effects().len()), (1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn of_a_call_that_may_have_happened_the_text_of_a_chat_says_so_and_how_that_is_decided() {
    let allows = |store: MemoryStore| {
        let rule = RuleText { tool: "lab__touch".to_owned(), when: BTreeMap::new(), action: Action::Allow };
        server_as(store, touches(), Policy::new([rule]).unwrap())
    };
    let mut asked = 0;
    for fuse in (1..=8).flat_map(|append| [Fuse::Before(append), Fuse::After(append)]) {
        let store = MemoryStore::default();
        let body = json!({"messages": [user("Touch!")]});
        let doomed = allows(store.doomed_process(fuse));
        let _died = timeout(Duration::from_mins(5), sent_again(&doomed, CHAT, &body, "0")).await;
        doomed.engine.shutdown().await;

        let next = allows(store.another_process());
        next.engine.resume_open_turns().await.unwrap();
        let told = sent_again(&next, CHAT, &body, "1").await;
        let name = conversation(&told).to_owned();
        let waiting = next.engine.waiting(&name.parse().unwrap()).await.unwrap();
        if waiting.first().is_none_or(|waiting| waiting.reason != QuestionReason::UnknownOutcome) {
            continue;
        }
        asked += 1;
        let told = told.json();
        let text = told["choices"][0]["message"]["content"].as_str().unwrap();
        let line = format!(
            "- `lab__touch` with {{}}, which was interrupted and may have happened\n  `turnwright approvals decide call_4_0 happened --approval {} \
             --conversation {name}` (or `run_again` or `skip`)\n",
            waiting[0].approval
        );
        assert!(text.contains(&line), "{fuse:?}: {text}");
    }
    assert!(asked > 0);
}
