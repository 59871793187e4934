//! Gemini generateContent.

use std::collections::HashSet;

use serde_json::Value;

use super::check::{At, Findings, is_base64, sniffed};
use super::schema;

/// What stands for the signature of a call that came from elsewhere.
const PLACEHOLDER: &str = "skip_thought_signature_validator";

/// What the model would refuse; which model it is stands in the request's path.
pub(crate) fn validate(body: &Value, model: &str) -> Vec<String> {
    let mut found = Findings::default();
    let at = At::root(body);
    let keys =
        ["systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings", "cachedContent", "modelArmorConfig"];
    found.keys(&at, &["contents"], &keys);
    if let Some(at) = at.key("systemInstruction") {
        found.keys(&at, &["parts"], &["role"]);
        for part in at.key("parts").iter().flat_map(At::items) {
            found.keys(&part, &["text"], &["thought"]);
            found.filled_of(&part, "text");
        }
    }
    let names = tools(&mut found, &at, model);
    config(&mut found, &at, &names);
    generation(&mut found, &at);
    if let Some(contents_at) = at.key("contents") {
        found.list(&contents_at);
        contents(&mut found, &contents_at, model);
    }
    found.0
}

/// Whether the model is of the third generation or newer.
fn is_new(model: &str) -> bool {
    let version = model.rsplit('/').next().and_then(|name| name.strip_prefix("gemini-"));
    version.is_some_and(|version| version.starts_with(|c: char| ('3'..='9').contains(&c)))
}

fn name<'v>(found: &mut Findings, at: &At<'_, 'v>) -> &'v str {
    let text = found.text(at);
    let fits = (1..=64).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':' | b'-'));
    found.demand(at, fits, format_args!("Invalid function name `{text}`"));
    text
}

fn tools<'v>(found: &mut Findings, at: &At<'_, 'v>, model: &str) -> HashSet<&'v str> {
    let mut names = HashSet::new();
    let Some(list) = at.key("tools") else { return names };
    found.list(&list);
    let mut has_own = false;
    for tool in list.items() {
        let known = ["functionDeclarations", "googleSearch", "codeExecution", "urlContext"];
        found.keys(&tool, &[], &known);
        has_own |= known[1..].iter().any(|key| tool.has(key));
        let Some(list) = tool.set("functionDeclarations") else { continue };
        found.list(&list);
        for at in list.items() {
            found.keys(
                &at,
                &["name"],
                &["description", "parameters", "parametersJsonSchema", "response", "responseJsonSchema", "behavior"],
            );
            if let Some(at) = at.key("name") {
                name(found, &at);
                found.unique(&at, &mut names, "the function");
            }
            let both = at.has("parameters") && at.has("parametersJsonSchema");
            found.demand(&at, !both, "`parameters` and `parametersJsonSchema`");
            if let Some(at) = at.set("parameters") {
                found.demand(&at, at.str_of("type").eq_ignore_ascii_case("object"), "the root of `parameters` is an object");
                schema::gemini_subset(found, &at);
            }
            if let Some(at) = at.set("parametersJsonSchema") {
                schema::parameters(found, &at);
                for key in ["$schema", "$id"] {
                    found.demand(&at, at.key(key).is_none(), format_args!("`{key}` is to be left out"));
                }
            }
        }
    }
    found.demand(&list, !has_own || names.is_empty() || is_new(model), "built-in tools and functions together");
    names
}

fn config(found: &mut Findings, at: &At<'_, '_>, names: &HashSet<&str>) {
    let Some(at) = at.key("toolConfig") else { return };
    found.keys(&at, &[], &["functionCallingConfig", "includeServerSideToolInvocations", "retrievalConfig"]);
    let Some(at) = at.set("functionCallingConfig") else { return };
    found.keys(&at, &["mode"], &["allowedFunctionNames"]);
    found.word_of(&at, "mode", &["AUTO", "ANY", "NONE", "VALIDATED"]);
    found.demand(&at, !names.is_empty(), "a choice without functions");
    let Some(list) = at.set("allowedFunctionNames") else { return };
    found.demand(&list, matches!(at.str_of("mode"), "ANY" | "VALIDATED"), "allowed names are taken with the mode ANY alone");
    for name in list.items() {
        found.demand(&name, name.str().is_some_and(|name| names.contains(name)), "there is no such function");
    }
}

fn generation(found: &mut Findings, at: &At<'_, '_>) {
    let Some(at) = at.key("generationConfig") else { return };
    let keys = [
        "temperature",
        "topP",
        "topK",
        "maxOutputTokens",
        "stopSequences",
        "seed",
        "candidateCount",
        "responseMimeType",
        "responseSchema",
        "responseJsonSchema",
        "thinkingConfig",
        "mediaResolution",
        "responseModalities",
        "presencePenalty",
        "frequencyPenalty",
    ];
    found.keys(&at, &[], &keys);
    found.number(&at, "temperature", 0.0, 2.0);
    found.integer(&at, "maxOutputTokens", 1);
    if let Some(at) = at.key("stopSequences") {
        found.demand(&at, at.items().count() <= 5, "at most five");
    }
    found.demand(&at, !(at.has("responseSchema") && at.has("responseJsonSchema")), "two schemas for one answer");
    let has_schema = at.has("responseSchema") || at.has("responseJsonSchema");
    found.demand(&at, !has_schema || at.str_of("responseMimeType") == "application/json", "a schema without its mime type");
    at.set("responseSchema").iter().for_each(|at| schema::gemini_subset(found, at));
    if let Some(at) = at.key("thinkingConfig") {
        found.keys(&at, &[], &["includeThoughts", "thinkingBudget", "thinkingLevel"]);
        found.boolean(&at, "includeThoughts");
        found.integer(&at, "thinkingBudget", -1);
        found.word_of(&at, "thinkingLevel", &["MINIMAL", "LOW", "MEDIUM", "HIGH", "XHIGH", "minimal", "low", "medium", "high"]);
        found.demand(&at, !(at.has("thinkingBudget") && at.has("thinkingLevel")), "a budget and a level");
    }
}

/// What a content is, which decides what may follow it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Begin,
    Text,
    Responses,
    Model,
}

fn contents(found: &mut Findings, at: &At<'_, '_>, model: &str) {
    let mut last = Kind::Begin;
    // Name and id of the calls that wait for their response.
    let mut due: Vec<(&str, Option<&str>)> = Vec::new();
    let all: Vec<_> = at.items().collect();
    // The current turn begins with the newest content of the user that is no response.
    let is_text = |content: &&At<'_, '_>| content.str_of("role") == "user" && !is_response(content);
    let turn = all.iter().rposition(|content| is_text(&content)).unwrap_or_default();
    for (index, content) in all.iter().enumerate() {
        found.keys(content, &["role", "parts"], &[]);
        found.word_of(content, "role", &["user", "model"]);
        let Some(parts) = content.key("parts") else { continue };
        found.list(&parts);
        let kind = match content.str_of("role") {
            "model" => Kind::Model,
            _ if is_response(content) => Kind::Responses,
            _ => Kind::Text,
        };
        let fits = match last {
            Kind::Begin => kind == Kind::Text,
            Kind::Text => kind == Kind::Model,
            Kind::Responses => matches!(kind, Kind::Text | Kind::Model),
            Kind::Model => matches!(kind, Kind::Text | Kind::Responses),
        };
        found.demand(content, fits, "the roles do not alternate, beginning with the user");
        if kind == Kind::Responses {
            responses(found, &parts, &due, model);
        } else {
            found.demand(
                content,
                due.is_empty(),
                "Please ensure that function call turns are followed by a function response turn",
            );
        }
        due.clear();
        if kind == Kind::Model {
            model_parts(found, &parts, &mut due);
            let first = parts.items().find(|part| part.has("functionCall"));
            if let Some(first) = first.filter(|_| is_new(model) && index > turn) {
                found.demand(&first, first.has("thoughtSignature"), "Function call is missing a thought_signature");
            }
        } else if kind == Kind::Text {
            parts.items().for_each(|part| user_part(found, &part));
        }
        last = kind;
    }
    found.demand(at, due.is_empty(), "the function calls at the end have no response");
}

fn is_response(content: &At<'_, '_>) -> bool {
    content.key("parts").is_some_and(|parts| parts.items().any(|part| part.has("functionResponse")))
}

fn responses(found: &mut Findings, parts: &At<'_, '_>, due: &[(&str, Option<&str>)], model: &str) {
    let count = parts.items().filter(|part| part.has("functionResponse")).count();
    found.demand(
        parts,
        count == due.len(),
        format_args!(
            "Please ensure that the number of function response parts ({count}) is equal to the number of function call parts ({}) of the function call turn",
            due.len()
        ),
    );
    for (part, place) in parts.items().zip(0..) {
        found.keys(&part, &["functionResponse"], &["thought"]);
        let Some(at) = part.key("functionResponse") else { continue };
        found.keys(&at, &["name", "response"], &["id", "parts"]);
        let called = due.get(place).copied().unwrap_or_default();
        if let Some(at) = at.key("name") {
            let name = name(found, &at);
            found.demand(&at, name == called.0, format_args!("the call at this place is `{}`", called.0));
        }
        found.demand(&at, at.key("id").and_then(|id| id.str()) == called.1, format_args!("the call's id is {:?}", called.1));
        if let Some(at) = at.key("response") {
            found.demand(&at, at.value.is_object(), "a response is an object");
        }
        if let Some(list) = at.key("parts") {
            found.demand(&list, is_new(model), "media in a response are taken by newer models alone");
            found.list(&list);
            for part in list.items() {
                found.keys(&part, &["inlineData"], &[]);
                inline_data(found, &part);
            }
        }
    }
}

/// The keys that hold what a part is; each part has one.
const DATA: [&str; 9] = [
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
];

fn part(found: &mut Findings, part: &At<'_, '_>) {
    found.keys(part, &[], &[&DATA[..], &["thought", "thoughtSignature", "videoMetadata"]].concat());
    let held = DATA.iter().filter(|key| part.has(key)).count();
    found.demand(part, held == 1, "a part holds one thing");
    found.boolean(part, "thought");
    if let Some(at) = part.key("text") {
        let text = found.text(&at);
        found.demand(&at, !text.is_empty() || part.has("thoughtSignature"), "an empty text");
    }
    if let Some(at) = part.key("thoughtSignature") {
        let text = found.filled(&at);
        found.demand(&at, text == PLACEHOLDER || is_base64(text), "the signature is not base64");
    }
    inline_data(found, part);
}

fn inline_data(found: &mut Findings, part: &At<'_, '_>) {
    let Some(at) = part.key("inlineData") else { return };
    found.keys(&at, &["mimeType", "data"], &["displayName"]);
    found.filled_of(&at, "mimeType");
    if let Some(data) = at.key("data") {
        found.base64(&data);
        let fits = sniffed(data.str().unwrap_or_default()).is_none_or(|real| real == at.str_of("mimeType"));
        found.demand(&at, fits, "the bytes are not what the mime type says");
    }
}

fn user_part(found: &mut Findings, at: &At<'_, '_>) {
    part(found, at);
    for key in ["functionCall", "executableCode", "toolCall"] {
        found.demand(at, !at.has(key), format_args!("`{key}` is not the user's"));
    }
}

fn model_parts<'v>(found: &mut Findings, parts: &At<'_, 'v>, due: &mut Vec<(&'v str, Option<&'v str>)>) {
    for at in parts.items() {
        part(found, &at);
        let Some(call) = at.key("functionCall") else { continue };
        found.keys(&call, &["name", "args"], &["id"]);
        if let Some(at) = call.key("args") {
            found.demand(&at, at.value.is_object(), "the arguments are an object");
        }
        if let Some(at) = call.key("id") {
            found.text(&at);
        }
        let name = call.key("name").map(|at| name(found, &at)).unwrap_or_default();
        // An empty id is none, as with all fields of this API.
        due.push((name, call.value["id"].as_str().filter(|id| !id.is_empty())));
    }
}
