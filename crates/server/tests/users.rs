//! Who may ask for what, over a real engine and real accounts in a file.

mod bad_input;
mod base_path;
mod belonging;
mod bounds;
mod conditions;
mod cors;
mod doors;
mod first_admin;
mod meanwhile;
mod outside;
mod people;
mod proxied;
mod repeated;

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use http::{HeaderMap, Method, Request, StatusCode};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tower::ServiceExt;
use turnwright_core::policy::Policy;
use turnwright_core::{ModelRef, TurnSettings, UserId};
use turnwright_engine::accounts::{Accounts, CredentialKind, Role, Scope, Scopes, Staying, User};
use turnwright_engine::{Engine, EngineParts, ToolOutput, ToolSource};
use turnwright_host::Needs;
use turnwright_server::auth::{NewCredential, issue, issue_link, new_user};
use turnwright_server::{Auth, ServerOptions, ServerState, Site, router};
use turnwright_testkit::{
    Answer, ManualClock, MemoryStore, ScriptedProvider, ScriptedProviders, ScriptedSource, ScriptedTool, call, text,
};

use crate::documented::documented;

const NOW_MS: u64 = 1_736_622_000_000;

struct Server {
    router: Router,
    /// The same where nobody has to sign in.
    local: Router,
    engine: Engine,
    source: Arc<ScriptedSource>,
    /// What the tool `lab__wait` waits for.
    gate: Arc<Semaphore>,
    accounts: Arc<dyn Accounts>,
    clock: Arc<ManualClock>,
    host: turnwright_host::Host,
    folder: Arc<tempfile::TempDir>,
}

/// A server at which everybody has to sign in, known as `site`.
async fn server_at(site: Site) -> Server {
    Box::pin(server_in(Arc::new(tempfile::tempdir().unwrap()), site)).await
}

/// The same over the data of this folder.
async fn server_in(folder: Arc<tempfile::TempDir>, site: Site) -> Server {
    // The database comes as an installation has it.
    let environment = turnwright_host::Environment::new(folder.path());
    let near = "[mcp]\nmembers_allow = [\"127.0.0.1:7\", \"127.0.0.1:9\"]\n";
    std::fs::write(folder.path().join("turnwright.toml"), near).unwrap();
    let overrides = turnwright_host::Overrides { data_dir: Some(folder.path().join("data")), ..Default::default() };
    let loaded = turnwright_host::config::open(&environment, &overrides).unwrap();
    let host = Box::pin(turnwright_host::Host::start(loaded, &environment, Needs::Store)).await.unwrap();
    let accounts = host.accounts().clone();
    let clock = Arc::new(ManualClock::at(NOW_MS));
    let answer = |asked: &str| {
        if asked.contains("touch") && !asked.contains("\"outcome\"") && !asked.contains("Result") {
            Answer::of([call(0, "lab__touch", "{}")])
        } else if asked.contains("choose it") && !asked.contains("blue") {
            Answer::of([call(0, "pick", "{}")])
        } else {
            Answer::of([text("Done.")])
        }
    };
    let gate = Arc::new(Semaphore::new(0));
    let opened = gate.clone();
    let waits = ScriptedTool::new("wait", move |_, _| {
        let gate = opened.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            Ok(ToolOutput::text("It came."))
        }
    });
    let source = Arc::new(ScriptedSource::new("lab", [ScriptedTool::echo("touch"), waits]));
    let engine = Engine::new(EngineParts {
        providers: Arc::new(ScriptedProviders(ScriptedProvider::by(answer))),
        sources: vec![source.clone() as Arc<dyn ToolSource>],
        store: Arc::new(MemoryStore::default()),
        clock: clock.clone(),
        policy: Policy::default(),
        defaults: TurnSettings::new(ModelRef::new("test", "scripted")),
    });
    engine.keep_rules(host.documents().clone()).await;
    let options = ServerOptions { auth: Auth::Required, ..ServerOptions::default() };
    let endpoint = host.mcp_endpoint(turnwright_host::McpServing::default(), 1 << 20);
    let with = |options| {
        ServerState::with_mcp(engine.clone(), options, endpoint.clone(), host.mcp().clone())
            .with_resources(host.resources().clone())
            .with_artifacts(host.artifacts().clone())
            .with_documents(host.documents().clone())
            .with_knowledge(host.knowledge(), host.memory())
            .with_model_providers(host.model_providers().clone())
            .with_accounts(accounts.clone(), site.clone())
    };
    let (router, local) = (router(with(options)), router(with(ServerOptions::default())));
    Server { router, local, engine, source, gate, accounts, clock, host, folder }
}

async fn server() -> Server {
    server_at(Site::default()).await
}

struct Answered {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Answered {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.body))
    }

    /// The status, and the code of a problem or of OpenAI's error object.
    fn code(&self) -> (u16, String) {
        let told = self.json();
        let code = told["code"].as_str().or_else(|| told["error"]["code"].as_str());
        (self.status.as_u16(), code.unwrap_or_default().to_owned())
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The session that it gives, as a browser sends it.
    fn cookie(&self) -> String {
        self.header("set-cookie").split(';').next().unwrap().to_owned()
    }
}

impl Server {
    async fn user(&self, name: &str, role: Role) -> User {
        let user = new_user(name, role, None, NOW_MS).unwrap();
        self.accounts.add_user(user.clone()).await.unwrap();
        user
    }

    async fn token(
        &self,
        user: &UserId,
        scopes: impl IntoIterator<Item = Scope>,
        expires_at_ms: Option<u64>,
    ) -> (String, String) {
        let new = NewCredential {
            user: user.clone(),
            kind: CredentialKind::Token,
            name: "test".to_owned(),
            scopes: Scopes::from_iter(scopes),
            parent: None,
            expires_at_ms,
        };
        let (secret, made) = issue(&*self.accounts, new, NOW_MS).await.unwrap();
        (secret.expose().to_owned(), made.id)
    }

    /// A member and a token for all that is theirs.
    async fn member(&self, name: &str) -> (User, String) {
        let user = self.user(name, Role::Member).await;
        let (secret, _) = self.token(&user.id, [Scope::Read, Scope::Chat, Scope::Approve], None).await;
        (user, secret)
    }

    async fn ask(&self, method: Method, path: &str, headers: &[(&str, &str)], body: &str) -> Answered {
        let mut request = Request::builder().method(method.clone()).uri(path).header("host", "tw.example");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.router.clone().oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
        let (parts, body) = documented(&method, path, response).into_parts();
        let body = String::from_utf8_lossy(&to_bytes(body, usize::MAX).await.unwrap()).into_owned();
        Answered { status: parts.status, headers: parts.headers, body }
    }

    async fn get(&self, path: &str, token: &str) -> Answered {
        self.ask(Method::GET, path, &[("authorization", &format!("Bearer {token}"))], "").await
    }

    async fn post(&self, path: &str, token: &str, body: Value) -> Answered {
        let headers = [("authorization", &*format!("Bearer {token}")), ("content-type", "application/json")];
        self.ask(Method::POST, path, &headers, &body.to_string()).await
    }

    async fn form(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Answered {
        let kind = ("content-type", "application/x-www-form-urlencoded");
        self.ask(Method::POST, path, &[headers, &[kind]].concat(), body).await
    }
}

const OURS: (&str, &str) = ("origin", "https://tw.example");

#[tokio::test]
async fn without_a_token_nobody_gets_in_and_is_told_how() {
    let server = server().await;
    let refused = server.ask(Method::GET, "/api/v1/conversations", &[], "").await;
    assert_eq!(refused.code(), (401, "unauthenticated".to_owned()));
    assert_eq!(refused.header("www-authenticate"), "Bearer realm=\"turnwright\"");
    let openai = server.ask(Method::GET, "/v1/models", &[], "").await;
    assert_eq!((openai.status.as_u16(), openai.json()["error"]["code"].as_str()), (401, Some("unauthenticated")));
    let page = server.ask(Method::GET, "/", &[], "").await;
    assert_eq!((page.status.as_u16(), page.header("location")), (303, "login"));
    for open in ["/healthz", "/readyz", "/login", "/openapi.json"] {
        assert_eq!(server.ask(Method::GET, open, &[], "").await.status, StatusCode::OK, "{open}");
    }
    assert_eq!(server.ask(Method::GET, "/nothing", &[], "").await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_token_counts_whole_until_it_expires_or_is_revoked_or_its_user_is_kept_out() {
    let server = server().await;
    let (anna, token) = server.member("anna").await;
    let me = server.get("/api/v1/me", &token).await.json();
    assert_eq!((&me["name"], &me["approve"]), (&"anna".into(), &"ask".into()));
    let (head, tail) = token.split_at(token.len() - 1);
    let other = if tail == "0" { "1" } else { "0" };
    for wrong in [head, &format!("{head}{other}"), &token.to_uppercase(), "", "tw_", &"x".repeat(10_000)] {
        let refused = server.get("/api/v1/me", wrong).await;
        assert_eq!(refused.code(), (401, "invalid_token".to_owned()), "{wrong}");
        assert!(refused.header("www-authenticate").contains("invalid_token"));
    }
    for wrong in [format!("Basic {token}"), token.clone(), format!("Bearer{token}"), format!("Bearer {token} more")] {
        let refused = server.ask(Method::GET, "/api/v1/me", &[("authorization", &wrong)], "").await;
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{wrong}");
    }
    let good = format!("Bearer {token}");
    let twice = server.ask(Method::GET, "/api/v1/me", &[("authorization", &good), ("authorization", &good)], "").await;
    assert_eq!(twice.status, StatusCode::UNAUTHORIZED);
    let request = Request::get("/api/v1/me").header("host", "tw.example").header("authorization", &b"Bearer \xff\xfe"[..]);
    let refused = server.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);

    let (short, _) = server.token(&anna.id, [Scope::Read], Some(NOW_MS + 5_000)).await;
    assert_eq!(server.get("/api/v1/me", &short).await.status, StatusCode::OK);
    server.clock.advance(5_000);
    let expired = server.get("/api/v1/me", &short).await;
    assert!(expired.body.contains("has expired"), "{}", expired.body);
    assert_eq!(expired.status, StatusCode::UNAUTHORIZED);

    let (revoked, id) = server.token(&anna.id, [Scope::Read], None).await;
    let path = format!("/api/v1/tokens/{id}");
    let gone = server.ask(Method::DELETE, &path, &[("authorization", &format!("Bearer {token}"))], "").await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.body);
    assert_eq!(server.get("/api/v1/me", &revoked).await.status, StatusCode::UNAUTHORIZED);

    server.accounts.change_user(&anna, Role::Member, false, Staying::WithLocal).await.unwrap();
    assert_eq!(server.get("/api/v1/me", &token).await.status, StatusCode::UNAUTHORIZED);
    let kept_out = User { is_enabled: false, ..anna.clone() };
    server.accounts.change_user(&kept_out, Role::Member, true, Staying::WithLocal).await.unwrap();
    assert_eq!(server.get("/api/v1/me", &token).await.status, StatusCode::OK);
    server.accounts.remove_user(&anna, Staying::WithLocal).await.unwrap();
    assert_eq!(server.get("/api/v1/me", &token).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_stream_ends_when_what_it_was_opened_with_is_revoked() {
    let server = server().await;
    let (anna, token) = server.member("anna").await;
    server.post("/api/v1/conversations", &token, json!({"id": "c1"})).await;
    let (other, id) = server.token(&anna.id, [Scope::Read], None).await;
    let bearer = format!("Bearer {other}");
    let watch = Request::get("/api/v1/conversations/c1/events").header("host", "tw.example").header("authorization", bearer);
    let open = server.router.clone().oneshot(watch.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(open.status(), StatusCode::OK);
    let path = format!("/api/v1/tokens/{id}");
    let owners = format!("Bearer {token}");
    let headers = [("authorization", &*owners)];
    let (told, revoked) = tokio::join!(to_bytes(open.into_body(), usize::MAX), server.ask(Method::DELETE, &path, &headers, ""));
    assert_eq!(revoked.status, StatusCode::NO_CONTENT);
    // It came to an end, by which its client is told to come back: then it is refused.
    assert!(told.unwrap().ends_with(b"retry: 1000\n\n"));
}

#[tokio::test]
async fn the_last_use_is_noted_once_a_minute() {
    let server = server().await;
    let (anna, token) = server.member("anna").await;
    let used = async || server.accounts.credentials(&anna.id).await.unwrap()[0].used_at_ms;
    assert_eq!(used().await, None);
    server.get("/api/v1/me", &token).await;
    assert_eq!(used().await, Some(NOW_MS));
    server.clock.advance(59_000);
    server.get("/api/v1/me", &token).await;
    assert_eq!(used().await, Some(NOW_MS));
    server.clock.advance(1_000);
    server.get("/api/v1/me", &token).await;
    assert_eq!(used().await, Some(NOW_MS + 60_000));
}

#[tokio::test]
async fn a_token_does_what_its_scopes_say_by_every_door() {
    let server = server().await;
    let (anna, whole) = server.member("anna").await;
    let (reads, _) = server.token(&anna.id, [Scope::Read], None).await;
    let (chats, _) = server.token(&anna.id, [Scope::Read, Scope::Chat], None).await;
    assert_eq!(server.get("/api/v1/conversations", &reads).await.status, StatusCode::OK);
    let refused = server.post("/api/v1/conversations", &reads, json!({})).await;
    assert_eq!(refused.code(), (403, "insufficient_scope".to_owned()));
    assert!(refused.header("www-authenticate").contains("scope=\"chat\""), "{:?}", refused.headers);
    for door in ["/v1/chat/completions", "/v1/responses", "/api/chat", "/ag-ui", "/mcp"] {
        assert_eq!(server.post(door, &reads, json!({})).await.status, StatusCode::FORBIDDEN, "{door}");
    }

    let parked = server.post("/api/v1/conversations/c/chat", &chats, json!({"content": "touch it"})).await;
    assert_eq!(parked.json()["turn"]["status"], "suspended", "{}", parked.body);
    let call = parked.json()["turn"]["waiting"][0]["id"].as_str().unwrap().to_owned();
    let door = format!("/api/v1/conversations/c/calls/{call}/decision");
    assert_eq!(server.post(&door, &chats, json!({"decision": "allow"})).await.status, StatusCode::FORBIDDEN);
    // Nor by a door for something else: what allows everything beforehand, and an answer in the form of another's protocol.
    for (path, body) in [
        ("/api/v1/conversations/d/chat", json!({"content": "touch it", "settings": {"approve": "all"}})),
        ("/api/v1/conversations", json!({"settings": {"approve": "all"}})),
        ("/api/v1/conversations/c/retry", json!({"settings": {"approve": "all"}})),
        (
            "/v1/responses",
            json!({"model": "test/scripted", "conversation": "c", "input": [
                {"type": "mcp_approval_response", "approval_request_id": call.replace("call_", "mcpr_"), "approve": true}]}),
        ),
    ] {
        let refused = server.post(path, &chats, body).await;
        assert!(matches!(refused.status.as_u16(), 400 | 403), "{path}: {} {}", refused.status, refused.body);
    }
    // Nor is what stands beside a decision said.
    let before = server.get("/api/v1/conversations/c/messages", &whole).await.json();
    let approval = json!({"type": "mcp_approval_response", "approval_request_id": call.replacen("call_", "mcpr_", 1) + "_c", "approve": true});
    let beside = json!({"model": "test/scripted", "input": [approval, {"role": "user", "content": "sneaked in"}]});
    let refused = server.post("/v1/responses", &chats, beside).await;
    assert_eq!((refused.status, refused.json()["error"]["code"].clone()), (StatusCode::FORBIDDEN, json!("insufficient_scope")));
    assert_eq!(server.get("/api/v1/conversations/c/messages", &whole).await.json(), before);
    // Nor is it declined in a person's name.
    let declines = json!({"content": "never mind", "on_waiting": "deny"});
    let refused = server.post("/api/v1/conversations/c/messages", &chats, declines).await;
    assert_eq!(refused.code(), (403, "insufficient_scope".to_owned()));
    let input = json!({"model": "test/scripted", "conversation": "c", "input": "never mind"});
    let refused = server.post("/v1/responses", &chats, input).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.body);
    let still = server.get("/api/v1/approvals", &chats).await.json();
    assert_eq!(still["data"][0]["id"], call.as_str());
    assert_eq!(server.post(&door, &whole, json!({"decision": "allow"})).await.status, StatusCode::OK);
    server.engine.shutdown().await;
}

#[tokio::test]
async fn who_may_chat_ends_what_waits_with_its_turn_or_its_conversation_and_nothing_runs() {
    let server = server().await;
    let (anna, _) = server.member("anna").await;
    let (chats, _) = server.token(&anna.id, [Scope::Read, Scope::Chat], None).await;
    let bearer = format!("Bearer {chats}");
    for id in ["stopped", "deleted"] {
        let path = format!("/api/v1/conversations/{id}");
        let parked = server.post(&format!("{path}/chat"), &chats, json!({"content": "touch it"})).await;
        assert_eq!(parked.json()["turn"]["status"], "suspended", "{}", parked.body);
        if id == "stopped" {
            let stopped = server.post(&format!("{path}/cancel"), &chats, json!({})).await;
            assert_eq!(stopped.status, StatusCode::ACCEPTED, "{}", stopped.body);
            let engine = server.engine.acting_for(anna.id.clone());
            engine.wait(&id.parse().unwrap(), "turn_1".parse().unwrap()).await.unwrap();
        } else {
            let deleted = server.ask(Method::DELETE, &path, &[("authorization", &bearer)], "").await;
            assert_eq!(deleted.status, StatusCode::NO_CONTENT, "{}", deleted.body);
        }
        assert_eq!(server.get("/api/v1/approvals", &chats).await.json()["data"], json!([]), "{id}");
    }
    assert!(server.source.effects().is_empty());
}

#[tokio::test]
async fn a_copy_made_with_a_token_that_may_not_decide_is_asked_about() {
    let server = server().await;
    let (anna, whole) = server.member("anna").await;
    let (chats, _) = server.token(&anna.id, [Scope::Read, Scope::Chat], None).await;
    let all = json!({"id": "c", "settings": {"approve": "all"}});
    assert_eq!(server.post("/api/v1/conversations", &whole, all).await.status, StatusCode::CREATED);
    for (token, approve) in [(&chats, Value::Null), (&whole, json!("all"))] {
        let copy = server.post("/api/v1/conversations/c/fork", token, json!({})).await;
        assert_eq!((copy.status, &copy.json()["settings"]["approve"]), (StatusCode::CREATED, &approve), "{}", copy.body);
    }
}

#[tokio::test]
async fn only_admins_see_and_change_users_and_only_with_that_scope() {
    let server = server().await;
    let (_, member) = server.member("anna").await;
    let admin = server.user("root", Role::Admin).await;
    let (weak, _) = server.token(&admin.id, [Scope::Read, Scope::Chat], None).await;
    let (strong, _) = server.token(&admin.id, Scope::ALL, None).await;
    for token in [&member, &weak] {
        assert_eq!(server.get("/api/v1/users", token).await.code(), (403, "insufficient_scope".to_owned()));
        assert_eq!(
            server.post("/api/v1/users", token, json!({"name": "eve", "role": "admin"})).await.status,
            StatusCode::FORBIDDEN
        );
    }
    let added = server.post("/api/v1/users", &strong, json!({"name": "ben"})).await;
    assert_eq!(added.status, StatusCode::CREATED, "{}", added.body);
    let id = added.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(server.post("/api/v1/users", &strong, json!({"name": "BEN"})).await.code(), (409, "exists".to_owned()));
    for wrong in [json!({"name": ""}), json!({"name": " x"}), json!({"name": "a\u{7}"}), json!({"name": "x", "role": "god"})] {
        assert_eq!(server.post("/api/v1/users", &strong, wrong).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    }
    let made = server.post(&format!("/api/v1/users/{id}/tokens"), &strong, json!({"name": "first"})).await.json();
    let bens = made["secret"].as_str().unwrap().to_owned();
    assert_eq!(server.get("/api/v1/me", &bens).await.json()["scopes"], json!(["read", "chat", "approve"]));
    assert_eq!(server.post("/api/v1/tokens", &bens, json!({"scopes": ["admin"]})).await.status, StatusCode::FORBIDDEN);
    // Its role decides, not what the token once was made for.
    server.accounts.change_user(&admin, Role::Member, true, Staying::WithLocal).await.unwrap();
    assert_eq!(server.get("/api/v1/users", &strong).await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_token_that_was_made_with_a_token_goes_with_it() {
    let server = server().await;
    let (anna, _) = server.member("anna").await;
    let (first, id) = server.token(&anna.id, [Scope::Read, Scope::Chat], Some(NOW_MS + 1_000)).await;
    let made = server.post("/api/v1/tokens", &first, json!({"name": "child", "expires_in_days": 9})).await.json();
    assert_eq!((&made["scopes"], &made["expires_at"]), (&json!(["read", "chat"]), &json!("2025-01-11T19:00:01.000Z")));
    let second = made["secret"].as_str().unwrap().to_owned();
    let listed = server.get("/api/v1/tokens", &second).await;
    assert!(!listed.body.contains(&second) && !listed.body.contains("secret"), "{}", listed.body);
    server.accounts.remove_credential(&id).await.unwrap();
    assert_eq!(server.get("/api/v1/me", &second).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_browser_signs_in_with_a_token_and_out_again() {
    let server = server_at(Site {
        host: None,
        origin: Some("https://tw.example".to_owned()),
        is_tls: false,
        path: String::new(),
        trusted_proxies: Vec::new(),
        allowed_origins: Vec::new(),
        apps: turnwright_server::Apps::default(),
    })
    .await;
    let (_, token) = server.member("anna").await;
    let page = server.ask(Method::GET, "/login?return=/%3Fc%3D1", &[], "").await;
    for twice in ["/login?code=a&code=b", "/login/oidc?return=a&return=b", "/login/callback?state=a&state=b"] {
        let refused = server.ask(Method::GET, twice, &[], "").await;
        assert_eq!((refused.status.as_u16(), &refused.json()["code"]), (400, &json!("invalid_query")), "{twice}");
    }
    assert!(page.body.contains("value=\"/?c=1\""), "{}", page.body);
    assert!(page.header("content-security-policy").starts_with("default-src 'none'"));
    let wrong = server.form("/login", &[OURS], "token=tw_wrong").await;
    assert_eq!((wrong.status, wrong.header("set-cookie")), (StatusCode::UNAUTHORIZED, ""));
    for foreign in [&[("origin", "https://evil.example")][..], &[]] {
        let refused = server.form("/login", foreign, &format!("token={token}")).await;
        assert_eq!(refused.code(), (403, "origin_not_allowed".to_owned()));
    }
    let entered = server.form("/login", &[OURS], &format!("token={token}&return=%2F%3Fc%3D1")).await;
    assert_eq!((entered.status.as_u16(), entered.header("location")), (303, "/?c=1"));
    let set = entered.header("set-cookie");
    assert!(set.starts_with("__Host-tw_session=") && !set.contains(&token), "{set}");
    for word in ["; Path=/", "; HttpOnly", "; SameSite=Lax", "; Secure", "; Max-Age=2592000"] {
        assert!(set.contains(word), "{word}: {set}");
    }
    let cookie = entered.cookie();
    let me = server.ask(Method::GET, "/api/v1/me", &[("cookie", &cookie)], "").await;
    assert_eq!((me.json()["name"].as_str(), me.json()["how"].as_str()), (Some("anna"), Some("session")));
    // The token that the browser was signed in with is the one with which it is signed out again.
    let own = server.get("/api/v1/me", &token).await.json()["token_id"].clone();
    assert!(own.is_string(), "{own}");
    assert_eq!(me.json()["token_id"], own);
    // Another site's page has the cookie sent too, and gets nothing done.
    for foreign in [&[("origin", "https://evil.example")][..], &[("sec-fetch-site", "cross-site")], &[]] {
        let headers = [foreign, &[("cookie", &*cookie), ("content-type", "application/json")]].concat();
        let refused = server.ask(Method::POST, "/api/v1/conversations", &headers, "{}").await;
        assert_eq!(refused.code(), (403, "origin_not_allowed".to_owned()), "{foreign:?}");
    }
    let headers = [OURS, ("cookie", &*cookie), ("content-type", "application/json")];
    assert_eq!(server.ask(Method::POST, "/api/v1/conversations", &headers, "{}").await.status, StatusCode::CREATED);
    // What is in a cookie is no token, and the other way round.
    let secret = cookie.split_once('=').unwrap().1;
    assert_eq!(server.get("/api/v1/me", secret).await.status, StatusCode::UNAUTHORIZED);
    let as_cookie = format!("__Host-tw_session={token}");
    assert_eq!(server.ask(Method::GET, "/api/v1/me", &[("cookie", &as_cookie)], "").await.status, StatusCode::UNAUTHORIZED);

    let left = server.form("/logout", &[OURS, ("cookie", &cookie)], "").await;
    assert_eq!((left.status.as_u16(), left.header("location")), (303, "login"));
    assert!(left.header("set-cookie").contains("Max-Age=0"));
    let over = server.ask(Method::GET, "/api/v1/me", &[("cookie", &cookie)], "").await;
    assert_eq!(over.code(), (401, "session_over".to_owned()));
}

#[tokio::test]
async fn a_session_goes_with_the_token_that_began_it_and_with_its_user() {
    let server = server().await;
    let anna = server.user("anna", Role::Member).await;
    let (token, id) = server.token(&anna.id, [Scope::Read], None).await;
    let begin = async || server.form("/login", &[OURS], &format!("token={token}")).await.cookie();
    let me = async |cookie: &str| server.ask(Method::GET, "/api/v1/me", &[("cookie", cookie)], "").await.status;
    let first = begin().await;
    assert_eq!(me(&first).await, StatusCode::OK);
    server.accounts.remove_credential(&id).await.unwrap();
    assert_eq!(me(&first).await, StatusCode::UNAUTHORIZED);
    let link = issue_link(&server.accounts, &anna, NOW_MS).await.unwrap();
    let second = server.form("/login", &[OURS], &format!("code={}", link.expose())).await.cookie();
    assert_eq!(me(&second).await, StatusCode::OK);
    server.accounts.remove_user(&anna, Staying::WithLocal).await.unwrap();
    assert_eq!(me(&second).await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_token_that_is_made_in_a_browser_ends_with_the_token_that_signed_it_in() {
    let server = server().await;
    let anna = server.user("anna", Role::Member).await;
    let (token, id) = server.token(&anna.id, [Scope::Read, Scope::Chat], Some(NOW_MS + 1_000)).await;
    let cookie = server.form("/login", &[OURS], &format!("token={token}")).await.cookie();
    let headers = [OURS, ("cookie", &*cookie), ("content-type", "application/json")];
    let made = server.ask(Method::POST, "/api/v1/tokens", &headers, "{\"name\": \"child\"}").await.json();
    assert_eq!((&made["scopes"], &made["expires_at"]), (&json!(["read", "chat"]), &json!("2025-01-11T19:00:01.000Z")));
    let child = made["secret"].as_str().unwrap();
    assert_eq!(server.get("/api/v1/me", child).await.status, StatusCode::OK);
    server.accounts.remove_credential(&id).await.unwrap();
    assert_eq!(server.get("/api/v1/me", child).await.status, StatusCode::UNAUTHORIZED);
    // Who was signed in by a link is nobody's child.
    let link = issue_link(&server.accounts, &anna, NOW_MS).await.unwrap();
    let cookie = server.form("/login", &[OURS], &format!("code={}", link.expose())).await.cookie();
    let headers = [OURS, ("cookie", &*cookie), ("content-type", "application/json")];
    let made = server.ask(Method::POST, "/api/v1/tokens", &headers, "{}").await.json();
    assert_eq!(made["expires_at"], json!(null));
}

#[tokio::test]
async fn what_tools_are_taken_for_is_said_only_by_who_may_decide() {
    let server = server().await;
    let anna = server.user("anna", Role::Member).await;
    let (talks, _) = server.token(&anna.id, [Scope::Read, Scope::Chat], None).await;
    let (decides, _) = server.token(&anna.id, [Scope::Read, Scope::Chat, Scope::Approve], None).await;
    for more in [json!({"trust_annotations": true}), json!({"tools": {"x": {"read_only": true}}})] {
        let add = json!({"name": "x", "url": "https://mcp.example/mcp", "config": more});
        assert_eq!(
            server.post("/api/v1/mcp/servers", &talks, add.clone()).await.code(),
            (403, "insufficient_scope".to_owned())
        );
        let patched = [("authorization", &*format!("Bearer {talks}")), ("content-type", "application/json")];
        let changed = server.ask(Method::PATCH, "/api/v1/mcp/servers/x", &patched, &json!({"config": more}).to_string()).await;
        assert_eq!(changed.code(), (403, "insufficient_scope".to_owned()));
        assert_ne!(server.post("/api/v1/mcp/servers", &decides, add).await.code().1, "insufficient_scope");
    }
    let plain = json!({"name": "x", "url": "https://mcp.example/mcp"});
    assert_ne!(server.post("/api/v1/mcp/servers", &talks, plain).await.code().1, "insufficient_scope");
}

#[tokio::test]
async fn a_link_signs_in_once_by_its_button_and_within_its_time() {
    let server = server().await;
    let anna = server.user("anna", Role::Member).await;
    let link = issue_link(&server.accounts, &anna, NOW_MS).await.unwrap();
    let body = format!("code={}", link.expose());
    // Whoever only looks, such as a chat that shows what a link leads to, does not use it up.
    for _ in 0..2 {
        let page = server.ask(Method::GET, &format!("/login?{body}"), &[], "").await;
        assert!(page.body.contains(link.expose()) && page.header("set-cookie").is_empty());
    }
    let (first, second) = tokio::join!(server.form("/login", &[OURS], &body), server.form("/login", &[OURS], &body));
    let mut entered = [first.status.as_u16(), second.status.as_u16()];
    entered.sort_unstable();
    assert_eq!(entered, [303, 401]);
    assert_eq!(server.form("/login", &[OURS], &body).await.status, StatusCode::UNAUTHORIZED);
    let late = issue_link(&server.accounts, &anna, NOW_MS).await.unwrap();
    server.clock.advance(15 * 60_000);
    assert_eq!(server.form("/login", &[OURS], &format!("code={}", late.expose())).await.status, StatusCode::UNAUTHORIZED);
    let script = server.ask(Method::GET, "/login?code=%22%3E%3Cscript%3E&return=%22%3E%3Cscript%3E", &[], "").await;
    assert!(!script.body.contains("<script"), "{}", script.body);
    for away in ["https://evil.example", "//evil.example", "/\\evil.example", "/a\r\nset-cookie: x=y", "javascript:alert(1)"] {
        let link = issue_link(&server.accounts, &anna, NOW_MS + 15 * 60_000).await.unwrap();
        let away: Vec<String> = away.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let away = away.concat();
        let entered = server.form("/login", &[OURS], &format!("code={}&return={away}", link.expose())).await;
        assert_eq!((entered.status.as_u16(), entered.header("location")), (303, "/"), "{away}");
    }
}
