//! What a stream needs besides what it tells: a place among the open ones, and a caller who may still come in.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use futures_util::StreamExt;
use http::StatusCode;
use tokio::sync::watch;
use turnwright_engine::accounts::{Accounts, Credential};
use turnwright_engine::{Engine, Full, Slot};

use crate::auth::How;
use crate::entrance::Place;
use crate::error::ApiError;
use crate::state::ServerState;

/// How often it is looked whether another process has revoked what a stream was opened with.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// The place of one stream. Dropping it makes room for another.
pub(crate) struct OpenStream {
    /// `None` for an answer that comes as events.
    _slot: Option<Slot>,
    /// Where its request came in.
    place: Option<Place>,
    /// Ready once the caller may not come in any more; `None` where nobody has to sign in.
    until_revoked: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl std::fmt::Debug for OpenStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenStream").finish_non_exhaustive()
    }
}

impl OpenStream {
    /// A place for one more stream of the caller: to be taken before anything is stored for it.
    ///
    /// # Errors
    /// 429 or 503, where there is no room.
    pub(crate) fn of(state: &ServerState) -> Result<Self, ApiError> {
        let user = state.caller().user();
        let elsewhere = state.engine().streams_elsewhere(user);
        let slot = state.streams().try_enter_beside(user, elsewhere).map_err(|full| match full {
            Full::ForAll { most } => {
                let what = format!("{most} streams are open here, which is the limit; nothing was stored, try again later");
                ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_streams", what).worth_repeating_in(5)
            }
            Full::ForUser { most } => {
                let what = format!("you have {most} streams open, which is the limit; nothing was stored, close one of them");
                ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_user_streams", what).worth_repeating_in(5)
            }
        })?;
        Ok(Self { _slot: Some(slot), ..Self::of_answer(state)? })
    }

    /// The same for an answer that comes as events up to its end, which takes no place.
    ///
    /// # Errors
    /// 500, where nobody can sign in here.
    pub(crate) fn of_answer(state: &ServerState) -> Result<Self, ApiError> {
        let until_revoked = match state.caller().how() {
            How::Nobody | How::Local => None,
            How::Token(shown) | How::Session(shown) => {
                let (accounts, shown) = (state.accounts()?.clone(), shown.clone());
                let looking = until_revoked(accounts, shown, state.engine().clone(), state.revocations());
                Some(Box::pin(looking) as Pin<Box<dyn Future<Output = ()> + Send>>)
            }
        };
        Ok(Self { _slot: None, place: state.place().cloned(), until_revoked })
    }

    /// `events` as long as the caller may come in.
    pub(crate) fn around(mut self, events: Body) -> Body {
        let until = std::future::poll_fn(move |context| self.poll_revoked(context));
        Body::from_stream(events.into_data_stream().take_until(until))
    }

    /// What it tells is waited for: the next requests may come in.
    pub(crate) fn begin(&mut self) {
        if let Some(place) = self.place.take() {
            place.leave();
        }
    }

    /// Ready once nothing more may be told.
    pub(crate) fn poll_revoked(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.until_revoked {
            Some(revoked) => {
                let ready = revoked.as_mut().poll(context);
                if ready.is_ready() {
                    self.until_revoked = None;
                }
                ready
            }
            None => Poll::Pending,
        }
    }
}

/// Returns once a credential counts no more.
async fn until_revoked(
    accounts: Arc<dyn Accounts>,
    shown: Arc<Credential>,
    engine: Engine,
    mut revocations: watch::Receiver<u64>,
) {
    loop {
        let look = tokio::time::timeout(LOOK_EVERY, revocations.changed()).await;
        if let Ok(Err(_gone)) = look {
            return;
        }
        let now_ms = engine.clock().now_ms();
        match accounts.credential(&shown.hash).await {
            Ok(Some((known, user))) if user.is_enabled && known.expires_at_ms.is_none_or(|end| end > now_ms) => {}
            Ok(_) => return,
            Err(error) => tracing::warn!(%error, "cannot see whether a stream's caller may still come in"),
        }
    }
}
