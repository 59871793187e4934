use super::*;

fn id(name: &str) -> Option<&'static str> {
    find(name, |name| CATALOGUE.by_name.get(name).and_then(|place| CATALOGUE.file.models.get(*place)))
        .map(|model| model.id.as_str())
}

#[test]
fn the_file_is_read_and_says_its_date() {
    let file: File = serde_json::from_str(TEXT).unwrap();
    assert_eq!(catalogue_date(), file.date);
    assert!(file.date.len() == 10 && file.models.len() > 50, "{}", file.date);
}

#[test]
fn each_name_stands_for_one_model() {
    let mut seen = HashMap::new();
    for model in &CATALOGUE.file.models {
        for name in model.aliases.iter().chain([&model.id]) {
            assert_eq!(seen.insert(plain(name), &model.id), None, "{name}");
        }
    }
}

#[test]
fn every_figure_is_a_sensible_one() {
    for model in &CATALOGUE.file.models {
        let name = &model.id;
        let (window, output) = (model.context_window, model.max_output_tokens);
        assert!(window.is_none_or(|window| (4_096..=10_000_000).contains(&window)), "{name}");
        assert!(output.is_none_or(|output| window.is_none_or(|window| output <= window)), "{name}");
        for prices in model.prices.iter().chain(model.prices_at.values()) {
            assert!(prices.output >= prices.input && prices.input > 0.0 && prices.output < 1_000.0, "{name}");
            assert!(prices.cached_input.is_none_or(|cached| cached < prices.input), "{name}");
            assert!(prices.cache_write.is_none_or(|write| write >= prices.input), "{name}");
            let long = prices.long_prompts;
            assert!(long.is_none_or(|long| long.input > prices.input && long.output > prices.output), "{name}");
            assert!(long.is_none_or(|long| long.cached_input.is_some() == prices.cached_input.is_some()), "{name}");
        }
        for vendor in model.prices_at.keys() {
            assert!(CATALOGUE.file.vendors.contains_key(vendor), "{name}");
        }
    }
}

#[test]
fn a_model_is_found_by_the_names_that_services_give_it() {
    let rows = [
        ("claude-sonnet-4-5", Some("claude-sonnet-4-5")),
        ("claude-sonnet-4-5-20250929", Some("claude-sonnet-4-5")),
        ("anthropic/claude-sonnet-4.5", Some("claude-sonnet-4-5")),
        ("anthropic/claude-3.7-sonnet:thinking", Some("claude-3-7-sonnet")),
        ("claude-3-5-haiku@20241022", Some("claude-3-5-haiku")),
        ("claude-3-5-haiku-latest", Some("claude-3-5-haiku")),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", Some("claude-haiku-4-5")),
        ("claude-opus-4-0", Some("claude-opus-4")),
        ("models/gemini-2.5-flash", Some("gemini-2.5-flash")),
        ("google/gemini-2.5-pro-preview-05-06", Some("gemini-2.5-pro")),
        ("gemini-2.5-flash-preview-09-2025", Some("gemini-2.5-flash")),
        ("gemini-2.0-flash-001", Some("gemini-2.0-flash")),
        ("gemini-3-flash-preview", Some("gemini-3-flash")),
        ("gemini-flash-latest", Some("gemini-flash")),
        ("gpt-4o-2024-08-06", Some("gpt-4o")),
        ("gpt-4o-2024-05-13", Some("gpt-4o-2024-05-13")),
        ("openai/gpt-4.1-mini", Some("gpt-4.1-mini")),
        ("gpt-5-mini-2025-08-07", Some("gpt-5-mini")),
        ("gpt-5-chat-latest", Some("gpt-5-chat")),
        ("openai.gpt-5.6-luna", Some("gpt-5.6-luna")),
        ("o4-mini-2025-04-16", Some("o4-mini")),
        ("gpt-oss:120b", Some("gpt-oss-120b")),
        ("accounts/fireworks/models/gpt-oss-120b", Some("gpt-oss-120b")),
        ("moonshotai/Kimi-K2-Instruct-0905:groq", Some("kimi-k2-instruct-0905")),
        ("deepseek/deepseek-v4-flash:free", Some("deepseek-v4-flash")),
        ("mistral-large-latest", Some("mistral-large")),
        ("mistral-large-2411", Some("mistral-large-2411")),
        // What is near is not the same.
        ("gpt-4o-audio-preview", None),
        ("gpt-4o-mini-transcribe", None),
        ("gemini-2.5-flash-image-preview", None),
        ("claude-opus-4-6-fast", None),
        ("mistral-small-2501", None),
        ("gpt-5.2-mini", None),
        ("qwen2.5-coder", None),
        ("", None),
        ("-", None),
        ("2025-01-01", None),
    ];
    for (name, expected) in rows {
        assert_eq!(id(name), expected, "{name}");
    }
}

#[test]
fn prices_hold_where_they_are_asked() {
    let price = |base_url, model| catalogue_facts(base_url, model).prices.map(|prices| (prices.input, prices.output));
    assert_eq!(price("https://api.anthropic.com", "claude-haiku-4-5"), Some((1.0, 5.0)));
    assert_eq!(price("https://api.groq.com/openai/v1", "openai/gpt-oss-120b"), Some((0.15, 0.6)));
    assert_eq!(price("https://api.cerebras.ai/v1", "gpt-oss-120b"), None);
    assert_eq!(price("http://127.0.0.1:4000/v1", "claude-haiku-4-5"), None);
    assert_eq!(price("https://openrouter.ai/api/v1", "anthropic/claude-haiku-4.5"), None);
}

#[test]
fn the_window_of_open_weights_is_known_only_at_services() {
    let window = |base_url, model| catalogue_facts(base_url, model).context_window;
    assert_eq!(window("https://api.groq.com/openai/v1", "openai/gpt-oss-120b"), Some(131_072));
    assert_eq!(window("http://127.0.0.1:11434/v1", "gpt-oss:120b"), None);
    assert_eq!(window("https://gateway.example/v1", "gpt-4o"), Some(128_000));
    let local = catalogue_facts("http://127.0.0.1:11434/v1", "gpt-oss:120b");
    assert_eq!((local.images, local.tools, local.reasoning), (Some(false), Some(true), Some(ReasoningStyle::Effort)));
    assert_eq!(catalogue_facts("https://api.openai.com/v1", "nobody-knows"), ModelFacts::default());
}
