//! What answers cost.

use turnwright_core::{ModelFacts, Prices, StreamDelta};
use turnwright_dialects::by_name;
use turnwright_providers::EndpointConfig;

use crate::support::{Server, ask, collect, provider, response};

#[tokio::test]
async fn what_an_answer_cost_is_told_where_prices_are_known_and_the_provider_does_not_say() {
    let prices = Prices { input: 2.0, cached_input: Some(0.5), cache_write: None, output: 8.0, long_prompts: None };
    let known = ModelFacts { prices: Some(prices), ..ModelFacts::default() };
    let tokens = r#""prompt_tokens":1000,"completion_tokens":100,"prompt_tokens_details":{"cached_tokens":600}"#;
    let cost = async |usage: &str, facts: Option<ModelFacts>| {
        let body = format!(r#"{{"choices":[{{"message":{{"content":"hello"}},"finish_reason":"stop"}}],"usage":{{{usage}}}}}"#);
        let server = Server::start(vec![vec![response("200 OK", "", &body)]]).await;
        let model_facts = facts.map(|facts| ("m".to_owned(), facts)).into_iter().collect();
        let came = collect(ask(&provider(EndpointConfig { model_facts, ..server.config() }))).await;
        came.batches.into_iter().flatten().find_map(|delta| match delta {
            StreamDelta::Usage(usage) => Some(usage.cost_usd),
            _ => None,
        })
    };
    assert_eq!(cost(tokens, Some(known)).await, Some(Some(0.0019)));
    assert_eq!(cost(&format!("{tokens},\"cost\":0.5"), Some(known)).await, Some(Some(0.5)));
    assert_eq!(cost(tokens, None).await, Some(None));
    assert_eq!(cost(r#""prompt_tokens":1000"#, Some(known)).await, Some(None));
}

#[test]
fn what_the_configuration_says_of_a_model_comes_before_the_catalogue() {
    let dialect = by_name("openai-chat").unwrap();
    let mut config = EndpointConfig::new("openai", dialect, "https://api.openai.com/v1");
    assert_eq!(config.facts("gpt-4o-2024-08-06").context_window, Some(128_000));
    let own = ModelFacts { context_window: Some(4_096), ..ModelFacts::default() };
    config.model_facts.insert("gpt-4o-2024-08-06".to_owned(), own);
    let facts = config.facts("gpt-4o-2024-08-06");
    assert_eq!((facts.context_window, facts.max_output_tokens), (Some(4_096), Some(16_384)));
    assert!(facts.prices.is_some());
}
