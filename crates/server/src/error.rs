//! What a client is told when a request is not carried out: the only place with status codes.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use turnwright_api::{FieldError, PROBLEM_CONTENT_TYPE, Problem};
use turnwright_core::{FieldProblem, IdError, ProviderFailure, ProviderFailureKind};
use turnwright_engine::accounts::Scope;
use turnwright_engine::{EngineError, OverLimit, StoreError, Watch};

/// A refusal, told as a problem document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct ApiError {
    status: StatusCode,
    code: &'static str,
    detail: String,
    ends_connection: bool,
    /// The provider's name for the request that failed there.
    request_id: Option<Box<str>>,
    /// What is wrong with single fields.
    errors: Box<[FieldError]>,
    /// The one field that is wrong.
    param: Option<Box<str>>,
    /// Whether to send the same again would do harm.
    is_final: bool,
    /// After how many seconds it may be worth repeating, where that is known.
    retry_after: Option<u32>,
    /// Whether it repeats what a model provider said, which may repeat what a person did: that stands in no log.
    is_quoted: bool,
    /// What the client would have to show, where it is not known or may do less (RFC 6750, section 3).
    challenge: Option<Challenge>,
    /// What the log says instead of what the client is told: where the database is and why it fails is the operator's.
    for_operator: Option<Box<str>>,
}

/// What a client would have to show (RFC 6750, section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// A token.
    Token,
    /// Another token.
    Another,
    /// One with this scope.
    With(Scope),
}

impl Challenge {
    fn as_str(self) -> &'static str {
        match self {
            Self::Token => "Bearer realm=\"turnwright\"",
            Self::Another => "Bearer realm=\"turnwright\", error=\"invalid_token\"",
            Self::With(Scope::Read) => "Bearer realm=\"turnwright\", error=\"insufficient_scope\", scope=\"read\"",
            Self::With(Scope::Chat) => "Bearer realm=\"turnwright\", error=\"insufficient_scope\", scope=\"chat\"",
            Self::With(Scope::Approve) => "Bearer realm=\"turnwright\", error=\"insufficient_scope\", scope=\"approve\"",
            Self::With(Scope::Admin) => "Bearer realm=\"turnwright\", error=\"insufficient_scope\", scope=\"admin\"",
        }
    }
}

impl ApiError {
    /// A refusal with this status, stable code and words for people.
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status,
            code,
            detail: detail.into(),
            ends_connection: false,
            request_id: None,
            errors: Box::default(),
            param: None,
            is_final: false,
            retry_after: None,
            is_quoted: false,
            challenge: None,
            for_operator: None,
        }
    }

    /// A turn that is stored is not waited for any more.
    pub(crate) fn of_turn(error: EngineError) -> Self {
        match error {
            EngineError::ShuttingDown => {
                let detail = "the server ends; the turn goes on and is kept in its conversation";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", detail)
            }
            error => error.into(),
        }
    }

    /// A turn that is stored is not told to its end, since its watcher was cut off.
    pub(crate) fn of_watch(watch: &Watch) -> Self {
        if watch.is_deleted() {
            return Self::new(StatusCode::NOT_FOUND, "not_found", "the conversation was deleted");
        }
        Self::of_turn(EngineError::ShuttingDown).made_final()
    }

    /// The request is not understood (400).
    pub(crate) fn bad_request(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// The request is understood and wrong (422).
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_request", detail)
    }

    /// There is no such thing (404).
    pub(crate) fn not_found(what: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", format!("there is no {what}"))
    }

    /// The same, told after this.
    pub(crate) fn told_after(mut self, before: &str) -> Self {
        self.detail = format!("{before}: {}", self.detail);
        self
    }

    /// The same, about this field.
    pub(crate) fn about(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into().into_boxed_str());
        self
    }

    /// The same, where to send it again would do harm.
    pub(crate) fn made_final(mut self) -> Self {
        self.is_final = true;
        self
    }

    /// The same, in the words of a model provider.
    pub(crate) fn in_a_providers_words(mut self) -> Self {
        self.is_quoted = true;
        self
    }

    /// The same, of which the log says more.
    pub(crate) fn logged_as(mut self, what: impl Into<String>) -> Self {
        self.for_operator = Some(what.into().into_boxed_str());
        self
    }

    /// The same, which may be worth repeating after so many seconds.
    pub(crate) fn worth_repeating_in(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// The same, with what the client would have to show (RFC 6750, section 3).
    pub(crate) fn with_challenge(mut self, challenge: Challenge) -> Self {
        self.challenge = Some(challenge);
        self
    }

    /// A key that stands for another request, as the client wrote it.
    pub(crate) fn key_reused(key: String) -> Self {
        let detail = EngineError::KeyReused { key }.to_string();
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused", detail)
    }

    /// Its status.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// Its stable word.
    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    /// The field that it is about.
    pub(crate) fn param(&self) -> Option<&str> {
        self.param.as_deref()
    }

    /// Whether to send the same again would do harm.
    pub(crate) fn is_final(&self) -> bool {
        self.is_final
    }

    /// The same, and the connection ends: what the client still sends is not read.
    pub(crate) fn ending_connection(mut self) -> Self {
        self.ends_connection = true;
        self
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        if self.status.is_server_error() {
            let detail = if self.is_quoted {
                "what the model provider said is told to the client alone"
            } else {
                self.for_operator.as_deref().unwrap_or(&self.detail)
            };
            tracing::warn!(status = self.status.as_u16(), code = self.code, detail, "request failed");
        }
        let kept = self.clone();
        let title = self.status.canonical_reason().unwrap_or("Error");
        let problem = Problem::new(self.status.as_u16(), title, self.code, self.detail);
        let problem = Problem { request_id: self.request_id.map(String::from), errors: self.errors.into_vec(), ..problem };
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let mut response = (self.status, [(header::CONTENT_TYPE, PROBLEM_CONTENT_TYPE)], body).into_response();
        response.extensions_mut().insert(kept);
        let headers = response.headers_mut();
        if self.ends_connection {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if let Some(challenge) = self.challenge {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge.as_str()));
        }
        let usual = (self.status == StatusCode::SERVICE_UNAVAILABLE).then_some(1);
        if let Some(seconds) = self.retry_after.or(usual) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<IdError> for ApiError {
    fn from(error: IdError) -> Self {
        Self::bad_request("invalid_id", error.to_string())
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        EngineError::from(error).into()
    }
}

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> Self {
        // The route stands before what the client wrote.
        if let EngineError::KeyReused { key } = error {
            return Self::key_reused(key.split_once(' ').map(|(_, key)| key.to_owned()).unwrap_or(key));
        }
        let (status, code) = match &error {
            EngineError::NotFound { .. } | EngineError::NoTool { .. } => (StatusCode::NOT_FOUND, "not_found"),
            EngineError::Exists { .. } => (StatusCode::CONFLICT, "exists"),
            EngineError::NoOpenTurn { .. } => (StatusCode::CONFLICT, "no_open_turn"),
            EngineError::TurnOpen { .. } | EngineError::OtherSettings { .. } | EngineError::OtherFolder { .. } => {
                (StatusCode::CONFLICT, "turn_open")
            }
            // Whoever names a message looks again by itself.
            EngineError::SaidMeanwhile => (StatusCode::SERVICE_UNAVAILABLE, "conflict"),
            EngineError::NotWaiting { .. } | EngineError::NotAsked { .. } => (StatusCode::CONFLICT, "not_waiting"),
            EngineError::Misfilled { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "invalid_answer"),
            EngineError::Invalid { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "invalid_request"),
            EngineError::NotAllowed { .. } => (StatusCode::FORBIDDEN, "insufficient_scope"),
            EngineError::PeopleOnly { .. } => (StatusCode::FORBIDDEN, "people_only"),
            EngineError::KeyReused { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused"),
            EngineError::OverLimit(over) => limit_status(*over),
            EngineError::OverBudget(_) => (StatusCode::TOO_MANY_REQUESTS, "over_budget"),
            EngineError::Provider(failure) => provider_status(failure),
            EngineError::Store(store) => store_status(store),
            EngineError::Journal(_) => (StatusCode::INTERNAL_SERVER_ERROR, "journal_damaged"),
            EngineError::ShuttingDown => (StatusCode::SERVICE_UNAVAILABLE, "shutting_down"),
        };
        let request_id = match &error {
            EngineError::Provider(failure) => failure.request_id.clone().map(String::into_boxed_str),
            EngineError::NotFound { .. }
            | EngineError::NoTool { .. }
            | EngineError::Exists { .. }
            | EngineError::NoOpenTurn { .. }
            | EngineError::TurnOpen { .. }
            | EngineError::OtherSettings { .. }
            | EngineError::OtherFolder { .. }
            | EngineError::SaidMeanwhile
            | EngineError::NotWaiting { .. }
            | EngineError::NotAsked { .. }
            | EngineError::Misfilled { .. }
            | EngineError::Invalid { .. }
            | EngineError::NotAllowed { .. }
            | EngineError::PeopleOnly { .. }
            | EngineError::KeyReused { .. }
            | EngineError::OverLimit(_)
            | EngineError::OverBudget(_)
            | EngineError::Store(_)
            | EngineError::Journal(_)
            | EngineError::ShuttingDown => None,
        };
        let said = error.to_string();
        let (detail, for_operator) = match &error {
            EngineError::Store(store) => match store.in_general() {
                Some(general) => (general.to_owned(), Some(said.into_boxed_str())),
                None => (said, None),
            },
            _ => (said, None),
        };
        let is_quoted = matches!(error, EngineError::Provider(_));
        let errors = match error {
            EngineError::Misfilled { problems } => {
                problems.into_iter().map(|FieldProblem { field, problem }| FieldError { field, message: problem }).collect()
            }
            _ => Box::default(),
        };
        let retry_after = matches!(code, "too_many_turns" | "too_many_user_turns").then_some(5);
        Self { request_id, errors, retry_after, is_quoted, for_operator, ..Self::new(status, code, detail) }
    }
}

/// More than is taken.
fn limit_status(over: OverLimit) -> (StatusCode, &'static str) {
    match over {
        OverLimit::Turns { .. } => (StatusCode::SERVICE_UNAVAILABLE, "too_many_turns"),
        OverLimit::UserTurns { .. } => (StatusCode::TOO_MANY_REQUESTS, "too_many_user_turns"),
        OverLimit::Settings { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "settings_too_large"),
        OverLimit::Title { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "title_too_long"),
        OverLimit::Reason { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "reason_too_long"),
        OverLimit::Message { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "message_too_large"),
        OverLimit::Attachments { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "too_many_attachments"),
        OverLimit::Attachment { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "attachment_too_large"),
        OverLimit::Rules { .. } | OverLimit::RuleBytes { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "too_many_rules"),
    }
}

/// A failure of a provider before a turn began.
fn provider_status(failure: &ProviderFailure) -> (StatusCode, &'static str) {
    use ProviderFailureKind as K;
    let status = match failure.kind {
        K::Unavailable | K::NotFound => StatusCode::UNPROCESSABLE_ENTITY,
        K::Timeout => StatusCode::GATEWAY_TIMEOUT,
        K::Auth
        | K::Permission
        | K::Quota
        | K::RateLimit
        | K::Overloaded
        | K::Server
        | K::TooLarge
        | K::ContextLength
        | K::ContentFilter
        | K::InvalidRequest
        | K::Connect
        | K::CutOff
        | K::Malformed
        | K::Limit => StatusCode::BAD_GATEWAY,
    };
    (status, failure.kind.as_str())
}

fn store_status(error: &StoreError) -> (StatusCode, &'static str) {
    match error {
        // Whoever reserves looks again by itself. Only where the first request's answer went with its conversation a moment ago is a repetition told to anybody.
        StoreError::Conflict { .. } | StoreError::Repeated { .. } | StoreError::OverBudget | StoreError::TooManyTurns => {
            (StatusCode::SERVICE_UNAVAILABLE, "conflict")
        }
        StoreError::Gone { .. } | StoreError::Missing { .. } => (StatusCode::NOT_FOUND, "not_found"),
        StoreError::LastAdmin { .. } => (StatusCode::CONFLICT, "last_admin"),
        StoreError::Changed { .. } | StoreError::Altered { .. } => (StatusCode::PRECONDITION_FAILED, "precondition_failed"),
        StoreError::Exists { .. } | StoreError::Taken { .. } => (StatusCode::CONFLICT, "exists"),
        StoreError::Newer { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "store_newer"),
        StoreError::Damaged { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "store_damaged"),
        StoreError::Unusable { .. } => (StatusCode::SERVICE_UNAVAILABLE, "store_unusable"),
        StoreError::Closed => (StatusCode::SERVICE_UNAVAILABLE, "shutting_down"),
    }
}
