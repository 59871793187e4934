//! What somebody probably meant, who wrote a name that there is not.

/// The candidate that `name` is most likely a slip for. Case, `_`, `-` and spaces do not count (`apiKey` is `api_key`);
/// beyond that at most one slip in three letters.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = letters(name);
    let limit = (wanted.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(&wanted, &letters(candidate)), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// A name without what people write differently.
pub fn letters(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_in_three_letters_is_seen_and_another_name_is_not() {
        let keys = ["command", "url"];
        assert_eq!(
            ["comand", "Com-Mand", "uri", "path"].map(|name| nearest(name, keys)),
            [Some("command"), Some("command"), Some("url"), None]
        );
    }
}
