//! What a model is told of in words though a person, or a tool, gave it as an image, a sound or a document.

use turnwright_core::ContentBlock;
use turnwright_core::prompt::{Prompt, PromptMessage};

/// What people are told of what came since the model spoke last and is not in `body`, the request for it. `None` where all is.
pub(crate) fn unseen(prompt: &Prompt<'_>, body: &[u8]) -> Option<String> {
    let is_assistant = |message: &&PromptMessage<'_>| matches!(message, PromptMessage::Assistant { .. });
    let begin = prompt.messages.iter().rposition(|message| is_assistant(&message)).map_or(0, |at| at.saturating_add(1));
    let newest = prompt.messages.get(begin..).unwrap_or_default();
    let blocks = newest.iter().flat_map(|message| match message {
        PromptMessage::User { message, .. } => message.content.iter().collect::<Vec<_>>(),
        PromptMessage::Results(results) => results.iter().flat_map(|result| &result.result.content).collect(),
        PromptMessage::Context { .. } | PromptMessage::Assistant { .. } => Vec::new(),
    });
    let mut body_text = None;
    let mut told: Vec<String> = Vec::new();
    for block in blocks {
        let Some(data) = media(block) else { continue };
        let text = *body_text.get_or_insert_with(|| std::str::from_utf8(body).unwrap_or_default());
        if !text.contains(data) {
            told.push(block.as_text().into_owned());
        }
    }
    (!told.is_empty()).then(|| format!("the model is told in words alone, since it is not shown them, of: {}", told.join(", ")))
}

/// The bytes, in base64, of what only a model that takes it can be shown.
fn media(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Image { data, .. } | ContentBlock::Audio { data, .. } => Some(data),
        ContentBlock::Resource { resource } => {
            let mime_type = resource.mime_type.as_deref()?;
            let is_media = mime_type == "application/pdf" || mime_type.starts_with("image/") || mime_type.starts_with("audio/");
            resource.blob.as_deref().filter(|_| is_media)
        }
        ContentBlock::Text { .. } | ContentBlock::ResourceLink { .. } => None,
    }
}
