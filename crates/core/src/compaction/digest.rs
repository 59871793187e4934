//! Messages as a short text.

use std::borrow::Cow;

use crate::prompt::{PromptMessage, PromptResult};
use crate::{AssistantBlock, AssistantMessage, ContentBlock, Outcome, text_of};

/// How much of each part is shown, tried from the longest on, in bytes.
const PART_BYTES: [usize; 6] = [8_000, 4_000, 2_000, 1_000, 400, 160];
/// What an image or another piece that is no text weighs, in bytes: about what it costs a model.
const MEDIA_BYTES: usize = 4_000;

/// The messages in at most about `max_bytes`: each with as much of its beginning and its end as there is room for. Where
/// even that is too much, the newest half of what fits and the oldest half are told, and how many are left out between.
pub(super) fn of(messages: &[PromptMessage<'_>], max_bytes: usize) -> String {
    let mut parts = Vec::new();
    for part_bytes in PART_BYTES {
        parts = messages.iter().flat_map(|message| tell(message, part_bytes)).collect();
        if parts.iter().map(|part| part.len() + 1).sum::<usize>() <= max_bytes {
            return parts.join("\n");
        }
    }
    let head = fitting(parts.iter(), max_bytes / 2);
    let tail = fitting(parts.iter().skip(head).rev(), max_bytes / 2);
    let left_out = parts.len().saturating_sub(head + tail);
    let mut told: Vec<String> = parts.iter().take(head).cloned().collect();
    told.push(format!("[… {left_out} parts are left out …]"));
    told.extend(parts.into_iter().skip(head + left_out));
    told.join("\n")
}

/// How many of `parts` fit into `room` bytes, a line each.
fn fitting<'a>(parts: impl Iterator<Item = &'a String>, mut room: usize) -> usize {
    let fits = |part: &&String| {
        let needed = part.len() + 1;
        let fits = needed <= room;
        room = room.saturating_sub(needed);
        fits
    };
    parts.take_while(fits).count()
}

/// About how many bytes of text a message is to a model.
pub(super) fn bytes(message: &PromptMessage<'_>) -> usize {
    match message {
        PromptMessage::User { message, .. } => content_bytes(&message.content),
        PromptMessage::Context { context, .. } => context.text.len(),
        PromptMessage::Assistant { message, .. } => message.blocks.iter().map(block_bytes).sum(),
        PromptMessage::Results(results) => results.iter().map(|result| content_bytes(&result.result.content)).sum(),
    }
}

fn content_bytes(content: &[ContentBlock]) -> usize {
    content.iter().map(|block| block.as_text().len() + if is_media(block) { MEDIA_BYTES } else { 0 }).sum()
}

fn is_media(block: &ContentBlock) -> bool {
    match block {
        ContentBlock::Image { .. } | ContentBlock::Audio { .. } => true,
        ContentBlock::Resource { resource } => resource.blob.is_some(),
        ContentBlock::Text { .. } | ContentBlock::ResourceLink { .. } => false,
    }
}

fn block_bytes(block: &AssistantBlock) -> usize {
    match block {
        AssistantBlock::Text { text, .. } | AssistantBlock::Refusal { text } => text.len(),
        AssistantBlock::Reasoning { text, native } => text.len() + native.as_ref().map_or(0, |native| native.0.len()),
        AssistantBlock::Call(call) => call.name.len() + call.arguments.len(),
        AssistantBlock::Opaque { native } => native.0.len(),
    }
}

fn tell(message: &PromptMessage<'_>, part_bytes: usize) -> Vec<String> {
    match message {
        PromptMessage::User { message, .. } => {
            let text = text_of(&message.content);
            vec![match text.strip_prefix(super::HEAD) {
                // It stands for a great deal already.
                Some(summary) => format!("Summary of what was before: {}", excerpt(summary.trim(), 4 * part_bytes)),
                None => format!("User: {}", excerpt(&text, part_bytes)),
            }]
        }
        PromptMessage::Context { context, .. } => vec![format!("Shown besides: {}", excerpt(&context.text, part_bytes / 4))],
        PromptMessage::Assistant { message, .. } => tell_assistant(message, part_bytes),
        PromptMessage::Results(results) => results.iter().map(|result| tell_result(result, part_bytes)).collect(),
    }
}

fn tell_assistant(message: &AssistantMessage, part_bytes: usize) -> Vec<String> {
    let text = message.text();
    let text = (!text.trim().is_empty()).then(|| format!("Assistant: {}", excerpt(text.trim(), part_bytes)));
    let calls = message.calls().map(|call| {
        let arguments = excerpt(call.arguments.trim(), part_bytes);
        format!("Assistant called {} {}", excerpt(&call.name, 200), if arguments.is_empty() { "{}" } else { &arguments })
    });
    text.into_iter().chain(calls).collect()
}

fn tell_result(result: &PromptResult<'_>, part_bytes: usize) -> String {
    let outcome = match result.result.outcome {
        Outcome::Success => "done",
        Outcome::Denied => "denied",
        Outcome::Error(kind) => kind.as_str(),
    };
    let name = excerpt(&result.call.name, 200);
    format!("Result of {name} ({outcome}): {}", excerpt(result.text().trim(), part_bytes))
}

/// A text of at most about `max_bytes`: three quarters of that from its beginning, the rest from its end, whole characters.
pub(super) fn excerpt(text: &str, max_bytes: usize) -> Cow<'_, str> {
    if text.len() <= max_bytes {
        return Cow::Borrowed(text);
    }
    let head = text.get(..text.floor_char_boundary(max_bytes / 4 * 3)).unwrap_or_default();
    let tail = text.get(text.ceil_char_boundary(text.len() - max_bytes / 4)..).unwrap_or_default();
    let left_out = text.len() - head.len() - tail.len();
    Cow::Owned(format!("{head} [… {left_out} bytes are left out …] {tail}"))
}
