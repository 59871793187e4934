//! Tool calls, whole or put together from pieces of their arguments (Vertex AI, `partialArgs`).

use std::borrow::Cow;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use turnwright_core::{NativeBlock, ProviderFailure, ProviderFailureKind, StreamDelta};

use super::wire::{FunctionCall, Piece};
use crate::json;
use crate::limits::{self, MAX_ARGUMENT_BYTES, MAX_CALLS};

/// The most steps of a path into arguments.
const MAX_PATH_STEPS: usize = 64;

/// The calls of one answer.
#[derive(Debug, Default)]
pub(super) struct Calls {
    count: u32,
    open: Option<OpenCall>,
}

/// A call whose arguments are not all there.
#[derive(Debug)]
struct OpenCall {
    key: u32,
    name: String,
    id: Option<String>,
    signature: Option<String>,
    arguments: Value,
    bytes: usize,
    /// The path of the text that goes on.
    growing: Option<String>,
}

impl Calls {
    /// Takes the call of a part, whose text is `raw` and whose signature goes back with it.
    pub(super) fn push(
        &mut self,
        call: FunctionCall<'_>,
        signature: Option<&str>,
        raw: &str,
        out: &mut Vec<StreamDelta>,
    ) -> Result<(), ProviderFailure> {
        let will_continue = call.will_continue();
        let (name, id) = (call.name.filled(), call.id.filled());
        let is_more =
            self.open.as_ref().is_some_and(|open| name.is_none() || (id.is_some() && open.id.as_deref() == id.as_deref()));
        if !is_more {
            self.close(out);
            let key = self.start(name.as_deref().unwrap_or_default(), id.as_deref(), out)?;
            if !will_continue && call.pieces.0.is_empty() {
                let arguments = argument_text(call.args);
                if arguments.len() > MAX_ARGUMENT_BYTES {
                    return Err(limits::arguments_too_large(name.as_deref().unwrap_or_default()));
                }
                if !arguments.is_empty() {
                    let text = json::wrapped(arguments).unwrap_or_else(|| arguments.to_owned());
                    out.push(StreamDelta::CallArguments { key, text });
                }
                // A call whose arguments are no object would be refused on its way back.
                if signature.is_some() && (arguments.is_empty() || arguments.starts_with('{')) {
                    out.push(StreamDelta::CallNative { key, native: NativeBlock(raw.to_owned()) });
                }
                return Ok(());
            }
            self.open = Some(OpenCall {
                key,
                name: name.map(Cow::into_owned).unwrap_or_default(),
                id: id.map(Cow::into_owned),
                signature: None,
                arguments: Value::Object(Map::new()),
                bytes: 0,
                growing: None,
            });
        }
        if let Some(open) = &mut self.open {
            open.take(call.args, call.pieces.0, signature)?;
        }
        if !will_continue {
            self.close(out);
        }
        Ok(())
    }

    fn start(&mut self, name: &str, id: Option<&str>, out: &mut Vec<StreamDelta>) -> Result<u32, ProviderFailure> {
        let key = self.count;
        if usize::try_from(key).is_ok_and(|count| count >= MAX_CALLS) {
            return Err(limits::too_many_calls());
        }
        self.count += 1;
        out.push(StreamDelta::CallStarted { key, name: name.to_owned(), provider_id: id.map(str::to_owned) });
        Ok(key)
    }

    /// Ends the call whose arguments came in pieces: something else began.
    pub(super) fn close(&mut self, out: &mut Vec<StreamDelta>) {
        let Some(open) = self.open.take() else { return };
        let arguments = open.arguments.to_string();
        if let Some(signature) = open.signature {
            let mut call = Map::new();
            if let Some(id) = open.id {
                call.insert("id".to_owned(), Value::from(id));
            }
            call.insert("name".to_owned(), Value::from(open.name));
            call.insert("args".to_owned(), open.arguments);
            let part = serde_json::json!({"functionCall": call, "thoughtSignature": signature});
            out.push(StreamDelta::CallNative { key: open.key, native: NativeBlock(part.to_string()) });
        }
        if arguments != "{}" {
            out.push(StreamDelta::CallArguments { key: open.key, text: arguments });
        }
    }

    /// Gives what came of a call that will not be finished, as a text that is seen to be cut.
    pub(super) fn cut_off(&mut self, out: &mut Vec<StreamDelta>) {
        let Some(open) = self.open.take() else { return };
        let mut text = open.arguments.to_string();
        text.pop();
        out.push(StreamDelta::CallArguments { key: open.key, text });
    }
}

impl OpenCall {
    fn take(
        &mut self,
        whole: Option<&RawValue>,
        pieces: Vec<Piece<'_>>,
        signature: Option<&str>,
    ) -> Result<(), ProviderFailure> {
        if self.signature.is_none() {
            self.signature = signature.map(str::to_owned);
        }
        if let Some(whole) = whole {
            self.count(whole.get().len())?;
            if let Ok(Value::Object(members)) = serde_json::from_str(whole.get()) {
                self.arguments = Value::Object(members);
            }
        }
        for piece in pieces {
            self.piece(&piece)?;
        }
        Ok(())
    }

    fn piece(&mut self, piece: &Piece<'_>) -> Result<(), ProviderFailure> {
        let will_continue = piece.will_continue();
        let path = piece.path.any().unwrap_or_default();
        let is_growing = self.growing.as_deref() == Some(path);
        let added = piece.text.any().map_or(8, str::len) + if is_growing { 0 } else { path.len() };
        self.count(added)?;
        let place = self.place(path)?;
        match (piece.text.any(), piece.number.or(piece.boolean)) {
            (Some(more), _) => match place {
                Value::String(text) if is_growing => text.push_str(more),
                place => *place = Value::from(more),
            },
            (None, Some(raw)) => *place = serde_json::from_str(raw.get()).unwrap_or_default(),
            // A text that begins with nothing, or `nullValue`.
            (None, None) if is_growing => {}
            (None, None) => *place = if will_continue { Value::from("") } else { Value::Null },
        }
        match (will_continue, is_growing) {
            (true, true) => {}
            (true, false) => self.growing = Some(path.to_owned()),
            (false, _) => self.growing = None,
        }
        Ok(())
    }

    fn count(&mut self, bytes: usize) -> Result<(), ProviderFailure> {
        self.bytes += bytes;
        if self.bytes > MAX_ARGUMENT_BYTES { Err(limits::arguments_too_large(&self.name)) } else { Ok(()) }
    }

    /// The value at `path`, with all that leads to it made where it is not there.
    fn place(&mut self, path: &str) -> Result<&mut Value, ProviderFailure> {
        let steps = steps(path).ok_or_else(|| {
            let text = format!("the arguments of a call of `{}` have a path that cannot be followed: {path}", self.name);
            ProviderFailure::new(ProviderFailureKind::Malformed, text)
        })?;
        let mut padding = 0;
        let mut place = &mut self.arguments;
        for step in steps {
            place = match step {
                Step::Member(name) => {
                    if !place.is_object() {
                        *place = Value::Object(Map::new());
                    }
                    let Value::Object(members) = place else { continue };
                    members.entry(name).or_insert(Value::Null)
                }
                Step::Item(index) => {
                    if !place.is_array() {
                        *place = Value::Array(Vec::new());
                    }
                    let Value::Array(items) = place else { continue };
                    // An item costs at least five bytes: what fits is bounded before anything is made.
                    let missing = index.saturating_add(1).saturating_sub(items.len());
                    padding += missing.saturating_mul(5);
                    if self.bytes.saturating_add(padding) > MAX_ARGUMENT_BYTES {
                        return Err(limits::arguments_too_large(&self.name));
                    }
                    items.extend(std::iter::repeat_n(Value::Null, missing));
                    let Some(item) = items.get_mut(index) else {
                        return Err(limits::arguments_too_large(&self.name));
                    };
                    item
                }
            };
        }
        self.bytes += padding;
        Ok(place)
    }
}

enum Step {
    Member(String),
    Item(usize),
}

/// The steps of a path such as `$.recipe.ingredients[0]['name']`.
fn steps(path: &str) -> Option<Vec<Step>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if steps.len() >= MAX_PATH_STEPS {
            return None;
        }
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let (name, more) = after.split_at(end);
            steps.push(Step::Member(name.to_owned()));
            rest = more;
        } else {
            let after = rest.strip_prefix('[')?;
            if let Some(quote) = after.chars().next().filter(|c| matches!(c, '\'' | '"')) {
                let (name, more) = after.get(1..)?.split_once(quote)?;
                steps.push(Step::Member(name.to_owned()));
                rest = more.strip_prefix(']')?;
            } else {
                let (index, more) = after.split_once(']')?;
                steps.push(Step::Item(index.parse().ok()?));
                rest = more;
            }
        }
    }
    Some(steps)
}

/// The text of whole arguments; empty for nothing and for an empty object, which means the same.
fn argument_text(arguments: Option<&RawValue>) -> &str {
    let text = arguments.map_or("", RawValue::get);
    let is_empty = text.starts_with('{') && text.bytes().filter(|byte| !byte.is_ascii_whitespace()).take(3).count() == 2;
    if is_empty { "" } else { text }
}
