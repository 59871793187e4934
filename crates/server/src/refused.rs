//! Refusals as a page, for people who open the server by a name or from a place for which it is not set up: what is wrong, and the
//! lines that mend it. Programs get the same as a problem document.

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::uri::Authority;
use http::{HeaderValue, header};

use crate::auth::{Auth, Site};
use crate::error::ApiError;
use crate::html::escaped;

/// What nginx has to hand on, whichever of the names is asked for.
const NGINX: &str = "proxy_set_header Host $http_host;\n\
                     proxy_set_header X-Forwarded-For $remote_addr;\n\
                     proxy_set_header X-Forwarded-Proto $scheme;\n\
                     proxy_set_header X-Forwarded-Host $http_host;\n\
                     proxy_set_header Forwarded \"\";\n\
                     proxy_buffering off;";

/// Somebody who reads the answer in a browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reader {
    /// Scheme and authority by which the browser has the server, as far as they can be told and written into a file.
    address: Option<String>,
}

impl Reader {
    /// Who reads the answer to this request; `None` where a program does.
    pub(crate) fn of(request: &Request) -> Option<Self> {
        let text = |name: header::HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok());
        if !text(header::ACCEPT)?.contains("text/html") {
            return None;
        }
        let origin = text(header::ORIGIN).map(str::to_owned);
        let address = origin.or_else(|| Some(format!("https://{}", text(header::HOST)?)));
        Some(Self { address: address.filter(|address| is_plain(address)) })
    }

    /// The answer as this reader reads it.
    pub(crate) fn told(&self, site: &Site, auth: Auth, response: Response) -> Response {
        let Some(html) = response.extensions().get().and_then(|error| self.page(site, auth, error)) else { return response };
        let (mut head, _) = response.into_parts();
        let headers = [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (
                header::CONTENT_SECURITY_POLICY,
                "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
            ),
            (header::CACHE_CONTROL, "no-store"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ];
        for (name, value) in headers {
            head.headers.insert(name, HeaderValue::from_static(value));
        }
        head.headers.remove(header::CONTENT_LENGTH);
        Response::from_parts(head, Body::from(html))
    }

    fn page(&self, site: &Site, auth: Auth, error: &ApiError) -> Option<String> {
        let settings = match error.code() {
            "host_not_allowed" | "origin_not_allowed" | "client_not_allowed" => self.settings(site, auth),
            "invalid_forwarding" => String::new(),
            _ => return None,
        };
        let nginx = format!("<p>What nginx hands on, in its <code>location</code>:</p><pre>{NGINX}</pre>");
        let page = include_str!("refused.html")
            .replace("<!--code-->", &format!("{} {}", error.status().as_u16(), error.code()))
            .replace("<!--mend-->", &format!("{settings}{nginx}"))
            .replace("<!--detail-->", &with_code(&error.to_string()));
        Some(page)
    }

    /// The lines of the configuration that let this address in.
    fn settings(&self, site: &Site, auth: Auth) -> String {
        let there = match &site.origin {
            Some(origin) => {
                let address = escaped(&format!("{origin}{}/", site.path));
                format!("<p>The server is at <a href=\"{address}\">{address}</a>.</p>")
            }
            None => String::new(),
        };
        let sign_in = match auth {
            Auth::Local => {
                "# Other machines reach it, so that people sign in: a start prints the first link.\nauth       = \"tokens\"\n"
            }
            Auth::Required => "",
        };
        let address = self.address.as_deref().unwrap_or("https://NAME");
        let line =
            escaped(&format!("# As the browser has it, with http:// or https://.\npublic_url = \"{address}{}\"", site.path));
        format!(
            "{there}<p>To be reached as it was now, it needs these lines in its <code>turnwright.toml</code>, and a new start:</p>\
             <pre>[server]\n{sign_in}{line}</pre>"
        )
    }
}

/// Whether an address is what browsers send, and nothing that would mean more in a file.
fn is_plain(address: &str) -> bool {
    let rest = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        let is_known = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | ':' | '[' | ']');
        rest.parse::<Authority>().is_ok() && rest.chars().all(is_known)
    })
}

/// A text with what stands between backticks as code.
fn with_code(text: &str) -> String {
    let pieces: Vec<String> = text.split('`').map(escaped).collect();
    let coded = |(at, piece): (usize, &String)| if at % 2 == 1 { format!("<code>{piece}</code>") } else { piece.clone() };
    pieces.iter().enumerate().map(coded).collect()
}

#[cfg(test)]
mod tests {
    use super::{is_plain, with_code};

    #[test]
    fn what_is_repeated_is_an_address_and_no_markup() {
        for (address, expected) in [
            ("https://tw.example", true),
            ("http://[::1]:8700", true),
            ("https://tw.example/path", false),
            ("https://a\"b", false),
            ("ftp://tw.example", false),
            ("null", false),
        ] {
            assert_eq!(is_plain(address), expected, "{address}");
        }
        assert_eq!(with_code("the Host is `<b>`; no"), "the Host is <code>&lt;b&gt;</code>; no");
    }
}
