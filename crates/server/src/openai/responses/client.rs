//! What some clients do not know, by how they call themselves.

use http::HeaderMap;
use serde_json::{Value, json};
use turnwright_api::openai::OpenAiErrorBody;

/// How the packages of the AI SDK 5 call themselves. `generateText` names its own in the place of the provider's, `streamText` the
/// provider's alone, and other providers of that version read responses by the same code.
const AI_SDK_5: [&str; 3] = ["ai/5.", "ai-sdk/openai/2.", "ai-sdk/provider-utils/3."];

/// A client of this API.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Client {
    /// One that takes what OpenAI tells.
    #[default]
    Usual,
    /// OpenAI's Agents SDK: it looks for the server of each question about a call among those that its agent names, and ends where it does
    /// not find it.
    Agents,
    /// The AI SDK 5: a response that is not streamed must hold no item of a server's tools for it.
    AiSdk5,
}

impl Client {
    /// By its `User-Agent`.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let agent = headers.get(http::header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
        if agent.starts_with("Agents/") {
            Self::Agents
        } else if agent.split(' ').any(|part| AI_SDK_5.iter().any(|own| part.starts_with(own))) {
            Self::AiSdk5
        } else {
            Self::Usual
        }
    }

    /// Whether it can be told questions about calls as items, where its request names no server of tools.
    pub(super) fn takes_questions(self) -> bool {
        self == Self::Usual
    }

    /// Whether a response that is not streamed may hold an item of this type for it.
    pub(super) fn takes(self, item: &Value) -> bool {
        let kind = item.get("type").and_then(Value::as_str);
        self != Self::AiSdk5 || !kind.is_some_and(|kind| kind.starts_with("mcp_"))
    }
}

/// What an event says of an error: as OpenAI documents it, and once more as `error`, as it tells one. Its own libraries raise what they
/// find there, and clients that are built on them take a stream without it for one that ended well.
pub(super) fn error(error: &OpenAiErrorBody) -> Value {
    json!({"code": error.code, "message": error.message, "param": error.param, "error": error})
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, header};

    use super::Client;

    #[test]
    fn a_client_is_known_by_how_it_calls_itself() {
        for (agent, client) in [
            ("Agents/Python 0.4.2", Client::Agents),
            ("ai/5.0.210 ai-sdk/openai/2.0.131 ai-sdk/provider-utils/3.0.30 runtime/node.js/v22", Client::AiSdk5),
            ("ai/5.0.277 ai-sdk/provider-utils/3.0.40 runtime/node.js/v20.20.2", Client::AiSdk5),
            ("ai-sdk/azure/2.0.80 ai-sdk/provider-utils/3.0.40 runtime/node.js/v20.20.2", Client::AiSdk5),
            ("ai/6.0.1 ai-sdk/openai/3.0.141 ai-sdk/provider-utils/4.0.1 runtime/node.js/v22", Client::Usual),
            ("ai/6.0.326 ai-sdk/provider-utils/4.0.66 runtime/node.js/v20.20.2", Client::Usual),
            ("OpenAI/Python 2.9.0", Client::Usual),
        ] {
            let headers = HeaderMap::from_iter([(header::USER_AGENT, HeaderValue::from_static(agent))]);
            assert_eq!(Client::of(&headers), client, "{agent}");
        }
        assert_eq!(Client::of(&HeaderMap::new()), Client::Usual);
    }
}
