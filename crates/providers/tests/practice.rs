//! The practice model, through the provider port.

#![cfg(test)]

use std::sync::Arc;

use futures_util::StreamExt;
use serde_json::{Value, json};
use turnwright_core::prompt::{Prompt, PromptMessage, PromptResult, ShownResult};
use turnwright_core::{
    AssistantBlock, AssistantMessage, CallId, Completion, ContentBlock, Declared, Finish, FinishReason, ModelFacts, ModelRef,
    Origin, Outcome, ProviderFailureKind, Seq, StreamDelta, ToolCall, ToolDefinition, ToolErrorKind, ToolResult, TurnSettings,
    Usage, UserMessage,
};
use turnwright_engine::provider::{ModelInfo, Provider};
use turnwright_providers::Practice;

fn seq(number: u64) -> Seq {
    Seq::new(number).unwrap()
}

const INTRO: &str = "Practice model (no language model, only word matching): ";

fn tool(source: &str, name: &str, description: &str, input_schema: Value) -> Arc<ToolDefinition> {
    Arc::new(ToolDefinition {
        name: format!("{source}__{name}"),
        source: source.to_owned(),
        tool: name.to_owned(),
        title: None,
        description: description.to_owned(),
        input_schema,
        annotations: None,
        declared: Declared::default(),
    })
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

fn tools() -> Vec<Arc<ToolDefinition>> {
    built_ins().into_iter().chain(others()).collect()
}

fn built_ins() -> Vec<Arc<ToolDefinition>> {
    let text = || json!({"type": "string"});
    let whole = || json!({"type": ["integer", "null"]});
    let flag = || json!({"type": ["boolean", "null"]});
    let maybe = || json!({"type": ["string", "null"]});
    vec![
        tool(
            "filesystem",
            "read",
            "Reads a text file (UTF-8) and gives what it says. A file over the limit is read in parts, with offset and limit in bytes.",
            object(&json!({"path": text(), "offset": whole(), "limit": whole()}), &["path"]),
        ),
        tool(
            "filesystem",
            "write",
            "Writes text to a file: creates it with the parents that are missing, or replaces all that it held.",
            object(&json!({"path": text(), "content": text()}), &["path", "content"]),
        ),
        tool(
            "filesystem",
            "edit",
            "Edits a text file: replaces old_text, which must occur exactly once, by new_text; with all, every occurrence.",
            object(
                &json!({"path": text(), "old_text": text(), "new_text": text(), "all": flag()}),
                &["path", "old_text", "new_text"],
            ),
        ),
        tool(
            "filesystem",
            "list",
            "Lists which files and folders are in a folder (directory), with their sizes.",
            object(&json!({"path": maybe()}), &[]),
        ),
        tool(
            "filesystem",
            "search",
            "Searches files below a path and finds the lines that contain a pattern (plain text, or a regular expression with \
             regex), or with target `names` everything whose name matches a glob. Links are not followed; `.git` is left out.",
            object(
                &json!({
                    "pattern": text(), "path": maybe(), "target": {"enum": ["contents", "names", null]}, "glob": maybe(),
                    "regex": flag(), "ignore_case": flag(),
                }),
                &["pattern"],
            ),
        ),
        tool(
            "filesystem",
            "stat",
            "Tells whether a path exists and what it is: its kind, how large it is, its permissions and when it was modified.",
            object(&json!({"path": text()}), &["path"]),
        ),
        tool(
            "command",
            "run",
            "Runs a command and gives its exit code and what it prints. command is a line for the shell; with args it is a \
             program, started without a shell. All that it started ends with it.",
            object(
                &json!({
                    "command": text(), "args": {"type": ["array", "null"], "items": text()}, "cwd": maybe(), "stdin": maybe(),
                    "timeout_ms": whole(),
                }),
                &["command"],
            ),
        ),
    ]
}

/// As the reference servers `time`, `fetch` and `everything` and an embedder have them.
fn others() -> Vec<Arc<ToolDefinition>> {
    let text = || json!({"type": "string"});
    vec![
        tool(
            "time",
            "get_current_time",
            "Get current time in a specific timezone",
            object(&json!({"timezone": text()}), &["timezone"]),
        ),
        tool(
            "time",
            "convert_time",
            "Convert time between timezones",
            object(
                &json!({"source_timezone": text(), "time": text(), "target_timezone": text()}),
                &["source_timezone", "time", "target_timezone"],
            ),
        ),
        tool(
            "fetch",
            "fetch",
            "Fetches a URL from the internet and optionally extracts its contents as markdown.",
            object(
                &json!({"url": {"type": "string", "format": "uri"}, "max_length": {"type": "integer"}, "raw": {"type": "boolean"}}),
                &["url"],
            ),
        ),
        tool("everything", "echo", "Echoes back the input", object(&json!({"message": text()}), &["message"])),
        tool(
            "everything",
            "get-sum",
            "Returns the sum of two numbers",
            object(&json!({"a": {"type": "number"}, "b": {"type": "number"}}), &["a", "b"]),
        ),
        tool(
            "weather",
            "forecast",
            "The weather of the coming days in a city",
            object(&json!({"city": text(), "units": {"type": "string", "enum": ["celsius", "fahrenheit"]}}), &["city"]),
        ),
        tool("bench", "sleep", "Waits", object(&json!({"ms": {"type": "integer"}}), &["ms"])),
        tool(
            "bench",
            "mean",
            "The mean of values",
            object(&json!({"values": {"type": "array", "items": {"type": "number"}}}), &["values"]),
        ),
    ]
}

fn user(text: &str) -> UserMessage {
    UserMessage { content: vec![ContentBlock::text(text)], settings: settings() }
}

fn settings() -> TurnSettings {
    TurnSettings::new(ModelRef::new("practice", "practice"))
}

/// A message with these calls, or with a text where there are none.
fn assistant(calls: &[(&str, Value)]) -> AssistantMessage {
    let call = |(name, arguments): &(&str, Value)| {
        AssistantBlock::Call(ToolCall {
            name: (*name).to_owned(),
            arguments: arguments.to_string(),
            provider_id: None,
            native: None,
            recovered: false,
        })
    };
    let mut blocks: Vec<AssistantBlock> = calls.iter().map(call).collect();
    if blocks.is_empty() {
        blocks.push(AssistantBlock::Text { text: "An answer.".to_owned(), native: None });
    }
    AssistantMessage {
        origin: Origin { dialect: "practice".into(), provider: "practice".into(), model: "practice".into() },
        saw: seq(1),
        blocks,
        finish: Finish { reason: FinishReason::ToolCalls, raw: None },
        completion: Completion::Complete,
        usage: Usage::default(),
    }
}

fn results<'a>(message: &'a AssistantMessage, outcomes: &[(Outcome, &str)]) -> PromptMessage<'a> {
    let result = |(call, (outcome, text)): (&'a ToolCall, &(Outcome, &str))| PromptResult {
        id: CallId { message: seq(2), index: 0 },
        call,
        result: ShownResult::from(ToolResult::of(CallId { message: seq(2), index: 0 }, *outcome, *text)),
        edit: None,
        nudge: None,
    };
    PromptMessage::Results(message.calls().zip(outcomes).map(result).collect())
}

async fn deltas_of(prompt: &Prompt<'_>) -> Vec<Vec<StreamDelta>> {
    let stream = Practice.call("practice", prompt).unwrap();
    stream.map(Result::unwrap).collect().await
}

/// What an answer comes to.
#[derive(Debug, PartialEq)]
struct Answer {
    text: String,
    calls: Vec<(String, Value)>,
    finish: FinishReason,
}

async fn answer_with(tools: &[Arc<ToolDefinition>], messages: Vec<PromptMessage<'_>>, allow_calls: bool) -> Answer {
    let settings = settings();
    let prompt = Prompt { conversation: None, settings: &settings, messages, tools, allow_calls, has_open_demand: false };
    let mut answer = Answer { text: String::new(), calls: Vec::new(), finish: FinishReason::Error };
    for delta in deltas_of(&prompt).await.into_iter().flatten() {
        match delta {
            StreamDelta::Text(text) => answer.text.push_str(&text),
            StreamDelta::CallStarted { name, .. } => answer.calls.push((name, Value::Null)),
            StreamDelta::CallArguments { key, text } => {
                answer.calls[key as usize].1 = serde_json::from_str(&text).unwrap();
            }
            StreamDelta::Finished(finish) => answer.finish = finish.reason,
            delta => panic!("not expected: {delta:?}"),
        }
    }
    answer
}

async fn ask(question: &str) -> Answer {
    answer_with(&tools(), vec![PromptMessage::User { seq: Seq::FIRST, message: &user(question) }], true).await
}

#[tokio::test]
async fn a_question_gets_the_call_that_its_words_mean() {
    let cases: &[(&str, &[(&str, Value)])] = &[
        ("Which files are in the folder docs?", &[("filesystem__list", json!({"path": "docs"}))]),
        ("List the files in the docs folder", &[("filesystem__list", json!({"path": "docs"}))]),
        ("List \"docs\"", &[("filesystem__list", json!({"path": "docs"}))]),
        ("What files are there?", &[("filesystem__list", json!({}))]),
        ("Show me the files in src/", &[("filesystem__list", json!({"path": "src/"}))]),
        ("How large is README.md?", &[("filesystem__stat", json!({"path": "README.md"}))]),
        ("读取 \"README.md\"", &[("filesystem__read", json!({"path": "README.md"}))]),
        ("What files are in this folder?", &[("filesystem__list", json!({}))]),
        ("What does \"README.md\" say?", &[("filesystem__read", json!({"path": "README.md"}))]),
        ("Read README.md", &[("filesystem__read", json!({"path": "README.md"}))]),
        ("What is in README.md?", &[("filesystem__read", json!({"path": "README.md"}))]),
        ("README.md, please", &[("filesystem__read", json!({"path": "README.md"}))]),
        ("Open \"notes.txt\"", &[("filesystem__read", json!({"path": "notes.txt"}))]),
        ("What is in src/?", &[("filesystem__list", json!({"path": "src/"}))]),
        ("read src/main.rs with limit 500", &[("filesystem__read", json!({"path": "src/main.rs", "limit": 500}))]),
        ("Write \"hello\" to \"a.txt\"", &[("filesystem__write", json!({"path": "a.txt", "content": "hello"}))]),
        ("Write the file a.txt with content \"b.txt\"", &[("filesystem__write", json!({"path": "a.txt", "content": "b.txt"}))]),
        ("Search for \"TODO\" in src/main.rs", &[("filesystem__search", json!({"pattern": "TODO", "path": "src/main.rs"}))]),
        ("Find the pattern \"TODO\" in \"src\"", &[("filesystem__search", json!({"pattern": "TODO", "path": "src"}))]),
        ("What time is it in \"Europe/Paris\"?", &[("time__get_current_time", json!({"timezone": "Europe/Paris"}))]),
        ("What's the current time in Europe/Paris", &[("time__get_current_time", json!({"timezone": "Europe/Paris"}))]),
        (
            "Convert 12:30 from \"Europe/Paris\" to \"Asia/Tokyo\"",
            &[(
                "time__convert_time",
                json!({"source_timezone": "Europe/Paris", "time": "12:30", "target_timezone": "Asia/Tokyo"}),
            )],
        ),
        ("Run the command \"ls -la\"", &[("command__run", json!({"command": "ls -la"}))]),
        ("Run \"ls -la\" in the folder docs", &[("command__run", json!({"command": "ls -la", "cwd": "docs"}))]),
        ("Fetch https://example.com/ please", &[("fetch__fetch", json!({"url": "https://example.com/"}))]),
        ("Echo \"hello world\"", &[("everything__echo", json!({"message": "hello world"}))]),
        ("Please add 3 and 4.5", &[("everything__get-sum", json!({"a": 3, "b": 4.5}))]),
        ("What will the weather be in Paris?", &[("weather__forecast", json!({"city": "Paris"}))]),
        ("Weather in \"New York\" in Fahrenheit", &[("weather__forecast", json!({"city": "New York", "units": "fahrenheit"}))]),
        ("sleep for 200ms", &[("bench__sleep", json!({"ms": 200}))]),
        ("the mean of 1, 2 and 3.5", &[("bench__mean", json!({"values": [1, 2, 3.5]}))]),
    ];
    for (question, calls) in cases {
        let calls = calls.iter().map(|(name, arguments)| ((*name).to_owned(), arguments.clone())).collect();
        let expected = Answer { text: String::new(), calls, finish: FinishReason::ToolCalls };
        assert_eq!(ask(question).await, expected, "{question}");
    }
}

#[tokio::test]
async fn of_tools_that_fit_alike_the_one_that_changes_nothing_is_called() {
    let path = object(&json!({"path": {"type": "string"}}), &["path"]);
    let remove = tool("files", "delete", "What is done with files in a folder", path.clone());
    let mut list = tool("files", "list", "What is done with files in a folder", path);
    Arc::make_mut(&mut list).declared.read_only = true;
    let question = user("Which files are in the folder docs?");
    let answer = answer_with(&[remove, list], vec![PromptMessage::User { seq: Seq::FIRST, message: &question }], true).await;
    assert_eq!(answer.calls, [("files__list".to_owned(), json!({"path": "docs"}))]);
}

#[tokio::test]
async fn several_things_are_asked_for_at_once() {
    let cases: &[(&str, &[(&str, Value)])] = &[
        (
            "What time is it in \"Europe/Paris\" and in \"Asia/Tokyo\"?",
            &[
                ("time__get_current_time", json!({"timezone": "Europe/Paris"})),
                ("time__get_current_time", json!({"timezone": "Asia/Tokyo"})),
            ],
        ),
        (
            "Read \"a.txt\", \"b.txt\" and \"c.txt\"",
            &[
                ("filesystem__read", json!({"path": "a.txt"})),
                ("filesystem__read", json!({"path": "b.txt"})),
                ("filesystem__read", json!({"path": "c.txt"})),
            ],
        ),
        (
            "What is the weather in Paris, Berlin and New York?",
            &[
                ("weather__forecast", json!({"city": "Paris"})),
                ("weather__forecast", json!({"city": "Berlin"})),
                ("weather__forecast", json!({"city": "New York"})),
            ],
        ),
        (
            "Echo \"one\" and \"two\"",
            &[("everything__echo", json!({"message": "one"})), ("everything__echo", json!({"message": "two"}))],
        ),
        (
            "Use everything__echo with \"hi\" and get_current_time for Europe/Paris",
            &[("everything__echo", json!({"message": "hi"})), ("time__get_current_time", json!({"timezone": "Europe/Paris"}))],
        ),
    ];
    for (question, calls) in cases {
        let calls = calls.iter().map(|(name, arguments)| ((*name).to_owned(), arguments.clone())).collect();
        let expected = Answer { text: String::new(), calls, finish: FinishReason::ToolCalls };
        assert_eq!(ask(question).await, expected, "{question}");
    }
}

fn says(text: &str) -> Answer {
    Answer { text: format!("{INTRO}{text}"), calls: Vec::new(), finish: FinishReason::Stop }
}

#[tokio::test]
async fn a_tool_whose_arguments_are_not_said_is_named_and_not_called() {
    let cases = [
        ("Write to the file a.txt", "`filesystem__write` fits best, but the question does not say its `content`."),
        ("Run a command", "`command__run` fits best, but the question does not say its `command`."),
        (
            "Use convert_time",
            "`time__convert_time` fits best, but the question does not say its `source_timezone`, `time`, `target_timezone`.",
        ),
    ];
    for (question, expected) in cases {
        assert_eq!(ask(question).await, says(&format!("{expected} Putting it in quotation marks helps.")), "{question}");
    }
}

#[tokio::test]
async fn a_question_in_which_nothing_fits_gets_the_list_of_tools_in_any_language() {
    let offered = &tools()[10..12];
    let expected = says(
        "no offered tool fits the words of the question. Offered are `everything__echo`, `everything__get-sum`. A configured \
         model provider gives real answers.",
    );
    for question in
        ["Hello!", "", "Wie geht es dir?", "你好吗？", "Как дела?", "🙂", "שלום", "Why \"so\" serious?", "What is 3?"]
    {
        let answer = answer_with(offered, vec![PromptMessage::User { seq: Seq::FIRST, message: &user(question) }], true).await;
        assert_eq!(answer, expected, "{question}");
    }
    let none = answer_with(&[], vec![PromptMessage::User { seq: Seq::FIRST, message: &user("List files") }], true).await;
    assert_eq!(
        none,
        says("no tool is offered, so there is nothing that it could do. A configured model provider gives real answers.")
    );
}

#[tokio::test]
async fn a_tool_is_found_in_the_language_of_its_description() {
    let tools =
        [tool("wetter", "abfrage", "Das Wetter einer Stadt", object(&json!({"stadt": {"type": "string"}}), &["stadt"]))];
    let answer = answer_with(
        &tools,
        vec![PromptMessage::User { seq: Seq::FIRST, message: &user("Wie ist das Wetter in „Köln“?") }],
        true,
    )
    .await;
    assert_eq!(answer.calls, [("wetter__abfrage".to_owned(), json!({"stadt": "Köln"}))]);
}

#[tokio::test]
async fn results_are_told_as_they_are() {
    let cases = [
        (Outcome::Success, "a.md\nb.md", "`filesystem__list` answered:\na.md\nb.md"),
        (Outcome::Success, "one line\n", "`filesystem__list` answered: one line"),
        // What reads as Markdown is code, and stays what it is.
        (Outcome::Success, "include = [\"**/*.md\"]", "`filesystem__list` answered: `include = [\"**/*.md\"]`"),
        (Outcome::Success, "a `b`", "`filesystem__list` answered: `` a `b` ``"),
        (Outcome::Success, "# a\n```\n- b", "`filesystem__list` answered:\n````\n# a\n```\n- b\n````"),
        (Outcome::Success, "1. a\n2. b", "`filesystem__list` answered:\n```\n1. a\n2. b\n```"),
        (Outcome::Denied, "denied by the user: no", "`filesystem__list` did not run: denied by the user: no"),
        (
            Outcome::Error(ToolErrorKind::NotFound),
            "there is no `docs`",
            "`filesystem__list` failed (not found): there is no `docs`",
        ),
    ];
    for (outcome, text, expected) in cases {
        let (question, message) = (user("List docs/"), assistant(&[("filesystem__list", json!({"path": "docs"}))]));
        let messages = vec![
            PromptMessage::User { seq: Seq::FIRST, message: &question },
            PromptMessage::Assistant { seq: seq(2), message: &message },
            results(&message, &[(outcome, text)]),
        ];
        assert_eq!(answer_with(&tools(), messages, true).await, says(expected));
    }
}

#[tokio::test]
async fn several_results_are_told_with_their_arguments() {
    let question = user("Read \"a\" and \"b\"");
    let message = assistant(&[("filesystem__read", json!({"path": "a"})), ("filesystem__read", json!({"path": "b"}))]);
    let messages = vec![
        PromptMessage::User { seq: Seq::FIRST, message: &question },
        PromptMessage::Assistant { seq: seq(2), message: &message },
        results(&message, &[(Outcome::Success, "A"), (Outcome::Error(ToolErrorKind::Timeout), "too slow")]),
    ];
    let expected = "`filesystem__read` with {\"path\":\"a\"} answered: A\n`filesystem__read` with {\"path\":\"b\"} failed (timeout): too slow";
    assert_eq!(answer_with(&tools(), messages, true).await, says(expected));
    let message = assistant(&[("filesystem__read", json!({"path": "*"})), ("filesystem__read", json!({"path": "b"}))]);
    let messages = vec![
        PromptMessage::User { seq: Seq::FIRST, message: &question },
        PromptMessage::Assistant { seq: seq(2), message: &message },
        results(&message, &[(Outcome::Success, "A"), (Outcome::Success, "x\n* y")]),
    ];
    let expected = "`filesystem__read` with `{\"path\":\"*\"}` answered: A\n`filesystem__read` with {\"path\":\"b\"} answered:\n\
                    ```\nx\n* y\n```";
    assert_eq!(answer_with(&tools(), messages, true).await, says(expected));
}

#[tokio::test]
async fn a_new_question_after_an_answer_is_a_new_question() {
    let (first, call, second) = (user("Echo \"one\""), assistant(&[("everything__echo", json!({}))]), user("Echo \"two\""));
    let text = assistant(&[]);
    let messages = vec![
        PromptMessage::User { seq: Seq::FIRST, message: &first },
        PromptMessage::Assistant { seq: seq(2), message: &call },
        results(&call, &[(Outcome::Success, "one")]),
        PromptMessage::Assistant { seq: seq(4), message: &text },
        PromptMessage::User { seq: Seq::FIRST, message: &second },
    ];
    let answer = answer_with(&tools(), messages, true).await;
    assert_eq!(answer.calls, [("everything__echo".to_owned(), json!({"message": "two"}))]);
}

#[tokio::test]
async fn a_message_that_comes_while_tools_run_is_answered_with_what_they_said() {
    let (first, call, second) = (user("Echo \"one\""), assistant(&[("everything__echo", json!({}))]), user("Thanks!"));
    let messages = vec![
        PromptMessage::User { seq: Seq::FIRST, message: &first },
        PromptMessage::Assistant { seq: seq(2), message: &call },
        results(&call, &[(Outcome::Success, "one")]),
        PromptMessage::User { seq: Seq::FIRST, message: &second },
    ];
    let expected = "`everything__echo` answered: one\nno offered tool fits the words of the question. Offered are \
                    `everything__echo`. A configured model provider gives real answers.";
    assert_eq!(answer_with(&tools()[10..11], messages, true).await, says(expected));
}

#[tokio::test]
async fn where_no_call_is_allowed_none_is_made() {
    let question = user("Echo \"hello\"");
    let answer = answer_with(&tools(), vec![PromptMessage::User { seq: Seq::FIRST, message: &question }], false).await;
    assert_eq!(answer, says("`everything__echo` fits best, but no tool may be called any more in this turn."));
}

#[tokio::test]
async fn an_answer_comes_in_a_few_pieces_and_the_same_each_time() {
    let (question, message) = (user("List docs/"), assistant(&[("filesystem__list", json!({}))]));
    let text = "word ".repeat(10_000);
    let settings = settings();
    let tools = tools();
    let prompt = Prompt {
        conversation: None,
        settings: &settings,
        messages: vec![
            PromptMessage::User { seq: Seq::FIRST, message: &question },
            PromptMessage::Assistant { seq: seq(2), message: &message },
            results(&message, &[(Outcome::Success, &text)]),
        ],
        tools: &tools,
        allow_calls: true,
        has_open_demand: false,
    };
    let once = deltas_of(&prompt).await;
    assert_eq!(once.len(), 8);
    assert_eq!(once, deltas_of(&prompt).await);
    let [.., StreamDelta::Text(end), StreamDelta::Finished(finish)] = once.last().unwrap().as_slice() else {
        panic!("the last batch has the end of the text and of the message")
    };
    assert!(end.ends_with("word\n[… 46000 more characters]"), "{end}");
    assert_eq!(finish, &Finish { reason: FinishReason::Stop, raw: None });
}

#[tokio::test]
async fn it_calls_itself_what_it_is_and_has_one_model() {
    let description = "no language model: it only matches the words of a question with the offered tools";
    let model =
        ModelInfo { id: "practice".to_owned(), description: Some(description.to_owned()), facts: ModelFacts::default() };
    assert_eq!(Practice.models().await.unwrap(), [model]);
    assert_eq!(Practice.dialect(), "practice");
    let settings = settings();
    let prompt = Prompt {
        conversation: None,
        settings: &settings,
        messages: Vec::new(),
        tools: &[],
        allow_calls: true,
        has_open_demand: false,
    };
    let failure = Practice.call("gpt", &prompt).err().unwrap();
    assert_eq!(failure.kind, ProviderFailureKind::NotFound);
    assert_eq!(failure.message, "the practice provider has no model `gpt`, only `practice`");
}
