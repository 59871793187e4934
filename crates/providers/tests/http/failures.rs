//! Failures: their kinds, their words, and what is tried again.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::Notify;
use tokio::time::Instant;
use turnwright_core::{ProviderFailure, ProviderFailureKind as Kind, ProviderSaid, StreamDelta};
use turnwright_engine::Provider;
use turnwright_network::{Network, Proxies, ProxyAddress};
use turnwright_providers::{EndpointConfig, Secret};

use crate::support::{
    Act, STREAM_HEAD, Server, ask, ask_script, collect, good, provider, response, short_timeouts, text_event, write,
};

fn refused(status: &str, headers: &str, message: &str, code: &str) -> Vec<Act> {
    let body = format!(r#"{{"error":{{"message":"{message}","code":"{code}"}}}}"#);
    vec![response(status, &format!("connection: close\r\nx-request-id: req_7\r\n{headers}"), &body)]
}

#[tokio::test]
async fn a_refused_key_is_told_in_words_that_help_and_without_the_key() {
    let script = refused("401 Unauthorized", "", "Incorrect API key provided: sk-secret-1.", "invalid_api_key");
    let server = Server::start(vec![script]).await;
    let config = EndpointConfig { api_key: Some(Secret::from("sk-secret-1")), ..server.config() };
    assert!(!format!("{config:?}").contains("sk-secret-1"));
    let failure = collect(ask(&provider(config))).await.failed();
    let message = "provider `local` refused the key (401 invalid_api_key): Incorrect API key provided: [secret]; \
                   check api_key of [providers.local]";
    let expected = ProviderFailure {
        status: Some(401),
        code: Some("invalid_api_key".to_owned()),
        request_id: Some("req_7".to_owned()),
        said: Some(Box::new(ProviderSaid {
            raw: r#"{"error":{"message":"Incorrect API key provided: [secret].","code":"invalid_api_key"}}"#.to_owned(),
            ..ProviderSaid::default()
        })),
        ..ProviderFailure::new(Kind::Auth, message)
    };
    assert_eq!(failure, expected);
}

#[tokio::test]
async fn every_status_has_its_kind() {
    for (status, kind) in [
        ("400 Bad Request", Kind::InvalidRequest),
        ("402 Payment Required", Kind::Quota),
        ("403 Forbidden", Kind::Permission),
        ("404 Not Found", Kind::NotFound),
        ("408 Request Timeout", Kind::Timeout),
        ("413 Payload Too Large", Kind::TooLarge),
        ("422 Unprocessable Entity", Kind::InvalidRequest),
        ("429 Too Many Requests", Kind::RateLimit),
        ("500 Internal Server Error", Kind::Server),
        ("503 Service Unavailable", Kind::Overloaded),
        ("529 Overloaded", Kind::Overloaded),
    ] {
        let failure = ask_script(refused(status, "", "no", "")).await.failed();
        assert_eq!(failure.kind, kind, "{status}");
        assert!(failure.message.contains(status.get(..3).unwrap()) && failure.message.contains(": no"), "{}", failure.message);
    }
}

#[tokio::test]
async fn what_may_pass_is_tried_again_after_the_servers_delay() {
    let busy = refused("429 Too Many Requests", "retry-after-ms: 40\r\nretry-after: 60\r\n", "slow down", "");
    let server = Server::start(vec![busy.clone(), busy, good()]).await;
    let start = Instant::now();
    let came = collect(ask(&provider(EndpointConfig { max_retries: 2, ..server.config() }))).await;
    assert_eq!((came.text(), came.failure), ("hello".to_owned(), None));
    assert!(start.elapsed() >= Duration::from_millis(80), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_long_wait_for_a_provider_is_told_before_it_and_a_short_one_is_not() {
    let busy = refused("429 Too Many Requests", "retry-after: 50\r\n", "slow down", "");
    let server = Server::start(vec![busy, good()]).await;
    let mut asked = ask(&provider(EndpointConfig { max_retries: 2, ..server.config() }));
    let told = "provider `local` takes no more requests at the moment (429): slow down; it is asked again in 50 s";
    assert_eq!(asked.next().await, Some(Ok(vec![StreamDelta::Notice(told.to_owned())])));
    let soon = refused("429 Too Many Requests", "retry-after-ms: 1\r\n", "slow down", "");
    let server = Server::start(vec![soon, good()]).await;
    let came = collect(ask(&provider(EndpointConfig { max_retries: 2, ..server.config() }))).await;
    assert_eq!((came.text(), came.notices()), ("hello".to_owned(), Vec::new()));
}

#[tokio::test]
async fn a_form_of_the_answer_that_is_refused_is_told_with_the_key_that_mends_it() {
    for message in ["This response_format type is unavailable now", "json mode cannot be combined with tool/function calling"] {
        let failure = ask_script(refused("400 Bad Request", "", message, "")).await.failed();
        assert!(
            failure.message.contains("`structured_output = \"prompt\"` in the profile of [providers.local]"),
            "{}",
            failure.message
        );
    }
}

#[tokio::test]
async fn the_number_of_retries_is_limited() {
    let busy = refused("500 Internal Server Error", "retry-after-ms: 1\r\n", "boom", "");
    let server = Server::start(vec![busy.clone(), busy.clone(), busy]).await;
    let failure = collect(ask(&provider(EndpointConfig { max_retries: 2, ..server.config() }))).await.failed();
    assert_eq!(failure.message, "provider `local` failed (500): boom; it asks to wait 1 s");
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_call_that_the_server_could_not_read_is_asked_for_once_more_and_then_shown() {
    let error = r#"{"error":{"message":"Failed to call a function.","code":"tool_use_failed","failed_generation":"<f>{"}}"#;
    let refused = vec![response("400 Bad Request", "connection: close\r\nretry-after-ms: 1\r\n", error)];
    let in_stream = vec![write(format!("{STREAM_HEAD}event: error\ndata: {error}\n\n"))];
    for failing in [refused, in_stream] {
        let server = Server::start(vec![failing.clone(), good()]).await;
        let came = collect(ask(&provider(EndpointConfig { max_retries: 2, ..server.config() }))).await;
        assert_eq!((came.text(), came.failure), ("hello".to_owned(), None));
        let server = Server::start(vec![failing.clone(), failing, good()]).await;
        let failure = collect(ask(&provider(EndpointConfig { max_retries: 2, ..server.config() }))).await.failed();
        assert_eq!((failure.kind, server.requests().len()), (Kind::Malformed, 2));
        assert!(failure.message.contains("Failed to call a function; the model wrote: <f>{"), "{}", failure.message);
    }
}

#[tokio::test]
async fn a_request_of_more_tokens_than_a_minute_allows_is_too_long_however_often_it_is_sent() {
    let message = "Request too large for m on tokens per min (TPM): Limit 10000, Requested 15000.";
    let refused = refused("429 Too Many Requests", "retry-after-ms: 1\r\n", message, "rate_limit_exceeded");
    let server = Server::start(vec![refused, good()]).await;
    let failure = collect(ask(&provider(EndpointConfig { max_retries: 2, ..server.config() }))).await.failed();
    assert_eq!((failure.kind, server.requests().len()), (Kind::ContextLength, 1));
}

#[tokio::test]
async fn what_cannot_pass_is_not_tried_again() {
    for (status, headers, code) in [
        ("400 Bad Request", "", ""),
        ("401 Unauthorized", "", ""),
        ("429 Too Many Requests", "", "insufficient_quota"),
        ("429 Too Many Requests", "retry-after: 3600\r\n", ""),
        ("500 Internal Server Error", "x-should-retry: false\r\n", ""),
    ] {
        let server = Server::start(vec![refused(status, headers, "no", code)]).await;
        let came = collect(ask(&provider(EndpointConfig { max_retries: 2, ..server.config() }))).await;
        assert_eq!(came.failed().status.map(|status| status.to_string()), status.get(..3).map(str::to_owned));
        assert_eq!(server.requests().len(), 1, "{status} {headers}");
    }
}

#[tokio::test]
async fn an_error_event_before_any_content_is_tried_again_and_after_it_is_told() {
    let error = "data: {\"error\":{\"message\":\"overloaded\",\"type\":\"overloaded_error\"}}\n\n";
    let early = vec![write(format!("{STREAM_HEAD}{error}"))];
    let server = Server::start(vec![early, good()]).await;
    let came = collect(ask(&provider(EndpointConfig { max_retries: 1, ..server.config() }))).await;
    assert_eq!((came.text(), came.failure), ("hello".to_owned(), None));
    let late = vec![write(format!("{STREAM_HEAD}{}{error}", text_event("half")))];
    let server = Server::start(vec![late, good()]).await;
    let came = collect(ask(&provider(EndpointConfig { max_retries: 1, ..server.config() }))).await;
    assert_eq!(came.text(), "half");
    let failure = came.failed();
    assert_eq!((failure.kind, failure.request_id.as_deref()), (Kind::Overloaded, Some("req_1")));
    assert!(failure.after_content);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_stream_that_is_cut_is_a_failure_after_what_was_said() {
    let came = ask_script(vec![write(format!("{STREAM_HEAD}{}", text_event("half")))]).await;
    assert_eq!(came.text(), "half");
    let failure = came.failed();
    assert_eq!(failure.kind, Kind::CutOff);
    assert_eq!(failure.message, "provider `local` broke off: the provider's answer ended before its end");
}

#[tokio::test]
async fn a_connection_that_breaks_is_a_failure_after_what_was_said() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 100000\r\n\r\n";
    let came = ask_script(vec![write(format!("{head}{}", text_event("half")))]).await;
    assert_eq!(came.text(), "half");
    assert_eq!(came.failed().kind, Kind::CutOff);
}

#[tokio::test]
async fn a_silent_server_is_given_up_before_and_after_its_headers() {
    let silent = || Act::Hold(Arc::new(Notify::new()));
    for script in [vec![silent()], vec![write(format!("{STREAM_HEAD}{}", text_event("half"))), silent()]] {
        let server = Server::start(vec![script]).await;
        let config = EndpointConfig { timeouts: short_timeouts(), ..server.config() };
        assert_eq!(collect(ask(&provider(config))).await.failed().kind, Kind::Timeout);
    }
}

#[tokio::test]
async fn a_page_is_told_by_its_first_bytes() {
    let page = "<html><title>Sign in</title></html>";
    let failure = ask_script(vec![response("200 OK", "content-type: text/html\r\n", page)]).await.failed();
    assert_eq!(failure.kind, Kind::Malformed);
    assert!(failure.message.contains("an HTML page: Sign in"), "{}", failure.message);
}

#[tokio::test]
async fn an_error_in_a_success_is_a_failure() {
    let body = r#"{"error":{"message":"no credits","code":402}}"#;
    let failure = ask_script(vec![response("200 OK", "content-type: application/json\r\n", body)]).await.failed();
    assert_eq!((failure.kind, failure.status), (Kind::Quota, Some(402)));
}

#[tokio::test]
async fn a_redirect_is_refused_and_says_where_to() {
    let moved = response("308 Permanent Redirect", "location: https://api.example.com/v1?key=x\r\n", "");
    let failure = ask_script(vec![moved]).await.failed();
    assert_eq!(failure.status, Some(308));
    assert!(failure.message.contains("redirects to https://api.example.com/v1, and"), "{}", failure.message);
}

#[tokio::test]
async fn a_huge_error_is_read_in_part() {
    let body = format!(r#"{{"error":{{"message":"{}"#, "x".repeat(10_000_000));
    let failure = ask_script(vec![response("500 Internal Server Error", "connection: close\r\n", &body)]).await.failed();
    assert_eq!(failure.kind, Kind::Server);
    assert!(failure.message.len() < 5000, "{}", failure.message.len());
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_with_its_address() {
    let server = Server::start(Vec::new()).await;
    // Without scripts the server closes its listener.
    let config = EndpointConfig { base_url: server.base_url.replace("http://", "http://me:secret@"), ..server.config() };
    let failure = loop {
        let failure = collect(ask(&provider(config.clone()))).await.failed();
        if failure.message.contains("refused") {
            break failure;
        }
    };
    assert_eq!(failure.kind, Kind::Connect);
    assert!(failure.message.starts_with("provider `local` cannot be reached: "), "{}", failure.message);
    assert!(failure.message.contains(&server.base_url) && !failure.message.contains("secret"), "{}", failure.message);
}

#[tokio::test]
async fn a_proxy_that_is_not_there_is_blamed_in_place_of_the_base_address() {
    let server = Server::start(Vec::new()).await;
    let proxies = Proxies::all(ProxyAddress::read("http://127.0.0.1:1").unwrap(), Vec::new());
    let network = Network::default().through(&proxies).unwrap();
    for base_url in ["http://models.invalid/v1", "https://models.invalid/v1"] {
        let config = EndpointConfig { base_url: base_url.to_owned(), network: network.clone(), ..server.config() };
        let failure = collect(ask(&provider(config))).await.failed();
        let begin = "provider `local` cannot be reached: the proxy http://127.0.0.1:1 cannot be reached: ";
        assert!(failure.kind == Kind::Connect && failure.message.starts_with(begin), "{}", failure.message);
        assert!(!failure.message.contains("base_url"), "{}", failure.message);
    }
}

#[tokio::test]
async fn a_wrong_base_address_is_told() {
    let server = Server::start(Vec::new()).await;
    for base_url in ["127.0.0.1:8080/v1", "ftp://host/v1", ""] {
        let config = EndpointConfig { base_url: base_url.to_owned(), ..server.config() };
        let failure = collect(ask(&provider(config.clone()))).await.failed();
        assert_eq!(failure.kind, Kind::Unavailable, "{}", failure.message);
        assert!(provider(config).models().await.is_err());
    }
}
