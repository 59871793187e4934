//! Searching, with each service's answers in the form that it gives them.

use serde_json::{Value, json};
use turnwright_core::{ToolErrorKind, text_of};
use turnwright_tools::{Hidden, SearchConfig, SearchEngine, TypedSource, WebConfig, web};

use crate::support::site::{Asked, Reply, Site};
use crate::support::{call, failure};

fn searcher(engine: SearchEngine, base_url: String) -> TypedSource {
    let search = SearchConfig { base_url: Some(base_url), api_key: Some(Hidden::new("s3cret")), ..SearchConfig::new(engine) };
    web(WebConfig { search: Some(search), ..WebConfig::new() })
}

/// The results, which are the text too.
async fn results(tool: &TypedSource, arguments: Value) -> Value {
    let output = call(tool, "search", arguments).await.unwrap();
    let structured = output.structured_content.unwrap();
    let text: Value = serde_json::from_str(&text_of(&output.content)).unwrap();
    assert_eq!(structured, json!({ "results": text }));
    text
}

const PAGE: &str = r#"<!DOCTYPE html><html><body><div id="links" class="results">
<div class="result results_links results_links_deep result--ad "><div class="links_main"><h2 class="result__title">
<a rel="nofollow" class="result__a" href="https://duckduckgo.com/y.js?ad_domain=shop.example&amp;u3=https%3A%2F%2Fshop.example">Buy Rust remover</a></h2>
<a class="result__snippet" href="https://duckduckgo.com/y.js?ad_domain=shop.example">Cheap.</a></div></div>
<div class="result results_links results_links_deep web-result "><div class="links_main"><h2 class="result__title">
<a rel="nofollow" class="result__a" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Frust%2Dlang.github.io%2Fasync%2Dbook%2F&amp;rut=0123">Asynchronous Programming in <b>Rust</b></a></h2>
<a class="result__snippet" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Frust%2Dlang.github.io">A book about <b>async</b> &amp; await.</a></div></div>
<div class="result results_links web-result "><h2 class="result__title"><a class="result__a" href="https://tokio.rs/tokio/tutorial">Tutorial | Tokio</a></h2>
<a class="result__snippet">Build reliable network applications.</a></div>
</div></body></html>"#;

#[tokio::test]
async fn duckduckgo_is_read_from_its_page_without_advertisements() {
    let site = Site::new(|_| Reply::ok("text/html; charset=UTF-8", PAGE));
    let tool = searcher(SearchEngine::DuckDuckGo, site.url("/html/"));
    let expected = json!([
        {"title": "Asynchronous Programming in Rust", "url": "https://rust-lang.github.io/async-book/", "snippet": "A book about async & await."},
        {"title": "Tutorial | Tokio", "url": "https://tokio.rs/tokio/tutorial", "snippet": "Build reliable network applications."},
    ]);
    assert_eq!(results(&tool, json!({ "query": "rust async programming" })).await, expected);
    assert_eq!(results(&tool, json!({ "query": "rust", "num_results": 1 })).await.as_array().unwrap().len(), 1);
    assert_eq!(site.paths(), ["/html/?q=rust+async+programming", "/html/?q=rust"]);
}

#[tokio::test]
async fn brave_is_asked_with_its_token() {
    let answer = json!({"type": "search", "query": {"original": "rust async"}, "mixed": {"type": "mixed"}, "web": {"type": "search", "results": [
        {"title": "Async in Rust", "url": "https://example.org/async", "is_source_local": false, "description": "All about <strong>async</strong> &#x27;tasks&#x27;.", "language": "en", "meta_url": {"hostname": "example.org"}},
        {"title": "Bad", "url": "javascript:alert(1)", "description": ""},
        {"title": "Nowhere", "url": null}, {"title": "Nowhere"},
        {"title": null, "url": "https://example.org/plain", "description": null}
    ]}});
    let site = Site::new(move |_| Reply::ok("application/json", answer.to_string()));
    let tool = searcher(SearchEngine::Brave, site.url("/res/v1/web/search"));
    let found = results(&tool, json!({ "query": "rust async", "num_results": 3 })).await;
    assert_eq!(
        found,
        json!([
            {"title": "Async in Rust", "url": "https://example.org/async", "snippet": "All about async 'tasks'."},
            {"title": "https://example.org/plain", "url": "https://example.org/plain", "snippet": ""},
        ])
    );
    let asked = &site.asked()[0];
    assert_eq!(
        (asked.path.as_str(), asked.headers["x-subscription-token"].as_str()),
        ("/res/v1/web/search?q=rust+async&count=3", "s3cret")
    );
}

#[tokio::test]
async fn tavily_is_posted_to() {
    let answer = json!({"query": "rust", "follow_up_questions": null, "answer": null, "images": [], "results": [
        {"url": "https://example.org/rust", "title": "Rust", "content": "A language.", "score": 0.9, "raw_content": null}
    ], "response_time": 1.2, "request_id": "1"});
    let site = Site::new(move |_| Reply::ok("application/json", answer.to_string()));
    let tool = searcher(SearchEngine::Tavily, site.url("/search"));
    let found = results(&tool, json!({ "query": "rust" })).await;
    assert_eq!(found, json!([{"title": "Rust", "url": "https://example.org/rust", "snippet": "A language."}]));
    let Asked { method, body, headers, .. } = &site.asked()[0];
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(
        (method.as_str(), body, headers["authorization"].as_str()),
        ("POST", json!({"query": "rust", "max_results": 5}), "Bearer s3cret")
    );
}

#[tokio::test]
async fn searxng_is_asked_for_json() {
    let answer = json!({"query": "rust", "number_of_results": 2, "results": [
        {"url": "https://example.org/", "title": "Example", "content": "An example.", "engine": "brave", "parsed_url": ["https", "example.org", "/", "", "", ""], "score": 1.0, "category": "general"},
        {"url": "https://example.net/", "title": "Other", "content": null, "engine": "brave"}
    ], "answers": [], "suggestions": [], "unresponsive_engines": []});
    let site = Site::new(move |_| Reply::ok("application/json", answer.to_string()));
    let tool = searcher(SearchEngine::SearXng, site.url(""));
    let found = results(&tool, json!({ "query": "rust" })).await;
    let expected = json!([
        {"title": "Example", "url": "https://example.org/", "snippet": "An example."},
        {"title": "Other", "url": "https://example.net/", "snippet": ""},
    ]);
    assert_eq!((found, site.paths()), (expected, vec!["/search?q=rust&format=json".to_owned()]));
}

#[tokio::test]
async fn what_goes_wrong_is_told_by_who_can_mend_it_and_never_with_the_key() {
    let cases = [
        (SearchEngine::Brave, Reply::status(422, "s3cret"), ToolErrorKind::ExecutionFailed, "Brave answers with 422"),
        (SearchEngine::Brave, Reply::status(401, "s3cret"), ToolErrorKind::Unavailable, "it refuses our api_key (401"),
        (
            SearchEngine::Tavily,
            Reply::status(429, "s3cret").with("retry-after", "7"),
            ToolErrorKind::ExecutionFailed,
            "try again in 7 s",
        ),
        (SearchEngine::SearXng, Reply::status(403, ""), ToolErrorKind::Unavailable, "its `search.formats` must hold `json`"),
        (SearchEngine::Brave, Reply::to("https://elsewhere.example/"), ToolErrorKind::Unavailable, "it is somewhere else"),
        (
            SearchEngine::Tavily,
            Reply::ok("text/html", "<p>s3cret</p>"),
            ToolErrorKind::ExecutionFailed,
            "something else than results",
        ),
        (
            SearchEngine::DuckDuckGo,
            Reply::ok("text/html", "<p>hello</p>"),
            ToolErrorKind::ExecutionFailed,
            "a page without a list",
        ),
        (
            SearchEngine::DuckDuckGo,
            Reply(202, vec![], b"<div class=\"anomaly-modal__title\">".to_vec()),
            ToolErrorKind::ExecutionFailed,
            "wants to see a person",
        ),
    ];
    for (engine, reply, kind, part) in cases {
        let reply = std::sync::Mutex::new(Some(reply));
        let site = Site::new(move |_| reply.lock().unwrap().take().unwrap());
        let (got, said) = failure(&searcher(engine, site.url("/")), "search", json!({ "query": "rust" })).await;
        assert!(got == kind && said.contains(part) && !said.contains("s3cret"), "{engine:?}: {got:?} {said}");
    }
}

#[tokio::test]
async fn a_query_that_cannot_be_asked_and_one_too_many_ask_nobody() {
    let site = Site::new(|_| Reply::ok("text/html", PAGE));
    let search = SearchConfig { base_url: Some(site.url("/")), per_minute: 1, ..SearchConfig::new(SearchEngine::DuckDuckGo) };
    let tool = web(WebConfig { search: Some(search), ..WebConfig::new() });
    let (kind, _) = failure(&tool, "search", json!({ "query": "x".repeat(500) })).await;
    assert_eq!(kind, ToolErrorKind::InvalidArguments);
    results(&tool, json!({ "query": "one" })).await;
    let (kind, said) = failure(&tool, "search", json!({ "query": "two" })).await;
    assert_eq!(kind, ToolErrorKind::ExecutionFailed);
    assert!(said.starts_with("searches are limited to 1 a minute"), "{said}");
    assert_eq!(site.paths(), ["/?q=one"]);
}

#[tokio::test]
async fn a_service_that_is_not_there_is_told_without_its_key() {
    let tool = searcher(SearchEngine::Brave, "http://127.0.0.1:1/search".to_owned());
    let (kind, said) = failure(&tool, "search", json!({ "query": "rust" })).await;
    assert_eq!(kind, ToolErrorKind::ExecutionFailed);
    assert!(said.starts_with("no answer: ") && !said.contains("s3cret") && !said.contains("q=rust"), "{said}");
}
