//! A request whose thought signatures the provider does not take, without them.

use serde_json::{Map, Value};
use turnwright_core::ProviderFailure;

use super::message::NO_SIGNATURE;
use crate::dialect::Mended;

/// Whether a request may succeed without its signatures: they are of another project or time.
pub(super) fn is_refused(failure: &ProviderFailure) -> bool {
    let message = failure.message.to_lowercase().replace('_', " ");
    failure.status == Some(400)
        && ["corrupted thought signature", "invalid thought signature", "thought signature is not valid"]
            .iter()
            .any(|sign| message.contains(sign))
}

/// The body without the signatures of its first contents; `None` where they have none.
pub(super) fn without_signatures(body: &[u8], first: usize) -> Option<Mended> {
    let mut body: Value = serde_json::from_slice(body).ok()?;
    let contents = body.get_mut("contents")?.as_array_mut()?;
    let messages = contents.len();
    let mut has_changed = false;
    for content in contents.iter_mut().take(first) {
        let Some(parts) = content.get_mut("parts").and_then(Value::as_array_mut) else { continue };
        for part in parts.iter_mut().filter_map(Value::as_object_mut) {
            has_changed |= unsign(part);
        }
        // Of some nothing is left; a content needs a part.
        if parts.iter().any(|part| !is_empty(part)) {
            parts.retain(|part| !is_empty(part));
        }
    }
    if !has_changed {
        return None;
    }
    Some(Mended { body: serde_json::to_vec(&body).ok()?, messages })
}

/// Takes the signature away; a call that had one must have what stands for it. Whether it had one.
fn unsign(part: &mut Map<String, Value>) -> bool {
    let signature = [part.remove("thoughtSignature"), part.remove("thought_signature")].into_iter().flatten().next();
    let is_call = part.contains_key("functionCall") || part.contains_key("function_call");
    if signature.is_some() && is_call {
        part.insert("thoughtSignature".to_owned(), NO_SIGNATURE.into());
    }
    signature.is_some_and(|signature| signature != NO_SIGNATURE || !is_call)
}

fn is_empty(part: &Value) -> bool {
    part.as_object().is_some_and(|part| {
        part.iter().all(|(name, value)| matches!(name.as_str(), "thought" | "text") && value.as_str().is_none_or(str::is_empty))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnwright_core::ProviderFailureKind;

    use super::*;
    use crate::dialect::Dialect;
    use crate::gemini::Gemini;

    fn refused(text: &str) -> ProviderFailure {
        ProviderFailure { status: Some(400), ..ProviderFailure::new(ProviderFailureKind::InvalidRequest, text) }
    }

    fn body(first: &Value) -> Vec<u8> {
        let later = json!({"role": "model", "parts": [{"text": "New.", "thoughtSignature": "new"}]});
        let question = json!({"role": "user", "parts": [{"text": "Hi"}]});
        json!({"contents": [question, {"role": "model", "parts": first}, question, later]}).to_string().into_bytes()
    }

    #[test]
    fn signatures_that_are_refused_are_left_out_and_calls_have_what_stands_for_theirs() {
        let call = |signature: &str| json!({"functionCall": {"name": "f"}, "thoughtSignature": signature});
        let signed = json!([
            {"text": "So.", "thoughtSignature": "a"}, {"thoughtSignature": "b"}, call("c"), {"functionCall": {"name": "g"}},
        ]);
        let unsigned = json!([{"text": "So."}, call(NO_SIGNATURE), {"functionCall": {"name": "g"}}]);
        for text in ["Corrupted thought signature.", "Invalid thought_signature."] {
            let mended = Gemini.mended(&body(&signed), &refused(text)).unwrap();
            let contents: Value = serde_json::from_slice::<Value>(&mended.body).unwrap()["contents"].take();
            assert_eq!((mended.messages, &contents[1]["parts"]), (4, &unsigned));
            assert_eq!(contents[3]["parts"], json!([{"text": "New."}]));
            // It is not mended twice.
            assert_eq!(Gemini.mended(&mended.body, &refused(text)), None);
        }
        assert_eq!(Gemini.mended(&body(&signed), &refused("max_tokens: required")), None);
        let later = Gemini.still_mended(&body(&signed), 2).unwrap();
        let contents: Value = serde_json::from_slice::<Value>(&later).unwrap()["contents"].take();
        assert_eq!((&contents[1]["parts"], &contents[3]["parts"][0]["thoughtSignature"]), (&unsigned, &json!("new")));
        assert_eq!(Gemini.still_mended(&body(&unsigned), 2), None, "there is nothing to leave out");
    }
}
