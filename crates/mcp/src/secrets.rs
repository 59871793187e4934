//! Which of what a server is given is secret.

use turnwright_core::secrets::{Secrets, given, given_in_argument};
use turnwright_engine::ToolOutput;

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

/// What a tool said without secrets.
pub(crate) fn hidden_in(secrets: &Secrets, mut output: ToolOutput) -> ToolOutput {
    secrets.hide_in_content(&mut output.content);
    if let Some(content) = &mut output.structured_content {
        secrets.hide_in_value(content);
    }
    if let Some(diagnostic) = &mut output.diagnostic {
        secrets.hide_in(diagnostic);
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HttpConfig, StdioConfig};

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
