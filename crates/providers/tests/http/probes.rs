//! What is found out about endpoints of several personalities.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwright_dialects::{Profile, by_name};
use turnwright_engine::SystemClock;
use turnwright_providers::{EndpointConfig, Probe, Verdict, probe};
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, text_chunk};

use crate::support::{Server, response};

/// What is found out about an endpoint that answers by this script.
async fn found(script: impl Fn(&Value) -> Vec<Piece> + Send + Sync + 'static) -> Probe {
    let server = ModelServer::start([], script).unwrap();
    let config = EndpointConfig::new("local", by_name("openai-chat").unwrap(), server.base_url());
    asked(server, &config).await
}

async fn asked(server: ModelServer, config: &EndpointConfig) -> Probe {
    let found = probe(config, "m", Arc::new(SystemClock)).await;
    // It waits for its connections, which end where this thread is free to end them.
    tokio::task::spawn_blocking(move || drop(server)).await.unwrap();
    found
}

fn verdicts(probe: &Probe) -> Vec<(&str, Verdict)> {
    probe.findings.iter().map(|finding| (finding.subject, finding.verdict)).collect()
}

fn says(text: &str) -> Vec<Piece> {
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}});
    vec![text_chunk(text), finish_chunk("stop"), Piece::Chunk(usage), Piece::Done]
}

fn calls(count: u32) -> Vec<Piece> {
    let calls = (0..count).map(|index| call_chunk(index, "clock__time_in", "{\"zone\":\"Paris\"}"));
    calls.chain([finish_chunk("tool_calls"), Piece::Done]).collect()
}

fn refuses(message: &str) -> Vec<Piece> {
    let body = json!({"error": {"message": message, "type": "invalid_request_error"}}).to_string();
    vec![Piece::Raw(format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    ))]
}

fn has_image(request: &Value) -> bool {
    request.to_string().contains("image_url")
}

#[tokio::test]
async fn an_endpoint_that_can_do_everything_needs_no_profile() {
    let found = found(|request| match request["tool_choice"].as_str() {
        Some("none") => says("No."),
        Some("required") => calls(1),
        _ if request.get("response_format").is_some() => says("{\"city\":\"Paris\"}"),
        _ if request.get("tools").is_some() => calls(2),
        _ => says("Hello"),
    })
    .await;
    let all = ["reachable", "key", "usage", "answer limit", "system prompt", "tool calls", "parallel calls"];
    let rest = ["tool_choice none", "tool_choice required", "images", "structured output"];
    let told = verdicts(&found);
    for subject in all.into_iter().chain(rest) {
        assert!(told.contains(&(subject, Verdict::Found)), "{subject}: {found:?}");
    }
    // The scripted endpoint has no list of models.
    assert_eq!(told[0], ("model list", Verdict::Not));
    assert_eq!(found.profile, []);
}

#[tokio::test]
async fn a_server_that_names_itself_in_its_list_of_models_is_given_its_preset() {
    for (owner, preset) in [
        ("vllm", Some("\"vllm\"")),
        ("llamacpp", Some("\"llamacpp\"")),
        ("library", Some("\"ollama\"")),
        ("organization_owner", Some("\"lmstudio\"")),
        ("somebody", None),
    ] {
        let list = format!(r#"{{"object":"list","data":[{{"id":"m","owned_by":"{owner}"}}]}}"#);
        let server = Server::start(vec![vec![response("200 OK", "connection: close\r\n", &list)]]).await;
        let found = probe(&server.config(), "m", Arc::new(SystemClock)).await;
        let told = found.findings.iter().any(|finding| finding.subject == "server");
        assert_eq!(told, owner != "somebody", "{owner}: {found:?}");
        assert_eq!(found.profile.first().map(|(key, value)| (*key, value.as_str())), preset.map(|name| ("preset", name)));
        // A profile that somebody chose stays.
        let server = Server::start(vec![vec![response("200 OK", "connection: close\r\n", &list)]]).await;
        let config = EndpointConfig { profile: Profile::preset("groq").unwrap(), ..server.config() };
        assert_eq!(probe(&config, "m", Arc::new(SystemClock)).await.profile, []);
    }
}

#[tokio::test]
async fn the_form_of_calls_that_are_written_as_text_is_found() {
    let text = r#"[TOOL_CALLS]clock__time_in[ARGS]{"zone":"Europe/Paris"}"#;
    let script = move |request: &Value| if request.get("tools").is_some() { says(text) } else { says("Hello") };
    let found = found(script).await;
    let calls = found.findings.iter().find(|finding| finding.subject == "tool calls").unwrap();
    let reason = "it writes them as text, in the form mistral; they are recovered";
    assert_eq!((calls.verdict, calls.reason.as_str()), (Verdict::Found, reason));

    let server = ModelServer::start([], script).unwrap();
    let mut config = EndpointConfig::new("local", by_name("openai-chat").unwrap(), server.base_url());
    config.profile.recover_text_calls = turnwright_dialects::TextForms::NONE;
    let found = asked(server, &config).await;
    assert!(found.profile.contains(&("recover_text_calls", "[\"mistral\"]".to_owned())), "{found:?}");
}

#[tokio::test]
async fn what_an_endpoint_refuses_becomes_a_profile() {
    let found = found(|request| {
        if request.get("max_tokens").is_some() {
            refuses("Use 'max_completion_tokens' instead.")
        } else if request["messages"][0]["role"] == "system" {
            refuses("Unsupported role")
        } else if request.get("response_format").is_some() {
            refuses("json_schema is not supported")
        } else if has_image(request) {
            refuses("this model takes no images")
        } else if request["tool_choice"] == "required" {
            refuses("tool_choice must be auto")
        } else if request.get("tools").is_some() {
            calls(1)
        } else {
            says("Hello")
        }
    })
    .await;
    let expected = [
        ("max_tokens_field", "\"max_completion_tokens\""),
        ("system_role", "\"developer\""),
        ("tool_choice", "\"none_only\""),
        ("images", "false"),
        ("structured_output", "\"prompt\""),
    ];
    assert_eq!(found.profile, expected.map(|(key, value)| (key, value.to_owned())), "{found:?}");
    let told = verdicts(&found);
    for row in [
        ("parallel calls", Verdict::Unknown),
        ("tool_choice none", Verdict::Not),
        ("tool_choice required", Verdict::Not),
        ("images", Verdict::Not),
        ("structured output", Verdict::Not),
    ] {
        assert!(told.contains(&row), "{row:?}: {found:?}");
    }
}

#[tokio::test]
async fn an_endpoint_that_takes_no_tools_or_no_key_says_so() {
    let no_tools = found(|request| if request.get("tools").is_some() { refuses("does not support tools") } else { says("Hi") });
    let no_tools = no_tools.await;
    assert!(no_tools.profile.contains(&("tools", "false".to_owned())), "{no_tools:?}");

    let body = r#"{"error":{"message":"Incorrect API key provided"}}"#;
    let head = format!("HTTP/1.1 401 Unauthorized\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    let refused = found(move |_| vec![Piece::Raw(format!("{head}{body}"))]).await;
    assert_eq!(verdicts(&refused), [("model list", Verdict::Not), ("key", Verdict::Not)]);

    let config = EndpointConfig::new("local", by_name("openai-chat").unwrap(), "http://127.0.0.1:9/v1");
    let gone = probe(&config, "m", Arc::new(SystemClock)).await;
    assert_eq!(verdicts(&gone), [("model list", Verdict::Not), ("reachable", Verdict::Not)]);
}
