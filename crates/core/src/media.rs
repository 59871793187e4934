//! What an opaque block holds for people: a picture or a sound that a model answered with.
//!
//! Such a block stays its provider's own, byte for byte (law 4). Bytes in base64 beside their media type are understood
//! without knowing whose they are; nothing of them is stored a second time. *Not here:* what other models are shown.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;

use crate::{AssistantBlock, AssistantMessage, NativeBlock};

/// A picture, a sound or another file in a model's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media<'a> {
    /// Such as `image/png`.
    pub mime_type: Cow<'a, str>,
    /// The bytes in base64.
    pub data: Cow<'a, str>,
}

impl Media<'_> {
    /// The bytes as a `data:` address.
    pub fn url(&self) -> String {
        format!("data:{};base64,{}", self.mime_type, self.data)
    }

    /// What it is, by its media type.
    pub fn kind(&self) -> MediaKind {
        match self.mime_type.split_once('/') {
            Some(("image", _)) => MediaKind::Image,
            Some(("audio", _)) => MediaKind::Audio,
            _ => MediaKind::Other,
        }
    }
}

/// What bytes are to people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaKind {
    /// A picture.
    Image,
    /// A sound.
    Audio,
    /// Something else, such as a film.
    Other,
}

/// In words, as `[image, image/png]`.
impl fmt::Display for Media<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind() {
            MediaKind::Image => "image",
            MediaKind::Audio => "audio",
            MediaKind::Other => "file",
        };
        write!(f, "[{kind}, {}]", self.mime_type)
    }
}

/// A native block, as far as it matters here.
#[derive(Deserialize)]
struct Holder<'a> {
    #[serde(borrow, alias = "inline_data", rename = "inlineData")]
    inline: Inline<'a>,
    /// A draft that the model made while it thought.
    #[serde(default)]
    thought: bool,
}

#[derive(Deserialize)]
struct Inline<'a> {
    #[serde(borrow, alias = "mime_type", rename = "mimeType")]
    mime_type: Cow<'a, str>,
    #[serde(borrow)]
    data: Cow<'a, str>,
}

impl NativeBlock {
    /// The picture or sound that it is; `None` where it is something else.
    pub fn media(&self) -> Option<Media<'_>> {
        let Holder { inline: Inline { mime_type, data }, thought } = serde_json::from_str(&self.0).ok()?;
        // It becomes part of an address and of a line.
        let is_letter = |c: char| c.is_ascii_alphanumeric() || "/+-._".contains(c);
        let is_type = mime_type.contains('/') && mime_type.len() <= 100 && mime_type.chars().all(is_letter);
        (!thought && is_type && !data.is_empty()).then_some(Media { mime_type, data })
    }
}

impl AssistantBlock {
    /// The picture or sound that it is, where only its provider's own form holds it; `None` where it is something else.
    pub fn media(&self) -> Option<Media<'_>> {
        match self {
            Self::Opaque { native } => native.media(),
            Self::Text { .. } | Self::Reasoning { .. } | Self::Refusal { .. } | Self::Call(_) => None,
        }
    }
}

impl AssistantMessage {
    /// The pictures and sounds, in order.
    pub fn media(&self) -> impl Iterator<Item = Media<'_>> {
        self.blocks.iter().filter_map(AssistantBlock::media)
    }

    /// What [`AssistantMessage::text`] says, and in words, each on a line of its own, the pictures and sounds.
    pub fn text_and_media(&self) -> String {
        let mut said = String::new();
        let mut is_after_media = false;
        for block in &self.blocks {
            let (piece, is_media) = match (block, block.media()) {
                (_, Some(media)) => (Cow::Owned(media.to_string()), true),
                (AssistantBlock::Text { text, .. }, None) => (Cow::Borrowed(text.as_str()), false),
                (_, None) => continue,
            };
            if (is_media || is_after_media) && !said.is_empty() && !said.ends_with('\n') && !piece.is_empty() {
                said.push('\n');
            }
            said.push_str(&piece);
            is_after_media = is_media || (is_after_media && piece.is_empty());
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Completion, Finish, FinishReason, Origin, Seq, Usage};

    fn message(blocks: Vec<AssistantBlock>) -> AssistantMessage {
        AssistantMessage {
            origin: Origin { dialect: "gemini".to_owned(), provider: "g".to_owned(), model: "m".to_owned() },
            saw: Seq::FIRST,
            blocks,
            finish: Finish { reason: FinishReason::Stop, raw: None },
            completion: Completion::Complete,
            usage: Usage::default(),
        }
    }

    fn opaque(native: &str) -> AssistantBlock {
        AssistantBlock::Opaque { native: NativeBlock(native.to_owned()) }
    }

    fn text(text: &str) -> AssistantBlock {
        AssistantBlock::Text { text: text.to_owned(), native: None }
    }

    #[test]
    fn bytes_with_their_media_type_are_a_picture_or_a_sound_and_nothing_else_is() {
        let media = |native: &str| NativeBlock(native.to_owned()).media().map(|media| (media.to_string(), media.url()));
        let told = |word: &str, url: &str| Some((word.to_owned(), url.to_owned()));
        assert_eq!(
            media(r#"{"inlineData":{"mimeType":"image/png","data":"AAAA"},"thoughtSignature":"x"}"#),
            told("[image, image/png]", "data:image/png;base64,AAAA")
        );
        assert_eq!(
            media(r#"{"inline_data":{"mime_type":"audio/wav","data":"AA\/A"}}"#),
            told("[audio, audio/wav]", "data:audio/wav;base64,AA/A")
        );
        for other in [
            r#"{"inlineData":{"mimeType":"image/png","data":"AAAA"},"thought":true}"#,
            r#"{"inlineData":{"mimeType":"image/png","data":""}}"#,
            r#"{"inlineData":{"mimeType":"image/png;x, y","data":"AAAA"}}"#,
            r#"{"inlineData":{"data":"AAAA"}}"#,
            r#"{"executableCode":{"code":"1"}}"#,
            "[]",
            "",
        ] {
            assert_eq!(media(other), None, "{other}");
        }
    }

    #[test]
    fn pictures_stand_among_the_words_each_on_a_line_of_its_own() {
        let picture = || opaque(r#"{"inlineData":{"mimeType":"image/png","data":"AAAA"}}"#);
        let code = || opaque(r#"{"executableCode":{"code":"1"}}"#);
        let said = |blocks| message(blocks).text_and_media();
        assert_eq!(
            said(vec![text("He"), text("re:"), picture(), code(), text("And"), picture()]),
            "Here:\n[image, image/png]\nAnd\n[image, image/png]"
        );
        assert_eq!(said(vec![picture()]), "[image, image/png]");
        assert_eq!(said(vec![text("a"), code(), text("b")]), "ab");
    }
}
