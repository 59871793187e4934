//! The places of an address that may hold a secret.

/// Which parts of the path of an address are taken for secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfPath {
    /// None: the path says what is there.
    Nothing,
    /// Those that look like keys, as the addresses of webhooks have them.
    Keys,
}

/// The addresses in a text with another text in each place that may hold a secret: `postgres://user:***@host/name`,
/// `https://***@host/v1?key=***`. Over HTTP a user's name may be a token. All else stays as it is; before the scheme may stand
/// something else, such as the name of an option.
pub fn in_addresses(text: &str, path: OfPath, mut replace: impl FnMut(&str) -> String) -> String {
    let word = |word: &str| {
        let url = word.trim_end();
        in_address(url, path, &mut replace) + word.get(url.len()..).unwrap_or_default()
    };
    text.split_inclusive(char::is_whitespace).map(word).collect()
}

fn in_address(url: &str, of_path: OfPath, replace: &mut impl FnMut(&str) -> String) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let split = |text, at: Option<usize>| str::split_at_checked(text, at.unwrap_or(text.len())).unwrap_or((text, ""));
    let (before, after) = split(rest, rest.find(['?', '#']));
    let (authority, path) = split(before, before.find('/'));
    let lower = scheme.to_ascii_lowercase();
    let is_http = lower.ends_with("http") || lower.ends_with("https");
    let authority = match authority.rsplit_once('@') {
        Some((user, host)) if is_http => format!("{}@{host}", replace(user)),
        Some((user, host)) => match user.split_once(':') {
            Some((user, password)) => format!("{user}:{}@{host}", replace(password)),
            None => authority.to_owned(),
        },
        None => authority.to_owned(),
    };
    let mut part = |part: &str| if looks_like_key(part) { replace(part) } else { part.to_owned() };
    let path = match of_path {
        OfPath::Nothing => path.to_owned(),
        OfPath::Keys => path.split('/').map(&mut part).collect::<Vec<_>>().join("/"),
    };
    let mut parameter = |parameter: &str| match parameter.split_once('=') {
        Some((_, "")) => parameter.to_owned(),
        Some((name, value)) => format!("{name}={}", replace(value)),
        None if parameter.is_empty() => String::new(),
        None => replace(parameter),
    };
    let query = match after.strip_prefix('?') {
        Some(query) => format!("?{}", query.split('&').map(&mut parameter).collect::<Vec<_>>().join("&")),
        None if after.len() > 1 => format!("#{}", replace(after.trim_start_matches('#'))),
        None => after.to_owned(),
    };
    format!("{scheme}://{authority}{path}{query}")
}

/// Whether a part of a path looks like a key. What has an `@` in it names something at a version of it: `serena@0123456789abcdef`.
pub(super) fn looks_like_key(part: &str) -> bool {
    part.len() >= 16
        && !part.contains('@')
        && part.bytes().any(|byte| byte.is_ascii_digit())
        && part.bytes().any(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_of_an_address_that_may_hold_a_secret_is_replaced_and_nothing_else() {
        let shown = |text| in_addresses(text, OfPath::Keys, |_| "***".to_owned());
        for (text, told) in [
            ("http://svc:word@host:80/mcp?api_key=k&empty=&bare", "http://***@host:80/mcp?api_key=***&empty=&***"),
            ("--db=postgres://me:word@host/name --quiet", "--db=postgres://me:***@host/name --quiet"),
            ("https://host/services/T01/XyZ0123456789abcdef#part", "https://host/services/T01/***#***"),
            ("npx --yes server", "npx --yes server"),
            ("git+https://host/org/name@0123456789abcdef", "git+https://host/org/name@0123456789abcdef"),
        ] {
            assert_eq!(shown(text), told);
        }
        let path = "https://host/v1/XyZ0123456789abcdef";
        assert_eq!(in_addresses(path, OfPath::Nothing, |_| "***".to_owned()), path);
    }
}
