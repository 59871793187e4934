//! A request whose thought signatures the provider does not take, without them.

use serde_json::value::RawValue;
use turnwright_core::ProviderFailure;

use super::message::NO_SIGNATURE;
use crate::dialect::Mended;
use crate::optional::{Members, place};

/// Whether a request may succeed without its signatures: they belong to another project, or do not hold any more.
pub(super) fn is_refused(failure: &ProviderFailure) -> bool {
    let message = failure.message.to_lowercase().replace('_', " ");
    failure.status == Some(400) && message.contains("thought signature")
}

/// The body without the signatures of its first `first` contents: the first call of each has the word that stands for one.
/// `None` where there are none.
pub(super) fn without_signatures(body: &[u8], first: usize) -> Option<Mended> {
    let text = std::str::from_utf8(body).ok()?;
    let Members(members) = serde_json::from_str(text).ok()?;
    let (_, contents) = members.into_iter().find(|(name, _)| name == "contents")?;
    let contents: Vec<&RawValue> = serde_json::from_str(contents.get()).ok()?;
    let messages = contents.len();
    let mut out = Vec::with_capacity(body.len());
    let mut end = 0;
    for content in contents.into_iter().take(first) {
        let Members(members) = serde_json::from_str(content.get()).ok()?;
        let Some((_, parts)) = members.into_iter().find(|(name, _)| name == "parts") else { continue };
        let parts: Vec<&RawValue> = serde_json::from_str(parts.get()).ok()?;
        let mut has_called = false;
        for part in parts {
            let Members(members) = serde_json::from_str(part.get()).ok()?;
            let is_call = members.iter().any(|(name, _)| name == "functionCall");
            let is_first_call = is_call && !has_called;
            has_called |= is_call;
            let is_signature = |name: &str| matches!(name, "thoughtSignature" | "thought_signature");
            let Some((_, own)) = members.iter().find(|(name, _)| is_signature(name)) else { continue };
            if is_first_call && own.get().trim_matches('"') == NO_SIGNATURE {
                continue;
            }
            let kept = members.iter().filter(|(name, _)| !is_signature(name));
            let mut kept: Vec<String> = kept.map(|(name, value)| format!("\"{name}\":{}", value.get())).collect();
            if is_first_call {
                kept.push(format!("\"thoughtSignature\":\"{NO_SIGNATURE}\""));
            }
            // A part is one of something; what was a signature alone is an empty text.
            if kept.is_empty() {
                kept.push("\"text\":\"\"".to_owned());
            }
            let range = place(text, part);
            out.extend_from_slice(text.get(end..range.start)?.as_bytes());
            out.extend_from_slice(format!("{{{}}}", kept.join(",")).as_bytes());
            end = range.end;
        }
    }
    if end == 0 {
        return None;
    }
    out.extend_from_slice(text.get(end..)?.as_bytes());
    Some(Mended { body: out, messages })
}
