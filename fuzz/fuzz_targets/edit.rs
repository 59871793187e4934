//! Edits of any text: all or none, and what is replaced exactly is what a plain replacement gives. Text, old and new text are
//! parted by zero bytes; the first byte says whether all occurrences are meant.

#![no_main]

use libfuzzer_sys::fuzz_target;
use turnwright_tools::{Edit, Found, apply_edits};

fuzz_target!(|data: &[u8]| {
    let [all, rest @ ..] = data else { return };
    let mut parts = rest.split(|byte| *byte == 0).map(|part| String::from_utf8_lossy(part).into_owned());
    let (Some(text), Some(old_text), Some(new_text)) = (parts.next(), parts.next(), parts.next()) else { return };
    let edit = Edit { old_text, new_text, all: Some(all % 2 == 1) };
    let once = apply_edits(&text, std::slice::from_ref(&edit));
    if let Ok((changed, done)) = &once {
        assert_ne!(*changed, text);
        assert!(!done[0].lines.is_empty());
        if done[0].found == Found::Exactly {
            assert_eq!(*changed, text.replace(&edit.old_text, &edit.new_text));
        }
    }
    // A second edit that cannot be made takes the first back.
    let impossible = Edit { old_text: String::new(), new_text: String::new(), all: None };
    assert!(apply_edits(&text, &[edit, impossible]).is_err());
});
