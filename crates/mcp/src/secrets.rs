//! Which of what a server is given is secret, and what it says without that.

use std::sync::Arc;

use async_trait::async_trait;
use turnwright_core::Elicitation;
use turnwright_core::secrets::{Secrets, given, given_in_argument};
use turnwright_engine::{Asks, CallContext, KnownSecrets, Progress, ProgressSink, Reply, ToolError, ToolOutput, ToolReply};

use crate::TransportConfig;

/// What a server is given that must not be seen where it repeats it.
pub(crate) fn of(transport: &TransportConfig) -> Vec<String> {
    let named = |given_to: &[(String, String)]| -> Vec<String> {
        given_to.iter().flat_map(|(name, value)| given(name, value)).collect()
    };
    let unnamed = |args: &[String]| -> Vec<String> {
        let before = std::iter::once("").chain(args.iter().map(String::as_str));
        args.iter().zip(before).flat_map(|(arg, before)| given_in_argument(before, arg)).collect()
    };
    match transport {
        TransportConfig::Stdio(stdio) => [named(&stdio.env), unnamed(&stdio.args)].concat(),
        TransportConfig::Docker(docker) => [named(&docker.env), unnamed(&docker.args)].concat(),
        TransportConfig::Http(http) => {
            let secret = http.oauth.client_secret.iter().cloned().collect();
            [named(&http.headers), given("", &http.url), secret].concat()
        }
    }
}

/// What came of a call, without secrets.
pub(crate) fn hidden_in_reply(secrets: &Secrets, reply: Result<ToolReply, ToolError>) -> Result<ToolReply, ToolError> {
    match reply {
        Ok(ToolReply::Done(output)) => Ok(ToolReply::Done(hidden_in(secrets, output))),
        Ok(ToolReply::Asks { mut asks, resume }) => {
            for ask in &mut asks {
                secrets.hide_in_question(ask);
            }
            Ok(ToolReply::Asks { asks, resume })
        }
        Ok(ToolReply::Changed) => Ok(ToolReply::Changed),
        Err(error) => Err(hidden_in_error(secrets, error)),
    }
}

fn hidden_in(secrets: &Secrets, mut output: ToolOutput) -> ToolOutput {
    secrets.hide_in_content(&mut output.content);
    if let Some(content) = &mut output.structured_content {
        secrets.hide_in_value(content);
    }
    if let Some(diagnostic) = &mut output.diagnostic {
        secrets.hide_in(diagnostic);
    }
    output
}

/// What went wrong, without secrets.
pub(crate) fn hidden_in_error(secrets: &Secrets, mut error: ToolError) -> ToolError {
    secrets.hide_in(&mut error.model_text);
    if let Some(diagnostic) = &mut error.diagnostic {
        secrets.hide_in(diagnostic);
    }
    error
}

/// Hides what is known in what a server says on the way, too.
pub(crate) fn known_around(known: &KnownSecrets, context: &mut CallContext) {
    context.progress = Arc::new(Around { inner: context.progress.clone(), known: known.clone() });
    context.asks = Arc::new(Around { inner: context.asks.clone(), known: known.clone() });
}

/// Hears of a call what a server said, without secrets.
#[derive(Debug)]
struct Around<T: ?Sized> {
    inner: Arc<T>,
    known: KnownSecrets,
}

impl ProgressSink for Around<dyn ProgressSink> {
    fn report(&self, mut progress: Progress) {
        if let Some(message) = &mut progress.message {
            self.known.now().hide_in(message);
        }
        self.inner.report(progress);
    }
}

#[async_trait]
impl Asks for Around<dyn Asks> {
    async fn ask(&self, mut ask: Elicitation) -> Option<Reply> {
        self.known.now().hide_in_question(&mut ask);
        self.inner.ask(ask).await
    }

    fn whose(&self) -> Option<&str> {
        self.inner.whose()
    }

    fn by(&self) -> Option<&str> {
        self.inner.by()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::json;
    use tokio_util::sync::CancellationToken;
    use turnwright_core::Wants;

    use super::*;
    use crate::{HttpConfig, StdioConfig};

    /// Hears everything.
    #[derive(Debug, Default)]
    struct Heard(Mutex<Vec<String>>);

    impl ProgressSink for Heard {
        fn report(&self, progress: Progress) {
            self.0.lock().unwrap().extend(progress.message);
        }
    }

    #[async_trait]
    impl Asks for Heard {
        async fn ask(&self, ask: Elicitation) -> Option<Reply> {
            self.0.lock().unwrap().push(ask.message);
            None
        }

        fn whose(&self) -> Option<&str> {
            Some("c1")
        }

        fn by(&self) -> Option<&str> {
            Some("u1")
        }
    }

    #[tokio::test]
    async fn questions_and_progress_of_a_call_are_told_without_secrets() {
        let (heard, known) = (Arc::new(Heard::default()), KnownSecrets::default());
        let mut context = CallContext { asks: heard.clone(), ..CallContext::new(CancellationToken::new(), heard.clone()) };
        known_around(&known, &mut context);
        // Also what is known only later.
        known.learn(["sesame-open"]);
        context.progress.report(Progress { progress: 1.0, total: None, message: Some("with sesame-open".to_owned()) });
        let ask = Elicitation {
            key: String::new(),
            message: "is sesame-open right?".to_owned(),
            wants: Wants::Url { url: "https://h.test/".to_owned() },
        };
        assert_eq!(context.asks.ask(ask.clone()).await, None);
        assert_eq!((context.asks.whose(), context.asks.by()), (Some("c1"), Some("u1")));
        assert_eq!(*heard.0.lock().unwrap(), ["with [secret]", "is [secret] right?"]);
        let reply = hidden_in_reply(&known.now(), Ok(ToolReply::Asks { asks: vec![ask], resume: json!(null) }));
        assert!(matches!(reply, Ok(ToolReply::Asks { asks, .. }) if asks[0].message == "is [secret] right?"));
    }

    #[test]
    fn what_is_secret_by_its_name_or_by_its_look_is_known_and_nothing_else() {
        let mut stdio = StdioConfig::new("c");
        let given = [("API_KEY", "sesame-open"), ("HOME", "/home/somebody"), ("MODE", "quiet-mode")];
        stdio.env = given.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        stdio.args = ["--auth=ghp_16C7e42F292c6912E7710c838347Ae178B4a", "--token", "open-sesame", "--token", "--verbose"]
            .into_iter()
            .chain(["--header", "Authorization: Bearer open-barley"])
            .map(str::to_owned)
            .collect();
        let transport = TransportConfig::from(stdio);
        assert_eq!(of(&transport), ["sesame-open", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "open-sesame", "open-barley"]);
        assert!(transport.to_string().ends_with("--header Authorization: Bearer ***"), "{transport}");
    }

    #[test]
    fn a_key_in_a_header_is_known_without_the_word_before_it() {
        let mut http = HttpConfig::new("https://example.test/mcp?key=k0123456789");
        http.headers = vec![("Authorization".into(), "Bearer sesame-open".into()), ("X-Team".into(), "blue-and-green".into())];
        assert_eq!(of(&http.into()), ["sesame-open", "k0123456789"]);
    }
}
