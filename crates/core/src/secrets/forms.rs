//! The forms in which a value may stand in a text: as it is, in base64 wherever it begins in what was encoded, in hexadecimal.
//! Escapes of single characters are no forms; `views` reads them.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::Secrets;

/// The longest piece of a value that may be seen is shorter than this, however long the value is, in bytes.
const MAX_PIECE: usize = 24;
/// A piece that reads like words must be this long to count, in bytes.
const MIN_WORDS: usize = 16;

/// One form of a value.
#[derive(Clone)]
pub(super) struct Form {
    pub(super) text: Vec<u8>,
    /// How long a piece of it must be to be found.
    piece: usize,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Encoded,
}

/// All forms of a value.
pub(super) fn of(value: &str) -> Vec<Form> {
    let bytes = value.as_bytes();
    let piece = bytes.len().div_ceil(2).clamp(Secrets::MIN_BYTES, MAX_PIECE);
    let mut forms = vec![Form { text: bytes.to_vec(), piece, kind: Kind::Plain }];
    let mut add = |text: Vec<u8>, piece: usize| {
        if text.len() >= piece && forms.iter().all(|form| form.text != text) {
            forms.push(Form { text, piece, kind: Kind::Encoded });
        }
    };
    let hex = bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    add(hex.to_uppercase().into_bytes(), piece.saturating_mul(2));
    add(hex.into_bytes(), piece.saturating_mul(2));
    // Of the characters of base64 those at both ends depend on what stands around the value: at most two at each.
    let piece = (piece.saturating_mul(8).saturating_sub(10)) / 6;
    for before in 0..3_usize {
        let mut padded = vec![0; before];
        padded.extend_from_slice(bytes);
        let begin = before.saturating_mul(8).div_ceil(6);
        let end = padded.len().saturating_mul(8) / 6;
        for alphabet in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
            let text = alphabet.encode(&padded).into_bytes();
            add(text.get(begin..end).unwrap_or_default().to_vec(), piece);
        }
    }
    forms
}

impl Form {
    /// Short pieces, one of which is in every piece that counts, each with its place.
    pub(super) fn seeds(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let length = self.piece.div_ceil(2);
        (0..self.text.len())
            .step_by(length.max(1))
            .filter_map(move |at| Some((at, self.text.get(at..at.checked_add(length)?)?)))
    }

    /// The longest common stretch of this form and `bytes` around a place where they are the same: the form's byte at `offset` is
    /// that of `bytes` at `at`.
    pub(super) fn around(&self, offset: usize, bytes: &[u8], at: usize) -> Range<usize> {
        let (before, after) = (self.text.get(..offset).unwrap_or_default(), self.text.get(offset..).unwrap_or_default());
        let (read, ahead) = (bytes.get(..at).unwrap_or_default(), bytes.get(at..).unwrap_or_default());
        let same = |(a, b): &(&u8, &u8)| a == b;
        let back = before.iter().rev().zip(read.iter().rev()).take_while(same).count();
        let on = after.iter().zip(ahead).take_while(same).count();
        at.saturating_sub(back)..at.saturating_add(on)
    }

    /// Whether a piece of this form tells of the value.
    pub(super) fn is_told_by(&self, piece: &[u8]) -> bool {
        if piece.len() >= self.text.len() {
            return true;
        }
        if piece.len() < self.piece {
            return false;
        }
        // `password` of `password123` is in many a text.
        let reads_like_words = self.kind == Kind::Plain
            && (piece.iter().all(|byte| !byte.is_ascii_digit() && !byte.is_ascii_uppercase())
                || piece.iter().all(|byte| !byte.is_ascii_digit() && !byte.is_ascii_lowercase()));
        let mut kinds: Vec<u8> = piece.to_vec();
        kinds.sort_unstable();
        kinds.dedup();
        kinds.len() >= 4 && (!reads_like_words || piece.len() >= MIN_WORDS)
    }
}
