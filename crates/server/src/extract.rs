//! What routes take out of a request, with problem documents where it does not fit.

use std::str::FromStr;

use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, header};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use turnwright_core::{ConversationId, IdError};

use crate::auth::Caller;
use crate::body;
use crate::error::ApiError;
use crate::forwarded::Client;
use crate::state::ServerState;

/// The server as the caller of a request may use it: its engine acts for the caller.
#[derive(Debug)]
pub(crate) struct State(pub(crate) ServerState);

impl FromRequestParts<ServerState> for State {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &ServerState) -> Result<Self, ApiError> {
        // Without the layer that makes callers nobody gets in.
        let caller = parts.extensions.get::<Caller>().cloned().unwrap_or_else(Caller::nobody);
        Ok(Self(state.acting_for(caller, Client::of(&parts.extensions))))
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
        let found = Query::<T>::from_request_parts(parts, state).await;
        found.map(|Query(found)| Self(found)).map_err(|error| ApiError::bad_request("invalid_query", error.body_text()))
    }
}

/// Headers and whole body.
#[derive(Debug)]
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
        accepted
            .flat_map(|value| value.split(','))
            .any(|kind| kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream")))
    }
}

impl FromRequest<ServerState> for Whole {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &ServerState) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let body = body::read(&parts.headers, body, state.options().body_limit_bytes).await?;
        Ok(Self { headers: parts.headers, body })
    }
}

/// A part of the path as an id.
pub(crate) fn id<T: FromStr<Err = IdError>>(text: &str) -> Result<T, ApiError> {
    Ok(text.parse()?)
}

/// Which part of a list is asked for.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// How many things a page holds at most, 1 to 100; 100 where absent.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 100)]
    limit: Option<String>,
    /// The `next_cursor` of the page before.
    #[serde(alias = "after")]
    #[param(min_length = 1)]
    pub(crate) cursor: Option<String>,
    /// Words to search for, where the list can be searched.
    pub(crate) q: Option<String>,
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
}
