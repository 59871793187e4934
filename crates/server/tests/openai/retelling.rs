//! Clients of Responses that keep the history themselves and say all of it again, with the items that they were told.

use serde_json::{Value, json};
use turnwright_testkit::{Answer, MemoryStore, call, text};

use super::killed::conversations;
use super::{Server, picks, server, server_on, user};

fn looks() -> Answer {
    Answer::whole([text("Looking."), call(0, "lab__look", r#"{"at":1}"#), call(1, "lab__look", r#"{"at":2}"#)])
}

/// Says more to the end of a history, to which the answer is added.
async fn say(server: &Server, history: &mut Vec<Value>, more: Value) -> Value {
    history.push(more);
    let answer = server.respond(&json!({"input": history})).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let answer = answer.json();
    history.extend(answer["output"].as_array().unwrap().iter().cloned());
    answer
}

#[tokio::test]
async fn a_history_with_our_calls_goes_on_in_its_conversation() {
    let server = server([looks(), Answer::whole([text("Seen.")]), looks(), Answer::whole([text("Again.")])]);
    let mut history = Vec::new();
    let first = say(&server, &mut history, user("Look!")).await;
    let kinds: Vec<&Value> = history.iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, [&Value::Null, &json!("message"), &json!("mcp_call"), &json!("mcp_call"), &json!("message")]);
    let second = say(&server, &mut history, user("Once more")).await;
    assert_eq!((&second["conversation"], conversations(&server).await), (&first["conversation"], 1), "{second}");
    let shown = &server.provider.asked()[2];
    assert!(shown.contains("lab__look"), "the model sees what its tools gave: {shown}");
}

#[tokio::test]
async fn so_does_one_after_an_approval_and_one_with_a_streamed_answer() {
    let touches = Answer::whole([text("I touch."), call(0, "lab__touch", "{}")]);
    let server =
        server([touches, Answer::whole([text("Done.")]), Answer::whole([text("Fine.")]), Answer::whole([text("End.")])]);
    let mut history = Vec::new();
    let first = say(&server, &mut history, user("Touch!")).await;
    let request = &first["output"][1]["id"];
    let approval = json!({"type": "mcp_approval_response", "approval_request_id": request, "approve": true});
    say(&server, &mut history, approval).await;
    history.push(user("And?"));
    let streamed = server.respond(&json!({"input": history, "stream": true})).await.chunks();
    let third = &streamed.last().unwrap()["response"];
    history.extend(third["output"].as_array().unwrap().iter().cloned());
    let fourth = say(&server, &mut history, user("And then?")).await;
    assert_eq!((&third["conversation"], &fourth["conversation"]), (&first["conversation"], &first["conversation"]));
    assert_eq!(conversations(&server).await, 1);
}

#[tokio::test]
async fn so_does_one_after_a_restart() {
    let store = MemoryStore::default();
    let server = server_on(store.another_process(), [looks(), Answer::whole([text("Seen.")])]);
    let mut history = Vec::new();
    let first = say(&server, &mut history, user("Look!")).await;
    let next = server_on(store.another_process(), [Answer::whole([text("Again.")])]);
    assert_eq!(say(&next, &mut history, user("Once more")).await["conversation"], first["conversation"]);
}

#[tokio::test]
async fn where_it_is_taken_over_the_model_sees_its_calls_and_what_they_gave() {
    let server = server([looks(), Answer::whole([text("Seen.")]), Answer::whole([text("New.")])]);
    let mut history = Vec::new();
    let first = say(&server, &mut history, user("Look!")).await;
    history[0] = user("Look there!");
    let second = say(&server, &mut history, user("Once more")).await;
    assert_ne!(second["conversation"], first["conversation"]);
    let shown = &server.provider.asked()[2];
    assert!(shown.contains("Looking.") && shown.contains("lab__look") && shown.contains(r#""at":2"#), "{shown}");
}

#[tokio::test]
async fn what_was_said_after_another_response_is_no_history_of_its_own() {
    let server = server(["One.", "Two.", "New."].map(|said| Answer::whole([text(said)])));
    let first = server.respond(&json!({"input": [user("1")]})).await.json();
    let mut history = vec![user("2")];
    let second = server.respond(&json!({"input": history, "previous_response_id": first["id"]})).await.json();
    history.extend(second["output"].as_array().unwrap().iter().cloned());
    let third = say(&server, &mut history, user("3")).await;
    assert_ne!(third["conversation"], first["conversation"], "it does not hold what was said first");
}

/// A server with these answers after a call of its client's, the response that holds the call, and what gives it a result.
async fn picked(answers: impl IntoIterator<Item = Answer>) -> (Server, Value, impl Fn(&str) -> Value) {
    let server = server_on(MemoryStore::default(), [picks()].into_iter().chain(answers));
    let pick = json!({"type": "function", "name": "pick", "parameters": {"type": "object"}});
    let first = server.respond(&json!({"input": "Pick!", "tools": [pick]})).await.json();
    let call = first["output"].as_array().unwrap().iter().find(|item| item["type"] == "function_call").unwrap();
    let (call, id) = (call["call_id"].clone(), first["id"].clone());
    let gives = move |output: &str| {
        let given = json!({"type": "function_call_output", "call_id": call, "output": output});
        json!({"previous_response_id": id, "input": [given], "tools": [pick]})
    };
    (server, first, gives)
}

fn says(answers: &[&str]) -> Vec<Answer> {
    answers.iter().map(|said| Answer::whole([text(said)])).collect()
}

#[tokio::test]
async fn results_that_come_again_from_an_older_response_get_what_came_of_them_and_leave_no_copy() {
    let (server, _, gives) = picked(says(&["Picked.", "More."])).await;
    let picked = server.respond(&gives("red")).await.json();
    let next = json!({"previous_response_id": picked["id"], "input": "More"});
    assert_eq!(server.respond(&next).await.status, 200);
    let again = server.respond(&gives("red")).await;
    assert_eq!((again.status, &again.json()["output"]), (200, &picked["output"]), "{}", again.body);
    assert_eq!(conversations(&server).await, 1);
}

#[tokio::test]
async fn other_results_for_an_older_response_begin_a_conversation_that_is_the_same_up_to_there() {
    for is_newest_turn in [false, true] {
        let after = if is_newest_turn { vec!["Red.", "Blue.", "On."] } else { vec!["Red.", "More.", "Blue.", "On."] };
        let (server, first, gives) = picked(says(&after)).await;
        let red = server.respond(&gives("red")).await.json();
        if !is_newest_turn {
            let next = json!({"previous_response_id": red["id"], "input": "More"});
            assert_eq!(server.respond(&next).await.status, 200);
        }
        let kept = server.messages(first["conversation"]["id"].as_str().unwrap()).await;
        let blue = server.respond(&gives("blue")).await.json();
        assert_eq!(blue["output"][0]["content"][0]["text"], "Blue.", "{blue}");
        assert_ne!(blue["conversation"], first["conversation"]);
        assert_eq!(blue["previous_response_id"], first["id"]);
        let shown = server.provider.asked().last().unwrap().clone();
        assert!(shown.contains("blue") && !shown.contains("red"), "{shown}");
        let path = format!("/v1/responses/{}", blue["id"].as_str().unwrap());
        assert_eq!(server.get(&path).await.json(), blue);
        let items = server.get(&format!("{path}/input_items")).await.json()["data"].clone();
        assert_eq!((items.as_array().unwrap().len(), &items[0]["output"]), (1, &json!("blue")), "{items}");
        let on = server.respond(&json!({"previous_response_id": blue["id"], "input": "On"})).await.json();
        assert_eq!((&on["output"][0]["content"][0]["text"], &on["conversation"]), (&json!("On."), &blue["conversation"]));
        assert_eq!(server.messages(first["conversation"]["id"].as_str().unwrap()).await, kept, "the first is as it was");
    }
}

#[tokio::test]
async fn an_older_response_of_the_newest_turn_goes_on_in_a_copy_that_ends_there() {
    let (server, first, gives) = picked(says(&["Red.", "More."])).await;
    server.respond(&gives("red")).await;
    let more = server.respond(&json!({"previous_response_id": first["id"], "input": "More"})).await.json();
    assert_eq!(more["output"][0]["content"][0]["text"], "More.", "{more}");
    assert_ne!(more["conversation"], first["conversation"]);
    let shown = server.provider.asked().last().unwrap().clone();
    assert!(shown.contains("red") && !shown.contains("Red."), "{shown}");
    let kept = server.messages(first["conversation"]["id"].as_str().unwrap()).await;
    assert_eq!(kept.last().unwrap().1, "Red.");
}

#[tokio::test]
async fn a_response_that_waited_for_people_goes_on_where_what_they_decided_led() {
    let touch = Answer::whole([call(0, "lab__touch", "{}")]);
    let server = server([touch].into_iter().chain(says(&["Done.", "More."])));
    let first = server.respond(&json!({"input": "Touch!"})).await.json();
    let conversation = first["conversation"]["id"].as_str().unwrap();
    let waits = server.get(&format!("/api/v1/conversations/{conversation}/calls")).await.json();
    let call = waits["data"][0]["id"].as_str().unwrap();
    let path = format!("/api/v1/conversations/{conversation}/calls/{call}/decision");
    assert_eq!(server.post(&path, &json!({"decision": "allow"})).await.status, 200);
    while server.messages(conversation).await.last().unwrap().1 != "Done." {
        tokio::task::yield_now().await;
    }
    let more = server.respond(&json!({"previous_response_id": first["id"], "input": "More"})).await.json();
    assert_eq!(more["conversation"], first["conversation"], "{more}");
}

#[tokio::test]
async fn other_results_beside_a_response_without_their_calls_are_refused() {
    let (server, _, gives) = picked(says(&["Red.", "More."])).await;
    let red = server.respond(&gives("red")).await.json();
    let more = server.respond(&json!({"previous_response_id": red["id"], "input": "More"})).await.json();
    let mut asked = gives("blue");
    for response in [red, more] {
        asked["previous_response_id"] = response["id"].clone();
        let refused = server.respond(&asked).await;
        assert_eq!((refused.status, refused.json()["error"]["param"].as_str()), (400, Some("input")), "{}", refused.body);
    }
}

#[tokio::test]
async fn what_was_hidden_before_is_hidden_in_it_and_its_response_is_found() {
    let answers = [says(&["One."]), vec![picks()], says(&["Red.", "Blue."])].concat();
    let server = server_on(MemoryStore::default(), answers);
    let pick = json!({"type": "function", "name": "pick", "parameters": {"type": "object"}});
    let hidden = server.respond(&json!({"input": "1"})).await.json();
    let first = server.respond(&json!({"input": "Pick!", "tools": [pick], "previous_response_id": hidden["id"]})).await.json();
    let call = first["output"].as_array().unwrap().last().unwrap()["call_id"].clone();
    let gives = |output: &str| {
        let given = json!({"type": "function_call_output", "call_id": call, "output": output});
        json!({"previous_response_id": first["id"], "input": [given], "tools": [pick]})
    };
    server.respond(&gives("red")).await;
    let path = format!("/v1/responses/{}", hidden["id"].as_str().unwrap());
    assert_eq!(server.send(http::Method::DELETE, &path, axum::body::Body::empty(), &[]).await.status, 200);
    let blue = server.respond(&gives("blue")).await.json();
    let shown = server.provider.asked().last().unwrap().clone();
    assert!(shown.contains("blue") && !shown.contains("One."), "{shown}");
    let path = format!("/v1/responses/{}", blue["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await.json(), blue);
    let items = server.get(&format!("{path}/input_items")).await.json()["data"].clone();
    assert_eq!(items[0]["output"], "blue", "{items}");
}

#[tokio::test]
async fn what_is_said_beside_other_results_is_said_with_them() {
    let (server, _, gives) = picked(says(&["Red.", "Blue."])).await;
    server.respond(&gives("red")).await;
    let mut asked = gives("blue");
    asked["input"].as_array_mut().unwrap().push(user("And why?"));
    let blue = server.respond(&asked).await.json();
    assert_eq!(blue["output"][0]["content"][0]["text"], "Blue.", "{blue}");
    let shown = server.provider.asked().last().unwrap().clone();
    assert!(shown.contains("blue") && shown.contains("And why?") && !shown.contains("red"), "{shown}");
}

#[tokio::test]
async fn other_results_that_come_again_with_their_key_are_given_once() {
    let (server, _, gives) = picked(says(&["Red.", "Blue."])).await;
    server.respond(&gives("red")).await;
    let blue = server.keyed("/v1/responses", "k", &gives("blue")).await.json();
    assert_eq!(server.keyed("/v1/responses", "k", &gives("blue")).await.json(), blue);
    assert_eq!(blue["output"][0]["content"][0]["text"], "Blue.", "{blue}");
    assert_eq!(conversations(&server).await, 2);
}
