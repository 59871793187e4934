//! Carrying out a request: with the secrets to the API itself, without them wherever it leads to.

use std::time::Duration;

use reqwest::header::{ACCEPT, HeaderMap, LOCATION, USER_AGENT};
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use url::Url;

use super::auth::Secrets;
use super::request::HttpRequest;
use super::server::Trust;
use crate::net::{Answer, AnswerLimits, Failure, Named, Reach, Target};

/// The most redirects that are followed.
const MAX_REDIRECTS: usize = 5;

/// Sends the requests of one API.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) named: Named,
    pub(super) reach: Reach,
    pub(super) user_agent: String,
}

impl Sender {
    /// Sends a request and follows where the answer leads, as far as nothing is changed by it. Secrets go to the host of the
    /// request alone.
    pub(super) async fn send(
        &self,
        request: HttpRequest,
        trust: Trust,
        secrets: &Secrets,
        limits: AnswerLimits,
    ) -> Result<Answer, Failure> {
        let following = self.follow(request, trust, secrets, limits);
        tokio::time::timeout(limits.total, following).await.unwrap_or(Err(Failure::Timeout { limit: limits.total }))
    }

    async fn follow(
        &self,
        mut request: HttpRequest,
        trust: Trust,
        secrets: &Secrets,
        limits: AnswerLimits,
    ) -> Result<Answer, Failure> {
        let home = request.url.origin();
        for _ in 0..=MAX_REDIRECTS {
            let answer = if request.url.origin() == home {
                self.at_home(&request, trust, secrets, limits).await?
            } else {
                self.elsewhere(&request, limits).await?
            };
            match next(&request, &answer) {
                Some(next) => request = next,
                None => return Ok(answer),
            }
        }
        Err(Failure::Redirects { limit: MAX_REDIRECTS })
    }

    async fn at_home(
        &self,
        request: &HttpRequest,
        trust: Trust,
        secrets: &Secrets,
        limits: AnswerLimits,
    ) -> Result<Answer, Failure> {
        let mut url = request.url.clone();
        secrets.place(&mut url);
        let mut headers = request.headers.clone();
        // What the operator sends stands before what an argument holds.
        headers.extend(secrets.headers.clone().into_iter().filter_map(|(name, value)| Some((name?, value))));
        if !headers.contains_key(USER_AGENT) {
            headers.extend(reqwest::header::HeaderValue::from_str(&self.user_agent).ok().map(|value| (USER_AGENT, value)));
        }
        let begin = |client: &Client, target: &Target| {
            let begun = client.request(request.method.clone(), target.url().clone()).headers(headers);
            with_body(begun, request.body.as_ref())
        };
        match trust {
            Trust::Operator => self.named.send(&Target::named(url.as_str())?, limits, begin).await,
            Trust::Description => {
                let target = Target::parse(url.as_str(), self.reach.allow())?;
                self.reach.send(&target, limits.max_bytes, begin).await
            }
        }
    }

    /// At another host: it gets what any page would get.
    async fn elsewhere(&self, request: &HttpRequest, limits: AnswerLimits) -> Result<Answer, Failure> {
        let target = Target::parse(request.url.as_str(), self.reach.allow())?;
        let mut headers = HeaderMap::new();
        headers.extend(request.headers.get(ACCEPT).cloned().map(|value| (ACCEPT, value)));
        let agent = self.user_agent.as_str();
        let begin = |client: &Client, target: &Target| {
            client.request(request.method.clone(), target.url().clone()).headers(headers).header(USER_AGENT, agent)
        };
        self.reach.send(&target, limits.max_bytes, begin).await
    }

    /// Gets a document that the operator named.
    pub(super) async fn get(&self, url: Url, timeout: Duration, max_bytes: usize) -> Result<Answer, Failure> {
        let request = HttpRequest { method: Method::GET, url, headers: HeaderMap::new(), body: None };
        self.send(request, Trust::Operator, &Secrets::default(), AnswerLimits { max_bytes, total: timeout }).await
    }
}

fn with_body(request: RequestBuilder, body: Option<&Vec<u8>>) -> RequestBuilder {
    match body {
        Some(body) => request.body(body.clone()),
        None => request,
    }
}

/// The request that an answer leads to; nothing where it is not to be made, since it would change something once more.
fn next(request: &HttpRequest, answer: &Answer) -> Option<HttpRequest> {
    let is_reading = matches!(request.method, Method::GET | Method::HEAD);
    let is_followed = match answer.status {
        StatusCode::SEE_OTHER => true,
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND | StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => {
            is_reading
        }
        _ => false,
    };
    let location = answer.header(LOCATION.as_str()).filter(|_| is_followed)?;
    let mut url = request.url.join(location).ok()?;
    url.set_fragment(None);
    let mut headers = request.headers.clone();
    headers.remove(reqwest::header::CONTENT_TYPE);
    let method = if request.method == Method::HEAD { Method::HEAD } else { Method::GET };
    Some(HttpRequest { method, url, headers, body: None })
}
