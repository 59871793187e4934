//! What is sent to the servers and services that are known to be different.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwright_core::prompt::{Prompt, PromptMessage, PromptResult, ShownResult};
use turnwright_core::{
    AssistantBlock, AssistantMessage, CallId, Completion, ContentBlock, EmbeddedResource, Finish, FinishReason, ModelRef,
    Origin, Outcome, OutputFormat, OutputSchema, ReasoningEffort, Seq, ToolCall, ToolChoice, ToolDefinition, ToolResult,
    TurnSettings, Usage, UserMessage,
};
use turnwright_dialects::openai_chat::OpenAiChat;
use turnwright_dialects::{Dialect, Kept, ModelFacts, Offered, Profile, Target};

use crate::support::{decode_with, origin, request, tool};

fn settings() -> TurnSettings {
    TurnSettings::new(ModelRef::new("p", "m"))
}

/// What is asked of a preset with a question, a tool and these settings.
fn body(preset: &str, settings: &TurnSettings) -> Value {
    let user = UserMessage { content: vec![ContentBlock::text("Hi")], settings: settings.clone() };
    let schema = || json!({"type": "object", "properties": {}});
    let tools: Vec<Arc<ToolDefinition>> = vec![tool("f", schema()), tool("g", schema())];
    let messages = vec![PromptMessage::User { seq: Seq::FIRST, message: &user }];
    let prompt = Prompt { conversation: None, settings, messages, tools: &tools, allow_calls: true, has_open_demand: false };
    serde_json::from_slice(&request(&OpenAiChat, &prompt, &Profile::preset(preset).unwrap()).body).unwrap()
}

#[test]
fn a_demand_for_calls_is_written_as_the_server_takes_it() {
    let named = json!({"type": "function", "function": {"name": "f"}});
    let rows = [
        ("openai", json!("required"), named.clone()),
        ("vllm", json!("required"), named.clone()),
        ("mistral", json!("any"), named),
        ("llamacpp", json!("required"), json!("required")),
        ("moonshot", Value::Null, Value::Null),
        ("ollama", Value::Null, Value::Null),
        ("zai", Value::Null, Value::Null),
    ];
    let choice =
        |preset, choice| body(preset, &TurnSettings { tool_choice: Some(choice), ..settings() })["tool_choice"].clone();
    for (preset, required, one) in rows {
        assert_eq!(choice(preset, ToolChoice::Required), required, "{preset}");
        assert_eq!(choice(preset, ToolChoice::Tool("f".to_owned())), one, "{preset}");
        assert_eq!(choice(preset, ToolChoice::None), "none", "{preset}");
        assert_eq!(choice(preset, ToolChoice::Auto), Value::Null, "{preset}");
    }
}

#[test]
fn one_of_several_tools_is_demanded_by_name_and_else_in_words() {
    let apart = |text: &str| json!([{"role": "user", "content": "Hi"}, {"role": "user", "content": format!("({text})")}]);
    let joined = |text: &str| json!([{"role": "user", "content": format!("Hi\n\n({text})")}]);
    let alone = json!([{"role": "user", "content": "Hi"}]);
    let names = || vec!["f".to_owned(), "g".to_owned()];
    let (f, g) = (named("f"), named("g"));
    let listed = json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [f, g]}});
    let told = "Call at least one of the tools `f`, `g` before you answer, and no other.";
    for (preset, choice, messages) in [
        ("openai", listed.clone(), alone.clone()),
        ("azure", listed, alone.clone()),
        ("vllm", json!("required"), joined(told)),
        ("mistral", json!("any"), apart(told)),
        ("llamacpp", json!("required"), joined(told)),
        ("moonshot", Value::Null, apart(told)),
    ] {
        let body = body(preset, &TurnSettings { tool_choice: Some(ToolChoice::Tools(names())), ..settings() });
        assert_eq!((&body["tool_choice"], &body["messages"]), (&choice, &messages), "{preset}");
    }
    // What an endpoint cannot be told otherwise is told in words too.
    let told = |preset, choice| body(preset, &TurnSettings { tool_choice: Some(choice), ..settings() })["messages"].clone();
    let one = "Call the tool `f` before you answer.";
    assert_eq!(told("llamacpp", ToolChoice::Tool("f".to_owned())), joined(one));
    assert_eq!(told("ollama", ToolChoice::Tool("f".to_owned())), joined(one));
    assert_eq!(told("ollama", ToolChoice::Required), joined("Call at least one of the tools before you answer."));
    assert_eq!(told("ollama", ToolChoice::None), alone);
}

fn named(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name}})
}

#[test]
fn several_calls_at_once_are_allowed_and_forbidden_where_the_server_knows_the_word() {
    let sent = |preset, parallel_calls| {
        body(preset, &TurnSettings { parallel_calls, ..settings() }).get("parallel_tool_calls").cloned()
    };
    for preset in ["openai", "azure", "mistral", "openrouter", "groq", "vllm", "llamacpp"] {
        assert_eq!(sent(preset, Some(false)), Some(json!(false)), "{preset}");
        assert_eq!(sent(preset, Some(true)), Some(json!(true)), "{preset}");
        assert_eq!(sent(preset, None), None, "{preset}");
    }
    assert_eq!(sent("compatible", Some(false)), None);
    // Without tools there is no such word.
    assert_eq!(sent("perplexity", Some(false)), None);
}

#[test]
fn reasoning_is_asked_for_in_the_servers_own_field() {
    use ReasoningEffort as R;
    let sent = |preset, effort| {
        let body = body(preset, &TurnSettings { reasoning_effort: effort, ..settings() });
        let fields = ["reasoning_effort", "thinking", "enable_thinking", "reasoning", "reasoning_format"];
        let sent = fields.into_iter().filter_map(|field| Some((field.to_owned(), body.get(field)?.clone())));
        Value::Object(sent.collect())
    };
    for preset in ["openai", "deepseek", "zai", "qwen", "openrouter", "groq", "compatible"] {
        assert_eq!(sent(preset, None), json!({}), "{preset}");
    }
    let rows = [
        ("compatible", R::Max, json!({"reasoning_effort": "max"})),
        ("zai", R::Medium, json!({"thinking": {"type": "enabled"}})),
        ("zai", R::None, json!({"thinking": {"type": "disabled"}})),
        ("deepseek", R::Medium, json!({"thinking": {"type": "enabled"}, "reasoning_effort": "high"})),
        ("deepseek", R::Minimal, json!({"thinking": {"type": "enabled"}, "reasoning_effort": "low"})),
        ("deepseek", R::Xhigh, json!({"thinking": {"type": "enabled"}, "reasoning_effort": "max"})),
        ("deepseek", R::None, json!({"thinking": {"type": "disabled"}})),
        ("qwen", R::Low, json!({"enable_thinking": true})),
        ("qwen", R::None, json!({"enable_thinking": false})),
        ("openrouter", R::Low, json!({"reasoning": {"effort": "low"}})),
        ("openrouter", R::Max, json!({"reasoning": {"effort": "xhigh"}})),
        ("openrouter", R::None, json!({"reasoning": {"effort": "none"}})),
        ("groq", R::Low, json!({"reasoning_effort": "low", "reasoning_format": "parsed"})),
        ("groq", R::None, json!({"reasoning_effort": "none"})),
    ];
    for (preset, effort, expected) in rows {
        assert_eq!(sent(preset, Some(effort)), expected, "{preset} {effort:?}");
    }
}

#[test]
fn a_model_that_cannot_be_made_to_call_while_it_thinks_does_not_think() {
    let sent = |preset, choice, effort| {
        let asked = TurnSettings { tool_choice: choice, reasoning_effort: effort, ..settings() };
        let body = body(preset, &asked);
        let field = if body.get("enable_thinking").is_some() { "enable_thinking" } else { "thinking" };
        (body["tool_choice"].clone(), body[field].clone(), body["reasoning_effort"].clone())
    };
    let off = json!({"type": "disabled"});
    let thinks = Some(ReasoningEffort::High);
    for effort in [None, thinks] {
        assert_eq!(sent("deepseek", Some(ToolChoice::Required), effort), (json!("required"), off.clone(), Value::Null));
        assert_eq!(sent("qwen", Some(ToolChoice::Required), effort), (json!("required"), json!(false), Value::Null));
        let one = Some(ToolChoice::Tool("f".to_owned()));
        assert_eq!(sent("qwen", one, effort), (named("f"), json!(false), Value::Null));
    }
    assert_eq!(sent("qwen", None, thinks), (Value::Null, json!(true), Value::Null));
    let on = (Value::Null, json!({"type": "enabled"}), json!("high"));
    assert_eq!(sent("deepseek", None, thinks), on);
    let none = (json!("none"), json!({"type": "enabled"}), json!("high"));
    assert_eq!(sent("deepseek", Some(ToolChoice::None), thinks), none);
    assert_eq!(sent("vllm", Some(ToolChoice::Required), thinks), (json!("required"), Value::Null, json!("high")));
}

#[test]
fn what_a_server_may_refuse_can_be_taken_out_piece_by_piece() {
    let asked = TurnSettings { reasoning_effort: Some(ReasoningEffort::Low), ..settings() };
    let user = UserMessage { content: vec![ContentBlock::text("Hi")], settings: asked.clone() };
    let messages = vec![PromptMessage::User { seq: Seq::FIRST, message: &user }];
    let prompt =
        Prompt { conversation: None, settings: &asked, messages, tools: &[], allow_calls: true, has_open_demand: false };
    let whole = request(&OpenAiChat, &prompt, &Profile::preset("groq").unwrap());
    let without = |names: &[&str]| {
        let mut request = whole.clone();
        for name in names {
            assert!(request.drop_optional(name), "{name}");
            assert!(!request.drop_optional(name), "{name}");
        }
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        ["stream_options", "reasoning_format", "stream"].map(|field| body.get(field).is_some())
    };
    assert_eq!(without(&[]), [true, true, true]);
    assert_eq!(without(&["stream_options"]), [false, true, true]);
    assert_eq!(without(&["reasoning_format"]), [true, false, true]);
    assert_eq!(without(&["stream_options", "reasoning_format"]), [false, false, true]);
    assert_eq!(without(&["reasoning_format", "stream_options"]), [false, false, true]);
}

#[test]
fn a_pdf_is_written_as_the_server_takes_it() {
    let resource = EmbeddedResource {
        uri: "file:///a/plan.pdf".to_owned(),
        mime_type: Some("application/pdf".to_owned()),
        text: None,
        blob: Some("JVBERi0=".to_owned()),
    };
    let settings = settings();
    let user = UserMessage { content: vec![ContentBlock::Resource { resource }], settings: settings.clone() };
    let part = |preset: &str| {
        let messages = vec![PromptMessage::User { seq: Seq::FIRST, message: &user }];
        let prompt =
            Prompt { conversation: None, settings: &settings, messages, tools: &[], allow_calls: true, has_open_demand: false };
        let body = request(&OpenAiChat, &prompt, &Profile::preset(preset).unwrap()).body;
        serde_json::from_slice::<Value>(&body).unwrap()["messages"][0]["content"][0].clone()
    };
    let data = "data:application/pdf;base64,JVBERi0=";
    assert_eq!(part("openai"), json!({"type": "file", "file": {"filename": "plan.pdf", "file_data": data}}));
    assert_eq!(part("mistral"), json!({"type": "document_url", "document_url": data, "document_name": "plan.pdf"}));
}

#[test]
fn a_form_of_the_answer_is_asked_for_as_the_server_takes_it() {
    let output = OutputFormat::Schema(OutputSchema { name: "o".to_owned(), schema: json!({"type": "object"}), strict: true });
    let asked = TurnSettings { output: Some(output), system_prompt: Some("Be brief.".to_owned()), ..settings() };
    let rest = body("xai", &asked);
    assert_eq!(rest["response_format"]["type"], "json_schema");
    assert_eq!(rest["messages"][0]["content"], "Be brief.");
    let rest = body("deepseek", &asked);
    assert_eq!(rest["response_format"], json!({"type": "json_object"}));
    let told = "Be brief.\n\nAnswer with JSON alone, which fits this JSON Schema: {\"type\":\"object\"}";
    assert_eq!(rest["messages"][0]["content"], told);
}

#[test]
fn each_server_is_sent_what_it_takes() {
    let limited = TurnSettings { max_output_tokens: Some(9), system_prompt: Some("s".to_owned()), ..settings() };
    let row = |preset: &str| {
        let body = body(preset, &limited);
        let limit = ["max_tokens", "max_completion_tokens"].into_iter().find(|field| body.get(*field).is_some()).unwrap();
        let role = body["messages"][0]["role"].as_str().unwrap().to_owned();
        (role, limit, body.get("stream_options").is_some(), body.get("tools").is_some())
    };
    let usual = ("system".to_owned(), "max_tokens", true, true);
    for preset in ["compatible", "ollama", "vllm", "sglang", "tgi", "llamacpp", "lmstudio", "openrouter", "groq", "deepseek"] {
        assert_eq!(row(preset), usual, "{preset}");
    }
    for preset in ["moonshot", "together", "fireworks", "huggingface", "cerebras", "sambanova", "xai", "gemini", "qwen", "zai"]
    {
        assert_eq!(row(preset), usual, "{preset}");
    }
    for preset in ["openai", "azure"] {
        assert_eq!(row(preset), ("developer".to_owned(), "max_completion_tokens", true, true), "{preset}");
    }
    assert_eq!(row("mistral"), ("system".to_owned(), "max_tokens", false, true));
    for preset in ["perplexity", "mira", "hyperbolic"] {
        assert_eq!(row(preset), ("system".to_owned(), "max_tokens", true, false), "{preset}");
    }
}

#[test]
fn images_are_sent_where_neither_the_server_nor_the_model_is_known_to_take_none() {
    let image = ContentBlock::Image { data: "iVBORw0KGgo=".to_owned(), mime_type: "image/png".to_owned() };
    let (settings, origin) = (settings(), origin());
    let user = UserMessage { content: vec![image], settings: settings.clone() };
    let has_image = |preset: &str, images: Option<bool>| {
        let messages = vec![PromptMessage::User { seq: Seq::FIRST, message: &user }];
        let prompt =
            Prompt { conversation: None, settings: &settings, messages, tools: &[], allow_calls: true, has_open_demand: false };
        let (profile, model) = (Profile::preset(preset).unwrap(), ModelFacts { images, ..ModelFacts::default() });
        let target = Target { origin: &origin, profile: &profile, model: &model };
        let body = OpenAiChat.request(&target, &prompt, &mut Kept::default()).body;
        String::from_utf8(body.into_vec()).unwrap().contains("image_url")
    };
    assert!(has_image("compatible", None) && has_image("compatible", Some(true)));
    assert!(!has_image("compatible", Some(false)) && !has_image("deepseek", None));
}

#[test]
fn an_assistant_message_follows_results_where_a_user_message_may_not() {
    let settings = settings();
    let user = UserMessage { content: vec![ContentBlock::text("Go on")], settings: settings.clone() };
    let call = ToolCall { name: "f".to_owned(), arguments: "{}".to_owned(), provider_id: None, recovered: false, native: None };
    let message = AssistantMessage {
        origin: Origin { provider: "other".to_owned(), ..origin() },
        saw: Seq::FIRST,
        blocks: vec![AssistantBlock::Call(call.clone())],
        finish: Finish { reason: FinishReason::ToolCalls, raw: None },
        completion: Completion::Complete,
        usage: Usage::default(),
    };
    let id = CallId { message: Seq::FIRST, index: 0 };
    let result: ShownResult<'_> = ShownResult::from(ToolResult { content: vec![], ..ToolResult::of(id, Outcome::Success, "") });
    let roles = |preset: &str| {
        let messages = vec![
            PromptMessage::Assistant { seq: Seq::FIRST, message: &message },
            PromptMessage::Results(vec![PromptResult { id, call: &call, result: result.clone(), edit: None, nudge: None }]),
            PromptMessage::User { seq: Seq::FIRST, message: &user },
        ];
        let prompt =
            Prompt { conversation: None, settings: &settings, messages, tools: &[], allow_calls: true, has_open_demand: false };
        let body = request(&OpenAiChat, &prompt, &Profile::preset(preset).unwrap()).body;
        let body: Value = serde_json::from_slice(&body).unwrap();
        body["messages"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(roles("compatible"), ["assistant", "tool", "user"]);
    assert_eq!(roles("mistral"), ["assistant", "tool", "assistant", "user"]);
}

#[test]
fn reasoning_that_is_counted_beside_the_answer_is_a_part_of_the_output() {
    let output = |usage: &str| {
        let body = format!(r#"{{"choices":[{{"message":{{"content":"a"}},"finish_reason":"stop"}}],"usage":{{{usage}}}}}"#);
        let type_ = Some("application/json");
        let decoded = decode_with(&Profile::COMPATIBLE, &Offered::default(), type_, &[body.as_bytes()]);
        (decoded.message.usage.output_tokens, decoded.message.usage.reasoning_tokens)
    };
    let details = r#""completion_tokens_details":{"reasoning_tokens":30}"#;
    let beside = format!(r#""prompt_tokens":100,"completion_tokens":10,"total_tokens":140,{details}"#);
    assert_eq!(output(&beside), (Some(40), Some(30)));
    let within = format!(r#""prompt_tokens":100,"completion_tokens":40,"total_tokens":140,{details}"#);
    assert_eq!(output(&within), (Some(40), Some(30)));
    let unsaid = format!(r#""prompt_tokens":100,"completion_tokens":40,{details}"#);
    assert_eq!(output(&unsaid), (Some(40), Some(30)));
}
