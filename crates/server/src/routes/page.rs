//! The page: files that `cargo xtask page` makes, in the binary of a release build, read from the disk by a debug build.
//!
//! Nothing on the page comes from elsewhere and no script is written in it but the import map, which is let in by its hash.

use axum::extract::Path;
use axum::response::{Html, IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use rust_embed::{EmbeddedFile, RustEmbed};
use sha2::{Digest, Sha256};

use crate::apps::{Place, place};
use crate::error::ApiError;
use crate::extract::State;
use crate::tag::is_known;

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
pub(super) async fn page(State(state): State, uri: Uri, headers: HeaderMap) -> Response {
    let Some(page) = made("index.html") else {
        return (policy(None, None), Html(include_str!("no_page.html"))).into_response();
    };
    let import_map = std::str::from_utf8(&page.data).ok().and_then(|html| {
        let (_, rest) = html.split_once(IMPORT_MAP.0)?;
        Some(rest.split_once(IMPORT_MAP.1)?.0.to_owned())
    });
    let place = place(state.site(), &uri, &headers, state.client()).ok();
    let policy = policy(import_map.as_deref(), place.as_ref());
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
    let words = |name: header::HeaderName| asked.get_all(name).iter().filter_map(|value| value.to_str().ok());
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
    if is_known(asked, &tag) {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    // The smaller first. Browsers take brotli over TLS and on this machine alone, and gzip everywhere.
    let packed = [("br", "br"), ("gzip", "gz")].into_iter().find_map(|(coding, ending)| {
        let is_taken = words(header::ACCEPT_ENCODING).any(|accepted| takes(accepted, coding));
        Some((coding, made(&format!("{path}.{ending}")).filter(|_| is_taken)?))
    });
    let data = match packed {
        Some((coding, packed)) => {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
            packed.data
        }
        None => file.data,
    };
    (headers, data.into_owned()).into_response()
}

/// Whether `accepted`, a value of `Accept-Encoding`, names `coding` and does not refuse it (RFC 9110 section 12.5.3).
fn takes(accepted: &str, coding: &str) -> bool {
    accepted.split(',').any(|part| {
        let (name, weight) = part.split_once(';').unwrap_or((part, ""));
        let weight = weight.trim().strip_prefix("q=").map(|weight| weight.trim_matches(['0', '.']));
        name.trim().eq_ignore_ascii_case(coding) && weight != Some("")
    })
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

/// What the browser may do on the page: run and load what comes from here, and talk to nobody else. Pages of MCP servers are in
/// frames of another origin.
fn policy(import_map: Option<&str>, place: Option<&Place>) -> HeaderMap {
    let frames = place.map_or("'none'", |place| &place.frames);
    let script = import_map.map_or_else(String::new, |map| format!(" 'sha256-{}'", STANDARD.encode(Sha256::digest(map))));
    // What stands in for the page has its few styles in itself.
    let style = if import_map.is_some() { "'self'" } else { "'unsafe-inline'" };
    let policy = format!(
        "default-src 'none'; script-src 'self'{script}; style-src {style}; img-src 'self' data: blob:; media-src data: blob:; \
         connect-src 'self'; font-src 'self'; frame-src {frames}; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
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

#[cfg(test)]
mod tests {
    use super::takes;

    #[test]
    fn a_file_is_sent_in_a_coding_that_is_named_and_not_refused() {
        let taken = |accepted: &str| ["br", "gzip"].map(|coding| takes(accepted, coding));
        assert_eq!(taken("gzip, deflate, br, zstd"), [true, true]);
        assert_eq!(taken("gzip, deflate"), [false, true]);
        assert_eq!(taken("br;q=0, GZIP;q=0.5"), [false, true]);
        assert_eq!(taken("brotli, x-gzip;q=1.0"), [false, false]);
        assert_eq!(taken("gzip; q=0.0, identity"), [false, false]);
    }
}
