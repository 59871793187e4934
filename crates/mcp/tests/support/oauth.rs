//! A server that wants a sign-in, the authorization server that it names, and a person who signs in there.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use reqwest::Url;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use turnwright_engine::Clock;
use turnwright_mcp::{FileTokens, HttpConfig, McpError, McpServer, Surroundings};

use super::StoppedClock;
use super::far::at;
use super::http_server::{Answer, Asked, HttpServer, usual};

/// How long the first token lasts, in seconds; those that come after it last longer.
const FIRST_LASTS_S: u64 = 3600;

/// The clock of somebody for whom the first token ends in 20 seconds.
#[derive(Debug)]
pub(crate) struct NearItsEnd;

impl Clock for NearItsEnd {
    fn now_ms(&self) -> u64 {
        turnwright_engine::SystemClock.now_ms() + (FIRST_LASTS_S - 20) * 1000
    }
}

/// What is wrong with the two, or special.
#[derive(Debug, Clone, Default)]
pub(crate) struct Special {
    /// The server says that it is this one.
    pub(crate) resource: Option<String>,
    /// What is changed in what the authorization server says of itself.
    pub(crate) metadata: BTreeMap<&'static str, Value>,
    /// Calls need this to be allowed too.
    pub(crate) call_scope: Option<&'static str>,
    /// How long a refresh takes once the new token is the one that is taken.
    pub(crate) refresh_takes: Duration,
    /// What the authorization server never allows.
    pub(crate) unknown_scope: Option<&'static str>,
    /// How many refreshes are answered with an error of the authorization server's own.
    pub(crate) breaks: usize,
    /// How long a token lasts is written as a text.
    pub(crate) writes_texts: bool,
    /// Its tokens are for another resource: the server takes none of them.
    pub(crate) is_of_another: bool,
}

#[derive(Debug, Default)]
struct State {
    /// Tokens given out, with what they allow; those that are taken still.
    tokens: BTreeMap<String, String>,
    given: usize,
    refreshed: usize,
    broken: usize,
    /// The one refresh token that is taken: each use of it brings another.
    refresh: String,
    asked_scope: String,
    /// The authorization servers that the server names in place of its own; where there is none, it says nothing of it.
    named: Option<Vec<String>>,
}

/// See the module.
pub(crate) struct Protected {
    pub(crate) server: HttpServer,
    pub(crate) authority: HttpServer,
    state: Arc<Mutex<State>>,
    pub(crate) folder: tempfile::TempDir,
}

fn json_answer(value: &Value) -> Answer {
    Answer::of_type("200 OK", "application/json", value.to_string())
}

fn form(text: &str) -> BTreeMap<String, String> {
    let url = Url::parse(&format!("http://form/?{text}")).unwrap();
    url.query_pairs().into_owned().collect()
}

fn protected(asked: &Asked, urls: &(String, String), special: &Special, state: &Mutex<State>) -> Answer {
    let (own, authority) = urls;
    if asked.target.starts_with("/.well-known/oauth-protected-resource") {
        let resource = special.resource.as_ref().unwrap_or(own);
        let named = state.lock().unwrap().named.clone().unwrap_or_else(|| vec![authority.clone()]);
        if named.is_empty() {
            return Answer::status("404 Not Found");
        }
        return json_answer(&json!({"resource": resource, "authorization_servers": named}));
    }
    let token = asked.header("authorization").and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", own.trim_end_matches("/mcp"));
    match (state.lock().unwrap().tokens.get(token).filter(|_| !special.is_of_another), special.call_scope) {
        (None, _) => Answer::status("401 Unauthorized")
            .with("www-authenticate", format!("Bearer resource_metadata=\"{metadata}\", scope=\"tools\"")),
        (Some(scopes), Some(scope)) if asked.method() == "tools/call" && !scopes.contains(scope) => {
            let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\", resource_metadata=\"{metadata}\"");
            Answer::status("403 Forbidden").with("www-authenticate", challenge)
        }
        (Some(_), _) => usual(asked),
    }
}

fn authority(asked: &Asked, own: &str, special: &Special, state: &Mutex<State>) -> Answer {
    match asked.target.as_str() {
        "/.well-known/oauth-authorization-server" => {
            let mut metadata = json!({
                "issuer": own,
                "authorization_endpoint": format!("{own}/authorize"),
                "token_endpoint": format!("{own}/token"),
                "registration_endpoint": format!("{own}/register"),
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": true,
            });
            for (name, value) in &special.metadata {
                metadata[*name] = match value.as_str() {
                    Some(text) => json!(text.replace("{own}", own)),
                    None => value.clone(),
                };
            }
            json_answer(&metadata)
        }
        "/register" => json_answer(&json!({"client_id": "registered", "redirect_uris": asked.body["redirect_uris"]})),
        "/token" => {
            let form = form(&asked.text);
            let mut state = state.lock().unwrap();
            let scopes = form.get("scope").map(String::as_str).unwrap_or_default();
            if special.unknown_scope.is_some_and(|unknown| scopes.split(' ').any(|scope| scope == unknown)) {
                let error = json!({"error": "invalid_scope"}).to_string();
                return Answer::of_type("400 Bad Request", "application/json", error);
            }
            let is_refresh = form["grant_type"] == "refresh_token";
            if is_refresh {
                state.refreshed += 1;
                if state.broken < special.breaks {
                    state.broken += 1;
                    return Answer::status("503 Service Unavailable");
                }
                if form["refresh_token"] != state.refresh {
                    return Answer::of_type(
                        "400 Bad Request",
                        "application/json",
                        json!({"error": "invalid_grant"}).to_string(),
                    );
                }
            }
            state.given += 1;
            let number = state.given;
            let scope = form.get("scope").cloned().unwrap_or_else(|| state.asked_scope.clone());
            state.tokens.insert(format!("access-{number}"), scope.clone());
            let lasts = if number == 1 { FIRST_LASTS_S } else { 10 * FIRST_LASTS_S };
            let mut token = json!({"access_token": format!("access-{number}"), "token_type": "Bearer", "expires_in": lasts, "scope": scope});
            if special.writes_texts {
                token["expires_in"] = json!(lasts.to_string());
            }
            if form["grant_type"] != "client_credentials" {
                state.refresh = format!("refresh-{number}");
                token["refresh_token"] = json!(state.refresh);
            }
            let after = if is_refresh { special.refresh_takes } else { Duration::ZERO };
            Answer { after, ..json_answer(&token) }
        }
        "/revoke" => {
            state.lock().unwrap().tokens.remove(&form(&asked.text)["token"]);
            Answer::status("200 OK")
        }
        _ => Answer::status("404 Not Found"),
    }
}

/// A client of the server at this address that keeps its tokens there.
pub(crate) fn client(url: &str, tokens: &Path, clock: Arc<dyn Clock>, change: impl FnOnce(&mut HttpConfig)) -> McpServer {
    let mut http = HttpConfig::new(url);
    change(&mut http);
    let mut config = at(url, &[]);
    config.transport = http.into();
    let mut surroundings = Surroundings::new(clock);
    surroundings.tokens = Arc::new(FileTokens::new(tokens));
    McpServer::new(config, surroundings)
}

impl Protected {
    pub(crate) async fn start(special: Special) -> Self {
        let urls: Arc<OnceLock<(String, String)>> = Arc::default();
        let state: Arc<Mutex<State>> = Arc::default();
        let (known, shared, its) = (Arc::clone(&urls), Arc::clone(&state), special.clone());
        let server = HttpServer::start(move |asked| protected(asked, known.get().unwrap(), &its, &shared)).await;
        let (known, shared) = (Arc::clone(&urls), Arc::clone(&state));
        let authority = HttpServer::start(move |asked| authority(asked, &known.get().unwrap().1, &special, &shared)).await;
        urls.set((server.url.clone(), authority.url.trim_end_matches("/mcp").to_owned())).unwrap();
        Self { server, authority, state, folder: tempfile::tempdir().unwrap() }
    }

    /// A client of it; all of them keep their tokens in one place.
    pub(crate) fn client(&self, change: impl FnOnce(&mut HttpConfig)) -> McpServer {
        client(&self.server.url, &self.tokens(), Arc::new(StoppedClock), change)
    }

    pub(crate) fn tokens(&self) -> std::path::PathBuf {
        Path::new(self.folder.path()).join("tokens")
    }

    /// Signs in; the person comes back from the browser with what `back` makes of it. Returns what the browser was asked.
    pub(crate) async fn sign_in(
        &self,
        client: &McpServer,
        back: impl Fn(&BTreeMap<String, String>) -> Vec<String> + Sync,
    ) -> (BTreeMap<String, String>, Result<(), McpError>) {
        let mut asked = BTreeMap::new();
        let signed_in = client.sign_in(|address| {
            asked = form(Url::parse(address).unwrap().query().unwrap());
            self.state.lock().unwrap().asked_scope = asked.get("scope").cloned().unwrap_or_default();
            let visits = back(&asked);
            tokio::runtime::Handle::current().spawn(async move {
                for visit in visits {
                    visited(&visit).await;
                }
            });
        });
        let signed_in = signed_in.await;
        (asked, signed_in)
    }

    /// The person says yes, and the browser comes back as it should.
    pub(crate) async fn agree(&self, client: &McpServer) -> BTreeMap<String, String> {
        let (asked, signed_in) = self.sign_in(client, |asked| vec![self.back(asked, "")]).await;
        signed_in.unwrap();
        asked
    }

    /// Where the browser is sent after a yes.
    pub(crate) fn back(&self, asked: &BTreeMap<String, String>, more: &str) -> String {
        let issuer = self.authority.url.trim_end_matches("/mcp");
        format!("{}?code=the-code&state={}&iss={issuer}{more}", asked["redirect_uri"], asked["state"])
    }

    /// No refresh token is taken any more.
    pub(crate) fn refuse_refreshes(&self) {
        "none".clone_into(&mut self.state.lock().unwrap().refresh);
    }

    /// From now on the server names these authorization servers; its own again where nothing is given.
    pub(crate) fn names(&self, authorities: Option<Vec<String>>) {
        self.state.lock().unwrap().named = authorities;
    }

    /// No token is taken any more.
    pub(crate) fn revoke(&self) {
        self.state.lock().unwrap().tokens.clear();
    }

    pub(crate) fn refreshed(&self) -> usize {
        self.state.lock().unwrap().refreshed
    }

    /// The forms that the authorization server was sent for tokens.
    pub(crate) fn token_requests(&self) -> Vec<BTreeMap<String, String>> {
        self.forms("/token")
    }

    /// The forms that were sent there.
    pub(crate) fn forms(&self, target: &str) -> Vec<BTreeMap<String, String>> {
        self.authority.asked().iter().filter(|asked| asked.target == target).map(|asked| form(&asked.text)).collect()
    }
}

async fn visited(url: &str) {
    let url = Url::parse(url).unwrap();
    let host = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
    let mut stream = TcpStream::connect(&host).await.unwrap();
    let target = format!("{}?{}", url.path(), url.query().unwrap_or_default());
    stream.write_all(format!("GET {target} HTTP/1.1\r\nhost: {host}\r\n\r\n").as_bytes()).await.unwrap();
    let _ = stream.read_to_end(&mut Vec::new()).await;
}
