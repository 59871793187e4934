//! Puts the items of an answer together from the events of a stream, and tells of them as they grow.
//!
//! Events say of which item they are by its place in the output. The places are numbers that a server sends: they order
//! the items and are never a size.

use serde_json::value::RawValue;
use turnwright_core::{Assembler, AssistantBlock, ProviderFailure, ProviderFailureKind, StreamDelta, ToolCall};

use super::item;
use super::wire::{Field, Item as WireItem, Kind};
use crate::limits::{self, MAX_ANSWER_BYTES, MAX_ARGUMENT_BYTES, MAX_CALLS};

/// The most items of one answer, and parts of them.
const MAX_PIECES: usize = 4096;

/// The items of one answer.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// In the order of their places.
    items: Vec<Item>,
    /// What was told, as whoever hears it puts it together.
    said: Assembler,
    /// Of which item and part the newest block is, where it can be gone on with.
    newest: Option<Place>,
    next_key: u32,
    calls: usize,
    pieces: usize,
    bytes: usize,
}

/// An item as far as it came.
#[derive(Debug)]
struct Item {
    /// Its place in the output.
    index: u64,
    /// Our name for it.
    key: u32,
    id: Option<String>,
    kind: Kind,
    name: String,
    call_id: Option<String>,
    /// Whether the call was told of: it is once it has a name.
    is_started: bool,
    pieces: Vec<Piece>,
    /// The item as its provider gave it when it was done.
    whole: Option<String>,
}

/// A text of an item.
#[derive(Debug)]
struct Piece {
    field: Field,
    at: u64,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    key: u32,
    /// The part, where each is a block of its own.
    part: Option<(Field, u64)>,
}

/// Which item an event is of, in the words of the event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Of<'a> {
    pub(super) index: Option<u64>,
    pub(super) id: Option<&'a str>,
}

impl Output {
    /// Whether anything of the answer came.
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Takes the beginning of an item.
    pub(super) fn added(&mut self, of: Of<'_>, raw: &RawValue, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        let Ok(item) = serde_json::from_str::<WireItem<'_>>(raw.get()) else { return Ok(()) };
        let position = self.find_or_open(of, &item)?;
        self.know(position, &item, out);
        Ok(())
    }

    /// Takes an item that is done.
    pub(super) fn done(&mut self, of: Of<'_>, raw: &RawValue, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        let Ok(item) = serde_json::from_str::<WireItem<'_>>(raw.get()) else { return Ok(()) };
        let position = self.find_or_open(of, &item)?;
        self.complete(position, item, raw.get(), out)
    }

    /// Tells what was not told of an item, whose provider gave it as `raw`. It may come a second time.
    fn complete(
        &mut self,
        position: usize,
        item: WireItem<'_>,
        raw: &str,
        out: &mut Vec<StreamDelta>,
    ) -> Result<(), ProviderFailure> {
        if self.items.get(position).is_none_or(|known| known.whole.is_some()) {
            return Ok(());
        }
        self.know(position, &item, out);
        for (field, at, full) in item.pieces() {
            self.settle(position, field, at, &full, out)?;
        }
        self.count(raw.len())?;
        self.tell_native(position, raw, out);
        if let Some(item) = self.items.get_mut(position) {
            item.whole = Some(raw.to_owned());
        }
        Ok(())
    }

    /// Takes more of a text.
    pub(super) fn delta(
        &mut self,
        of: Of<'_>,
        (field, at): (Field, u64),
        text: &str,
        out: &mut Vec<StreamDelta>,
    ) -> Result<(), ProviderFailure> {
        if text.is_empty() {
            return Ok(());
        }
        let position = self.find_or_open_for(of, field)?;
        self.add(position, field, at, text, out)
    }

    /// Takes the whole of a text.
    pub(super) fn text_done(
        &mut self,
        of: Of<'_>,
        (field, at): (Field, u64),
        full: &str,
        out: &mut Vec<StreamDelta>,
    ) -> Result<(), ProviderFailure> {
        if full.is_empty() {
            return Ok(());
        }
        let position = self.find_or_open_for(of, field)?;
        self.settle(position, field, at, full, out)
    }

    /// Takes the name of a call.
    pub(super) fn named(&mut self, of: Of<'_>, name: &str, out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        let position = self.find_or_open_for(of, Field::Arguments)?;
        self.start(position, name, out);
        Ok(())
    }

    /// Takes the end: what `last`, the items of the whole response, says counts; where there are none, what came before.
    pub(super) fn finish(&mut self, last: &[&RawValue], out: &mut Vec<StreamDelta>) -> Result<(), ProviderFailure> {
        for (position, raw) in last.iter().enumerate() {
            let Ok(item) = serde_json::from_str::<WireItem<'_>>(raw.get()) else { continue };
            let kind = item.kind();
            let position = match self.items.get(position) {
                None => self.open(None, item.id.any(), kind)?,
                Some(known) if known.kind == kind => position,
                Some(_) => continue,
            };
            self.complete(position, item, raw.get(), out)?;
        }
        let mut blocks = Vec::new();
        if last.is_empty() {
            blocks.extend(self.items.iter().flat_map(Item::blocks));
        }
        for (position, raw) in last.iter().enumerate() {
            let own = self.items.get(position).and_then(|item| item.whole.as_deref());
            blocks.extend(own.map_or_else(|| item::blocks(raw.get()), |own| item::settled(own, raw)));
        }
        check(&blocks)?;
        if self.said.blocks() != blocks {
            self.tell(StreamDelta::Rewritten(blocks), out);
        }
        Ok(())
    }

    fn find(&self, of: Of<'_>, is_it: impl Fn(&Item) -> bool) -> Option<usize> {
        // Some gateways give an item another id in each event: its place comes first.
        if let Some(index) = of.index {
            return self.items.iter().rposition(|item| item.index == index && is_it(item));
        }
        let named = of.id.and_then(|id| self.items.iter().rposition(|item| item.id.as_deref() == Some(id) && is_it(item)));
        named.or_else(|| {
            let newest = self.items.last().filter(|item| item.whole.is_none() && is_it(item));
            newest.and_then(|_| self.items.len().checked_sub(1))
        })
    }

    fn find_or_open(&mut self, of: Of<'_>, item: &WireItem<'_>) -> Result<usize, ProviderFailure> {
        let of = Of { id: item.id.any().or(of.id), ..of };
        // A server that gives two items one place tells them apart by what they are.
        let is_same = |known: &Item| {
            let call_id = item.call_id.any();
            known.kind == item.kind() && (call_id.is_none() || known.call_id.is_none() || known.call_id.as_deref() == call_id)
        };
        self.find(of, is_same).map_or_else(|| self.open(of.index, of.id, item.kind()), Ok)
    }

    fn find_or_open_for(&mut self, of: Of<'_>, field: Field) -> Result<usize, ProviderFailure> {
        let kind = field.kind();
        self.find(of, |item| item.kind == kind).map_or_else(|| self.open(of.index, of.id, kind), Ok)
    }

    fn open(&mut self, index: Option<u64>, id: Option<&str>, kind: Kind) -> Result<usize, ProviderFailure> {
        self.count_piece()?;
        if kind == Kind::Call {
            self.calls += 1;
            if self.calls > MAX_CALLS {
                return Err(limits::too_many_calls());
            }
        }
        let index = index.unwrap_or_else(|| self.items.last().map_or(0, |last| last.index.saturating_add(1)));
        let position = self.items.partition_point(|item| item.index <= index);
        let item = Item {
            index,
            key: self.next_key,
            id: id.map(str::to_owned),
            kind,
            name: String::new(),
            call_id: None,
            is_started: false,
            pieces: Vec::new(),
            whole: None,
        };
        self.next_key += 1;
        self.items.insert(position, item);
        Ok(position)
    }

    /// Takes note of what an item is called.
    fn know(&mut self, position: usize, item: &WireItem<'_>, out: &mut Vec<StreamDelta>) {
        let Some(known) = self.items.get_mut(position) else { return };
        if known.call_id.is_none() {
            known.call_id = item.call_id.any().filter(|id| !id.is_empty()).map(str::to_owned);
        }
        if let (Kind::Call, Some(name)) = (known.kind, item.name.any()) {
            self.start(position, name, out);
        }
    }

    /// Tells of a call, once its name is known, and of the arguments that came before it.
    fn start(&mut self, position: usize, name: &str, out: &mut Vec<StreamDelta>) {
        let Some(item) = self.items.get_mut(position).filter(|item| item.kind == Kind::Call && !item.is_started) else {
            return;
        };
        if name.is_empty() {
            return;
        }
        item.is_started = true;
        name.clone_into(&mut item.name);
        let key = item.key;
        let started = StreamDelta::CallStarted { key, name: name.to_owned(), provider_id: item.call_id.clone() };
        let arguments = item.pieces.iter().map(|piece| piece.text.as_str()).collect::<String>();
        self.tell(started, out);
        self.newest = None;
        if !arguments.is_empty() {
            self.tell(StreamDelta::CallArguments { key, text: arguments }, out);
        }
    }

    fn settle(
        &mut self,
        position: usize,
        field: Field,
        at: u64,
        full: &str,
        out: &mut Vec<StreamDelta>,
    ) -> Result<(), ProviderFailure> {
        let Some(item) = self.items.get_mut(position) else { return Ok(()) };
        let Some(piece) = item.piece(field, at) else { return self.add(position, field, at, full, out) };
        if let Some(rest) = full.strip_prefix(piece.text.as_str()) {
            return if rest.is_empty() { Ok(()) } else { self.add(position, field, at, rest, out) };
        }
        // The pieces were wrong, which is told at the end.
        full.clone_into(&mut piece.text);
        self.count(full.len())
    }

    fn add(
        &mut self,
        position: usize,
        field: Field,
        at: u64,
        text: &str,
        out: &mut Vec<StreamDelta>,
    ) -> Result<(), ProviderFailure> {
        self.count(text.len())?;
        let Some(item) = self.items.get_mut(position) else { return Ok(()) };
        let (key, is_started) = (item.key, item.is_started);
        let before = item.piece(field, at).map_or(0, |piece| piece.text.len());
        if field == Field::Arguments && before + text.len() > MAX_ARGUMENT_BYTES {
            return Err(limits::arguments_too_large(&item.name));
        }
        if let Some(piece) = item.piece(field, at) {
            piece.text.push_str(text);
        } else {
            item.pieces.push(Piece { field, at, text: text.to_owned() });
            self.count_piece()?;
        }
        let text = text.to_owned();
        match field {
            Field::Arguments if is_started => self.tell(StreamDelta::CallArguments { key, text }, out),
            Field::Arguments => {}
            Field::Text => self.tell_of(Place { key, part: None }, StreamDelta::Text(text), out),
            Field::Refusal => self.tell_of(Place { key, part: None }, StreamDelta::Refusal(text), out),
            Field::Summary | Field::Reasoning => {
                self.tell_of(Place { key, part: Some((field, at)) }, StreamDelta::Reasoning(text), out);
            }
        }
        Ok(())
    }

    /// Tells of more text, in a block of its own where the newest is of something else.
    fn tell_of(&mut self, place: Place, delta: StreamDelta, out: &mut Vec<StreamDelta>) {
        if self.newest.is_some_and(|newest| newest != place) {
            self.tell(StreamDelta::BlockEnded { native: None }, out);
        }
        self.newest = Some(place);
        self.tell(delta, out);
    }

    /// Tells the provider's own form of an item, where that can still be told; else it is at the end.
    fn tell_native(&mut self, position: usize, raw: &str, out: &mut Vec<StreamDelta>) {
        let Some(key) = self.items.get(position).map(|item| item.key) else { return };
        let is_newest = self.newest.is_some_and(|newest| newest.key == key);
        match item::blocks(raw).pop() {
            Some(
                AssistantBlock::Text { native: Some(native), .. } | AssistantBlock::Reasoning { native: Some(native), .. },
            ) if is_newest => {
                self.newest = None;
                self.tell(StreamDelta::BlockEnded { native: Some(native) }, out);
            }
            Some(AssistantBlock::Call(ToolCall { native: Some(native), .. })) => {
                self.tell(StreamDelta::CallNative { key, native }, out);
            }
            Some(AssistantBlock::Opaque { native }) => {
                self.newest = None;
                self.tell(StreamDelta::Opaque(native), out);
            }
            Some(
                AssistantBlock::Text { .. }
                | AssistantBlock::Reasoning { .. }
                | AssistantBlock::Refusal { .. }
                | AssistantBlock::Call(_),
            )
            | None => {}
        }
    }

    fn tell(&mut self, delta: StreamDelta, out: &mut Vec<StreamDelta>) {
        self.said.push(delta.clone());
        out.push(delta);
    }

    fn count(&mut self, bytes: usize) -> Result<(), ProviderFailure> {
        self.bytes += bytes;
        if self.bytes > MAX_ANSWER_BYTES { Err(limits::answer_too_large()) } else { Ok(()) }
    }

    fn count_piece(&mut self) -> Result<(), ProviderFailure> {
        self.pieces += 1;
        if self.pieces <= MAX_PIECES {
            return Ok(());
        }
        let text = format!("the answer holds more than {MAX_PIECES} parts");
        Err(ProviderFailure::new(ProviderFailureKind::Limit, text))
    }
}

impl Item {
    /// The newest pieces are those that grow.
    fn piece(&mut self, field: Field, at: u64) -> Option<&mut Piece> {
        self.pieces.iter_mut().rev().find(|piece| piece.field == field && piece.at == at)
    }

    fn blocks(&self) -> Vec<AssistantBlock> {
        if let Some(whole) = &self.whole {
            return item::blocks(whole);
        }
        if self.kind == Kind::Call {
            let call = ToolCall {
                name: self.name.clone(),
                arguments: self.pieces.iter().map(|piece| piece.text.as_str()).collect(),
                provider_id: self.call_id.clone(),
                native: None,
                recovered: false,
            };
            return vec![AssistantBlock::Call(call)];
        }
        let mut assembler = Assembler::default();
        for piece in &self.pieces {
            let text = piece.text.clone();
            match piece.field {
                Field::Text | Field::Arguments => assembler.push(StreamDelta::Text(text)),
                Field::Refusal => assembler.push(StreamDelta::Refusal(text)),
                Field::Summary | Field::Reasoning => {
                    assembler.push(StreamDelta::Reasoning(text));
                    assembler.push(StreamDelta::BlockEnded { native: None });
                }
            }
        }
        assembler.blocks().to_vec()
    }
}

/// The limits on what only the end of a stream told.
fn check(blocks: &[AssistantBlock]) -> Result<(), ProviderFailure> {
    let calls = || {
        blocks.iter().filter_map(|block| match block {
            AssistantBlock::Call(call) => Some(call),
            AssistantBlock::Text { .. }
            | AssistantBlock::Reasoning { .. }
            | AssistantBlock::Refusal { .. }
            | AssistantBlock::Opaque { .. } => None,
        })
    };
    if calls().count() > MAX_CALLS {
        return Err(limits::too_many_calls());
    }
    match calls().find(|call| call.arguments.len() > MAX_ARGUMENT_BYTES) {
        Some(call) => Err(limits::arguments_too_large(&call.name)),
        None => Ok(()),
    }
}
