//! What is stored and told, without secrets.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::{HIDDEN, Secrets};
use crate::{
    AssistantBlock, AssistantMessage, Completion, ContentBlock, Control, CutOffCause, Elicitation, EmbeddedResource, Entry,
    NativeBlock, ProviderFailure, ProviderSaid, SamplingOutcome, StreamDelta, ToolDefinition, ToolResult, Wants,
};

/// What stands in the place of bytes that hold a secret.
const HIDDEN_BYTES: &str = "[hidden: this holds a secret]";

impl Secrets {
    /// Takes them out of a text.
    pub fn hide_in(&self, text: &mut String) {
        if let Cow::Owned(hidden) = self.hide(text) {
            *text = hidden;
        }
    }

    fn hide_in_some(&self, text: &mut Option<String>) {
        if let Some(text) = text {
            self.hide_in(text);
        }
    }

    /// Takes them out of all texts of a JSON value, names of members too.
    pub fn hide_in_value(&self, value: &mut Value) {
        if self.is_empty() {
            return;
        }
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => {
                if self.are_in(&number.to_string()) {
                    *value = Value::from(HIDDEN);
                }
            }
            Value::String(text) => self.hide_in(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide_in_value(item)),
            Value::Object(members) => {
                if members.keys().any(|name| self.are_in(name)) {
                    let all = std::mem::take(members);
                    members.extend(all.into_iter().map(|(name, value)| (self.hide(&name).into_owned(), value)));
                }
                members.values_mut().for_each(|member| self.hide_in_value(member));
            }
        }
    }

    /// Takes them out of content blocks.
    pub fn hide_in_content(&self, blocks: &mut [ContentBlock]) {
        if self.is_empty() {
            return;
        }
        for block in &mut *blocks {
            let hides_bytes = match block {
                ContentBlock::Text { text } => {
                    self.hide_in(text);
                    false
                }
                ContentBlock::Image { data, .. } | ContentBlock::Audio { data, .. } => self.are_in(data),
                ContentBlock::Resource { resource } => {
                    self.hide_in_resource(resource);
                    false
                }
                ContentBlock::ResourceLink { uri, name, title, description, .. } => {
                    self.hide_in(uri);
                    self.hide_in(name);
                    self.hide_in_some(title);
                    self.hide_in_some(description);
                    false
                }
            };
            if hides_bytes {
                *block = ContentBlock::text(HIDDEN_BYTES);
            }
        }
        // A secret may lie over the end of one block and the beginning of the next.
        self.hide_between(blocks);
    }

    /// Where two texts that follow one another hold a secret together, both are shown as one, and the second as nothing.
    fn hide_between(&self, blocks: &mut [ContentBlock]) {
        let mut before: Option<&mut String> = None;
        for block in blocks {
            let ContentBlock::Text { text } = block else {
                before = None;
                continue;
            };
            match before.take() {
                Some(first) if self.are_in(&format!("{first}{text}")) => {
                    let whole = format!("{first}{text}");
                    *first = self.hide(&whole).into_owned();
                    text.clear();
                    before = Some(first);
                }
                _ => before = Some(text),
            }
        }
    }

    fn hide_in_resource(&self, resource: &mut EmbeddedResource) {
        self.hide_in(&mut resource.uri);
        self.hide_in_some(&mut resource.text);
        if resource.blob.as_ref().is_some_and(|blob| self.are_in(blob)) {
            resource.blob = None;
            resource.text = Some(HIDDEN_BYTES.to_owned());
        }
    }

    /// Takes them out of a result.
    pub fn hide_in_result(&self, result: &mut ToolResult) {
        self.hide_in_content(&mut result.content);
        if let Some(structured) = &mut result.structured_content {
            self.hide_in_value(structured);
        }
        self.hide_in_some(&mut result.diagnostic);
    }

    /// Takes them out of what a provider failed with.
    pub fn hide_in_failure(&self, failure: &mut ProviderFailure) {
        if self.is_empty() {
            return;
        }
        self.hide_in(&mut failure.message);
        self.hide_in_some(&mut failure.code);
        self.hide_in_some(&mut failure.request_id);
        if let Some(said) = &mut failure.said {
            let ProviderSaid { error_type, param, raw } = &mut **said;
            self.hide_in_some(error_type);
            self.hide_in_some(param);
            self.hide_in(raw);
        }
    }

    /// Takes them out of what a tool asks people.
    pub fn hide_in_question(&self, ask: &mut Elicitation) {
        self.hide_in(&mut ask.message);
        match &mut ask.wants {
            Wants::Form { schema } => self.hide_in_value(schema),
            Wants::Url { url } => self.hide_in(url),
            Wants::Sampling { request } => {
                self.hide_in_some(&mut request.system_prompt);
                for message in &mut request.messages {
                    self.hide_in_content(&mut message.content);
                }
            }
        }
    }

    /// Takes them out of what a source says of a tool.
    pub fn hide_in_definition(&self, definition: &mut Arc<ToolDefinition>) {
        if self.is_empty() {
            return;
        }
        let mut hidden = ToolDefinition::clone(definition);
        self.hide_in_some(&mut hidden.title);
        self.hide_in(&mut hidden.description);
        self.hide_in_value(&mut hidden.input_schema);
        if let Some(annotations) = &mut hidden.annotations {
            self.hide_in_value(annotations);
        }
        if hidden != **definition {
            *definition = Arc::new(hidden);
        }
    }

    /// Takes them out of a model's message. A provider's own form of what held one goes with it.
    pub fn hide_in_message(&self, message: &mut AssistantMessage) {
        if self.is_empty() {
            return;
        }
        self.hide_in_blocks(&mut message.blocks);
        if let Completion::CutOff(CutOffCause::Provider(failure)) = &mut message.completion {
            self.hide_in_failure(failure);
        }
    }

    fn hide_in_blocks(&self, blocks: &mut [AssistantBlock]) {
        for block in blocks {
            match block {
                AssistantBlock::Text { text, native } | AssistantBlock::Reasoning { text, native } => {
                    self.hide_in(text);
                    self.hide_native(native);
                }
                AssistantBlock::Refusal { text } => self.hide_in(text),
                AssistantBlock::Call(call) => {
                    self.hide_in(&mut call.arguments);
                    self.hide_native(&mut call.native);
                }
                AssistantBlock::Opaque { native } => self.hide_in(&mut native.0),
            }
        }
    }

    fn hide_native(&self, native: &mut Option<NativeBlock>) {
        if native.as_ref().is_some_and(|native| self.are_in(&native.0)) {
            *native = None;
        }
    }

    /// Takes them out of what a stream tells at once; the texts in it go through [`super::SecretStream`]. `None` where nothing is
    /// left of it.
    pub fn hide_in_delta(&self, delta: StreamDelta) -> Option<StreamDelta> {
        match delta {
            StreamDelta::CallNative { native, .. } if self.are_in(&native.0) => None,
            StreamDelta::BlockEnded { mut native } => {
                self.hide_native(&mut native);
                Some(StreamDelta::BlockEnded { native })
            }
            StreamDelta::Opaque(mut native) => {
                self.hide_in(&mut native.0);
                Some(StreamDelta::Opaque(native))
            }
            StreamDelta::Rewritten(mut blocks) => {
                self.hide_in_blocks(&mut blocks);
                Some(StreamDelta::Rewritten(blocks))
            }
            StreamDelta::Notice(mut text) => {
                self.hide_in(&mut text);
                Some(StreamDelta::Notice(text))
            }
            delta @ (StreamDelta::Text(_)
            | StreamDelta::Reasoning(_)
            | StreamDelta::Refusal(_)
            | StreamDelta::CallStarted { .. }
            | StreamDelta::CallArguments { .. }
            | StreamDelta::CallNative { .. }
            | StreamDelta::CallRecovered { .. }
            | StreamDelta::Usage(_)
            | StreamDelta::Finished(_)) => Some(delta),
        }
    }

    /// Takes them out of an entry that a driver stores. What people said stays as they said it, and so does what a source needs
    /// back byte for byte.
    pub fn hide_in_entry(&self, entry: &mut Entry) {
        if self.is_empty() {
            return;
        }
        match entry {
            Entry::Assistant(message) => self.hide_in_message(message),
            Entry::Result(result) => self.hide_in_result(result),
            Entry::Elicited(elicited) => {
                for ask in &mut elicited.asks {
                    self.hide_in_question(ask);
                }
            }
            Entry::Sampled(sampled) => match &mut sampled.outcome {
                SamplingOutcome::Answered(message) => self.hide_in_message(message),
                SamplingOutcome::Failed { failure, .. } => self.hide_in_failure(failure),
            },
            Entry::Control(Control::Failed(failure)) => self.hide_in_failure(failure),
            Entry::Control(Control::Compacted(compacted)) => self.hide_in(&mut compacted.summary),
            Entry::Control(Control::Context(context)) => {
                self.hide_in(&mut context.text);
                context.notices.iter_mut().for_each(|notice| self.hide_in(notice));
            }
            Entry::Control(Control::Offered { definitions } | Control::Found { definitions }) => {
                for definition in definitions {
                    self.hide_in_definition(definition);
                }
            }
            Entry::User(_)
            | Entry::Decision(_)
            | Entry::Question(_)
            | Entry::Started(_)
            | Entry::TaskAccepted(_)
            | Entry::Answered(_)
            | Entry::Control(
                Control::Claimed(_)
                | Control::Resumed { .. }
                | Control::CancelRequested { .. }
                | Control::Suspended
                | Control::Settings { .. }
                | Control::Retried { .. }
                | Control::Uncompacted { .. }
                | Control::Nudged { .. }
                | Control::Reserved(_)
                | Control::Settled { .. }
                | Control::Hidden { .. }
                | Control::Imported { .. }
                | Control::Ended { .. },
            ) => {}
        }
    }
}
