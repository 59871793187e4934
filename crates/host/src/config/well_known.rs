//! Providers that need no configuration: vendors whose key is in its usual variable, and servers on this machine.
//!
//! All of it is data. Nothing here looks whether a server answers: that is the host's, once and never for a turn.

use indexmap::IndexMap;

use super::endpoint::{DEFAULT_MAX_RETRIES, Endpoint, EndpointOrigin};
use super::{Dialect, Secret};
use crate::Environment;

/// A vendor, by the name that its provider gets.
#[derive(Debug)]
pub(crate) struct Vendor {
    pub(crate) name: &'static str,
    /// Where its key is usually kept; the first that is set counts.
    key_variables: &'static [&'static str],
    /// Where another address is usually kept.
    url_variables: &'static [&'static str],
    pub(crate) dialect: Dialect,
    /// What servers speak that stand in for it at another address.
    pub(crate) dialect_elsewhere: Dialect,
    pub(crate) base_url: &'static str,
    /// What is asked where nobody names a model: small, able to call tools, and a name that lasts.
    pub(crate) default_model: &'static str,
    /// What answers to a right key alone, below the address, where the list of models is everybody's.
    pub(crate) key_path: Option<&'static str>,
}

/// In the order in which the first one found becomes the default.
pub(crate) const VENDORS: [Vendor; 12] = [
    Vendor {
        name: "openai",
        key_variables: &["OPENAI_API_KEY"],
        url_variables: &["OPENAI_BASE_URL", "OPENAI_API_BASE"],
        // Its models keep what they thought from one step to the next in this format alone.
        dialect: Dialect::OpenaiResponses,
        dialect_elsewhere: Dialect::OpenaiChat,
        base_url: "https://api.openai.com/v1",
        default_model: "gpt-5-mini",
        key_path: None,
    },
    Vendor {
        name: "anthropic",
        key_variables: &["ANTHROPIC_API_KEY"],
        url_variables: &["ANTHROPIC_BASE_URL"],
        dialect: Dialect::Anthropic,
        dialect_elsewhere: Dialect::Anthropic,
        base_url: "https://api.anthropic.com",
        default_model: "claude-sonnet-4-5",
        key_path: None,
    },
    Vendor {
        name: "gemini",
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        url_variables: &["GEMINI_BASE_URL"],
        dialect: Dialect::Gemini,
        dialect_elsewhere: Dialect::Gemini,
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        default_model: "gemini-flash-latest",
        key_path: None,
    },
    Vendor {
        key_path: Some("/key"),
        ..compatible("openrouter", &["OPENROUTER_API_KEY"], "https://openrouter.ai/api/v1", "openrouter/auto")
    },
    compatible("groq", &["GROQ_API_KEY"], "https://api.groq.com/openai/v1", "openai/gpt-oss-120b"),
    compatible("deepseek", &["DEEPSEEK_API_KEY"], "https://api.deepseek.com/v1", "deepseek-chat"),
    compatible("mistral", &["MISTRAL_API_KEY"], "https://api.mistral.ai/v1", "mistral-medium-latest"),
    compatible("xai", &["XAI_API_KEY"], "https://api.x.ai/v1", "grok-4"),
    compatible("together", &["TOGETHER_API_KEY"], "https://api.together.xyz/v1", "openai/gpt-oss-120b"),
    compatible(
        "fireworks",
        &["FIREWORKS_API_KEY"],
        "https://api.fireworks.ai/inference/v1",
        "accounts/fireworks/models/gpt-oss-120b",
    ),
    compatible("cerebras", &["CEREBRAS_API_KEY"], "https://api.cerebras.ai/v1", "gpt-oss-120b"),
    compatible("huggingface", &["HF_TOKEN", "HUGGINGFACE_API_KEY"], "https://router.huggingface.co/v1", "openai/gpt-oss-120b"),
];

/// A vendor that speaks Chat Completions at one address.
const fn compatible(
    name: &'static str,
    key_variables: &'static [&'static str],
    base_url: &'static str,
    default_model: &'static str,
) -> Vendor {
    let dialect = Dialect::OpenaiChat;
    Vendor {
        name,
        key_variables,
        url_variables: &[],
        dialect,
        dialect_elsewhere: dialect,
        base_url,
        default_model,
        key_path: None,
    }
}

impl Vendor {
    /// The vendor with this name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        VENDORS.iter().find(|vendor| vendor.name == name)
    }

    /// Whether it speaks this dialect at its own address.
    pub(crate) fn speaks(&self, dialect: Dialect) -> bool {
        dialect == self.dialect || dialect.default_base_url() == self.base_url
    }

    /// The variable that holds a key, and the key.
    pub(crate) fn key<'a>(&self, environment: &'a Environment) -> Option<(&'static str, &'a str)> {
        self.key_variables.iter().find_map(|name| Some((*name, environment.filled(name)?)))
    }

    /// The variables that would hold its key, for people: `GEMINI_API_KEY or GOOGLE_API_KEY`.
    pub(crate) fn key_names(&self) -> String {
        self.key_variables.join(" or ")
    }

    /// The provider that the environment stands for: by a key, or by an address that may need none.
    pub(crate) fn found(&self, environment: &Environment) -> Option<Endpoint> {
        let key = self.key(environment);
        let url = self.url_variables.iter().find_map(|name| Some((*name, environment.filled(name)?)));
        let (variable, _) = key.or(url)?;
        Some(Endpoint {
            name: self.name.to_owned(),
            origin: EndpointOrigin::Variable(variable.to_owned()),
            dialect: if url.is_none() { self.dialect } else { self.dialect_elsewhere },
            base_url: url.map_or(self.base_url, |(_, url)| url.trim_end_matches('/')).to_owned(),
            api_key: key.map(|(_, key)| Secret::new(key)),
            default_model: url.is_none().then(|| self.default_model.to_owned()),
            ..Endpoint::blank()
        })
    }
}

/// Where servers on this machine answer by default. All of them speak Chat Completions; Ollama is asked in its own format,
/// the only one in which it says that a prompt does not fit instead of cutting it.
const LOCAL: [(&str, Dialect, &str); 4] = [
    ("ollama", Dialect::Ollama, "http://127.0.0.1:11434"),
    ("llamacpp", Dialect::OpenaiChat, "http://127.0.0.1:8080/v1"),
    ("lmstudio", Dialect::OpenaiChat, "http://127.0.0.1:1234/v1"),
    ("vllm", Dialect::OpenaiChat, "http://127.0.0.1:8000/v1"),
];

/// The names of [`local_candidates`].
pub(crate) fn local_names() -> impl Iterator<Item = &'static str> {
    LOCAL.iter().map(|(name, ..)| *name)
}

/// Servers that may be running on this machine: Ollama (where `OLLAMA_HOST` says), llama.cpp, LM Studio, vLLM. Whether one
/// of them answers is for the caller to find out.
pub fn local_candidates(environment: &Environment) -> Vec<Endpoint> {
    let endpoint = |(name, dialect, base_url): &(&str, Dialect, &str)| Endpoint {
        name: (*name).to_owned(),
        dialect: *dialect,
        base_url: match environment.filled("OLLAMA_HOST") {
            Some(host) if *name == "ollama" => ollama_url(host),
            Some(_) | None => (*base_url).to_owned(),
        },
        ..Endpoint::blank()
    };
    LOCAL.iter().map(endpoint).collect()
}

/// `OLLAMA_HOST` is an address or a URL, with or without a port; the server's own `0.0.0.0` is reached at the loopback.
fn ollama_url(host: &str) -> String {
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let rest = rest.trim_end_matches('/').replace("0.0.0.0", "127.0.0.1");
    let has_port = rest.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let port = if has_port || scheme == "https" { "" } else { ":11434" };
    format!("{scheme}://{rest}{port}")
}

impl Endpoint {
    /// An endpoint on this machine with nothing chosen.
    pub(crate) fn blank() -> Self {
        Self {
            name: String::new(),
            origin: EndpointOrigin::Local,
            dialect: Dialect::OpenaiChat,
            base_url: String::new(),
            api_key: None,
            models: Vec::new(),
            default_model: None,
            headers: IndexMap::new(),
            max_retries: DEFAULT_MAX_RETRIES,
            fallback: Vec::new(),
            model_facts: IndexMap::new(),
            profile: None,
            connect: None,
            start: None,
            idle: None,
        }
    }
}
