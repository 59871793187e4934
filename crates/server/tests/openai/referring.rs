//! Requests that name items of earlier answers instead of saying them again, as the AI SDK does.

use serde_json::{Value, json};
use turnwright_testkit::{Answer, call, text};

use super::{server, user};

fn refers(id: &Value) -> Value {
    json!({"type": "item_reference", "id": id})
}

#[tokio::test]
async fn a_request_goes_on_in_the_conversation_of_the_newest_item_that_it_refers_to() {
    let server = server(["One.", "Two.", "Branch."].map(|said| Answer::whole([text(said)])));
    let first = server.respond(&json!({"input": [user("1")]})).await.json();
    let conversation = first["conversation"]["id"].as_str().unwrap();
    let item = &first["output"][0]["id"];
    assert_eq!(item, &json!(format!("msg_1_0_{conversation}")));
    let second = server.respond(&json!({"input": [user("1"), refers(item), user("2")]})).await.json();
    assert_eq!(second["conversation"], first["conversation"], "{second}");
    assert_eq!(server.provider.asked()[1], "user: 1\nassistant: One. []\nuser: 2");

    let branch = server.respond(&json!({"input": [user("1"), refers(item), user("else")]})).await.json();
    assert_ne!(branch["conversation"], first["conversation"], "more was said there since");
    assert_eq!(server.provider.asked()[2], "user: 1\nassistant: One. []\nuser: else");
}

#[tokio::test]
async fn the_result_of_a_clients_call_comes_beside_what_the_request_refers_to() {
    let picks = Answer::whole([text("Pick!"), call(0, "pick", "{}")]);
    let server = server([picks, Answer::whole([text("Picked.")]), Answer::whole([text("Again.")])]);
    let tool = json!({"type": "function", "name": "pick", "parameters": {"type": "object"}});
    let first = server.respond(&json!({"input": [user("Go")], "tools": [tool]})).await.json();
    let (said, called) = (&first["output"][0], &first["output"][1]);
    let output = json!({"type": "function_call_output", "call_id": called["call_id"], "output": "red"});
    let mut input = vec![user("Go"), refers(&said["id"]), called.clone(), output];
    let second = server.respond(&json!({"input": input, "tools": [tool]})).await.json();
    assert_eq!(second["output"][0]["content"][0]["text"], "Picked.", "{second}");
    input.extend([refers(&second["output"][0]["id"]), user("And?")]);
    let third = server.respond(&json!({"input": input, "tools": [tool]})).await.json();
    assert_eq!((&third["output"][0]["content"][0]["text"], &third["conversation"]), (&json!("Again."), &first["conversation"]));
}

#[tokio::test]
async fn an_approval_comes_beside_a_reference_to_what_asked_for_it() {
    let server = server([Answer::whole([call(0, "lab__touch", "{}")]), Answer::whole([text("Done.")])]);
    let first = server.respond(&json!({"input": [user("Touch!")]})).await.json();
    let request = &first["output"][0]["id"];
    let answer = json!({"type": "mcp_approval_response", "approval_request_id": request, "approve": true});
    let second = server.respond(&json!({"input": [user("Touch!"), refers(request), answer]})).await.json();
    assert_eq!(
        (&second["output"][1]["content"][0]["text"], &second["conversation"]),
        (&json!("Done."), &first["conversation"])
    );
}

#[tokio::test]
async fn a_reference_that_leads_nowhere_is_refused_by_its_place() {
    let server = server([Answer::whole([text("One.")]), Answer::whole([text("Two.")])]);
    let first = server.respond(&json!({"input": [user("1")]})).await.json();
    let item = first["output"][0]["id"].as_str().unwrap();
    let refused = |id: &str, more: Value| {
        let input = [vec![user("1"), refers(&json!(id))], more.as_array().unwrap().clone(), vec![user("2")]].concat();
        let server = &server;
        async move {
            let answer = server.respond(&json!({"input": input})).await;
            let (status, error) = (answer.status, answer.json()["error"].clone());
            let words = |key: &str| error[key].as_str().unwrap().to_owned();
            (status, words("type"), words("code"), words("param"), words("message"))
        }
    };
    let told = |(status, kind, code, param, message): (u16, String, String, String, String), part: &str| {
        assert!(message.contains(part) && message.contains("input[1]") && kind == "invalid_request_error", "{kind}: {message}");
        (status, code, param)
    };
    let not_there = || (404, "not_found".to_owned(), "input".to_owned());
    let invalid = || (400, "invalid_request".to_owned(), "input[1]".to_owned());
    for nobodys in ["msg_67ccd2bed1ec8190", "msg_1_0_conv_none"] {
        assert_eq!(told(refused(nobodys, json!([])).await, "no such item here"), not_there());
    }
    assert_eq!(told(refused("msg_1_0", json!([])).await, "name that as `conversation`"), invalid());
    let both = refused(item, json!([user("x"), {"role": "assistant", "content": "y"}])).await;
    assert_eq!(told(both, "say both in full"), invalid());

    let named = json!({"input": [user("1"), refers(&json!("msg_1_0")), user("2")], "conversation": first["conversation"]});
    assert_eq!(server.respond(&named).await.json()["conversation"], first["conversation"], "an older name is still read");
}
