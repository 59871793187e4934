//! About how much memory the parts of a conversation take, in bytes.

use std::sync::Arc;

use serde_json::Value;
use turnwright_core::{
    AssistantBlock, ContentBlock, Control, Entry, OutputFormat, Sampled, SamplingOutcome, ToolDefinition, TurnSettings,
};

use crate::SettingsOverlay;

/// What a conversation holds beside its entries, title and settings.
pub(crate) const OF_CONVERSATION: usize = 4 << 10;
/// What an entry holds beside its texts, and a call beside its arguments.
const BASE: usize = 400;

/// By what something is measured.
#[derive(Debug, Clone, Copy)]
struct Measure {
    /// What a member of an object, or an item of a list, is beside its texts.
    member: usize,
    /// What a definition is.
    definition: usize,
}

/// What it takes in memory.
const IN_MEMORY: Measure = Measure { member: 100, definition: size_of::<ToolDefinition>() };
/// How long it is as it is written.
const WRITTEN: Measure = Measure { member: 4, definition: 0 };

/// Of an entry.
pub(crate) fn of_entry(entry: &Entry) -> usize {
    let texts = match entry {
        Entry::User(message) => of_content(&message.content).saturating_add(of_settings(&message.settings)),
        Entry::Assistant(message) => message.blocks.iter().map(of_block).sum(),
        Entry::Result(result) => {
            let structured = result.structured_content.as_ref().map_or(0, |content| of_value(content, IN_MEMORY));
            let diagnostic = result.diagnostic.as_ref().map_or(0, String::len);
            of_content(&result.content).saturating_add(structured).saturating_add(diagnostic)
        }
        Entry::Control(Control::Compacted(compacted)) => compacted.summary.len(),
        Entry::Control(Control::Offered { definitions } | Control::Found { definitions }) => {
            definitions.iter().map(of_shared_definition).sum()
        }
        Entry::Control(Control::Retried { settings: Some(settings), .. }) => of_settings(settings),
        Entry::Control(Control::Context(context)) => {
            context.text.len().saturating_add(context.parts.len().saturating_mul(BASE))
        }
        Entry::Elicited(elicited) => elicited.asks.len().saturating_mul(BASE * 4),
        Entry::Sampled(Sampled { outcome: SamplingOutcome::Answered(message), .. }) => {
            message.blocks.iter().map(of_block).sum()
        }
        Entry::TaskAccepted(_)
        | Entry::Sampled(_)
        | Entry::Decision(_)
        | Entry::Question(_)
        | Entry::Started(_)
        | Entry::Answered(_)
        | Entry::Control(_) => 0,
    };
    texts.saturating_add(BASE)
}

/// Of what is chosen for a conversation or a turn.
pub(crate) fn of_overlay(overlay: &SettingsOverlay) -> usize {
    of_chosen(overlay, IN_MEMORY)
}

/// How long that is as it is written.
pub(crate) fn written_overlay(overlay: &SettingsOverlay) -> usize {
    of_chosen(overlay, WRITTEN)
}

fn of_chosen(overlay: &SettingsOverlay, by: Measure) -> usize {
    let globs = overlay.tools.iter().chain(&overlay.always_ask).flatten();
    let tools = overlay.client_tools.iter().flatten();
    chosen((overlay.system_prompt.as_deref(), overlay.output.as_ref()), tools, globs, by)
}

fn of_settings(settings: &TurnSettings) -> usize {
    let globs = settings.tools.iter().flatten().chain(&settings.always_ask);
    chosen((settings.system_prompt.as_deref(), settings.output.as_ref()), settings.client_tools.iter(), globs, IN_MEMORY)
}

fn chosen<'a>(
    (system_prompt, output): (Option<&str>, Option<&OutputFormat>),
    tools: impl Iterator<Item = &'a Arc<ToolDefinition>>,
    globs: impl Iterator<Item = &'a String>,
    by: Measure,
) -> usize {
    let prompt = system_prompt.map_or(0, str::len);
    let form = output.map_or(0, |output| match output {
        OutputFormat::JsonObject => 0,
        OutputFormat::Schema(output) => of_value(&output.schema, by),
    });
    let tools = tools.map(|tool| of_definition(tool, by)).fold(0, usize::saturating_add);
    prompt.saturating_add(form).saturating_add(tools).saturating_add(globs.map(String::len).sum())
}

/// Of a definition that a catalog or a message may have too: it weighs there then.
fn of_shared_definition(definition: &Arc<ToolDefinition>) -> usize {
    if Arc::strong_count(definition) > 1 { size_of::<Arc<ToolDefinition>>() } else { of_definition(definition, IN_MEMORY) }
}

fn of_definition(definition: &ToolDefinition, by: Measure) -> usize {
    let title = definition.title.as_ref().map_or(0, String::len);
    let names = definition.name.len() + definition.source.len() + definition.tool.len();
    let annotations = definition.annotations.as_ref().map_or(0, |annotations| of_value(annotations, by));
    [title, names, definition.description.len(), of_value(&definition.input_schema, by), annotations, by.definition]
        .into_iter()
        .fold(0, usize::saturating_add)
}

fn of_value(value: &Value, by: Measure) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => {
            items.iter().map(|item| by.member.saturating_add(of_value(item, by))).fold(0, usize::saturating_add)
        }
        Value::Object(members) => {
            let of = |(name, value): (&String, &Value)| (by.member + name.len()).saturating_add(of_value(value, by));
            members.iter().map(of).fold(0, usize::saturating_add)
        }
    }
}

fn of_block(block: &AssistantBlock) -> usize {
    let (text, native) = match block {
        AssistantBlock::Text { text, native } | AssistantBlock::Reasoning { text, native } => (text.len(), native.as_ref()),
        AssistantBlock::Refusal { text } => (text.len(), None),
        AssistantBlock::Call(call) => (BASE.saturating_add(call.arguments.len()), call.native.as_ref()),
        AssistantBlock::Opaque { native } => (0, Some(native)),
    };
    text.saturating_add(native.map_or(0, |native| native.0.len()))
}

/// Of content.
pub(crate) fn of_content(blocks: &[ContentBlock]) -> usize {
    let weight = |block: &ContentBlock| match block {
        ContentBlock::Text { text } => text.len(),
        ContentBlock::Image { data, .. } | ContentBlock::Audio { data, .. } => data.len(),
        ContentBlock::Resource { resource } => {
            resource.text.as_ref().map_or(0, String::len) + resource.blob.as_ref().map_or(0, String::len)
        }
        ContentBlock::ResourceLink { .. } => BASE,
    };
    blocks.iter().map(weight).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnwright_core::{MessageId, Seq, UserMessage};

    use super::*;
    use crate::Chosen;
    use crate::live::Live;

    const MUCH: usize = 1 << 20;

    fn definition() -> Arc<ToolDefinition> {
        let text = json!({
            "name": "client__a", "source": "client", "tool": "a", "input_schema": {"description": "x".repeat(MUCH)}
        });
        Arc::new(serde_json::from_value(text).unwrap())
    }

    #[test]
    fn what_is_chosen_weighs_wherever_it_is() {
        let prompt = SettingsOverlay { system_prompt: Some("x".repeat(MUCH)), ..SettingsOverlay::default() };
        let tools = SettingsOverlay { client_tools: Some(vec![definition()]), ..SettingsOverlay::default() };
        let schema = json!({"description": "x".repeat(MUCH)});
        let output = Some(OutputFormat::Schema(turnwright_core::OutputSchema { name: "o".to_owned(), schema, strict: true }));
        let form = SettingsOverlay { output, ..SettingsOverlay::default() };
        for overlay in [prompt, tools, form] {
            let settings = overlay.over(&TurnSettings::new("a/b".parse().unwrap()));
            let message = UserMessage { content: vec![ContentBlock::text("hello")], settings: settings.clone() };
            let turn = turnwright_core::TurnId(Seq::FIRST);
            let retried = Entry::Control(Control::Retried { turn, settings: Some(Box::new(settings)), hides: None });
            assert!(of_entry(&Entry::User(message)) > MUCH);
            assert!(of_entry(&retried) > MUCH);
            let chosen = Chosen { title: Some("t".repeat(MUCH)), settings: String::new() };
            let live = Live::new("c".parse().unwrap(), ("me".parse().unwrap(), 0), overlay, chosen);
            assert!(live.lock().weight() > 2 * MUCH);
            live.lock().choose(SettingsOverlay::default(), Chosen::default());
            assert!(live.lock().weight() < 2 * MUCH);
        }
    }

    #[test]
    fn a_definition_weighs_where_nobody_else_has_it() {
        let mine = definition();
        let offered =
            |definition: &Arc<ToolDefinition>| Entry::Control(Control::Offered { definitions: vec![definition.clone()] });
        assert!(of_entry(&offered(&mine)) < MUCH);
        let alone = offered(&mine);
        drop(mine);
        assert!(of_entry(&alone) > MUCH);
        let hidden = Entry::Control(Control::Hidden { message: MessageId(Seq::FIRST) });
        assert!((BASE..MUCH).contains(&of_entry(&hidden)));
    }
}
