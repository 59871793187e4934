//! Whether a browser sends a request for our own page, and not for another site's.

use http::{HeaderMap, StatusCode, header};

use super::Site;
use crate::error::ApiError;
use crate::forwarded::Client;

/// Refuses what a page of another site has a browser send.
///
/// # Errors
/// 403, where the browser does not say that the page is ours.
pub(crate) fn same_origin(site: &Site, client: Client, headers: &HeaderMap) -> Result<(), ApiError> {
    let refuse = |detail: String| Err(ApiError::new(StatusCode::FORBIDDEN, "origin_not_allowed", detail));
    let Some(origin) = headers.get(header::ORIGIN) else {
        // Browsers that leave `Origin` out say it so.
        return match headers.get("sec-fetch-site").and_then(|value| value.to_str().ok()) {
            Some("same-origin") => Ok(()),
            _ => refuse("a request with a cookie that changes something must say its Origin".to_owned()),
        };
    };
    let origin = origin.to_str().unwrap_or("(not text)");
    let is_ours = if let Some(ours) = &site.origin {
        origin.eq_ignore_ascii_case(ours)
    } else {
        let host = headers.get(header::HOST).and_then(|value| value.to_str().ok()).unwrap_or_default();
        // A proxy that nobody vouches for may have taken TLS away.
        let plain = || if client.is_https() { None } else { origin.strip_prefix("http://") };
        let theirs = origin.strip_prefix("https://").or_else(plain);
        !host.is_empty() && theirs.is_some_and(|theirs| theirs.eq_ignore_ascii_case(host))
    };
    if is_ours {
        return Ok(());
    }
    if let Some(ours) = &site.origin {
        return refuse(format!(
            "the Origin is `{origin}`; only this server's own page may do this, which is at `{ours}` (`server.public_url`)"
        ));
    }
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok()).unwrap_or_default();
    refuse(format!(
        "the Origin is `{origin}` and the Host `{host}`; only this server's own page may do this; if it is that page behind a proxy, \
         write `public_url = \"{origin}\"` below `[server]`"
    ))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::{Client, Site, same_origin};
    use crate::apps::Apps;

    #[test]
    fn only_the_own_page_may_use_the_cookie() {
        let table = [
            (None, &[("host", "tw.example:8700"), ("origin", "http://tw.example:8700")][..], true),
            (None, &[("host", "tw.example"), ("origin", "https://tw.example")], true),
            (None, &[("host", "tw.example"), ("origin", "https://evil.example")], false),
            (None, &[("host", "tw.example"), ("origin", "https://tw.example.evil.example")], false),
            (None, &[("host", "tw.example"), ("origin", "null")], false),
            (None, &[("host", "tw.example")], false),
            (None, &[("host", "tw.example"), ("sec-fetch-site", "same-origin")], true),
            (None, &[("host", "tw.example"), ("sec-fetch-site", "same-site")], false),
            (None, &[("host", ""), ("origin", "http://")], false),
            (Some("https://tw.example"), &[("host", "inside:8700"), ("origin", "https://tw.example")], true),
            (Some("https://tw.example"), &[("host", "tw.example"), ("origin", "http://tw.example")], false),
        ];
        for (origin, given, expected) in table {
            let mut headers = HeaderMap::new();
            for (name, value) in given {
                headers.insert(*name, HeaderValue::from_static(value));
            }
            let site = Site {
                host: None,
                origin: origin.map(str::to_owned),
                is_tls: false,
                path: String::new(),
                trusted_proxies: Vec::new(),
                allowed_origins: Vec::new(),
                apps: Apps::default(),
            };
            assert_eq!(same_origin(&site, Client::default(), &headers).is_ok(), expected, "{origin:?} {given:?}");
        }
    }
}
