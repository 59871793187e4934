//! What models are shown besides what was said: documents, instructions, memory; as an endpoint sees it.

use serde_json::{Value, json};
use turnwright_testkit::model_server::{ModelServer, Piece, finish_chunk, text_chunk};

use crate::interactive::Terminal;
use crate::serve::Server;
use crate::support::Place;

/// The vector of a text by what it is about: keys, weather, or neither.
fn vector(text: &str) -> Value {
    let about = |words: &[&str]| if words.iter().any(|word| text.to_lowercase().contains(word)) { 1.0 } else { -0.1 };
    json!([about(&["key", "secret", "credential", "passphrase"]), about(&["rain", "umbrella", "weather"]), 0.05, -0.05])
}

/// An endpoint that answers messages and embeds texts, unless it may not.
fn endpoint(embeds: bool) -> ModelServer {
    let answer = move |request: &Value| match request.get("input").and_then(Value::as_array) {
        Some(texts) if embeds => {
            let one = |(index, text): (usize, &Value)| json!({"index": index, "embedding": vector(text.as_str().unwrap())});
            let body = json!({"data": texts.iter().enumerate().map(one).collect::<Vec<_>>()}).to_string();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
            vec![Piece::Raw(format!("{head}content-length: {}\r\n\r\n{body}", body.len()))]
        }
        Some(_) => {
            vec![Piece::Raw("HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n".into())]
        }
        None => vec![text_chunk("Understood."), finish_chunk("stop"), Piece::Done],
    };
    ModelServer::start(None, answer).unwrap()
}

/// A place whose model is this endpoint's.
fn place(models: &ModelServer, config: &str) -> Place {
    let place = Place::new();
    let config = format!(
        "model = \"here/m\"\n[providers.here]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\nmodels = [\"m\"]\nmax_retries = 0\n\
         profile = {{ joins_messages = false }}\n{config}",
        models.base_url()
    );
    place.write("turnwright.toml", config);
    std::fs::create_dir(place.path("docs")).unwrap();
    place
}

const FOLDER: &str = "[knowledge.folders.handbook]\npath = \"docs\"\n";

/// The messages of the requests so far: who says what.
fn asked(models: &ModelServer) -> Vec<Vec<String>> {
    let line =
        |message: &Value| format!("{}: {}", message["role"].as_str().unwrap(), message["content"].as_str().unwrap_or_default());
    let messages = |request: &Value| request["messages"].as_array().map(|messages| messages.iter().map(line).collect());
    models.requests().iter().filter_map(messages).collect()
}

#[test]
fn what_documents_say_is_shown_with_its_place_and_follows_their_changes() {
    let models = endpoint(true);
    let place = place(&models, FOLDER);
    place.write("docs/keys.md", "# Keys\n\n## Rotation\n\nThe frobnicator key is rotated with `frob rotate` each March.\n");
    place.write("docs/food.md", "# Food\n\nSoup is served at noon.\n");
    place.write("docs/.env", "FROBNICATOR_KEY=hunter2\n");
    place.write("docs/image.bin", [0, 1, 2, 0, 255]);
    let ran = place.run(&["chat", "How is the frobnicator key rotated?", "--conversation", "c"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Understood.\n"), "{ran:?}");
    assert!(ran.stderr.contains("context: keys.md, lines 1-5"), "{ran:?}");
    let first = asked(&models).pop().unwrap();
    assert_eq!(first.len(), 2, "{first:?}");
    assert!(first[0].starts_with("user: <context>") && first[0].contains("frob rotate"), "{first:?}");
    assert!(first[0].contains("document=\"keys.md\" place=\"lines 1-5\"") && !first[0].contains("hunter2"), "{first:?}");
    assert_eq!(first[1], "user: How is the frobnicator key rotated?");

    // What was shown stays as it was; what is shown anew is what is there now, under whatever name.
    place.write("docs/keys.md", "# Keys\n\nThe frobnicator key is rotated by calling Zelda.\n");
    std::fs::rename(place.path("docs/food.md"), place.path("docs/meals.md")).unwrap();
    place.run(&["chat", "And who rotates the frobnicator key, and when is soup?", "--conversation", "c"]);
    let second = asked(&models).pop().unwrap();
    assert_eq!(second[..2], first[..]);
    assert!(second[3].contains("calling Zelda") && !second[3].contains("frob rotate"), "{second:?}");
    assert!(second[3].contains("document=\"meals.md\"") && !second[3].contains("food.md"), "{second:?}");

    std::fs::remove_file(place.path("docs/keys.md")).unwrap();
    place.run(&["chat", "Who rotates the frobnicator key?", "--conversation", "d"]);
    assert_eq!(asked(&models).pop().unwrap(), ["user: Who rotates the frobnicator key?"]);

    let list = place.json(&["knowledge", "list", "--json"]);
    assert_eq!((&list[0]["id"], &list[0]["files"], &list[0]["skipped"]), (&"handbook".into(), &1.into(), &1.into()), "{list}");
    let files = place.run(&["knowledge", "files", "handbook"]).stdout;
    assert!(files.contains("image.bin") && files.contains("passed over: it is no text") && !files.contains(".env"), "{files}");
}

#[test]
fn documents_can_be_asked_without_a_model() {
    let place = Place::with(FOLDER);
    std::fs::create_dir(place.path("docs")).unwrap();
    place.write("docs/keys.md", "# Keys\nThe frobnicator key is rotated each March.\n");
    let indexed = place.run(&["knowledge", "index"]);
    assert_eq!(indexed.stderr, "handbook: read 1, removed 0; it has 1 document, 1 piece\n");
    let found = place.run(&["knowledge", "search", "which", "frobnicator"]).stdout;
    assert!(found.starts_with("handbook: keys.md, lines 1-2  Keys\n    # Keys\n"), "{found}");
    let server = Server::start(&place);
    let answer = server.ask("GET /api/v1/knowledge/handbook/search?q=frobnicator", &Value::Null);
    assert_eq!(answer["data"][0]["document"], "keys.md", "{answer}");
    assert_eq!(answer["data"][0]["place"], json!({"lines": {"first": 1, "last": 2}}), "{answer}");
    assert_eq!(server.ask("GET /api/v1/knowledge", &Value::Null)["data"][0]["pieces"], 1);
    assert!(server.request("GET /api/v1/knowledge/nothing/search?q=x", "").starts_with("HTTP/1.1 404"));
    let none = Place::new().run(&["knowledge", "search", "x"]);
    assert_eq!(none.code, Some(2), "{none:?}");
    let wrong = Place::with("[knowledge.folders.a]\npath = \"docs\"\ninclud = [\"*.md\"]\n").run(&["config", "check"]);
    assert!(wrong.stderr.contains("includ") && wrong.stderr.contains("did you mean `include`?"), "{wrong:?}");
}

#[test]
fn instructions_are_shown_once_and_again_where_they_changed() {
    let models = endpoint(true);
    let place = place(&models, "");
    place.write("AGENTS.md", "Use tabs.\n");
    place.write("docs/AGENTS.md", "In docs, use spaces.\n");
    let say = |text: &str| {
        let ran = place.run(&["chat", text, "--conversation", "c"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        asked(&models).pop().unwrap()
    };
    let first = say("one");
    assert_eq!(first.len(), 2, "{first:?}");
    assert!(
        first[0].contains("Use tabs.") && first[0].contains("docs/AGENTS.md") && first[0].contains("use spaces"),
        "{first:?}"
    );
    let second = say("two");
    assert_eq!((second.len(), &second[..2]), (4, &first[..]), "{second:?}");
    place.write("AGENTS.md", "Use four spaces.\n");
    std::fs::remove_file(place.path("docs/AGENTS.md")).unwrap();
    let third = say("three");
    assert_eq!((third.len(), &third[..4]), (7, &second[..]), "{third:?}");
    assert!(third[5].contains("Use four spaces.") && third[5].contains("No longer there"), "{third:?}");
    assert!(!third[5].contains("In docs"), "{third:?}");
    let off = place.command(&["chat", "four", "--conversation", "d"]).env("TURNWRIGHT_INSTRUCTIONS_ENABLED", "false").output();
    assert_eq!((off.unwrap().status.code(), asked(&models).pop().unwrap()), (Some(0), vec!["user: four".to_owned()]));
}

#[test]
fn what_is_remembered_is_shown_and_belongs_to_its_user() {
    let models = endpoint(true);
    let place = place(&models, "");
    assert_eq!(place.run_with(&["memory", "edit"], "- likes tea\n").code, Some(0));
    // What was to write it may have failed.
    let ran = place.run_with(&["memory", "edit"], "\n");
    assert!(ran.code == Some(2) && ran.stderr.contains("turnwright memory clear"), "{ran:?}");
    assert_eq!(place.run(&["memory", "show"]).stdout, "- likes tea\n");
    place.run(&["chat", "hello there"]);
    let shown = asked(&models).pop().unwrap();
    assert!(shown[0].contains("<memory>\n- likes tea\n</memory>"), "{shown:?}");

    place.run(&["users", "add", "anna"]);
    assert_eq!(place.run(&["memory", "show", "--user", "anna"]).stdout, "");
    place.run(&["chat", "hello there", "--user", "anna"]);
    assert_eq!(asked(&models).pop().unwrap(), ["user: hello there"]);

    let server = Server::start(&place);
    let head = server.request("GET /api/v1/memory", "");
    let tag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned();
    let put = |tag: &str, text: &str| {
        server
            .request(&format!("PUT /api/v1/memory HTTP/1.1\r\nIf-Match: {tag}\r\nX-Rest:"), &json!({"text": text}).to_string())
    };
    assert!(put("\"0-0\"", "x").starts_with("HTTP/1.1 412"));
    assert!(put(&tag, "- likes coffee").starts_with("HTTP/1.1 200"));
    assert!(put(&tag, "- likes milk").starts_with("HTTP/1.1 412"));
    let long = server.request("PUT /api/v1/memory", &json!({"text": "x".repeat(8_193)}).to_string());
    assert!(long.starts_with("HTTP/1.1 422") && long.contains("8193 bytes, limit 8192"), "{long}");
    assert_eq!(place.run(&["memory", "show"]).stdout, "- likes coffee\n");
    place.run(&["memory", "clear"]);
    assert_eq!(place.run(&["memory", "show"]).stderr, "nothing is remembered\n");
}

#[test]
fn what_was_written_in_an_editor_is_kept_where_it_is_refused() {
    let place = Place::new().with_variable("EDITOR", "sh editor");
    place.write("editor", "head -c 9000 /dev/zero | tr '\\0' x > \"$1\"\n");
    let mut terminal = Terminal::start(&place, &["memory", "edit"]);
    terminal.see("9000 bytes, limit 8192");
    terminal.see("hint: what you wrote is kept in ");
    assert_eq!(terminal.end(), Some(2));
    let kept = |place: &Place| {
        let names = std::fs::read_dir(place.path("data")).unwrap().map(|entry| entry.unwrap().path());
        names.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("memory-")).collect::<Vec<_>>()
    };
    let [file] = kept(&place).try_into().unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "x".repeat(9_000));
    std::fs::remove_file(file).unwrap();
    // What is stored is not kept twice.
    place.write("editor", "echo '- likes tea' > \"$1\"\n");
    let mut terminal = Terminal::start(&place, &["memory", "edit"]);
    terminal.see("the memory has");
    assert_eq!((terminal.end(), kept(&place)), (Some(0), Vec::new()));
    assert_eq!(place.run(&["memory", "show"]).stdout, "- likes tea\n");
}

#[test]
fn a_tool_that_remembers_is_asked_about_like_every_write() {
    let place = Place::new();
    let call = ["tools", "call", "memory__remember", "--arguments", "{\"text\": \"prefers  metric\\nunits\"}"];
    let asked = place.run(&call);
    assert_ne!(asked.code, Some(0), "{asked:?}");
    assert_eq!(place.run(&["memory", "show"]).stdout, "");
    let ran = place.run(&[&call[..], &["--approve", "all"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(place.run(&["memory", "show"]).stdout, "- prefers metric units\n");
    let forget = ["tools", "call", "memory__forget", "--arguments", "{\"text\": \"prefers metric units\"}", "--approve", "all"];
    assert_eq!(place.run(&forget).code, Some(0));
    assert_eq!(place.run(&["memory", "show"]).stdout, "");
}

#[test]
fn with_an_embedding_model_what_means_the_same_is_found_and_without_it_words_are() {
    let embeddings = format!("{FOLDER}[embeddings]\nprovider = \"here\"\nmodel = \"e\"\n");
    let models = endpoint(true);
    let place = place(&models, &embeddings);
    place.write("docs/a.md", "Credentials are handed out on Mondays.\n");
    place.write("docs/b.md", "An umbrella is in the hall.\n");
    place.run(&["chat", "When do I get my passphrase?"]);
    let shown = asked(&models).pop().unwrap();
    let (a, b) = (shown[0].find("a.md"), shown[0].find("b.md"));
    assert!(a.is_some() && (b.is_none() || a < b), "{shown:?}");
    assert_eq!(place.json(&["knowledge", "list", "--json"])[0]["vectors"], 2);

    let down = endpoint(false);
    let place = self::place(&down, &embeddings);
    place.write("docs/a.md", "Credentials are handed out on Mondays.\n");
    let ran = place.run(&["chat", "When do I get my credentials?"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("warning: documents were looked up by words alone: the embedding model `here/e`"), "{ran:?}");
    let shown = asked(&down).pop().unwrap();
    assert!(shown[0].contains("handed out on Mondays"), "{shown:?}");
}

#[test]
fn a_secret_in_a_document_is_shown_to_no_embedding_model_and_in_no_search() {
    let models = endpoint(true);
    let embeddings = format!("{FOLDER}[embeddings]\nprovider = \"here\"\nmodel = \"e\"\n");
    let place = place(
        &models,
        &format!(
            "{embeddings}[providers.other]\ndialect = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key = \"sk-verysecretvalue\"\n"
        ),
    );
    place.write("docs/a.md", "The credentials of the other one are sk-verysecretvalue.\n");
    let found = place.run(&["knowledge", "search", "handbook", "credentials of sk-verysecretvalue"]);
    assert!(found.stdout.contains("are [secret]."), "{found:?}");
    let embedded: Vec<_> = models.requests().into_iter().filter(|request| request["input"].is_array()).collect();
    assert_eq!(embedded.len(), 2, "the document and the question: {embedded:?}");
    for shown in embedded.iter().map(Value::to_string).chain([found.stdout]) {
        assert!(!shown.contains("verysecretvalue"), "{shown}");
    }
}

#[test]
fn a_document_beside_a_conversation_is_found_there_alone_and_goes_with_it() {
    let models = endpoint(true);
    let place = place(&models, "");
    let server = Server::start(&place);
    server.ask("POST /api/v1/conversations", &json!({"id": "c"}));
    let put = server.request("PUT /api/v1/conversations/c/knowledge/guide.md", "The gizmo is behind the piano.");
    assert!(put.starts_with("HTTP/1.1 200") && put.contains("\"id\":\"guide.md\""), "{put}");
    let binary = server.request("PUT /api/v1/conversations/c/knowledge/x.bin", "a\0b\0\0c");
    assert!(binary.starts_with("HTTP/1.1 422") && binary.contains("it is no text"), "{binary}");
    assert!(server.request("PUT /api/v1/conversations/other/knowledge/a.md", "x").starts_with("HTTP/1.1 404"));
    server.ask("POST /api/v1/conversations/c/chat", &json!({"content": "Where is the gizmo?"}));
    let shown = asked(&models).pop().unwrap();
    assert!(
        shown[0].contains("source=\"attached\" document=\"guide.md\"") && shown[0].contains("behind the piano"),
        "{shown:?}"
    );
    let messages = server.ask("GET /api/v1/conversations/c/messages", &Value::Null);
    assert_eq!(messages["data"][0]["context"][0]["document"], "guide.md", "{messages}");
    assert_eq!(messages["data"].as_array().unwrap().len(), 2, "{messages}");
    server.ask("POST /api/v1/conversations/d/chat", &json!({"content": "Where is the gizmo?"}));
    assert_eq!(asked(&models).pop().unwrap(), ["user: Where is the gizmo?"]);
    // A copy has it too, and keeps it.
    let copy = server.ask("POST /api/v1/conversations/c/fork", &json!({"at": messages["data"][0]["id"]}));
    let copy = copy["id"].as_str().unwrap();
    assert!(server.request("DELETE /api/v1/conversations/c", "").starts_with("HTTP/1.1 204"));
    assert_eq!(server.ask(&format!("GET /api/v1/conversations/{copy}/knowledge"), &Value::Null)["data"][0]["id"], "guide.md");
    server.ask(&format!("POST /api/v1/conversations/{copy}/chat"), &json!({"content": "Where was the gizmo?"}));
    assert!(asked(&models).pop().unwrap()[0].contains("behind the piano"));
    server.ask("POST /api/v1/conversations", &json!({"id": "c"}));
    assert_eq!(server.ask("GET /api/v1/conversations/c/knowledge", &Value::Null)["data"], json!([]));
}

#[test]
fn a_chat_puts_documents_beside_its_conversation() {
    let models = endpoint(true);
    let place = place(&models, "");
    place.write("guide.md", "# Gizmo\n\nThe gizmo is behind the piano.\n".repeat(200));
    place.write("page.html", "<html><body><p>The frobnicator is below the stairs.</p></body></html>");
    place.write("binary", [0, 1, 2, 0, 255]);
    let chat = |words: &[&str]| {
        let ran = place.run(&[&["chat"], words].concat());
        (ran.code, ran.stderr)
    };
    let both = ["Where is the gizmo?", "--conversation", "c", "--document", "guide.md", "--document", "page.html"];
    let (code, said) = chat(&both);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("note: `guide.md` is looked up for each message of this conversation"), "{said}");
    let shown = asked(&models).pop().unwrap();
    assert!(shown[0].contains("source=\"attached\" document=\"guide.md\"") && shown[0].contains("the piano"), "{shown:?}");
    // It stays for the messages that follow, and goes with no other conversation.
    chat(&["And the frobnicator?", "--conversation", "c"]);
    let shown = asked(&models).pop().unwrap();
    assert!(shown.iter().any(|message| message.contains("below the stairs")), "{shown:?}");
    chat(&["And the frobnicator?", "--conversation", "d"]);
    assert_eq!(asked(&models).pop().unwrap(), ["user: And the frobnicator?"]);
    // What cannot be looked up is refused before anything is said, and leaves nothing behind.
    let refused = |words: &[&str]| {
        let (code, said) = chat(&[&["Where?", "--conversation", "e"], words].concat());
        assert_eq!(code, Some(2), "{said}");
        said.lines().find(|line| line.starts_with("error: ")).unwrap_or_default().to_owned()
    };
    let binary = refused(&["--document", "guide.md", "--document", "binary"]);
    assert_eq!(binary, "error: `binary` cannot be looked up: it is no text: it holds zero bytes");
    assert_eq!(refused(&["--document", "docs"]), "error: `docs` cannot be looked up: it is not a file");
    let twice = refused(&["--document", "guide.md", "--document", "docs/../guide.md"]);
    assert_eq!(twice, "error: `docs/../guide.md` cannot be looked up: another document is called `guide.md` too");
    assert!(place.run(&["conversations", "show", "e"]).stderr.contains("`e`"));
    assert_eq!(asked(&models).len(), 3);
}

#[test]
fn what_is_shown_already_is_not_shown_again_and_a_courtesy_brings_nothing() {
    let models = endpoint(true);
    let config = format!("{FOLDER}[embeddings]\nprovider = \"here\"\nmodel = \"e\"\n");
    let place = place(&models, &config);
    place.write("docs/keys.md", "# Keys\n\nThe frobnicator key is rotated each March.\n");
    place.write("docs/weather.md", "# Weather\n\nTake an umbrella against rain.\n");
    let say = |text: &str| {
        let ran = place.run(&["chat", text, "--conversation", "c"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        (ran.stderr.contains("context: "), asked(&models).pop().unwrap().concat().matches("<excerpt ").count())
    };
    assert_eq!(say("When is the frobnicator key rotated?"), (true, 1));
    assert_eq!(say("And who rotates the frobnicator key?"), (false, 1));
    for courtesy in ["hello", "thanks!", "ok", "\u{1f44d}", "thank you very much, that helps"] {
        assert_eq!(say(courtesy), (false, 1), "{courtesy}");
    }
    // What is new is shown, and what is shown already is named.
    assert_eq!(say("Does rain harm the frobnicator key?"), (true, 2));
    assert!(asked(&models).pop().unwrap().concat().contains("shown above already: keys.md, lines 1-3"));
    // Another version is another piece.
    place.write("docs/keys.md", "# Keys\n\nThe frobnicator key is rotated by Zelda.\n");
    assert_eq!(say("Who rotates the frobnicator key?"), (true, 3));
}
