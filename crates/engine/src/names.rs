//! Qualified tool names: `source__tool`, valid for every provider.

use sha2::{Digest, Sha256};

/// The longest name that every provider takes.
const MAX_NAME_BYTES: usize = 64;
/// Bytes of the hash at the end of a name that had to be changed.
const HASH_BYTES: usize = 8;

/// The qualified name of `tool` of `source`: `source__tool` where that is at most 64 characters of `[A-Za-z0-9_-]`
/// starting with a letter; else a readable prefix and a hash of both names, the same at every start.
pub fn qualified(source: &str, tool: &str) -> String {
    let plain = format!("{source}__{tool}");
    // Where the names themselves hold the separator, two pairs could meet in one name.
    let is_one_pair = !source.contains("__") && !source.ends_with('_') && !tool.starts_with('_');
    if is_one_pair && is_valid(&plain) {
        return plain;
    }
    let mut readable: String =
        plain.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' }).collect();
    if !readable.starts_with(|c: char| c.is_ascii_alphabetic()) {
        readable.insert_str(0, "t_");
    }
    readable.truncate(MAX_NAME_BYTES - HASH_BYTES - 1);
    format!("{readable}_{}", hash_of(source, tool))
}

/// Whether every provider takes this name.
fn is_valid(name: &str) -> bool {
    name.len() <= MAX_NAME_BYTES
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

fn hash_of(source: &str, tool: &str) -> String {
    let mut hasher = Sha256::new();
    hasher.update(source.as_bytes());
    hasher.update([0]);
    hasher.update(tool.as_bytes());
    let mut hex = hex(&hasher.finalize());
    hex.truncate(HASH_BYTES);
    hex
}

/// Bytes as lower-case hexadecimal text.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_stay_as_they_are() {
        assert_eq!(qualified("filesystem", "read"), "filesystem__read");
    }

    #[test]
    fn strange_and_long_names_get_a_readable_prefix_and_a_stable_hash() {
        assert_eq!(qualified("my server", "do.it/now"), "my_server__do_it_now_e06b92b0");
        assert_ne!(qualified("my server", "do it"), qualified("my.server", "do it"));
        assert_ne!(qualified("a", "b__c"), qualified("a__b", "c"));
        let long = qualified("server", &"x".repeat(200));
        assert_eq!(long.len(), MAX_NAME_BYTES);
        assert!(is_valid(&long) && is_valid(&qualified("1", "ü")));
        assert_ne!(long, qualified("server", &"x".repeat(201)));
    }
}
