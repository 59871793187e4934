//! What routes take out of a request, with problem documents where it does not fit.

use std::str::FromStr;

use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, header};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use turnwright_api::List;
use turnwright_core::{ConversationId, IdError};

use crate::auth::{Admitted, Caller};
use crate::body;
use crate::door::Connection;
use crate::error::ApiError;
use crate::forwarded::Client;
use crate::state::ServerState;
use crate::tag::hash;

/// The server as the caller of a request may use it: its engine acts for the caller.
#[derive(Debug)]
pub(crate) struct State(pub(crate) ServerState);

impl FromRequestParts<ServerState> for State {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &ServerState) -> Result<Self, ApiError> {
        // Without the layer that makes callers nobody gets in.
        let caller = parts.extensions.get::<Caller>().cloned().unwrap_or_else(Caller::nobody);
        let door = Connection::door(state.options().auth, &parts.extensions);
        let place = parts.extensions.get().cloned();
        Ok(Self(state.acting_for(caller, Client::of(&parts.extensions), door).in_place(place)))
    }
}

/// The conversation that a path names.
#[derive(Debug)]
pub(crate) struct InConversation(pub(crate) ConversationId);

impl FromRequestParts<ServerState> for InConversation {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &ServerState) -> Result<Self, ApiError> {
        #[derive(Deserialize)]
        struct Named {
            id: String,
        }
        let Params(named) = Params::<Named>::from_request_parts(parts, state).await?;
        Ok(Self(named.id.parse()?))
    }
}

/// Parts of the path, by name.
#[derive(Debug)]
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<ServerState> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &ServerState) -> Result<Self, ApiError> {
        let found = Path::<T>::from_request_parts(parts, state).await;
        found.map(|Path(found)| Self(found)).map_err(|error| ApiError::bad_request("invalid_path", error.body_text()))
    }
}

/// The query.
#[derive(Debug)]
pub(crate) struct Search<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<ServerState> for Search<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &ServerState) -> Result<Self, ApiError> {
        // What is read of it would be something else than was meant.
        if let Some(query) = parts.uri.query().filter(|query| !is_text(query)) {
            let shown: String = query.chars().take(80).collect();
            let detail = format!("`{shown}` is not UTF-8 once its `%` signs are taken for bytes; a `%` itself is `%25`");
            return Err(ApiError::bad_request("invalid_query", detail));
        }
        let found = Query::<T>::from_request_parts(parts, state).await;
        found.map(|Query(found)| Self(found)).map_err(|error| {
            let told = error.body_text();
            let told = told.strip_prefix("Failed to deserialize query string: ").unwrap_or(&told);
            let name = told.strip_prefix("duplicate field ");
            let detail =
                name.map_or_else(|| format!("the query is wrong: {told}"), |name| format!("{name} stands twice in the query"));
            ApiError::bad_request("invalid_query", detail)
        })
    }
}

/// Whether a query is UTF-8 once what it writes with `%` is taken for bytes.
fn is_text(query: &str) -> bool {
    let mut parts = query.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let written = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(written.unwrap_or(b'%'));
        bytes.extend(part.bytes().skip(if written.is_some() { 2 } else { 0 }));
    }
    std::str::from_utf8(&bytes).is_ok()
}

/// Headers and whole body.
#[derive(Debug, Clone)]
pub(crate) struct Whole {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Whole {
    /// Whether there is no body.
    pub(crate) fn is_empty(&self) -> bool {
        self.body.iter().all(u8::is_ascii_whitespace)
    }

    /// The body as JSON.
    pub(crate) fn json<'a, T: Deserialize<'a>>(&'a self) -> Result<T, ApiError> {
        body::json(&self.headers, &self.body)
    }

    /// Whether the client asks for an event stream.
    pub(crate) fn accepts_event_stream(&self) -> bool {
        let accepted = self.headers.get_all(header::ACCEPT).into_iter().filter_map(|value| value.to_str().ok());
        accepted.flat_map(|value| value.split(',')).any(|kind| {
            let mut parts = kind.split(';').map(str::trim);
            let is_it = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("text/event-stream"));
            // A weight of nothing says that it is not wanted (RFC 9110, section 12.4.2).
            is_it
                && !parts
                    .filter_map(|part| part.split_once('='))
                    .any(|(name, weight)| name.trim().eq_ignore_ascii_case("q") && weight.trim().parse() == Ok(0.0_f32))
        })
    }
}

impl FromRequest<ServerState> for Whole {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &ServerState) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let body = body::read(&parts.headers, body, state.options()).await?;
        Admitted::confirmed(state, &parts.extensions).await?;
        Ok(Self { headers: parts.headers, body })
    }
}

/// Headers and whole body of a form that whoever comes may send. Nobody is known by then, so it is as short as such a form is: what
/// many strangers send at once would be held in memory.
#[derive(Debug)]
pub(crate) struct StrangersForm(pub(crate) Whole);

impl StrangersForm {
    /// How large it may be. A secret and an address to come back to are far shorter.
    const MAX_BYTES: usize = 16 * 1024;
}

impl FromRequest<ServerState> for StrangersForm {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &ServerState) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let options = state.options();
        let limit_bytes = options.body_limit_bytes.min(Self::MAX_BYTES);
        let body = body::read_at_most(limit_bytes, &parts.headers, body, options).await?;
        Ok(Self(Whole { headers: parts.headers, body }))
    }
}

/// A part of the path as an id.
pub(crate) fn id<T: FromStr<Err = IdError>>(text: &str) -> Result<T, ApiError> {
    Ok(text.parse()?)
}

/// A cursor that no page of the list gave.
pub(crate) fn unknown_cursor(cursor: &str) -> ApiError {
    let shown: String = cursor.chars().take(80).collect();
    let detail =
        format!("{shown:?} is no cursor of this list; give the `next_cursor` of the page before as it came, or none to begin");
    ApiError::bad_request("invalid_cursor", detail)
}

/// Of a list that is told whole: no cursor leads into it.
#[derive(Debug)]
pub(crate) struct Undivided;

impl FromRequestParts<ServerState> for Undivided {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &ServerState) -> Result<Self, ApiError> {
        let Search(page) = Search::<PageQuery>::from_request_parts(parts, state).await?;
        match page.cursor {
            None => Ok(Self),
            Some(cursor) => {
                let shown: String = cursor.chars().take(80).collect();
                let detail = format!("{shown:?} leads nowhere: this list is told whole; leave `cursor` out");
                Err(ApiError::bad_request("invalid_cursor", detail))
            }
        }
    }
}

/// Which part of a list is asked for.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// How many things a page holds at most, 1 to 100; 100 where absent.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 100)]
    limit: Option<String>,
    /// The `next_cursor` of the page before, as it came. The list goes on behind it, whatever became of what it was made from.
    #[serde(alias = "after")]
    #[param(min_length = 1)]
    pub(crate) cursor: Option<String>,
}

impl PageQuery {
    /// How many things a page holds at most.
    pub(crate) const MAX: usize = 100;

    /// How many things are asked for.
    pub(crate) fn limit(&self) -> Result<usize, ApiError> {
        let Some(limit) = &self.limit else { return Ok(Self::MAX) };
        limit.parse().ok().filter(|limit| (1..=Self::MAX).contains(limit)).ok_or_else(|| {
            let shown: String = limit.chars().take(40).collect();
            ApiError::bad_request("invalid_query", format!("limit is {shown:?}, it must be between 1 and {}", Self::MAX))
        })
    }

    /// The page that is asked for of the list with this name, which is there as a whole, in the order of `place`s. It goes on behind
    /// the last place of the page before, whether or not what was there is there still.
    ///
    /// Each place is that of one thing, and stays that for as long as the thing is what it is.
    ///
    /// # Errors
    /// 400 where the limit is none, or the cursor is none that a page of this list gave.
    pub(crate) fn part<T>(&self, list: &str, mut all: Vec<T>, place: impl Fn(&T) -> String) -> Result<List<T>, ApiError> {
        let limit = self.limit()?;
        if let Some(cursor) = &self.cursor {
            let after = numbered(&place_of(list, cursor).ok_or_else(|| unknown_cursor(cursor))?);
            all.retain(|one| numbered(&place(one)) > after);
        }
        all.sort_by_cached_key(|one| numbered(&place(one)));
        all.truncate(limit.saturating_add(1));
        Ok(List::page(all, limit, |one| cursor(list, &place(one))))
    }
}

/// A place in a list as a cursor, with a check of both before it: the list cannot tell whether it ever had what was there.
fn cursor(list: &str, place: &str) -> String {
    format!("{}.{}", hash(&(list, place)), URL_SAFE_NO_PAD.encode(place))
}

/// The place that a cursor of this list is.
fn place_of(list: &str, text: &str) -> Option<String> {
    let place = String::from_utf8(URL_SAFE_NO_PAD.decode(text.split_once('.')?.1).ok()?).ok()?;
    (cursor(list, &place) == text).then_some(place)
}

/// A number as a part of places that come in falling order.
pub(crate) fn falling(number: u64) -> u64 {
    u64::MAX - number
}

/// A name with its numbers as such, so that the tenth comes after the second.
fn numbered(name: &str) -> Vec<(u64, String)> {
    let is_digit = |sign: char| sign.is_ascii_digit();
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let (word, after) = rest.split_at(rest.find(is_digit).unwrap_or(rest.len()));
        let (number, after) = after.split_at(after.find(|sign| !is_digit(sign)).unwrap_or(after.len()));
        parts.push((0, word.to_owned()));
        parts.push((number.parse().unwrap_or(0), number.to_owned()));
        rest = after;
    }
    parts
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderValue, header};

    use super::{PageQuery, Whole, falling, is_text, numbered};

    fn query(limit: &str, cursor: Option<&str>) -> PageQuery {
        PageQuery { limit: Some(limit.to_owned()), cursor: cursor.map(str::to_owned) }
    }

    #[test]
    fn a_query_is_text_or_it_is_none() {
        for (query, expected) in [
            ("", true),
            ("q=caf%C3%A9&limit=2", true),
            ("q=%", true),
            ("q=100%25+%zz%é", true),
            ("q=%ff", false),
            ("q=%C3&a=%A9", false),
        ] {
            assert_eq!(is_text(query), expected, "{query}");
        }
    }

    #[test]
    fn names_are_in_the_order_of_their_numbers() {
        let mut names = ["c/call_10_0", "c/call_2_11", "c/call_2_2", "b/call_30_0", "c"];
        names.sort_by_key(|name| numbered(name));
        assert_eq!(names, ["b/call_30_0", "c", "c/call_2_2", "c/call_2_11", "c/call_10_0"]);
    }

    #[test]
    fn a_list_that_changes_goes_on_behind_what_is_gone() {
        let name = |name: &&str| (*name).to_owned();
        let first = query("2", None).part("letters", vec!["a3", "a1", "a20"], name).unwrap();
        assert_eq!((first.data, first.has_more), (vec!["a1", "a3"], true));
        let cursor = first.next_cursor.unwrap();
        let next = query("2", Some(&cursor)).part("letters", vec!["a20", "a1"], name).unwrap();
        assert_eq!((next.data, next.next_cursor, next.has_more), (vec!["a20"], None, false));
        let (check, _) = cursor.split_once('.').unwrap();
        let bogus = ["", "bogus", "a3", ".a3", &cursor.replace('.', ""), &format!("{check}.YTQ"), &format!("{cursor}0")];
        for (list, bogus) in bogus.map(|bogus| ("letters", bogus)).into_iter().chain([("others", &*cursor)]) {
            let refused = query("2", Some(bogus)).part(list, vec!["a20", "a1"], name).unwrap_err();
            assert_eq!((refused.status().as_u16(), refused.code()), (400, "invalid_cursor"), "{list} {bogus}");
        }
    }

    #[test]
    fn a_cursor_stands_in_an_address_as_it_is_whatever_the_place_holds() {
        let place = |place: &&str| (*place).to_owned();
        let first = query("1", None).part("users", vec!["a &/#é 1", "b"], place).unwrap();
        let cursor = first.next_cursor.unwrap();
        assert!(cursor.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)), "{cursor}");
        assert_eq!(query("1", Some(&cursor)).part("users", vec!["a &/#é 1", "b"], place).unwrap().data, ["b"]);
    }

    #[test]
    fn falling_numbers_come_from_the_greatest_to_the_least() {
        let mut places = [7, 0, u64::MAX, 10].map(|number| (format!("{}_x", falling(number)), number));
        places.sort_by_key(|(place, _)| numbered(place));
        assert_eq!(places.map(|(_, number)| number), [u64::MAX, 10, 7, 0]);
    }

    #[test]
    fn a_stream_of_weight_nothing_is_not_asked_for() {
        let table = [
            ("text/event-stream", true),
            ("application/json, TEXT/event-stream;q=0.1", true),
            ("text/event-stream;charset=utf-8", true),
            ("text/event-stream;q=0, application/json", false),
            ("application/json, text/event-stream; Q = 0.000", false),
            ("text/*, */*", false),
        ];
        for (accept, expected) in table {
            let headers = [(header::ACCEPT, HeaderValue::from_static(accept))].into_iter().collect();
            assert_eq!(Whole { headers, body: Bytes::new() }.accepts_event_stream(), expected, "{accept}");
        }
    }
}
