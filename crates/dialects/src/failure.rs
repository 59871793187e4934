//! Error bodies of every shape, and what kind of failure they are.

use std::time::Duration;

use serde_json::Value;
use turnwright_core::{ProviderFailure, ProviderFailureKind, ProviderSaid};

use crate::dialect::ErrorResponse;

/// The longest message that is kept, in bytes.
const MAX_MESSAGE_BYTES: usize = 4096;

/// Where providers put their name for a request.
const REQUEST_ID_HEADERS: [&str; 5] =
    ["x-request-id", "request-id", "mistral-correlation-id", "x-generation-id", "apim-request-id"];

/// What a response with an error status says.
pub(crate) fn of_response(response: &ErrorResponse<'_>) -> ProviderFailure {
    let mut said = Said::of_body(response.body);
    said.may_wait = ["retry-after", "retry-after-ms"].iter().any(|name| (response.header)(name).is_some());
    let mut failure = said.failure(Some(response.status)).with_raw(response.body);
    failure.request_id = REQUEST_ID_HEADERS
        .iter()
        .find_map(|name| (response.header)(name))
        .map(|id| cut(id, 200).to_owned())
        .or(failure.request_id);
    failure
}

/// What a body with a success status, or an event of a stream, says went wrong; `None` where it says no such thing.
pub(crate) fn in_band(value: &Value) -> Option<ProviderFailure> {
    let value = value.as_array().and_then(|list| list.first()).unwrap_or(value);
    let is_error = match value.get("error") {
        None | Some(Value::Null | Value::Bool(false)) => value.get("object").and_then(Value::as_str) == Some("error"),
        Some(Value::Object(error)) => !error.is_empty(),
        Some(_) => true,
    };
    let is_refused = value.pointer("/base_resp/status_code").and_then(Value::as_i64).is_some_and(|code| code != 0);
    (is_error || is_refused).then(|| Said::of_value(value).failure(None).with_raw(value.to_string().as_bytes()))
}

/// What an event that is named `error` says.
pub(crate) fn of_event(data: &str) -> ProviderFailure {
    Said::of_body(data.as_bytes()).failure(None).with_raw(data.as_bytes())
}

/// The failure of a body that is not what the protocol says.
pub(crate) fn malformed(what: &str, body: &[u8]) -> ProviderFailure {
    let text = String::from_utf8_lossy(body.get(..512).unwrap_or(body));
    ProviderFailure::new(ProviderFailureKind::Malformed, format!("{what}: {}", text.trim())).with_raw(body)
}

/// A page came where an answer should be: a login, a proxy, or another server's address.
pub(crate) fn page(body: &[u8]) -> ProviderFailure {
    let page = String::from_utf8_lossy(body);
    let message = format!("the provider sent no answer but {}", page_title(&page));
    ProviderFailure::new(ProviderFailureKind::Malformed, message).with_raw(body)
}

/// The parts of an error body.
#[derive(Debug, Default)]
struct Said {
    message: Option<String>,
    code: Option<String>,
    /// `MiniMax`'s own code, whose numbers mean other things elsewhere.
    base_code: Option<u64>,
    error_type: Option<String>,
    /// Finer words than the type: reasons and codes among the details.
    details: Vec<String>,
    param: Option<String>,
    status: Option<u16>,
    request_id: Option<String>,
    retry_after_ms: Option<u64>,
    /// Whether the provider says that waiting helps.
    may_wait: bool,
}

impl Said {
    fn of_body(body: &[u8]) -> Self {
        if let Ok(value) = serde_json::from_slice::<Value>(body) {
            return Self::of_value(value.as_array().and_then(|list| list.first()).unwrap_or(&value));
        }
        let text = String::from_utf8_lossy(body);
        let text = text.trim();
        let message = if text.starts_with('<') { page_title(text) } else { cut(text, MAX_MESSAGE_BYTES).to_owned() };
        Self { message: (!message.is_empty()).then_some(message), ..Self::default() }
    }

    fn of_value(value: &Value) -> Self {
        let error = value.get("error").filter(|error| !error.is_null());
        let inner = error.filter(|error| error.is_object()).unwrap_or(value);
        let base = value.get("base_resp");
        let message = message_of(inner)
            .or_else(|| error.and_then(text_of))
            .or_else(|| message_of(value))
            .or_else(|| base.and_then(|base| base.get("status_msg")).and_then(text_of))
            .or_else(|| value.as_str().map(str::to_owned));
        let code = inner.get("code").or_else(|| value.get("code")).and_then(text_of);
        let base_code = base.and_then(|base| base.get("status_code"));
        let code = code.or_else(|| base_code.and_then(text_of));
        let status = inner.get("status").and_then(Value::as_u64).or_else(|| inner.get("code").and_then(Value::as_u64));
        // An event of the kind `error` says no more with it than that it is one.
        let error_type = inner.get("type").or_else(|| value.get("error_type")).and_then(text_of).filter(|word| word != "error");
        let request_id = value.get("request_id").or_else(|| inner.get("request_id")).and_then(text_of);
        let details = inner.get("details");
        Self {
            retry_after_ms: details.and_then(retry_info).or_else(|| message.as_deref().and_then(retry_in_words)),
            message: message.map(|message| cut(&message, MAX_MESSAGE_BYTES).to_owned()),
            code,
            base_code: base_code.and_then(Value::as_u64),
            error_type: error_type.or_else(|| inner.get("status").and_then(Value::as_str).map(str::to_owned)),
            details: details.map(details_of).unwrap_or_default(),
            param: inner.get("param").and_then(text_of).map(|param| cut(&param, 200).to_owned()),
            status: status.and_then(|status| u16::try_from(status).ok()).filter(|status| (400..600).contains(status)),
            request_id: request_id.map(|id| cut(&id, 200).to_owned()),
            may_wait: false,
        }
    }

    fn failure(self, status: Option<u16>) -> ProviderFailure {
        let status = status.filter(|status| !(200..300).contains(status)).or(self.status);
        let kind = self.classify(status);
        let message = self.message.unwrap_or_else(|| match status {
            Some(status) => format!("status {status} without a message"),
            None => "an error without a message".to_owned(),
        });
        ProviderFailure {
            status,
            code: self.code.or_else(|| self.error_type.clone()),
            request_id: self.request_id,
            retry_after_ms: self.retry_after_ms,
            said: Some(Box::new(ProviderSaid { error_type: self.error_type, param: self.param, raw: String::new() }))
                .filter(|said| **said != ProviderSaid::default()),
            ..ProviderFailure::new(kind, message)
        }
    }

    fn classify(&self, status: Option<u16>) -> ProviderFailureKind {
        use ProviderFailureKind as K;
        let words = || [&self.code, &self.error_type].into_iter().flatten().chain(&self.details);
        let is_any = |known: &[&str]| words().any(|word| known.contains(&word.as_str()));
        let message = self.message.as_deref().unwrap_or_default().to_ascii_lowercase().replace('`', "");
        let may_be_overflow = matches!(status, None | Some(400 | 413 | 422 | 500));
        if is_any(&["context_length_exceeded", "exceed_context_size_error", "model_context_window_exceeded"])
            || (may_be_overflow && !is_any(&["string_above_max_length"]) && is_overflow(&message))
        {
            return K::ContextLength;
        }
        if is_any(&QUOTA_WORDS) || self.base_code == Some(1008) || self.is_used_up(status, &message) {
            return K::Quota;
        }
        let is_refused_key = is_any(&["invalid_api_key", "authentication_error", "API_KEY_INVALID", "API_KEY_EXPIRED"]);
        if is_refused_key || self.base_code == Some(1004) {
            return K::Auth;
        }
        if is_any(&["content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"]) {
            return K::ContentFilter;
        }
        if is_any(&["model_not_found", "DeploymentNotFound"]) {
            return K::NotFound;
        }
        // The model wrote a call that the server could not read.
        if is_any(&["tool_use_failed"]) {
            return K::Malformed;
        }
        if matches!(status, None | Some(400 | 413 | 429)) && is_over_the_rate(&message) {
            return K::ContextLength;
        }
        let is_too_often = is_any(&["rate_limit_exceeded", "rate_limit_error"]) || self.base_code == Some(1002);
        if is_too_often || message.contains("service tier capacity exceeded") {
            return K::RateLimit;
        }
        match status {
            Some(401) => K::Auth,
            Some(402) => K::Quota,
            Some(403) => K::Permission,
            Some(404) => K::NotFound,
            Some(408 | 504) => K::Timeout,
            Some(413) => K::TooLarge,
            Some(429) => K::RateLimit,
            Some(503 | 529) => K::Overloaded,
            // A gateway gave up in between.
            Some(499 | 500..) => K::Server,
            Some(400) if message.contains("payload size exceeds the limit") => K::TooLarge,
            Some(_) => K::InvalidRequest,
            None => words().find_map(|word| of_word(word)).unwrap_or(K::Server),
        }
    }

    /// Whether a quota is used up that no short wait refills: a spend limit, a daily quota, or one of nothing at all.
    fn is_used_up(&self, status: Option<u16>, message: &str) -> bool {
        let has_spent = self.details.iter().any(|word| word.ends_with("spend_limit_reached")) && !self.may_wait;
        let is_of_today = self.details.iter().any(|word| word.contains("PerDay"));
        let is_zero = message.split("limit: 0").skip(1).any(|rest| !rest.starts_with(|c: char| c.is_ascii_digit() || c == '.'));
        matches!(status, None | Some(429)) && (has_spent || is_of_today || is_zero)
    }
}

/// The words of quotas that are used up; the number is Z.ai's.
const QUOTA_WORDS: [&str; 6] =
    ["insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error", "insufficient_balance", "1113"];

/// What an error's type means where there is no status: in an event of a stream, or in a body of a success.
fn of_word(word: &str) -> Option<ProviderFailureKind> {
    use ProviderFailureKind as K;
    Some(match word {
        "overloaded_error" | "server_overloaded" | "service_unavailable" | "UNAVAILABLE" => K::Overloaded,
        "invalid_request_error" | "BadRequestError" | "INVALID_ARGUMENT" | "FAILED_PRECONDITION" => K::InvalidRequest,
        "image_content_policy_violation" => K::ContentFilter,
        "vector_store_timeout" => K::Timeout,
        _ if word.starts_with("invalid_") || word.contains("image") => K::InvalidRequest,
        "permission_error" | "PERMISSION_DENIED" => K::Permission,
        "timeout_error" | "timeout" | "DEADLINE_EXCEEDED" => K::Timeout,
        "not_found_error" | "NOT_FOUND" => K::NotFound,
        "request_too_large" => K::TooLarge,
        "UNAUTHENTICATED" => K::Auth,
        "RESOURCE_EXHAUSTED" => K::RateLimit,
        _ => return None,
    })
}

/// The words among an error's details: `error_code` of an object, reasons and quotas of a list.
fn details_of(details: &Value) -> Vec<String> {
    let list = details.as_array().map_or(std::slice::from_ref(details), Vec::as_slice);
    let words = list.iter().flat_map(|detail| {
        let own = ["reason", "error_code"].into_iter().filter_map(|key| detail.get(key));
        let quotas = detail.get("violations").and_then(Value::as_array).into_iter().flatten();
        own.chain(quotas.filter_map(|quota| quota.get("quotaId"))).filter_map(text_of)
    });
    words.take(32).collect()
}

/// The `retryDelay` of a `RetryInfo` among an error's details, in milliseconds.
fn retry_info(details: &Value) -> Option<u64> {
    let delay = details.as_array()?.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    duration_ms(delay)
}

/// The delay of `Please retry in 10h17m5.7s`, in milliseconds.
fn retry_in_words(message: &str) -> Option<u64> {
    let (_, rest) = message.split_once("lease retry in ")?;
    duration_ms(rest.split_whitespace().next()?.trim_end_matches(['.', ',']))
}

/// A duration such as `46s`, `1.5s` or `10h17m5.7s`, in milliseconds.
fn duration_ms(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut whole = Duration::ZERO;
    while !rest.is_empty() {
        let unit = rest.find(|c: char| c.is_ascii_alphabetic())?;
        let (number, after) = rest.split_at_checked(unit)?;
        let (unit, after) = after.split_at_checked(after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len()))?;
        let seconds = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 0.001,
            _ => return None,
        };
        whole = whole.checked_add(Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()?)?;
        rest = after;
    }
    (whole > Duration::ZERO).then(|| u64::try_from(whole.as_micros().div_ceil(1000)).unwrap_or(u64::MAX))
}

/// Whether a message, in lower case and without backticks, says that the prompt does not fit.
fn is_overflow(message: &str) -> bool {
    const SIGNS: [&str; 19] = [
        "context_length_exceeded",
        "this model's maximum context length is",
        "model's maximum context limit",
        "exceed context limit",
        "is longer than the model's context length",
        "input tokens exceed the configured limit",
        "exceeds the available context size",
        "context size has been exceeded",
        "exceeds the maximum number of tokens allowed",
        "prompt is too long",
        "input is too long",
        "input length and max_tokens exceed context limit",
        "exceed_context_size_error",
        "string too long. expected a string with maximum length",
        "maximum context length",
        "exceeds the context length",
        "tokens when context the overflows",
        "to keep from the initial prompt is greater than the context length",
        "inputs tokens + max_new_tokens must be",
    ];
    SIGNS.iter().any(|sign| message.contains(sign)) || is_current_over_limit(message)
}

/// Whether a message, in lower case, says that the request alone is more than a minute's tokens: no wait makes it fit, only
/// a shorter conversation. `Request too large for gpt-5 … on tokens per min (TPM): Limit 10000, Requested 15000.`
fn is_over_the_rate(message: &str) -> bool {
    message.contains("request too large for") && message.contains("tokens per min")
}

/// `current length is 9000 while limit is 8192`.
fn is_current_over_limit(message: &str) -> bool {
    let Some((_, rest)) = message.split_once("current length is ") else { return false };
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.strip_prefix(" while limit is ").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn message_of(value: &Value) -> Option<String> {
    ["message", "detail"].iter().find_map(|key| value.get(*key)).and_then(|found| match found {
        Value::String(text) => (!text.is_empty()).then(|| text.clone()),
        Value::Array(list) => Some(list.iter().map(validation_of).collect::<Vec<_>>().join("; ")),
        Value::Object(_) => message_of(found),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    })
}

/// One entry of a validation error's list: `{loc, msg, type}`.
fn validation_of(entry: &Value) -> String {
    let place = entry.get("loc").and_then(Value::as_array).map(|parts| {
        parts.iter().map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned)).collect::<Vec<_>>().join(".")
    });
    match (place, entry.get("msg").and_then(Value::as_str)) {
        (Some(place), Some(message)) => format!("{place}: {message}"),
        (None, Some(message)) => message.to_owned(),
        _ => entry.as_str().map_or_else(|| entry.to_string(), str::to_owned),
    }
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => (!text.is_empty()).then(|| text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// What an HTML page is about: its title, else its beginning.
fn page_title(page: &str) -> String {
    let lower = page.to_ascii_lowercase();
    let title = lower
        .find("<title>")
        .map(|at| at + "<title>".len())
        .zip(lower.find("</title>"))
        .and_then(|(from, to)| page.get(from..to));
    format!("an HTML page: {}", cut(title.unwrap_or(page).trim(), 200))
}

/// The first `limit` bytes at most, whole characters.
pub(crate) fn cut(text: &str, limit: usize) -> &str {
    if text.len() <= limit { text } else { text.get(..text.floor_char_boundary(limit)).unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(status: u16, body: &str) -> ProviderFailureKind {
        of_response(&ErrorResponse { status, header: &|_| None, body: body.as_bytes() }).kind
    }

    #[test]
    fn every_row_of_the_status_table_has_its_kind() {
        use ProviderFailureKind as K;
        let error = |message: &str, code: &str| format!(r#"{{"error":{{"message":"{message}","code":"{code}"}}}}"#);
        let gemini = |code: u16, message: &str, status: &str, detail: &str| {
            format!(r#"[{{"error":{{"code":{code},"message":"{message}","status":"{status}","details":[{detail}]}}}}]"#)
        };
        let table = [
            (401, error("no", "invalid_api_key"), K::Auth),
            (403, error("no", ""), K::Permission),
            (429, error("no", "insufficient_quota"), K::Quota),
            (402, error("no credits", ""), K::Quota),
            (429, error("slow down", "rate_limit_exceeded"), K::RateLimit),
            (429, String::new(), K::RateLimit),
            (503, error("busy", ""), K::Overloaded),
            (529, String::new(), K::Overloaded),
            (500, String::new(), K::Server),
            (502, "<html><title>Bad gateway</title></html>".to_owned(), K::Server),
            (408, String::new(), K::Timeout),
            (504, String::new(), K::Timeout),
            (404, error("no", "model_not_found"), K::NotFound),
            (413, String::new(), K::TooLarge),
            (400, error("no", "context_length_exceeded"), K::ContextLength),
            (400, error("This model's maximum context length is 9 tokens", ""), K::ContextLength),
            (500, error("Context size has been exceeded.", ""), K::ContextLength),
            (400, error("current length is 9000 while limit is 8192", ""), K::ContextLength),
            (400, error("input length and `max_tokens` exceed context limit", ""), K::ContextLength),
            (400, error("string too long. expected a string with maximum length 3", ""), K::ContextLength),
            (
                400,
                error("string too long. expected a string with maximum length 3", "string_above_max_length"),
                K::InvalidRequest,
            ),
            (400, error("no", "content_filter"), K::ContentFilter),
            (400, error("no", "unsupported_parameter"), K::InvalidRequest),
            (400, error("the input length exceeds the context length", ""), K::ContextLength),
            (
                400,
                error("Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded", ""),
                K::ContextLength,
            ),
            (
                400,
                error("The number of tokens to keep from the initial prompt is greater than the context length.", ""),
                K::ContextLength,
            ),
            (
                422,
                r#"{"error":"`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000","error_type":"validation"}"#
                    .to_owned(),
                K::ContextLength,
            ),
            (400, gemini(400, "API key not valid", "INVALID_ARGUMENT", r#"{"reason":"API_KEY_INVALID"}"#), K::Auth),
            (
                400,
                gemini(400, "Request payload size exceeds the limit: 20971520 bytes.", "INVALID_ARGUMENT", "{}"),
                K::TooLarge,
            ),
            (429, gemini(429, "exhausted", "RESOURCE_EXHAUSTED", "{}"), K::RateLimit),
            (429, gemini(429, "Quota exceeded, limit: 0, model: m", "RESOURCE_EXHAUSTED", "{}"), K::Quota),
            (429, gemini(429, "Quota exceeded, limit: 0.5", "RESOURCE_EXHAUSTED", "{}"), K::RateLimit),
            (429, gemini(429, "no", "RESOURCE_EXHAUSTED", r#"{"violations":[{"quotaId":"RequestsPerDay"}]}"#), K::Quota),
            (
                429,
                r#"{"error":{"type":"rate_limit_error","details":{"error_code":"enforced_spend_limit_reached"}}}"#.to_owned(),
                K::Quota,
            ),
            (402, r#"{"error":{"type":"billing_error","message":"no"}}"#.to_owned(), K::Quota),
            (
                429,
                error(
                    "Request too large for gpt-5 in organization org-x on tokens per min (TPM): Limit 10000, Requested 15000.",
                    "rate_limit_exceeded",
                ),
                K::ContextLength,
            ),
            (
                413,
                error(
                    "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce",
                    "rate_limit_exceeded",
                ),
                K::ContextLength,
            ),
            (
                429,
                error("Rate limit reached for gpt-5 on tokens per min (TPM): Limit 10000, Used 9000", "rate_limit_exceeded"),
                K::RateLimit,
            ),
            (413, error("request_too_large: Request exceeds the maximum size", ""), K::TooLarge),
            (400, error("Failed to call a function.", "tool_use_failed"), K::Malformed),
            (422, r#"{"detail":[{"loc":["body","x"],"msg":"missing","type":"t"}]}"#.to_owned(), K::InvalidRequest),
        ];
        for (status, body, expected) in table {
            assert_eq!(kind(status, &body), expected, "{status} {body}");
        }
    }

    #[test]
    fn a_number_means_what_the_vendor_that_sent_it_says() {
        use ProviderFailureKind as K;
        let zai = |code: &str| format!(r#"{{"error":{{"code":"{code}","message":"no"}}}}"#);
        let anthropic = |error: &str| format!(r#"{{"type":"error","error":{{"message":"[1113][no]",{error}}}}}"#);
        let minimax = |code: u16| format!(r#"{{"base_resp":{{"status_code":{code},"status_msg":"no"}}}}"#);
        let table = [
            (401, zai("1002"), K::Auth),
            (401, zai("1004"), K::Auth),
            (400, zai("1008"), K::InvalidRequest),
            (429, zai("1113"), K::Quota),
            (429, anthropic(r#""type":"rate_limit_error","code":"1113""#), K::Quota),
            (429, anthropic(r#""type":"1113""#), K::Quota),
            (429, zai("1302"), K::RateLimit),
            (200, minimax(1002), K::RateLimit),
            (200, minimax(1004), K::Auth),
            (200, minimax(1008), K::Quota),
        ];
        for (status, body, expected) in table {
            assert_eq!(kind(status, &body), expected, "{status} {body}");
        }
    }

    #[test]
    fn the_message_is_found_in_every_shape_of_body() {
        let table = [
            (r#"{"error":{"message":"m"}}"#, "m"),
            (r#"{"error":"m"}"#, "m"),
            (r#"[{"error":{"message":"m"}}]"#, "m"),
            (r#"{"object":"error","message":"m"}"#, "m"),
            (r#"{"code":"c","error":"m"}"#, "m"),
            (r#"{"detail":"m"}"#, "m"),
            (r#"{"detail":[{"loc":["body",0,"x"],"msg":"missing"}]}"#, "body.0.x: missing"),
            (r#"{"message":{"detail":[{"msg":"a"},{"msg":"b"}]}}"#, "a; b"),
            ("plain words\n", "plain words"),
            ("<html><head><TITLE>Oh no</TITLE></head></html>", "an HTML page: Oh no"),
            ("", "status 500 without a message"),
        ];
        for (body, expected) in table {
            let failure = of_response(&ErrorResponse { status: 500, header: &|_| None, body: body.as_bytes() });
            assert_eq!(failure.message, expected, "{body}");
        }
    }

    #[test]
    fn a_failure_carries_everything_that_the_provider_said() {
        let header = |name: &str| (name == "x-request-id").then_some("req_1");
        let body = r#"{"error":{"message":"m","type":"invalid_request_error","code":400,"param":"messages[0]"}}"#;
        let failure = of_response(&ErrorResponse { status: 400, header: &header, body: body.as_bytes() });
        let expected = ProviderFailure {
            status: Some(400),
            code: Some("400".to_owned()),
            request_id: Some("req_1".to_owned()),
            said: Some(Box::new(ProviderSaid {
                error_type: Some("invalid_request_error".to_owned()),
                param: Some("messages[0]".to_owned()),
                raw: body.to_owned(),
            })),
            ..ProviderFailure::new(ProviderFailureKind::InvalidRequest, "m")
        };
        assert_eq!(failure, expected);
    }

    #[test]
    fn a_long_body_is_kept_for_the_operator_in_part() {
        let body = "ü".repeat(ProviderSaid::MAX_RAW_BYTES);
        let failure = of_response(&ErrorResponse { status: 500, header: &|_| None, body: body.as_bytes() });
        assert_eq!(failure.said.map(|said| said.raw.len()), Some(ProviderSaid::MAX_RAW_BYTES));
        let empty = of_response(&ErrorResponse { status: 500, header: &|_| None, body: b"" });
        assert_eq!(empty.said, None);
    }

    #[test]
    fn a_delay_is_read_from_the_body_in_each_of_its_forms() {
        let delay = |error: &str| in_band(&serde_json::from_str(error).unwrap()).unwrap().retry_after_ms;
        let info = |delay: &str| format!(r#"{{"error":{{"code":429,"details":[{{"x":1}},{{"retryDelay":"{delay}"}}]}}}}"#);
        assert_eq!(delay(&info("46s")), Some(46_000));
        assert_eq!(delay(&info("1.5s")), Some(1500));
        assert_eq!(delay(&info("soon")), None);
        assert_eq!(delay(&info("99999999999999999999999s")), None);
        let words = r#"{"error":{"message":"Quota exceeded. Please retry in 10h17m5.7s."}}"#;
        assert_eq!(delay(words), Some(37_025_700));
    }

    #[test]
    fn a_spend_limit_that_ends_soon_is_waited_for() {
        let body = br#"{"error":{"type":"rate_limit_error","details":{"error_code":"enforced_spend_limit_reached"}}}"#;
        let header = |name: &str| (name == "retry-after").then_some("5");
        let failure = of_response(&ErrorResponse { status: 429, header: &header, body });
        assert_eq!(failure.kind, ProviderFailureKind::RateLimit);
    }

    #[test]
    fn an_error_in_a_success_is_seen_by_its_shape() {
        for (body, kind) in [
            (r#"{"error":{"message":"m","code":429}}"#, Some(ProviderFailureKind::RateLimit)),
            (r#"{"base_resp":{"status_code":1008,"status_msg":"m"}}"#, Some(ProviderFailureKind::Quota)),
            (r#"{"object":"error","message":"m"}"#, Some(ProviderFailureKind::Server)),
            (r#"{"choices":[],"error":null,"base_resp":{"status_code":0}}"#, None),
        ] {
            let value = serde_json::from_str(body).unwrap();
            assert_eq!(in_band(&value).map(|failure| failure.kind), kind, "{body}");
        }
    }
}
