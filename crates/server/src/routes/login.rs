//! Signing a browser in and out: pages without script, whose forms come back here.

pub(super) mod identity;

use axum::body::Body;
use axum::extract::Query;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;
use turnwright_engine::StoreError;
use turnwright_engine::accounts::{AccountSecret, CredentialKind, SecretHash, User};

use crate::auth::{Auth, Cookies, How, Site, begin_session, open_session, same_origin};
use crate::error::ApiError;
use crate::extract::{Search, State, StrangersForm};
use crate::html::escaped;
use crate::settings::told_approve;
use crate::state::ServerState;

/// What the forms send.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Form {
    token: Option<String>,
    code: Option<String>,
    #[serde(rename = "return")]
    back: Option<String>,
}

/// The page to sign in at. A link's code is used up by the button that it shows, not by looking at it.
pub(super) async fn page(State(state): State, Search(query): Search<Form>) -> Response {
    if state.options().auth == Auth::Local {
        return to("./");
    }
    let code = query.code.filter(|code| is_plain(code));
    told(&state, StatusCode::OK, None, code.as_deref(), query.back.as_deref())
}

/// Signs a browser in with a token, or with the code of a link.
pub(super) async fn enter(State(state): State, StrangersForm(whole): StrangersForm) -> Result<Response, ApiError> {
    if state.options().auth == Auth::Local {
        return Ok(to("./"));
    }
    same_origin(state.site(), state.client(), &whole.headers)?;
    let form: Form = form(&whole.body)?;
    let again = |why: &str| told(&state, StatusCode::UNAUTHORIZED, Some(why), None, form.back.as_deref());
    let (secret, kind) = match (&form.code, &form.token) {
        (Some(code), _) => (code.trim(), CredentialKind::Link),
        (None, Some(token)) => (token.trim(), CredentialKind::Token),
        (None, None) => return Ok(again("Paste a token to sign in.")),
    };
    let (accounts, now_ms) = (state.accounts()?, state.engine().clock().now_ms());
    let found = accounts
        .credential(&SecretHash::of(secret))
        .await?
        .filter(|(known, user)| known.kind == kind && user.is_enabled && known.expires_at_ms.is_none_or(|end| end > now_ms));
    let Some((known, user)) = found else {
        return Ok(again(match kind {
            CredentialKind::Link => "This link was used before, or its time is over. Ask for another.",
            CredentialKind::Token | CredentialKind::Session => "This token is not known here, or has expired.",
        }));
    };
    match begin_session(&**accounts, &known, &user, now_ms).await {
        Ok(session) => Ok(entered(&state, &user, &session, form.back.as_deref())),
        Err(StoreError::Missing { .. }) => Ok(again("This link was used before. Ask for another.")),
        Err(error) => Err(error.into()),
    }
}

/// Signs a browser in as this user.
async fn enter_as(state: &ServerState, user: &User, to: Option<&str>, now_ms: u64) -> Result<Response, ApiError> {
    let session = open_session(&**state.accounts()?, user, now_ms).await?;
    Ok(entered(state, user, &session, to))
}

/// On to where the browser wanted to go, with its session.
fn entered(state: &ServerState, user: &User, session: &AccountSecret, to: Option<&str>) -> Response {
    tracing::info!(user = %user.id, client = %state.client(), "signed in");
    let mut response = self::to(&back(state.site(), to));
    let cookie = Cookies::of(state.site(), state.client()).set_session(Some(session.expose()));
    response.headers_mut().extend(cookie.map(|cookie| (header::SET_COOKIE, cookie)));
    response
}

/// Ends a browser's session.
pub(super) async fn leave(State(state): State, headers: HeaderMap) -> Result<Response, ApiError> {
    if state.options().auth == Auth::Local {
        return Ok(to("./"));
    }
    same_origin(state.site(), state.client(), &headers)?;
    let cookies = Cookies::of(state.site(), state.client());
    if let Some(secret) = cookies.session(&headers) {
        let accounts = state.accounts()?;
        if let Some((session, _)) = accounts.credential(&SecretHash::of(secret)).await? {
            let removed = accounts.remove_credential(&session.id).await;
            state.tell_of_revocation();
            match removed {
                Ok(()) | Err(StoreError::Missing { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    let mut response = to("login");
    response.headers_mut().extend(cookies.set_session(None).map(|cookie| (header::SET_COOKIE, cookie)));
    Ok(response)
}

/// Who asks, as the API tells it.
#[utoipa::path(
    get,
    path = "/me",
    operation_id = "getCaller",
    tag = "users",
    responses((status = 200, description = "Who asks, and what they may do.", body = turnwright_api::Caller), crate::openapi::Refused)
)]
pub(super) async fn me(State(state): State) -> Response {
    let caller = state.caller();
    super::json(
        StatusCode::OK,
        turnwright_api::Caller {
            id: caller.user().to_string(),
            name: caller.name().to_owned(),
            role: caller.role().as_str().to_owned(),
            scopes: caller.scopes().words().map(str::to_owned).collect(),
            how: match caller.how() {
                How::Nobody => "nobody",
                How::Local => "local",
                How::Token(_) => "token",
                How::Session(_) => "session",
            }
            .to_owned(),
            token_id: match caller.how() {
                How::Nobody | How::Local => None,
                How::Token(token) => Some(token.id.clone()),
                How::Session(session) => session.parent.clone(),
            },
            approve: told_approve(state.engine().defaults().approve),
        },
    )
}

/// The fields of a form.
pub(super) fn form<T: for<'de> Deserialize<'de>>(body: &Bytes) -> Result<T, ApiError> {
    let uri = std::str::from_utf8(body).ok().and_then(|text| format!("/?{text}").parse().ok());
    let unread = || ApiError::bad_request("invalid_form", "the form is not understood");
    Query::try_from_uri(&uri.ok_or_else(unread)?).map(|Query(form)| form).map_err(|_| unread())
}

/// Where to go once signed in: a path of this site, or the page.
pub(super) fn back(site: &Site, path: Option<&str>) -> String {
    let is_ours = |path: &&str| {
        path.strip_prefix(site.path.as_str()).is_some_and(|below| below.starts_with('/'))
            && !path.contains("/..")
            && !path.starts_with("//")
            && !path.contains('\\')
            && path.bytes().all(|byte| byte.is_ascii_graphic())
    };
    path.filter(is_ours).map_or_else(|| format!("{}/", site.path), str::to_owned)
}

/// On to another address, by looking at it.
pub(super) fn to(address: &str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let address = HeaderValue::from_str(address).unwrap_or_else(|_| HeaderValue::from_static("./"));
    response.headers_mut().insert(header::LOCATION, address);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn is_plain(text: &str) -> bool {
    text.len() <= 200 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The page, which runs nothing and loads nothing.
pub(super) fn told(
    state: &ServerState,
    status: StatusCode,
    why: Option<&str>,
    code: Option<&str>,
    to: Option<&str>,
) -> Response {
    let alert = why.map(|why| format!("<p role=\"alert\">{}</p>", escaped(why))).unwrap_or_default();
    let back = escaped(&back(state.site(), to));
    // The page is shown at deeper addresses too.
    let path = escaped(&state.site().path);
    let fields = match code {
        Some(code) => format!("<input type=\"hidden\" name=\"code\" value=\"{code}\"><button>Sign in here</button>"),
        None => "<label>Token<input type=\"password\" name=\"token\" autocomplete=\"current-password\" required autofocus \
                 placeholder=\"tw_…\"></label><button>Sign in</button>"
            .to_owned(),
    };
    let elsewhere = match state.identity() {
        Some(provider) => format!(
            "<form method=\"get\" action=\"{path}/login/oidc\"><input type=\"hidden\" name=\"return\" value=\"{back}\">\
             <button>Continue with {}</button></form>",
            escaped(provider.name())
        ),
        None => String::new(),
    };
    let html = include_str!("login.html")
        .replace("<!--path-->", &path)
        .replace("<!--alert-->", &alert)
        .replace("<!--fields-->", &fields)
        .replace("<!--return-->", &back)
        .replace("<!--elsewhere-->", &elsewhere);
    let policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'";
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::CACHE_CONTROL, "no-store"),
        // With `no-referrer` browsers send the form with the origin `null`, which is refused.
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (status, headers, html).into_response()
}
