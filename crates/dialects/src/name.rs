//! The names of tools on the wire.

use std::borrow::Cow;

/// A name that servers take in a history: the model's own, where it is one at all.
pub(crate) fn wire_name(name: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if (1..=64).contains(&name.len()) && name.chars().all(fits) {
        return Cow::Borrowed(name);
    }
    let mended: String = name.chars().take(64).map(|c| if fits(c) { c } else { '_' }).collect();
    Cow::Owned(if mended.is_empty() { "unnamed".to_owned() } else { mended })
}
