//! What can go wrong with a model provider, as it is stored and shown.

use serde::{Deserialize, Serialize};

/// A failed model call. Holds no secret: never a key, a signature or a header.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ProviderFailure {
    /// What kind of failure.
    pub kind: ProviderFailureKind,
    /// The HTTP status, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What the provider said, or what we saw, for people.
    pub message: String,
    /// The provider's own code, such as `insufficient_quota`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The provider's name for the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// How long the provider asks us to wait, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// The normalized kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderFailureKind {
    /// The key is missing or wrong.
    Auth,
    /// The key may not do this.
    Permission,
    /// No credit or quota left; waiting does not help.
    Quota,
    /// Too many requests; waiting helps.
    RateLimit,
    /// The provider is overloaded.
    Overloaded,
    /// The provider failed.
    Server,
    /// The provider did not answer in time.
    Timeout,
    /// No such model or address.
    NotFound,
    /// The request is too large in bytes.
    TooLarge,
    /// The prompt does not fit the model's context window.
    ContextLength,
    /// The provider withheld the answer.
    ContentFilter,
    /// The provider refuses the request as it is.
    InvalidRequest,
    /// The provider could not be reached.
    Connect,
    /// The answer ended before its end.
    CutOff,
    /// The answer is not what the protocol says: HTML, an unknown content type, an event over the limit.
    Malformed,
    /// The answer reached one of our limits.
    Limit,
    /// The provider or model is not configured, or its dialect is not there.
    Unavailable,
}

impl ProviderFailureKind {
    /// The word used in JSON, such as `rate_limit`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Permission => "permission",
            Self::Quota => "quota",
            Self::RateLimit => "rate_limit",
            Self::Overloaded => "overloaded",
            Self::Server => "server",
            Self::Timeout => "timeout",
            Self::NotFound => "not_found",
            Self::TooLarge => "too_large",
            Self::ContextLength => "context_length",
            Self::ContentFilter => "content_filter",
            Self::InvalidRequest => "invalid_request",
            Self::Connect => "connect",
            Self::CutOff => "cut_off",
            Self::Malformed => "malformed",
            Self::Limit => "limit",
            Self::Unavailable => "unavailable",
        }
    }
}

impl ProviderFailure {
    /// A failure of this kind with nothing else known.
    pub fn new(kind: ProviderFailureKind, message: impl Into<String>) -> Self {
        Self { kind, status: None, message: message.into(), code: None, request_id: None, retry_after_ms: None }
    }

    /// Whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        use ProviderFailureKind as K;
        match self.kind {
            K::RateLimit | K::Overloaded | K::Server | K::Timeout | K::Connect | K::CutOff => true,
            K::Auth
            | K::Permission
            | K::Quota
            | K::NotFound
            | K::TooLarge
            | K::ContextLength
            | K::ContentFilter
            | K::InvalidRequest
            | K::Malformed
            | K::Limit
            | K::Unavailable => false,
        }
    }
}
