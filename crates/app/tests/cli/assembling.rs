//! What a client makes of the events that it is told, over any number of connections.

use std::collections::BTreeMap;

use serde_json::Value;

/// A conversation as somebody saw it who read only its events.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Assembly {
    /// The stored entries, oldest first.
    pub(crate) entries: Vec<Value>,
    /// The blocks of the message in flight, from its deltas.
    blocks: BTreeMap<u64, String>,
    /// The id of the last event.
    pub(crate) last: Option<String>,
    /// Turns that ended.
    pub(crate) finished: usize,
    /// Everything that models said, from deltas alone, message by message.
    pub(crate) said: Vec<String>,
}

impl Assembly {
    /// Takes the next event; says what does not fit.
    pub(crate) fn take(&mut self, id: &str, event: Value) -> Result<(), String> {
        if !id.is_empty() {
            self.last = Some(id.to_owned());
        }
        let Some(kind) = event["type"].as_str() else { return Err(format!("no event: {event}")) };
        match kind {
            "entry" => self.entry(event)?,
            "step.started" | "step.reset" => self.blocks.clear(),
            "turn.finished" => self.finished += 1,
            "text.delta" | "reasoning.delta" | "refusal.delta" | "tool.input_delta" => {
                let (Some(block), Some(text)) = (event["block"].as_u64(), event["text"].as_str()) else {
                    return Err(format!("no delta: {event}"));
                };
                let so_far = self.blocks.entry(block).or_default();
                if event["offset"] != so_far.len() {
                    return Err(format!("a gap after {} bytes: {event}", so_far.len()));
                }
                so_far.push_str(text);
            }
            _ => {}
        }
        Ok(())
    }

    fn entry(&mut self, event: Value) -> Result<(), String> {
        if event["seq"] != self.entries.len() + 1 {
            return Err(format!("after {} entries came {event}", self.entries.len()));
        }
        if let Some(blocks) = event["entry"]["assistant"]["blocks"].as_array() {
            let told = std::mem::take(&mut self.blocks);
            for (at, block) in (0..).zip(blocks) {
                let stored = ["text", "reasoning", "refusal"].iter().find_map(|kind| block[kind]["text"].as_str());
                let stored = stored.or_else(|| block["call"]["arguments"].as_str()).unwrap_or_default();
                let assembled = told.get(&at).map(String::as_str).unwrap_or_default();
                if assembled != stored {
                    return Err(format!(
                        "block {at} of entry {} was told as {assembled:?}, stored is {stored:?}",
                        event["seq"]
                    ));
                }
            }
            self.said.push(told.get(&0).cloned().unwrap_or_default());
        }
        self.entries.push(event);
        Ok(())
    }
}
