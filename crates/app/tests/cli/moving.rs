//! Conversations that leave in the forms of others and come in from theirs.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, results_shown, text_chunk};

use crate::support::{Place, Ran};

const FORMS: [&str; 5] = ["openai", "anthropic", "gemini", "ai-sdk", "ai-sdk-ui"];

/// A picture of one dot.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89";

fn delta(delta: &Value) -> Piece {
    Piece::Chunk(json!({"choices": [{"index": 0, "delta": delta}]}))
}

/// Answers each prompt in its way: calls at once of which one fails, a call that a person changes, a refusal, an answer
/// that breaks off.
fn script(body: &Value) -> Vec<Piece> {
    let messages = body["messages"].as_array().unwrap();
    let prompt = messages.iter().rev().find(|message| message["role"] == "user").unwrap().to_string();
    let is_answered = results_shown(body) > 0;
    let end = |reason| [finish_chunk(reason), Piece::Done];
    let mut pieces = match () {
        () if prompt.contains("first") && !is_answered => vec![
            delta(&json!({"reasoning_content": "Two files."})),
            text_chunk("Reading both."),
            call_chunk(0, "filesystem__read", "{\"path\":\"a.txt\"}"),
            call_chunk(1, "filesystem__read", "{\"path\":\"missing.txt\"}"),
        ],
        () if prompt.contains("second") && !is_answered => {
            vec![call_chunk(0, "filesystem__write", "{\"path\":\"b.txt\",\"content\":\"model\"}")]
        }
        () if prompt.contains("third") => vec![delta(&json!({"refusal": "I will not."}))],
        () if prompt.contains("fourth") => return vec![text_chunk("It begins and"), Piece::Cut],
        () => vec![text_chunk("Done.")],
    };
    let has_calls = pieces.iter().any(|piece| matches!(piece, Piece::Chunk(chunk) if chunk.to_string().contains("tool_calls")));
    pieces.extend(end(if has_calls { "tool_calls" } else { "stop" }));
    pieces
}

/// A conversation with everything in it.
fn place_with_conversation() -> (Place, ModelServer) {
    let model = ModelServer::start([], script).unwrap();
    let place = Place::with(&format!(
        "[providers.p]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\nmodels = [\"m\"]\nmax_retries = 0\n",
        model.base_url()
    ));
    place.write("cat.png", PNG);
    let chat = |prompt: &str, more: &[&str]| {
        let words = [&["chat", prompt, "--model", "p/m", "--conversation", "c", "--system", "Be brief."], more].concat();
        place.run(&words).code
    };
    assert_eq!(chat("first", &["--attach", "cat.png"]), Some(0));
    assert_eq!(chat("second", &[]), Some(3));
    let waiting = place.json(&["approvals", "list", "--json"]);
    let changed = "{\"path\":\"b.txt\",\"content\":\"person\"}";
    let decided = place.run(&["approvals", "decide", waiting[0]["id"].as_str().unwrap(), "allow", "--arguments", changed]);
    assert_eq!(decided.code, Some(0), "{decided:?}");
    assert_eq!(chat("third", &[]), Some(1), "it is refused");
    assert_eq!(chat("fourth", &[]), Some(1));
    assert_eq!(chat("fifth", &[]), Some(0));
    (place, model)
}

fn export(place: &Place, conversation: &str, form: &str) -> Value {
    let ran = place.run(&["conversations", "export", conversation, "--format", form]);
    assert_eq!(ran.code, Some(0), "{form}: {ran:?}");
    let notes = if matches!(form, "anthropic" | "gemini") {
        "note: the system prompt is no message in this form, it goes beside them: \"Be brief.\"\n"
    } else {
        ""
    };
    assert_eq!(ran.stderr, notes, "{form}");
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn a_history_leaves_whole_and_comes_back_the_same() {
    let (place, _model) = place_with_conversation();
    let first = export(&place, "c", "openai");
    assert_eq!(place.json(&["conversations", "export", "c"]), first, "that is the form where none is named");
    let listed = place.json(&["conversations", "list", "--json"]);
    for key in ["model", "system_prompt", "tools"] {
        assert_eq!((listed[0].get(key).is_some(), &listed[0][key]), (true, &listed[0]["settings"][key]), "{key} {listed:#}");
    }
    assert_eq!(listed[0]["pinned"], json!(false));
    let roles: Vec<_> = first.as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
    let expected = [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
        "assistant",
    ];
    assert_eq!(roles, expected, "{first:#}");
    let contents: Vec<_> = first.as_array().unwrap().iter().map(|message| message["content"].to_string()).collect();
    assert!(contents[4].starts_with("\"ERROR (this call failed): "), "{}", contents[4]);
    assert!(contents[8].contains("[The user changed the arguments of this call to: "), "{}", contents[8]);
    assert_eq!((&first[11]["content"], &first[13]["content"]), (&json!("I will not."), &json!("It begins and")));

    place.write("export.json", first.to_string());
    let taken = place.json(&["conversations", "import", "export.json", "--json"]);
    assert_eq!((&taken[0]["status"], &taken[0]["left_out"]), (&json!("imported"), &json!({})));
    let copy = taken[0]["id"].as_str().unwrap();
    let texts =
        |export: &Value| export.to_string().replace("call_", "").split(|c: char| c.is_ascii_digit()).collect::<String>();
    assert_eq!(texts(&export(&place, copy, "openai")), texts(&first), "all but the names of calls is the same");
    // It goes on like any other conversation.
    let ran = place.run(&["chat", "sixth", "--model", "p/m", "--conversation", copy]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Done.\n"), "{ran:?}");
}

#[test]
fn each_vendors_own_library_takes_its_form() {
    let Some(libraries) = libraries() else { return };
    let (place, _model) = place_with_conversation();
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vendors");
    let check = |program: PathBuf, script: &str| {
        let mut command = Command::new(program);
        command.arg(scripts.join(script));
        command
    };
    // Of the AI SDK both releases that people have; the newer one with a Node.js of its own.
    let ai_sdk = |node: PathBuf, folder: &str| {
        let mut command = check(node, "check.mjs");
        command.arg(libraries.join(folder));
        command
    };
    for form in FORMS {
        let file = place.path(&format!("{form}.json"));
        std::fs::write(&file, export(&place, "c", form).to_string()).unwrap();
        let checks = if form.starts_with("ai-sdk") {
            let newer = libraries.join("npm-7/node_modules/.bin/node");
            vec![ai_sdk(PathBuf::from("node"), "npm"), ai_sdk(newer, "npm-7")]
        } else {
            vec![check(libraries.join("python/bin/python"), "check.py")]
        };
        for mut check in checks {
            let ran = Ran::of(check.arg(form).arg(&file).output().unwrap());
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "accepted\n"), "{form}, {check:?}: {}", ran.stderr);
        }
    }
}

/// The folder of installed libraries; `None`, after saying so, where there is none.
pub(crate) fn libraries() -> Option<PathBuf> {
    let folder = std::env::var_os("TURNWRIGHT_TEST_SERVERS").map(PathBuf::from).or_else(|| {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
        Some(cache.join("turnwright/test-servers"))
    });
    let found = folder.map(|folder| folder.join("libraries")).filter(|folder| folder.join("installed").is_file());
    if found.is_none() {
        assert!(
            std::env::var_os("TURNWRIGHT_REQUIRE_TEST_SERVERS").is_none_or(|value| value != "1"),
            "the vendors' libraries are not installed: run scripts/install-test-servers"
        );
        println!("skipped: run scripts/install-test-servers");
    }
    found
}

#[test]
fn the_exports_of_other_products_are_taken_over_with_titles_and_times() {
    let place = Place::new();
    let exports = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialects/tests/exports");
    for name in ["chatgpt", "claude", "open-webui", "librechat"] {
        let file = exports.join(format!("{name}.json"));
        let words = ["conversations", "import", file.to_str().unwrap()];
        let ran = place.run(&words);
        assert_eq!((ran.code, ran.stdout.lines().count()), (Some(0), 1), "{name}: {ran:?}");
        assert!(ran.stderr.lines().all(|line| line.starts_with("note: ") || line.starts_with("left out: ")), "{name}: {ran:?}");
        let again = place.run(&words);
        assert!(again.stderr.contains(" is here already and was left as it is\n"), "{name}: {again:?}");
    }
    let listed = place.json(&["conversations", "list", "--json"]);
    let row = |conversation: &Value| {
        let field = |name: &str| conversation[name].as_str().unwrap().to_owned();
        (field("title"), field("created_at"))
    };
    let mut rows: Vec<_> = listed.as_array().unwrap().iter().map(row).collect();
    rows.sort();
    let expected = [
        ("A file and a tool", "2025-01-11T19:00:00.000Z"),
        ("Primes and a cat", "2025-01-11T19:00:00.500Z"),
        ("Two kinds of calls", "2025-01-11T19:00:00.000Z"),
        ("Weather in two cities", "2025-01-11T19:00:00.125Z"),
    ];
    assert_eq!(rows, expected.map(|(title, created_at)| (title.to_owned(), created_at.to_owned())));
    let shown = place.run(&["conversations", "show", "c1a0de00-0000-4000-8000-000000000001"]);
    let calls: Vec<_> = shown.stdout.lines().filter(|line| line.contains("weather")).collect();
    let expected = [
        "assistant calls weather {\"city\":\"Paris\"}",
        "assistant calls weather {\"city\":\"Lisbon\"}",
        "weather failed: no answer",
        "weather: 21 C",
    ];
    assert_eq!(calls, expected);
}

#[test]
fn what_another_user_has_taken_over_is_taken_over_for_oneself_too() {
    let place = Place::new();
    let export = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialects/tests/exports/librechat.json");
    let export = export.to_str().unwrap();
    for name in ["ann", "bob"] {
        assert_eq!(place.run(&["users", "add", name]).code, Some(0));
    }
    let import = |user: &str| place.json(&["conversations", "import", export, "--json", "--user", user]);
    let (of_ann, of_bob) = (import("ann"), import("bob"));
    assert_eq!((&of_ann[0]["status"], &of_bob[0]["status"]), (&json!("imported"), &json!("imported")));
    assert_ne!(of_ann[0]["id"], of_bob[0]["id"]);
    let listed = place.json(&["conversations", "list", "--json", "--user", "bob"]);
    assert_eq!(listed[0]["id"], of_bob[0]["id"]);
    let again = import("bob");
    assert_eq!((&again[0]["status"], &again[0]["id"]), (&json!("exists"), &of_bob[0]["id"]));
}

#[test]
fn a_file_that_holds_no_conversation_is_refused() {
    let place = Place::new();
    let ran = place.run(&["conversations", "import", "a.txt"]);
    let stderr = "error: the file is not JSON: expected value at line 1 column 1; what can be read are OpenAI's messages and \
                  the JSON exports of ChatGPT, Claude, Open WebUI and LibreChat\n";
    assert_eq!(ran, Ran { code: Some(2), stdout: String::new(), stderr: stderr.to_owned() });
    let missing = place.run(&["conversations", "import", "none.json"]);
    assert_eq!((missing.code, missing.stderr.starts_with("error: cannot read none.json: ")), (Some(2), true), "{missing:?}");
}

#[test]
fn a_title_that_is_too_long_is_shortened_and_keeps_no_conversation_behind_it_from_coming() {
    let place = Place::new();
    let said = |title: &str| json!({"title": title, "messages": [{"role": "user", "content": "hello"}]}).to_string();
    place.write("export.jsonl", [said("First"), said(&"é".repeat(1_001)), said("Last")].join("\n"));
    let ran = place.run(&["conversations", "import", "export.jsonl", "--json"]);
    let taken: Value = serde_json::from_str(&ran.stdout).unwrap();
    let titles: Value = taken.as_array().unwrap().iter().map(|taken| taken["title"].clone()).collect();
    assert_eq!((ran.code, titles), (Some(0), json!(["First", "é".repeat(1_000), "Last"])), "{ran:?}");
    assert!(ran.stderr.ends_with(": 1 × the end of a title of more than 1000 characters\n"), "{ran:?}");
}
