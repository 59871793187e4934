//! One answer: where the message comes from, what goes where, how it ends.

use crate::support::{PRACTICE, Place, Ran};

#[test]
fn the_answer_goes_to_standard_output_and_tool_calls_beside_it() {
    let ran = Place::new().run(&["chat", "read the file \"a.txt\""]);
    let stderr: Vec<_> = ran.stderr.lines().map(|line| line.split(" (").next().unwrap()).collect();
    assert_eq!(stderr, ["→ filesystem__read {\"path\":\"a.txt\"}", "✓ filesystem__read"]);
    assert_eq!(ran.stdout, format!("{PRACTICE}`filesystem__read` answered: hello file\n"));
    assert_eq!(ran.code, Some(0));
}

#[test]
fn what_people_ask_first_picks_the_built_in_tool_that_they_mean() {
    let place = Place::new();
    let cases = [
        ("Which files are in the folder docs?", "→ filesystem__list {\"path\":\"docs\"}"),
        ("Show me the files in docs/", "→ filesystem__list {\"path\":\"docs/\"}"),
        ("How large is a.txt?", "→ filesystem__stat {\"path\":\"a.txt\"}"),
        ("What is in a.txt?", "→ filesystem__read {\"path\":\"a.txt\"}"),
        ("Show me docs/../a.txt, please", "→ filesystem__read {\"path\":\"docs/../a.txt\"}"),
        ("What is in docs/?", "→ filesystem__list {\"path\":\"docs/\"}"),
        ("Search for \"TODO\" in a.txt", "→ filesystem__search {\"pattern\":\"TODO\",\"path\":\"a.txt\"}"),
    ];
    for (question, call) in cases {
        let ran = place.run(&["chat", question]);
        assert_eq!(ran.stderr.lines().next(), Some(call), "{question}");
    }
}

#[test]
fn a_message_may_be_piped_in_alone_or_after_a_prompt() {
    let place = Place::new();
    let content = |words: &[&str], input: &str| {
        let ran = place.run_with(&[words, &["--output", "json"]].concat(), input);
        let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        report["messages"][0]["content"].as_str().unwrap().to_owned()
    };
    assert_eq!(content(&["chat"], "piped\nin\n"), "piped\nin");
    assert_eq!(content(&["chat", "prompt"], "piped\nin\n"), "prompt\n\npiped\nin");
    assert_eq!(content(&["chat", "prompt"], ""), "prompt");
}

#[test]
fn ten_megabytes_are_a_message() {
    let place = Place::new();
    let input = "wörd ".repeat(2_000_000);
    let ran = place.run_with(&["chat", "--output", "json"], &input);
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, report["messages"][0]["content"].as_str().unwrap().len()), (Some(0), input.len()));
}

#[test]
fn an_empty_message_is_refused_and_nothing_is_stored() {
    let place = Place::new();
    let ran = place.run_with(&["chat"], " \n");
    let stderr = "error: the message is empty\nhint: give a PROMPT, or pipe it in\n".to_owned();
    assert_eq!(ran, Ran { code: Some(2), stdout: String::new(), stderr });
    assert_eq!(place.json(&["conversations", "list", "--json"]), serde_json::json!([]));
}

#[test]
fn input_that_is_no_text_is_refused() {
    let ran = Place::new().run_with(&["chat", "what is this"], b"\x89PNG\xff");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.starts_with("error: standard input is not UTF-8 text"), "{ran:?}");
}

#[test]
fn a_conversation_goes_on_by_its_name_or_as_the_last_one() {
    let place = Place::new();
    let turn = |words: &[&str]| {
        let report = place.json(&[&["chat"], words, &["--output", "json"]].concat());
        (report["conversation_id"].as_str().unwrap().to_owned(), report["turn_id"].as_str().unwrap().to_owned())
    };
    assert_eq!(turn(&["one", "--conversation", "mine"]), ("mine".to_owned(), "turn_1".to_owned()));
    let second = turn(&["two", "--conversation", "mine"]);
    assert_eq!((second.0.as_str(), second.1 == "turn_1"), ("mine", false));
    assert_eq!(turn(&["three", "--continue"]).0, "mine");
    assert_ne!(turn(&["four"]).0, "mine");
}

#[test]
fn there_must_be_a_conversation_to_continue() {
    let ran = Place::new().run(&["chat", "more", "--continue"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(2), "error: there is no conversation to continue\n"));
}

#[test]
fn a_new_conversation_keeps_the_choices_of_its_first_turn() {
    let place = Place::new();
    let chosen = ["--system", "be brief", "--tools", "filesystem__*", "--max-steps", "3"];
    place.run(&[&["chat", "one", "--conversation", "c"], chosen.as_slice()].concat());
    let shown = place.json(&["conversations", "show", "c", "--json"]);
    let expected = serde_json::json!({"system_prompt": "be brief", "tools": ["filesystem__*"]});
    assert_eq!(shown["settings"], expected);
}

#[test]
fn only_the_chosen_tools_are_offered() {
    let ran = Place::new().run(&["chat", "read the file \"a.txt\"", "--tools", "command__*"]);
    assert!(!ran.stdout.contains("hello file"), "{ran:?}");
    for (tools, is_read) in [("!command__*", true), ("!filesystem__*", false)] {
        let ran = Place::new().run(&["chat", "read the file \"a.txt\"", "--tools", tools]);
        assert_eq!(ran.stdout.contains("hello file"), is_read, "{tools}: {ran:?}");
    }
}

#[test]
fn a_choice_of_tools_that_leaves_none_is_told() {
    let place = Place::new();
    let said = |words: &[&str]| place.run(&[&["chat", "hello"], words].concat()).stderr;
    assert_eq!(said(&["--tools", "zzz__*"]), "warning: no tool matches `zzz__*`\n");
    assert_eq!(said(&["--tools", "zzz__*", "--tools", "filesystem__*"]), "warning: no tool matches `zzz__*`\n");
    assert_eq!(said(&["--tools", "!zzz__*,!filesystem__*"]), "");
    assert_eq!(said(&["--tools", "*,!filesystem__*"]), "");
    assert_eq!(said(&["--tools", "filesystem__*"]), "");
}

#[test]
fn files_go_along_with_their_names() {
    let place = Place::new();
    place.write("b.png", b"\x89PNG\r\n\x1a\nrest");
    place.write("c.pdf", b"%PDF-1.4\nall of it ASCII");
    let words = ["chat", "look", "--attach", "a.txt", "--attach", "b.png", "--attach", "c.pdf", "--output", "json"];
    let report = place.json(&words);
    let shown = "look\nFile a.txt:\n\nhello file\n\n[image, image/png]\n[binary resource c.pdf]";
    assert_eq!(report["messages"][0]["content"], shown);
}

#[test]
fn a_file_that_cannot_go_along_is_refused_with_its_reason() {
    let place = Place::new();
    place.write("binary", b"a\0b");
    place.write("empty", "");
    let refused = |name: &str| {
        let ran = place.run(&["chat", "look", "--attach", name]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        ran.stderr.lines().next().unwrap().to_owned()
    };
    assert_eq!(refused("binary"), "error: `binary` cannot be attached: it is neither UTF-8 text nor an image nor a PDF file");
    assert_eq!(refused("empty"), "error: `empty` cannot be attached: it is empty");
    assert_eq!(refused("."), "error: `.` cannot be attached: it is not a file");
    assert!(refused("none").starts_with("error: `none` cannot be attached: No such file"));
    std::fs::File::create(place.path("large")).unwrap().set_len(21 * 1024 * 1024).unwrap();
    assert_eq!(refused("large"), "error: `large` cannot be attached: it has 22020096 bytes, the limit is 20971520");
}

#[test]
fn the_step_limit_is_a_failure_and_says_what_to_do() {
    let ran = Place::new().run(&["chat", "read the file \"a.txt\"", "--max-steps", "2"]);
    let said = ran.stderr.lines().skip(2).collect::<Vec<_>>();
    let expected = ["error: the step limit ended the turn", "hint: --max-steps N allows more, and another message goes on"];
    assert_eq!((ran.code, said), (Some(1), expected.to_vec()));
}

#[test]
fn a_failed_turn_says_why_and_what_to_do() {
    let ran = Place::new().run(&["chat", "hi", "--model", "practice/other"]);
    let stderr = "error: the practice provider has no model `other`, only `practice`\n\
                  hint: `turnwright models list` shows the models that there are\n"
        .to_owned();
    assert_eq!(ran, Ran { code: Some(1), stdout: String::new(), stderr });
}

#[test]
fn an_open_turn_is_not_taken_up_with_other_choices_and_says_so() {
    let place = Place::new();
    place.park("c");
    let before = place.json(&["conversations", "show", "c", "--json"]);
    let refusal = "error: turn_1 is open and goes on with practice/practice, approve ask, max steps 25";
    let others = [["--approve", "none"], ["--model", "practice/other"], ["--max-steps", "3"]];
    let ways: [&[&str]; 2] = [&["chat"], &["chat", "more"]];
    for other in others {
        for way in ways.into_iter().filter(|way| (*way, other[0]) != (&["chat", "more"], "--model")) {
            let ran = place.run(&[way, &["--conversation", "c"], &other].concat());
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
            assert!(ran.stderr.starts_with(refusal) && ran.stderr.contains("`turnwright conversations stop ID`"), "{ran:?}");
        }
    }
    assert_eq!(place.json(&["conversations", "show", "c", "--json"]), before, "nothing was stored");
    for same in [["--conversation", "c", "--approve", "ask"].as_slice(), &["--conversation", "c", "--retry"]] {
        assert_eq!(place.run(&[&["chat"], same].concat()).code, Some(3), "it is taken up");
    }
    let retried = place.run(&["chat", "--conversation", "c", "--retry", "--approve", "none"]);
    assert_eq!(retried.code, Some(0), "it is stopped and taken up with what was chosen: {retried:?}");
    place.park("d");
    let stopped = place.run(&["conversations", "stop", "d"]);
    assert_eq!((stopped.code, stopped.stderr.as_str()), (Some(0), "turn_1 of d is over\n"));
    let again = place.run(&["conversations", "stop", "d"]);
    assert_eq!((again.code, again.stderr.as_str()), (Some(1), "error: no turn is open\n"));
}

#[test]
fn an_unknown_provider_is_refused_before_anything_is_stored() {
    let place = Place::new();
    let ran = place.run(&["chat", "hi", "--model", "practise/x"]);
    let stderr = "error: there is no provider `practise`; did you mean `practice`?\n\
                  hint: `turnwright models list` shows the models that there are\n"
        .to_owned();
    assert_eq!(ran, Ran { code: Some(2), stdout: String::new(), stderr });
    assert_eq!(place.json(&["conversations", "list", "--json"]), serde_json::json!([]));
}

#[test]
fn without_a_provider_the_practice_model_answers_and_says_so() {
    let place = Place::new();
    place.write("turnwright.toml", "");
    let mut command = place.command(&["chat", "hi"]);
    // Nothing on the machine that runs the tests may answer instead.
    let ran = Ran::of(command.env("OLLAMA_HOST", "127.0.0.1:1").stdin(std::process::Stdio::null()).output().unwrap());
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.starts_with(PRACTICE), "{ran:?}");
    let notes = ran.stderr.lines().filter(|line| line.contains("the practice model answers")).count();
    assert_eq!(notes, 1, "{ran:?}");
}

#[test]
fn wrong_words_are_usage_errors() {
    let place = Place::new();
    for words in [
        &["chat", "--bad"] as &[&str],
        &["chat", "hi", "--max-steps", "0"],
        &["chat", "hi", "--approve", "perhaps"],
        &["chat", "hi", "--model", "nothing"],
        &["chat", "hi", "--conversation", "a b"],
        &["chat", "hi", "--conversation", "a", "--continue"],
        &["chat", "hi", "--tools", "a["],
        &["nothing"],
        &[],
    ] {
        let ran = place.run(words);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{words:?}: {ran:?}");
        assert!(!ran.stderr.is_empty(), "{words:?}");
    }
}
