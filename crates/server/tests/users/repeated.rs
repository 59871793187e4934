//! Requests that come again with their key: what they make is made once, whoever dies or hangs up in between.

use turnwright_engine::{CONVERSATION_DOCUMENTS, Document, REPEATABLE_REQUESTS};

use super::*;

const KEY: (&str, &str) = ("idempotency-key", "k1");

async fn admin(server: &Server, name: &str) -> String {
    let root = server.user(name, Role::Admin).await;
    server.token(&root.id, Scope::ALL, None).await.0
}

fn waits() -> Value {
    json!({"name": "lab__wait", "approve": "all"})
}

async fn calls_by_hand(server: &Server, token: &str, body: Value) -> Answered {
    server.with(Method::POST, "/api/v1/tools/call", token, KEY, body).await
}

#[tokio::test]
async fn what_calls_or_changes_is_carried_out_once_for_each_key() {
    let server = server().await;
    let token = admin(&server, "root").await;
    server.post("/api/v1/conversations", &token, json!({"id": "c"})).await;
    let touch = json!({"name": "lab__touch", "arguments": {"a": 1}, "approve": "all"});
    for (path, status, body, other) in [
        ("/api/v1/tools/call", 200, touch.clone(), json!({"name": "lab__touch", "approve": "all"})),
        (
            "/api/v1/conversations/c/tools",
            201,
            json!({"server_id": "lab", "tool_name": "touch"}),
            json!({"server_id": "lab", "tool_name": "wait"}),
        ),
    ] {
        let first = server.with(Method::POST, path, &token, KEY, body.clone()).await;
        assert_eq!(first.status.as_u16(), status, "{path}: {}", first.body);
        let again = server.with(Method::POST, path, &token, KEY, body).await;
        assert_eq!((again.status.as_u16(), again.json()), (status, first.json()), "{path}");
        let reused = server.with(Method::POST, path, &token, KEY, other).await;
        assert_eq!(reused.code(), (422, "idempotency_key_reused".to_owned()), "{path}");
    }
    assert_eq!(server.source.effects().len(), 1);
    // Without a key, or with another's, it is another request.
    assert_eq!(server.post("/api/v1/tools/call", &token, touch.clone()).await.status, StatusCode::OK);
    let another = admin(&server, "other").await;
    assert_eq!(calls_by_hand(&server, &another, touch).await.status, StatusCode::OK);
    assert_eq!(server.source.effects().len(), 3);
    // What was refused made nothing, and may come again.
    for _ in 0..2 {
        let nowhere =
            server.with(Method::POST, "/api/v1/tools/call", &token, ("idempotency-key", "k2"), json!({"name": "x"})).await;
        assert_eq!(nowhere.code(), (404, "not_found".to_owned()));
    }
}

#[tokio::test]
async fn a_decision_that_comes_again_with_its_key_is_the_same_and_another_is_refused() {
    let server = server().await;
    let token = admin(&server, "root").await;
    let asked = server.post("/api/v1/conversations/c/chat", &token, json!({"content": "touch it"})).await.json();
    assert_eq!(asked["turn"]["status"], "suspended");
    let waits = server.get("/api/v1/conversations/c/calls", &token).await.json();
    let decision = format!("/api/v1/conversations/c/calls/{}/decision", waits["data"][0]["id"].as_str().unwrap());
    let decide = async |body: Value| server.with(Method::POST, &decision, &token, KEY, body).await;

    let first = decide(json!({"decision": "allow"})).await;
    assert_eq!(first.status, StatusCode::OK, "{}", first.body);
    let again = decide(json!({"decision": "allow"})).await;
    assert_eq!((again.status, again.json()), (StatusCode::OK, first.json()));
    let other = decide(json!({"decision": "deny"})).await;
    assert_eq!(other.code(), (422, "idempotency_key_reused".to_owned()));
    // Without the key it is a second answer.
    assert_eq!(server.post(&decision, &token, json!({"decision": "allow"})).await.status, StatusCode::CONFLICT);
}

#[tokio::test]
async fn a_file_that_comes_again_with_its_key_is_the_same_and_another_is_refused() {
    let server = server().await;
    let token = admin(&server, "root").await;
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str()), KEY];
    let put = async |text: &str| server.ask(Method::POST, "/api/v1/artifacts?name=a.txt", &headers, text).await;
    let first = put("one").await;
    assert_eq!(first.status, StatusCode::CREATED, "{}", first.body);
    let again = put("one").await;
    assert_eq!((again.status, again.json()), (StatusCode::CREATED, first.json()));
    assert_eq!(again.header("location"), first.header("location"));
    assert_eq!(put("two").await.code(), (422, "idempotency_key_reused".to_owned()));
    let there = server.get(again.header("location"), &token).await;
    assert_eq!((there.status, there.body.as_str()), (StatusCode::OK, "one"));

    // Its name is not kept under the key, and the key stands for the file, also where that was removed or a process died over it.
    let documents = server.host.documents();
    let mut kept = documents.documents(REPEATABLE_REQUESTS).await.unwrap();
    assert!(kept.len() == 1 && !kept[0].body.contains("a.txt"), "{kept:?}");
    let place = first.header("location");
    let delete = async || server.ask(Method::DELETE, place, &headers[..1], "").await.status;
    assert_eq!(delete().await, StatusCode::NO_CONTENT);
    assert_eq!(put("one").await.status, StatusCode::CREATED);
    assert_eq!(server.get(place, &token).await.body, "one");
    assert_eq!(delete().await, StatusCode::NO_CONTENT);
    let mut left: Value = serde_json::from_str(&kept[0].body).unwrap();
    left["under_way"] = json!({"id": "conv_0", "since_ms": 5, "by": "0123456789abcdef0123456789abcdef"});
    left["answer"] = Value::Null;
    let left = Document { body: left.to_string(), ..kept.remove(0) };
    documents.put_document(REPEATABLE_REQUESTS, left).await.unwrap();
    assert_eq!(put("one").await.status, StatusCode::CREATED);
    assert_eq!(server.get(place, &token).await.body, "one");
    let packed = [headers[0], ("content-encoding", "gzip")];
    let packed = server.ask(Method::POST, "/api/v1/artifacts?name=a.txt", &packed, "one").await;
    assert_eq!(packed.code(), (415, "unsupported_media_type".to_owned()));
}

#[tokio::test]
async fn a_client_that_hangs_up_finds_the_answer_when_it_comes_again() {
    let server = server().await;
    let token = admin(&server, "root").await;
    {
        let request = std::pin::pin!(calls_by_hand(&server, &token, waits()));
        let called = async {
            while server.source.effects().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            answer = request => panic!("nothing has come yet: {}", answer.body),
            () = called => {}
        }
        // Here the request is dropped, as by a connection that ends.
    }
    let early = calls_by_hand(&server, &token, waits()).await;
    assert_eq!(early.code(), (409, "request_under_way".to_owned()), "{}", early.body);
    server.gate.add_permits(1);
    let answer = loop {
        let answer = calls_by_hand(&server, &token, waits()).await;
        if answer.status == StatusCode::OK {
            break answer.json();
        }
        assert_eq!(answer.code().1, "request_under_way");
        tokio::task::yield_now().await;
    };
    assert_eq!(answer["content"][0]["text"], "It came.");
    assert_eq!(server.source.effects().len(), 1);
}

#[tokio::test]
async fn of_what_a_process_was_doing_when_it_ended_the_next_one_says_that_nobody_knows() {
    let before = server().await;
    let token = admin(&before, "root").await;
    let done = json!({"name": "lab__touch", "approve": "all"});
    let made = before.with(Method::POST, "/api/v1/users", &token, KEY, json!({"name": "anna"})).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    let answered = before.with(Method::POST, "/api/v1/tools/call", &token, ("idempotency-key", "k0"), done.clone()).await;
    assert_eq!(answered.status, StatusCode::OK);
    let after = {
        let request = std::pin::pin!(calls_by_hand(&before, &token, waits()));
        let called = async {
            while before.source.effects().len() < 2 {
                tokio::task::yield_now().await;
            }
            // The next process over the same data, while the first is never heard of again.
            server_in(before.folder.clone(), Site::default()).await
        };
        tokio::select! {
            answer = request => panic!("it waits for ever: {}", answer.body),
            after = called => after,
        }
    };
    for _ in 0..2 {
        let unknown = calls_by_hand(&after, &token, waits()).await;
        assert_eq!(unknown.code(), (409, "request_under_way".to_owned()), "{}", unknown.body);
    }
    // What was answered before is answered again.
    let again = after.with(Method::POST, "/api/v1/tools/call", &token, ("idempotency-key", "k0"), done).await;
    assert_eq!((again.status, again.json()), (StatusCode::OK, answered.json()));
    let again = after.with(Method::POST, "/api/v1/users", &token, KEY, json!({"name": "anna"})).await;
    assert_eq!((again.status, again.json()), (StatusCode::CREATED, made.json()));
    assert_eq!(after.source.effects().len(), 0);
}

#[tokio::test]
async fn a_decision_whose_process_ended_before_it_was_stored_is_made_by_whoever_asks_again() {
    let server = server().await;
    let token = admin(&server, "root").await;
    let park = async |conversation: &str| {
        let path = format!("/api/v1/conversations/{conversation}");
        server.post(&format!("{path}/chat"), &token, json!({"content": "touch it"})).await;
        let waits = server.get(&format!("{path}/calls"), &token).await.json();
        format!("calls/{}/decision", waits["data"][0]["id"].as_str().unwrap())
    };
    let decide = async |conversation: &str, route: &str, decision: &str| {
        let path = format!("/api/v1/conversations/{conversation}/{route}");
        server.with(Method::POST, &path, &token, KEY, json!({"decision": decision})).await
    };
    let documents = server.host.documents();
    let kept = async |conversation: &str| {
        let all = documents.documents(CONVERSATION_DOCUMENTS).await.unwrap();
        all.into_iter().find(|document| document.key.starts_with(&format!("{conversation}/once/"))).unwrap()
    };
    let route = park("a").await;
    assert_eq!(decide("a", &route, "allow").await.status, StatusCode::OK);
    let first = kept("a").await;
    let unknown = || (409, "request_under_way".to_owned());
    let gone = "0123456789abcdef0123456789abcdef";
    for (conversation, by, expected) in [
        // It was stored, so that another question may be open by now.
        ("a", Some(gone), unknown()),
        ("b", Some(gone), (200, String::new())),
        ("c", Some(server.engine.driver().0.as_str()), unknown()),
        ("d", None, unknown()),
    ] {
        if conversation != "a" {
            assert_eq!(park(conversation).await, route);
        }
        // The key was taken, and nothing came after that.
        let mut left: Value = serde_json::from_str(&first.body).unwrap();
        left["under_way"] = json!({"id": "conv_0", "since_ms": 5, "by": by});
        left["answer"] = Value::Null;
        let key = first.key.replacen("a/", &format!("{conversation}/"), 1);
        documents.put_document(CONVERSATION_DOCUMENTS, Document { key, body: left.to_string() }).await.unwrap();
        let other = decide(conversation, &route, "deny").await;
        assert_eq!(other.code(), (422, "idempotency_key_reused".to_owned()), "{}", other.body);
        let answer = decide(conversation, &route, "allow").await;
        assert_eq!(answer.code(), expected, "{conversation}: {}", answer.body);
        if expected.0 == 200 {
            assert_eq!(decide(conversation, &route, "allow").await.json(), answer.json());
        }
    }
    assert_eq!(server.source.effects().len(), 2);
}

#[tokio::test]
async fn of_two_nodes_that_are_asked_at_once_one_makes_it() {
    let one = server().await;
    let other = server_in(one.folder.clone(), Site::default()).await;
    let token = admin(&one, "root").await;
    for round in 0..20 {
        let key = format!("key{round}");
        let rule = json!({"tool": format!("lab__round{round}"), "action": "deny", "scope": "user"});
        let at = async |server: &Server| {
            server.with(Method::POST, "/api/v1/approvals/rules", &token, ("idempotency-key", &key), rule.clone()).await
        };
        let answers = tokio::join!(at(&one), at(&other), at(&one), at(&other));
        let answers = [answers.0, answers.1, answers.2, answers.3];
        let made: Vec<Value> =
            answers.iter().filter(|answer| answer.status == StatusCode::CREATED).map(Answered::json).collect();
        assert!(!made.is_empty() && made.iter().all(|rule| *rule == made[0]), "{made:?}");
        for refused in answers.iter().filter(|answer| answer.status != StatusCode::CREATED) {
            assert_eq!(refused.code(), (409, "request_under_way".to_owned()));
        }
        let again = at(&other).await;
        assert_eq!((again.status, &again.json()), (StatusCode::CREATED, &made[0]));
    }
    // Each knows at least those that it made itself.
    let mut ids = std::collections::BTreeSet::new();
    for server in [&one, &other] {
        let rules = server.get("/api/v1/approvals/rules", &token).await.json();
        ids.extend(rules["data"].as_array().unwrap().iter().map(|rule| rule["id"].as_str().unwrap().to_owned()));
    }
    assert_eq!(ids.len(), 20, "{ids:?}");
}

#[tokio::test]
async fn what_is_shown_once_is_made_once_also_after_a_restart() {
    let before = server().await;
    let token = admin(&before, "root").await;
    let (anna, _) = before.member("anna").await;
    let named = |name: &str| json!({"name": name});
    let doors = [
        ("/api/v1/tokens".to_owned(), named("ci"), named("cd")),
        (format!("/api/v1/users/{}/tokens", anna.id), named("ci"), named("cd")),
        (format!("/api/v1/users/{}/links", anna.id), json!({}), named("cd")),
    ];
    let mut secrets = Vec::new();
    for (path, body, _) in &doors {
        let made = before.with(Method::POST, path, &token, KEY, body.clone()).await;
        assert_eq!(made.status, StatusCode::CREATED, "{path}: {}", made.body);
        let made = made.json();
        let secret = made["secret"].as_str().or_else(|| made["path"].as_str()?.split_once('=').map(|(_, code)| code));
        secrets.push((secret.unwrap().to_owned(), made["id"].as_str().unwrap_or("a link").to_owned()));
    }
    let known = async || before.accounts.credentials(&anna.id).await.unwrap().len();
    assert_eq!(known().await, 3);
    let after = server_in(before.folder.clone(), Site::default()).await;
    for server in [&before, &after] {
        for ((path, body, other), (secret, name)) in doors.iter().zip(&secrets) {
            let again = server.with(Method::POST, path, &token, KEY, body.clone()).await;
            assert_eq!(again.code(), (409, "already_made".to_owned()), "{path}");
            assert!(again.body.contains(name) && !again.body.contains(secret), "{path}: {}", again.body);
            let reused = server.with(Method::POST, path, &token, KEY, other.clone()).await;
            assert_eq!(reused.code(), (422, "idempotency_key_reused".to_owned()), "{path}");
        }
    }
    assert_eq!(known().await, 3);
}

#[tokio::test]
async fn an_mcp_server_that_was_removed_is_not_added_again_by_the_request_that_added_it() {
    let server = server().await;
    let token = admin(&server, "root").await;
    let path = "/api/v1/mcp/servers";
    let add = async |name: &str| {
        let body = json!({"name": name, "url": "http://127.0.0.1:9/", "enabled": false});
        server.with(Method::POST, path, &token, KEY, body).await
    };
    let first = add("s1").await;
    assert_eq!((first.status, first.header("location")), (StatusCode::CREATED, "/api/v1/mcp/servers/s1"), "{}", first.body);
    let removed = server.with(Method::DELETE, &format!("{path}/s1"), &token, ("x-none", ""), Value::Null).await;
    assert_eq!(removed.status, StatusCode::NO_CONTENT);
    let again = add("s1").await;
    assert_eq!(
        (again.status, again.json(), again.header("location")),
        (StatusCode::CREATED, first.json(), first.header("location"))
    );
    assert_eq!(server.get(&format!("{path}/s1"), &token).await.status, StatusCode::NOT_FOUND);
    assert_eq!(add("s2").await.code(), (422, "idempotency_key_reused".to_owned()));
}

#[tokio::test]
async fn a_key_that_one_user_added_an_mcp_server_with_is_nothing_to_another() {
    let server = server().await;
    let (anna, ben) = (admin(&server, "anna").await, admin(&server, "ben").await);
    let (_, bob) = server.member("bob").await;
    let add = async |token: &str, name: &str| {
        let body = json!({"name": name, "url": "http://127.0.0.1:9/", "enabled": false});
        server.with(Method::POST, "/api/v1/mcp/servers", token, KEY, body).await
    };
    let everyones = add(&anna, "s1").await;
    assert_eq!((everyones.status, &everyones.json()["owner"]), (StatusCode::CREATED, &json!("everyone")));
    let own = add(&bob, "s2").await;
    assert_eq!(own.status, StatusCode::CREATED, "{}", own.body);
    let taken = add(&ben, "s1").await;
    assert_eq!(taken.status, StatusCode::CONFLICT, "{}", taken.body);
    assert_ne!(taken.code().1, "request_under_way");
    assert_eq!(add(&anna, "s1").await.json(), everyones.json());
}

#[tokio::test]
async fn a_key_that_stands_for_another_request_is_told_as_it_was_written() {
    let server = server().await;
    let token = admin(&server, "root").await;
    for (path, body, other) in [
        ("/api/v1/users", json!({"name": "anna"}), json!({"name": "ben"})),
        ("/api/v1/conversations", json!({"title": "one"}), json!({"title": "two"})),
    ] {
        let key = ("idempotency-key", "my key one");
        assert_eq!(server.with(Method::POST, path, &token, key, body).await.status, StatusCode::CREATED, "{path}");
        let reused = server.with(Method::POST, path, &token, key, other).await;
        assert_eq!(reused.code(), (422, "idempotency_key_reused".to_owned()), "{path}");
        assert!(reused.body.contains("`my key one`"), "{path}: {}", reused.body);
    }
}
