//! Signing in at an identity provider.

use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, StatusCode, Uri, header};
use serde::Deserialize;
use turnwright_engine::StoreError;
use turnwright_engine::accounts::{CredentialKind, Identity, Role, User};
use turnwright_host::{Oidc, OidcError, OidcUser};

use super::super::mcp_servers::encoded;
use super::{back, enter_as, to, told};
use crate::auth::{Cookies, is_unseen, new_user};
use crate::error::ApiError;
use crate::extract::{Search, State};
use crate::guard;
use crate::state::ServerState;

/// How many names are tried for a user whose own is taken.
const MAX_NAMES: u32 = 50;
/// How much of what a provider says of a failure is told, in characters.
const MAX_SAID_CHARS: usize = 300;

/// What a browser is to be sent to the provider with.
#[derive(Debug, Deserialize)]
pub(in crate::routes) struct Leaving {
    #[serde(rename = "return")]
    back: Option<String>,
    /// Whether it was sent to this name of the server already. What a proxy hands on may name another one ever so often.
    #[serde(default)]
    is_moved: bool,
}

/// Sends a browser to the provider, by way of the name that the provider sends it back to.
pub(in crate::routes) async fn leave_for(
    State(state): State,
    Search(leaving): Search<Leaving>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let provider = provider(&state)?;
    let back = back(state.site(), leaving.back.as_deref());
    if !leaving.is_moved
        && let Some(login) = elsewhere(guard::host(&uri, &headers)?, provider.redirect_uri())
    {
        return Ok(to(&format!("{login}/oidc?is_moved=true&return={}", encoded(&back))));
    }
    let begun = match provider.begin(state.engine().clock().now_ms() / 1_000).await {
        Ok(begun) => begun,
        Err(error) => return Ok(failed(&state, &error, Some(&back))),
    };
    // What the browser must come back with goes with it: whoever was sent a link of another's sign-in has no such cookie.
    let back = URL_SAFE_NO_PAD.encode(back);
    let kept = format!("{}.{}.{}.{back}", begun.state, begun.nonce, begun.verifier);
    let mut response = to(&begun.url);
    for cookie in Cookies::of(state.site(), state.client()).begin_sign_in(&headers, &begun.state, &kept) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Where a browser signs in that asked for the server as `asked`, where the provider sends it back to another name: it shows its cookies
/// to the name alone that they are of.
fn elsewhere<'a>(asked: &str, redirect_uri: &'a str) -> Option<&'a str> {
    let (scheme, rest) = redirect_uri.split_once("://")?;
    let named = rest.split('/').next()?;
    let usual = if scheme == "https" { ":443" } else { ":80" };
    let bare = |authority: &'_ str| authority.strip_suffix(usual).unwrap_or(authority).to_ascii_lowercase();
    if bare(asked) == bare(named) { None } else { redirect_uri.strip_suffix("/callback") }
}

/// What a provider sends a browser back with.
#[derive(Debug, Deserialize)]
pub(in crate::routes) struct Back {
    code: Option<String>,
    state: Option<String>,
    iss: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
}

/// Signs in who comes back.
pub(in crate::routes) async fn come_back(
    State(state): State,
    Search(query): Search<Back>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let provider = provider(&state)?;
    let cookies = Cookies::of(state.site(), state.client());
    let again = |why: &str, to: Option<&str>| {
        tracing::warn!(client = %state.client(), why, "a sign-in that came back from the identity provider is refused");
        told(&state, StatusCode::UNAUTHORIZED, Some(why), None, to)
    };
    let begun = query.state.as_deref().unwrap_or_default();
    let kept: Option<Vec<&str>> = cookies.sign_in(&headers, begun).map(|kept| kept.split('.').collect());
    let Some([kept_state, nonce, verifier, back]) = kept.as_deref() else {
        return Ok(again("This sign-in was not begun in this browser, or took too long. Try again.", None));
    };
    let is_other = query.iss.as_deref().is_some_and(|issuer| issuer != provider.issuer());
    if begun != *kept_state || is_other {
        return Ok(again("This sign-in was not begun in this browser. Try again.", None));
    }
    let back = URL_SAFE_NO_PAD.decode(back).ok().and_then(|back| String::from_utf8(back).ok());
    let back = back.as_deref();
    let ended = |mut response: Response| {
        response.headers_mut().extend(cookies.end_sign_in(begun).map(|cookie| (header::SET_COOKIE, cookie)));
        Ok(response)
    };
    let Some(code) = query.code.filter(|_| query.error.is_none()) else {
        return ended(again(&not_signed_in(query.error, query.error_description), back));
    };
    let now_ms = state.engine().clock().now_ms();
    let known = match provider.finish(&code, verifier, nonce, now_ms / 1_000).await {
        Ok(known) => known,
        Err(error) => {
            if let OidcError::NotInGroup { identity, is_admin } = &error {
                put_out(&state, identity, *is_admin).await?;
            }
            return ended(failed(&state, &error, back));
        }
    };
    let user = user(&state, known, now_ms).await?;
    if !user.is_enabled {
        tracing::warn!(user = %user.id, "the user is disabled here");
        return ended(again("You may not come in here any more.", back));
    }
    ended(enter_as(&state, &user, back, now_ms).await?)
}

fn provider(state: &ServerState) -> Result<&Oidc, ApiError> {
    let provider = state.identity().ok_or_else(|| ApiError::not_found("identity provider here"))?;
    Ok(provider)
}

/// The user whom the provider knows so: made where they are new, and with the role that the provider gives.
async fn user(state: &ServerState, known: OidcUser, now_ms: u64) -> Result<User, ApiError> {
    let accounts = state.accounts()?;
    let role = role(known.is_admin);
    if let Some(user) = accounts.user_known_as(&known.identity).await? {
        let Some(role) = role.filter(|role| *role != user.role) else { return Ok(user) };
        accounts.change_role(&user.id, role).await?;
        state.tell_of_revocation();
        return Ok(User { role, ..user });
    }
    let name = called(&known.name);
    for number in 1..=MAX_NAMES {
        let name = if number == 1 { name.clone() } else { format!("{name} {number}") };
        let role = role.unwrap_or(Role::Member);
        let user = new_user(&name, role, Some(known.identity.clone()), now_ms).map_err(ApiError::invalid)?;
        match accounts.add_user(user.clone()).await {
            Ok(()) => return Ok(user),
            // Either the name is another's, or the same person signs in twice at once.
            Err(StoreError::Taken { .. }) => {
                if let Some(user) = accounts.user_known_as(&known.identity).await? {
                    return Ok(user);
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(ApiError::invalid(format!("the name `{name}` is taken too often")))
}

/// Takes from a user who left the group what the provider gave: the role, and the browsers that are signed in.
async fn put_out(state: &ServerState, identity: &Identity, is_admin: Option<bool>) -> Result<(), ApiError> {
    let accounts = state.accounts()?;
    let Some(user) = accounts.user_known_as(identity).await? else { return Ok(()) };
    if let Some(role) = role(is_admin).filter(|role| *role != user.role) {
        accounts.change_role(&user.id, role).await?;
    }
    for session in accounts.credentials(&user.id).await?.iter().filter(|known| known.kind == CredentialKind::Session) {
        match accounts.remove_credential(&session.id).await {
            Ok(()) | Err(StoreError::Missing { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    state.tell_of_revocation();
    Ok(())
}

/// The role that a provider gives, where it decides that.
fn role(is_admin: Option<bool>) -> Option<Role> {
    is_admin.map(|is_admin| if is_admin { Role::Admin } else { Role::Member })
}

/// A name as users here may have it, with room for a number behind it.
fn called(name: &str) -> String {
    let name: String = name.chars().filter(|sign| !is_unseen(*sign)).take(56).collect();
    let mut left = name.trim();
    // What ids begin with may stand before itself, and before a space.
    while let Some(rest) = left.strip_prefix("user_") {
        left = rest.trim();
    }
    if left.is_empty() { "somebody".to_owned() } else { left.to_owned() }
}

/// What whom the provider sent back with nothing is told; the operator is told what the provider says of it, who may have to mend that.
fn not_signed_in(error: Option<String>, description: Option<String>) -> String {
    // Both came by the browser's hands.
    let line = |text: String| text.chars().filter(|c| !c.is_control()).take(MAX_SAID_CHARS).collect::<String>();
    let (error, description) = (error.map(line).unwrap_or_default(), description.map(line).unwrap_or_default());
    tracing::warn!(error, description, "the identity provider sent somebody back without signing them in");
    let is_word = !error.is_empty() && error.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_word {
        format!("The provider did not sign you in ({error}).")
    } else {
        "The provider did not sign you in.".to_owned()
    }
}

/// People are told what they can do about it; the rest is for the operator.
fn failed(state: &ServerState, error: &OidcError, to: Option<&str>) -> Response {
    match error {
        OidcError::NotInGroup { identity, .. } => {
            tracing::warn!(subject = identity.subject, client = %state.client(), %error, "somebody is not signed in");
            told(state, StatusCode::FORBIDDEN, Some(&error.to_string()), None, to)
        }
        OidcError::Provider { .. } => {
            tracing::warn!(%error, "nobody can be signed in at the identity provider");
            told(
                state,
                StatusCode::BAD_GATEWAY,
                Some("The identity provider did not answer as it should. Try again."),
                None,
                to,
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{called, elsewhere};
    use crate::auth::new_user;

    #[test]
    fn whatever_somebody_is_called_elsewhere_is_a_name_here() {
        let long = format!("{} b", "a".repeat(55));
        let table = [
            ("anna", "anna"),
            (" anna\n", "anna"),
            ("an\u{200b}na\u{202e}", "anna"),
            ("user_ bob", "bob"),
            ("user_user_bob", "bob"),
            ("user_ user_bob", "bob"),
            ("user_", "somebody"),
            ("user_\u{a0}user_ ", "somebody"),
            ("\u{0}", "somebody"),
            (&*long, long.strip_suffix(" b").unwrap()),
        ];
        for (name, expected) in table {
            assert_eq!(called(name), expected, "{name:?}");
            assert!(new_user(&called(name), turnwright_engine::accounts::Role::Member, None, 0).is_ok(), "{name:?}");
        }
    }

    #[test]
    fn a_browser_signs_in_at_the_name_that_it_is_sent_back_to() {
        let back = "http://127.0.0.1:8700/tw/login/callback";
        let table = [
            ("127.0.0.1:8700", back, None),
            ("localhost:8700", back, Some("http://127.0.0.1:8700/tw/login")),
            ("[::1]:8700", back, Some("http://127.0.0.1:8700/tw/login")),
            ("127.0.0.1:8701", back, Some("http://127.0.0.1:8700/tw/login")),
            ("TW.example", "https://tw.example:443/login/callback", None),
            ("tw.example:443", "https://tw.example/login/callback", None),
            ("tw.example:80", "http://tw.example/login/callback", None),
            ("tw.example:80", "https://tw.example/login/callback", Some("https://tw.example/login")),
            ("127.0.0.1:8700", "https://tw.example/login/callback", Some("https://tw.example/login")),
        ];
        for (asked, redirect_uri, expected) in table {
            assert_eq!(elsewhere(asked, redirect_uri), expected, "{asked} {redirect_uri}");
        }
    }
}
