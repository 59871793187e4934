//! An answer, as far as it is read.

use std::io;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Response, StatusCode};

use super::clients::Clients;
use super::packed::{Body, Packed, Wanted, coding};
use super::reach::Failure;
use super::target::Target;

/// How much of an answer is taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerLimits {
    /// The largest body, in bytes, unpacked; the rest of a larger one is not read.
    pub(crate) max_bytes: usize,
    /// How long it may take with all that leads to it.
    pub(crate) total: Duration,
}

/// An answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// Who gave it, after redirects.
    pub(crate) from: Target,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// Whether there was more than the limit.
    pub(crate) is_cut: bool,
}

impl Answer {
    /// Reads the body as far as the limit goes.
    pub(super) async fn read(
        from: Target,
        mut response: Response,
        max_bytes: usize,
        clients: &Clients,
    ) -> Result<Self, Failure> {
        let (status, headers) = (response.status(), response.headers().clone());
        let packed = |Packed { coding, why }: Packed| Failure::Packed { status, coding, why };
        let broken =
            |error: io::Error| packed(Packed { coding: coding(&headers), why: format!("cannot be unpacked: {error}") });
        let (mut body, mut has_come) = (Body::of(&headers, max_bytes).map_err(packed)?, false);
        while let Some(part) = response.chunk().await.map_err(|error| Failure::of(&error, clients))? {
            let (next, wanted) = body.take(&part).map_err(broken)?;
            (body, has_come) = (next, has_come || !part.is_empty());
            if wanted == Wanted::Nothing {
                break;
            }
        }
        let (body, is_cut) = body.end(has_come).map_err(broken)?;
        Ok(Self { from, status, headers, body, is_cut })
    }

    /// The type of the body without its parameters, in small letters.
    pub(crate) fn media_type(&self) -> String {
        let written = self.header(CONTENT_TYPE.as_str()).unwrap_or_default();
        written.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// A header that is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}
