//! The page: files that `cargo xtask page` makes, in the binary of a release build, read from the disk by a debug build.
//!
//! Nothing on the page comes from elsewhere and no script is written in it but the import map, which is let in by its hash.

use axum::extract::Path;
use axum::response::{Html, IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use rust_embed::{EmbeddedFile, RustEmbed};
use sha2::{Digest, Sha256};

use crate::error::ApiError;

/// What `cargo xtask page` made; nothing where it was not run.
#[derive(Debug, RustEmbed)]
#[folder = "../../web/made"]
struct Made;

/// A file of the page.
fn made(path: &str) -> Option<EmbeddedFile> {
    Made::get(&format!("page/{path}"))
}

/// Where the only script begins and ends that stands in the page itself.
const IMPORT_MAP: (&str, &str) = ("<script type=\"importmap\">", "</script>");

/// The page, or how to get it and how to do without.
pub(super) async fn page(headers: HeaderMap) -> Response {
    let Some(page) = made("index.html") else {
        return (policy(None), Html(include_str!("no_page.html"))).into_response();
    };
    let import_map = std::str::from_utf8(&page.data).ok().and_then(|html| {
        let (_, rest) = html.split_once(IMPORT_MAP.0)?;
        Some(rest.split_once(IMPORT_MAP.1)?.0.to_owned())
    });
    let policy = policy(import_map.as_deref());
    let mut response = sent("index.html", page, &headers);
    response.headers_mut().extend(policy);
    response
}

/// A file of the page.
pub(super) async fn file(Path(path): Path<String>, headers: HeaderMap) -> Result<Response, ApiError> {
    let is_plain = !path.split('/').any(|part| part.is_empty() || part.starts_with('.'));
    match made(&path).filter(|_| is_plain && kind(&path).is_some()) {
        Some(file) => Ok(sent(&path, file, &headers)),
        None => Err(ApiError::not_found(format_args!("file `{path}` of the page"))),
    }
}

/// A file, compressed where the browser takes that and it was compressed beforehand.
fn sent(path: &str, file: EmbeddedFile, asked: &HeaderMap) -> Response {
    let has_word = |name: header::HeaderName, word: &str| {
        asked.get_all(name).iter().filter_map(|value| value.to_str().ok()).any(|value| value.contains(word))
    };
    let tag = format!("\"{}\"", STANDARD.encode(file.metadata.sha256_hash()));
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind(path).unwrap_or("application/octet-stream")));
    // Asked for again each time, and not sent again while it is the same: a new binary is a new page at once.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    if has_word(header::IF_NONE_MATCH, &tag) {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    let packed = if has_word(header::ACCEPT_ENCODING, "gzip") { made(&format!("{path}.gz")) } else { None };
    let data = match packed {
        Some(packed) => {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            packed.data
        }
        None => file.data,
    };
    (headers, data.into_owned()).into_response()
}

/// The media type of a file that may be asked for.
fn kind(path: &str) -> Option<&'static str> {
    let (_, ending) = path.rsplit_once('.')?;
    Some(match ending {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "txt" => "text/plain; charset=utf-8",
        _ => return None,
    })
}

/// What the browser may do on the page: run and load what comes from here, and talk to nobody else.
fn policy(import_map: Option<&str>) -> HeaderMap {
    let script = import_map.map_or_else(String::new, |map| format!(" 'sha256-{}'", STANDARD.encode(Sha256::digest(map))));
    // What stands in for the page has its few styles in itself.
    let style = if import_map.is_some() { "'self'" } else { "'unsafe-inline'" };
    let policy = format!(
        "default-src 'none'; script-src 'self'{script}; style-src {style}; img-src 'self' data: blob:; media-src data: blob:; \
         connect-src 'self'; font-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    );
    let mut headers = HeaderMap::new();
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers
}
