//! The exports of other products become whole journals.

use std::path::Path;

use serde_json::json;
use turnwright_core::{AssistantBlock, ContentBlock, Control, Entry, TurnStatus};
use turnwright_dialects::import::{ImportedConversation, read};

use super::{imported, journal, settings};

/// How every refusal ends.
const RIGHT: &str =
    "; what can be read are OpenAI's messages and the JSON exports of ChatGPT, Claude, Open WebUI and LibreChat";

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exports").join(name);
    std::fs::read_to_string(path).unwrap()
}

fn shown(blocks: &[ContentBlock]) -> String {
    let one = |block: &ContentBlock| match block {
        ContentBlock::Text { text } => text.clone(),
        ContentBlock::Image { mime_type, data } => format!("<{mime_type} {} bytes of base64>", data.len()),
        other => format!("<{}>", other.as_text()),
    };
    blocks.iter().map(one).collect::<Vec<_>>().join(" + ")
}

/// A journal, an entry on each line, with its time in seconds since the conversation began.
fn told(conversation: &ImportedConversation) -> Vec<String> {
    journal(conversation);
    let begun = conversation.created_at_ms.unwrap();
    let line = |(entry, at_ms): (&Entry, &Option<u64>)| {
        let seconds = at_ms.map_or_else(String::new, |at_ms| format!("{}s ", (at_ms - begun) / 1000));
        let text = match entry {
            Entry::User(message) => format!("user: {}", shown(&message.content)),
            Entry::Assistant(message) => {
                let blocks = message.blocks.iter().map(|block| match block {
                    AssistantBlock::Text { text, .. } => text.clone(),
                    AssistantBlock::Reasoning { text, .. } => format!("({text})"),
                    AssistantBlock::Refusal { text } => format!("refused: {text}"),
                    AssistantBlock::Call(call) => format!("{} {}", call.name, call.arguments),
                    AssistantBlock::Opaque { .. } => panic!("nothing of ours"),
                });
                format!("{}: {}", message.origin.model, blocks.collect::<Vec<_>>().join(" | "))
            }
            Entry::Result(result) => {
                format!("{} {:?}: {}", result.call, result.outcome, shown(&result.content))
            }
            Entry::Control(Control::Imported { source }) => format!("from {source}"),
            Entry::Control(Control::Ended { turn, status: TurnStatus::Completed }) => format!("end of {turn}"),
            Entry::Control(Control::Ended { turn, status }) => format!("end of {turn}, {}", status.as_contract()),
            other => panic!("{other:?} is not taken over"),
        };
        format!("{seconds}{text}")
    };
    conversation.entries.iter().zip(&conversation.times_ms).map(line).collect()
}

fn left_out(conversation: &ImportedConversation) -> Vec<String> {
    conversation.left_out.iter().map(|(what, count)| format!("{count} {what}")).collect()
}

#[test]
fn chatgpts_shown_branch_is_taken_with_its_tools() {
    let found = imported(&fixture("chatgpt.json"));
    let [conversation] = found.conversations.as_slice() else { panic!("{found:?}") };
    assert_eq!(conversation.id.as_deref(), Some("67a1f0c2-1111-8000-b000-000000000001"));
    assert_eq!(conversation.title.as_deref(), Some("Primes and a cat"));
    assert_eq!(conversation.created_at_ms, Some(1_736_622_000_500));
    let code = "print(sum(1 for n in range(2, 100) if all(n % d for d in range(2, n))))";
    let expected = [
        "0s user: <[resource image: file-service://file-AbC]> + How many primes are below 100?".to_owned(),
        "0s from chatgpt".to_owned(),
        format!("2s o3: (Counting\nI should compute it.) | python {{\"code\":\"{code}\"}}"),
        "4s call_3_0 Success: 25".to_owned(),
        "6s o3: There are 25 primes below 100.".to_owned(),
        "6s end of turn_1".to_owned(),
        "9s user: Draw a cat.".to_owned(),
        "9s from chatgpt".to_owned(),
        "9s gpt-4o: dalle.text2im {}".to_owned(),
        "11s call_9_0 Success: <[resource image: file-service://file-XyZ]>".to_owned(),
        "11s end of turn_7, cancelled".to_owned(),
    ];
    assert_eq!(told(conversation), expected);
    let expected = [
        "1 a message of another branch",
        "1 a result without its call (shown as a call without arguments)",
        "2 an image or file whose bytes are not in the export",
        "1 how long the model thought",
    ];
    assert_eq!(left_out(conversation), expected);
}

#[test]
fn claudes_calls_keep_their_results_in_call_order() {
    let found = imported(&fixture("claude.json"));
    let [conversation] = found.conversations.as_slice() else { panic!("{found:?}") };
    assert_eq!(conversation.title.as_deref(), Some("Weather in two cities"));
    let expected = [
        "0s user: Which is warmer? + <cities.txt:\nParis, Lisbon> + <[resource map.png: map.png]>",
        "0s from claude",
        "8s unknown: (Two lookups.) | Let me look. | weather {\"city\":\"Paris\"} | weather {\"city\":\"Lisbon\"}",
        "8s call_3_0 Error(ExecutionFailed): no answer",
        "8s call_3_1 Success: 21 C",
        "8s unknown: Lisbon is warmer.",
        "8s end of turn_1",
    ];
    assert_eq!(told(conversation), expected);
    assert_eq!(left_out(conversation), ["1 an image or file whose bytes are not in the export"]);
    assert_eq!(found.left_out.into_iter().collect::<Vec<_>>(), [("a conversation in which nothing is said".to_owned(), 1)]);
}

#[test]
fn open_webuis_calls_are_found_in_the_text_and_in_the_items() {
    let found = imported(&fixture("open-webui.json"));
    let [conversation] = found.conversations.as_slice() else { panic!("{found:?}") };
    assert_eq!(conversation.system_prompt.as_deref(), Some("Be brief."));
    let expected = [
        "0s user: What is this, and how warm is it in Paris? + <image/png 96 bytes of base64>",
        "0s from open-webui",
        "2s llama3.1:8b: get_weather {\"city\": \"Paris\"}",
        "2s call_3_0 Success: 18C, rain",
        "2s llama3.1:8b: It is 18 degrees.",
        "2s end of turn_1",
        "10s user: And in Lisbon?",
        "10s from open-webui",
        "12s llama3.1:8b: (Another lookup.) | get_weather {\"city\":\"Lisbon\"}",
        "12s call_9_0 Success: 21C, sun",
        "12s llama3.1:8b: 21 degrees.",
        "12s end of turn_7",
    ];
    assert_eq!(told(conversation), expected);
    assert_eq!((left_out(conversation), conversation.pinned), (vec!["1 a message of another branch".to_owned()], false));
}

#[test]
fn what_was_pinned_is_pinned_and_where_it_was_kept_besides_is_counted() {
    let kept = |name: &str, change: &dyn Fn(&mut serde_json::Value)| {
        let mut value: serde_json::Value = serde_json::from_str(&fixture(name)).unwrap();
        let before = imported(&value.to_string());
        change(if value.is_array() { &mut value[0] } else { &mut value });
        let after = imported(&value.to_string());
        let [before, after] = [before, after].map(|found| found.conversations.into_iter().next().unwrap());
        assert!(!before.pinned);
        let known = left_out(&before);
        (after.pinned, left_out(&after).into_iter().filter(|line| !known.contains(line)).collect::<Vec<_>>().join(", "))
    };
    let open_webui = |value: &mut serde_json::Value| {
        (value["pinned"], value["archived"], value["folder_id"]) = (true.into(), true.into(), "f".into());
        value["meta"] = json!({"tags": ["home", "work"]});
        value["chat"]["tags"] = json!(["home"]);
    };
    let all = "2 a tag, 1 that it was archived, 1 the folder that it was in";
    assert_eq!(kept("open-webui.json", &open_webui), (true, all.to_owned()));
    let starred = |value: &mut serde_json::Value| {
        (value["is_starred"], value["is_archived"], value["gizmo_id"]) = (true.into(), false.into(), "g-p-1".into());
    };
    assert_eq!(kept("chatgpt.json", &starred), (true, "1 the project or GPT that it was in".to_owned()));
    let timed = |value: &mut serde_json::Value| {
        (value["is_starred"], value["pinned_time"], value["is_archived"]) = (json!(null), json!(1.5), true.into());
    };
    assert_eq!(kept("chatgpt.json", &timed), (true, "1 that it was archived".to_owned()));
    let librechat = |value: &mut serde_json::Value| {
        (value["isArchived"], value["tags"]) = (true.into(), json!(["home"]));
    };
    assert_eq!(kept("librechat.json", &librechat), (false, "1 a tag, 1 that it was archived".to_owned()));
}

#[test]
fn librechats_calls_without_output_get_a_failed_result() {
    let text = fixture("librechat.json");
    let found = imported(&text);
    let [conversation] = found.conversations.as_slice() else { panic!("{found:?}") };
    assert_eq!(conversation.system_prompt.as_deref(), Some("Answer in one sentence."));
    let expected = [
        "0s user: What time is it in Tokyo? + <[resource notes.pdf: /uploads/notes.pdf]>",
        "0s from librechat",
        "3s gpt-4o: (I need the time.) | One moment. | get_time_mcp_time {\"zone\":\"Asia/Tokyo\"}",
        "3s call_3_0 Success: 04:00",
        "3s gpt-4o: log_mcp_time {\"text\":\"asked\"} | It is 04:00 in Tokyo.",
        "3s call_5_0 Error(Interrupted): The conversation was imported, and the result of this call was not in the file.",
        "3s end of turn_1, cancelled",
    ];
    assert_eq!(told(conversation), expected);
    let expected = [
        "1 a call without a result (it gets a failed one)",
        "1 a message of another branch",
        "1 an image or file whose bytes are not in the export",
    ];
    assert_eq!(left_out(conversation), expected);
    // The same as a tree, as `recursive` writes it.
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let messages = value["messages"].take();
    let mut root = messages[0].clone();
    root["children"] = serde_json::json!([messages[1], messages[2]]);
    for child in root["children"].as_array_mut().unwrap() {
        child.as_object_mut().unwrap().remove("parentMessageId");
    }
    value["messages"] = serde_json::json!([root]);
    value["recursive"] = true.into();
    assert_eq!(imported(&value.to_string()), found);
}

/// What is said, and what is told to be left out.
fn said(value: &serde_json::Value) -> (String, Vec<String>) {
    let found = imported(&value.to_string());
    let [conversation] = found.conversations.as_slice() else { panic!("{found:?}") };
    journal(conversation);
    let said = conversation.entries.iter().filter_map(|entry| match entry {
        Entry::User(message) => Some(shown(&message.content)),
        Entry::Assistant(message) => Some(message.text()),
        _ => None,
    });
    (said.collect::<Vec<_>>().join(", "), left_out(conversation))
}

/// A message of an export: its id, its parent, whether it is a person's, and its words.
type Exported<'a> = (&'a str, Option<&'a str>, bool, &'a str);

/// Exports of every form.
fn exports(messages: &[Exported<'_>]) -> [serde_json::Value; 4] {
    let second = |at: usize| format!("2025-01-01T00:00:{:02}Z", at + 1);
    let of_list = |one: &dyn Fn(usize, &Exported<'_>) -> serde_json::Value| {
        messages.iter().enumerate().map(|(at, message)| one(at, message)).collect::<Vec<_>>()
    };
    let claude = of_list(&|at, (id, parent, is_user, words)| {
        let sender = if *is_user { "human" } else { "assistant" };
        let parent = parent.unwrap_or("00000000-0000-4000-8000-000000000000");
        json!({"uuid": id, "parent_message_uuid": parent, "sender": sender, "created_at": second(at), "text": words})
    });
    let librechat = of_list(&|at, (id, parent, is_user, words)| {
        let parent = parent.unwrap_or("00000000-0000-0000-0000-000000000000");
        json!({"messageId": id, "parentMessageId": parent, "isCreatedByUser": is_user, "createdAt": second(at), "text": words})
    });
    let role = |is_user: bool| if is_user { "user" } else { "assistant" };
    let (mut mapping, mut history) = (serde_json::Map::new(), serde_json::Map::new());
    for (at, (id, parent, is_user, words)) in messages.iter().enumerate() {
        let (time, role) = (1_736_622_000 + at, role(*is_user));
        let content = json!({"content_type": "text", "parts": [words]});
        let message = json!({"author": {"role": role}, "create_time": time, "content": content});
        mapping.insert((*id).to_owned(), json!({"message": message, "parent": parent, "children": []}));
        history.insert((*id).to_owned(), json!({"role": role, "content": words, "parentId": parent, "timestamp": time}));
    }
    [
        json!({"chat_messages": claude}),
        json!({"messages": librechat}),
        json!({"mapping": mapping}),
        json!({"chat": {"history": {"messages": history}}}),
    ]
}

#[test]
fn of_branches_the_one_with_the_newest_message_is_taken_where_none_is_named() {
    let edited = exports(&[
        ("a", None, true, "Q old"),
        ("b", Some("a"), false, "A old"),
        ("c", None, true, "Q"),
        ("d", Some("c"), false, "A"),
        ("e", Some("d"), true, "more"),
    ]);
    for export in edited {
        let (said, left_out) = said(&export);
        assert_eq!((said.as_str(), left_out.as_slice()), ("Q, A, more", &["2 a message of another branch".to_owned()][..]));
    }
}

#[test]
fn what_was_said_before_a_message_that_is_missing_is_taken() {
    let cut = exports(&[
        ("a", None, true, "Q1"),
        ("b", Some("a"), false, "A1"),
        ("d", Some("gone"), true, "Q2 old"),
        ("e", Some("gone"), true, "Q2"),
        ("f", Some("e"), false, "A2"),
        ("h", Some("gone too"), true, "Q3"),
    ]);
    let told = ["1 a message of another branch".to_owned(), "2 a message of the branch that is not in the file".to_owned()];
    for export in cut {
        let (said, left_out) = said(&export);
        assert_eq!((said.as_str(), left_out.as_slice()), ("Q1, A1, Q2, A2, Q3", &told[..]), "{export}");
    }
    // Where it is known what the missing one followed, that is what goes before.
    let mut export = exports(&[
        ("a", None, true, "Q1"),
        ("b", Some("a"), false, "A1"),
        ("c", Some("a"), false, "A1 again"),
        ("e", Some("gone"), true, "Q2"),
    ]);
    export[2]["mapping"]["b"]["children"] = json!(["gone"]);
    assert_eq!(said(&export[2]).0, "Q1, A1, Q2");
}

#[test]
fn where_an_answer_has_something_from_is_told_in_words() {
    let cite = "\u{e200}cite\u{e202}turn0search0\u{e202}turn0search1\u{e201}";
    let plain = "\u{e200}cite\u{e202}turn0search2\u{e201}";
    let hidden = "\u{e200}hidden\u{e202}x\u{e201}";
    let words = format!(
        "It is new.{cite} Sure{plain}{hidden}. In \u{e200}entity\u{e202}[\"city\",\"Paris\"]\u{e201}\u{e200}cite\u{e202}lost\u{e201} too."
    );
    let references = json!([
        {"matched_text": cite, "alt": "([example.com](https://example.com))"},
        {"matched_text": plain, "alt": null, "items": [
            {"title": "A page", "url": "https://a.example/b?c"}, {"title": "Again", "url": "https://a.example/b?c"}, {"url": "https://e.org/x"}]},
        {"matched_text": hidden, "type": "hidden", "alt": ""},
    ]);
    let mut chatgpt = exports(&[("a", None, true, "What is new?"), ("b", Some("a"), false, &words)])[2].take();
    chatgpt["mapping"]["b"]["message"]["metadata"] = json!({"content_references": references});
    let (told, left_out) = said(&chatgpt);
    let expected = "What is new?, It is new. ([example.com](https://example.com)) \
                    Sure ([A page](https://a.example/b?c), [e.org](https://e.org/x)). In Paris too.";
    assert_eq!(
        (told.as_str(), left_out),
        (expected, vec!["1 a mark in an answer whose meaning is not in the file".to_owned()])
    );

    let claude = json!({"chat_messages": [
        {"sender": "human", "text": "Q"},
        {"sender": "assistant", "content": [
            {"type": "tool_use", "id": "t", "name": "web_search", "input": {}},
            {"type": "tool_result", "tool_use_id": "t", "content": [
                {"type": "knowledge", "title": "T", "url": "https://k.example", "text": "words"},
                {"type": "knowledge", "title": "T2", "url": "https://k2.example", "text": ""}]},
            {"type": "text", "text": "See", "citations": [{"details": {"type": "web_search_citation", "url": "https://example.com/src"}}]}]}]});
    let found = imported(&claude.to_string());
    assert!(format!("{:?}", found.conversations[0].entries).contains(r"T\nhttps://k.example\nwords"), "{found:?}");
    assert!(format!("{:?}", found.conversations[0].entries).contains(r"T2\nhttps://k2.example"), "{found:?}");
    assert!(said(&claude).0.ends_with("See ([example.com](https://example.com/src))"), "{found:?}");

    let mut webui = exports(&[("a", None, true, "Q"), ("b", Some("a"), false, "A")])[3].take();
    webui["chat"]["history"]["messages"]["b"]["sources"] =
        json!([{"source": {"name": "N", "url": "https://s.example"}, "document": ["text"]}, {"source": {"name": "a.txt"}}]);
    let told = said(&webui);
    assert_eq!(told.0, "Q, A\n\nSources: ([N](https://s.example)) (a.txt)");
    assert_eq!(told.1, ["1 a text that an answer had been shown (its source is named)"]);
}

#[test]
fn what_cannot_be_taken_of_an_answer_is_counted() {
    let mut chatgpt =
        exports(&[("a", None, true, "go"), ("b", Some("a"), false, ""), ("c", Some("b"), false, "done")])[2].take();
    chatgpt["mapping"]["b"]["message"]["content"] = json!({"content_type": "app_widget", "payload": {}});
    assert_eq!(said(&chatgpt), ("go, done".to_owned(), vec!["1 content of type `app_widget`".to_owned()]));
    chatgpt["mapping"]["b"]["message"] = json!({"author": {"role": "tool", "name": "python"},
        "content": {"content_type": "citable_code_output", "output_str": "42"}});
    let found = imported(&chatgpt.to_string());
    assert!(format!("{:?}", found.conversations[0].entries).contains("\"42\""), "{found:?}");

    let mut webui = exports(&[("a", None, true, "Q"), ("b", Some("a"), false, "")])[3].take();
    webui["chat"]["history"]["messages"]["b"]["error"] = json!(true);
    let told = said(&webui);
    assert_eq!((told.0.as_str(), &told.1[..]), ("Q, (error)", &["1 an error in an answer (shown as text)".to_owned()][..]));
}

#[test]
fn several_files_worth_of_conversations_may_be_in_one_and_what_is_none_is_counted() {
    let lines = "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}\n{\"messages\":[{\"role\":\"user\",\"content\":\"b\"}]}\n{\"x\":1}\n";
    let found = imported(lines);
    let count = |found: &turnwright_dialects::import::Imported| (found.conversations.len(), found.left_out.clone());
    assert_eq!(count(&found), (2, [("a thing that is no conversation".to_owned(), 1)].into()));
}

#[test]
fn half_a_surrogate_pair_becomes_a_replacement_character() {
    let cut = r#"{"messages":[{"role":"user","content":"a\ud83d"}]}"#;
    for text in [cut.to_owned(), format!("{cut}\n{cut}")] {
        let found = imported(&text);
        let Entry::User(message) = &found.conversations[0].entries[0] else { panic!("{found:?}") };
        assert_eq!(shown(&message.content), "a\u{fffd}", "{text}");
    }
}

#[test]
fn an_answer_that_comes_first_gets_a_message_before_it() {
    let found =
        imported(r#"[{"role":"assistant","content":"hello"},{"role":"user","content":"a"},{"role":"user","content":"b"}]"#);
    let entries = &found.conversations[0].entries;
    let kinds: Vec<_> = entries.iter().map(Entry::kind).collect();
    assert_eq!(kinds, ["user", "imported", "assistant", "ended", "user", "imported", "user", "ended"]);
    journal(&found.conversations[0]);
    assert_eq!(left_out(&found.conversations[0]), ["1 an answer before the first message (a message is put before it)"]);
}

#[test]
fn a_file_that_holds_no_conversation_is_refused_with_what_would_be_right() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for (bytes, expected) in [
        (b"PK\x03\x04...".as_slice(), "the file is a zip archive: unpack it and import its conversations.json"),
        (b"", "the file is empty"),
        (b"\xff\xfe{", "the file is not UTF-8 text: byte 1 does not fit"),
        (b"{\"mapping\":", "the file is not JSON: EOF while parsing a value at line 1 column 11"),
        (b"{}\n\n{\"a\":}\n{}", "the file is not JSON: expected value at line 3 column 6"),
        (b"{}\n{\"a", "the file is not JSON: EOF while parsing a string at line 2 column 3"),
        (b"{\n\"a\":}\n", "the file is not JSON: expected value at line 2 column 5"),
        (b"3", "the file is JSON, and no conversation"),
        (b"[]", "there is no conversation in the file"),
        (b"[1, {}]", "there is no conversation in the file"),
        (b"{\"mapping\":{}}", "nothing is said in the file"),
        (deep.as_bytes(), "the file is nested too deeply to be read (LibreChat: export it without `Recursive`)"),
    ] {
        let error = read(bytes, &settings()).unwrap_err().to_string();
        assert_eq!(error, format!("{expected}{RIGHT}"), "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn results_without_ids_go_to_the_calls_of_their_name_in_their_order() {
    let found = imported(
        r#"[{"role":"user","content":"go"},
            {"role":"assistant","content":null,"tool_calls":[
                {"type":"function","function":{"name":"f","arguments":"{\"n\":1}"}},
                {"type":"function","function":{"name":"f","arguments":"{\"n\":2}"}}]},
            {"role":"tool","name":"f","content":"R1"},{"role":"tool","name":"f","content":"R2"}]"#,
    );
    let results = found.conversations[0].entries.iter().filter_map(|entry| match entry {
        Entry::Result(result) => Some(format!("{}: {}", result.call, shown(&result.content))),
        _ => None,
    });
    assert_eq!(results.collect::<Vec<_>>(), ["call_3_0: R1", "call_3_1: R2"]);
}

#[test]
fn messages_of_other_forms_are_refused_by_their_name_and_no_call_is_lost() {
    for (body, form) in [
        (r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}"#, "Anthropic's messages"),
        (r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]}"#, "Anthropic's messages"),
        (r#"{"role":"assistant","content":[{"type":"tool-call","toolCallId":"a"}]}"#, "the AI SDK's messages"),
        (r#"{"role":"tool","content":[{"type":"tool-result","toolCallId":"a"}]}"#, "the AI SDK's messages"),
        (r#"{"role":"user","parts":[{"type":"text","text":"hi"}]}"#, "the AI SDK's UI messages"),
        (r#"{"role":"model","parts":[{"text":"hi"}]}"#, "Gemini's messages"),
    ] {
        let first = r#"{"role":"user","content":"hi"}"#;
        for text in [format!("[{first},{body}]"), format!(r#"[{{"messages":[{first}]}},{{"messages":[{first},{body}]}}]"#)] {
            let error = read(text.as_bytes(), &settings()).unwrap_err().to_string();
            assert_eq!(error, format!("these are {form}; export with --format openai{RIGHT}"), "{text}");
        }
    }
}

#[test]
fn whatever_is_cut_out_of_an_export_the_rest_is_a_journal_or_a_refusal() {
    for name in ["chatgpt.json", "claude.json", "open-webui.json", "librechat.json"] {
        let value: serde_json::Value = serde_json::from_str(&fixture(name)).unwrap();
        for cut in 0.. {
            let mut left = cut;
            let mut damaged = value.clone();
            if !damage(&mut damaged, &mut left) {
                assert!(cut > 50, "{name}: {cut} places");
                break;
            }
            if let Ok(found) = read(damaged.to_string().as_bytes(), &settings()) {
                found.conversations.iter().for_each(|conversation| drop(journal(conversation)));
            }
        }
    }
}

/// Replaces the value at a place, counted through the tree; says whether there is such a place.
fn damage(value: &mut serde_json::Value, left: &mut usize) -> bool {
    if *left == 0 {
        *value = if value.is_string() { 7.into() } else { "damaged".into() };
        return true;
    }
    *left -= 1;
    match value {
        serde_json::Value::Array(items) => items.iter_mut().any(|item| damage(item, left)),
        serde_json::Value::Object(members) => members.values_mut().any(|member| damage(member, left)),
        _ => false,
    }
}
