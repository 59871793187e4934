//! A number of things in words.

use std::fmt::Display;

/// So many of these: `1 model`, `2 models`, `2 entries`.
pub fn counted<N: Display + Copy + PartialEq + From<u8>>(number: N, name: &str) -> String {
    if number == N::from(1) {
        return format!("{number} {name}");
    }
    match name.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{number} {stem}ies"),
        Some(_) | None => format!("{number} {name}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_is_not_several() {
        let told = |number: u64| ["model", "entry", "day"].map(|name| counted(number, name)).join(", ");
        assert_eq!(
            [0, 1, 2].map(told),
            ["0 models, 0 entries, 0 days", "1 model, 1 entry, 1 day", "2 models, 2 entries, 2 days"]
        );
    }
}
