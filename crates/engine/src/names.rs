//! Qualified tool names: `source__tool`, valid for every provider.

use sha2::{Digest, Sha256};
use turnwright_core::nearest;

use crate::EngineError;

/// The longest name that every provider takes.
const MAX_NAME_BYTES: usize = 64;
/// Bytes of the hash at the end of a name that had to be changed.
const HASH_BYTES: usize = 12;

/// The qualified name of `tool` of `source`: `source__tool` where that is at most 64 characters of `[A-Za-z0-9_-]`
/// starting with a letter; else a readable prefix and a hash of both names, the same at every start.
pub fn qualified(source: &str, tool: &str) -> String {
    let plain = format!("{source}__{tool}");
    // Where the names themselves hold the separator, two pairs could meet in one name.
    let is_one_pair = !source.contains("__") && !source.ends_with('_') && !tool.starts_with('_');
    if is_one_pair && is_valid(&plain) && !ends_in_hash(&plain) {
        return plain;
    }
    format!("{}_{}", readable(&plain), hash_of(source, tool))
}

/// Whether a glob over qualified names can let in a tool of this source, whatever tools it has.
pub(crate) fn may_let_in(glob: &str, source: &str) -> bool {
    let literal = glob.split(['*', '?', '[', '{', '\\']).next().unwrap_or_default();
    let names_begin = readable(&format!("{source}__"));
    literal.starts_with(&names_begin) || (literal.len() < glob.len() && names_begin.starts_with(literal))
}

/// Those of these qualified names that were probably meant by one that there is not: those of tools that have just this name at their
/// sources, else the one that it is a slip for, or those of the tool that it is a slip for.
pub(crate) fn meant<'a>(called: &str, names: &(impl Iterator<Item = &'a str> + Clone)) -> Vec<&'a str> {
    let of = |tool: &str| names.clone().filter(|name| own_name(name) == tool).collect::<Vec<_>>();
    let exact = of(called);
    if !exact.is_empty() {
        return exact;
    }
    match nearest(called, names.clone()) {
        Some(name) => vec![name],
        None => nearest(called, names.clone().map(own_name)).map(of).unwrap_or_default(),
    }
}

/// A qualified name without its source.
fn own_name(name: &str) -> &str {
    name.split_once("__").map_or(name, |(_, tool)| tool)
}

/// What is valid for every provider, as much as there is room for before a hash.
fn readable(plain: &str) -> String {
    let mut readable: String =
        plain.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' }).collect();
    if !readable.starts_with(|c: char| c.is_ascii_alphabetic()) {
        readable.insert_str(0, "t_");
    }
    readable.truncate(MAX_NAME_BYTES - HASH_BYTES - 1);
    readable
}

/// Whether a name looks as if it had been changed, and so could be that of another pair.
fn ends_in_hash(name: &str) -> bool {
    let hash = name.rsplit_once('_').map_or("", |(_, end)| end);
    hash.len() == HASH_BYTES && hash.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'))
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
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// So many random bytes as [`hex`], for what is to have a name or key that nothing else has.
pub(crate) fn random<const BYTES: usize>() -> Result<String, EngineError> {
    let mut bytes = [0_u8; BYTES];
    getrandom::fill(&mut bytes).map_err(|error| EngineError::Invalid { what: format!("no random numbers: {error}") })?;
    Ok(hex(&bytes))
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
        assert_eq!(qualified("my server", "do.it/now"), "my_server__do_it_now_e06b92b0c1b4");
        assert_ne!(qualified("my server", "do it"), qualified("my.server", "do it"));
        assert_ne!(qualified("a", "b__c"), qualified("a__b", "c"));
        let long = qualified("server", &"x".repeat(200));
        assert_eq!(long.len(), MAX_NAME_BYTES);
        assert!(is_valid(&long) && is_valid(&qualified("1", "ü")));
        assert_ne!(long, qualified("server", &"x".repeat(201)));
    }

    #[test]
    fn a_glob_may_let_in_the_tools_of_those_sources_whose_names_can_begin_so() {
        let lets_in = |glob: &str| ["files", "files_2", "web", "my server"].map(|source| may_let_in(glob, source));
        assert_eq!(lets_in("*"), [true; 4]);
        assert_eq!(lets_in("*__read"), [true; 4]);
        assert_eq!(lets_in("files__*"), [true, false, false, false]);
        assert_eq!(lets_in("files__read"), [true, false, false, false]);
        assert_eq!(lets_in("files*"), [true, true, false, false]);
        assert_eq!(lets_in("f[i]les__read"), [true, true, false, false]);
        assert_eq!(lets_in("{web,files}__*"), [true; 4]);
        assert_eq!(lets_in("my_server__*"), [false, false, false, true]);
        assert_eq!(lets_in("files"), [false; 4]);
        let long = "x".repeat(90);
        assert!(may_let_in(&qualified(&long, "read"), &long));
    }

    #[test]
    fn a_name_without_its_source_is_known_and_so_is_a_slip() {
        let names = ["mail__send", "time__now", "weather__get_weather", "weather_2__get_weather"];
        let is_meant = |called: &str| meant(called, &names.into_iter()).join(" ");
        assert_eq!(is_meant("get_weather"), "weather__get_weather weather_2__get_weather");
        assert_eq!(is_meant("weather_get_weather"), "weather__get_weather");
        assert_eq!(is_meant("getWether"), "weather__get_weather weather_2__get_weather");
        assert_eq!(is_meant("paint"), "");
    }

    #[test]
    fn a_plain_name_that_looks_changed_is_changed_too() {
        let changed = qualified("my server", "do.it/now");
        let (source, tool) = changed.split_once("__").unwrap();
        assert_ne!(qualified(source, tool), changed);
    }

    /// What each dialect's API takes, by its documentation.
    fn takes(dialect: &str, name: &str) -> bool {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let starts = |with: fn(char) -> bool| name.starts_with(with);
        match dialect {
            "openai-chat" | "openai-responses" => (1..=64).contains(&name.len()) && name.chars().all(word),
            "anthropic" => (1..=128).contains(&name.len()) && name.chars().all(word),
            "gemini" => {
                let fits = |c: char| word(c) || c == '.' || c == ':';
                (1..=64).contains(&name.len()) && starts(|c| c.is_ascii_alphabetic() || c == '_') && name.chars().all(fits)
            }
            _ => !name.is_empty(),
        }
    }

    /// The next of numbers that are the same at every run (xorshift).
    fn next(state: &mut u64) -> usize {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        usize::try_from(*state >> 33).unwrap()
    }

    /// A name as servers and people make them, and as nobody should.
    fn odd_name(state: &mut u64) -> String {
        const PIECES: [&str; 20] = [
            "read",
            "file",
            "_",
            "__",
            "-",
            ".",
            "/",
            ":",
            " ",
            "ü",
            "名前",
            "1",
            "A",
            "get_",
            "\n",
            "\u{202e}",
            "🦀",
            "x_",
            "0123456789ab",
            "",
        ];
        let length = [1, 2, 3, 5, 9, 40][next(state) % 6];
        (0..length).map(|_| PIECES[next(state) % PIECES.len()]).collect()
    }

    #[test]
    fn ten_thousand_odd_names_are_taken_by_every_api_and_no_two_are_one() {
        let mut state = 0x2545_f491_4f6c_dd1d;
        let mut pairs = std::collections::HashMap::new();
        while pairs.len() < 10_000 {
            let pair = (odd_name(&mut state), odd_name(&mut state));
            let name = qualified(&pair.0, &pair.1);
            for dialect in ["openai-chat", "openai-responses", "anthropic", "gemini", "ollama"] {
                assert!(takes(dialect, &name), "{dialect} does not take `{name}` of {pair:?}");
            }
            // The same at every time, and the way back from it is one pair.
            assert_eq!(qualified(&pair.0, &pair.1), name);
            let known = pairs.entry(name).or_insert_with(|| pair.clone());
            assert_eq!(*known, pair);
        }
    }
}
