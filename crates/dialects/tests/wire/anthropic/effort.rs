//! Words of effort: which a model knows, and what comes of one that is refused.

use serde_json::{Value, json};
use turnwright_core::prompt::PromptMessage;
use turnwright_core::{OutputFormat, OutputSchema, ProviderFailure, ProviderFailureKind, ReasoningEffort};

use super::request::{Ask, asks, message};

fn asked<'a>(messages: Vec<PromptMessage<'a>>, model: &str, effort: ReasoningEffort) -> Ask<'a> {
    let mut ask = Ask::new(messages);
    ask.model = model.to_owned();
    ask.settings.reasoning_effort = Some(effort);
    ask
}

#[test]
fn no_model_is_asked_for_an_effort_that_it_does_not_know_nor_for_more_than_was_chosen() {
    let hello = asks("Hi");
    let word = |model, effort| asked(vec![message(1, &hello)], model, effort).body()["output_config"]["effort"].clone();
    for model in ["claude-opus-4-6", "anthropic/claude-sonnet-4.6", "claude-mythos-preview"] {
        assert_eq!(word(model, ReasoningEffort::Xhigh), "high", "{model}");
        assert_eq!(word(model, ReasoningEffort::Max), "max", "{model}");
    }
    for model in ["claude-opus-4-7", "claude-opus-5-5", "claude-sonnet-5", "claude-unheard-of"] {
        assert_eq!(word(model, ReasoningEffort::Xhigh), "xhigh", "{model}");
    }
}

#[test]
fn a_refused_effort_is_left_out() {
    let hello = asks("Hi");
    let mut ask = asked(vec![message(1, &hello)], "claude-opus-4-7", ReasoningEffort::High);
    let refusal = |text: &str| {
        let kind = ProviderFailureKind::InvalidRequest;
        ProviderFailure { status: Some(400), ..ProviderFailure::new(kind, text) }
    };
    for text in [
        "output_config.effort \"high\" is not supported by model claude-opus-4.7; supported values: [medium]",
        "This model does not support effort level 'high'. Supported levels: low, medium.",
        "This model does not support the effort parameter.",
    ] {
        let mut request = ask.request();
        let refused = request.refused(&refusal(text)).unwrap();
        assert!(request.leave_out(&refused), "{text}");
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!((body.get("output_config"), &body["thinking"]["type"]), (None, &json!("adaptive")), "{text}");
    }
    assert_eq!(ask.request().refused(&refusal("max_tokens: required")), None);
    let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
    ask.settings.output = Some(OutputFormat::Schema(OutputSchema { name: "o".to_owned(), schema, strict: true }));
    let mut held = ask.request();
    assert!(held.drop_optional("output_config.effort"));
    let body: Value = serde_json::from_slice(&held.body).unwrap();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&body["output_config"]), ["format"]);
    ask.settings.reasoning_effort = None;
    assert_eq!(ask.request().optional, Vec::<&str>::new());
}
