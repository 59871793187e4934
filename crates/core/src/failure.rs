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
    /// The provider's own code, such as `insufficient_quota`; its type where it gives no code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The provider's name for the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// How long the provider asks us to wait, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Whether a part of the answer came before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_content: bool,
    /// What else the provider said, for the operator; `None` where it said nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Box<ProviderSaid>>,
}

/// What a provider said about a failure besides its message and code.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderSaid {
    /// Its own type, such as `invalid_request_error` or `RESOURCE_EXHAUSTED`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_type: Option<String>,
    /// The part of the request that it complains about, such as `messages[3].content`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub param: Option<String>,
    /// What it sent, as it came; at most [`ProviderSaid::MAX_RAW_BYTES`].
    pub raw: String,
}

impl ProviderSaid {
    /// The most of a provider's own words that is kept, in bytes.
    pub const MAX_RAW_BYTES: usize = 64 * 1024;

    /// These bytes, cut at [`ProviderSaid::MAX_RAW_BYTES`].
    pub fn of(sent: &[u8]) -> Self {
        let text = String::from_utf8_lossy(sent.get(..Self::MAX_RAW_BYTES).unwrap_or(sent));
        let text = text.get(..text.floor_char_boundary(Self::MAX_RAW_BYTES)).unwrap_or_default();
        Self { raw: text.to_owned(), ..Self::default() }
    }
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

    /// Whether another model may well answer where this one did not: it is overloaded, out of reach, or takes no more
    /// requests for a while. A request that is refused would be refused for a reason, so it is not passed on.
    pub fn is_outage(self) -> bool {
        match self {
            Self::RateLimit | Self::Overloaded | Self::Server | Self::Timeout | Self::Connect | Self::CutOff => true,
            Self::Auth
            | Self::Permission
            | Self::Quota
            | Self::NotFound
            | Self::TooLarge
            | Self::ContextLength
            | Self::ContentFilter
            | Self::InvalidRequest
            | Self::Malformed
            | Self::Limit
            | Self::Unavailable => false,
        }
    }
}

impl ProviderFailure {
    /// The code of a model that was not asked since nobody knows its price while a budget is in money.
    pub const UNPRICED: &str = "price_unknown";

    /// A failure of this kind with nothing else known.
    pub fn new(kind: ProviderFailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            status: None,
            message: message.into(),
            code: None,
            request_id: None,
            retry_after_ms: None,
            after_content: false,
            said: None,
        }
    }

    /// With what the provider sent, cut at [`ProviderSaid::MAX_RAW_BYTES`]; as it is where that is empty.
    #[must_use]
    pub fn with_raw(mut self, sent: &[u8]) -> Self {
        if sent.iter().any(|byte| !byte.is_ascii_whitespace()) {
            let said = self.said.take().map(|said| *said).unwrap_or_default();
            self.said = Some(Box::new(ProviderSaid { raw: ProviderSaid::of(sent).raw, ..said }));
        }
        self
    }

    /// Whether the next model of a chain is asked in the place of the one that failed so.
    pub fn passes_on(&self) -> bool {
        (self.kind.is_outage() || self.is_unpriced()) && !self.after_content
    }

    /// Whether the model was not asked since nobody knows its price.
    pub fn is_unpriced(&self) -> bool {
        self.kind == ProviderFailureKind::Unavailable && self.code.as_deref() == Some(Self::UNPRICED)
    }

    /// Whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.kind.is_outage()
    }
}
