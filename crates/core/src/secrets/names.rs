//! What says that a value is a secret: the name under which it is given, or how it looks.

use super::Secrets;
use super::address::looks_like_key;

/// Parts of the names of variables and headers that hold secrets.
const PARTS: [&str; 8] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "AUTHORIZATION"];
/// Words of such names that are parts of harmless ones too.
const WORDS: [&str; 6] = ["PASS", "PWD", "PAT", "COOKIE", "DSN", "JWT"];
/// Words of the names of an address's parameters that hold secrets, beside those.
const WORDS_OF_QUERIES: [&str; 4] = ["SIG", "SIGNATURE", "AUTH", "CODE"];
/// Where a shell is, and no password.
const WORKING_DIRECTORY: &str = "PWD";
/// What a name ends with that says where a secret is, and is none.
const PLACES: [&str; 5] = ["FILE", "PATH", "DIR", "SOCK", "NAME"];
/// What keys of known services begin with.
const BEGINNINGS: [&str; 24] = [
    "sk-",
    "sk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "eyJ",
    "hf_",
    "npm_",
    "pypi-",
    "shpat_",
    "ya29.",
    "tvly-",
    "whsec_",
];
/// What stands before a token in the header `Authorization`.
const SCHEMES: [&str; 4] = ["Bearer", "Basic", "Token", "ApiKey"];
/// What people write where a key is asked for and none is needed.
const FILLERS: [&str; 14] = [
    "none",
    "null",
    "empty",
    "dummy",
    "test",
    "ollama",
    "lm-studio",
    "not-needed",
    "not_needed",
    "no-key",
    "no-key-required",
    "sk-no-key-required",
    "placeholder",
    "unused",
];

/// The secrets in what is given under a name: the value, where the name or the value itself says that it is one, or the password of
/// an address.
pub fn given(name: &str, value: &str) -> Vec<String> {
    let value = value.trim();
    if value.contains("://") {
        return of_address(value);
    }
    if !is_known_key(value) && (!is_secret_name(name) || is_filler(value)) {
        return Vec::new();
    }
    // What stands before a token in a header is none.
    match value.split_once(' ') {
        Some((scheme, token)) if scheme.chars().all(|c| c.is_ascii_alphabetic()) && scheme.len() <= 12 => {
            vec![token.trim().to_owned()]
        }
        _ => vec![value.to_owned()],
    }
}

/// The secrets in an argument of a program. It is named by the option before it, `--token=x` or `--token x`, or is a header,
/// `Authorization: Bearer x`, also behind an option; or it looks like a key, or is an address with one.
pub fn given_in_argument(before: &str, argument: &str) -> Vec<String> {
    // Any other word says what that one is, such as the name of a container before its image.
    let before = if before.starts_with('-') { before } else { "" };
    if let Some(found) = in_header(before, argument) {
        return found;
    }
    let (name, value) = argument.split_once('=').unwrap_or((before, argument));
    if value.starts_with('-') {
        return Vec::new();
    }
    in_header(name, value).unwrap_or_else(|| given(name, value))
}

/// The secrets of a header behind this option, where it holds some. What has a colon is mostly none: `data:/place`, `image:tag`.
fn in_header(option: &str, text: &str) -> Option<Vec<String>> {
    let (name, value) = text.split_once(':')?;
    let is_token = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let is_asked = option == "-H" || option.to_ascii_lowercase().contains("header") || name.starts_with("-H");
    let has_scheme = value
        .split_once(' ')
        .is_some_and(|(scheme, _)| scheme.is_empty() || SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known)));
    let is_header = is_token && !value.starts_with('/') && (is_asked || has_scheme || is_known_key(value));
    is_header.then(|| given(name, value)).filter(|found| !found.is_empty())
}

/// Whether it is like the keys of known services.
fn is_known_key(value: &str) -> bool {
    BEGINNINGS.iter().any(|begin| value.starts_with(begin)) && value.len() >= 16
}

fn is_secret_name(name: &str) -> bool {
    if name == WORKING_DIRECTORY {
        return false;
    }
    let name = name.to_ascii_uppercase();
    let words: Vec<&str> = words(&name).collect();
    let tells_place = words.last().is_some_and(|last| PLACES.contains(last));
    !tells_place && (PARTS.iter().any(|part| name.contains(part)) || words.iter().any(|word| WORDS.contains(word)))
}

fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split(|c: char| !c.is_ascii_alphanumeric())
}

/// Whether a parameter of an address holds a secret. Most say how something is done, such as `api-version=2024-10-21` and
/// `sslmode=verify-full`, and what they say may be said anywhere. Where a database is, no parameter looks like a key but by its name.
fn is_secret_parameter(name: &str, value: &str, is_http: bool) -> bool {
    let upper = name.to_ascii_uppercase();
    let has = |known: &[&str]| words(&upper).any(|word| known.contains(&word));
    let is_key = is_known_key(value) || (is_http && looks_like_key(value) && !has(&["VERSION"]));
    is_secret_name(name) || has(&WORDS_OF_QUERIES) || is_key
}

/// Whether a value only fills a place where none is needed.
pub fn is_filler(value: &str) -> bool {
    FILLERS.iter().any(|filler| value.eq_ignore_ascii_case(filler))
}

/// The password of an address, the values of its query whose names say so, and over HTTP a user's name without a password, and values
/// of the query and parts of the path that look like keys.
pub fn of_address(address: &str) -> Vec<String> {
    let Some((scheme, rest)) = address.split_once("://") else { return Vec::new() };
    let (before, query) = rest.split_once(['?', '#']).unwrap_or((rest, ""));
    let (authority, path) = before.split_once('/').unwrap_or((before, ""));
    let is_http = scheme.to_ascii_lowercase().ends_with("http") || scheme.to_ascii_lowercase().ends_with("https");
    let mut found: Vec<String> = Vec::new();
    if let Some((user, _)) = authority.rsplit_once('@') {
        let (user, password) = user.split_once(':').unwrap_or((user, ""));
        found.push(password.to_owned());
        if is_http && password.is_empty() {
            found.push(user.to_owned());
        }
    }
    let parameters = query.split(['&', '#']).filter_map(|parameter| parameter.split_once('='));
    found.extend(
        parameters.filter(|(name, value)| is_secret_parameter(name, value, is_http)).map(|(_, value)| value.to_owned()),
    );
    if is_http {
        found.extend(path.split('/').filter(|part| looks_like_key(part)).map(str::to_owned));
    }
    found.retain(|part| part.len() >= Secrets::MIN_BYTES);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_or_the_value_itself_says_what_is_a_secret() {
        let secrets = [
            ("API_KEY", "0123456789"),
            ("GITHUB_PAT", "0123456789"),
            ("x-api-key", "0123456789"),
            ("DB_PASSWORD", "correct horse"),
            ("DB_PWD", "correct horse"),
            ("ANYTHING", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
        ];
        for (name, value) in secrets {
            assert_eq!(given(name, value).len(), 1, "{name}");
        }
        let others = [
            ("HOME", "/home/somebody"),
            ("PWD", "/home/somebody/project"),
            ("PATH", "/usr/bin:/bin"),
            ("API_KEY_FILE", "/run/secrets/key"),
            ("SSH_AUTH_SOCK", "/run/user/1000/keyring/ssh"),
            ("LOG_LEVEL", "debugging"),
            ("OPENAI_API_KEY", "not-needed"),
            ("API_URL", "https://api.example.org/v1"),
        ];
        for (name, value) in others {
            assert_eq!(given(name, value), Vec::<String>::new(), "{name}");
        }
    }

    #[test]
    fn in_an_argument_it_has_its_name_before_it() {
        let secrets = [
            ("", "--token=0123456789", "0123456789"),
            ("--token", "0123456789", "0123456789"),
            ("--token", "0123:456789", "0123:456789"),
            ("--header", "Authorization: Bearer 0123456789==", "0123456789=="),
            ("-H", "X-Api-Key:0123456789", "0123456789"),
            ("-H", "X-Api-Key:0123456==", "0123456=="),
            ("", "-HX-Api-Key:0123456789", "0123456789"),
            ("", "--header=Authorization: Bearer 0123456789", "0123456789"),
            ("", "--header=X-Api-Key:0123456789", "0123456789"),
            ("--add", "Authorization:Bearer 0123456789", "0123456789"),
            ("--set", "key:sk-0123456789abcdef", "sk-0123456789abcdef"),
            ("mcp-remote", "https://h.example/mcp?access_token=0123456789", "0123456789"),
        ];
        for (before, argument, secret) in secrets {
            assert_eq!(given_in_argument(before, argument), [secret], "{argument}");
        }
        let others = [
            ("--token", "--verbose"),
            ("-H", "Accept: text/html"),
            ("-v", "/opt/secret:/opt/secret"),
            ("-v", "keycloak-data:/opt/keycloak/data"),
            ("", "--volume=keycloak-data:/opt/keycloak/data"),
            ("", "keycloak-mcp:24.0.5-alpine"),
            ("keycloak-data:/opt/keycloak/data", "keycloak-mcp:24.0.5-alpine"),
            ("keycloak", "keycloak-mcp:24.0.5-alpine"),
            ("keycloak-mcp", "production"),
            ("", "a:b"),
        ];
        for (before, argument) in others {
            assert_eq!(given_in_argument(before, argument), Vec::<String>::new(), "{argument}");
        }
    }

    #[test]
    fn of_a_header_the_token_and_of_an_address_the_password_is_one() {
        assert_eq!(given("Authorization", "Bearer 0123456789"), ["0123456789"]);
        assert_eq!(given("DATABASE_URL", "postgres://me:pass-word-1@host/db"), ["pass-word-1"]);
        assert_eq!(
            given("HOOK", "https://hooks.example.org/services/T0123456789/XyZ0123456789abcdef"),
            ["XyZ0123456789abcdef"]
        );
        assert_eq!(given("U", "https://token-0123@host/v1?key=k0123456"), ["token-0123", "k0123456"]);
    }

    #[test]
    fn what_an_address_says_of_how_it_is_used_is_no_secret() {
        let addresses = [
            (
                "postgres://me@host/db_of_project_2024?schema=turnwright_prod&sslmode=verify-full&application_name=turnwright-1",
                None,
            ),
            ("postgres://me@host/db?sslrootcert=/etc/ssl/certs/ca-2024.pem&sslpassword=correct-horse", Some("correct-horse")),
            ("https://a.openai.azure.com/openai?api-version=2024-10-21-preview", None),
            ("https://h.example/mcp?tools=search,read&mode=read-only", None),
            ("git+https://h.example/oraios/serena@0123456789abcdef0123456789abcdef01234567", None),
            ("https://h.example/mcp?profile=T0123456789XyZ01", Some("T0123456789XyZ01")),
            ("https://h.example/mcp?sig=aBcDeFgHi&v=1", Some("aBcDeFgHi")),
            ("HTTPS://h.example/mcp?v=1#access_token=aBcDeFgHi", Some("aBcDeFgHi")),
        ];
        for (address, secret) in addresses {
            assert_eq!(of_address(address), secret.into_iter().collect::<Vec<_>>(), "{address}");
        }
    }
}
