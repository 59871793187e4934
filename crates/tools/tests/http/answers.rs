//! What comes back, as results and as errors that say what to do next.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use turnwright_core::{ContentBlock, ToolErrorKind};
use turnwright_testkit::Port;
use turnwright_tools::http::{FieldPath, HttpSource, OperationGlob};

use super::{ToolSource, api, called, described, failure, file, source, text};
use crate::support::site::{Reply, Site};

fn paths() -> serde_json::Value {
    let id = json!({"name": "id", "in": "query", "schema": {"type": "string"}});
    json!({"/it": {"get": {"operationId": "read", "parameters": [id]}, "post": {"operationId": "write"}, "head": {"operationId": "look"}}})
}

#[tokio::test]
async fn answers_are_given_in_the_form_that_they_have() {
    let site = Site::new(|asked| match asked.path.as_str() {
        "/it?id=json" => Reply::ok("application/json; charset=utf-8", r#"{"a": [1, "ü"]}"#),
        "/it?id=problem" => Reply::ok("application/vnd.api+json", r#"{"b": 1}"#),
        "/it?id=latin" => Reply::ok("text/plain; charset=iso-8859-1", b"caf\xe9".to_vec()),
        "/it?id=text" => Reply::ok("text/plain", "plain"),
        "/it?id=image" => Reply::ok("image/png", b"\x89PNG".to_vec()),
        "/it?id=bytes" => Reply::ok("application/pdf", b"%PDF\0\x01".to_vec()),
        _ => Reply(204, vec![], Vec::new()),
    });
    let source = source(&site, &paths()).await;
    let of = |id: &'static str| called(&source, "read", json!({"id": id}));
    let (json, problem) = (of("json").await.unwrap(), of("problem").await.unwrap());
    assert_eq!((json.structured_content, problem.structured_content), (Some(json!({"a": [1, "ü"]})), Some(json!({"b": 1}))));
    assert_eq!(text(&source, "read", json!({"id": "latin"})).await, "café");
    assert_eq!(text(&source, "read", json!({"id": "text"})).await, "plain");
    assert_eq!(text(&source, "read", json!({})).await, "Done: 204 No Content, nothing more is said.");
    let image = ContentBlock::Image { data: STANDARD.encode(b"\x89PNG"), mime_type: "image/png".into() };
    assert_eq!(of("image").await.unwrap().content[1], image);
    let bytes = of("bytes").await.unwrap().content;
    assert!(
        matches!(&bytes[1], ContentBlock::Resource { resource } if resource.mime_type.as_deref() == Some("application/pdf")),
        "{bytes:?}"
    );
}

#[tokio::test]
async fn an_answer_that_is_packed_is_unpacked_or_told_with_its_status_and_coding() {
    let site = Site::new(|asked| {
        let coding = if asked.method == "POST" { "zstd" } else { "deflate" };
        // `{"a":1}` as zlib writes it.
        let zlib = b"\x78\x9c\xab\x56\x4a\x54\xb2\x32\xac\x05\x00\x08\x2a\x02\x09".to_vec();
        Reply::ok("application/json", zlib).with("content-encoding", coding)
    });
    let source = source(&site, &paths()).await;
    assert_eq!(called(&source, "read", json!({})).await.unwrap().structured_content, Some(json!({"a": 1})));
    let told = failure(&source, "write", json!({})).await;
    let text = "The API answers 200 OK, and the answer is packed as `zstd` (its content-encoding) and is not unpacked here (gzip, \
                deflate are). Tell the person.";
    assert_eq!(told, (ToolErrorKind::ExecutionFailed, text.to_owned()));
}

#[tokio::test]
async fn errors_are_of_a_kind_and_say_what_to_do_next() {
    let site = Site::new(|asked| {
        let status: u16 = asked.path.rsplit('=').next().and_then(|text| text.parse().ok()).unwrap_or(500);
        let body = json!({"errorMessages": ["the project is required"]}).to_string();
        Reply(status, vec![("content-type".into(), "application/json".into()), ("retry-after".into(), "7".into())], body.into())
    });
    let source = source(&site, &paths()).await;
    let cases = [
        ("400", ToolErrorKind::InvalidArguments, "Correct the arguments"),
        ("422", ToolErrorKind::InvalidArguments, "Correct the arguments"),
        ("401", ToolErrorKind::PermissionDenied, "Only the person can change that"),
        ("403", ToolErrorKind::PermissionDenied, "Do not repeat it"),
        ("404", ToolErrorKind::NotFound, "Look for its right id"),
        ("409", ToolErrorKind::ExecutionFailed, "Read the present state"),
        ("429", ToolErrorKind::Unavailable, "Try again in 7 s"),
        ("500", ToolErrorKind::ExecutionFailed, "the API's own fault"),
        ("503", ToolErrorKind::Unavailable, "Try again in 7 s"),
        ("504", ToolErrorKind::Timeout, "did not answer in time"),
    ];
    for (status, kind, next) in cases {
        let (told, text) = failure(&source, "read", json!({"id": status})).await;
        assert!(told == kind && text.contains(next), "{status}: {told:?} {text}");
        assert!(text.starts_with(&format!("GET answers {status}")) && text.contains("the project is required"), "{text}");
        assert!(!text.contains("It may have happened"), "{text}");
    }
    let (_, text) = failure(&source, "write", json!({})).await;
    assert!(text.contains("It may have happened all the same: look before you repeat it."), "{text}");
}

#[tokio::test]
async fn no_answer_is_told_apart_from_one_that_may_have_had_an_effect() {
    let site = Site::new(|_| Reply(200, vec![("content-length".into(), "10".into())], Vec::new()));
    let (_folder, place) = file(&described(&paths()));
    let source = HttpSource::new(api(&site, place.clone()));
    source.settled().await;
    let (kind, text) = failure(&source, "write", json!({})).await;
    assert!(kind == ToolErrorKind::ExecutionFailed && text.contains("It may have happened all the same"), "{text}");
    let gone = Port::reserve().unwrap();
    let mut api = api(&site, place);
    api.base_url = Some(format!("http://{}", gone.address()));
    let source = HttpSource::new(api);
    source.settled().await;
    let (_, text) = failure(&source, "write", json!({})).await;
    let says = format!("The API at http://{} cannot be reached: ", gone.address());
    assert!(text.starts_with(&says) && text.contains("Nothing was sent."), "{text}");
}

#[tokio::test]
async fn an_api_that_is_silent_is_given_up_and_a_stop_ends_the_call() {
    let (held, waits) = (std::sync::Mutex::new(()), std::sync::mpsc::channel::<()>());
    let (_keep, wait) = waits;
    let wait = std::sync::Mutex::new(wait);
    let site = Site::new(move |_| {
        let _held = held.lock();
        // Until the test is over, which drops the other end.
        let _ = wait.lock().unwrap().recv();
        Reply::ok("text/plain", "late")
    });
    let (_folder, place) = file(&described(&paths()));
    let mut silent = api(&site, place);
    silent.timeout = std::time::Duration::from_millis(20);
    let source = HttpSource::new(silent.clone());
    source.settled().await;
    let (kind, text) = failure(&source, "read", json!({})).await;
    assert_eq!((kind, text.as_str()), (ToolErrorKind::Timeout, "The API did not answer within 0.02 s."));
    silent.timeout = std::time::Duration::from_mins(1);
    let source = HttpSource::new(silent);
    source.settled().await;
    let cancel = tokio_util::sync::CancellationToken::new();
    let call = source.call(super::call_of("write", json!({})), super::context(&cancel));
    cancel.cancel();
    let error = call.await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Interrupted);
    source.stop().await;
    assert_eq!(failure(&source, "read", json!({})).await.0, ToolErrorKind::Unavailable);
}

#[tokio::test]
async fn a_list_of_fields_cuts_answers_and_not_errors_and_pages_are_told_all_the_same() {
    let site = Site::new(|asked| match asked.path.as_str() {
        "/it?id=bad" => Reply(400, vec![("content-type".into(), "application/json".into())], br#"{"why": "bad"}"#.to_vec()),
        "/it?id=other" => Reply::ok("application/json", r#"{"x": 1, "y": 2}"#),
        _ => Reply::ok("application/json", r#"{"items": [{"id": 1, "more": "long"}], "next": "?id=2"}"#),
    });
    let (_folder, place) = file(&described(&paths()));
    let mut api = api(&site, place);
    api.choice.fields = vec![(OperationGlob::new("read").unwrap(), vec![FieldPath::new("items[].id").unwrap()])];
    let source = HttpSource::new(api);
    source.settled().await;
    let output = called(&source, "read", json!({})).await.unwrap();
    assert_eq!(output.structured_content, Some(json!({"items": [{"id": 1}]})));
    assert_eq!(output.content[1], ContentBlock::text("[There is more: call this again with `id` = 2.]"));
    let other = "The answer has none of the fields that are given of it. It has: x, y";
    assert_eq!(text(&source, "read", json!({"id": "other"})).await, other);
    assert!(failure(&source, "read", json!({"id": "bad"})).await.1.contains("\"why\":\"bad\""));
}

#[tokio::test]
async fn an_answer_beyond_the_limit_is_cut_and_says_so() {
    let site = Site::new(|_| Reply::ok("application/json", format!("[{}1]", "1,".repeat(10_000))));
    let (_folder, place) = file(&described(&paths()));
    let mut api = api(&site, place);
    api.max_bytes = 1_000;
    let source = HttpSource::new(api);
    source.settled().await;
    let output = called(&source, "read", json!({})).await.unwrap();
    assert_eq!(output.structured_content, None);
    assert_eq!(output.content[0].as_text().len(), 1_000);
    let note = "[The answer is longer than 1,000 bytes, the limit, and its rest was not read: ask for less]";
    assert_eq!(output.content[1], ContentBlock::text(note));
}

#[tokio::test]
async fn a_head_gives_what_there_is_to_know() {
    let site = Site::new(|_| {
        Reply(200, vec![("content-type".into(), "text/plain".into()), ("etag".into(), "\"1\"".into())], Vec::new())
    });
    let source = source(&site, &paths()).await;
    let told = text(&source, "look", json!({})).await;
    assert_eq!(told, "Done: 200 OK, nothing more is said.\ncontent-type: text/plain\netag: \"1\"");
    assert_eq!(site.asked()[0].method, "HEAD");
}
