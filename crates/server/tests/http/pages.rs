//! Lists that go on where they were, whatever became of what they showed.

use std::time::Duration;

use super::*;

fn shown(page: &Value) -> Vec<&str> {
    page["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect()
}

async fn after(server: &Server, path: &str, page: &Value) -> Value {
    let cursor = page["next_cursor"].as_str().unwrap();
    server.get(&format!("{path}&cursor={cursor}")).await.json()
}

async fn delete(server: &Server, path: &str) {
    let gone = server.send(Method::DELETE, path, &Value::Null, &[]).await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT, "{path}: {}", gone.body);
}

#[tokio::test]
async fn conversations_go_on_behind_one_that_is_deleted() {
    let server = server([]);
    for id in ["c1", "c2", "c3", "c4", "c5"] {
        server.post("/api/v1/conversations", json!({"id": id})).await;
    }
    for path in ["/api/v1/conversations?limit=2", "/api/v1/conversations?limit=2&q=c"] {
        let first = server.get(path).await.json();
        assert_eq!(shown(&first), ["c5", "c4"], "{path}");
        delete(&server, "/api/v1/conversations/c4").await;
        let rest = after(&server, path, &first).await;
        assert_eq!(shown(&rest), ["c3", "c2"], "{path}");
        server.post("/api/v1/conversations", json!({"id": "c4"})).await;
    }
    for bogus in ["c4", "bogus", "_c4", "01_c4", "msg_1"] {
        let refused = server.get(&format!("/api/v1/conversations?cursor={bogus}")).await;
        assert_eq!(refused.problem(), (400, "invalid_cursor".to_owned()), "{bogus}");
    }
}

#[tokio::test]
async fn those_that_are_pinned_are_listed_alone() {
    let server = server([]);
    for id in ["c1", "c2", "c3", "c4"] {
        server.post("/api/v1/conversations", json!({"id": id})).await;
    }
    for id in ["c1", "c2", "c3"] {
        let address = format!("/api/v1/conversations/{id}");
        server.send(Method::PATCH, &address, &json!({"pinned": true}), &[]).await;
    }
    server.send(Method::PATCH, "/api/v1/conversations/c2", &json!({"pinned": null}), &[]).await;
    let path = "/api/v1/conversations?pinned=true&limit=1";
    let first = server.get(path).await.json();
    assert_eq!((shown(&first), &first["data"][0]["pinned"]), (vec!["c3"], &json!(true)));
    let rest = after(&server, path, &first).await;
    assert_eq!((shown(&rest), &rest["has_more"]), (vec!["c1"], &json!(false)));
    let all = server.get("/api/v1/conversations?pinned=false").await.json();
    assert_eq!(shown(&all), ["c4", "c3", "c2", "c1"]);
    for wrong in ["pinned=yes", "pinned=true&q=c"] {
        let refused = server.get(&format!("/api/v1/conversations?{wrong}")).await;
        assert_eq!(refused.problem(), (400, "invalid_query".to_owned()), "{wrong}");
    }
}

#[tokio::test]
async fn messages_and_turns_go_on_behind_what_is_hidden() {
    let server = server([
        Answer::whole([call(0, "lab__look", "{}"), call(1, "lab__look", "{}")]),
        Answer::whole([text("Seen")]),
        Answer::whole([text("Two")]),
        Answer::whole([text("Three")]),
    ]);
    for content in ["A", "B", "C"] {
        server.post("/api/v1/conversations/c1/chat", json!({"content": content})).await;
    }
    let whole = server.get("/api/v1/conversations/c1/messages").await.json();
    let whole: Vec<String> = shown(&whole).into_iter().map(str::to_owned).collect();
    let path = "/api/v1/conversations/c1/messages?limit=3";
    let first = server.get(path).await.json();
    let exported = server.get(&format!("{path}&format=openai")).await.json();
    let turns = server.get("/api/v1/conversations/c1/turns?limit=1").await.json();
    // The last that was shown is a result, which goes with the message that asked for it.
    assert_eq!((shown(&first), &first["data"][2]["role"]), (whole[..3].iter().map(String::as_str).collect(), &json!("tool")));
    delete(&server, &format!("/api/v1/conversations/c1/messages/{}", whole[1])).await;
    assert_eq!(shown(&after(&server, path, &first).await), whole[4..7]);
    let path = format!("{path}&format=openai");
    let rest = after(&server, &path, &exported).await;
    assert_eq!(rest["data"][0]["content"], "Seen", "{rest}");
    for gone in &whole[whole.len() - 2..] {
        delete(&server, &format!("/api/v1/conversations/c1/messages/{gone}")).await;
    }
    let before = after(&server, "/api/v1/conversations/c1/turns?limit=1", &turns).await;
    assert_eq!(before["data"][0]["content"][0]["text"], "B", "{before}");
}

#[tokio::test]
async fn what_a_query_says_twice_is_refused_by_its_name() {
    let server = server([]);
    for (query, name) in [("limit=1&limit=2", "limit"), ("cursor=a&after=a", "cursor"), ("q=a&limit=1&q=a", "q")] {
        let refused = server.get(&format!("/api/v1/conversations?{query}")).await;
        assert_eq!(refused.problem(), (400, "invalid_query".to_owned()), "{query}");
        assert_eq!(refused.json()["detail"], format!("`{name}` stands twice in the query"));
    }
}

const FORMS: [&str; 5] = ["openai", "anthropic", "gemini", "ai-sdk", "ai-sdk-ui"];

/// All pages of a history, put together.
async fn pages(server: &Server, form: &str, limit: usize) -> Vec<Value> {
    let path = format!("/api/v1/conversations/c1/messages?format={form}&limit={limit}");
    let (mut page, mut all) = (server.get(&path).await.json(), Vec::new());
    for _ in 0..20 {
        all.extend_from_slice(page["data"].as_array().unwrap());
        if page["has_more"] == false {
            return all;
        }
        page = after(server, &path, &page).await;
    }
    panic!("{form} by {limit} has no end: {page}");
}

/// A conversation in which something was said while a model spoke: it stands behind what the model said then.
async fn joined() -> Server {
    let gate = Arc::new(Semaphore::new(0));
    let server = server([
        Answer::whole([text("One")]),
        Answer::whole([text("Looking"), call(0, "lab__look", "{}")]).gated(&gate),
        Answer::whole([text("Seen")]),
        Answer::whole([text("Three")]),
    ]);
    server.post("/api/v1/conversations/c1/chat", json!({"content": "Hi"})).await;
    let chat = server.post("/api/v1/conversations/c1/chat", json!({"content": "Look"}));
    let joins = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        server.post("/api/v1/conversations/c1/messages", json!({"content": "Wait"})).await;
        gate.add_permits(9);
    };
    tokio::join!(chat, joins);
    server.post("/api/v1/conversations/c1/chat", json!({"content": "Bye"})).await;
    server
}

#[tokio::test(start_paused = true)]
async fn the_pages_of_a_history_are_the_whole_of_it_where_a_message_joined() {
    let server = joined().await;
    for form in FORMS {
        let whole = pages(&server, form, 100).await;
        let text = Value::from(whole.clone()).to_string();
        let places = ["Looking", "Wait", "Seen", "Bye"].map(|said| text.find(said).unwrap());
        assert!(places.is_sorted(), "{text}");
        for limit in 1..6 {
            assert_eq!(pages(&server, form, limit).await, whole, "{form} by {limit}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_pages_of_a_history_go_on_behind_what_is_hidden_where_a_message_joined() {
    for form in FORMS {
        let server = joined().await;
        // What joined stands in one piece with the results before it in the forms that have two sides.
        let limit = if ["anthropic", "gemini"].contains(&form) { 6 } else { 5 };
        let path = format!("/api/v1/conversations/c1/messages?format={form}&limit={limit}");
        let first = server.get(&path).await.json();
        let whole = pages(&server, form, 100).await;
        let shown = first["data"].as_array().unwrap().len();
        delete(&server, &format!("/api/v1/conversations/c1/messages/{}", first["next_cursor"].as_str().unwrap())).await;
        assert_eq!(after(&server, &path, &first).await["data"][0], whole[shown], "{form}");
    }
}
