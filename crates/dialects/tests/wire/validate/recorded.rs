//! Every request that a provider took is accepted: where one is refused, the validator is too strict.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::chat::Server;
use super::{anthropic, chat, gemini, ollama, responses};

/// What was recorded and taken although the rules say otherwise: a part of the case's name, a part of the violation, and why
/// we keep the rule.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("openai-compat/", "\"image_url\" is none of text", "some servers take images in results; most do not"),
    ("openai-responses/xai-", "`strict` is missing", "xAI does not ask for it; OpenAI does"),
    ("openai-responses/xai-", "`id` is missing", "xAI does not ask for it; OpenAI documents it"),
    ("openai-responses/azure-", "`id` is missing", "taken where the encrypted content is there; documented as required"),
    ("openai-responses/deepseek-", "does not begin with `rs_`", "its own ids; OpenAI looks at the prefix"),
    ("openai-responses/copilot-", "does not begin with `rs_`", "a gateway that encrypts ids"),
    ("anthropic-messages/vertex-", "`model` is missing", "it stands in the path there"),
    ("anthropic-messages/vertex-", "`anthropic_version`", "it stands in the body there"),
    ("anthropic-test-tools-1", "non-whitespace", "its model took it before calls; others refuse it"),
    ("gemini/", "should be non-empty", "older models refuse an object without properties"),
    ("gemini/google-", "an object is expected", "null is taken for absent"),
    ("gemini/google-", "the signature is not base64", "the signatures were overwritten in the recording"),
    ("gemini/google-", "`parameters_json_schema`", "names in snake case are taken too"),
    ("gemini/google-", "`include_thoughts`", "names in snake case are taken too"),
    ("gemini/google-", "`thinking_level`", "names in snake case are taken too"),
    ("gemini/vertex-", "nline", "names in snake case are taken too"),
];

#[test]
fn every_request_that_a_provider_took_is_accepted() {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/recordings");
    let folder = std::env::var_os("TURNWRIGHT_RECORDINGS").map_or_else(default, PathBuf::from);
    let mut refused = Vec::new();
    let mut accepted = 0;
    let mut used: HashSet<usize> = HashSet::new();
    for api in ["openai-chat", "openai-compat", "openai-responses", "anthropic-messages", "gemini", "ollama"] {
        let Ok(entries) = std::fs::read_dir(folder.join(api)) else {
            println!("skipped: no recordings at {} (TURNWRIGHT_RECORDINGS names them)", folder.join(api).display());
            continue;
        };
        for entry in entries {
            let case = entry.unwrap().path();
            let read = |file: &str| -> Value {
                std::fs::read(case.join(file)).map_or(Value::Null, |bytes| serde_json::from_slice(&bytes).unwrap())
            };
            let (meta, body) = (read("meta.json"), read("request.json"));
            if meta["status"] != 200 || body.is_null() {
                continue;
            }
            let model = meta["model"].as_str().unwrap_or_default();
            let found = match (api, meta["provider"].as_str().unwrap_or_default()) {
                ("openai-chat", _) => chat::validate(&body, Server::OpenAi),
                ("openai-compat", "mistral") => chat::validate(&body, Server::Mistral),
                ("openai-compat", _) => chat::validate(&body, Server::Compatible),
                ("openai-responses", _) => responses::validate(&body),
                ("anthropic-messages", _) => anthropic::validate(&body),
                ("gemini", _) => gemini::validate(&body, model),
                _ => ollama::validate(&body),
            };
            let name = format!("{api}/{}", case.file_name().unwrap().to_string_lossy());
            let is_excepted = |violation: &String| {
                let fits = |(part, why, _): &(&str, &str, &str)| name.contains(part) && violation.contains(why);
                let place = EXCEPTIONS.iter().position(fits);
                used.extend(place);
                place.is_some()
            };
            let (_, unknown): (Vec<_>, Vec<_>) = found.into_iter().partition(is_excepted);
            if unknown.is_empty() {
                accepted += 1;
            } else {
                refused.push(format!("{name}: {}", unknown.join("; ")));
            }
        }
    }
    println!("{accepted} recorded requests are accepted");
    assert!(accepted == 0 || used.len() == EXCEPTIONS.len(), "an exception is not needed: {used:?}");
    assert!(refused.is_empty(), "{} of {}:\n{}", refused.len(), refused.len() + accepted, refused.join("\n"));
}
