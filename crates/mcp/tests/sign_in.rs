//! Signing in to servers with an address.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::support::child::run_again;
use crate::support::far::at;
use crate::support::http_server::{Answer, HttpServer};
use crate::support::oauth::{self, NearItsEnd, Protected, Special};
use crate::support::{LONG, StoppedClock, call, context, fixture, nothing, text};
use serde_json::{Value, json};
use turnwright_engine::{SourceState, ToolOutput, ToolSource};
use turnwright_mcp::{FileTokens, HttpConfig, McpServer, OauthGrant, SignedOut, Surroundings, TokenStore};

/// Calls the tool, which must be there.
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
async fn a_token_for_another_resource_is_told_at_the_sign_in_and_not_kept() {
    let protected = Protected::start(Special { is_of_another: true, ..Special::default() }).await;
    let client = protected.client(|_| {});
    let (asked, signed_in) = protected.sign_in(&client, |asked| vec![protected.back(asked, "")]).await;
    assert_eq!(
        signed_in.unwrap_err().to_string(),
        "the sign-in failed: it does not take the token that its authorization server gave, which may be for another resource"
    );
    assert_eq!(asked["resource"], protected.server.url);
    let sent = protected.server.asked().iter().filter(|asked| asked.header("authorization").is_some()).count();
    client.settled().await;
    assert!(needs_sign_in(&client), "{:?}", client.state());
    let error = client.call(call("t", nothing()), context().0).await.unwrap_err();
    assert!(error.model_text.contains("`far` needs somebody to sign in"), "{error:?}");
    let after = protected.server.asked().iter().filter(|asked| asked.header("authorization").is_some()).count();
    assert_eq!((sent, after), (1, 1));
    client.stop().await;
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
    let forgotten = SignedOut::Forgotten { reason: "the authorization server takes none back".to_owned() };
    assert_eq!((client.sign_out().await.unwrap(), client.sign_out().await.unwrap()), (forgotten, SignedOut::WasNot));
    client.settled().await;
    assert!(needs_sign_in(&client));
    client.stop().await;
}

/// What the authorization server says of where it takes tokens back.
fn revoking(own: &str, more: Vec<(&'static str, Value)>) -> Special {
    let mut metadata = BTreeMap::from([("revocation_endpoint", json!(own))]);
    metadata.extend(more);
    Special { metadata, ..Special::default() }
}

#[tokio::test]
async fn a_sign_in_that_is_forgotten_is_revoked_where_it_was_given() {
    let cases = [
        ("{own}/revoke", SignedOut::Revoked, 2),
        ("{own}/nothing", SignedOut::Forgotten { reason: "the authorization server answered HTTP 404 Not Found".into() }, 0),
        (
            "https://elsewhere.example/revoke",
            SignedOut::Forgotten { reason: "the authorization server takes none back".into() },
            0,
        ),
    ];
    for (place, expected, sent) in cases {
        let protected = Protected::start(revoking(place, vec![])).await;
        let client = protected.client(|_| {});
        protected.agree(&client).await;
        assert_eq!(text(&called(&client).await), "ok");
        assert_eq!(client.sign_out().await.unwrap(), expected, "{place}");
        let forms = protected.forms("/revoke");
        assert_eq!(forms.len(), sent, "{forms:?}");
        for (form, (kind, token)) in forms.iter().zip([("refresh_token", "refresh-1"), ("access_token", "access-1")]) {
            let fields = ["token", "token_type_hint", "client_id"].map(|name| form[name].as_str());
            assert_eq!(fields, [token, kind, "registered"]);
        }
        client.stop().await;
    }
}

#[tokio::test]
async fn a_client_with_a_secret_says_who_it_is_when_it_revokes() {
    let in_form = ("revocation_endpoint_auth_methods_supported", json!(["client_secret_post"]));
    for (more, expected) in [(vec![], ("Basic YnktaGFuZDpzZXNhbWU=", "")), (vec![in_form], ("", "sesame"))] {
        let protected = Protected::start(revoking("{own}/revoke", more)).await;
        let client = protected.client(|http| {
            (http.oauth.client_id, http.oauth.client_secret) = (Some("by-hand".into()), Some("sesame".into()));
            http.headers = vec![("X-Team".into(), "blue".into())];
        });
        protected.agree(&client).await;
        assert_eq!(client.sign_out().await.unwrap(), SignedOut::Revoked);
        let asked = protected.authority.asked().into_iter().find(|asked| asked.target == "/revoke").unwrap();
        let form = &protected.forms("/revoke")[0];
        let secret = form.get("client_secret").map_or("", String::as_str);
        assert_eq!((asked.header("authorization").unwrap_or_default(), secret), expected);
        assert_eq!(asked.header("x-team"), None);
        client.stop().await;
    }
}

#[tokio::test]
async fn a_token_is_renewed_shortly_before_it_ends_and_each_renewal_brings_the_next() {
    // As many authorization servers write when it ends.
    let protected = Protected::start(Special { writes_texts: true, ..Special::default() }).await;
    let client = oauth::client(&protected.server.url, &protected.tokens(), Arc::new(NearItsEnd), |_| {});
    protected.agree(&client).await;
    assert_eq!([text(&called(&client).await), text(&called(&client).await)], ["ok"; 2]);
    let bearers = |protected: &Protected| {
        // Signing in asks with the first whether it is taken.
        let calls = protected.server.asked().into_iter().filter(|asked| asked.method() == "tools/call");
        calls.filter_map(|asked| asked.header("authorization").map(str::to_owned)).collect::<BTreeSet<_>>()
    };
    // It was good still, and was not sent any more.
    assert_eq!(bearers(&protected), BTreeSet::from(["Bearer access-2".to_owned()]));
    protected.revoke();
    assert_eq!(text(&called(&client).await), "ok");
    let sent: Vec<_> = protected.token_requests().iter().filter_map(|sent| sent.get("refresh_token").cloned()).collect();
    assert_eq!(sent, ["refresh-1", "refresh-2"]);
    client.stop().await;
}

#[tokio::test]
async fn a_token_that_cannot_be_renewed_just_then_is_used_to_its_end_and_renewed_later() {
    let protected = Protected::start(Special { breaks: 1, ..Special::default() }).await;
    let client = oauth::client(&protected.server.url, &protected.tokens(), Arc::new(NearItsEnd), |_| {});
    protected.agree(&client).await;
    assert_eq!([text(&called(&client).await), text(&called(&client).await)], ["ok"; 2]);
    let sent: BTreeSet<_> =
        protected.server.asked().into_iter().filter_map(|asked| asked.header("authorization").map(str::to_owned)).collect();
    assert_eq!(sent, ["Bearer access-1", "Bearer access-2"].map(str::to_owned).into());
    client.stop().await;
}

#[tokio::test]
async fn a_refused_renewal_asks_for_a_sign_in_and_is_not_tried_again() {
    let protected = Protected::start(Special::default()).await;
    let client = protected.client(|_| {});
    protected.agree(&client).await;
    assert_eq!(text(&called(&client).await), "ok");
    protected.revoke();
    protected.refuse_refreshes();
    let error = client.call(call("t", nothing()), context().0).await.unwrap_err();
    assert_eq!(error.model_text, "The MCP server `far` needs somebody to sign in: `t` was not called.");
    client.restart().await;
    client.settled().await;
    let reason = "it needs a sign-in: HTTP 401 Unauthorized; `turnwright mcp login far` leads through it".to_owned();
    assert_eq!(client.state(), SourceState::NeedsSignIn { reason });
    assert_eq!(protected.refreshed(), 1);
    protected.agree(&client).await;
    assert_eq!(text(&called(&client).await), "ok");
    client.stop().await;
}

#[tokio::test]
async fn a_client_that_signs_in_by_itself_needs_nobody_and_shares_its_token() {
    let protected = Protected::start(Special::default()).await;
    let (one, two) = (protected.client(machine), protected.client(machine));
    let (first, second) = tokio::join!(called(&one), called(&two));
    assert_eq!([text(&first), text(&second)], ["ok"; 2]);
    let sent = protected.token_requests();
    assert_eq!(sent.len(), 1);
    let fields = ["grant_type", "client_id", "client_secret", "scope", "resource"].map(|name| sent[0][name].as_str());
    assert_eq!(fields, ["client_credentials", "machine", "sesame", "tools", protected.server.url.as_str()]);
    protected.revoke();
    let (first, second) = tokio::join!(called(&one), called(&two));
    assert_eq!(([text(&first), text(&second)], protected.token_requests().len()), (["ok"; 2], 2));
    let error = one.sign_in(|_| panic!("nobody is asked")).await.unwrap_err().to_string();
    assert!(error.contains("by nobody in a browser"), "{error}");
    one.stop().await;
    two.stop().await;
}

#[tokio::test]
async fn a_renewal_goes_to_who_gave_the_sign_in_and_to_no_address_that_is_guessed_or_named_since() {
    let other = Protected::start(Special::default()).await;
    let elsewhere = other.authority.url.trim_end_matches("/mcp").to_owned();
    for named in [vec![], vec![elsewhere]] {
        let protected = Protected::start(Special::default()).await;
        let client = oauth::client(&protected.server.url, &protected.tokens(), Arc::new(NearItsEnd), |http| {
            (http.oauth.client_id, http.oauth.client_secret) = (Some("by-hand".into()), Some("sesame".into()));
        });
        protected.agree(&client).await;
        let before = (protected.token_requests().len(), protected.refreshed());
        protected.names(Some(named.clone()));
        assert_eq!(text(&called(&client).await), "ok", "its token is good still");
        for asked in [&protected.server, &other.server, &other.authority].map(HttpServer::asked) {
            assert!(
                asked.iter().all(|asked| asked.target != "/token" && !asked.text.contains("refresh-")),
                "{named:?}: {asked:?}"
            );
        }
        assert_eq!((protected.token_requests().len(), protected.refreshed()), before);
        protected.names(None);
        assert_eq!(text(&called(&client).await), "ok");
        assert_eq!(protected.refreshed(), before.1 + 1, "the sign-in is kept");
        client.stop().await;
    }
}

#[tokio::test]
async fn a_renewal_that_nobody_waits_for_any_more_is_kept() {
    let protected = Protected::start(Special { refresh_takes: Duration::from_millis(500), ..Special::default() }).await;
    let near_its_end = || oauth::client(&protected.server.url, &protected.tokens(), Arc::new(NearItsEnd), |_| {});
    let client = near_its_end();
    protected.agree(&client).await;
    client.start();
    let asked = async {
        while protected.refreshed() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, asked).await.expect("it is renewed");
    client.stop().await;
    let next = near_its_end();
    assert_eq!(text(&called(&next).await), "ok");
    assert_eq!(protected.refreshed(), 1);
    next.stop().await;
}

/// Nobody signs in; what is asked for at first is `tools`.
fn machine(http: &mut HttpConfig) {
    (http.oauth.client_id, http.oauth.client_secret) = (Some("machine".into()), Some("sesame".into()));
    (http.oauth.grant, http.oauth.scopes) = (OauthGrant::ClientCredentials, vec!["tools".into()]);
}

#[tokio::test]
async fn a_client_that_signs_in_by_itself_asks_for_what_more_a_call_needs() {
    let protected = Protected::start(Special { call_scope: Some("write"), ..Special::default() }).await;
    let client = protected.client(machine);
    assert_eq!([text(&called(&client).await), text(&called(&client).await)], ["ok"; 2]);
    let asked: Vec<_> = protected.token_requests().iter().map(|sent| sent["scope"].clone()).collect();
    assert_eq!(asked, ["tools", "tools write"]);
    client.stop().await;
}

#[tokio::test]
async fn a_client_that_signs_in_by_itself_and_is_given_no_more_is_told_so_and_goes_on() {
    let special = Special { call_scope: Some("write"), unknown_scope: Some("write"), ..Special::default() };
    let protected = Protected::start(special).await;
    let client = protected.client(machine);
    for _ in 0..2 {
        let error = client.call(call("t", nothing()), context().0).await.unwrap_err();
        let model = "The MCP server `far` allows its client less than this needs: `t` was not called.";
        assert_eq!(error.model_text, model);
        let diagnostic = error.diagnostic.unwrap();
        assert!(diagnostic.contains("write (") && diagnostic.contains("invalid_scope"), "{diagnostic}");
        assert_eq!(client.state(), SourceState::Ready);
    }
    client.stop().await;
    let next = protected.client(machine);
    protected.revoke();
    next.settled().await;
    assert_eq!(next.state(), SourceState::Ready, "what it is not given is not asked for again");
    next.stop().await;
}

#[tokio::test]
async fn nobody_is_sent_to_a_sign_in_where_a_client_signs_in_by_itself() {
    let protected = Protected::start(Special { is_of_another: true, ..Special::default() }).await;
    let client = protected.client(machine);
    client.settled().await;
    let reason =
        "it needs a sign-in: HTTP 401 Unauthorized: it does not take the token that the sign-in gave; nobody can sign in \
                  there: look at the server's table `oauth`, by which its client does"
            .to_owned();
    assert_eq!(client.state(), SourceState::NeedsSignIn { reason });
    client.stop().await;
}

/// Names the address and the folder of the tokens for the process that this binary is when a test starts it.
const HOST: &str = "TURNWRIGHT_TEST_SIGN_IN_HOST";

#[cfg(target_os = "linux")]
#[tokio::test]
async fn two_processes_whose_token_ends_at_the_same_moment_renew_it_once() {
    if let Some(given) = std::env::var_os(HOST) {
        let (url, tokens) = given.to_str().unwrap().split_once(' ').unwrap();
        let client = oauth::client(url, Path::new(tokens), Arc::new(NearItsEnd), |_| {});
        assert_eq!(text(&called(&client).await), "ok");
        return client.stop().await;
    }
    let protected = Protected::start(Special::default()).await;
    protected.agree(&protected.client(|_| {})).await;
    let tokens = protected.tokens();
    let lock = std::fs::read_dir(&tokens).unwrap().map(|file| file.unwrap().path());
    let lock = lock.into_iter().find(|path| path.extension().is_some_and(|ending| ending == "lock")).unwrap();
    let inode = std::fs::metadata(&lock).unwrap().ino().to_string();
    let held = FileTokens::new(&tokens).lock(lock.file_stem().unwrap().to_str().unwrap()).await.unwrap();
    let mut hosts = [(); 2].map(|()| {
        let given = format!("{} {}", protected.server.url, tokens.display());
        run_again("sign_in::two_processes_whose_token_ends_at_the_same_moment_renew_it_once", HOST, given)
    });
    // Both have seen that it ends, and wait to renew it.
    let waiting = || {
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        locks.lines().filter(|line| line.contains("->") && line.contains(&format!(":{inode} "))).count()
    };
    let both = async {
        while waiting() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, both).await.expect("both wait for the lock");
    drop(held);
    let ended = async {
        for host in &mut hosts {
            while host.try_wait().unwrap().is_none() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    };
    tokio::time::timeout(LONG, ended).await.expect("both end");
    let results = hosts.map(|mut host| host.wait().unwrap().success());
    assert_eq!((results, protected.refreshed()), ([true; 2], 1));
}

#[tokio::test]
async fn a_configured_key_that_is_not_taken_is_named_as_that() {
    let protected = Protected::start(Special::default()).await;
    for (headers, why) in [
        ([("Authorization", "Bearer hidden")].as_slice(), "the configured header `Authorization` is not taken"),
        (&[("X-Key", "wrong"), ("X-Team", "a")], "the configured headers `X-Key`, `X-Team` are not taken"),
    ] {
        let fixture = fixture(at(&protected.server.url, headers));
        fixture.server.settled().await;
        let reason = format!("it needs a sign-in: HTTP 401 Unauthorized: {why}");
        assert_eq!(fixture.server.state(), SourceState::NeedsSignIn { reason });
        fixture.stop().await;
    }
}

#[tokio::test]
async fn another_users_server_of_the_same_name_and_address_is_signed_in_to_by_its_owner() {
    let protected = Protected::start(Special::default()).await;
    let [of_nobody, of_one, of_other] = [None, Some("u_1"), Some("u_2")].map(|owner| {
        let mut config = protected.client(|_| {}).config().clone();
        config.owner = owner.map(|owner| owner.parse().unwrap());
        let mut surroundings = Surroundings::new(Arc::new(StoppedClock));
        surroundings.tokens = Arc::new(FileTokens::new(protected.tokens()));
        McpServer::new(config, surroundings)
    });
    protected.agree(&of_one).await;
    for client in [&of_nobody, &of_other] {
        client.settled().await;
        assert!(needs_sign_in(client), "{:?}", client.state());
    }
    assert_eq!(text(&called(&of_one).await), "ok");
    for client in [of_nobody, of_one, of_other] {
        client.stop().await;
    }
}

#[tokio::test]
async fn a_server_that_waits_for_a_sign_in_starts_where_another_process_signed_in() {
    let protected = Protected::start(Special::default()).await;
    let (waits, other) = (protected.client(|_| {}), protected.client(|_| {}));
    waits.settled().await;
    waits.look_for_sign_in().await;
    assert!(needs_sign_in(&waits), "nobody signed in: {:?}", waits.state());
    protected.agree(&other).await;
    waits.look_for_sign_in().await;
    assert!(waits.is_awaited(), "a turn that begins waits for what it offers: {:?}", waits.state());
    waits.settled().await;
    assert_eq!((waits.state(), waits.tools().len()), (SourceState::Ready, 1));
    waits.stop().await;
}
