//! A request whose pictures or documents the provider does not take, with words in their place.
//!
//! What came into a conversation stays in it, so one picture that is too tall, or cut off, would have every later turn refused.

use serde_json::{Value, json};
use turnwright_core::ProviderFailure;

use crate::dialect::Mended;

/// What the model is told of what it is not shown.
const IMAGE: &str = "[an image that the provider did not take]";
const DOCUMENT: &str = "[a document that the provider did not take]";

/// How many pictures of any size that is taken a request may hold.
const MAX_LARGE_IMAGES: usize = 20;

/// What a refusal is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    /// One picture, or all of them where it is not said which.
    Image,
    /// There are too many for their size.
    ManyImages,
    /// One document, or all of them.
    Document,
}

impl About {
    fn of(failure: &ProviderFailure) -> Option<Self> {
        const IMAGES: [&str; 4] = [
            "image dimensions exceed",
            "could not process image",
            "image exceeds",
            "image does not match the provided media type",
        ];
        const DOCUMENTS: [&str; 3] = ["pdf specified", "could not process pdf", "pdf pages"];
        let message = failure.message.to_lowercase();
        let says = |signs: &[&str]| signs.iter().any(|sign| message.contains(sign));
        match failure.status {
            Some(400) if message.contains("many-image requests") => Some(Self::ManyImages),
            Some(400) if says(&IMAGES) => Some(Self::Image),
            Some(400) if says(&DOCUMENTS) => Some(Self::Document),
            _ => None,
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Image | Self::ManyImages => "image",
            Self::Document => "document",
        }
    }
}

/// The body without what was refused of it; `None` where nothing of that kind was, or is there. Later requests bring it again:
/// nothing is remembered of it.
pub(super) fn mended(body: &[u8], failure: &ProviderFailure) -> Option<Mended> {
    let about = About::of(failure)?;
    let mut body: Value = serde_json::from_slice(body).ok()?;
    let is_named = about != About::ManyImages && named(&mut body, &failure.message, about.kind()).map(hide).is_some();
    if !is_named {
        let mut found = Vec::new();
        gather(body.get_mut("messages")?, about.kind(), &mut found);
        let kept = if about == About::ManyImages { MAX_LARGE_IMAGES } else { 0 };
        let hidden = found.len().saturating_sub(kept);
        if hidden == 0 {
            return None;
        }
        found.into_iter().take(hidden).for_each(hide);
    }
    Some(Mended { body: serde_json::to_vec(&body).ok()?, messages: 0 })
}

/// The block of this kind that a message names by its place, such as `messages.1.content.0.image: …`.
fn named<'a>(body: &'a mut Value, message: &str, kind: &str) -> Option<&'a mut Value> {
    let path = message.get(message.find("messages.")?..)?.split([':', ' ']).next()?;
    let mut place = body;
    for step in path.split('.') {
        if is_of(place, kind) {
            return Some(place);
        }
        if place.is_array() {
            place = place.get_mut(step.parse::<usize>().ok()?)?;
        } else if place.get(step).is_some() {
            place = place.get_mut(step)?;
        }
        // Else it is the name of a block's type, which stands in the path too.
    }
    is_of(place, kind).then_some(place)
}

/// All blocks of this kind, the oldest first, also within results.
fn gather<'a>(value: &'a mut Value, kind: &str, found: &mut Vec<&'a mut Value>) {
    if is_of(value, kind) {
        found.push(value);
        return;
    }
    match value {
        Value::Array(all) => all.iter_mut().for_each(|one| gather(one, kind, found)),
        Value::Object(members) => {
            if let Some(content) = members.get_mut("content") {
                gather(content, kind, found);
            }
        }
        _ => {}
    }
}

fn is_of(block: &Value, kind: &str) -> bool {
    block.get("type").and_then(Value::as_str) == Some(kind)
}

/// Puts words in the place of a block, which stays the one up to which the prompt is kept.
fn hide(block: &mut Value) {
    let text = if is_of(block, "image") { IMAGE } else { DOCUMENT };
    let mut words = json!({"type": "text", "text": text});
    if let (Some(kept), Some(members)) = (block.get("cache_control").cloned(), words.as_object_mut()) {
        members.insert("cache_control".to_owned(), kept);
    }
    *block = words;
}

#[cfg(test)]
mod tests {
    use turnwright_core::ProviderFailureKind;

    use super::*;

    fn refused(text: &str) -> ProviderFailure {
        ProviderFailure { status: Some(400), ..ProviderFailure::new(ProviderFailureKind::InvalidRequest, text) }
    }

    fn image(name: usize) -> Value {
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": name.to_string()}})
    }

    /// A picture of a person's, one of a tool's, and a document.
    fn body() -> Value {
        let result =
            json!({"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "drawn"}, image(2)]});
        let document = json!({"type": "document", "source": {}, "cache_control": {"type": "ephemeral"}});
        json!({"messages": [
            {"role": "user", "content": [{"type": "text", "text": "Look"}, image(1)]},
            {"role": "assistant", "content": "So."},
            {"role": "user", "content": [result, document]},
        ]})
    }

    fn after(message: &str) -> Option<Value> {
        let mended = mended(body().to_string().as_bytes(), &refused(message))?;
        assert_eq!(mended.messages, 0);
        Some(serde_json::from_slice(&mended.body).unwrap())
    }

    fn with(changes: &[(&str, Value)]) -> Value {
        let mut body = body();
        for (place, block) in changes {
            *body.pointer_mut(place).unwrap() = block.clone();
        }
        body
    }

    #[test]
    fn what_is_refused_by_its_place_is_told_in_words_and_all_else_stays() {
        let words = json!({"type": "text", "text": IMAGE});
        let (own, of_tool) = ("/messages/0/content/1", "/messages/2/content/0/content/1");
        assert_eq!(
            after(
                "messages.0.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels"
            ),
            Some(with(&[(own, words.clone())]))
        );
        assert_eq!(
            after("messages.2.content.0.tool_result.content.1.image: Could not process image"),
            Some(with(&[(of_tool, words.clone())]))
        );
        assert_eq!(after("Could not process image"), Some(with(&[(own, words.clone()), (of_tool, words)])));
        let words = json!({"type": "text", "text": DOCUMENT, "cache_control": {"type": "ephemeral"}});
        assert_eq!(
            after("messages.2.content.1.pdf.source.base64.data: The PDF specified is password protected."),
            Some(with(&[("/messages/2/content/1", words)]))
        );
        assert_eq!(after("max_tokens: required"), None);
    }

    #[test]
    fn of_too_many_pictures_the_newest_stay() {
        let content: Vec<Value> = (0..23).map(image).collect();
        let body = json!({"messages": [{"role": "user", "content": content}]}).to_string();
        let failure = refused(
            "messages.0.content.22.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels",
        );
        let mended = mended(body.as_bytes(), &failure).unwrap().body;
        let content = serde_json::from_slice::<Value>(&mended).unwrap()["messages"][0]["content"].take();
        let kept: Vec<&Value> = content.as_array().unwrap().iter().filter(|block| is_of(block, "image")).collect();
        assert_eq!((kept.len(), kept[0]), (20, &image(3)));
        assert_eq!(super::mended(&mended, &failure), None, "it is not mended twice");
    }
}
