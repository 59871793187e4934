//! Lines for standard error that come while a person types there: written at once they would stand in the middle of what is typed.

use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use turnwright_core::counted;

/// The most bytes that are kept until a line is typed; what comes after them is counted.
const MOST: usize = 64 * 1024;

/// What is kept; `None` where nobody types.
static HELD: Mutex<Option<Held>> = Mutex::new(None);

#[derive(Debug, Default)]
struct Held {
    text: String,
    left_out: usize,
}

/// Keeps a line, its end in it, until a person has typed theirs; false where nobody types, and it can be written at once.
pub fn hold(line: &str) -> bool {
    let mut held = held();
    let Some(held) = held.as_mut() else { return false };
    if held.text.len() + line.len() > MOST {
        held.left_out += 1;
    } else {
        held.text.push_str(line);
    }
    true
}

fn held() -> MutexGuard<'static, Option<Held>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A person types; what was held meanwhile is written when this is dropped.
#[derive(Debug)]
pub(crate) struct Typing;

impl Typing {
    pub(crate) fn begin() -> Self {
        held().get_or_insert_default();
        Self
    }
}

impl Drop for Typing {
    fn drop(&mut self) {
        let Some(Held { mut text, left_out }) = held().take() else { return };
        if left_out > 0 {
            let were = if left_out == 1 { "was" } else { "were" };
            text.extend([format!("{} of the log {were} left out\n", counted(left_out, "more line"))]);
        }
        // Nobody is left to tell where this fails.
        drop(io::stderr().write_all(text.as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_held_for_as_long_as_somebody_types() {
        assert!(!hold("before\n"));
        let typing = Typing::begin();
        assert!(hold("one\n") && hold("two\n") && hold(&"x".repeat(MOST)));
        assert_eq!(held().as_ref().map(|held| (held.text.clone(), held.left_out)), Some(("one\ntwo\n".to_owned(), 1)));
        drop(typing);
        assert!(!hold("after\n"));
    }
}
