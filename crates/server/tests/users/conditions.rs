//! Conditions on what may have been changed by somebody else, and requests that come again.

use std::io::{Read, Write};

use super::*;

impl Server {
    pub(super) async fn with(&self, method: Method, path: &str, token: &str, header: (&str, &str), body: Value) -> Answered {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", &*bearer), ("content-type", "application/json"), header];
        self.ask(method, path, &headers, &if body.is_null() { String::new() } else { body.to_string() }).await
    }
}

#[tokio::test]
async fn of_two_who_read_the_same_one_changes_it_and_the_other_is_told() {
    let server = server().await;
    let root = server.user("root", Role::Admin).await;
    let (token, _) = server.token(&root.id, Scope::ALL, None).await;
    server.post("/api/v1/conversations", &token, json!({"id": "c1"})).await;
    server.post("/api/v1/mcp/servers", &token, json!({"name": "s1", "url": "http://127.0.0.1:9/"})).await;
    let member = server.user("anna", Role::Member).await;
    let user = format!("/api/v1/users/{}", member.id);
    let table = [
        ("/api/v1/conversations/c1", json!({"title": "mine"}), json!({"title": "yours"})),
        ("/api/v1/mcp/servers/s1", json!({"enabled": false}), json!({"enabled": true})),
        (&user, json!({"enabled": false}), json!({"enabled": true})),
    ];
    for (path, first, second) in table {
        let read = server.get(path, &token).await;
        let tag = read.header("etag").to_owned();
        assert!(tag.starts_with('"'), "{path} has the tag {tag}");
        let again = server.with(Method::GET, path, &token, ("if-none-match", &tag), Value::Null).await;
        assert_eq!((again.status, again.body.as_str()), (StatusCode::NOT_MODIFIED, ""), "{path}");
        let changed = server.with(Method::PATCH, path, &token, ("if-match", &tag), first).await;
        assert_eq!(changed.status, StatusCode::OK, "{path}: {}", changed.body);
        let late = server.with(Method::PATCH, path, &token, ("if-match", &tag), second.clone()).await;
        assert_eq!(late.code(), (412, "precondition_failed".to_owned()), "{path}");
        let late = server.with(Method::DELETE, path, &token, ("if-match", &tag), Value::Null).await;
        assert_eq!(late.code(), (412, "precondition_failed".to_owned()), "{path}");
        let newest = changed.header("etag").to_owned();
        let changed = server.with(Method::PATCH, path, &token, ("if-match", &newest), second).await;
        assert_eq!(changed.status, StatusCode::OK, "{path}: {}", changed.body);
        let gone = server.with(Method::DELETE, path, &token, ("if-match", "*"), Value::Null).await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT, "{path}: {}", gone.body);
    }
}

#[tokio::test]
async fn of_two_who_change_the_same_through_two_processes_one_is_told_that_it_was_changed() {
    let one = server().await;
    let other = Box::pin(server_in(one.folder.clone(), Site::default())).await;
    let root = one.user("root", Role::Admin).await;
    let (token, _) = one.token(&root.id, Scope::ALL, None).await;
    let anna = one.user("anna", Role::Member).await;
    let (user, mcp) = (format!("/api/v1/users/{}", anna.id), "/api/v1/mcp/servers/s1");
    let declared = json!({"name": "s1", "url": "http://127.0.0.1:9/", "enabled": false});
    for round in 0..6 {
        one.post("/api/v1/mcp/servers", &token, declared.clone()).await;
        let table = [
            (&*user, json!({"role": "admin"}), json!({"enabled": false})),
            (mcp, json!({"idle_ms": 60_000 + round}), json!({"start_ms": 60_000 + round})),
        ];
        for (path, first, second) in table {
            let tag = one.get(path, &token).await.header("etag").to_owned();
            let (first, second) = tokio::join!(
                one.with(Method::PATCH, path, &token, ("if-match", &tag), first),
                other.with(Method::PATCH, path, &token, ("if-match", &tag), second),
            );
            let mut told = [first.status.as_u16(), second.status.as_u16()];
            told.sort_unstable();
            assert_eq!(told, [200, 412], "round {round}, {path}: {} {}", first.body, second.body);
        }
        let now = one.accounts.user(&anna.id).await.unwrap().unwrap();
        one.accounts.change_user(&now, Role::Member, true, Staying::WithLocal).await.unwrap();
        let tag = other.get(mcp, &token).await.header("etag").to_owned();
        let (gone, changed) = tokio::join!(
            one.with(Method::DELETE, mcp, &token, ("if-match", &tag), Value::Null),
            other.with(Method::PATCH, mcp, &token, ("if-match", &tag), json!({"total_ms": 700_000 + round})),
        );
        let told = (gone.status.as_u16(), changed.status.as_u16());
        assert!(matches!(told, (204, 404 | 412) | (412, 200)), "round {round}: {} {}", gone.body, changed.body);
    }
    for round in 0..6 {
        let (path, text) = ("/api/v1/memory", |who: &str| json!({"text": format!("- {who} was here {round}")}));
        let tag = one.get(path, &token).await.header("etag").to_owned();
        let (first, second) = tokio::join!(
            one.with(Method::PUT, path, &token, ("if-match", &tag), text("one")),
            other.with(Method::PUT, path, &token, ("if-match", &tag), text("the other")),
        );
        let mut told = [first.status.as_u16(), second.status.as_u16()];
        told.sort_unstable();
        assert_eq!(told, [200, 412], "round {round}: {} {}", first.body, second.body);
    }
    // Without a condition both are made, one after the other.
    let (added, again) = tokio::join!(
        one.post("/api/v1/mcp/servers", &token, json!({"name": "s2", "url": "http://127.0.0.1:9/", "enabled": false})),
        other.post("/api/v1/mcp/servers", &token, json!({"name": "s2", "url": "http://127.0.0.1:7/", "enabled": false})),
    );
    let mut told = [added.status.as_u16(), again.status.as_u16()];
    told.sort_unstable();
    assert_eq!(told, [201, 409], "{} {}", added.body, again.body);
    let path = "/api/v1/mcp/servers/s2";
    let (first, second) = tokio::join!(
        one.with(Method::PATCH, path, &token, ("x-none", ""), json!({"idle_ms": 5_000})),
        other.with(Method::PATCH, path, &token, ("x-none", ""), json!({"owner": "me"})),
    );
    assert_eq!((first.status, second.status), (StatusCode::OK, StatusCode::OK), "{} {}", first.body, second.body);
    let both = one.get(path, &token).await.json();
    assert_eq!((&both["config"]["idle_ms"], &both["owner"]), (&json!(5_000), &json!(root.id.as_str())), "{both}");
}

#[tokio::test]
async fn a_document_that_comes_while_its_conversation_is_deleted_is_beside_no_other_of_its_name() {
    let server = server().await;
    let (_, anna) = server.member("anna").await;
    let (_, ben) = server.member("ben").await;
    for round in 0..12 {
        let path = format!("/api/v1/conversations/c{round}");
        server.post("/api/v1/conversations", &anna, json!({"id": format!("c{round}")})).await;
        let bearer = format!("Bearer {anna}");
        let headers = [("authorization", &*bearer), ("content-type", "application/octet-stream")];
        let document = format!("{path}/knowledge/own.md");
        let (put, gone) = tokio::join!(
            server.ask(Method::PUT, &document, &headers, "# What Anna alone knows"),
            server.with(Method::DELETE, &path, &anna, ("x-none", ""), Value::Null),
        );
        assert!(matches!(put.status.as_u16(), 200 | 404), "round {round}: {}", put.body);
        assert_eq!(gone.status, StatusCode::NO_CONTENT, "round {round}: {}", gone.body);
        server.post("/api/v1/conversations", &ben, json!({"id": format!("c{round}")})).await;
        let beside = server.get(&format!("{path}/knowledge"), &ben).await;
        assert_eq!((beside.status, &beside.json()["data"]), (StatusCode::OK, &json!([])), "round {round}: {}", beside.body);
    }
}

#[tokio::test]
async fn what_the_user_of_the_machine_used_is_told_once() {
    let server = server().await;
    let (token, _) = server.token(&UserId::local(), Scope::ALL, None).await;
    server.post("/api/v1/conversations/c1/chat", &token, json!({"content": "hi"})).await;
    let told = server.get("/api/v1/usage/users", &token).await.json();
    let ids: Vec<&Value> = told["data"].as_array().unwrap().iter().map(|line| &line["id"]).collect();
    assert_eq!(ids, [UserId::LOCAL], "{told}");
}

#[tokio::test]
async fn the_last_admin_who_can_come_in_stays() {
    let server = server().await;
    let root = server.user("root", Role::Admin).await;
    let (token, _) = server.token(&root.id, Scope::ALL, None).await;
    let path = format!("/api/v1/users/{}", root.id);
    let refused = async |method: Method, body: Value| {
        let refused = server.with(method, &path, &token, ("x-none", ""), body).await;
        assert_eq!(refused.code(), (409, "last_admin".to_owned()), "{}", refused.body);
        assert!(refused.body.contains("`root` is the last admin who can come in"), "{}", refused.body);
    };
    refused(Method::PATCH, json!({"role": "member"})).await;
    refused(Method::PATCH, json!({"enabled": false})).await;
    refused(Method::DELETE, Value::Null).await;
    let added = server.post("/api/v1/users", &token, json!({"name": "ben", "role": "admin"})).await.json();
    let ben = format!("/api/v1/users/{}", added["id"].as_str().unwrap());
    let kept_out = server.with(Method::PATCH, &ben, &token, ("x-none", ""), json!({"enabled": false})).await;
    assert_eq!(kept_out.status, StatusCode::OK, "{}", kept_out.body);
    refused(Method::DELETE, Value::Null).await;
    server.with(Method::PATCH, &ben, &token, ("x-none", ""), json!({"enabled": true})).await;
    let goes = server.with(Method::PATCH, &path, &token, ("x-none", ""), json!({"role": "member"})).await;
    assert_eq!((goes.status, &goes.json()["role"]), (StatusCode::OK, &json!("member")), "{}", goes.body);
}

#[tokio::test]
async fn mcp_servers_come_a_page_at_a_time_whichever_go_meanwhile() {
    let server = server().await;
    let root = server.user("root", Role::Admin).await;
    let (token, _) = server.token(&root.id, Scope::ALL, None).await;
    for name in ["s10", "s2", "s1", "s3"] {
        let added = server
            .post("/api/v1/mcp/servers", &token, json!({"name": name, "url": "http://127.0.0.1:9/", "enabled": false}))
            .await;
        assert_eq!(added.status, StatusCode::CREATED, "{}", added.body);
    }
    let names = |page: &Value| -> Vec<String> {
        page["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    let first = server.get("/api/v1/mcp/servers?limit=2", &token).await.json();
    assert_eq!((names(&first), &first["has_more"]), (vec!["s1".into(), "s2".into()], &json!(true)));
    let next = format!("/api/v1/mcp/servers?limit=2&cursor={}", first["next_cursor"].as_str().unwrap());
    server.with(Method::DELETE, "/api/v1/mcp/servers/s2", &token, ("x-none", ""), Value::Null).await;
    let rest = server.get(&next, &token).await.json();
    assert_eq!((names(&rest), &rest["has_more"]), (vec!["s3".into(), "s10".into()], &json!(false)));
    let wrong = server.get("/api/v1/mcp/servers?limit=101", &token).await;
    assert_eq!(wrong.code(), (400, "invalid_query".to_owned()), "{}", wrong.body);
}

#[tokio::test]
async fn a_turn_that_goes_on_refuses_no_change_of_the_settings_and_is_told_to_who_looks_again() {
    let server = server().await;
    let (_, token) = server.member("anna").await;
    server.post("/api/v1/conversations", &token, json!({"id": "c1", "title": "t"})).await;
    let tag = server.get("/api/v1/conversations/c1", &token).await.header("etag").to_owned();
    server.post("/api/v1/conversations/c1/chat", &token, json!({"content": "hello"})).await;
    let again = server.with(Method::GET, "/api/v1/conversations/c1", &token, ("if-none-match", &tag), Value::Null).await;
    assert_eq!(again.status, StatusCode::OK);
    let pin = json!({"pinned": true});
    let changed = server.with(Method::PATCH, "/api/v1/conversations/c1", &token, ("if-match", &tag), pin).await;
    assert_eq!((changed.status, &changed.json()["pinned"]), (StatusCode::OK, &json!(true)));
}

#[tokio::test]
async fn whatever_makes_something_makes_it_once_for_each_key() {
    let server = server().await;
    let root = server.user("root", Role::Admin).await;
    let (token, _) = server.token(&root.id, Scope::ALL, None).await;
    let key = ("idempotency-key", "k1");
    for (path, body, other) in [
        ("/api/v1/users", json!({"name": "anna"}), json!({"name": "ben"})),
        (
            "/api/v1/approvals/rules",
            json!({"tool": "lab__*", "action": "allow", "scope": "user"}),
            json!({"tool": "lab__*", "action": "deny", "scope": "user"}),
        ),
    ] {
        let made = server.with(Method::POST, path, &token, key, body.clone()).await;
        assert_eq!(made.status, StatusCode::CREATED, "{path}: {}", made.body);
        let again = server.with(Method::POST, path, &token, key, body).await;
        assert_eq!((again.status, again.json()), (StatusCode::CREATED, made.json()), "{path}");
        let reused = server.with(Method::POST, path, &token, key, other).await;
        assert_eq!(reused.code(), (422, "idempotency_key_reused".to_owned()), "{path}");
        assert!(reused.body.contains("`k1`"), "{}", reused.body);
    }
    // A secret is shown once: the same request makes no second one, and is told so.
    let own = async || server.get("/api/v1/tokens", &token).await.json()["data"].as_array().unwrap().len();
    let before = own().await;
    let made = server.with(Method::POST, "/api/v1/tokens", &token, key, json!({"name": "ci"})).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    let again = server.with(Method::POST, "/api/v1/tokens", &token, key, json!({"name": "ci"})).await;
    assert_eq!(again.code(), (409, "already_made".to_owned()));
    assert!(again.body.contains(made.json()["id"].as_str().unwrap()), "{}", again.body);
    assert_eq!(own().await, before + 1);
    let ui = json!({"id": "c-ui", "messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "hi"}]}]});
    for _ in 0..2 {
        assert_eq!(server.with(Method::POST, "/api/chat", &token, key, ui.clone()).await.status, StatusCode::OK);
    }
    let messages = server.get("/api/v1/conversations/c-ui/messages", &token).await.json();
    assert_eq!(messages["data"].as_array().unwrap().len(), 2, "{messages}");
}

#[tokio::test]
async fn the_tools_of_a_conversation_are_changed_by_whoever_saw_what_they_are() {
    let server = server().await;
    let (_, token) = server.member("anna").await;
    server.post("/api/v1/conversations", &token, json!({"id": "c1"})).await;
    let path = "/api/v1/conversations/c1/tools";
    let seen = server.get(path, &token).await.header("etag").to_owned();
    let known = server.with(Method::GET, path, &token, ("if-none-match", &seen), Value::Null).await;
    assert_eq!(known.status, StatusCode::NOT_MODIFIED);
    let tool = |name: &str| json!({"server_id": "lab", "tool_name": name});
    let first = server.with(Method::POST, path, &token, ("if-match", &seen), tool("touch")).await;
    assert_eq!(first.status, StatusCode::CREATED, "{}", first.body);
    for (method, name) in [(Method::POST, "wait"), (Method::DELETE, "touch")] {
        let late = server.with(method.clone(), path, &token, ("if-match", &seen), tool(name)).await;
        assert_eq!(late.code(), (412, "precondition_failed".to_owned()), "{method}");
    }
    let now = server.get(path, &token).await;
    assert_eq!(now.json()["data"].as_array().unwrap().len(), 1, "{}", now.body);
    let removed = server.with(Method::DELETE, path, &token, ("if-match", now.header("etag")), tool("touch")).await;
    assert_eq!(removed.status, StatusCode::NO_CONTENT, "{}", removed.body);
}

/// The address of an API that has one model, for as long as the test runs.
fn lists_a_model() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 8192];
            let _ = stream.read(&mut head).unwrap();
            let body = r#"{"object": "list", "data": [{"id": "m", "object": "model"}]}"#;
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
            );
            stream.write_all((head + body).as_bytes()).unwrap();
        }
    });
    format!("http://{address}/v1")
}

#[tokio::test]
async fn a_provider_is_changed_by_whoever_saw_what_it_is() {
    let server = server().await;
    let root = server.user("root", Role::Admin).await;
    let (token, _) = server.token(&root.id, Scope::ALL, None).await;
    let path = "/api/v1/providers/mine";
    let wanted = json!({"dialect": "openai-chat", "base_url": lists_a_model()});
    let put = async |tag: &str| server.with(Method::PUT, path, &token, ("if-match", tag), wanted.clone()).await;
    // Nobody saw what is not there.
    assert_eq!(put("*").await.code(), (412, "precondition_failed".to_owned()));
    let added = server.with(Method::PUT, path, &token, ("x-none", ""), wanted.clone()).await;
    assert_eq!(added.status, StatusCode::OK, "{}", added.body);
    let first = added.header("etag").to_owned();
    let second = put(&first).await;
    assert_eq!(second.status, StatusCode::OK, "{}", second.body);
    let anew = server.with(Method::PUT, path, &token, ("if-none-match", "*"), wanted.clone()).await;
    assert_eq!(anew.code(), (412, "precondition_failed".to_owned()));
    assert_eq!(put("*, \"a\"").await.code(), (400, "invalid_header".to_owned()));
    let remove = async |tag: &str| server.with(Method::DELETE, path, &token, ("if-match", tag), Value::Null).await;
    assert_eq!(remove("\"0-0\"").await.code(), (412, "precondition_failed".to_owned()));
    assert_eq!(remove(second.header("etag")).await.status, StatusCode::NO_CONTENT);
    let anew = server.with(Method::PUT, path, &token, ("if-none-match", "*"), wanted.clone()).await;
    assert_eq!(anew.status, StatusCode::OK, "{}", anew.body);
}

#[tokio::test]
async fn of_two_who_change_a_provider_through_two_processes_one_is_told_that_it_was_changed() {
    let one = server().await;
    let other = Box::pin(server_in(one.folder.clone(), Site::default())).await;
    let root = one.user("root", Role::Admin).await;
    let (token, _) = one.token(&root.id, Scope::ALL, None).await;
    let path = "/api/v1/providers/mine";
    let addresses = [lists_a_model(), lists_a_model(), lists_a_model(), lists_a_model()];
    let wanted = |which: usize| json!({"dialect": "openai-chat", "base_url": addresses[which]});
    for round in 0..6 {
        let added = one.with(Method::PUT, path, &token, ("x-none", ""), wanted(0)).await;
        assert_eq!(added.status, StatusCode::OK, "round {round}: {}", added.body);
        let tag = added.header("etag").to_owned();
        let (first, second) = tokio::join!(
            one.with(Method::PUT, path, &token, ("if-match", &tag), wanted(1)),
            other.with(Method::PUT, path, &token, ("if-match", &tag), wanted(2)),
        );
        let mut told = [first.status.as_u16(), second.status.as_u16()];
        told.sort_unstable();
        assert_eq!(told, [200, 412], "round {round}: {} {}", first.body, second.body);
        let winner = if first.status == StatusCode::OK { first } else { second };
        let tag = winner.header("etag").to_owned();
        let (gone, changed) = tokio::join!(
            other.with(Method::DELETE, path, &token, ("if-match", &tag), Value::Null),
            one.with(Method::PUT, path, &token, ("if-match", &tag), wanted(3)),
        );
        let told = (gone.status.as_u16(), changed.status.as_u16());
        assert!(matches!(told, (204, 412) | (412, 200)), "round {round}: {} {}", gone.body, changed.body);
    }
}

#[tokio::test]
async fn a_list_goes_on_behind_what_is_gone_and_no_cursor_leads_into_another_list() {
    let server = server().await;
    let root = server.user("root", Role::Admin).await;
    let (token, _) = server.token(&root.id, Scope::ALL, None).await;
    for number in 0..4 {
        server.user(&format!("user{number}"), Role::Member).await;
        server.clock.advance(1_000);
        assert_eq!(server.post("/api/v1/tokens", &token, json!({"name": "t"})).await.status, StatusCode::CREATED);
        let rule = json!({"tool": format!("lab__{number}"), "action": "deny", "scope": "user"});
        assert_eq!(server.post("/api/v1/approvals/rules", &token, rule).await.status, StatusCode::CREATED);
    }
    let lists = ["users", "tokens", "approvals/rules"];
    let mut cursors = Vec::new();
    for list in lists {
        let path = format!("/api/v1/{list}");
        let ids = async |query: &str| {
            let page = server.get(&format!("{path}?{query}"), &token).await.json();
            let ids: Vec<String> =
                page["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
            (ids, page["next_cursor"].as_str().map(str::to_owned))
        };
        let (whole, _) = ids("").await;
        // One that nobody needs: whoever asks, and with what, stays.
        let (first, next) = ids("limit=3").await;
        let next = next.unwrap();
        assert_eq!(first, whole[..3], "{list}");
        let gone = format!("{path}/{}", first.last().unwrap());
        let answered = server.with(Method::DELETE, &gone, &token, ("x-none", ""), Value::Null).await;
        assert_eq!(answered.status, StatusCode::NO_CONTENT, "{list}: {}", answered.body);
        assert_eq!(ids(&format!("cursor={next}")).await.0, whole[3..], "{list}");
        cursors.push(next);
    }
    for (list, cursor) in lists.into_iter().zip(cursors.into_iter().cycle().skip(1)) {
        let lost = server.get(&format!("/api/v1/{list}?cursor={cursor}"), &token).await;
        assert_eq!(lost.code(), (400, "invalid_cursor".to_owned()), "{list}: {}", lost.body);
    }
}

#[tokio::test]
async fn what_can_grow_is_told_a_page_at_a_time() {
    let server = server().await;
    let root = server.user("root", Role::Admin).await;
    let (token, _) = server.token(&root.id, Scope::ALL, None).await;
    for number in 0..5 {
        server.user(&format!("user{number}"), Role::Member).await;
        server.token(&root.id, [Scope::Read], None).await;
        let rule = json!({"tool": format!("lab__{number}"), "action": "deny", "scope": "user"});
        assert_eq!(server.post("/api/v1/approvals/rules", &token, rule).await.status, StatusCode::CREATED);
        let chat = format!("/api/v1/conversations/c{number}/chat");
        assert_eq!(server.post(&chat, &token, json!({"content": "touch it"})).await.json()["turn"]["status"], "suspended");
    }
    let lists = [
        ("approvals", 5),
        ("approvals/rules", 5),
        ("users", 6),
        ("tokens", 6),
        ("tools", 2),
        ("conversations/c0/calls", 1),
        ("conversations/c0/tools", 2),
        ("conversations/c0/tools/available", 2),
        ("usage/users", 1),
        ("providers", 0),
        ("knowledge", 0),
    ];
    for (path, least) in lists {
        let whole = server.get(&format!("/api/v1/{path}"), &token).await.json();
        assert!(whole["has_more"] == false && whole["data"].as_array().unwrap().len() >= least, "{path}: {whole}");
        let mut paged: Vec<Value> = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = server.get(&format!("/api/v1/{path}?limit=1{cursor}"), &token).await.json();
            let data = page["data"].as_array().unwrap();
            assert!(data.len() == 1 || whole["data"] == json!([]), "{path}: {page}");
            paged.extend(data.iter().cloned());
            let Some(next) = page["next_cursor"].as_str() else {
                assert_eq!(page["has_more"], false, "{path}");
                break;
            };
            cursor = format!("&cursor={}", next.replace('/', "%2F"));
        }
        let ids =
            |list: &[Value]| list.iter().map(|one| (one["conversation_id"].clone(), one["id"].clone())).collect::<Vec<_>>();
        assert_eq!(ids(&paged), ids(whole["data"].as_array().unwrap()), "{path}");
    }
    // What waits is decided about between two pages: the next one goes on behind it.
    let first = server.get("/api/v1/approvals?limit=1", &token).await.json();
    let (call, conversation) = (&first["data"][0]["id"], &first["data"][0]["conversation_id"]);
    let decision =
        format!("/api/v1/conversations/{}/calls/{}/decision", conversation.as_str().unwrap(), call.as_str().unwrap());
    assert_eq!(server.post(&decision, &token, json!({"decision": "deny"})).await.status, StatusCode::OK);
    let cursor = first["next_cursor"].as_str().unwrap().replace('/', "%2F");
    let next = server.get(&format!("/api/v1/approvals?limit=1&cursor={cursor}"), &token).await.json();
    // Calls are named within their conversation; its turn may have gone on to another by now.
    let of = (&next["data"][0]["conversation_id"], &next["data"][0]["id"]);
    assert!(of.1.is_string() && of != (conversation, call), "{next}");
    server.post("/api/v1/mcp/servers", &token, json!({"name": "s1", "url": "http://127.0.0.1:9/", "enabled": false})).await;
    let whole =
        ["usage", "models", "conversations/c0/messages", "conversations/c0/turns", "mcp/servers", "mcp/servers/s1/logs"];
    let whole = whole.iter().chain(
        [
            "mcp/servers/s1/tools",
            "conversations/c0/messages?format=openai",
            "conversations?q=hello",
            "knowledge/none/search?q=hello",
        ]
        .iter(),
    );
    for path in lists.iter().map(|(path, _)| path).chain(whole) {
        for bogus in ["bogus", ""] {
            let mark = if path.contains('?') { '&' } else { '?' };
            let lost = server.get(&format!("/api/v1/{path}{mark}cursor={bogus}"), &token).await;
            assert_eq!(lost.code(), (400, "invalid_cursor".to_owned()), "{path}: {}", lost.body);
            assert!(lost.json()["detail"].as_str().unwrap().contains(&format!("{bogus:?}")), "{path}: {}", lost.body);
        }
    }
}
