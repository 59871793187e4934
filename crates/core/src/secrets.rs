//! Values that must not be seen, found wherever they are repeated: whole, in part, and encoded (docs/secrets.md).
//!
//! [`Secrets`] knows them and takes them out of texts; [`SecretStream`] does so for a text that comes in pieces; `walk` for what is
//! stored. Where values come from, and where texts leave, is the engine's and the host's to know.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use aho_corasick::AhoCorasick;

mod address;
mod forms;
mod names;
mod stream;
mod views;
mod walk;

pub use address::{OfPath, in_addresses};
use forms::Form;
pub use names::{given, given_in_argument, is_filler, of_address};
pub use stream::SecretStream;
use views::View;

/// What stands in the place of a secret.
pub const HIDDEN: &str = "[secret]";

/// A text is looked at in stretches of this many bytes where it has to be decoded.
const STRETCH: usize = 1 << 20;
/// How far stretches reach into one another.
const OVERLAP: usize = 64 << 10;

/// Values that must not be seen. Its `Debug` form shows none.
#[derive(Clone, Default)]
pub struct Secrets {
    forms: Vec<Form>,
    /// Finds the seeds of all forms; none where there is nothing to find.
    finder: Option<AhoCorasick>,
    /// For each seed its form, and where in that it stands.
    seeds: Vec<(usize, usize)>,
}

impl Secrets {
    /// The shortest value that is found, in bytes: a shorter one would be found everywhere.
    pub const MIN_BYTES: usize = 8;

    /// These values. Those under [`Secrets::MIN_BYTES`] are left out, and so is white space around one.
    pub fn new<'v>(values: impl IntoIterator<Item = &'v str>) -> Self {
        let mut forms: Vec<Form> = Vec::new();
        for value in values {
            let value = value.trim();
            if value.len() >= Self::MIN_BYTES {
                forms.extend(forms::of(value));
            }
        }
        forms.sort_by(|a, b| a.text.cmp(&b.text));
        forms.dedup_by(|next, first| next.text == first.text);
        let mut patterns: Vec<&[u8]> = Vec::new();
        let mut seeds = Vec::new();
        for (at, form) in forms.iter().enumerate() {
            for (offset, seed) in form.seeds() {
                patterns.push(seed);
                seeds.push((at, offset));
            }
        }
        // Only gigabytes of values would be too much for it.
        let finder = if patterns.is_empty() { None } else { AhoCorasick::new(&patterns).ok() };
        drop(patterns);
        Self { forms, finder, seeds }
    }

    /// Whether there is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// The text with [`HIDDEN`] in the place of each.
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let found = self.find(text);
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut hidden = String::with_capacity(text.len());
        let mut from = 0;
        for range in found {
            hidden.push_str(text.get(from..range.start).unwrap_or_default());
            hidden.push_str(HIDDEN);
            from = range.end;
        }
        hidden.push_str(text.get(from..).unwrap_or_default());
        Cow::Owned(hidden)
    }

    /// Whether the text holds one.
    pub fn are_in(&self, text: &str) -> bool {
        !self.find(text).is_empty()
    }

    /// Where they are, in order, apart from one another, at the ends of characters.
    fn find(&self, text: &str) -> Vec<Range<usize>> {
        if self.finder.is_none() || text.len() < Self::MIN_BYTES {
            return Vec::new();
        }
        let mut found = Vec::new();
        self.find_in(text.as_bytes(), &mut found);
        let mut at = 0;
        while at < text.len() {
            let begin = text.floor_char_boundary(at.saturating_sub(OVERLAP));
            let end = text.ceil_char_boundary(at.saturating_add(STRETCH).min(text.len()));
            let stretch = text.get(begin..end).unwrap_or_default();
            for view in View::all(stretch) {
                let mut seen = Vec::new();
                self.find_in(&view.bytes, &mut seen);
                let whole = |range: Range<usize>| view.place(range).map(|range| begin + range.start..begin + range.end);
                found.extend(seen.into_iter().filter_map(whole));
            }
            at = end;
        }
        merged(text, found)
    }

    fn find_in(&self, bytes: &[u8], found: &mut Vec<Range<usize>>) {
        let Some(finder) = &self.finder else { return };
        let mut last: Option<(usize, Range<usize>)> = None;
        for seed in finder.find_overlapping_iter(bytes) {
            let Some((at, offset)) = self.seeds.get(seed.pattern().as_usize()).copied() else { continue };
            if last.as_ref().is_some_and(|(form, range)| *form == at && seed.end() <= range.end && seed.start() >= range.start)
            {
                continue;
            }
            let Some(form) = self.forms.get(at) else { continue };
            let range = form.around(offset, bytes, seed.start());
            let piece = bytes.get(range.clone()).unwrap_or_default();
            if form.is_told_by(piece) {
                found.push(range.clone());
                last = Some((at, range));
            }
        }
    }
}

/// In order, at the ends of characters; those that touch or overlap are one.
fn merged(text: &str, mut found: Vec<Range<usize>>) -> Vec<Range<usize>> {
    found.sort_by_key(|range| range.start);
    let mut whole: Vec<Range<usize>> = Vec::with_capacity(found.len());
    for range in found {
        let range = text.floor_char_boundary(range.start)..text.ceil_char_boundary(range.end);
        match whole.last_mut() {
            Some(before) if range.start <= before.end => before.end = before.end.max(range.end),
            _ => whole.push(range),
        }
    }
    whole
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").field("forms", &self.forms.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
