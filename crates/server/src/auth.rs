//! Who may ask for what: one layer around all routes.
//!
//! It makes a `Caller` of each request, or refuses it, before any route sees it; what a route needs stands in one table
//! (`needs.rs`). A route reaches the engine only through `extract::State`, which acts for the caller: what belongs to
//! another is not there for it. Not here: to whom things belong, which is the engine's to keep.

mod accounts;
mod admitted;
mod caller;
mod cookie;
mod first_admin;
mod needs;
mod origin;

use std::sync::Arc;

use axum::extract::{MatchedPath, Request};
use axum::response::{IntoResponse, Redirect, Response};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode, header};
use turnwright_engine::accounts::{CredentialKind, Role, Scope};
use turnwright_host::AddressRange;

pub(crate) use accounts::is_unseen;
pub(crate) use accounts::{Bounds, begin_session, issue_link_within, open_session};
pub use accounts::{LINK_MS, NewCredential, TOKEN_PREFIX, issue, issue_link, new_user};
use accounts::{NotKnown, known};
pub(crate) use admitted::Admitted;
use admitted::Moment;
pub(crate) use caller::{Caller, How};
pub(crate) use cookie::Cookies;
pub use first_admin::first_link;
use needs::{Need, need};
pub(crate) use origin::same_origin;

use crate::apps::{self, Apps};
use crate::error::{ApiError, Challenge};
use crate::forwarded::Client;
use crate::guard;
use crate::openai::error::refusal;
use crate::state::ServerState;

/// Whether whoever comes has to sign in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Auth {
    /// Nobody has to: all who reach the server are the one local user. On loopback addresses alone.
    #[default]
    Local,
    /// With a token, or a session of the browser.
    Required,
}

/// Lets a request through as its caller's, or refuses it.
pub(crate) async fn identify(
    state: &ServerState,
    request: &mut Request,
    next: impl AsyncFnOnce(&mut Request) -> Response,
) -> Response {
    let (mut head, body) = std::mem::take(request).into_parts();
    let moment = Moment::now(state);
    match admit(state, &head).await {
        Ok(caller) => {
            head.extensions.insert(moment.of(caller.clone()));
            head.extensions.insert(caller);
            *request = Request::from_parts(head, body);
            next(request).await
        }
        Err(refused) => told(refused, &head),
    }
}

/// A refusal in the form that whoever asks can read.
pub(crate) fn told(refused: ApiError, request: &Parts) -> Response {
    let path = request.uri.path();
    let is_unknown = refused.status() == StatusCode::UNAUTHORIZED;
    if is_unknown && path == "/" && request.method == Method::GET {
        return Redirect::to("login").into_response();
    }
    let response = refused.into_response();
    if path.starts_with("/v1/") { refusal(response) } else { response }
}

async fn admit(state: &ServerState, request: &Parts) -> Result<Caller, ApiError> {
    let options = state.options();
    let route = request.extensions.get::<MatchedPath>().map(MatchedPath::as_str);
    guard::said_once(&request.headers)?;
    guard::chunked_alone(&request.headers)?;
    // By the name of frames nothing else is answered, and frames by no other: whoever gets into one finds nothing there.
    match (apps::is_for_frames(state.site(), &request.uri, &request.headers), route == Some(apps::ROUTE)) {
        (true, true) => {
            if options.auth == Auth::Local {
                guard::from_here(Client::of(&request.extensions))?;
            }
            return Ok(Caller::nobody());
        }
        (false, false) => {}
        (true, false) | (false, true) => {
            let detail = "this name of the server is for the frames of apps alone, and they are at no other";
            return Err(ApiError::new(StatusCode::NOT_FOUND, "not_found", detail));
        }
    }
    if options.auth == Auth::Local {
        // What is everybody's is no secret of this machine. Browsers name the origin with scripts, and a page without them could not say
        // what is wrong.
        if request.method == Method::GET && matches!(route, Some("/page/{*path}" | "/docs/{file}")) {
            guard::local_name(request)?;
            guard::from_here(Client::of(&request.extensions))?;
            return Ok(Caller::nobody());
        }
        guard::local_only(request, &state.site().allowed_origins)?;
        guard::from_here(Client::of(&request.extensions))?;
        return Ok(Caller::local());
    }
    let need = need(&request.method, route);
    // Who looks after the server may ask how it is by any name; a browser is signed in by ours alone.
    let signs_in = route.is_some_and(|route| route.starts_with("/login") || route == "/logout");
    if let Some(hosts) = &state.site().host
        && (need != Need::Nobody || signs_in)
    {
        guard::named(request, hosts)?;
    }
    let (scope, is_for_admins) = match need {
        Need::Nobody => return Ok(Caller::nobody()),
        Need::Scope(scope) => (scope, false),
        Need::AdminWith(scope) => (scope, true),
    };
    let caller = caller(state, request).await?;
    if is_for_admins && caller.role() != Role::Admin {
        return Err(lacks(&caller, Scope::Admin));
    }
    if caller.may(scope) { Ok(caller) } else { Err(lacks(&caller, scope)) }
}

async fn caller(state: &ServerState, request: &Parts) -> Result<Caller, ApiError> {
    let (method, headers) = (&request.method, &request.headers);
    let client = Client::of(&request.extensions);
    let accounts = state.accounts()?;
    let now_ms = state.engine().clock().now_ms();
    if let Some(token) = bearer(headers) {
        let found = match token {
            Ok(token) => known(&**accounts, token, CredentialKind::Token, now_ms).await?,
            Err(()) => return Err(no_bearer()),
        };
        return found.map_err(|why| unknown(why, "token"));
    }
    if let Some(secret) = Cookies::of(state.site(), client).session(headers) {
        let found = known(&**accounts, secret, CredentialKind::Session, now_ms).await?;
        let caller = found.map_err(|why| unknown(why, "session"))?;
        let is_safe = method == Method::GET || method == Method::HEAD || method == Method::OPTIONS;
        if !is_safe || headers.contains_key(header::ORIGIN) {
            same_origin(state.site(), client, headers)?;
        }
        return Ok(caller);
    }
    let path = &state.site().path;
    let detail = format!("sign in: send a token as `Authorization: Bearer tw_…`, or open {path}/login in a browser");
    let error = ApiError::new(StatusCode::UNAUTHORIZED, "unauthenticated", detail);
    Err(error.with_challenge(Challenge::Token))
}

/// The token of a request; an error where the header is there and holds none.
fn bearer(headers: &HeaderMap) -> Option<Result<&str, ()>> {
    let mut values = headers.get_all(header::AUTHORIZATION).into_iter();
    let value = values.next()?;
    let mut token = || -> Option<&str> {
        if values.next().is_some() {
            return None;
        }
        let (scheme, token) = value.to_str().ok()?.trim().split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    };
    Some(token().ok_or(()))
}

fn no_bearer() -> ApiError {
    let detail = "the Authorization header holds no token; send `Authorization: Bearer tw_…`";
    let error = ApiError::new(StatusCode::UNAUTHORIZED, "invalid_token", detail);
    error.with_challenge(Challenge::Another)
}

fn unknown(why: NotKnown, what: &str) -> ApiError {
    let detail = match why {
        NotKnown::Unknown => format!("this {what} is not known here, or was revoked"),
        NotKnown::Expired => format!("this {what} has expired"),
        NotKnown::Disabled => format!("the user of this {what} may not come in any more"),
    };
    let code = if what == "token" { "invalid_token" } else { "session_over" };
    let error = ApiError::new(StatusCode::UNAUTHORIZED, code, detail);
    error.with_challenge(Challenge::Another)
}

/// The caller is known and may not do this.
fn lacks(caller: &Caller, scope: Scope) -> ApiError {
    not_allowed(caller, scope).with_challenge(Challenge::With(scope))
}

/// What the caller lacks, in words.
pub(crate) fn not_allowed(caller: &Caller, scope: Scope) -> ApiError {
    let detail = match (scope, caller.role()) {
        (Scope::Admin, Role::Member) => "this concerns the whole installation: it needs the role admin".to_owned(),
        _ => format!("this needs the scope `{}`; the token has: {}", scope.as_str(), caller.scopes()),
    };
    ApiError::new(StatusCode::FORBIDDEN, "insufficient_scope", detail)
}

/// The server as the world knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Site {
    /// The authority that requests must name; any where `None`.
    pub host: Option<Hosts>,
    /// Scheme and authority under which browsers know it, where that is configured.
    pub origin: Option<String>,
    /// Whether the server itself speaks TLS.
    pub is_tls: bool,
    /// The path below which browsers find it, such as `/turnwright`; empty at the top.
    pub path: String,
    /// The proxies whose word counts for who asks, by what name and whether over TLS.
    pub trusted_proxies: Vec<AddressRange>,
    /// The origins of other sites whose pages may ask in a browser, in small letters.
    pub allowed_origins: Vec<String>,
    /// Where pages of MCP servers are shown.
    pub apps: Apps,
}

/// The names that a request may call the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hosts {
    /// Those of this machine.
    Loopback,
    /// This authority, or this machine's names.
    Named(Arc<str>),
}

impl Site {
    /// Whether browsers reach it by https alone.
    pub(crate) fn is_https(&self) -> bool {
        self.is_tls || self.origin.as_deref().is_some_and(|origin| origin.starts_with("https://"))
    }
}
