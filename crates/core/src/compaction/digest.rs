//! Messages as a short text.

use std::borrow::Cow;

use crate::prompt::{PromptMessage, PromptResult};
use crate::{AssistantBlock, AssistantMessage, ContentBlock, Outcome, counted, text_of};

/// The least that is shown of each part, in bytes, before parts are left out.
const SHORTEST_PART_BYTES: usize = 160;
/// About how many bytes the words before each part take.
const LABEL_BYTES: usize = 24;
/// What an image or another piece that is no text weighs, in bytes: about what it costs a model.
const MEDIA_BYTES: usize = 4_000;

/// The messages in at most about `max_bytes`: each with as much of its beginning and its end as there is room for. Where
/// even that is too much, the newest half of what fits and the oldest half are told, and how many are left out between.
pub(super) fn of(messages: &[PromptMessage<'_>], max_bytes: usize) -> String {
    // A long conversation is measured before any of it is written: nearly all of it is left out.
    let mut lengths = Vec::new();
    for message in messages {
        measure(message, &mut lengths);
    }
    let mut part_bytes = part_bytes(&lengths, max_bytes);
    while part_bytes >= SHORTEST_PART_BYTES {
        let parts: Vec<String> = messages.iter().flat_map(|message| tell(message, part_bytes)).collect();
        if parts.iter().map(|part| part.len() + 1).sum::<usize>() <= max_bytes {
            return parts.join("\n");
        }
        let longest = parts.iter().map(String::len).max().unwrap_or_default();
        part_bytes = part_bytes.min(longest) / 8 * 7;
    }
    let shortest = SHORTEST_PART_BYTES;
    let oldest = messages.iter().flat_map(|message| tell(message, shortest));
    let mut told: Vec<String> = fitting(oldest, max_bytes / 2);
    let newest = messages.iter().rev().flat_map(|message| tell(message, shortest).into_iter().rev());
    let mut tail = fitting(newest.take(lengths.len().saturating_sub(told.len())), max_bytes / 2);
    let left_out = lengths.len().saturating_sub(told.len() + tail.len());
    let are = if left_out == 1 { "is" } else { "are" };
    told.push(format!("[… {} {are} left out …]", counted(left_out, "part")));
    tail.reverse();
    told.append(&mut tail);
    told.join("\n")
}

/// How much of each part there is room for: what the short ones leave, the long ones have.
fn part_bytes(lengths: &[usize], max_bytes: usize) -> usize {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    let mut room = max_bytes.saturating_sub(lengths.len().saturating_mul(LABEL_BYTES));
    for (place, length) in sorted.iter().enumerate() {
        let share = room / sorted.len().saturating_sub(place).max(1);
        if *length > share {
            return share;
        }
        room = room.saturating_sub(*length);
    }
    usize::MAX
}

/// The first of `parts` that fit into `room` bytes, a line each.
fn fitting(parts: impl Iterator<Item = String>, mut room: usize) -> Vec<String> {
    let fits = |part: &String| {
        let needed = part.len() + 1;
        let fits = needed <= room;
        room = room.saturating_sub(needed);
        fits
    };
    parts.take_while(fits).collect()
}

/// About how long each part is that [`tell`] makes of a message, uncut.
fn measure(message: &PromptMessage<'_>, lengths: &mut Vec<usize>) {
    match message {
        PromptMessage::User { message, .. } => lengths.push(content_bytes(&message.content)),
        PromptMessage::Context { context, .. } => lengths.push(context.text.len()),
        PromptMessage::Assistant { message, .. } => {
            if has_words(message) {
                lengths.push(message.blocks.iter().map(text_bytes).sum());
            }
            lengths.extend(message.calls().map(|call| call.name.len() + call.arguments.len()));
        }
        PromptMessage::Results(results) => lengths.extend(results.iter().map(|result| content_bytes(&result.result.content))),
    }
}

/// Whether a message says something to the person.
fn has_words(message: &AssistantMessage) -> bool {
    message.blocks.iter().any(|block| matches!(block, AssistantBlock::Text { text, .. } if !text.trim().is_empty()))
}

fn text_bytes(block: &AssistantBlock) -> usize {
    match block {
        AssistantBlock::Text { text, .. } => text.len(),
        AssistantBlock::Reasoning { .. }
        | AssistantBlock::Refusal { .. }
        | AssistantBlock::Call(_)
        | AssistantBlock::Opaque { .. } => 0,
    }
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
                Some(summary) => {
                    format!("Summary of what was before: {}", excerpt(summary.trim(), part_bytes.saturating_mul(4)))
                }
                None => format!("User: {}", excerpt(&text, part_bytes)),
            }]
        }
        PromptMessage::Context { context, .. } => vec![format!("Shown besides: {}", excerpt(&context.text, part_bytes / 4))],
        PromptMessage::Assistant { message, .. } => tell_assistant(message, part_bytes),
        PromptMessage::Results(results) => results.iter().map(|result| tell_result(result, part_bytes)).collect(),
    }
}

fn tell_assistant(message: &AssistantMessage, part_bytes: usize) -> Vec<String> {
    let text = has_words(message).then(|| format!("Assistant: {}", excerpt(message.text().trim(), part_bytes)));
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
