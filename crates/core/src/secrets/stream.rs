//! A text that comes in pieces. What could still be the beginning of a secret is held back, and nothing else; where the text
//! stands still, a little of that is passed on all the same, since whoever reads it waits for the end of a word.

use std::fmt;

use super::views::{MAX_ESCAPE, View};
use super::{HIDDEN, Secrets, forms::Form};

/// The longest end of a text that is passed on where it stands still, in bytes: never more than half of a secret.
const MAX_EARLY: usize = Secrets::MIN_BYTES / 2;

/// The text so far that was not passed on, and as much before that as tells a secret apart.
#[derive(Clone, Default)]
pub struct SecretStream {
    held: String,
    /// How much of it was passed on while the text stood still, in bytes.
    early: usize,
}

impl fmt::Debug for SecretStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretStream").field("held_bytes", &self.held.len()).finish_non_exhaustive()
    }
}

impl SecretStream {
    /// Takes the next piece; what may be passed on.
    pub fn push(&mut self, secrets: &Secrets, more: &str) -> String {
        if secrets.is_empty() {
            return more.to_owned();
        }
        self.held.push_str(more);
        let begin = secrets.held_from(&self.held);
        let rest = self.held.split_off(begin);
        let passed = std::mem::replace(&mut self.held, rest);
        let early = self.early;
        self.early = early.saturating_sub(begin);
        secrets.hide_after(&passed, early)
    }

    /// Nothing more comes: the rest.
    pub fn finish(&mut self, secrets: &Secrets) -> String {
        let Self { held, early } = std::mem::take(self);
        secrets.hide_after(&held, early)
    }

    /// Whether [`SecretStream::stand_still`] would pass anything on.
    pub fn has_early(&self) -> bool {
        self.early < self.held.len() && self.held.len() <= MAX_EARLY
    }

    /// Nothing came for a while: what is held back where that is at most 4 bytes. Where they turn out to begin a secret, the
    /// rest of it is hidden.
    pub fn stand_still(&mut self) -> String {
        if !self.has_early() {
            return String::new();
        }
        let told = self.held.get(self.early..).unwrap_or_default().to_owned();
        self.early = self.held.len();
        told
    }
}

impl Secrets {
    /// The text from `early` on, with [`HIDDEN`] in the place of each secret that ends there.
    fn hide_after(&self, text: &str, early: usize) -> String {
        let (mut hidden, mut from) = (String::with_capacity(text.len()), early);
        for range in self.find(text).into_iter().filter(|range| range.end > early) {
            hidden.push_str(text.get(from..range.start).unwrap_or_default());
            hidden.push_str(HIDDEN);
            from = range.end;
        }
        hidden.push_str(text.get(from..).unwrap_or_default());
        hidden
    }

    /// Where in the text begins what could be the beginning of a secret that goes on after it.
    fn held_from(&self, text: &str) -> usize {
        // An escape that is not whole may become any character.
        let whole_escapes = begun_escape(text);
        let known = text.get(..whole_escapes).unwrap_or_default();
        let longest = self.forms.iter().map(|form| form.text.len()).max().unwrap_or(0).saturating_mul(MAX_ESCAPE);
        let near = known.floor_char_boundary(known.len().saturating_sub(longest));
        let tail = known.get(near..).unwrap_or_default();
        let plain = tail.len().saturating_sub(self.longest_beginning(tail.as_bytes()));
        let in_views = View::all(tail).into_iter().filter_map(|view| {
            let held = self.longest_beginning(&view.bytes);
            if held == 0 { None } else { view.place_from(view.bytes.len().saturating_sub(held)) }
        });
        let begin = in_views.fold(plain, usize::min).saturating_add(near);
        // A secret that ends here is told apart only by what stands before it.
        let whole = self.find(known).into_iter().rev().find(|range| range.end > begin).map_or(begin, |range| range.start);
        text.floor_char_boundary(whole.min(begin).min(whole_escapes))
    }

    /// The length of the longest end of `bytes` that is somewhere in a form, and does not end it.
    fn longest_beginning(&self, bytes: &[u8]) -> usize {
        self.forms.iter().map(|form| longest_in(form, bytes)).max().unwrap_or(0)
    }
}

fn longest_in(form: &Form, bytes: &[u8]) -> usize {
    let Some(last) = bytes.last() else { return 0 };
    let ends = form.text.iter().enumerate().filter(|(at, byte)| *byte == last && at.saturating_add(1) < form.text.len());
    let lengths = ends.map(|(at, _)| {
        let before = form.text.get(..=at).unwrap_or_default();
        before.iter().rev().zip(bytes.iter().rev()).take_while(|(a, b)| a == b).count()
    });
    lengths.max().unwrap_or(0)
}

/// Where an escape begins that is not whole yet; the text's end where there is none.
fn begun_escape(text: &str) -> usize {
    let near = text.floor_char_boundary(text.len().saturating_sub(MAX_ESCAPE));
    let tail = text.get(near..).unwrap_or_default();
    let begun = |sign: char, is_open: fn(&str) -> bool| {
        tail.char_indices().filter(|(_, found)| *found == sign).find(|(at, _)| is_open(tail.get(at + 1..).unwrap_or_default()))
    };
    let percent = begun('%', |rest| rest.len() < 2 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let slash = begun('\\', |rest| {
        let digits = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_hexdigit());
        match rest.as_bytes() {
            [] => true,
            [b'x', ..] => rest.len() < 3 && digits(rest.get(1..).unwrap_or_default()),
            [b'u', b'{', ..] => !rest.contains('}') && digits(rest.get(2..).unwrap_or_default()),
            [b'u', ..] => rest.len() < 5 && digits(rest.get(1..).unwrap_or_default()),
            _ => false,
        }
    });
    let entity = begun('&', |rest| rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'#'));
    let first = [percent, slash, entity].into_iter().flatten().map(|(at, _)| near + at).min();
    first.unwrap_or(text.len())
}
