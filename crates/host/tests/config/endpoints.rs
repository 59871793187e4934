use std::time::Duration;

use turnwright_core::{ModelFacts, ModelRef, Prices, ReasoningStyle};
use turnwright_host::config::{DefaultModel, Dialect, Endpoint, EndpointOrigin, Loaded, Secret, local_candidates};

use super::{environment, load_text, load_with};

fn summary(endpoints: &[Endpoint]) -> Vec<(&str, Dialect, &str, &str)> {
    endpoints
        .iter()
        .map(|endpoint| {
            (&*endpoint.name, endpoint.dialect, &*endpoint.base_url, endpoint.api_key.as_ref().map_or("", Secret::expose))
        })
        .collect()
}

fn default_of(loaded: &Loaded) -> Option<String> {
    loaded.default_model(|_| true).map(|model| match model {
        DefaultModel::Model(model) => model.to_string(),
        DefaultModel::FirstOf(provider) => format!("{provider}/?"),
    })
}

#[test]
fn found_providers_follow_the_configured_ones_and_never_replace_them() {
    let environment = environment()
        .with("OPENAI_API_KEY", "sk-o")
        .with("ANTHROPIC_API_KEY", "sk-a")
        .with("GOOGLE_API_KEY", "g")
        .with("GROQ_API_KEY", "")
        .with("HF_TOKEN", "hf");
    let loaded = load_with(
        "[providers.openai]\ndialect = \"openai-chat\"\nbase_url = \"http://h/v1/\"\napi_key = \"mine\"\n",
        &environment,
    )
    .unwrap();
    assert_eq!(
        summary(&loaded.endpoints),
        [
            ("openai", Dialect::OpenaiChat, "http://h/v1", "mine"),
            ("anthropic", Dialect::Anthropic, "https://api.anthropic.com", "sk-a"),
            ("gemini", Dialect::Gemini, "https://generativelanguage.googleapis.com/v1beta", "g"),
            ("huggingface", Dialect::OpenaiChat, "https://router.huggingface.co/v1", "hf"),
        ]
    );
    let origins: Vec<_> = loaded.endpoints.iter().map(|endpoint| endpoint.origin.clone()).collect();
    let variable = |name: &str| EndpointOrigin::Variable(name.to_owned());
    assert_eq!(
        origins,
        [EndpointOrigin::Configured, variable("ANTHROPIC_API_KEY"), variable("GOOGLE_API_KEY"), variable("HF_TOKEN")]
    );
}

#[test]
fn openai_itself_is_asked_in_its_newer_format() {
    let loaded = load_with("", &environment().with("OPENAI_API_KEY", "k")).unwrap();
    assert_eq!(summary(&loaded.endpoints), [("openai", Dialect::OpenaiResponses, "https://api.openai.com/v1", "k")]);
    assert_eq!(default_of(&loaded).as_deref(), Some("openai/gpt-5-mini"));
}

#[test]
fn another_address_in_the_usual_variable_is_a_compatible_server() {
    let environment = environment().with("OPENAI_API_KEY", "k").with("OPENAI_BASE_URL", "http://127.0.0.1:9/v1/");
    let loaded = load_with("", &environment).unwrap();
    assert_eq!(summary(&loaded.endpoints), [("openai", Dialect::OpenaiChat, "http://127.0.0.1:9/v1", "k")]);
    assert_eq!(default_of(&loaded).as_deref(), Some("openai/?"));
}

#[test]
fn a_found_provider_whose_dialect_is_not_built_is_no_default() {
    let key = environment().with("ANTHROPIC_API_KEY", "k").with("GROQ_API_KEY", "k");
    let default = |text: &str| load_with(text, &key).unwrap().default_model(|dialect| dialect == Dialect::OpenaiChat);
    assert_eq!(default(""), Some(DefaultModel::Model(ModelRef::new("groq", "openai/gpt-oss-120b"))));
    let configured = "[providers.anthropic]\nmodels = [\"m\"]";
    assert_eq!(default(configured), Some(DefaultModel::Model(ModelRef::new("anthropic", "m"))));
}

#[test]
fn a_configured_vendor_needs_no_more_than_its_name() {
    let environment = environment().with("DEEPSEEK_API_KEY", "d");
    let loaded = load_with("[providers.deepseek]\nstart_ms = 7\nidle_ms = 5\n", &environment).unwrap();
    assert_eq!(summary(&loaded.endpoints), [("deepseek", Dialect::OpenaiChat, "https://api.deepseek.com/v1", "d")]);
    let endpoint = &loaded.endpoints[0];
    let waits = (endpoint.connect, endpoint.start, endpoint.idle);
    assert_eq!(endpoint.max_retries, 2);
    assert_eq!(waits, (None, Some(Duration::from_millis(7)), Some(Duration::from_millis(5))));
}

#[test]
fn the_key_of_a_vendor_is_not_sent_to_another_address() {
    let environment = environment().with("OPENAI_API_KEY", "sk-o");
    let loaded = load_with("[providers.openai]\nbase_url = \"http://elsewhere/v1\"\n", &environment).unwrap();
    assert_eq!(loaded.endpoints[0].api_key, None);
    let key = |dialect: &str| {
        let loaded = load_with(&format!("[providers.openai]\ndialect = \"{dialect}\"\n"), &environment).unwrap();
        loaded.endpoints[0].api_key.clone()
    };
    assert_eq!(key("gemini"), None);
    assert_eq!(key("openai-responses"), Some(Secret::new("sk-o")));
}

#[test]
fn the_default_model_is_the_top_level_one_then_the_first_of_the_first_provider_then_one_found() {
    let key = environment().with("ANTHROPIC_API_KEY", "k");
    let two = "[providers.z]\ndialect = \"gemini\"\nmodels = [\"m1\", \"m2\"]\n[providers.a]\ndialect = \"gemini\"\nmodels = [\"m3\"]\n";
    assert_eq!(default_of(&load_with(&format!("model = \"a/m3\"\n{two}"), &key).unwrap()).as_deref(), Some("a/m3"));
    assert_eq!(default_of(&load_with(two, &key).unwrap()).as_deref(), Some("z/m1"));
    assert_eq!(default_of(&load_with("[providers.z]\ndialect = \"gemini\"", &key).unwrap()).as_deref(), Some("z/?"));
    assert_eq!(default_of(&load_with("", &key).unwrap()).as_deref(), Some("anthropic/claude-sonnet-4-5"));
    assert_eq!(load_text("").unwrap().default_model(|_| true), None);
    assert_eq!(
        load_text("model = \"a/b/c\"").unwrap().default_model(|_| true),
        Some(DefaultModel::Model(ModelRef::new("a", "b/c")))
    );
}

#[test]
fn a_provider_that_is_not_there_is_told_with_the_way_to_it() {
    let loaded = load_with("[providers.local]\ndialect = \"ollama\"", &environment().with("GROQ_API_KEY", "k")).unwrap();
    let told = |name| loaded.missing_provider(name);
    for known in ["local", "groq", "practice", "ollama", "vllm"] {
        assert_eq!(told(known), None, "{known}");
    }
    assert_eq!(
        told("gemini").as_deref(),
        Some("there is no provider `gemini`; set GEMINI_API_KEY or GOOGLE_API_KEY, or write [providers.gemini]")
    );
    assert_eq!(told("locla").as_deref(), Some("there is no provider `locla`; did you mean `local`?"));
    let known = "`local`, `groq`, `practice`, `ollama`, `llamacpp`, `lmstudio`, `vllm`";
    assert_eq!(told("somewhere"), Some(format!("there is no provider `somewhere`; known: {known}")));
}

#[test]
fn local_servers_are_candidates_at_their_usual_addresses() {
    let urls = |endpoints: Vec<Endpoint>| {
        let place = |endpoint: Endpoint| (endpoint.name, endpoint.dialect, endpoint.base_url);
        endpoints.into_iter().map(place).collect::<Vec<_>>()
    };
    let at = |name: &str, dialect, url: &str| (name.to_owned(), dialect, url.to_owned());
    assert_eq!(
        urls(local_candidates(&environment())),
        [
            at("ollama", Dialect::Ollama, "http://127.0.0.1:11434"),
            at("llamacpp", Dialect::OpenaiChat, "http://127.0.0.1:8080/v1"),
            at("lmstudio", Dialect::OpenaiChat, "http://127.0.0.1:1234/v1"),
            at("vllm", Dialect::OpenaiChat, "http://127.0.0.1:8000/v1")
        ]
    );
    for (host, url) in [
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("127.0.0.1:5000", "http://127.0.0.1:5000"),
        ("http://box:1/", "http://box:1"),
        ("https://box", "https://box"),
    ] {
        assert_eq!(local_candidates(&environment().with("OLLAMA_HOST", host))[0].base_url, url, "{host}");
    }
}

#[test]
fn what_is_said_of_models_goes_to_their_provider() {
    let environment = environment().with("OPENAI_API_KEY", "k");
    let text = "[models.\"openai/a/b\"]\ncontext_window = 4096\nreasoning = \"effort\"\nprices = { input = 1, output = 2.5 }\n\
                [models.\"opnai/a\"]\nimages = true\n";
    let loaded = load_with(text, &environment).unwrap();
    let prices = Prices { input: 1.0, cached_input: None, cache_write: None, output: 2.5, long_prompts: None };
    let facts = ModelFacts {
        context_window: Some(4096),
        reasoning: Some(ReasoningStyle::Effort),
        prices: Some(prices),
        ..ModelFacts::default()
    };
    let told: Vec<_> = loaded.endpoints[0].model_facts.iter().map(|(name, facts)| (name.as_str(), *facts)).collect();
    assert_eq!(told, [("a/b", facts)]);
    let warnings: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["turnwright.toml:5: there is no provider `opnai`; did you mean `openai`?"]);
}
