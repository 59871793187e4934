//! The list of models.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// All models.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OpenAiModels {
    /// `list`.
    pub object: String,
    /// The models.
    pub data: Vec<OpenAiModel>,
}

/// A model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OpenAiModel {
    /// `PROVIDER/MODEL`.
    pub id: String,
    /// `model`.
    pub object: String,
    /// When it was made, in seconds since 1970 UTC; 0, since nobody says.
    pub created: u64,
    /// The provider's name.
    pub owned_by: String,
}
