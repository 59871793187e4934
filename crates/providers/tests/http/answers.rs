//! Answers: what is sent, what comes back, and how it comes together.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::Notify;
use turnwright_core::prompt::{Prompt, PromptMessage};
use turnwright_core::{
    AssistantBlock, AssistantMessage, Completion, Finish, FinishReason, ModelFacts, ModelRef, NativeBlock, Origin,
    ProviderFailureKind, Seq, StreamDelta, TurnSettings, Usage,
};
use turnwright_dialects::by_name;
use turnwright_engine::{ModelInfo, Provider};
use turnwright_providers::{EndpointConfig, Secret};

use crate::support::{Act, END, STREAM_HEAD, Server, ask, ask_script, collect, good, provider, response, text_event, write};

#[tokio::test]
async fn a_streamed_answer_comes_as_deltas() {
    let server = Server::start(vec![good()]).await;
    let came = collect(ask(&server.provider())).await;
    let finish = Finish { reason: FinishReason::Stop, raw: Some("stop".to_owned()) };
    let expected = vec![vec![StreamDelta::Text("hello".to_owned()), StreamDelta::Finished(finish)]];
    assert_eq!((came.batches, came.failure), (expected, None));
}

#[tokio::test]
async fn the_request_holds_the_key_the_headers_and_the_body() {
    let server = Server::start(vec![good()]).await;
    let mut config = server.config();
    config.api_key = Some(Secret::from("sk-secret"));
    config.headers = vec![("x-title".to_owned(), Secret::from("mine"))];
    collect(ask(&provider(config))).await;
    let requests = server.requests();
    let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
    let mut lines: Vec<&str> =
        head.lines().filter(|line| !line.starts_with("host:") && !line.starts_with("user-agent:")).collect();
    lines[1..].sort_unstable();
    let length = format!("content-length: {}", body.len());
    let expected = [
        "POST /v1/chat/completions HTTP/1.1",
        "accept: text/event-stream, application/json",
        "authorization: Bearer sk-secret",
        &length,
        "content-type: application/json",
        "x-title: mine",
    ];
    assert_eq!(lines, expected);
    assert!(body.starts_with(r#"{"model":"m","messages":[{"role":"user","content":"Hi"}]"#), "{body}");
}

#[tokio::test]
async fn a_base_address_may_end_in_a_slash_and_keeps_its_query() {
    let server = Server::start(vec![good()]).await;
    let base_url = format!("{}/?api-version=1", server.base_url);
    collect(ask(&provider(EndpointConfig { base_url, ..server.config() }))).await;
    assert!(server.requests()[0].starts_with("POST /v1/chat/completions?api-version=1 HTTP/1.1"));
}

#[tokio::test]
async fn a_dialect_may_put_the_model_into_the_path_and_a_query_behind_it() {
    let event = r#"{"candidates":[{"content":{"parts":[{"text":"hello"}]},"finishReason":"STOP"}]}"#;
    let server = Server::start(vec![vec![write(format!("{STREAM_HEAD}data: {event}\r\n\r\n"))]]).await;
    let mut config = EndpointConfig::new("google", by_name("gemini").unwrap(), format!("{}?zone=1", server.base_url));
    config.api_key = Some(Secret::from("sk-secret"));
    let came = collect(ask(&provider(config))).await;
    assert_eq!((came.text(), came.failure), ("hello".to_owned(), None));
    let request = &server.requests()[0];
    assert!(request.starts_with("POST /v1/models/m:streamGenerateContent?zone=1&alt=sse HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("x-goog-api-key: sk-secret\r\n"), "{request}");
}

#[tokio::test]
async fn a_whole_reply_is_an_answer() {
    let body = r#"{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}"#;
    let came = ask_script(vec![response("200 OK", "content-type: application/json\r\n", body)]).await;
    assert_eq!((came.text(), came.failure), ("hello".to_owned(), None));
}

/// Chunked transfer encoding, one chunk for each event.
fn chunked(events: &[String]) -> String {
    let chunks: String = events.iter().map(|event| format!("{:x}\r\n{event}\r\n", event.len())).collect::<Vec<_>>().concat();
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{chunks}0\r\n\r\n")
}

#[tokio::test]
async fn what_came_together_is_one_batch() {
    let mut events: Vec<String> = (0..50).map(|number| text_event(&number.to_string())).collect();
    events.push(END.to_owned());
    let came = ask_script(vec![write(chunked(&events))]).await;
    assert_eq!(came.failure, None);
    assert_eq!(came.batches.iter().map(Vec::len).collect::<Vec<_>>(), [51]);
}

#[tokio::test]
async fn what_has_come_is_not_held_back_for_what_has_not() {
    let closed = Arc::new(Notify::new());
    let script = vec![write(format!("{STREAM_HEAD}{}", text_event("first"))), Act::Hold(Arc::clone(&closed))];
    let server = Server::start(vec![script]).await;
    let mut stream = ask(&server.provider());
    let batch = stream.next().await.unwrap().unwrap();
    assert_eq!(batch, [StreamDelta::Text("first".to_owned())]);
}

#[tokio::test]
async fn dropping_the_answer_closes_the_connection() {
    let closed = Arc::new(Notify::new());
    let script = vec![write(format!("{STREAM_HEAD}{}", text_event("first"))), Act::Hold(Arc::clone(&closed))];
    let server = Server::start(vec![script]).await;
    let mut stream = ask(&server.provider());
    stream.next().await.unwrap().unwrap();
    drop(stream);
    tokio::time::timeout(Duration::from_secs(1), closed.notified()).await.expect("the server sees the end");
}

#[tokio::test]
async fn a_finished_answer_leaves_its_connection_for_the_next() {
    let answer = write(chunked(&[text_event("hello"), END.to_owned()]));
    let server = Server::start(vec![vec![answer.clone(), Act::NextRequest, answer]]).await;
    let provider = server.provider();
    assert_eq!(collect(ask(&provider)).await.text(), "hello");
    // A second connection would be refused.
    assert_eq!(collect(ask(&provider)).await.text(), "hello");
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_large_answer_comes_whole() {
    let piece = "x".repeat(100_000);
    let body: String = std::iter::repeat_n(text_event(&piece), 100).collect();
    let came = ask_script(vec![write(format!("{STREAM_HEAD}{body}{END}"))]).await;
    assert_eq!((came.text().len(), came.failure), (10_000_000, None));
}

#[tokio::test]
async fn an_endpoint_that_refuses_the_usage_option_is_asked_without_it_from_then_on() {
    let refusal = r#"{"error":{"message":"Unknown parameter: stream_options","type":"invalid_request_error"}}"#;
    let refused = vec![response("400 Bad Request", "connection: close\r\n", refusal)];
    let server = Server::start(vec![refused, good(), good()]).await;
    let provider = server.provider();
    assert_eq!(collect(ask(&provider)).await.text(), "hello");
    assert_eq!(collect(ask(&provider)).await.text(), "hello");
    let asked: Vec<bool> = server.requests().iter().map(|request| request.contains("stream_options")).collect();
    assert_eq!(asked, [true, false, false]);
}

#[tokio::test]
async fn what_a_model_refuses_is_left_out_of_its_requests_alone() {
    let refusal = r#"{"error":{"message":"Encrypted content is not supported with this model.","type":"invalid_request_error","param":"include"}}"#;
    let refused = vec![response("400 Bad Request", "connection: close\r\n", refusal)];
    let end = r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#;
    let text = r#"{"type":"response.output_text.delta","output_index":0,"delta":"hello"}"#;
    let good = || vec![write(format!("{STREAM_HEAD}data: {text}\n\ndata: {end}\n\n"))];
    let server = Server::start(vec![refused, good(), good(), good()]).await;
    let provider = provider(EndpointConfig { dialect: by_name("openai-responses").unwrap(), ..server.config() });
    let settings = TurnSettings::new(ModelRef::new("local", "m"));
    let prompt = Prompt {
        conversation: None,
        settings: &settings,
        messages: Vec::new(),
        tools: &[],
        allow_calls: true,
        has_open_demand: false,
    };
    for model in ["m", "m", "other"] {
        assert_eq!(collect(provider.call(model, &prompt).unwrap()).await.text(), "hello", "{model}");
    }
    let asked: Vec<bool> = server.requests().iter().map(|request| request.contains("\"include\"")).collect();
    assert_eq!(asked, [true, false, false, true]);
}

#[tokio::test]
async fn reasoning_that_an_endpoint_cannot_read_any_more_is_left_out_once_and_the_answer_comes() {
    let code = "invalid_encrypted_content";
    let refusal = format!(r#"{{"error":{{"message":"no","type":"invalid_request_error","code":"{code}"}}}}"#);
    let refused = || vec![response("400 Bad Request", "connection: close\r\n", &refusal)];
    let end = r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#;
    let text = r#"{"type":"response.output_text.delta","output_index":0,"delta":"hello"}"#;
    let good = vec![write(format!("{STREAM_HEAD}data: {text}\n\ndata: {end}\n\n"))];
    let server = Server::start(vec![refused(), good, refused(), refused()]).await;
    let dialect = by_name("openai-responses").unwrap();
    let provider = provider(EndpointConfig { dialect, ..server.config() });
    let settings = TurnSettings::new(ModelRef::new("local", "m"));
    let native = NativeBlock(r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAAA"}"#.to_owned());
    let said = AssistantBlock::Text { text: "So.".to_owned(), native: None };
    let message = AssistantMessage {
        origin: Origin { dialect: dialect.name().to_owned(), provider: "local".to_owned(), model: "m".to_owned() },
        saw: Seq::FIRST,
        blocks: vec![AssistantBlock::Opaque { native }, said],
        finish: Finish { reason: FinishReason::Stop, raw: None },
        completion: Completion::Complete,
        usage: Usage::default(),
    };
    let messages = vec![PromptMessage::Assistant { seq: Seq::FIRST, message: &message }];
    let prompt =
        Prompt { conversation: None, settings: &settings, messages, tools: &[], allow_calls: true, has_open_demand: false };
    assert_eq!(collect(provider.call("m", &prompt).unwrap()).await.text(), "hello");
    let failure = collect(provider.call("m", &prompt).unwrap()).await.failed();
    assert_eq!((failure.kind, failure.code.as_deref()), (ProviderFailureKind::InvalidRequest, Some(code)));
    let sent: Vec<bool> = server.requests().iter().map(|request| request.contains("gAAAA")).collect();
    assert_eq!(sent, [true, false, true, false]);
}

#[tokio::test]
async fn models_are_the_configured_ones_or_asked_for() {
    let named = |id: &str| ModelInfo { id: id.to_owned(), description: None, facts: ModelFacts::default() };
    let body = r#"{"object":"list","data":[{"id":"a"},{"id":"b"}]}"#;
    let server = Server::start(vec![vec![response("200 OK", "", body)]]).await;
    assert_eq!(server.provider().models().await, Ok(vec![named("a"), named("b")]));
    assert!(server.requests()[0].starts_with("GET /v1/models HTTP/1.1"));
    let config = EndpointConfig { models: vec!["mine".to_owned()], ..server.config() };
    assert_eq!(provider(config).models().await, Ok(vec![named("mine")]));
}

#[tokio::test]
async fn nothing_is_sent_before_the_answer_is_polled() {
    let server = Server::start(vec![good()]).await;
    drop(ask(&server.provider()));
    assert_eq!(server.requests(), Vec::<String>::new());
}
