//! Requests that make something and may be sent again: a key stands for one request, which is carried out once, also where
//! the server starts anew in between. What is made in the journal has its keys there; this is for everything else.

use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use turnwright_engine::{Document, EngineError};

use crate::error::ApiError;
use crate::extract::Whole;
use crate::routes::asked;
use crate::state::ServerState;

/// The kind of the documents that remember them.
const KIND: &str = "idempotent_request";

/// What is remembered of an answer.
#[derive(Debug, Serialize, Deserialize)]
struct Remembered {
    fingerprint: String,
    /// What was answered; nothing, where it held a secret that nobody but its reader may have.
    answer: Option<Value>,
    /// What was made, in words.
    made: String,
}

/// What may be remembered of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Keeps {
    /// All of it.
    Answer,
    /// That it was given: it holds a secret. What was made is named.
    Secret(fn(&Value) -> String),
}

/// Carries `make` out, or gives the answer that the same request had.
///
/// # Errors
/// Those of `make`; 422 where the key stands for another request; 409 where the answer held a secret.
pub(crate) async fn once<T: Serialize>(
    state: &ServerState,
    whole: &Whole,
    route: &str,
    keeps: Keeps,
    make: impl Future<Output = Result<T, ApiError>>,
) -> Result<Value, ApiError> {
    let written = |made: T| serde_json::to_value(made).map_err(|error| ApiError::invalid(error.to_string()));
    let Some((key, fingerprint)) = asked(whole)? else { return written(make.await?) };
    let documents = state.documents()?.clone();
    let key = format!("{}\t{route} {key}", state.caller().user());
    // Two that come at once are one after the other.
    let _one_at_a_time = state.changing_settings().lock().await;
    if let Some(found) = documents.document(KIND, &key).await? {
        let known: Remembered = serde_json::from_str(&found.body).map_err(|error| {
            let reason = error.to_string();
            turnwright_engine::StoreError::Damaged { what: "the answer of an idempotency key".to_owned(), reason }
        })?;
        if known.fingerprint != fingerprint {
            let key = key.rsplit_once(' ').map_or("", |(_, key)| key).to_owned();
            return Err(EngineError::KeyReused { key }.into());
        }
        return known.answer.ok_or_else(|| {
            let detail = format!("{} was made by this request before; its secret was shown once and is not kept", known.made);
            ApiError::new(StatusCode::CONFLICT, "already_made", detail)
        });
    }
    let answer = written(make.await?)?;
    let (kept, what) = match keeps {
        Keeps::Answer => (Some(answer.clone()), String::new()),
        Keeps::Secret(named) => (None, named(&answer)),
    };
    let body = serde_json::to_string(&Remembered { fingerprint, answer: kept, made: what }).unwrap_or_default();
    documents.put_document(KIND, Document { key, body }).await?;
    Ok(answer)
}
