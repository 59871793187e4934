//! Files that come within a message, at each door.

use turnwright_core::{ContentBlock, ConversationId, EmbeddedResource, Entry};

use super::*;

/// One door, given a file as its clients send it: where it goes, and what.
fn doors(mime_type: &str, data: &str) -> [(&'static str, Value); 5] {
    let url = format!("data:{mime_type};base64,{data}");
    let ui = json!([{"type": "file", "mediaType": mime_type, "filename": "file", "url": url}]);
    let openai = json!([{"type": "file", "file": {"filename": "file", "file_data": url}}]);
    let responses = json!([{"type": "input_file", "filename": "file", "file_data": url}]);
    let document = json!([{"type": "document", "source": {"type": "data", "value": data, "mimeType": mime_type}}]);
    let native = json!([{"type": "resource", "resource": {"uri": "file:///file", "mimeType": mime_type, "blob": data}}]);
    [
        ("/api/v1/conversations/native/chat", json!({"content": native})),
        ("/api/chat", json!({"id": "ui", "messages": [{"id": "m", "role": "user", "parts": ui}]})),
        ("/ag-ui", json!({"threadId": "agui", "runId": "r", "messages": [{"id": "m", "role": "user", "content": document}]})),
        (
            "/v1/chat/completions",
            json!({"messages": [{"role": "user", "content": openai}], "metadata": {"conversation_id": "chat"}}),
        ),
        ("/v1/responses", json!({"input": [{"role": "user", "content": responses}], "metadata": {"conversation_id": "resp"}})),
    ]
}

async fn said(server: &Server, conversation: &str) -> Vec<ContentBlock> {
    let id: ConversationId = conversation.parse().unwrap();
    let journal = server.engine.journal(&id).await.unwrap();
    let Entry::User(message) = &*journal.entries()[0].entry else { panic!("the first entry is the message") };
    message.content.clone()
}

#[tokio::test]
async fn a_text_file_within_a_message_is_shown_as_text_at_every_door() {
    let server = server((0..5).map(|_| Answer::whole([text("Read.")])));
    for (path, body) in doors("text/plain", "cmVtZW1iZXIgdGhpcw==") {
        let answer = server.post(path, body).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {}", answer.body);
    }
    for (conversation, name) in [("native", "file"), ("ui", "file"), ("agui", "document"), ("chat", "file"), ("resp", "file")] {
        let resource = EmbeddedResource {
            uri: format!("file:///{name}"),
            mime_type: Some("text/plain".to_owned()),
            text: Some("remember this".to_owned()),
            blob: None,
        };
        assert_eq!(said(&server, conversation).await, [ContentBlock::Resource { resource }], "{conversation}");
    }
}

#[tokio::test]
async fn a_file_within_a_message_that_no_model_could_be_shown_is_refused_at_every_door() {
    let server = server([]);
    for (mime_type, data) in [("application/zip", "UEsDBA=="), ("text/plain", "/w=="), ("image/png", "@@@")] {
        for (path, body) in doors(mime_type, data) {
            let answer = server.post(path, body).await;
            let expected = if path.starts_with("/v1/") { 400 } else { 422 };
            assert_eq!(answer.status.as_u16(), expected, "{path} {mime_type}: {}", answer.body);
        }
    }
    let remote = json!([{"type": "file", "mediaType": "image/png", "url": "https://example.org/a.png"}]);
    let remote = json!({"id": "ui", "messages": [{"id": "m", "role": "user", "parts": remote}]});
    assert_eq!(server.post("/api/chat", remote).await.problem(), (422, "invalid_request".to_owned()));
}

#[tokio::test]
async fn a_link_to_a_file_by_what_is_no_id_of_one_is_refused() {
    let server = server([]);
    for uri in ["/api/v1/artifacts/art_nope", "https://example.org/tw/api/v1/artifacts/"] {
        let content = json!([{"type": "resource_link", "uri": uri, "name": "plan.png"}]);
        let refused = server.post("/api/v1/conversations/c1/chat", json!({"content": content})).await;
        assert_eq!(refused.problem(), (422, "invalid_request".to_owned()), "{uri}");
        let detail = format!("`{uri}` names no file; the id of one is `art_` and 32 of the signs 0-9 and a-f");
        assert_eq!(refused.json()["detail"], detail);
    }
}
