//! The endpoints that are asked: each dialect, with its models and servers that differ.

use std::sync::LazyLock;

use serde_json::Value;
use turnwright_core::prompt::Prompt;
use turnwright_core::{ModelRef, Origin};
use turnwright_dialects::{Dialect, HttpRequest, Kept, ModelFacts, Profile, ReasoningStyle, Target, by_name};

use crate::validate::chat::Server;
use crate::validate::{anthropic, chat, gemini, ollama, responses};

/// A model of a provider, and what the API takes.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) dialect: &'static dyn Dialect,
    pub(crate) origin: Origin,
    profile: Profile,
    facts: ModelFacts,
    validate: fn(&Value, &str) -> Vec<String>,
}

impl Endpoint {
    pub(crate) fn model(&self) -> ModelRef {
        ModelRef::new(&*self.origin.provider, &*self.origin.model)
    }

    pub(crate) fn profile(&self) -> &Profile {
        &self.profile
    }

    pub(crate) fn request(&self, prompt: &Prompt<'_>, kept: &mut Kept) -> HttpRequest {
        let target = Target { origin: &self.origin, profile: &self.profile, model: &self.facts };
        self.dialect.request(&target, prompt, kept)
    }

    /// What the API would refuse of this request.
    pub(crate) fn refuses(&self, request: &HttpRequest) -> Vec<String> {
        match serde_json::from_slice(&request.body) {
            Ok(body) => (self.validate)(&body, &self.origin.model),
            Err(error) => vec![format!("not JSON: {error}")],
        }
    }
}

/// The endpoints whose dialect there is.
pub(crate) fn all() -> &'static [Endpoint] {
    static ALL: LazyLock<Vec<Endpoint>> = LazyLock::new(|| rows().collect());
    &ALL
}

/// An endpoint of each dialect, another each time.
pub(crate) fn one_of_each_dialect(turn: u64) -> impl Iterator<Item = &'static Endpoint> {
    all().chunk_by(|a, b| a.origin.dialect == b.origin.dialect).map(move |same| {
        let count = u64::try_from(same.len()).unwrap();
        // The eighths of the journals are told apart by the lowest bits of their seeds.
        &same[usize::try_from((turn / 8) % count).unwrap()]
    })
}

fn rows() -> impl Iterator<Item = Endpoint> {
    let preset = |name: &str| Profile::preset(name).unwrap();
    let url = Profile::for_base_url;
    let sampled = ModelFacts::default();
    let thinks = |reasoning| ModelFacts { reasoning: Some(reasoning), temperature: Some(false), ..ModelFacts::default() };
    let budget = ModelFacts { temperature: None, max_output_tokens: Some(64_000), ..thinks(ReasoningStyle::Budget) };
    let openai: fn(&Value, &str) -> Vec<String> = |body, _| chat::validate(body, Server::OpenAi);
    let kimi: fn(&Value, &str) -> Vec<String> = |body, _| chat::validate(body, Server::Kimi);
    let template: fn(&Value, &str) -> Vec<String> = |body, _| chat::validate(body, Server::Template);
    let google: fn(&Value, &str) -> Vec<String> = |body, _| chat::validate(body, Server::Google);
    let perplexity: fn(&Value, &str) -> Vec<String> = |body, _| chat::validate(body, Server::Perplexity);
    let compatible: fn(&Value, &str) -> Vec<String> = |body, _| chat::validate(body, Server::Compatible);
    let mistral: fn(&Value, &str) -> Vec<String> = |body, _| chat::validate(body, Server::Mistral);
    let responses: fn(&Value, &str) -> Vec<String> = |body, _| responses::validate(body);
    let anthropic: fn(&Value, &str) -> Vec<String> = |body, _| anthropic::validate(body);
    let ollama: fn(&Value, &str) -> Vec<String> = |body, _| ollama::validate(body);
    let generative = "https://generativelanguage.googleapis.com/v1beta";
    [
        ("openai-chat", "openai", "gpt-4o", preset("openai"), sampled, openai),
        ("openai-chat", "openai", "gpt-5", preset("openai"), thinks(ReasoningStyle::Effort), openai),
        ("openai-chat", "local", "qwen", preset("compatible"), sampled, compatible),
        ("openai-chat", "mistral", "mistral-large", preset("mistral"), sampled, mistral),
        ("openai-chat", "deepseek", "deepseek-chat", preset("deepseek"), sampled, compatible),
        ("openai-chat", "openrouter", "some/model", preset("openrouter"), sampled, compatible),
        ("openai-chat", "moonshot", "kimi-k2.6", preset("moonshot"), sampled, kimi),
        ("openai-chat", "perplexity", "sonar", preset("perplexity"), sampled, perplexity),
        ("openai-chat", "ollama-chat", "gemma", preset("ollama"), sampled, template),
        ("openai-chat", "llamacpp", "mistral", preset("llamacpp"), sampled, template),
        ("openai-chat", "google-chat", "gemini-3-flash-preview", preset("gemini"), sampled, google),
        ("openai-responses", "openai-responses", "gpt-4.1", preset("openai"), sampled, responses),
        ("openai-responses", "openai-responses", "gpt-5", preset("openai"), thinks(ReasoningStyle::Effort), responses),
        ("anthropic", "anthropic", "claude-sonnet-4-5", url("https://api.anthropic.com"), budget, anthropic),
        (
            "anthropic",
            "anthropic",
            "claude-opus-5-5",
            url("https://api.anthropic.com"),
            thinks(ReasoningStyle::Adaptive),
            anthropic,
        ),
        ("gemini", "google", "gemini-2.5-flash", url(generative), ModelFacts { temperature: None, ..budget }, gemini::validate),
        ("gemini", "google", "gemini-3-pro", url(generative), sampled, gemini::validate),
        ("ollama", "ollama", "llama", url("http://127.0.0.1:11434"), sampled, ollama),
    ]
    .into_iter()
    .filter_map(|(dialect, provider, model, profile, facts, validate)| {
        let origin = Origin { dialect: dialect.to_owned(), provider: provider.to_owned(), model: model.to_owned() };
        let Some(dialect) = by_name(dialect) else {
            println!("skipped: there is no dialect {dialect}");
            return None;
        };
        Some(Endpoint { dialect, origin, profile, facts, validate })
    })
}
