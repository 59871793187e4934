//! Events by HTTP, signed as [Standard Webhooks](https://www.standardwebhooks.com) says.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::fmt::rfc2822;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, redirect};
use ring::hmac;
use turnwright_network::{Network, made};

use super::channel::NotTold;
use super::event::Event;
use crate::HostError;
use crate::config::WebhookConfig;

/// Longer than this nobody is left alone, whatever is asked for.
const MAX_RETRY_AFTER: Duration = Duration::from_hours(1);

/// An address that events are sent to.
#[derive(Debug)]
pub(super) struct Webhook {
    client: Client,
    network: Network,
    url: String,
    headers: HeaderMap,
    key: hmac::Key,
}

impl Webhook {
    pub(super) async fn new(config: &WebhookConfig, network: &Network) -> Result<Self, HostError> {
        let failed = |reason: String| HostError::Webhook { reason };
        let key = config.signing_key().ok_or_else(|| failed("its secret is no signing secret".to_owned()))?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in &config.headers {
            let known = HeaderName::try_from(name.as_str()).map_err(|error| failed(error.to_string()))?;
            let mut value = HeaderValue::from_str(value.expose()).map_err(|error| failed(error.to_string()))?;
            value.set_sensitive(true);
            headers.insert(known, value);
        }
        let client = made(network.client().redirect(redirect::Policy::none())).await.map_err(failed)?;
        Ok(Self {
            client,
            network: network.clone(),
            url: config.url.clone(),
            headers,
            key: hmac::Key::new(hmac::HMAC_SHA256, &key),
        })
    }

    /// Sends an event. `now_s` is in seconds since 1970 UTC.
    pub(super) async fn tell(&self, event: &Event, now_s: u64, limit: Duration) -> Result<(), NotTold> {
        let request = self
            .client
            .post(&self.url)
            .headers(self.headers.clone())
            .header("webhook-id", &event.id)
            .header("webhook-timestamp", now_s)
            .header("webhook-signature", signature(&self.key, &event.id, now_s, &event.body))
            .timeout(limit)
            .body(event.body.clone());
        // The address may hold a secret.
        let answer = request.send().await.map_err(|error| NotTold {
            reason: format!("the webhook does not answer: {}", self.network.reason(&error)),
            retry_after: None,
        })?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let retry_after = answer.headers().get(RETRY_AFTER).and_then(|value| left_alone(value.to_str().ok()?, now_s));
        Err(NotTold { reason: format!("the webhook answers with {}", status.as_u16()), retry_after })
    }
}

/// For how long a `Retry-After` wants nothing sent: so many seconds, or until a moment (RFC 9110, section 10.2.3).
fn left_alone(text: &str, now_s: u64) -> Option<Duration> {
    let text = text.trim();
    let until = || {
        let at_s = u64::try_from(rfc2822::parse(text).ok()?.timestamp().as_second()).ok()?;
        Some(at_s.saturating_sub(now_s))
    };
    text.parse().ok().or_else(until).map(|seconds| Duration::from_secs(seconds).min(MAX_RETRY_AFTER))
}

fn signature(key: &hmac::Key, id: &str, now_s: u64, body: &str) -> String {
    let signed = hmac::sign(key, format!("{id}.{now_s}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(signed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_is_left_alone_for_so_many_seconds_or_until_the_moment_that_it_names() {
        let now_s = 784_111_777 - 30;
        let seconds = |text: &str| left_alone(text, now_s).map(|time| time.as_secs());
        assert_eq!(seconds(" 5 "), Some(5));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(30));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:00 GMT"), Some(0));
        assert_eq!(["99999", "Sat, 06 Nov 2094 08:49:37 GMT"].map(seconds), [Some(3600), Some(3600)]);
        assert_eq!(["soon", "-1", "1.5", ""].map(seconds), [None; 4]);
    }

    #[test]
    fn a_signature_is_the_one_that_the_official_libraries_make() {
        // What `standardwebhooks` for Python signs with this secret.
        let key = hmac::Key::new(hmac::HMAC_SHA256, &STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap());
        let signed = signature(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, "{\"test\": 2432232314}");
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
