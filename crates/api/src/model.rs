//! Models.

use serde::{Deserialize, Serialize};

/// A model that can be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// `PROVIDER/MODEL`, as requests name it.
    pub id: String,
    /// The provider.
    pub provider: String,
    /// The provider's own name for the model.
    pub model: String,
    /// What it is, for people; null where nobody says.
    pub description: Option<String>,
    /// Whether turns ask it where nobody chooses another.
    pub is_default: bool,
}

/// All models, and the providers that did not tell theirs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Models {
    /// The models, in configuration order.
    pub data: Vec<Model>,
    /// Always null: the list is whole.
    pub next_cursor: Option<String>,
    /// Always false: the list is whole.
    pub has_more: bool,
    /// The providers whose models are missing.
    pub unavailable: Vec<UnavailableProvider>,
}

/// A provider that did not tell its models.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnavailableProvider {
    /// The provider.
    pub provider: String,
    /// Why, for people.
    pub message: String,
}
