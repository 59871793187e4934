//! What people say and tools give back.

use turnwright_core::{CallId, ContentBlock, EmbeddedResource, Outcome, ToolErrorKind, ToolResult};

use super::features::Features;
use super::random::Random;

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const JPEG: &str = "/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP//////";
const PDF: &str = "JVBERi0xLjQKJeLjz9MK";

pub(crate) const TEXTS: [&str; 8] = [
    "What is the weather in Zürich?",
    "x",
    "Two\nlines and a \"quote\"",
    "日本語 and 🦀",
    "back\\slash \u{1} control",
    "ends with a space ",
    " \n",
    "",
];

/// Blocks of a user message: at least one.
pub(crate) fn said(random: &mut Random, features: &mut Features) -> Vec<ContentBlock> {
    let mut blocks = vec![ContentBlock::text(*random.pick(&TEXTS))];
    if random.percent(25) {
        blocks.push(media(random, features, "in a user message"));
    }
    if random.percent(10) {
        blocks.swap_remove(0);
        if blocks.is_empty() {
            blocks.push(media(random, features, "in a user message"));
        }
    }
    if random.percent(10) {
        blocks.push(ContentBlock::text(*random.pick(&TEXTS)));
    }
    if blocks.iter().all(|block| matches!(block, ContentBlock::Text { text } if text.trim().is_empty())) {
        features.saw("a user message of nothing");
    }
    blocks
}

/// Something that is not text.
fn media(random: &mut Random, features: &mut Features, _: &str) -> ContentBlock {
    let image = |data: &str, mime_type: &str| ContentBlock::Image { data: data.to_owned(), mime_type: mime_type.to_owned() };
    let resource = |uri: &str, mime_type: Option<&str>, text: Option<&str>, blob: Option<&str>| ContentBlock::Resource {
        resource: EmbeddedResource {
            uri: uri.to_owned(),
            mime_type: mime_type.map(str::to_owned),
            text: text.map(str::to_owned),
            blob: blob.map(str::to_owned),
        },
    };
    let (feature, block) = match random.below(16) {
        0 | 1 => ("an image", image(PNG, "image/png")),
        2 => ("an image", image(JPEG, "image/jpeg")),
        3 => ("an image of another type than it says", image(PNG, "image/jpeg")),
        4 => ("an image of a type that no API takes", image("Qk0aAAAA", "image/bmp")),
        5 => ("an image that is no base64", image("not base64!", "image/png")),
        6 => ("an image of nothing", image("", "image/png")),
        7 | 8 => ("a PDF", resource("file:///a/report.pdf", Some("application/pdf"), None, Some(PDF))),
        9 => ("a PDF without a name", resource("memo:/", Some("application/pdf"), None, Some(PDF))),
        10 => ("a text resource", resource("file:///notes.txt", Some("text/plain"), Some("some notes"), None)),
        11 => ("an image resource", resource("file:///a.png", Some("image/png"), None, Some(PNG))),
        12 => ("a binary resource", resource("file:///a.zip", Some("application/zip"), None, Some("UEsDBAAA"))),
        13 => ("a resource of nothing", resource("file:///empty", None, None, None)),
        14 => ("audio", ContentBlock::Audio { data: "UklGRgAAAABXQVZF".to_owned(), mime_type: "audio/wav".to_owned() }),
        _ => {
            let link = ContentBlock::ResourceLink {
                uri: "https://example.org/x".to_owned(),
                name: "x".to_owned(),
                title: None,
                description: None,
                mime_type: Some("text/html".to_owned()),
                size: None,
            };
            ("a link to a resource", link)
        }
    };
    features.saw(feature);
    block
}

/// What a tool gives back.
pub(crate) fn result(random: &mut Random, features: &mut Features, call: CallId) -> ToolResult {
    use ToolErrorKind as K;
    const KINDS: [ToolErrorKind; 8] = [
        K::InvalidArguments,
        K::NotFound,
        K::PermissionDenied,
        K::ExecutionFailed,
        K::Timeout,
        K::Cancelled,
        K::Unavailable,
        K::Interrupted,
    ];
    let outcome = if random.percent(75) { Outcome::Success } else { Outcome::Error(*random.pick(&KINDS)) };
    let mut result = ToolResult::of(call, outcome, "");
    result.content.clear();
    for _ in 0..*random.pick(&[0, 1, 1, 1, 1, 2, 3]) {
        let block =
            if random.percent(70) { ContentBlock::text(*random.pick(&TEXTS)) } else { media(random, features, "in a result") };
        features.saw(match &block {
            ContentBlock::Image { .. } => "an image in a result",
            ContentBlock::Resource { .. } => "a resource in a result",
            _ => "another block in a result",
        });
        result.content.push(block);
    }
    if random.percent(20) {
        features.saw("structured content");
        result.structured_content = Some(serde_json::json!({"rows": [1, "two", null], "nested": {"ü": true}}));
    }
    if result.content.is_empty() {
        features.saw("an empty result");
        if outcome.is_error() {
            features.saw("an empty failed result");
        }
    }
    if outcome.is_error() {
        features.saw("a failed result");
    }
    result
}
