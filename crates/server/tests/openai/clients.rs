//! What is told otherwise to clients that do not know all of it, by how they call themselves.

use axum::body::Body;
use http::Method;
use serde_json::{Value, json};
use turnwright_core::{ProviderFailure, ProviderFailureKind};
use turnwright_testkit::{Answer, call, text};

use super::{Answered, Server, server, user};

const AI_SDK_5: &str = "ai/5.0.210 ai-sdk/openai/2.0.131 ai-sdk/provider-utils/3.0.30 runtime/node.js/v22";
/// What its `generateText` says.
const AI_SDK_5_WHOLE: &str = "ai/5.0.277 ai-sdk/provider-utils/3.0.40 runtime/node.js/v22";
const AI_SDK_6: &str = "ai/6.0.1 ai-sdk/openai/3.0.141 ai-sdk/provider-utils/4.0.1 runtime/node.js/v22";

async fn asks(server: &Server, agent: &str, body: &Value) -> Answered {
    let headers = [("content-type", "application/json"), ("user-agent", agent)];
    server.send(Method::POST, "/v1/responses", Body::from(body.to_string()), &headers).await
}

fn kinds(response: &Value) -> Vec<String> {
    response["output"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_ai_sdk_5_is_told_no_item_in_a_whole_response_that_it_does_not_know() {
    let all = vec!["mcp_call", "message"];
    for (agent, expected) in [(AI_SDK_5, vec!["message"]), (AI_SDK_5_WHOLE, vec!["message"]), (AI_SDK_6, all)] {
        let server = server([Answer::whole([call(0, "lab__look", "{}")]), Answer::whole([text("Seen.")])]);
        let seen = asks(&server, agent, &json!({"input": [user("Look!")]})).await.json();
        assert_eq!(kinds(&seen), expected, "{agent}");
        let later = server.get(&format!("/v1/responses/{}", seen["id"].as_str().unwrap())).await.json();
        assert_eq!(kinds(&later), ["mcp_call", "message"]);
        let streamed = asks(&server, agent, &json!({"input": [user("Look!")], "stream": true})).await;
        assert_eq!(streamed.status, 200, "{agent}");
    }
    let server = server([Answer::whole([call(0, "lab__touch", "{}")])]);
    let waits = asks(&server, AI_SDK_5, &json!({"input": [user("Touch!")]})).await.json();
    assert_eq!(kinds(&waits), ["message"], "{waits}");
}

#[tokio::test]
async fn an_error_of_a_stream_is_told_as_openai_documents_it_and_as_it_tells_one() {
    let refusal = || Answer::of([]).failing(ProviderFailure::new(ProviderFailureKind::InvalidRequest, "no"));
    // The official libraries raise what they find in `error`, and take a stream without it for one that ended well.
    for agent in [AI_SDK_5, AI_SDK_6, "OpenAI/JS 6.49.0"] {
        let server = server([refusal()]);
        let failed = asks(&server, agent, &json!({"input": [user("Go")], "stream": true})).await;
        let events = failed.chunks();
        let error = events.iter().find(|event| event["type"] == "error").unwrap_or_else(|| panic!("{}", failed.body));
        let (code, message) = (&error["code"], &error["message"]);
        assert_eq!(code, "upstream_refused", "{error}");
        let nested = json!({"type": "invalid_request_error", "code": code, "message": message, "param": null});
        assert_eq!(error["error"], nested, "{agent}: {error}");
        assert_eq!(events.last().unwrap()["type"], "response.failed");
    }
}
