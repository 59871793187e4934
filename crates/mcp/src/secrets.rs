//! The secrets that a server was given, hidden wherever it repeats them: in its log, and in what its tools say.

use std::borrow::Cow;
use std::fmt;

use turnwright_core::ContentBlock;
use turnwright_engine::ToolOutput;

use crate::{ServerConfig, TransportConfig};

/// What stands in the place of one.
const HIDDEN: &str = "[secret]";
/// A shorter value is no secret, and would be found everywhere.
const MIN_BYTES: usize = 8;
/// Parts of the names of variables and headers that hold secrets.
const NAMES: [&str; 7] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTHORIZATION"];

/// See the module.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// What a server is given under a name that says that it is secret.
    pub(crate) fn of(config: &ServerConfig) -> Self {
        let given = match &config.transport {
            TransportConfig::Stdio(stdio) => &stdio.env,
            TransportConfig::Docker(docker) => &docker.env,
            TransportConfig::Http(http) => &http.headers,
        };
        let is_secret = |name: &str| {
            let name = name.to_uppercase();
            NAMES.iter().any(|part| name.contains(part))
        };
        let bare = |value: &str| value.split_once("earer ").map_or(value, |(_, token)| token).to_owned();
        let values = given.iter().filter(|(name, _)| is_secret(name)).map(|(_, value)| bare(value));
        Self(values.filter(|value| value.len() >= MIN_BYTES).collect())
    }

    /// The text without them.
    pub(crate) fn hidden<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.0
            .iter()
            .filter(|secret| text.contains(secret.as_str()))
            .fold(Cow::Borrowed(text), |text, secret| Cow::Owned(text.replace(secret.as_str(), HIDDEN)))
    }

    /// What a tool said without them.
    pub(crate) fn hidden_in(&self, mut output: ToolOutput) -> ToolOutput {
        if self.0.is_empty() {
            return output;
        }
        for block in &mut output.content {
            if let ContentBlock::Text { text } = block
                && let Cow::Owned(without) = self.hidden(text)
            {
                *text = without;
            }
        }
        if let Some(content) = output.structured_content.take() {
            let text = content.to_string();
            output.structured_content = match self.hidden(&text) {
                Cow::Borrowed(_) => Some(content),
                Cow::Owned(without) => serde_json::from_str(&without).ok(),
            };
        }
        output
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Secrets({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{HttpConfig, StdioConfig};

    #[test]
    fn what_is_secret_by_its_name_is_hidden_and_nothing_else() {
        let mut stdio = StdioConfig::new("c");
        let given = [("API_KEY", "sesame-open"), ("HOME", "/home/somebody"), ("GITHUB_TOKEN", "short")];
        stdio.env = given.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let secrets = Secrets::of(&ServerConfig::new("s", stdio));
        let output = ToolOutput {
            content: vec![ContentBlock::text("sesame-open in /home/somebody, short")],
            structured_content: Some(json!({"a": ["sesame-open", 1]})),
            ..ToolOutput::default()
        };
        let expected = ToolOutput {
            content: vec![ContentBlock::text("[secret] in /home/somebody, short")],
            structured_content: Some(json!({"a": ["[secret]", 1]})),
            ..ToolOutput::default()
        };
        assert_eq!(secrets.hidden_in(output), expected);
        assert_eq!(format!("{secrets:?}"), "Secrets(1)");
    }

    #[test]
    fn a_key_in_a_header_is_hidden_without_the_word_before_it() {
        let mut http = HttpConfig::new("https://example.test");
        http.headers = vec![("Authorization".into(), "Bearer sesame-open".into()), ("X-Team".into(), "blue-and-green".into())];
        let secrets = Secrets::of(&ServerConfig::new("s", http));
        assert_eq!(secrets.hidden("token sesame-open of blue-and-green"), "token [secret] of blue-and-green");
    }
}
