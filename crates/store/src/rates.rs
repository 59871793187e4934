//! What both engines store of what may happen only so often: a document of its own for each name.

use turnwright_engine::StoreError;
use turnwright_engine::rates::Counted;

/// What was counted. A form of another version is not understood: it is counted anew.
pub(crate) fn counted(body: Option<&str>) -> Counted {
    body.and_then(|body| serde_json::from_str(body).ok()).unwrap_or_default()
}

/// The stored form.
pub(crate) fn text(counted: &Counted) -> Result<String, StoreError> {
    serde_json::to_string(counted).map_err(|error| StoreError::Damaged { what: "a rate".to_owned(), reason: error.to_string() })
}
