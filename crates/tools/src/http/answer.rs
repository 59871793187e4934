//! What an API answered, as a result or as an error that says what to do next.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use encoding_rs::{Encoding, UTF_8};
use reqwest::StatusCode;
use reqwest::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, ETAG, LAST_MODIFIED, LINK, LOCATION, RETRY_AFTER};
use serde_json::Value;
use turnwright_core::{ContentBlock, EmbeddedResource, ToolErrorKind};
use turnwright_engine::source::{ToolError, ToolOutput};
use url::Url;

use super::auth::Secrets;
use super::fields::trimmed;
use super::operation::Operation;
use super::pages::{self, Answered};
use super::parameter::is_json;
use super::text::shortened;
use crate::error::grouped;
use crate::net::Answer;

/// The most characters of what an API says of its error.
const MAX_SAID: usize = 1_500;

/// What a call comes to.
pub(super) fn output(operation: &Operation, url: &Url, mut answer: Answer, secrets: &Secrets) -> Result<ToolOutput, ToolError> {
    answer.body = secrets.scrubbed(answer.body);
    if !answer.status.is_success() {
        return Err(error(operation, &answer, secrets));
    }
    let value = (!answer.is_cut && may_be_json(&answer)).then(|| serde_json::from_slice::<Value>(&answer.body).ok()).flatten();
    let mut output = match &value {
        Some(value) => of_json(operation, value, &answer.body),
        None => of_bytes(operation, &answer, secrets),
    };
    let mut say = |text: String| output.content.push(ContentBlock::text(format!("[{text}]")));
    if answer.is_cut {
        let limit = grouped(u64::try_from(answer.body.len()).unwrap_or(u64::MAX));
        say(format!("The answer is longer than {limit} bytes, the limit, and its rest was not read: ask for less"));
    }
    // An answer that leads nowhere has nothing but where it leads.
    if let Some(location) = answer.header(LOCATION.as_str()).filter(|_| answer.status == StatusCode::CREATED) {
        say(format!("Created: {}", secrets.scrubbed_text(&shortened(location, 300))));
    }
    let links: Vec<&str> = answer.headers.get_all(LINK).iter().filter_map(|link| link.to_str().ok()).collect();
    let links = links.join(", ");
    let answered = Answered { operation, url, link: Some(links.as_str()), body: value.as_ref() };
    if let Some(next) = pages::next(answered) {
        say(secrets.scrubbed_text(&next));
    }
    Ok(output)
}

fn may_be_json(answer: &Answer) -> bool {
    let kind = answer.media_type();
    let starts = answer.body.iter().find(|byte| !byte.is_ascii_whitespace());
    is_json(&kind) || ((kind.is_empty() || kind == "text/plain") && matches!(starts, Some(b'{' | b'[')))
}

fn of_json(operation: &Operation, value: &Value, written: &[u8]) -> ToolOutput {
    if operation.fields.is_empty() {
        // Numbers as they are written: ids may have more digits than a value holds.
        let text = String::from_utf8(compacted(written)).unwrap_or_else(|_| value.to_string());
        return ToolOutput { content: vec![ContentBlock::text(text)], ..ToolOutput::json(value.clone()) };
    }
    if let Some(trimmed) = trimmed(value, &operation.fields) {
        return ToolOutput::json(trimmed);
    }
    let names: Vec<&str> = value.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).take(50).collect();
    let has = if names.is_empty() { "nothing with a name".to_owned() } else { names.join(", ") };
    ToolOutput::text(format!("The answer has none of the fields that are given of it. It has: {has}"))
}

/// JSON without the white space between its parts.
fn compacted(json: &[u8]) -> Vec<u8> {
    let (mut in_text, mut is_escaped) = (false, false);
    let is_kept = |byte: &u8| {
        if in_text {
            in_text = is_escaped || *byte != b'"';
            is_escaped = !is_escaped && *byte == b'\\';
            return true;
        }
        in_text = *byte == b'"';
        !byte.is_ascii_whitespace()
    };
    json.iter().copied().filter(is_kept).collect()
}

fn of_bytes(operation: &Operation, answer: &Answer, secrets: &Secrets) -> ToolOutput {
    let kind = answer.media_type();
    if answer.body.is_empty() {
        return ToolOutput::text(without_body(answer, secrets));
    }
    let is_whole = !answer.is_cut;
    if let (Some(text), true) = (text(answer), is_text(&kind, &answer.body)) {
        return ToolOutput::text(text);
    }
    let size = grouped(u64::try_from(answer.body.len()).unwrap_or(u64::MAX));
    let note = ContentBlock::text(format!("[{kind}, {size} bytes]"));
    let data = STANDARD.encode(&answer.body);
    let block = match kind.as_str() {
        "image/png" | "image/jpeg" | "image/gif" | "image/webp" if is_whole => ContentBlock::Image { data, mime_type: kind },
        _ if is_whole => ContentBlock::Resource {
            resource: EmbeddedResource {
                uri: format!("answer:{}", operation.name),
                mime_type: (!kind.is_empty()).then_some(kind),
                text: None,
                blob: Some(data),
            },
        },
        _ => return ToolOutput { content: vec![note], ..ToolOutput::default() },
    };
    ToolOutput { content: vec![note, block], ..ToolOutput::default() }
}

/// The status, and what there is beside a body.
fn without_body(answer: &Answer, secrets: &Secrets) -> String {
    let names = [CONTENT_TYPE, CONTENT_LENGTH, LAST_MODIFIED, ETAG, ALLOW];
    let headers = names.iter().filter_map(|name| Some(format!("{name}: {}", shortened(answer.header(name.as_str())?, 200))));
    let headers: Vec<String> = headers.filter(|line| line != "content-length: 0").collect();
    let text = std::iter::once(format!("Done: {}, nothing more is said.", answer.status))
        .chain(headers)
        .collect::<Vec<_>>()
        .join("\n");
    secrets.scrubbed_text(&text)
}

fn is_text(kind: &str, body: &[u8]) -> bool {
    const TEXTS: [&str; 7] = ["xml", "yaml", "csv", "javascript", "x-www-form-urlencoded", "graphql", "ndjson"];
    let is_named = kind.starts_with("text/") || is_json(kind) || TEXTS.iter().any(|name| kind.contains(name));
    is_named || (kind.is_empty() && std::str::from_utf8(body).is_ok_and(|text| !text.contains('\0')))
}

fn text(answer: &Answer) -> Option<String> {
    let written = answer.header(CONTENT_TYPE.as_str()).unwrap_or_default();
    let label = written.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
    });
    let encoding = label.and_then(|label| Encoding::for_label(label.as_bytes())).unwrap_or(UTF_8);
    let (text, _, _) = encoding.decode(&answer.body);
    (!text.contains('\0')).then(|| text.into_owned())
}

/// The error that a status is, with what the API says of it and what to do.
fn error(operation: &Operation, answer: &Answer, secrets: &Secrets) -> ToolError {
    let status = answer.status;
    let (kind, next) = meaning(operation, answer);
    let told = said(answer).map(|said| format!(": {said}")).unwrap_or_default();
    let text = format!("{} answers {status}{told}\n{next}", operation.method);
    ToolError::new(kind, secrets.scrubbed_text(&text))
}

fn meaning(operation: &Operation, answer: &Answer) -> (ToolErrorKind, String) {
    use ToolErrorKind::{ExecutionFailed, InvalidArguments, NotFound, PermissionDenied, Timeout, Unavailable};
    let wrong = |text: &str| (InvalidArguments, text.to_owned());
    match answer.status.as_u16() {
        300..=399 => {
            let place =
                answer.header(LOCATION.as_str()).map(|text| format!(" (`{}`)", shortened(text, 200))).unwrap_or_default();
            (
                Unavailable,
                format!("It is somewhere else now{place}, and was not followed: the person can change its `base_url`."),
            )
        }
        401 => (
            PermissionDenied,
            "The API does not take the authentication that is configured. Only the person can change that: tell them."
                .to_owned(),
        ),
        402 => (PermissionDenied, "The API wants to be paid first. Tell the person.".to_owned()),
        403 => (
            PermissionDenied,
            "Whoever the configured authentication stands for may not do that. Do not repeat it; ask the person.".to_owned(),
        ),
        404 | 410 => {
            (NotFound, "There is no such thing, or it is not to be seen. Look for its right id or name first.".to_owned())
        }
        405 | 501 => (ExecutionFailed, "The API does not do that here; use another tool.".to_owned()),
        408 => (Timeout, format!("The API waited too long.{}", again(operation))),
        409 | 412 | 423 | 428 => {
            (ExecutionFailed, "It does not fit what is there now. Read the present state, then decide anew.".to_owned())
        }
        413 => wrong("What was sent is too large; send less."),
        425 | 429 => (Unavailable, format!("That is too much at once. {}", later(answer))),
        400..=499 => wrong("Correct the arguments as it says, then call it again."),
        503 => (Unavailable, format!("The API is not there for now. {}{}", later(answer), again(operation))),
        504 => (Timeout, format!("The API did not answer in time.{}", again(operation))),
        _ => (ExecutionFailed, format!("That is the API's own fault. {}{}", later(answer), again(operation))),
    }
}

/// When to try once more.
fn later(answer: &Answer) -> String {
    match answer.header(RETRY_AFTER.as_str()).map(str::trim) {
        Some(text) if text.parse::<u32>().is_ok() => format!("Try again in {text} s, not sooner."),
        Some(date) if !date.is_empty() => format!("Try again after {}, not sooner.", shortened(date, 60)),
        Some(_) | None => "Try once more later, or tell the person.".to_owned(),
    }
}

/// What is to be thought of where it is not known what happened.
pub(super) fn again(operation: &Operation) -> &'static str {
    if operation.may_change() { " It may have happened all the same: look before you repeat it." } else { "" }
}

/// What the API says of its error, on one line; a page for people says nothing.
fn said(answer: &Answer) -> Option<String> {
    let kind = answer.media_type();
    if answer.body.is_empty() || kind.contains("html") || !is_text(&kind, &answer.body) {
        return None;
    }
    let text = match serde_json::from_slice::<Value>(&answer.body) {
        Ok(value) => value.to_string(),
        Err(_) => text(answer)?,
    };
    Some(shortened(&text, MAX_SAID)).filter(|text| !text.is_empty())
}
