//! Messages that come again, or never came, by what their pages call them.

use tokio::task::JoinSet;
use turnwright_core::{Entry, MessageId, ProviderFailure, ProviderFailureKind, text_of};

use super::*;

fn page(trigger: &str, messages: &[Value]) -> Value {
    json!({"id": "c1", "trigger": trigger, "messages": messages})
}

fn user(id: &str, text: &str) -> Value {
    json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]})
}

fn answer(id: &str) -> Value {
    json!({"id": id, "role": "assistant", "parts": [{"type": "text", "text": "?"}]})
}

impl Server {
    /// What people said that is shown.
    async fn shown(&self) -> Vec<String> {
        let journal = self.engine.journal(&"c1".parse().unwrap()).await.unwrap();
        let said = journal.entries().iter().filter_map(|stored| match &*stored.entry {
            Entry::User(message) if !journal.is_hidden(MessageId(stored.seq)) => Some(text_of(&message.content)),
            _ => None,
        });
        said.collect()
    }
}

fn touching() -> [Answer; 3] {
    [Answer::whole([call(0, "lab__look", "{}")]), Answer::whole([text("Seen.")]), Answer::whole([text("More.")])]
}

#[tokio::test]
async fn a_message_of_use_chat_that_comes_again_under_its_name_is_the_same_one() {
    let server = server(touching());
    let mut says = page("submit-message", &[user("u1", "Look!")]);
    let first = server.post("/api/chat?ui=7", says.clone()).await;
    assert!(first.body.contains("Seen."), "{}", first.body);
    for message in [Value::Null, json!("u1")] {
        says["messageId"] = message;
        assert_eq!(server.post("/api/chat?ui=7", says.clone()).await.chunks(), first.chunks());
    }
    assert_eq!((server.shown().await, server.source.effects().len()), (vec!["Look!".to_owned()], 1));
    // Under another name, or beside another of its name, it is another.
    let both = page("submit-message", &[user("u1", "Look!"), answer("turn_1"), user("u2", "Look!")]);
    assert!(server.post("/api/chat?ui=7", both).await.body.contains("More."));
    assert_eq!(server.shown().await, ["Look!", "Look!"]);
}

#[tokio::test]
async fn a_message_of_use_chat_that_comes_again_declines_nothing_and_tries_again_what_failed() {
    let failure = ProviderFailure::new(ProviderFailureKind::InvalidRequest, "no");
    let server = server([
        Answer::whole([call(0, "lab__touch", "{}")]),
        Answer::of([]).failing(failure),
        Answer::whole([text("Touched.")]),
    ]);
    let says = page("submit-message", &[user("u1", "Touch!")]);
    let first = server.post("/api/chat?ui=7", says.clone()).await;
    assert_eq!(server.post("/api/chat?ui=7", says.clone()).await.chunks(), first.chunks());
    let waiting = server.engine.waiting(&"c1".parse().unwrap()).await.unwrap();
    server.decide(&waiting[0].call.to_string(), "allow").await;
    server.engine.wait(&"c1".parse().unwrap(), "turn_1".parse().unwrap()).await.unwrap();
    let again = server.post("/api/chat?ui=7", says).await;
    assert!(again.body.contains("Touched."), "{}", again.body);
    assert_eq!((server.shown().await, server.source.effects().len()), (vec!["Touch!".to_owned()], 1));
}

#[tokio::test]
async fn a_message_that_comes_again_is_the_same_one_where_another_page_spoke_at_the_same_moment() {
    for round in 0..8 {
        let answers = (0..6).map(|_| Answer::whole([text("Yes.")])).collect::<Vec<_>>();
        let server = server(answers);
        let says = |id: &str, words: &str| page("submit-message", &[user(id, words)]);
        let (other, mine) = (says("u1", "theirs"), says("u2", "mine"));
        tokio::join!(server.post("/api/chat?ui=7", other), server.post("/api/chat?ui=7", mine.clone()));
        let before = server.shown().await;
        assert_eq!(before.len(), 2, "{round}: {before:?}");
        if before.last().is_some_and(|last| last == "mine") {
            server.post("/api/chat?ui=7", mine).await;
            assert_eq!(server.shown().await, before, "{round}");
        }
    }
}

#[tokio::test]
async fn another_answer_to_a_message_that_never_came_says_it() {
    let server = server(["One.", "Two.", "Third."].map(|said| Answer::whole([text(said)])));
    let again = |messages: &[Value]| page("regenerate-message", messages);
    let first = server.post("/api/chat?ui=7", again(&[user("u1", "1")])).await;
    assert!(first.body.contains("One."), "{}", first.body);
    let mut said = vec![user("u1", "1"), answer("turn_1"), user("u2", "2")];
    let second = server.post("/api/chat?ui=7", again(&said)).await;
    assert!(second.body.contains("Two."), "{}", second.body);
    assert_eq!(server.shown().await, ["1", "2"]);
    // One that came is answered again, wherever others that did not come stand before it.
    said.insert(2, user("lost", "?"));
    let third = server.post("/api/chat?ui=7", again(&said)).await;
    assert!(third.body.contains("Third."), "{}", third.body);
    assert_eq!(server.shown().await, ["1", "2"]);
}

#[tokio::test]
async fn a_message_that_is_said_otherwise_is_found_by_its_name_where_others_never_came() {
    let server = server(["One.", "Three.", "THREE."].map(|said| Answer::whole([text(said)])));
    server.post("/api/chat?ui=7", page("submit-message", &[user("u1", "1")])).await;
    let said = |third: &str| [user("u1", "1"), answer("turn_1"), user("u2", "2"), user("u3", third)];
    server.post("/api/chat?ui=7", page("submit-message", &said("3"))).await;
    let mut otherwise = page("submit-message", &said("3!"));
    otherwise["messageId"] = json!("u3");
    for _ in 0..2 {
        let told = server.post("/api/chat?ui=7", otherwise.clone()).await;
        assert!(told.body.contains("THREE."), "{}", told.body);
        assert_eq!(server.shown().await, ["1", "3!"]);
    }
}

/// Three messages, each answered, of no page's.
async fn three() -> Server {
    let server = server((0..6).map(|_| Answer::whole([text("Yes.")])));
    for word in ["one", "two", "three"] {
        server.post("/api/v1/conversations/c1/chat", json!({"content": word})).await;
    }
    server
}

fn named(trigger: &str, name: &str, messages: &[Value]) -> Value {
    let mut page = page(trigger, messages);
    page["messageId"] = json!(name);
    page
}

#[tokio::test]
async fn a_message_that_names_nothing_and_stands_alone_hides_nothing() {
    let server = three().await;
    let ids = server.get("/api/v1/conversations/c1/messages").await.json();
    let last = ids["data"][4]["id"].as_str().unwrap();
    let gone = server.send(Method::DELETE, &format!("/api/v1/conversations/c1/messages/{last}"), &Value::Null, &[]).await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    for name in [last, "msg_999", "turn_999", "foo"] {
        let otherwise = server.post("/api/chat?ui=7", named("submit-message", name, &[user(name, "otherwise")])).await;
        assert_eq!(otherwise.problem(), (404, "not_found".to_owned()), "{name}");
        for page in [vec![user("foo", "three")], vec![answer("a")], Vec::new()] {
            let again = server.post("/api/chat?ui=7", named("regenerate-message", name, &page)).await;
            assert_eq!(again.problem(), (404, "not_found".to_owned()), "{name} of {page:?}");
        }
        assert_eq!(server.shown().await, ["one", "two"], "{name}");
    }
    // Another first message than the conversation's counts nothing either.
    let other = [user("foo", "1"), answer("a"), user("bar", "otherwise")];
    let otherwise = server.post("/api/chat?ui=7", named("submit-message", "bar", &other)).await;
    assert_eq!(otherwise.problem(), (404, "not_found".to_owned()));
    assert_eq!(server.shown().await, ["one", "two"]);
}

#[tokio::test]
async fn what_was_said_in_the_place_of_a_message_is_found_by_the_name_of_that() {
    let server = three().await;
    let ids = server.get("/api/v1/conversations/c1/messages").await.json();
    let [second, last] = [2, 4].map(|at| ids["data"][at]["id"].as_str().unwrap());
    for name in [last, "unknown"] {
        let again = server.post("/api/chat?ui=7", named("regenerate-message", name, &[user(last, "three")])).await;
        assert!(again.body.contains("Yes."), "{}", again.body);
    }
    let edited = server.post("/api/chat?ui=7", named("submit-message", last, &[user(last, "III")])).await;
    assert!(edited.body.contains("Yes."), "{}", edited.body);
    assert_eq!(server.shown().await, ["one", "two", "III"]);
    // What is hidden with the message that is replaced stands for nothing.
    server.engine.hide(&"c1".parse().unwrap(), second.parse().unwrap()).await.unwrap();
    let edited = server.post("/api/chat?ui=7", named("submit-message", second, &[user(second, "II")])).await;
    assert_eq!(edited.problem(), (404, "not_found".to_owned()));
}

#[tokio::test]
async fn a_page_finds_its_first_message_by_its_own_name_after_another_answer_and_many_messages() {
    let server = server((0..40).map(|_| Answer::whole([text("Yes.")])));
    let first = |words: &str| [user("u1", words)];
    server.post("/api/chat?ui=7", page("submit-message", &first("1"))).await;
    server.post("/api/chat?ui=7", named("regenerate-message", "a1", &first("1"))).await;
    for at in 2..20 {
        server.post("/api/v1/conversations/c1/chat", json!({"content": at.to_string()})).await;
    }
    let otherwise = server.post("/api/chat?ui=7", named("submit-message", "u1", &first("I"))).await;
    assert!(otherwise.body.contains("Yes."), "{}", otherwise.body);
    assert_eq!(server.shown().await, ["I"]);
}

#[tokio::test]
async fn a_message_of_ag_ui_that_comes_again_under_its_name_is_the_same_one() {
    let server = server(touching());
    let run = |run: &str, id: &str| {
        let said = json!([{"id": id, "role": "user", "content": "Look!"}]);
        json!({"threadId": "c1", "runId": run, "messages": said, "tools": [], "context": []})
    };
    let told = async |body: Value| server.post("/ag-ui", body).await.body.replace("r2", "r1");
    let first = told(run("r1", "u1")).await;
    assert!(first.contains("Seen."), "{first}");
    assert_eq!(told(run("r2", "u1")).await, first);
    assert_eq!((server.shown().await, server.source.effects().len()), (vec!["Look!".to_owned()], 1));
    assert!(told(run("r3", "u2")).await.contains("More."));
    assert_eq!(server.shown().await, ["Look!", "Look!"]);
}

/// What a model says each time, once it is let.
fn well(gate: &Arc<Semaphore>) -> [Answer; 3] {
    [(); 3].map(|()| Answer::whole([text("Well.")]).gated(gate))
}

/// Three runs of one moment with these messages, of which all are told something before the model answers; what people said in the end.
async fn at_once(server: &Arc<Server>, gate: &Semaphore, messages: &Value) -> Vec<String> {
    let mut runs = JoinSet::new();
    for run in ["r1", "r2", "r3"] {
        let body = json!({"threadId": "c1", "runId": run, "messages": messages, "tools": [], "context": []});
        let request = Request::builder().method(Method::POST).uri("/ag-ui").header("host", "127.0.0.1:8700");
        let request = request.header("content-type", "application/json").body(Body::from(body.to_string())).unwrap();
        runs.spawn(server.router.clone().oneshot(request));
    }
    let begun = runs.join_all().await;
    gate.add_permits(9);
    for response in begun {
        let told = to_bytes(response.unwrap().into_body(), usize::MAX).await.unwrap();
        let told = String::from_utf8_lossy(&told).into_owned();
        assert!(told.contains("Well.") && told.contains("RUN_FINISHED"), "{told}");
    }
    server.shown().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_runs_of_one_moment_say_is_said_once_with_or_without_a_name() {
    for round in 0..20 {
        // What is over already cannot be told from something new where it has no name.
        let named = json!({"id": "u", "role": "user", "content": "go"});
        for (permits, message) in [(0, named.clone()), (9, named), (0, json!({"role": "user", "content": "go"}))] {
            let gate = Arc::new(Semaphore::new(permits));
            let messages = json!([message]);
            let fresh = Arc::new(server(well(&gate)));
            assert_eq!(at_once(&fresh, &gate, &messages).await, ["go"], "{round}: {message}");

            let gate = Arc::new(Semaphore::new(permits));
            let refusal = ProviderFailure::new(ProviderFailureKind::InvalidRequest, "no");
            let failed = Arc::new(server(std::iter::once(Answer::of([]).failing(refusal)).chain(well(&gate))));
            let first = json!({"threadId": "c1", "runId": "r0", "messages": messages, "tools": [], "context": []});
            assert!(failed.post("/ag-ui", first).await.body.contains("RUN_ERROR"));
            assert_eq!(at_once(&failed, &gate, &messages).await, ["go"], "{round}: {message}");
            // Nor later, under its name.
            if message["id"].is_string() {
                let later = json!({"threadId": "c1", "runId": "r9", "messages": messages, "tools": [], "context": []});
                assert!(failed.post("/ag-ui", later).await.body.contains("Well."));
            }

            // A history that is taken over.
            let gate = Arc::new(Semaphore::new(permits));
            let before = [
                json!({"id": "u0", "role": "user", "content": "hi"}),
                json!({"id": "a0", "role": "assistant", "content": "Hi."}),
            ];
            let taken = json!([before[0], before[1], message]);
            let there = Arc::new(server(well(&gate)));
            assert_eq!(at_once(&there, &gate, &taken).await, ["hi", "go"], "{round}: {message}");
        }
    }
}
