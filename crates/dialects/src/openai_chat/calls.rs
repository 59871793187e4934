//! Puts tool calls together from the fragments that the known servers send.

use turnwright_core::{NativeBlock, ProviderFailure, StreamDelta};

use super::wire::{CallDelta, FunctionDelta};
use crate::json;
use crate::limits::{self, MAX_ARGUMENT_BYTES, MAX_CALLS};

/// The calls of one answer. Never sized by what a server says an index is.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    calls: Vec<Call>,
    next_key: u32,
}

#[derive(Debug)]
struct Call {
    key: u32,
    slot: Slot,
    id: Option<String>,
    name: String,
    arguments: String,
    /// How much of the arguments was given on.
    told: usize,
    /// Whether the call was given on: it is once it has a name.
    is_started: bool,
}

/// What fragments of one call have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    Index(u64),
    /// The server sends no index.
    None,
    /// The `function_call` of old servers.
    Legacy,
}

impl Calls {
    /// Whether all arguments are complete.
    pub(crate) fn are_whole(&self) -> bool {
        self.calls.iter().all(|call| call.arguments.is_empty() || json::is_json(&call.arguments))
    }

    /// A key for a call that does not come in fragments.
    pub(crate) fn take_key(&mut self) -> u32 {
        let key = self.next_key;
        self.next_key += 1;
        key
    }

    /// Takes the fragment of a `tool_calls` list.
    pub(crate) fn push(&mut self, delta: CallDelta<'_>, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        let slot = delta.index.0.map_or(Slot::None, Slot::Index);
        // Mistral writes the word `null` where there is no id.
        let id = delta.id.filled().filter(|id| id != "null");
        let function = delta.function.or(delta.custom).unwrap_or_default();
        let call = self.add(slot, id.as_deref(), function, out)?;
        if let (Some(call), Some(extra)) = (call, delta.extra_content) {
            let native = NativeBlock(format!("{{\"extra_content\":{}}}", extra.get()));
            out.push(StreamDelta::CallNative { key: call, native });
        }
        Ok(())
    }

    /// Takes the fragment of a `function_call`.
    pub(crate) fn push_legacy(&mut self, delta: FunctionDelta<'_>, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        self.add(Slot::Legacy, None, delta, out).map(drop)
    }

    fn add(
        &mut self,
        slot: Slot,
        id: Option<&str>,
        function: FunctionDelta<'_>,
        out: &mut Vec<StreamDelta>,
    ) -> Result<Option<u32>, ProviderFailure> {
        let name = function.name.filled();
        let arguments = function.arguments.text();
        let found = self.find(slot, id, name.as_deref(), &arguments);
        if found.is_none() && id.is_none() && name.is_none() && arguments.is_empty() {
            return Ok(None);
        }
        let position = match found {
            Some(position) => position,
            None if self.calls.len() >= MAX_CALLS => return Err(limits::too_many_calls()),
            None => {
                let key = self.take_key();
                let (id, name, arguments) = (None, String::new(), String::new());
                self.calls.push(Call { key, slot, id, name, arguments, told: 0, is_started: false });
                self.calls.len() - 1
            }
        };
        let Some(call) = self.calls.get_mut(position) else { return Ok(None) };
        if call.id.is_none() {
            call.id = id.map(str::to_owned);
        }
        if call.name.is_empty()
            && let Some(name) = name
        {
            call.name = name.into_owned();
        }
        if call.arguments.len() + arguments.len() > MAX_ARGUMENT_BYTES {
            return Err(limits::arguments_too_large(&call.name));
        }
        call.arguments.push_str(&arguments);
        call.tell(out);
        Ok(call.is_started.then_some(call.key))
    }

    /// Which call a fragment belongs to; none where it begins one.
    fn find(&self, slot: Slot, id: Option<&str>, name: Option<&str>, arguments: &str) -> Option<usize> {
        let of_id = |id: &str| self.calls.iter().rposition(|call| call.id.as_deref() == Some(id));
        let position = match (slot, id) {
            (Slot::None, Some(id)) => of_id(id)?,
            (Slot::None, None) => self.calls.len().checked_sub(1)?,
            (Slot::Index(_) | Slot::Legacy, _) => self.calls.iter().rposition(|call| call.slot == slot)?,
        };
        let call = self.calls.get(position)?;
        if slot != Slot::None
            && let (Some(id), Some(known)) = (id, call.id.as_deref())
        {
            // Servers that send index 0 for all calls tell them apart by id.
            return if id == known { Some(position) } else { of_id(id).filter(|at| self.has_slot(*at, slot)) };
        }
        // Without ids, or where calls share one and have no index, another name, or more after a complete object, begins another call.
        let is_other = name.is_some_and(|name| {
            !call.name.is_empty() && (name != call.name || (!arguments.is_empty() && json::is_json(&call.arguments)))
        });
        if is_other { None } else { Some(position) }
    }

    fn has_slot(&self, position: usize, slot: Slot) -> bool {
        self.calls.get(position).is_some_and(|call| call.slot == slot)
    }

    /// Gives on what was held back: nothing more comes.
    pub(crate) fn finish(&mut self, out: &mut Vec<StreamDelta>) {
        for call in &mut self.calls {
            call.finish(out);
        }
    }
}

impl Call {
    fn tell(&mut self, out: &mut Vec<StreamDelta>) {
        if !self.is_started {
            if self.name.is_empty() {
                return;
            }
            self.start(out);
        }
        // Some gateways put the JSON into a string once more: that is seen at its end.
        if !self.arguments.trim_start().starts_with('"') {
            self.tell_arguments(out);
        }
    }

    fn start(&mut self, out: &mut Vec<StreamDelta>) {
        self.is_started = true;
        out.push(StreamDelta::CallStarted { key: self.key, name: self.name.clone(), provider_id: self.id.clone() });
    }

    fn tell_arguments(&mut self, out: &mut Vec<StreamDelta>) {
        let text = self.arguments.get(self.told..).unwrap_or_default();
        if !text.is_empty() {
            out.push(StreamDelta::CallArguments { key: self.key, text: text.to_owned() });
            self.told = self.arguments.len();
        }
    }

    fn finish(&mut self, out: &mut Vec<StreamDelta>) {
        if !self.is_started {
            self.start(out);
        }
        if let Some(inner) = json::wrapped(&self.arguments) {
            self.arguments = inner;
            self.told = 0;
        }
        self.tell_arguments(out);
    }
}
