//! What a path (RFC 9535) selects of a JSON text of any size: only what it selects is ever held.
//!
//! The plain beginning of a path (`$.items[*].name`) is followed in the stream; what comes after it (filters, slices,
//! descendants) is left to `serde_json_path`, over each value that the beginning leads to.

mod numbers;
mod work;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::{self, BufReader, Read};
use std::rc::Rc;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use serde_json_path::JsonPath;

pub(super) use self::numbers::Numbers;
pub(super) use self::work::MOST_LOOKED_AT;
use self::work::Work;

/// The largest value that is held, in bytes of its text.
pub(super) const MOST_VALUE_BYTES: u64 = 8 << 20;

/// One step of the plain beginning of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Name(String),
    Index(usize),
    Every,
}

/// A path that was read.
#[derive(Debug)]
pub(super) struct Path {
    steps: Vec<Step>,
    /// What is selected of each value that the steps lead to; the value itself where `None`.
    rest: Option<JsonPath>,
    /// What in the rest multiplies what it looks at.
    work: Work,
    /// Whether the rest begins with a filter, which looks at one member after the other.
    is_filter: bool,
}

impl Path {
    /// Reads a path (RFC 9535).
    ///
    /// # Errors
    /// Says what is wrong with it, for the model.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let whole = JsonPath::parse(text).map_err(|error| error.to_string())?;
        // A filter that looks at the whole text from within cannot be split.
        if text.matches('$').count() > 1 {
            return Ok(Self { steps: Vec::new(), rest: Some(whole), work: Work::of(text), is_filter: false });
        }
        let mut left = text.strip_prefix('$').unwrap_or(text);
        let mut steps = Vec::new();
        while let Some((step, after)) = step(left) {
            steps.push(step);
            left = after;
        }
        if left.trim().is_empty() {
            return Ok(Self { steps, rest: None, work: Work::of(""), is_filter: false });
        }
        let left = format!("${left}");
        let rest = JsonPath::parse(&left).map_err(|error| error.to_string())?;
        let inside = left.trim_start_matches('$').trim_start().strip_prefix('[').unwrap_or_default().trim_start();
        // Several selectors in one pair of brackets give their results one after the other, and not member by member.
        let is_filter = inside.starts_with('?') && !has_comma_outside(inside);
        Ok(Self { steps, rest: Some(rest), work: Work::of(&left), is_filter })
    }
}

/// Whether a selector is followed by another in its brackets. What is not sure counts as one.
fn has_comma_outside(selector: &str) -> bool {
    selector.split(']').next().unwrap_or(selector).contains(',')
}

/// The first plain step of a path, and what comes after it.
fn step(path: &str) -> Option<(Step, &str)> {
    let path = path.trim_start();
    if let Some(rest) = path.strip_prefix('.') {
        if let Some(rest) = rest.strip_prefix('*') {
            return Some((Step::Every, rest));
        }
        let end = rest.find(|sign: char| !(sign.is_alphanumeric() || sign == '_' || !sign.is_ascii())).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        return (!name.is_empty()).then(|| (Step::Name(name.to_owned()), rest));
    }
    let inside = path.strip_prefix('[')?.trim_start();
    if let Some(quote) = inside.chars().next().filter(|sign| matches!(sign, '"' | '\'')) {
        let name = inside.get(1..)?;
        let (name, rest) = name.split_once(quote)?;
        let rest = rest.trim_start().strip_prefix(']')?;
        return (!name.contains('\\')).then(|| (Step::Name(name.to_owned()), rest));
    }
    let (selector, rest) = inside.split_once(']')?;
    match selector.trim() {
        "*" => Some((Step::Every, rest)),
        index => index.parse().ok().map(|index| (Step::Index(index), rest)),
    }
}

/// Takes what is selected; says whether more is wanted.
pub(super) trait Take {
    /// One value, whose numbers are written as these say.
    fn take(&mut self, value: &Value, numbers: &Numbers<'_>) -> bool;
}

/// Why a text was not gone through to its end.
#[derive(Debug)]
pub(super) enum Broken {
    /// It is not JSON, or cannot be read.
    Unreadable(String),
    /// What would have to be held is too large.
    TooLarge,
    /// What would have to be looked at is too much.
    TooMuch,
}

/// A reader that gives only so much while a value is held.
struct Bounded<R> {
    reader: R,
    left: Rc<Cell<Option<u64>>>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        if let Some(left) = self.left.get() {
            if (count as u64) > left {
                return Err(io::Error::from(io::ErrorKind::QuotaExceeded));
            }
            self.left.set(Some(left - count as u64));
        }
        Ok(count)
    }
}

/// Gives `taker` what the path selects of the text, in its order. Where the text is several values, one after another, what it
/// selects of each; one that is cut off at the end of others is none.
///
/// # Errors
/// Where the text is not JSON, or a value is too large that must be held.
pub(super) fn select(path: &Path, text: impl Read, taker: &mut dyn Take) -> Result<(), Broken> {
    let left = Rc::new(Cell::new(None));
    let reader = BufReader::with_capacity(64 * 1024, Bounded { reader: text, left: left.clone() });
    let state = State { left, taker: RefCell::new(taker), is_done: Cell::new(false), is_too_much: Cell::new(false) };
    let mut deserializer = serde_json::Deserializer::from_reader(reader);
    let mut is_first = true;
    loop {
        match (Walk { path, steps: &path.steps, state: &state }).deserialize(&mut deserializer) {
            Ok(()) => is_first = false,
            Err(_) if state.is_done.get() => return Ok(()),
            Err(_) if state.is_too_much.get() => return Err(Broken::TooMuch),
            Err(error) if error.is_eof() && !is_first => return Ok(()),
            Err(error) if error.io_error_kind() == Some(io::ErrorKind::QuotaExceeded) => return Err(Broken::TooLarge),
            Err(error) => return Err(Broken::Unreadable(error.to_string())),
        }
    }
}

struct State<'t> {
    /// How much may still be read of the value that is held.
    left: Rc<Cell<Option<u64>>>,
    taker: RefCell<&'t mut dyn Take>,
    is_done: Cell<bool>,
    is_too_much: Cell<bool>,
}

impl State<'_> {
    /// Holds what `read` gives.
    fn holding<T>(&self, read: impl FnOnce() -> T) -> T {
        self.left.set(Some(MOST_VALUE_BYTES));
        let value = read();
        self.left.set(None);
        value
    }

    /// Gives a value on. Fails where no more is wanted.
    fn give(&self, value: &Value, numbers: &Numbers<'_>) -> Result<(), serde_json::Error> {
        if self.taker.borrow_mut().take(value, numbers) {
            return Ok(());
        }
        self.is_done.set(true);
        Err(serde_json::Error::custom("enough"))
    }

    /// Gives on what the rest of the path selects of the value of this text, where it stands.
    fn finish(&self, path: &Path, text: &RawValue, stands: &Stands) -> Result<(), serde_json::Error> {
        let value: Value = serde_json::from_str(text.get())?;
        let held = match stands {
            Stands::Alone => value,
            Stands::InList => Value::Array(vec![value]),
            Stands::AsMember(name) => Value::Object([(name.clone(), value)].into_iter().collect()),
        };
        // Where it stands now: its numbers are known by their places.
        let read = match stands {
            Stands::Alone => Some(&held),
            Stands::InList => held.get(0),
            Stands::AsMember(name) => held.get(name),
        };
        let numbers = read.map(|read| Numbers::of(text.get(), read)).unwrap_or_default();
        match &path.rest {
            None => self.give(&held, &numbers),
            Some(rest) if path.work.is_done_in(&held) => {
                rest.query(&held).iter().try_for_each(|found| self.give(found, &numbers))
            }
            Some(_) => {
                self.is_too_much.set(true);
                Err(serde_json::Error::custom("too much"))
            }
        }
    }
}

/// Where a value that is held stands in what the rest of a path is asked of.
enum Stands {
    Alone,
    InList,
    AsMember(String),
}

/// Follows the steps that are left.
#[derive(Clone, Copy)]
struct Walk<'a, 't> {
    path: &'a Path,
    steps: &'a [Step],
    state: &'a State<'t>,
}

impl<'de> DeserializeSeed<'de> for Walk<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.steps.is_empty() && !self.path.is_filter {
            use serde::Deserialize as _;
            let text = self.state.holding(|| Box::<RawValue>::deserialize(deserializer))?;
            return self.state.finish(self.path, &text, &Stands::Alone).map_err(D::Error::custom);
        }
        // A text into which the path goes on is no member of anything, and not held however long it is.
        self.state.left.set(Some(MOST_VALUE_BYTES));
        let walked = deserializer.deserialize_any(self);
        self.state.left.set(None);
        walked
    }
}

impl<'a, 't> Walk<'a, 't> {
    /// The walk into a member, where the next step leads there.
    fn into(self, is_there: impl FnOnce(&Step) -> bool) -> Option<Walk<'a, 't>> {
        let (next, steps) = self.steps.split_first()?;
        is_there(next).then_some(Self { steps, ..self })
    }
}

impl<'de> Visitor<'de> for Walk<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut at = 0_usize;
        self.state.left.set(None);
        if self.steps.is_empty() {
            // A filter over the items, each looked at alone.
            while let Some(item) = self.state.holding(|| items.next_element::<Box<RawValue>>())? {
                self.state.finish(self.path, &item, &Stands::InList).map_err(A::Error::custom)?;
            }
            return Ok(());
        }
        loop {
            let is_there = |step: &Step| match step {
                Step::Every => true,
                Step::Index(index) => *index == at,
                Step::Name(_) => false,
            };
            let is_more = match self.into(is_there) {
                Some(walk) => items.next_element_seed(walk)?.is_some(),
                None => items.next_element::<IgnoredAny>()?.is_some(),
            };
            if !is_more {
                return Ok(());
            }
            at = at.saturating_add(1);
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        self.state.left.set(None);
        if self.steps.is_empty() {
            while let Some((name, text)) = self.state.holding(|| members.next_entry::<String, Box<RawValue>>())? {
                self.state.finish(self.path, &text, &Stands::AsMember(name)).map_err(A::Error::custom)?;
            }
            return Ok(());
        }
        while let Some(name) = self.state.holding(|| members.next_key::<String>())? {
            let is_there = |step: &Step| match step {
                Step::Every => true,
                Step::Name(wanted) => *wanted == name,
                Step::Index(_) => false,
            };
            match self.into(is_there) {
                Some(walk) => members.next_value_seed(walk)?,
                None => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    // A step into what has no members leads nowhere.

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
