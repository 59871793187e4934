//! Answers that come again after something else was asked about their call.

use std::time::Duration;

use tokio::time::timeout;
use turnwright_testkit::Fuse;

use super::*;

/// The page's first request, and its answer to what is asked under a name.
struct Door {
    path: &'static str,
    says: fn() -> Value,
    allows: fn(&str) -> Value,
}

const DOORS: [Door; 2] = [
    Door {
        path: "/api/chat?ui=7",
        says: || json!({"id": "c1", "messages": [{"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Touch!"}]}]}),
        allows: |asked| {
            let approval = json!({"id": asked, "approved": true});
            let part = json!({"type": "dynamic-tool", "state": "approval-responded", "approval": approval});
            json!({"id": "c1", "messages": [{"id": "turn_1", "role": "assistant", "parts": [part]}]})
        },
    },
    Door {
        path: "/ag-ui",
        says: || json!({"threadId": "c1", "runId": "r1", "messages": [{"id": "u1", "role": "user", "content": "Touch!"}]}),
        allows: |asked| {
            let answer = json!({"interruptId": asked, "status": "resolved", "payload": {"approved": true}});
            json!({"threadId": "c1", "runId": "r2", "messages": [], "resume": [answer]})
        },
    },
];

/// The name of what a stream asks last.
fn asked(answer: &Answered) -> Option<String> {
    let told = answer.chunks().into_iter().rev().filter_map(|chunk| serde_json::from_str::<Value>(&chunk).ok());
    let mut asked = told.filter_map(|chunk| {
        let asked = match chunk["type"].as_str()? {
            "tool-approval-request" => &chunk["approvalId"],
            "RUN_FINISHED" => &chunk["outcome"]["interrupts"][0]["id"],
            _ => return None,
        };
        asked.as_str().map(str::to_owned)
    });
    asked.next()
}

#[tokio::test(start_paused = true)]
async fn a_yes_that_comes_again_is_none_to_whether_a_lost_call_runs_again() {
    for Door { path, says, allows } in DOORS {
        let mut asked_again = 0;
        for fuse in (1..=4).flat_map(|append| [Fuse::Before(append), Fuse::After(append)]) {
            let on = |store: MemoryStore, answers: Vec<Answer>| {
                server_on(Arc::new(store), Arc::<MemoryDocuments>::default(), answers)
            };
            let store = MemoryStore::default();
            let asking = on(store.another_process(), vec![Answer::whole([call(0, "lab__touch", "{}")])]);
            let first = asked(&asking.post(path, says()).await).unwrap();
            asking.engine.shutdown().await;
            let doomed = on(store.doomed_process(fuse), vec![Answer::whole([text("Touched.")])]);
            let _died = timeout(Duration::from_mins(5), doomed.post(path, allows(&first))).await;
            doomed.engine.shutdown().await;

            let next = on(store.another_process(), vec![Answer::whole([text("Touched.")])]);
            next.engine.resume_open_turns().await.unwrap();
            let conversation = "c1".parse().unwrap();
            next.engine.wait(&conversation, "turn_1".parse().unwrap()).await.unwrap();
            let waiting = next.engine.waiting(&conversation).await.unwrap();
            if waiting.first().is_none_or(|waiting| waiting.reason != QuestionReason::UnknownOutcome) {
                continue;
            }
            asked_again += 1;
            let mut second = None;
            for key in ["k1", "k1", "k2"] {
                let headers = [("content-type", "application/json"), ("idempotency-key", key)];
                let told = next.send(Method::POST, path, &allows(&first), &headers).await;
                second = asked(&told);
                assert!(second.as_ref().is_some_and(|second| *second != first), "{path} {fuse:?}: {}", told.body);
                assert_eq!(next.engine.waiting(&conversation).await.unwrap(), waiting, "{path} {fuse:?}");
                assert!(next.source.effects().is_empty(), "{path} {fuse:?}");
            }
            let second = second.unwrap();
            let history = next.get("/api/v1/conversations/c1/messages?format=ai-sdk-ui").await.body;
            assert!(history.contains("it was interrupted and may have happened"), "{history}");
            assert!(history.contains(&second.replace("mcpr_", "appr_").replace("_c1", "")), "{history}");
            let told = next.post(path, allows(&second)).await;
            assert!(told.body.contains("Touched."), "{path} {fuse:?}: {}", told.body);
            assert_eq!(next.source.effects().len(), 1, "{path} {fuse:?}");
        }
        assert!(asked_again > 0, "{path}");
    }
}

#[tokio::test]
async fn a_yes_to_what_was_not_asked_yet_is_refused() {
    for Door { path, says, allows } in DOORS {
        let server = server([Answer::whole([call(0, "lab__touch", "{}")])]);
        let first = asked(&server.post(path, says()).await).unwrap();
        let later = match first.strip_suffix("_c1") {
            Some(first) => format!("{first}-2_c1"),
            None => format!("{first}-2"),
        };
        let refused = server.post(path, allows(&later)).await;
        assert!(refused.status == StatusCode::UNPROCESSABLE_ENTITY || refused.body.contains("RUN_ERROR"), "{}", refused.body);
        assert_eq!(server.engine.waiting(&"c1".parse().unwrap()).await.unwrap().len(), 1, "{path}");
    }
}
