//! Files that people bring.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A stored file. A message names it by a block `{type: "resource_link", uri: "/api/v1/artifacts/ID", name}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Artifact {
    /// Its name among all. The same file with the same name has the same id.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// What it is, as its bytes say.
    pub media_type: String,
    /// How large it is, in bytes.
    pub bytes: u64,
    /// When it was stored, the last time.
    pub created_at: String,
}
