//! What people and tools say, as content blocks.

use std::borrow::Cow;

use serde::Serialize;
use turnwright_core::ContentBlock;
use turnwright_core::prompt::PromptResult;

use crate::dialect::Target;
use crate::media;
use crate::media_size;

/// The largest image that is taken, in bytes of base64.
const MAX_IMAGE_BYTES: usize = 5 * 1024 * 1024;
/// The longest side of an image that is taken, in pixels.
const MAX_IMAGE_SIDE: u32 = 8000;

/// A block of a user message.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: Source<'a>,
    },
    Document {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: Content<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

/// Bytes in base64.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "base64")]
pub(super) struct Source<'a> {
    media_type: &'a str,
    data: &'a str,
}

/// What a tool answered.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    Blocks(Vec<Block<'a>>),
}

/// The blocks of what was said; at least one.
pub(super) fn blocks<'a>(target: &Target<'_>, content: &'a [ContentBlock]) -> Vec<Block<'a>> {
    let mut blocks: Vec<_> = content.iter().filter_map(|said| block(target, said)).collect();
    if blocks.is_empty() {
        blocks.push(Block::Text { text: Cow::Borrowed("(an empty message)") });
    }
    blocks
}

/// What the model is shown of a result: what failed says so in words alone, as the format demands.
pub(super) fn result<'a>(target: &Target<'_>, result: &'a PromptResult<'_>) -> Content<'a> {
    let said = &result.result.content;
    let is_shown = |block: &ContentBlock| media(target, block).is_some() || is_too_large(target, block);
    if result.result.outcome.is_error() || !said.iter().any(is_shown) {
        let text = result.text();
        let text = if text.trim().is_empty() { Cow::Borrowed("(no output)") } else { Cow::Owned(text) };
        return Content::Text(text);
    }
    let note = result.note().map(|note| Block::Text { text: Cow::Owned(note) });
    let mut blocks: Vec<_> = note.into_iter().chain(said.iter().filter_map(|said| block(target, said))).collect();
    let has_text = said.iter().any(|block| matches!(block, ContentBlock::Text { .. }));
    if let (false, Some(structured)) = (has_text, &result.result.structured_content) {
        blocks.push(Block::Text { text: Cow::Owned(structured.to_string()) });
    }
    Content::Blocks(blocks)
}

/// The blocks of a result that its own block cannot hold: what failed may come with a picture of how.
pub(super) fn beside<'a>(target: &Target<'_>, tool_use_id: &str, result: &'a PromptResult<'_>) -> Vec<Block<'a>> {
    let result = &result.result;
    if !result.outcome.is_error() {
        return Vec::new();
    }
    let mut blocks: Vec<_> = result.content.iter().filter_map(|said| media(target, said)).collect();
    if !blocks.is_empty() {
        let text = format!("Images in the result of the tool call {tool_use_id}:").into();
        blocks.insert(0, Block::Text { text });
    }
    blocks
}

/// The block, where anything of it can be shown: the format takes no empty text.
fn block<'a>(target: &Target<'_>, said: &'a ContentBlock) -> Option<Block<'a>> {
    media(target, said).or_else(|| {
        let text = words(target, said);
        (!text.trim().is_empty()).then_some(Block::Text { text })
    })
}

/// The block in words. Those for an image that is left out say why, so that the model can tell the person.
fn words<'a>(target: &Target<'_>, said: &'a ContentBlock) -> Cow<'a, str> {
    let text = said.as_text();
    if is_too_large(target, said) { format!("{text} (left out: larger than the model takes)").into() } else { text }
}

/// Whether it is an image that the model would take if it were smaller.
fn is_too_large(target: &Target<'_>, said: &ContentBlock) -> bool {
    if !takes_images(target) {
        return false;
    }
    match said {
        ContentBlock::Image { data, .. } => is_image_too_large(data),
        ContentBlock::Resource { resource } => {
            let is_image = resource.mime_type.as_deref().is_some_and(|mime_type| mime_type.starts_with("image/"));
            resource.blob.as_deref().is_some_and(|data| is_image && is_image_too_large(data))
        }
        ContentBlock::Text { .. } | ContentBlock::Audio { .. } | ContentBlock::ResourceLink { .. } => false,
    }
}

/// Whether an API refuses every request that has the image.
fn is_image_too_large(data: &str) -> bool {
    let is_long = |(width, height): (u32, u32)| width.max(height) > MAX_IMAGE_SIDE;
    data.len() > MAX_IMAGE_BYTES || media_size::of_base64(data).is_some_and(is_long)
}

/// The block as something that is not text, where the model takes that.
fn media<'a>(target: &Target<'_>, block: &'a ContentBlock) -> Option<Block<'a>> {
    match block {
        ContentBlock::Image { data, .. } => image(target, data),
        ContentBlock::Resource { resource } => {
            let (data, mime_type) = resource.blob.as_deref().zip(resource.mime_type.as_deref())?;
            if mime_type != "application/pdf" {
                return image(target, data);
            }
            let is_taken = target.model.documents != Some(false) && media::is_base64(data);
            let title = resource.uri.rsplit('/').next().filter(|name| !name.is_empty());
            is_taken.then_some(Block::Document { source: Source { media_type: mime_type, data }, title })
        }
        ContentBlock::Text { .. } | ContentBlock::Audio { .. } | ContentBlock::ResourceLink { .. } => None,
    }
}

fn takes_images(target: &Target<'_>) -> bool {
    target.profile.images && target.model.images != Some(false)
}

fn image<'a>(target: &Target<'_>, data: &'a str) -> Option<Block<'a>> {
    let is_taken = takes_images(target) && !is_image_too_large(data);
    let media_type = media::image(data).filter(|_| is_taken)?;
    Some(Block::Image { source: Source { media_type, data } })
}
