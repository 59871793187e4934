//! Whether a caller still is who they were: a request counts once all of it has come, and its body may take hours.

use std::time::Duration;

use http::{Extensions, StatusCode};
use tokio::time::Instant;

use super::accounts::counting;
use super::caller::{Caller, How};
use super::unknown;
use crate::error::ApiError;
use crate::state::ServerState;

/// For how long it holds what a caller was when the head of the request came: other processes revoke too, and tell nobody.
const HOLDS_FOR: Duration = Duration::from_secs(1);

/// A caller, as they were when the head of their request came.
#[derive(Debug, Clone)]
pub(crate) struct Admitted {
    caller: Caller,
    moment: Moment,
}

/// When a caller was looked up, from before that on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    revocations: u64,
    at: Instant,
}

impl Moment {
    pub(super) fn now(state: &ServerState) -> Self {
        Self { revocations: state.revocation_count(), at: Instant::now() }
    }

    /// Nothing can have changed since, as far as this process knows, and that was a moment ago.
    fn holds(self, state: &ServerState) -> bool {
        self.revocations == state.revocation_count() && self.at.elapsed() < HOLDS_FOR
    }

    pub(super) fn of(self, caller: Caller) -> Admitted {
        Admitted { caller, moment: self }
    }
}

impl Admitted {
    /// Whether the caller of a request may still do what the head of it was let in for: to be asked when its body was read, before
    /// anything is done. Looks nothing up where the body came at once.
    ///
    /// # Errors
    /// 401 where they may not come in any more, 403 where they may do something else than before, and those of the store.
    pub(crate) async fn confirmed(state: &ServerState, request: &Extensions) -> Result<(), ApiError> {
        match request.get::<Self>() {
            Some(admitted) => admitted.confirm(state).await,
            None => Ok(()),
        }
    }

    async fn confirm(&self, state: &ServerState) -> Result<(), ApiError> {
        let (shown, what) = match self.caller.how() {
            How::Nobody | How::Local => return Ok(()),
            How::Token(shown) => (shown, "token"),
            How::Session(shown) => (shown, "session"),
        };
        if self.moment.holds(state) {
            return Ok(());
        }
        let found = state.accounts()?.credential(&shown.hash).await?;
        let (credential, user) =
            counting(found, shown.kind, state.engine().clock().now_ms()).map_err(|why| unknown(why, what))?;
        let now = Caller::known(user, credential);
        if (now.role(), now.scopes()) == (self.caller.role(), self.caller.scopes()) {
            return Ok(());
        }
        let detail = "what you may do was changed while this request came; nothing was done, send it again";
        Err(ApiError::new(StatusCode::FORBIDDEN, "insufficient_scope", detail))
    }
}
