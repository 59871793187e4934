//! An item of the output as blocks of a message.

use serde_json::value::RawValue;
use turnwright_core::{AssistantBlock, NativeBlock, ToolCall};

use super::wire::{Field, Item, Kind};

/// The blocks that an item is; the last holds the item itself. An item that is nothing yet, such as a message without
/// content, is none.
///
/// A reasoning item is a block for each part of its summary and of its content. What is not known is kept as it is.
pub(super) fn blocks(raw: &str) -> Vec<AssistantBlock> {
    let native = NativeBlock(raw.to_owned());
    let Ok(item) = serde_json::from_str::<Item<'_>>(raw) else {
        return if is_typed(raw) { vec![AssistantBlock::Opaque { native }] } else { Vec::new() };
    };
    match item.kind() {
        Kind::Message => message(item, native),
        Kind::Reasoning => reasoning(item, native),
        Kind::Call => {
            let name = item.name.any().unwrap_or_default().to_owned();
            let provider_id = item.call_id.any().filter(|id| !id.is_empty()).map(str::to_owned);
            let arguments = item.pieces().pop().map(|(_, _, text)| text.into_owned()).unwrap_or_default();
            vec![AssistantBlock::Call(ToolCall { name, arguments, provider_id, native: Some(native), recovered: false })]
        }
        Kind::Other if item.kind.any().is_some() => vec![AssistantBlock::Opaque { native }],
        Kind::Other => Vec::new(),
    }
}

fn message(item: Item<'_>, native: NativeBlock) -> Vec<AssistantBlock> {
    let has_content = !item.content.0.is_empty();
    let (mut text, mut refusal) = (String::new(), String::new());
    for (field, _, piece) in item.pieces() {
        match field {
            Field::Refusal => refusal.push_str(&piece),
            Field::Text | Field::Summary | Field::Reasoning | Field::Arguments => text.push_str(&piece),
        }
    }
    match (text.is_empty(), refusal.is_empty()) {
        (true, true) if has_content && !is_blank(&native) => vec![AssistantBlock::Opaque { native }],
        (true, true) => Vec::new(),
        (false, true) => vec![AssistantBlock::Text { text, native: Some(native) }],
        (true, false) => vec![AssistantBlock::Refusal { text: refusal }],
        // The item would say the refusal, which is a block of its own, a second time.
        (false, false) => {
            vec![AssistantBlock::Text { text, native: None }, AssistantBlock::Refusal { text: refusal }]
        }
    }
}

fn reasoning(item: Item<'_>, native: NativeBlock) -> Vec<AssistantBlock> {
    let mut blocks: Vec<AssistantBlock> = item
        .pieces()
        .into_iter()
        .map(|(_, _, text)| AssistantBlock::Reasoning { text: text.into_owned(), native: None })
        .collect();
    match blocks.last_mut() {
        Some(AssistantBlock::Reasoning { native: last, .. }) => *last = Some(native),
        _ => blocks.push(AssistantBlock::Opaque { native }),
    }
    blocks
}

/// Whether all parts of a message are of known kinds, and so hold no more than the texts that they do not have.
fn is_blank(native: &NativeBlock) -> bool {
    let item: Option<Item<'_>> = serde_json::from_str(&native.0).ok();
    item.is_none_or(|item| {
        let parts = item.content.0.iter().filter_map(|part| part.0.as_ref());
        parts.into_iter().all(|part| matches!(part.kind.any(), Some("output_text" | "text" | "refusal")))
    })
}

fn is_typed(raw: &str) -> bool {
    let value: Option<serde_json::Value> = serde_json::from_str(raw).ok();
    value.is_some_and(|value| value.get("type").is_some_and(serde_json::Value::is_string))
}

/// What an item that came twice is: what its own event said, except where the response at the end knows more. The two differ
/// in their ciphertext, and gateways give them other ids.
pub(super) fn settled(own: &str, last: &RawValue) -> Vec<AssistantBlock> {
    let (own_blocks, last_blocks) = (blocks(own), blocks(last.get()));
    let knows_more = is_encrypted(last.get()) && !is_encrypted(own);
    if knows_more || !means_same(&own_blocks, &last_blocks) { last_blocks } else { own_blocks }
}

fn is_encrypted(raw: &str) -> bool {
    serde_json::from_str::<Item<'_>>(raw).is_ok_and(|item| item.encrypted_content.filled().is_some())
}

/// Whether blocks say the same, whatever form they came in.
fn means_same(a: &[AssistantBlock], b: &[AssistantBlock]) -> bool {
    use AssistantBlock as B;
    let same = |(a, b): (&B, &B)| match (a, b) {
        (B::Text { text: a, .. }, B::Text { text: b, .. })
        | (B::Reasoning { text: a, .. }, B::Reasoning { text: b, .. })
        | (B::Refusal { text: a }, B::Refusal { text: b }) => a == b,
        (B::Call(a), B::Call(b)) => (&a.name, &a.arguments, &a.provider_id) == (&b.name, &b.arguments, &b.provider_id),
        (B::Opaque { .. }, B::Opaque { .. }) => true,
        (B::Text { .. } | B::Reasoning { .. } | B::Refusal { .. } | B::Call(_) | B::Opaque { .. }, _) => false,
    };
    a.len() == b.len() && a.iter().zip(b).all(same)
}
