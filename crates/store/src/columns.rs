//! What both engines write into their columns in the same way, and make of what they read there.

use turnwright_core::Seq;
use turnwright_engine::accounts::Credential;
use turnwright_engine::{KeptBy, StoreError};

/// The integers of both are signed; what does not fit is further than any journal or clock goes.
pub(crate) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// That an append came too late, for an engine that said where the next one goes.
pub(crate) fn conflict(next: i64) -> StoreError {
    StoreError::Conflict { next: u64::try_from(next).ok().and_then(Seq::new).unwrap_or(Seq::FIRST) }
}

/// The last place of a journal whose next one is this; `None` where there is none.
pub(crate) fn before(next: i64) -> Option<Seq> {
    Seq::new(u64::try_from(next).ok()?.checked_sub(1)?)
}

/// What has to be there where a credential is added, in words.
pub(crate) fn needed(credential: &Credential) -> String {
    match &credential.parent {
        None => format!("user `{}`", credential.user),
        Some(parent) => format!("user `{}` with a credential `{parent}`", credential.user),
    }
}

pub(crate) fn kept_by_text(kept_by: KeptBy) -> &'static str {
    match kept_by {
        KeptBy::Servers => "servers",
        KeptBy::Chat => "chat",
    }
}

/// What [`kept_by_text`] wrote; `None` for anything else.
pub(crate) fn kept_by(text: &str) -> Option<KeptBy> {
    match text {
        "servers" => Some(KeptBy::Servers),
        "chat" => Some(KeptBy::Chat),
        _ => None,
    }
}

/// A key for an artifact that no other process takes: they are made before anything is written, by whoever asks.
pub(crate) fn new_artifact_key() -> Result<i64, StoreError> {
    // Below 2^31, so that it and the number of a piece are one integer of a database.
    Ok(i64::from(u32::from_be_bytes(random()?) >> 1))
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N], StoreError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| StoreError::Unusable { reason: format!("the system has no random numbers: {error}") })?;
    Ok(bytes)
}
