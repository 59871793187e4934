//! Gemini.

use super::{PNG, Row, Value, check, json, list, remove};
use crate::validate::gemini::validate;

fn valid() -> Value {
    json!({
        "systemInstruction": {"parts": [{"text": "s"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "t"}, {"inlineData": {"mimeType": "image/png", "data": PNG}}]},
            {"role": "model", "parts": [
                {"text": "Hm", "thought": true},
                {"text": "", "thoughtSignature": "c2ln"},
                {"functionCall": {"id": "1", "name": "f", "args": {}}, "thoughtSignature": "c2ln"},
                {"functionCall": {"name": "g", "args": {"x": 1}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "1", "name": "f", "response": {"output": "r"}, "parts": [{"inlineData": {"mimeType": "image/png", "data": PNG}}]}},
                {"functionResponse": {"name": "g", "response": {"error": "r"}}},
            ]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "skip_thought_signature_validator"}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "r"}}}]},
        ],
        "tools": [{"functionDeclarations": [
            {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {
                "a": {"type": "string", "nullable": true, "enum": ["x"]}, "b": {"type": "array", "items": {"type": "string"}},
                "c": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}, "required": ["a"]}},
            {"name": "g", "parametersJsonSchema": {"type": "object", "properties": {}}},
        ]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
        "generationConfig": {"thinkingConfig": {"includeThoughts": true, "thinkingLevel": "LOW"}, "maxOutputTokens": 9},
    })
}

const ROWS: &[Row] = &[
    ("no contents", |b| b["contents"] = json!([]), "/contents: a list that is not empty"),
    ("an unknown parameter", |b| b["system"] = json!("s"), "unknown key `system`"),
    ("a model first", |b| drop(list(&mut b["contents"]).remove(0)), "do not alternate"),
    (
        "two users",
        |b| list(&mut b["contents"]).insert(0, json!({"role": "user", "parts": [{"text": "t"}]})),
        "do not alternate",
    ),
    (
        "two models",
        |b| list(&mut b["contents"]).insert(1, json!({"role": "model", "parts": [{"text": "t"}]})),
        "do not alternate",
    ),
    ("an unknown role", |b| b["contents"][0]["role"] = json!("assistant"), "none of user, model"),
    ("no parts", |b| b["contents"][0]["parts"] = json!([]), "/contents/0/parts: a list that is not empty"),
    ("an empty text", |b| b["contents"][0]["parts"][0]["text"] = json!(""), "an empty text"),
    (
        "a part of two things",
        |b| b["contents"][0]["parts"][0]["inlineData"] = json!({"mimeType": "image/png", "data": PNG}),
        "holds one thing",
    ),
    ("a part of nothing", |b| b["contents"][0]["parts"][0] = json!({"thought": true}), "holds one thing"),
    ("an unknown part", |b| b["contents"][0]["parts"][0]["type"] = json!("text"), "unknown key `type`"),
    (
        "a response missing",
        |b| drop(list(&mut b["contents"][2]["parts"]).remove(1)),
        "is equal to the number of function call parts",
    ),
    (
        "a response too many",
        |b| {
            let part = b["contents"][2]["parts"][1].clone();
            list(&mut b["contents"][2]["parts"]).push(part);
        },
        "is equal to the number of function call parts",
    ),
    (
        "responses in two contents",
        |b| {
            let part = list(&mut b["contents"][2]["parts"]).remove(1);
            list(&mut b["contents"]).insert(3, json!({"role": "user", "parts": [part]}));
        },
        "do not alternate",
    ),
    (
        "calls that a text follows",
        |b| b["contents"][2] = json!({"role": "user", "parts": [{"text": "t"}]}),
        "followed by a function response turn",
    ),
    ("calls at the end", |b| list(&mut b["contents"]).truncate(4), "have no response"),
    ("responses in another order", |b| list(&mut b["contents"][2]["parts"]).swap(0, 1), "the call at this place"),
    ("a text among responses", |b| list(&mut b["contents"][2]["parts"]).push(json!({"text": "t"})), "unknown key `text`"),
    ("a response without its id", |b| remove(&mut b["contents"][2]["parts"][0]["functionResponse"], "id"), "the call's id is"),
    (
        "a response with an id of ours",
        |b| b["contents"][2]["parts"][1]["functionResponse"]["id"] = json!("2"),
        "the call's id is None",
    ),
    (
        "a response without a name",
        |b| remove(&mut b["contents"][2]["parts"][1]["functionResponse"], "name"),
        "`name` is missing",
    ),
    (
        "a response that is a text",
        |b| b["contents"][2]["parts"][1]["functionResponse"]["response"] = json!("r"),
        "a response is an object",
    ),
    (
        "a signature in the call",
        |b| b["contents"][1]["parts"][2]["functionCall"]["thoughtSignature"] = json!("c2ln"),
        "unknown key `thoughtSignature`",
    ),
    (
        "an unsigned first call",
        |b| remove(&mut b["contents"][1]["parts"][2], "thoughtSignature"),
        "/contents/1/parts/2: Function call is missing a thought_signature",
    ),
    (
        "an unsigned call of a later step",
        |b| remove(&mut b["contents"][3]["parts"][0], "thoughtSignature"),
        "/contents/3/parts/0: Function call is missing",
    ),
    ("a signature that is no base64", |b| b["contents"][1]["parts"][2]["thoughtSignature"] = json!("a*b"), "not base64"),
    (
        "arguments that are a text",
        |b| b["contents"][1]["parts"][2]["functionCall"]["args"] = json!("{}"),
        "the arguments are an object",
    ),
    (
        "a name that begins with a digit",
        |b| b["contents"][1]["parts"][2]["functionCall"]["name"] = json!("1f"),
        "Invalid function name",
    ),
    (
        "a call of the user",
        |b| b["contents"][0]["parts"][0] = json!({"functionCall": {"name": "f", "args": {}}}),
        "not the user's",
    ),
    (
        "an image that is another",
        |b| b["contents"][0]["parts"][1]["inlineData"]["mimeType"] = json!("image/gif"),
        "not what the mime type says",
    ),
    ("an image that is no base64", |b| b["contents"][0]["parts"][1]["inlineData"]["data"] = json!("data:x"), "base64"),
    (
        "a function's name with a slash",
        |b| b["tools"][0]["functionDeclarations"][0]["name"] = json!("a/b"),
        "Invalid function name",
    ),
    (
        "a function's name too long",
        |b| b["tools"][0]["functionDeclarations"][0]["name"] = json!("a".repeat(65)),
        "Invalid function name",
    ),
    ("a function twice", |b| b["tools"][0]["functionDeclarations"][1]["name"] = json!("f"), "the function `f` is there twice"),
    (
        "two schemas",
        |b| b["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"] = json!({"type": "object"}),
        "`parameters` and `parametersJsonSchema`",
    ),
    (
        "an unknown word of a schema",
        |b| b["tools"][0]["functionDeclarations"][0]["parameters"]["additionalProperties"] = json!(false),
        "unknown name `additionalProperties`",
    ),
    (
        "several types",
        |b| b["tools"][0]["functionDeclarations"][0]["parameters"]["properties"]["a"]["type"] = json!(["string", "null"]),
        "`type` is one type",
    ),
    (
        "numbers to choose from",
        |b| b["tools"][0]["functionDeclarations"][0]["parameters"]["properties"]["a"]["enum"] = json!([1]),
        "a text is expected",
    ),
    (
        "a format it does not know",
        |b| b["tools"][0]["functionDeclarations"][0]["parameters"]["properties"]["a"]["format"] = json!("uri"),
        "none of enum, date-time",
    ),
    (
        "a list of nothing",
        |b| remove(&mut b["tools"][0]["functionDeclarations"][0]["parameters"]["properties"]["b"], "items"),
        "items: missing field",
    ),
    (
        "an object of nothing",
        |b| {
            b["tools"][0]["functionDeclarations"][0]["parameters"]["properties"]["b"] =
                json!({"type": "object", "properties": {}});
        },
        "should be non-empty",
    ),
    (
        "what is required and not there",
        |b| b["tools"][0]["functionDeclarations"][0]["parameters"]["required"] = json!(["z"]),
        "property is not defined",
    ),
    (
        "alternatives and a type",
        |b| b["tools"][0]["functionDeclarations"][0]["parameters"]["properties"]["c"]["type"] = json!("string"),
        "beside `anyOf`",
    ),
    (
        "a schema's own address",
        |b| b["tools"][0]["functionDeclarations"][1]["parametersJsonSchema"]["$schema"] = json!("x"),
        "`$schema` is to be left out",
    ),
    ("an unknown mode", |b| b["toolConfig"]["functionCallingConfig"]["mode"] = json!("REQUIRED"), "none of AUTO"),
    (
        "a choice of no function",
        |b| b["toolConfig"]["functionCallingConfig"]["allowedFunctionNames"] = json!(["z"]),
        "there is no such function",
    ),
    ("names with another mode", |b| b["toolConfig"]["functionCallingConfig"]["mode"] = json!("AUTO"), "the mode ANY alone"),
    ("a choice without functions", |b| remove(b, "tools"), "a choice without functions"),
    ("a schema without its type", |b| b["generationConfig"]["responseJsonSchema"] = json!({}), "without its mime type"),
    ("a budget and a level", |b| b["generationConfig"]["thinkingConfig"]["thinkingBudget"] = json!(1), "a budget and a level"),
];

#[test]
fn each_broken_rule_of_gemini_is_seen() {
    check(&valid(), |body| validate(body, "gemini-3-pro"), ROWS);
}

#[test]
fn what_only_newer_models_take_is_refused_to_older_ones() {
    let found = validate(&valid(), "gemini-2.5-pro");
    assert_eq!(found, ["/contents/2/parts/0/functionResponse/parts: media in a response are taken by newer models alone"]);
    let mut body = valid();
    list(&mut body["tools"]).push(json!({"googleSearch": {}}));
    assert_eq!(validate(&body, "gemini-3-pro"), Vec::<String>::new());
    assert!(validate(&body, "gemini-2.5-pro").iter().any(|why| why.contains("together")));
}
