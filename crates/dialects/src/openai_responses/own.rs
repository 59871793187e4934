//! The provider's own items in a request: which of them go back, and what to do where the provider does not want them.

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use turnwright_core::{AssistantBlock, AssistantMessage, NativeBlock, ProviderFailure};

use super::wire::Item;
use crate::dialect::Mended;
use crate::profile::{Profile, ReasoningReplay};

/// Items that are answered by another item, with the kind of that. One without its answer is refused.
const ANSWERED: [(&str, &str); 5] = [
    ("computer_call", "computer_call_output"),
    ("local_shell_call", "local_shell_call_output"),
    ("shell_call", "shell_call_output"),
    ("apply_patch_call", "apply_patch_call_output"),
    ("mcp_approval_request", "mcp_approval_response"),
];

/// An item as its provider gave it.
#[derive(Debug)]
pub(super) struct Own<'a> {
    text: &'a str,
    item: Item<'a>,
}

impl<'a> Own<'a> {
    /// Reads a native block; `None` where it is no item.
    pub(super) fn read(native: &'a NativeBlock) -> Option<Self> {
        let text = native.0.trim();
        let item: Item<'_> = serde_json::from_str(text).ok()?;
        (text.starts_with('{') && item.kind.any().is_some_and(|kind| !kind.is_empty())).then_some(Self { text, item })
    }

    pub(super) fn kind(&self) -> &str {
        self.item.kind.any().unwrap_or_default()
    }

    /// Its own name, which no two items of a request may have.
    pub(super) fn id(&self) -> Option<&str> {
        self.item.id.any().filter(|id| !id.is_empty())
    }

    /// Whether a reasoning item goes back: as ciphertext always, since nothing of it is kept on the other side; as text where
    /// the endpoint wants it.
    pub(super) fn is_wanted_reasoning(&self, profile: &Profile, message: &AssistantMessage) -> bool {
        if self.item.encrypted_content.any().is_some_and(|text| !text.is_empty()) {
            return true;
        }
        let is_wanted = match profile.reasoning_replay {
            ReasoningReplay::Never => false,
            ReasoningReplay::WithCalls | ReasoningReplay::RequiredWithCalls => message.calls().next().is_some(),
            ReasoningReplay::Always | ReasoningReplay::Required => true,
        };
        is_wanted && !self.item.content.0.is_empty()
    }

    /// Whether it needs no answer, or has one in its message.
    pub(super) fn is_answered(&self, message: &AssistantMessage) -> bool {
        let Some((_, answer)) = ANSWERED.iter().find(|(known, _)| *known == self.kind()) else { return true };
        message.blocks.iter().any(|block| match block {
            AssistantBlock::Opaque { native } => {
                Own::read(native).is_some_and(|other| other.kind() == *answer && other.answers() == self.answers())
            }
            AssistantBlock::Text { .. }
            | AssistantBlock::Reasoning { .. }
            | AssistantBlock::Refusal { .. }
            | AssistantBlock::Call(_) => false,
        })
    }

    /// What a call and its answer have in common.
    fn answers(&self) -> Option<&str> {
        let request = self.item.approval_request_id.any().or(self.id().filter(|_| self.kind() == "mcp_approval_request"));
        self.item.call_id.any().or(request)
    }

    /// Writes it as it came; a summary, which must be there, is added where it is not.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self.text.strip_suffix('}') {
            Some(open) if self.kind() == "reasoning" && !self.text.contains("\"summary\"") => {
                out.extend_from_slice(open.as_bytes());
                out.extend_from_slice(b",\"summary\":[]}");
            }
            _ => out.extend_from_slice(self.text.as_bytes()),
        }
    }
}

/// Whether a request may succeed without its reasoning: its ciphertext cannot be read, as after a change of account, or the
/// items do not fit together as the provider knows them.
pub(super) fn is_refused(failure: &ProviderFailure) -> bool {
    const SIGNS: [&str; 6] = [
        "invalid_encrypted_content",
        "encrypted content",
        "required 'reasoning' item",
        "required following item",
        "Duplicate item found",
        "Items are not persisted",
    ];
    matches!(failure.status, Some(400 | 404 | 422))
        && (failure.code.as_deref() == Some("invalid_encrypted_content")
            || SIGNS.iter().any(|sign| failure.message.contains(sign)))
}

/// A body without the reasoning among its first items, and without the ids that tie messages and calls to it; `None` where
/// they have neither.
pub(super) fn without_reasoning(body: &[u8], first: usize) -> Option<Mended> {
    #[derive(serde::Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        input: &'a RawValue,
    }
    let text = std::str::from_utf8(body).ok()?;
    let input = serde_json::from_str::<Body<'_>>(text).ok()?.input.get();
    let items: Vec<&RawValue> = serde_json::from_str(input).ok()?;
    let messages = items.len();
    let mut is_changed = false;
    let mut kept: Vec<String> = Vec::with_capacity(messages);
    for (at, raw) in items.into_iter().enumerate() {
        let item: Item<'_> = serde_json::from_str(raw.get()).ok()?;
        match item.kind.any().filter(|_| at < first) {
            Some("reasoning") => is_changed = true,
            Some("message" | "function_call" | "custom_tool_call") if item.id.any().is_some() => {
                let mut members: Map<String, Value> = serde_json::from_str(raw.get()).ok()?;
                members.remove("id");
                kept.push(Value::Object(members).to_string());
                is_changed = true;
            }
            _ => kept.push(raw.get().to_owned()),
        }
    }
    let (before, after) = text.split_once(input).filter(|_| is_changed)?;
    Some(Mended { body: format!("{before}[{}]{after}", kept.join(",")).into_bytes(), messages })
}
