//! The form of an answer over all formats: JSON mode, and schemas that contain themselves.

use serde_json::{Value, json};
use turnwright_core::prompt::{Prompt, PromptMessage};
use turnwright_core::{ContentBlock, ModelRef, OutputFormat, OutputSchema, Seq, TurnSettings, UserMessage};
use turnwright_dialects::anthropic::Anthropic;
use turnwright_dialects::gemini::Gemini;
use turnwright_dialects::ollama::Ollama;
use turnwright_dialects::openai_chat::OpenAiChat;
use turnwright_dialects::openai_responses::OpenAiResponses;
use turnwright_dialects::{Dialect, Profile};

use crate::support::request;

/// The body of a request for an answer of this form.
fn body(dialect: &dyn Dialect, profile: &str, output: OutputFormat) -> Value {
    let settings = TurnSettings {
        system_prompt: Some("Be brief.".to_owned()),
        output: Some(output),
        ..TurnSettings::new(ModelRef::new("p", "m"))
    };
    let user = UserMessage { content: vec![ContentBlock::text("Go")], settings: settings.clone() };
    let messages = vec![PromptMessage::User { seq: Seq::FIRST, message: &user }];
    let prompt =
        Prompt { conversation: None, settings: &settings, messages, tools: &[], allow_calls: true, has_open_demand: false };
    serde_json::from_slice(&request(dialect, &prompt, &Profile::preset(profile).unwrap()).body).unwrap()
}

const TOLD: &str = "Be brief.\n\nAnswer with a JSON object alone.";

#[test]
fn json_mode_is_each_apis_own_and_never_a_schema_that_holds_nothing() {
    let chat = |profile: &str| {
        let body = body(&OpenAiChat, profile, OutputFormat::JsonObject);
        (body["messages"][0]["content"].clone(), body.get("response_format").cloned())
    };
    let mode = json!({"type": "json_object"});
    for profile in ["openai", "compatible", "deepseek", "groq", "mistral"] {
        assert_eq!(chat(profile), (json!(TOLD), Some(mode.clone())), "{profile}");
    }
    for profile in ["lmstudio", "perplexity"] {
        assert_eq!(chat(profile), (json!(TOLD), None), "{profile}");
    }
    let responses = body(&OpenAiResponses, "openai", OutputFormat::JsonObject);
    assert_eq!((&responses["text"], &responses["instructions"]), (&json!({"format": mode}), &json!("Be brief.")));
    let told = json!({"role": "developer", "content": "Answer with a JSON object alone."});
    assert_eq!((&responses["input"][0], &responses["input"][1]["role"]), (&told, &json!("user")));
    let ollama = body(&Ollama, "compatible", OutputFormat::JsonObject);
    assert_eq!((&ollama["format"], &ollama["messages"][0]["content"]), (&json!("json"), &json!(TOLD)));
    let gemini = body(&Gemini, "compatible", OutputFormat::JsonObject);
    assert_eq!(gemini["generationConfig"]["responseMimeType"], "application/json");
    assert_eq!(gemini["generationConfig"].get("responseJsonSchema"), None);
    assert_eq!(gemini["systemInstruction"]["parts"][0]["text"], TOLD);
    let anthropic = body(&Anthropic, "anthropic", OutputFormat::JsonObject);
    assert_eq!((anthropic.get("output_config"), &anthropic["system"][0]["text"]), (None, &json!(TOLD)));
}

fn form(schema: &Value) -> OutputFormat {
    OutputFormat::Schema(OutputSchema { name: "tree".to_owned(), schema: schema.clone(), strict: true })
}

/// A tree of names, closed and with every property required, as OpenAI's strict mode wants it.
fn tree() -> Value {
    let node = json!({"type": "object", "required": ["name", "children"], "additionalProperties": false,
                      "properties": {"name": {"type": "string"},
                                     "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}});
    json!({"type": "object", "required": ["root"], "additionalProperties": false,
           "properties": {"root": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}})
}

#[test]
fn a_schema_that_contains_itself_keeps_its_references_where_they_are_taken() {
    let chat = body(&OpenAiChat, "openai", form(&tree()));
    let expected = json!({"name": "tree", "schema": tree(), "strict": true});
    assert_eq!(chat["response_format"]["json_schema"], expected);
    let mut open = tree();
    open["$defs"]["node"]["required"] = json!(["name"]);
    let responses = body(&OpenAiResponses, "openai", form(&open));
    let format = json!({"type": "json_schema", "name": "tree", "schema": open, "strict": false});
    assert_eq!(responses["text"]["format"], format);
    // As pydantic writes a model that contains itself.
    let node = tree()["$defs"]["node"].clone();
    let behind = json!({"$defs": {"node": node}, "$ref": "#/$defs/node"});
    let mut rooted = node;
    rooted["$defs"] = behind["$defs"].clone();
    let chat = body(&OpenAiChat, "openai", form(&behind));
    assert_eq!(chat["response_format"]["json_schema"], json!({"name": "tree", "schema": rooted, "strict": true}));
    // Gemini goes into them where it may end.
    let gemini = body(&Gemini, "compatible", form(&open));
    assert_eq!(gemini["generationConfig"]["responseJsonSchema"], open);
    assert_eq!(gemini["systemInstruction"]["parts"][0]["text"], "Be brief.");
}

#[test]
fn a_schema_that_contains_itself_is_told_in_words_and_not_cut_where_they_are_not() {
    let told = format!("Be brief.\n\nAnswer with JSON alone, which fits this JSON Schema: {}", tree());
    let chat = body(&OpenAiChat, "compatible", form(&tree()));
    let mode = json!({"type": "json_object"});
    assert_eq!((&chat["response_format"], &chat["messages"][0]["content"]), (&mode, &json!(told)));
    let ollama = body(&Ollama, "compatible", form(&tree()));
    assert_eq!((&ollama["format"], &ollama["messages"][0]["content"]), (&json!("json"), &json!(told)));
    let gemini = body(&Gemini, "compatible", form(&tree()));
    assert_eq!(gemini["generationConfig"]["responseMimeType"], "application/json");
    assert_eq!(gemini["generationConfig"].get("responseJsonSchema"), None);
    assert_eq!(gemini["systemInstruction"]["parts"][0]["text"], told);
    let anthropic = body(&Anthropic, "anthropic", form(&tree()));
    assert_eq!((anthropic.get("output_config"), &anthropic["system"][0]["text"]), (None, &json!(told)));
}

#[test]
fn an_object_of_any_names_is_told_in_words_where_every_object_is_closed() {
    let counts =
        json!({"type": "object", "properties": {"of": {"type": "object", "additionalProperties": {"type": "integer"}}}});
    for schema in [counts, json!({"type": "object"})] {
        let anthropic = body(&Anthropic, "anthropic", form(&schema));
        assert_eq!(anthropic.get("output_config"), None, "{schema}");
        assert!(anthropic["system"][0]["text"].as_str().unwrap().ends_with(&schema.to_string()), "{schema}");
    }
}
