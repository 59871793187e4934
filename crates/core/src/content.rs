//! Content blocks, in the shapes of the Model Context Protocol.

use serde::{Deserialize, Serialize};

/// One piece of content of a user message or a tool result (MCP 2025-11-25, `ContentBlock`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBlock {
    /// Plain text.
    Text {
        /// The text, UTF-8.
        text: String,
    },
    /// An image.
    Image {
        /// The bytes in base64.
        data: String,
        /// Such as `image/png`.
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    /// A sound.
    Audio {
        /// The bytes in base64.
        data: String,
        /// Such as `audio/wav`.
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    /// The content of a resource.
    Resource {
        /// Where it comes from and what it holds.
        resource: EmbeddedResource,
    },
    /// A pointer to a resource.
    ResourceLink {
        /// The resource's address.
        uri: String,
        /// Its name.
        name: String,
        /// A title for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// What it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// Its media type, where known.
        #[serde(rename = "mimeType", default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// Its size in bytes, where known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        size: Option<u64>,
    },
}

/// The content of a resource: `text`, or `blob` in base64.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EmbeddedResource {
    /// The resource's address.
    pub uri: String,
    /// Its media type, where known.
    #[serde(rename = "mimeType", default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its text, where it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Its bytes in base64, where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
}

impl ContentBlock {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// What a model that takes only text is shown of the block.
    pub fn as_text(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Self::Text { text } => text.as_str().into(),
            Self::Image { mime_type, .. } => format!("[image, {mime_type}]").into(),
            Self::Audio { mime_type, .. } => format!("[audio, {mime_type}]").into(),
            Self::Resource { resource } => match (&resource.text, &resource.blob) {
                (Some(text), _) => format!("{}:\n{text}", resource.uri).into(),
                (None, Some(_)) => format!("[binary resource {}]", resource.uri).into(),
                (None, None) => format!("[empty resource {}]", resource.uri).into(),
            },
            Self::ResourceLink { uri, name, .. } => format!("[resource {name}: {uri}]").into(),
        }
    }
}

/// The blocks as one text, a line break between two. A link to what a text among them names already is left out.
pub fn text_of(blocks: &[ContentBlock]) -> String {
    match blocks {
        [ContentBlock::Text { text }] => text.clone(),
        blocks => {
            blocks.iter().filter(|block| !is_named(block, blocks)).map(ContentBlock::as_text).collect::<Vec<_>>().join("\n")
        }
    }
}

/// Whether these say nothing: there is no text but blanks, and nothing else.
pub fn is_blank(blocks: &[ContentBlock]) -> bool {
    blocks.iter().all(|block| matches!(block, ContentBlock::Text { text } if text.trim().is_empty()))
}

/// The shortest end of an address by which a text can name what is there.
const MIN_NAME_BYTES: usize = 16;

/// Whether a block is a link, and a text among these holds the end of its address.
fn is_named(block: &ContentBlock, blocks: &[ContentBlock]) -> bool {
    let ContentBlock::ResourceLink { uri, .. } = block else { return false };
    let name = uri.rsplit([':', '/']).next().filter(|name| name.len() >= MIN_NAME_BYTES);
    let mut texts = blocks.iter().filter_map(|block| if let ContentBlock::Text { text } = block { Some(text) } else { None });
    name.is_some_and(|name| texts.any(|text| text.contains(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_what_a_text_names_is_not_said_again() {
        let link = |uri: &str| ContentBlock::ResourceLink {
            uri: uri.to_owned(),
            name: "all".to_owned(),
            title: None,
            description: None,
            mime_type: None,
            size: None,
        };
        let (known, other) = ("artifact:art_0123456789abcdef", "artifact:art_ffffffffffffffff");
        let text = ContentBlock::text("beginning … art_0123456789abcdef … end");
        assert_eq!(text_of(&[text.clone(), link(known)]), "beginning … art_0123456789abcdef … end");
        assert_eq!(text_of(&[text, link(other)]), format!("beginning … art_0123456789abcdef … end\n[resource all: {other}]"));
        assert_eq!(text_of(&[ContentBlock::text("1"), link("file:///1")]), "1\n[resource all: file:///1]");
    }
}
