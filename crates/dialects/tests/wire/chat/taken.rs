//! What is asked of an endpoint is what it and the model take.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwright_core::prompt::{Prompt, PromptMessage};
use turnwright_core::{
    ContentBlock, ModelRef, OutputFormat, OutputSchema, ReasoningEffort, Seq, ToolDefinition, TurnSettings, UserMessage,
};
use turnwright_dialects::openai_chat::OpenAiChat;
use turnwright_dialects::{Dialect, Kept, ModelFacts, Profile, ReasoningStyle, Target};

use crate::support::{origin, tool};

fn settings() -> TurnSettings {
    TurnSettings::new(ModelRef::new("p", "m"))
}

fn user(content: Vec<ContentBlock>) -> UserMessage {
    UserMessage { content, settings: settings() }
}

fn messages(said: &[UserMessage]) -> Vec<PromptMessage<'_>> {
    said.iter().zip(1..).map(|(message, at)| PromptMessage::User { seq: Seq::new(at).unwrap(), message }).collect()
}

/// The body of a request to `target`.
fn body(
    (profile, model): (&Profile, &ModelFacts),
    settings: &TurnSettings,
    said: &[UserMessage],
    tools: &[Arc<ToolDefinition>],
    kept: &mut Kept,
) -> Value {
    let prompt =
        Prompt { conversation: None, settings, messages: messages(said), tools, allow_calls: true, has_open_demand: false };
    let request = OpenAiChat.request(&Target { origin: &origin(), profile, model }, &prompt, kept);
    serde_json::from_slice(&request.body).unwrap()
}

#[test]
fn what_people_say_in_a_row_is_one_message_where_the_endpoint_wants_it_so() {
    let image = || ContentBlock::Image { data: "iVBORw0KGgo=".to_owned(), mime_type: "image/png".to_owned() };
    let said = [
        user(vec![ContentBlock::text("A \"role\":\"user\"")]),
        user(vec![ContentBlock::text("B")]),
        user(vec![ContentBlock::text("C"), image()]),
        user(vec![ContentBlock::text("D")]),
    ];
    let mut going_on = Kept::default();
    let mut sent = |profile: &Profile, count: usize, is_new: bool| {
        let mut new = Kept::default();
        let kept = if is_new { &mut new } else { &mut going_on };
        body((profile, &ModelFacts::default()), &settings(), &said[..count], &[], kept)["messages"].clone()
    };
    let one = |content: Value| json!([{"role": "user", "content": content}]);
    let text = |text: &str| json!({"type": "text", "text": text});
    let shown = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}});
    let both = "A \"role\":\"user\"\n\nB";
    assert_eq!(sent(&Profile::COMPATIBLE, 2, true), one(json!(both)));
    let all = one(json!([text(both), text("C"), shown, text("D")]));
    assert_eq!(sent(&Profile::COMPATIBLE, 4, true), all);
    assert_eq!(sent(&Profile::OPENAI, 4, true).as_array().unwrap().len(), 4);
    // What was written before is gone on from.
    for count in 1..=4 {
        let expected = sent(&Profile::COMPATIBLE, count, true);
        assert_eq!(sent(&Profile::COMPATIBLE, count, false), expected, "{count}");
    }
}

#[test]
fn nothing_is_asked_of_a_model_that_it_is_known_not_to_do() {
    let said = [user(vec![ContentBlock::text("Hi")])];
    let asked = TurnSettings { max_output_tokens: Some(200_000), reasoning_effort: Some(ReasoningEffort::High), ..settings() };
    let sent = |facts: ModelFacts| {
        let body = body((&Profile::OPENAI, &facts), &asked, &said, &[], &mut Kept::default());
        (body["max_completion_tokens"].clone(), body.get("reasoning_effort").cloned())
    };
    assert_eq!(sent(ModelFacts::default()), (json!(200_000), Some(json!("high"))));
    let reasoning = Some(ReasoningStyle::Never);
    let known = ModelFacts { max_output_tokens: Some(16_384), reasoning, ..ModelFacts::default() };
    assert_eq!(sent(known), (json!(16_384), None));
}

#[test]
fn a_form_is_asked_for_in_words_beside_tools_where_the_endpoint_takes_it_in_no_other_way() {
    let said = [user(vec![ContentBlock::text("Where?")])];
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let output = Some(OutputFormat::Schema(OutputSchema { name: "place".to_owned(), schema: schema.clone(), strict: false }));
    let asked = TurnSettings { output, ..settings() };
    let tools = [tool("s__f", json!({"type": "object", "properties": {}}))];
    let sent = |profile: &str, tools: &[Arc<ToolDefinition>]| {
        let profile = Profile::preset(profile).unwrap();
        let body = body((&profile, &ModelFacts::default()), &asked, &said, tools, &mut Kept::default());
        (body["messages"][0]["content"].to_string().contains("city"), body.get("response_format").is_some())
    };
    assert_eq!(sent("groq", &tools), (true, false));
    assert_eq!(sent("groq", &[]), (false, true));
    assert_eq!(sent("openai", &tools), (false, true));
}
