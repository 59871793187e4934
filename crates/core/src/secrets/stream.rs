//! A text that comes in pieces. What could still be the beginning of a secret is held back, and nothing else.

use std::fmt;

use super::views::{MAX_ESCAPE, View};
use super::{Secrets, forms::Form};

/// The text so far that was not passed on.
#[derive(Clone, Default)]
pub struct SecretStream {
    held: String,
}

impl fmt::Debug for SecretStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretStream").field("held_bytes", &self.held.len()).finish()
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
        secrets.hide(&passed).into_owned()
    }

    /// Nothing more comes: the rest.
    pub fn finish(&mut self, secrets: &Secrets) -> String {
        let rest = std::mem::take(&mut self.held);
        secrets.hide(&rest).into_owned()
    }
}

impl Secrets {
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
