//! Images and files of a request that its provider does not take, without them.
//!
//! What was said stays in the conversation and goes out with every later request: what is refused once would end it. They are
//! found again by what they are, not by where they stand, so that shortening a conversation changes nothing.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use serde_json::value::RawValue;
use turnwright_core::{ProviderFailure, ProviderFailureKind};

use crate::media_size;
use crate::optional::{Members, place};

/// The largest side of an image where a request has many, in pixels (Messages API, "Vision").
const MANY_IMAGES_SIDE: u32 = 2000;
/// What stands for them, in base64, where a format takes no text.
const WORDS_IN_BASE64: &str = "W2xlZnQgb3V0LCBzaW5jZSB0aGUgbW9kZWwncyBwcm92aWRlciBkb2VzIG5vdCB0YWtlIGl0XQ==";

/// Which image or file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaMark(u64);

/// A request without images or files that were refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithoutMedia {
    /// The body.
    pub body: Vec<u8>,
    /// What it is without.
    pub left_out: Vec<MediaMark>,
}

/// The body without the images or files that `failure` refuses, with words in their place: those that it names, else those
/// of the newest message that has some, else, where the request is too large, all but those of the newest message. `None`
/// where it refuses something else, or there are none.
pub fn without_refused_media(body: &[u8], failure: &ProviderFailure) -> Option<WithoutMedia> {
    let message = failure.message.to_lowercase().replace("documentation", "");
    let is_too_large = failure.kind == ProviderFailureKind::TooLarge;
    let is_refusal = match failure.kind {
        ProviderFailureKind::InvalidRequest => SIGNS.iter().any(|sign| message.contains(sign)),
        ProviderFailureKind::Server => SERVER_SIGNS.iter().any(|sign| message.contains(sign)),
        _ => false,
    };
    if !is_too_large && !is_refusal {
        return None;
    }
    let text = std::str::from_utf8(body).ok()?;
    let found = Media::all(text);
    let param = failure.said.as_ref().and_then(|said| said.param.as_deref()).unwrap_or_default();
    let named = [param, message.as_str()].into_iter().filter_map(path).find(|path| found.iter().any(|one| one.is_at(path)));
    let newest = found.last()?.path.first().copied();
    let is_refused = |one: &Media<'_>| {
        if is_too_large {
            return one.path.first().copied() != last_message(text);
        }
        if message.contains("many-image") {
            return media_size::of_base64(one.base64()).is_some_and(|(width, height)| width.max(height) > MANY_IMAGES_SIDE);
        }
        named.as_ref().map_or(one.path.first().copied() == newest, |path| one.is_at(path))
    };
    let left_out = found.iter().filter(|one| is_refused(one)).map(Media::mark).collect();
    Some(WithoutMedia { body: replaced(text, &found, is_refused)?, left_out })
}

/// The body of a later request without what was refused; `None` where it has nothing of it.
pub fn still_without_media(body: &[u8], left_out: &[MediaMark]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(body).ok()?;
    let found = Media::all(text);
    replaced(text, &found, |one| left_out.contains(&one.mark()))
}

/// What a refusal of an image or a file says, in lower case.
const SIGNS: [&str; 9] =
    ["image", "pdf", "document", "inline_data", "inlinedata", "file_data", "input_file", "audio", "mime type"];

/// The same of servers that fail at what they refuse (Ollama, llama.cpp).
const SERVER_SIGNS: [&str; 5] = [
    "image input is not supported",
    "image: unknown format",
    "invalid image input",
    "failed to load image",
    "missing data required for image input",
];

/// Where the lists of messages are, as the formats name them.
const LISTS: [&str; 3] = ["messages", "input", "contents"];

/// The numbers of the first place that a text names, such as `messages.3.content.1.image`, `input[3].content[1]` or
/// `contents[3].parts[1].inline_data`.
fn path(text: &str) -> Option<Vec<usize>> {
    let is_list = |word: &str| LISTS.contains(&word);
    let is_of_path = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '[' | ']');
    text.split(|c: char| !is_of_path(c)).find_map(|word| {
        let mut steps = word.split(['.', '[', ']']).filter(|step| !step.is_empty());
        steps.next().filter(|first| is_list(first))?;
        let numbers: Vec<usize> = steps.filter_map(|step| step.parse().ok()).collect();
        (!numbers.is_empty()).then_some(numbers)
    })
}

/// The place of the newest message.
fn last_message(text: &str) -> Option<usize> {
    let Members(members) = serde_json::from_str(text).ok()?;
    let (_, list) = members.into_iter().find(|(name, _)| LISTS.contains(&name.as_str()))?;
    let messages: Vec<&RawValue> = serde_json::from_str(list.get()).ok()?;
    messages.len().checked_sub(1)
}

/// The text without those of `found` that are refused; `None` where none is.
fn replaced(text: &str, found: &[Media<'_>], is_refused: impl Fn(&Media<'_>) -> bool) -> Option<Vec<u8>> {
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for one in found.iter().filter(|one| is_refused(one)) {
        match &one.place {
            Place::Block => edits.push((one.range.clone(), one.words.clone())),
            Place::Beside { list, content_end } => {
                let of_list = |other: &&Media<'_>| matches!(&other.place, Place::Beside { list: of, .. } if of == list);
                if !edits.iter().any(|(range, _)| range == list) {
                    let kept = found.iter().filter(of_list).filter(|other| !is_refused(other));
                    let kept: Vec<&str> = kept.filter_map(|other| text.get(other.range.clone())).collect();
                    edits.push((list.clone(), format!("[{}]", kept.join(","))));
                }
                edits.push((*content_end..*content_end, one.words.clone()));
            }
        }
    }
    if edits.is_empty() {
        return None;
    }
    edits.sort_by_key(|(range, _)| range.start);
    let mut out = Vec::with_capacity(text.len());
    let mut end = 0;
    for (range, words) in edits {
        out.extend_from_slice(text.get(end..range.start)?.as_bytes());
        out.extend_from_slice(words.as_bytes());
        end = range.end;
    }
    out.extend_from_slice(text.get(end..)?.as_bytes());
    Some(out)
}

/// How something is in a request.
#[derive(Debug)]
enum Place {
    /// As a block among those of its message.
    Block,
    /// In a list beside the text of its message, which ends before a quotation mark (Ollama).
    Beside { list: Range<usize>, content_end: usize },
}

/// An image or a file in a request.
#[derive(Debug)]
struct Media<'a> {
    range: Range<usize>,
    place: Place,
    /// The numbers of the elements that it is in, from the message on.
    path: Vec<usize>,
    /// What it is.
    content: &'a str,
    /// What stands in its place.
    words: String,
}

impl<'a> Media<'a> {
    fn all(text: &'a str) -> Vec<Self> {
        let mut found = Vec::new();
        if let Ok(Members(members)) = serde_json::from_str::<Members<'a>>(text) {
            for (name, value) in members {
                if LISTS.contains(&name.as_str()) {
                    find(text, value, &mut Vec::new(), false, &mut found);
                }
            }
        }
        found
    }

    fn is_at(&self, path: &[usize]) -> bool {
        self.path.iter().zip(path).all(|(own, named)| own == named)
    }

    fn mark(&self) -> MediaMark {
        let mut hasher = DefaultHasher::new();
        self.content.hash(&mut hasher);
        MediaMark(hasher.finish())
    }

    /// Its bytes in base64: the longest text in it.
    fn base64(&self) -> &'a str {
        let longest = self.content.split('"').max_by_key(|text| text.len()).unwrap_or_default();
        longest.split_once(";base64,").map_or(longest, |(_, data)| data)
    }
}

/// Finds what is in `value`, a part of `text` at `path`.
fn find<'a>(text: &str, value: &'a RawValue, path: &mut Vec<usize>, is_response: bool, found: &mut Vec<Media<'a>>) {
    const INSIDE: [&str; 4] = ["content", "output", "parts", "functionResponse"];
    if value.get().starts_with('[') {
        let Ok(elements) = serde_json::from_str::<Vec<&'a RawValue>>(value.get()) else { return };
        for (at, element) in elements.into_iter().enumerate() {
            path.push(at);
            find(text, element, path, is_response, found);
            path.pop();
        }
        return;
    }
    if !value.get().starts_with('{') {
        return;
    }
    let Ok(Members(members)) = serde_json::from_str::<Members<'a>>(value.get()) else { return };
    if let Some((content, words)) = media(&members, is_response) {
        found.push(Media { range: place(text, value), place: Place::Block, path: path.clone(), content, words });
        return;
    }
    beside(text, &members, path, found);
    for (name, inner) in members {
        if INSIDE.contains(&name.as_str()) {
            find(text, inner, path, name == "functionResponse" || is_response, found);
        }
    }
}

/// Finds the images beside the text of a message.
fn beside<'a>(text: &str, members: &[(String, &'a RawValue)], path: &[usize], found: &mut Vec<Media<'a>>) {
    let member = |wanted: &str| members.iter().find(|(name, _)| name == wanted).map(|(_, value)| *value);
    let (Some(images), Some(content)) = (member("images"), member("content")) else { return };
    let Ok(elements) = serde_json::from_str::<Vec<&'a RawValue>>(images.get()) else { return };
    if !content.get().starts_with('"') {
        return;
    }
    let list = place(text, images);
    let content_end = place(text, content).end.saturating_sub(1);
    for (at, element) in elements.into_iter().enumerate() {
        found.push(Media {
            range: place(text, element),
            place: Place::Beside { list: list.clone(), content_end },
            path: path.iter().copied().chain([at]).collect(),
            content: element.get(),
            words: format!("\\n{}", words("image")),
        });
    }
}

/// The content of a block that is an image or a file, and the block that stands for it.
fn media<'a>(members: &[(String, &'a RawValue)], is_response: bool) -> Option<(&'a str, String)> {
    let member = |wanted: &str| members.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.get());
    if let Some(data) = member("inlineData") {
        if is_response {
            // A response takes files alone.
            let words = format!(r#"{{"inlineData":{{"mimeType":"text/plain","data":"{WORDS_IN_BASE64}"}}}}"#);
            return Some((data, words));
        }
        return Some((data, format!(r#"{{"text":"{}"}}"#, words("file"))));
    }
    let (inside, kind, text) = match member("type")?.trim_matches('"') {
        "image" => ("source", "image", "text"),
        "document" => ("source", "document", "text"),
        "input_image" => ("image_url", "image", "input_text"),
        "input_file" => ("file_data", "file", "input_text"),
        "image_url" => ("image_url", "image", "text"),
        "file" => ("file", "file", "text"),
        "document_url" => ("document_url", "document", "text"),
        "input_audio" => ("input_audio", "sound", "text"),
        _ => return None,
    };
    let cached = member("cache_control").map_or(String::new(), |mark| format!(r#","cache_control":{mark}"#));
    Some((member(inside)?, format!(r#"{{"type":"{text}","text":"{}"{cached}}}"#, words(kind))))
}

fn words(kind: &str) -> String {
    format!("[{kind}, left out, since the model's provider does not take it]")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn refusal(message: &str) -> ProviderFailure {
        let kind = ProviderFailureKind::InvalidRequest;
        ProviderFailure { status: Some(400), ..ProviderFailure::new(kind, message) }
    }

    fn image(data: &str) -> Value {
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}})
    }

    /// Which of the images `a` to `d` are left.
    fn left(body: &[u8]) -> String {
        let body: Value = serde_json::from_slice(body).unwrap();
        ["a", "b", "c", "d"].into_iter().filter(|data| body.to_string().contains(&format!("\"{data}\""))).collect()
    }

    fn body() -> Vec<u8> {
        let call = json!({"type": "tool_use", "id": "t", "name": "f", "input": {"content": [image("d")]}});
        let body = json!({"messages": [
            {"role": "user", "content": [{"type": "text", "text": "messages.0"}, image("a"), image("b")]},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [image("c")]}]},
            {"role": "assistant", "content": "Well."},
        ]});
        body.to_string().into_bytes()
    }

    #[test]
    fn what_is_refused_is_what_is_named_or_what_came_last() {
        let without = |message: &str| without_refused_media(&body(), &refusal(message)).map(|without| left(&without.body));
        let table = [
            ("messages.0.content.1.image.source.base64.data: Could not process image", "bcd"),
            ("messages.0.content.2.image: Could not process image", "acd"),
            ("messages.2.content.0.tool_result.content.0.image: Could not process image", "abd"),
            ("messages.0: image exceeds 5 MB", "cd"),
            ("Could not process image", "abd"),
            ("messages.9.content.0.image: Could not process image", "abd"),
        ];
        for (message, expected) in table {
            assert_eq!(without(message).as_deref(), Some(expected), "{message}");
        }
        for message in ["no", "see the documentation", "many-image requests: the image dimensions exceed 2000 pixels"] {
            assert_eq!(without(message), None, "{message}");
        }
        let failed = ProviderFailure { kind: ProviderFailureKind::Server, ..refusal("image") };
        assert_eq!(without_refused_media(&body(), &failed), None);
    }

    #[test]
    fn a_request_that_is_too_large_is_sent_without_what_is_older() {
        let too_large = ProviderFailure { kind: ProviderFailureKind::TooLarge, ..refusal("request_too_large") };
        let without = without_refused_media(&body(), &too_large).unwrap();
        assert_eq!((left(&without.body).as_str(), without.left_out.len()), ("d", 3));
        let newest = json!({"messages": [{"role": "user", "content": [image("a")]}]}).to_string();
        assert_eq!(without_refused_media(newest.as_bytes(), &too_large), None);
    }

    #[test]
    fn an_image_beside_the_text_of_a_message_is_told_at_its_end() {
        let body = json!({"model": "m", "messages": [
            {"role": "user", "content": "Say \"what\".", "images": ["a", "b"]},
            {"role": "assistant", "content": "So."},
            {"role": "tool", "content": "c", "images": ["c"]},
        ]});
        let text = body.to_string();
        let failed = |kind, message: &str| ProviderFailure::new(kind, message);
        let unknown = failed(ProviderFailureKind::Server, "failed to process inputs: image: unknown format");
        let newest = without_refused_media(text.as_bytes(), &unknown).unwrap();
        let words = "[image, left out, since the model's provider does not take it]";
        let mut expected = body.clone();
        expected["messages"][2] = json!({"role": "tool", "content": format!("c\n{words}"), "images": []});
        assert_eq!(serde_json::from_slice::<Value>(&newest.body).unwrap(), expected);
        // Asked again without it, the older ones are refused too.
        let all = without_refused_media(&newest.body, &unknown).unwrap();
        let told = format!("Say \"what\".\n{words}\n{words}");
        expected["messages"][0] = json!({"role": "user", "content": told, "images": []});
        assert_eq!(serde_json::from_slice::<Value>(&all.body).unwrap(), expected);
        let mut first = body;
        first["messages"][0] = json!({"role": "user", "content": format!("Say \"what\".\n{words}"), "images": ["b"]});
        let mark = Media::all(&text).first().unwrap().mark();
        assert_eq!(serde_json::from_slice::<Value>(&still_without_media(text.as_bytes(), &[mark]).unwrap()).unwrap(), first);
        let down = failed(ProviderFailureKind::Server, "image runner is gone");
        assert_eq!(without_refused_media(text.as_bytes(), &down), None);
    }

    #[test]
    fn of_many_images_the_large_ones_are_left_out() {
        // 200 × 9000 and 1 × 1 pixels.
        let (tall, small) = ("iVBORw0KGgoAAAANSUhEUgAAAMgAACMoCAIAAAA=", "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAA=");
        let body = json!({"messages": [{"role": "user", "content": [image(tall), image(small)]}]}).to_string();
        let failure =
            refusal("messages.0.content.1: image dimensions exceed max allowed size for many-image requests: 2000 pixels");
        let sent = String::from_utf8(without_refused_media(body.as_bytes(), &failure).unwrap().body).unwrap();
        assert!(!sent.contains(tall) && sent.contains(small), "{sent}");
    }

    #[test]
    fn what_was_refused_is_found_again_wherever_it_stands() {
        let without = without_refused_media(&body(), &refusal("messages.0.content.1.image: no image")).unwrap();
        let mut marked = image("a");
        marked["cache_control"] = json!({"type": "ephemeral"});
        let later = json!({"messages": [{"role": "user", "content": [image("b"), marked]}]}).to_string();
        let later: Value = serde_json::from_slice(&still_without_media(later.as_bytes(), &without.left_out).unwrap()).unwrap();
        let text = "[image, left out, since the model's provider does not take it]";
        let words = json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}});
        assert_eq!(later["messages"][0]["content"], json!([image("b"), words]));
        assert_eq!(still_without_media(b"{\"messages\":[]}", &without.left_out), None);
    }
}
