//! Signing in to servers with an address.

#[cfg(test)]
mod support;

use std::collections::BTreeMap;

use serde_json::json;
use support::far::at;
use support::http_server::{Answer, HttpServer};
use support::oauth::{Protected, Special};
use support::{call, context, fixture, nothing, text};
use turnwright_engine::{SourceState, ToolOutput, ToolSource};
use turnwright_mcp::McpServer;

/// Calls the tool, which must be there.
#[cfg(test)]
async fn called(client: &McpServer) -> ToolOutput {
    client.call(call("t", nothing()), context().0).await.unwrap()
}

fn needs_sign_in(client: &McpServer) -> bool {
    matches!(client.state(), SourceState::NeedsSignIn { .. })
}

#[tokio::test]
async fn a_sign_in_is_asked_for_done_and_kept_over_restarts() {
    let protected = Protected::start(Special::default()).await;
    let client = protected.client(|_| {});
    client.settled().await;
    let reason = "it needs a sign-in: HTTP 401 Unauthorized; `turnwright mcp login far` leads through it".to_owned();
    assert_eq!(client.state(), SourceState::NeedsSignIn { reason });

    let asked = protected.agree(&client).await;
    let parts = ["response_type", "client_id", "code_challenge_method", "resource", "scope"].map(|name| asked[name].as_str());
    assert_eq!(parts, ["code", "registered", "S256", protected.server.url.as_str(), "tools"]);
    assert!(asked["redirect_uri"].starts_with("http://127.0.0.1:"), "{asked:?}");
    let sent = &protected.token_requests()[0];
    assert_eq!((sent["code"].as_str(), sent["resource"].as_str()), ("the-code", protected.server.url.as_str()));
    assert!(sent["code_verifier"].len() >= 43, "{sent:?}");

    assert_eq!(text(&called(&client).await), "ok");
    client.stop().await;
    let restarted = protected.client(|_| {});
    assert_eq!(text(&called(&restarted).await), "ok");
    restarted.stop().await;
    assert!(protected.authority.asked().iter().all(|asked| asked.header("authorization").is_none()));
    assert_eq!(protected.token_requests().len(), 1);
}

#[tokio::test]
async fn a_refused_token_is_renewed_once_for_all_who_use_it() {
    let protected = Protected::start(Special::default()).await;
    let (one, two) = (protected.client(|_| {}), protected.client(|_| {}));
    protected.agree(&one).await;
    tokio::join!(called(&one), called(&two));
    protected.revoke();
    let (first, second, third) = tokio::join!(called(&one), called(&two), called(&one));
    assert_eq!([text(&first), text(&second), text(&third)], ["ok"; 3]);
    assert_eq!(protected.refreshed(), 1);
    let sent = &protected.token_requests()[1];
    assert_eq!((sent["refresh_token"].as_str(), sent["resource"].as_str()), ("refresh-1", protected.server.url.as_str()));
    one.stop().await;
    two.stop().await;
}

#[tokio::test]
async fn what_is_not_safe_is_refused_and_nothing_is_kept() {
    let metadata = |name, value| Special { metadata: BTreeMap::from([(name, value)]), ..Special::default() };
    let cases = [
        (Special { resource: Some("https://elsewhere.example/mcp".into()), ..Special::default() }, "resource"),
        (metadata("issuer", json!("https://elsewhere.example")), "issuer mismatch"),
        (metadata("code_challenge_methods_supported", json!(["plain"])), "S256"),
        (metadata("code_challenge_methods_supported", json!([])), "S256"),
        (metadata("authorization_endpoint", json!("javascript:alert(1)")), "no address that a browser opens"),
    ];
    for (special, expected) in cases {
        let protected = Protected::start(special.clone()).await;
        let client = protected.client(|_| {});
        let (_, signed_in) = protected.sign_in(&client, |asked| vec![protected.back(asked, "")]).await;
        let error = signed_in.unwrap_err().to_string();
        assert!(error.starts_with("the sign-in failed: ") && error.contains(expected), "{special:?}: {error}");
        assert_eq!(protected.token_requests(), []);
        client.settled().await;
        assert!(needs_sign_in(&client));
        client.stop().await;
    }
}

#[tokio::test]
async fn an_answer_of_another_authorization_server_is_refused_and_its_words_are_not_repeated() {
    let protected = Protected::start(Special::default()).await;
    let client = protected.client(|_| {});
    for more in ["", "&error=stolen&error_description=call-this-number"] {
        let back = |asked: &BTreeMap<String, String>| {
            vec![format!("{}?code=c&state={}&iss=https://elsewhere.example{more}", asked["redirect_uri"], asked["state"])]
        };
        let (_, signed_in) = protected.sign_in(&client, back).await;
        let error = signed_in.unwrap_err().to_string();
        assert!(error.contains("authorization server") || error.contains("ssuer"), "{error}");
        assert!(!error.contains("stolen") && !error.contains("number"), "{error}");
    }
    assert_eq!(protected.token_requests(), []);
}

#[tokio::test]
async fn a_person_who_says_no_is_told_so() {
    let protected = Protected::start(Special::default()).await;
    let client = protected.client(|_| {});
    let (_, signed_in) = protected.sign_in(&client, |asked| vec![protected.back(asked, "&error=access_denied")]).await;
    assert_eq!(signed_in.unwrap_err().to_string(), "the sign-in failed: the authorization server said access_denied");
    assert_eq!(protected.token_requests(), []);
}

#[tokio::test]
async fn only_the_visit_that_was_asked_for_is_taken() {
    let protected = Protected::start(Special::default()).await;
    let client = protected.client(|_| {});
    let back = |asked: &BTreeMap<String, String>| {
        let strange = asked["redirect_uri"].replace("/callback", "/other");
        vec![
            format!("{}?code=forged&state=guessed", asked["redirect_uri"]),
            format!("{strange}?code=forged&state={}", asked["state"]),
            protected.back(asked, ""),
        ]
    };
    protected.sign_in(&client, back).await.1.unwrap();
    let codes: Vec<_> = protected.token_requests().iter().map(|sent| sent["code"].clone()).collect();
    assert_eq!(codes, ["the-code"]);
}

#[tokio::test]
async fn a_token_goes_to_no_other_address() {
    let elsewhere = HttpServer::start(|_| Answer::status("200 OK")).await;
    let protected = Protected::start(Special::default()).await;
    let client = protected.client(|_| {});
    protected.agree(&client).await;
    let target = elsewhere.url.clone();
    let moved = HttpServer::start(move |_| Answer::status("307 Temporary Redirect").with("location", target.clone())).await;
    // The same name at another address, with the tokens of the first in reach.
    let other = protected.client(|http| http.url.clone_from(&moved.url));
    other.settled().await;
    other.stop().await;
    assert!(!moved.asked().is_empty());
    assert!(moved.asked().iter().all(|asked| asked.header("authorization").is_none()));
    assert_eq!(elsewhere.asked(), []);
}

#[tokio::test]
async fn a_client_that_was_registered_by_hand_or_describes_itself_is_not_registered_again() {
    let by_address = json!(true);
    let special = Special {
        metadata: BTreeMap::from([("client_id_metadata_document_supported", by_address), ("scopes_supported", json!([]))]),
        ..Special::default()
    };
    let protected = Protected::start(special).await;
    let configured = protected.client(|http| http.oauth.client_id = Some("by-hand".into()));
    assert_eq!(protected.agree(&configured).await["client_id"], "by-hand");
    let address = "https://turnwright.example/client.json";
    let described = protected.client(|http| http.oauth.client_metadata_url = Some(address.into()));
    assert_eq!(protected.agree(&described).await["client_id"], address);
    assert!(protected.authority.asked().iter().all(|asked| asked.target != "/register"));
}

#[tokio::test]
async fn more_that_a_call_needs_is_asked_for_by_the_next_sign_in_beside_what_was_allowed() {
    let protected = Protected::start(Special { call_scope: Some("write"), ..Special::default() }).await;
    let client = protected.client(|_| {});
    protected.agree(&client).await;
    let error = client.call(call("t", nothing()), context().0).await.unwrap_err();
    let model = "The MCP server `far` needs somebody to sign in and allow more: `t` was not called.";
    assert_eq!(error.model_text, model);
    assert_eq!(protected.agree(&client).await["scope"], "tools write");
    client.restart().await;
    assert_eq!(text(&called(&client).await), "ok");
    client.stop().await;
}

#[tokio::test]
async fn a_sign_in_can_be_forgotten() {
    let protected = Protected::start(Special::default()).await;
    let client = protected.client(|_| {});
    protected.agree(&client).await;
    assert_eq!((client.sign_out().await.unwrap(), client.sign_out().await.unwrap()), (true, false));
    client.settled().await;
    assert!(needs_sign_in(&client));
    client.stop().await;
}

#[tokio::test]
async fn a_configured_key_that_is_not_taken_is_named_as_that() {
    let protected = Protected::start(Special::default()).await;
    let fixture = fixture(at(&protected.server.url, &[("Authorization", "Bearer hidden")]));
    fixture.server.settled().await;
    let reason = "it needs a sign-in: HTTP 401 Unauthorized: the configured header `Authorization` is not taken".to_owned();
    assert_eq!(fixture.server.state(), SourceState::NeedsSignIn { reason });
    fixture.stop().await;
}
