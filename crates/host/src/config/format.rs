//! What a text must look like to be what its key asks for: the `format` of the schema.

use std::path::{Path, PathBuf};
use std::time::Duration;

use turnwright_core::ModelRef;
use turnwright_core::policy::check_glob;
use turnwright_network::{Outside, ProxyAddress};
use turnwright_tools::http::{FieldPath, OperationGlob};
use turnwright_tools::net::Allow;
use turnwright_tools::{PathGlob, check_denied};

use super::nats::nats_urls;
use crate::AddressRange;
use crate::secrets::key_bytes;
use crate::storage;

/// Where relative paths start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bases<'a> {
    /// The folder of the file, or the working directory for variables and flags.
    pub(crate) folder: &'a Path,
    /// What `~/` stands for.
    pub(crate) home: Option<&'a Path>,
}

/// The most bytes of the name of an MCP server.
const MAX_SERVER_NAME_BYTES: usize = 128;

/// Whether an MCP server may have this name, else what would be right: it stands in addresses, of which browsers take `.` and `..` out
/// however they are written, in keys of stores, and before the tools' names in rules.
pub(crate) fn server_name(name: &str) -> Result<(), String> {
    let is_step = matches!(name, "." | "..");
    if name.is_empty() {
        return Err("a name that is not empty".to_owned());
    }
    if is_step || name.len() > MAX_SERVER_NAME_BYTES || name.contains("__") || name.chars().any(char::is_control) {
        let right = "a name without `__`, line breaks and other control characters, not `.` or `..`";
        return Err(format!("{right}, at most {MAX_SERVER_NAME_BYTES} bytes"));
    }
    Ok(())
}

/// The text as it is used, or what would be right.
pub(crate) fn parse(format: &str, text: &str, bases: Bases<'_>) -> Result<String, String> {
    let must = |is_right: bool, right: &str| if is_right { Ok(text.to_owned()) } else { Err(right.to_owned()) };
    match format {
        "path" => must(!text.is_empty() && !text.contains('\0'), "a path").map(|text| absolute(&text, bases)),
        "program" => must(!text.trim().is_empty() && !text.contains('\0'), "the name or path of a program")
            .map(|text| if text.contains('/') { absolute(&text, bases) } else { text }),
        "model" => must(text.parse::<ModelRef>().is_ok(), "PROVIDER/MODEL, such as `local/qwen3`"),
        "http-url" => http_url(text).map(|_| text.to_owned()),
        "origin" => origin(text),
        "api-url" => api_url(text),
        "base-url" => base_url(text),
        "document" => document(text, bases),
        "operation-glob" => OperationGlob::new(text)
            .map(|_| text.to_owned())
            .map_err(|why| format!("a glob over operations, such as `issues/*` or `GET /issues/*` ({why})")),
        "field-path" => FieldPath::new(text)
            .map(|_| text.to_owned())
            .map_err(|why| format!("the way to a field of an answer, such as `issues.fields.summary` ({why})")),
        "base-path" => base_path(text),
        "address-range" => text.parse::<AddressRange>().map(|_| text.to_owned()).map_err(|right| right.to_string()),
        "proxy" => proxy(text),
        "past-proxy" => must(
            is_past_proxy(text),
            "a host, a domain such as `example.org`, an address, a range such as `10.0.0.0/8`, or `*`",
        ),
        "listen" => must(is_listen(text), "ADDRESS:PORT, such as `127.0.0.1:8700`"),
        "log-level" => must(
            is_log_level(text),
            "`off`, `error`, `warn`, `info`, `debug`, `trace`, or directives such as `warn,turnwright_mcp=debug`",
        ),
        "database" => database(text, bases),
        "seal-key" => must(key_bytes(text).is_some(), "64 hexadecimal digits, such as `openssl rand -hex 32` prints"),
        "nats-url" => nats_urls(text),
        "nats-prefix" => must(
            (1..=32).contains(&text.len()) && text.chars().all(|sign| sign.is_ascii_alphanumeric() || "-_".contains(sign)),
            "1 to 32 letters, digits, `-` and `_`",
        ),
        "duration" => must(duration(text).is_some(), "a time such as `30s`, `15m`, `12h` or `7d`"),
        "glob" => glob(text).map(|()| text.to_owned()),
        "provider-name" => must(
            !text.is_empty() && !text.contains('/'),
            "a name without `/`, because a model is PROVIDER/MODEL, split at the first `/`",
        ),
        "server-name" => server_name(text).map(|()| text.to_owned()),
        "knowledge-name" => must(
            !text.is_empty()
                && text.len() <= 64
                && text.chars().all(|sign| sign.is_ascii_alphanumeric() || "-_".contains(sign)),
            "a name of at most 64 letters, digits, `-` and `_`",
        ),
        "path-glob" => PathGlob::new(text, false)
            .map(|_| text.to_owned())
            .map_err(|why| format!("a glob over paths, such as `docs/**/*.md` ({why})")),
        "file-name" => {
            must(!text.is_empty() && !text.contains('/') && text != "." && text != "..", "the name of a file, without `/`")
        }
        "denied-pattern" => denied_pattern(text, bases),
        "header-name" => header_name(text).map(|()| text.to_owned()).map_err(str::to_owned),
        "reached-address" => Allow::new([text])
            .map(|_| text.to_owned())
            .map_err(|_| "an address or a range, with a port or without, such as `127.0.0.1:8080` or `10.1.0.0/16`".to_owned()),
        "members-address" => Outside::new([text], "").map(|_| text.to_owned()).map_err(|_| {
            "the name of a host, an address or a range, such as `wiki.example.org`, `127.0.0.1:8080` or `10.1.0.0/16`"
                .to_owned()
        }),
        "mount" => must(is_mount(text), "a mount, `/here:/there` with absolute paths, and `:ro` or `:rw` after it"),
        "variable-name" => must(!text.is_empty() && !text.contains(['=', '\0']), "the name of a variable, without `=`"),
        _ => Ok(text.to_owned()),
    }
}

fn absolute(text: &str, bases: Bases<'_>) -> String {
    let home = |rest: &str| bases.home.map(|home| home.join(rest));
    let path = match text.strip_prefix("~/") {
        Some(rest) => home(rest),
        None if text == "~" => home(""),
        None => None,
    };
    let path = bases.folder.join(path.unwrap_or_else(|| PathBuf::from(text)));
    // Made of its components again, `./x` is `x`; `..` stays, since a link may be before it.
    path.components().collect::<PathBuf>().to_string_lossy().into_owned()
}

/// The address of a database, where it is a file by its whole path.
fn database(text: &str, bases: Bases<'_>) -> Result<String, String> {
    if text.is_empty() || text.contains('\0') {
        return Err("a database URL or file, such as `postgres://user@host/name`".to_owned());
    }
    if storage::is_broken_postgres(text) {
        return Err(storage::OF_POSTGRES.to_owned());
    }
    let file = text.strip_prefix("sqlite://").or_else(|| text.strip_prefix("sqlite:")).unwrap_or(text);
    // What is no address of a file is looked at by whoever opens it.
    Ok(if file.is_empty() || file.contains("://") { text.to_owned() } else { absolute(file, bases) })
}

fn is_mount(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    let is_absolute = |path: &str| path.starts_with('/');
    match parts.as_slice() {
        [here, there] | [here, there, "ro" | "rw"] => is_absolute(here) && is_absolute(there),
        _ => false,
    }
}

/// The part of a URL that names the host, or what would be right.
fn http_url(text: &str) -> Result<&str, String> {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let authority = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    if authority.is_empty() || text.contains(char::is_whitespace) {
        return Err("a URL that begins with http:// or https://".to_owned());
    }
    let host_and_port = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    // The colons of an IPv6 address are within brackets.
    let after_address = host_and_port.rsplit_once(']').map(|(host, rest)| (host, rest.strip_prefix(':')));
    let (host, port) = after_address
        .or_else(|| host_and_port.split_once(':').map(|(host, port)| (host, Some(port))))
        .unwrap_or((host_and_port, None));
    let is_port = |port: &str| port.is_empty() || port.parse::<u16>().is_ok_and(|port| port > 0);
    match port {
        _ if host.is_empty() => Err("a URL with the name of a host, such as `http://127.0.0.1:8080`".to_owned()),
        Some(port) if !is_port(port) => Err(format!("a URL whose port is a number from 1 to {}", u16::MAX)),
        Some(_) | None => Ok(authority),
    }
}

/// Scheme, host and port alone, in small letters as browsers write them.
fn origin(text: &str) -> Result<String, String> {
    let authority = http_url(text)?;
    let is_alone = text.ends_with(authority) && !authority.contains('@');
    let is_plain = authority.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte));
    let right = "an origin: scheme, host and port alone, such as `https://apps.example.org`";
    if is_alone && is_plain { Ok(text.to_ascii_lowercase()) } else { Err(right.to_owned()) }
}

/// Where an API is; who asks is said elsewhere.
fn api_url(text: &str) -> Result<String, String> {
    if http_url(text)?.contains('@') {
        return Err("a URL without a user or a key before its host; they belong to `auth`".to_owned());
    }
    Ok(text.to_owned())
}

/// A document at an address or in a file.
fn document(text: &str, bases: Bases<'_>) -> Result<String, String> {
    match text.split_once("://") {
        Some(("http" | "https", _)) => api_url(text),
        Some((scheme, _)) if scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
            Err("a file, or an address that begins with https:// or http://".to_owned())
        }
        Some(_) | None if text.trim().is_empty() => {
            Err("a file or an address, such as `petstore.yaml` or `https://api.example.org/openapi.json`".to_owned())
        }
        Some(_) | None => Ok(absolute(text, bases)),
    }
}

/// An address before its API's own path, without a `/` at its end, or what would be right.
pub(crate) fn base_url(text: &str) -> Result<String, String> {
    const API_PATHS: [&str; 4] = ["/chat/completions", "/responses", "/v1/messages", "/api/chat"];
    if http_url(text)?.contains('@') {
        return Err(
            "a URL without a user or a key before its host, which are never sent; use `api_key` or `headers`".to_owned()
        );
    }
    let text = text.trim_end_matches('/');
    match API_PATHS.iter().find_map(|path| text.strip_suffix(path)) {
        Some(base) => Err(format!("what comes before the API's own path: `{base}`")),
        None => Ok(text.to_owned()),
    }
}

/// A path below which the server is found, without a `/` at its end, or what would be right.
pub(crate) fn base_path(text: &str) -> Result<String, String> {
    /// What the server answers to at the top: below one of these it could not be told what is asked for.
    const OWN: [&str; 12] =
        ["ag-ui", "api", "docs", "healthz", "login", "logout", "mcp", "metrics", "openapi.json", "page", "readyz", "v1"];
    let is_plain = |part: &str| {
        let is_of_names = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
        !part.is_empty() && part != "." && part != ".." && part.bytes().all(is_of_names)
    };
    let path = text.trim_end_matches('/');
    let Some(rest) = path.strip_prefix('/').filter(|rest| rest.split('/').all(is_plain)) else {
        return Err("a path of letters, digits and `-_.~`, such as `/turnwright`".to_owned());
    };
    match rest.split('/').next().filter(|first| OWN.contains(first)) {
        Some(first) => Err(format!("a path that does not begin with one of the server's own, as `/{first}` is")),
        None => Ok(path.to_owned()),
    }
}

fn proxy(text: &str) -> Result<String, String> {
    match ProxyAddress::read(text) {
        Ok(proxy) if proxy.has_login() => {
            Err("a URL without a user and a password, which are for `proxy_user` and `proxy_password`".to_owned())
        }
        Ok(_) => Ok(text.to_owned()),
        Err(right) => Err(right.to_string()),
    }
}

fn is_past_proxy(text: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let name = text.trim_start_matches('.');
    text == "*" || text.parse::<AddressRange>().is_ok() || (!name.is_empty() && name.bytes().all(is_name))
}

fn is_listen(text: &str) -> bool {
    let port = |port: &str| port.parse::<u16>().is_ok();
    text.parse::<std::net::SocketAddr>().is_ok()
        || text.rsplit_once(':').is_some_and(|(host, number)| !host.is_empty() && !host.contains([':', '/']) && port(number))
}

fn is_log_level(text: &str) -> bool {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    let is_level = |word: &str| LEVELS.contains(&word.to_ascii_lowercase().as_str());
    text.split(',').all(|directive| match directive.rsplit_once('=') {
        Some((target, level)) => is_log_target(target.trim()) && is_level(level.trim()),
        None => is_level(directive.trim()),
    })
}

/// A module, `[SPAN]` or `[SPAN{FIELDS}]`, or a module with that behind it.
fn is_log_target(text: &str) -> bool {
    let is_plain = |text: &str| !text.contains(['[', ']', '{', '}']);
    let is_span = |text: &str| match text.split_once('{') {
        Some((span, fields)) => is_plain(span) && fields.strip_suffix('}').is_some_and(is_plain),
        None => is_plain(text),
    };
    match text.split_once('[') {
        Some((module, span)) => is_plain(module) && span.strip_suffix(']').is_some_and(is_span),
        None => !text.is_empty() && is_plain(text),
    }
}

/// Whether a header may be given this name, else what would be right.
pub(crate) fn header_name(text: &str) -> Result<(), &'static str> {
    /// They say how a request lies on its connection, which whoever sends it knows alone.
    const FRAMING: [&str; 8] =
        ["connection", "content-length", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"];
    if text.is_empty() || !text.chars().all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)) {
        return Err("the name of an HTTP header, such as `X-Title`");
    }
    if FRAMING.contains(&text.to_ascii_lowercase().as_str()) {
        return Err("a header that says nothing of how a request is sent, which is done for each request by itself");
    }
    Ok(())
}

/// A pattern of what is not touched, in which `~/` is the home folder.
fn denied_pattern(text: &str, bases: Bases<'_>) -> Result<String, String> {
    check_denied(text).map_err(|why| format!("a pattern as in `.gitignore`, such as `private/` or `*.sqlite` ({why})"))?;
    let (takes_back, pattern) = text.strip_prefix('!').map_or(("", text), |pattern| ("!", pattern));
    match (pattern.strip_prefix("~/"), bases.home) {
        (Some(rest), Some(home)) => Ok(format!("{takes_back}{}", home.join(rest).display())),
        (Some(_), None) => Err("a pattern without `~/`, since no home folder is known".to_owned()),
        (None, _) => Ok(text.to_owned()),
    }
}

/// A number with `s`, `m`, `h` or `d` after it.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let seconds = match text.char_indices().last()? {
        (_, 's') => 1,
        (_, 'm') => 60,
        (_, 'h') => 3_600,
        (_, 'd') => 86_400,
        _ => return None,
    };
    let count: u64 = text.get(..text.len() - 1)?.parse().ok()?;
    count.checked_mul(seconds).filter(|seconds| *seconds > 0).map(Duration::from_secs)
}

/// A glob is one where the approval policy says so.
fn glob(text: &str) -> Result<(), String> {
    check_glob(text).map_err(|reason| format!("a glob, such as `filesystem__write*` ({reason})"))
}
