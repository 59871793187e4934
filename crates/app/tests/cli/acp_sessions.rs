//! Sessions of `turnwright acp` that are taken up again, listed, and go on with what was there.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use agent_client_protocol::v1::schema::{
    ContentBlock, DeleteSessionRequest, EnvVariable, HttpHeader, ListSessionsRequest, LoadSessionRequest, McpServer,
    McpServerSse, McpServerStdio, NewSessionRequest, PermissionOptionKind, SessionId, SessionUpdate, SetSessionModeRequest,
    StopReason,
};
use agent_client_protocol::{Error, ErrorCode};
use serde_json::{Value, json};
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, results_shown, text_chunk};

use crate::editor::{Answers, prompt, session, text, with_agent, with_client};
use crate::scripted::{asks_once, chosen};
use crate::serve::Server;
use crate::support::{LIMIT, Place, follow, wait, wait_for};

#[tokio::test]
async fn a_prompt_where_a_call_still_waits_asks_about_that_first() {
    let place = Place::new();
    let named = with_client(&place, &["acp"], Answers::Fails, async |agent, _| {
        let session = session(&agent, &place).await?;
        let failed = prompt(&agent, &session, "write \"hi\" to file \"b.txt\"").await.unwrap_err();
        assert!(failed.message.contains("`filesystem__write`, which still waits"), "{failed:?}");
        Ok(session)
    })
    .await
    .unwrap();
    assert!(!place.path("b.txt").exists(), "nobody allowed it");
    with_agent(&place, PermissionOptionKind::AllowOnce, async |agent, _| {
        agent.send_request(LoadSessionRequest::new(named.clone(), place.path(""))).block_task().await?;
        assert_eq!(prompt(&agent, &named, "hello").await?, StopReason::EndTurn);
        Ok(())
    })
    .await
    .unwrap();
    assert!(place.path("b.txt").exists());
}

/// On PostgreSQL nobody else may drive the turn for as long as the lease of whoever was killed goes on.
#[tokio::test]
async fn a_prompt_that_joins_the_turn_of_a_process_that_was_killed_is_answered() {
    let place = Place::new();
    let model = ModelServer::start(["asked"], |_| {
        vec![Piece::Point("asked"), text_chunk("Here I am."), finish_chunk("stop"), Piece::Done]
    });
    let model = model.unwrap();
    let config = format!(
        "model = \"scripted/m\"\n[providers.scripted]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n",
        model.base_url()
    );
    place.write("turnwright.toml", config);
    let mut chat = place.command(&["chat", "Where are you?", "--conversation", "c"]);
    let mut chat = chat.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    assert!(model.wait_for("asked", LIMIT), "the model was never asked");
    chat.kill().unwrap();
    chat.wait().unwrap();
    model.run_free();
    let session = SessionId::new("c");
    with_agent(&place, PermissionOptionKind::AllowOnce, async |agent, told| {
        agent.send_request(LoadSessionRequest::new(session.clone(), place.path(""))).block_task().await?;
        assert_eq!(prompt(&agent, &session, "Are you there?").await?, StopReason::EndTurn);
        assert!(text(&told).contains("Here I am."), "{told:?}");
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_session_where_nothing_was_said_is_loaded_with_nothing() {
    let place = Place::new();
    let told = with_agent(&place, PermissionOptionKind::RejectOnce, async |agent, told| {
        let session = session(&agent, &place).await?;
        agent.send_request(LoadSessionRequest::new(session.clone(), place.path(""))).block_task().await?;
        assert_eq!(prompt(&agent, &session, "hello").await?, StopReason::EndTurn);
        Ok(told)
    })
    .await
    .unwrap();
    let told = told.lock().unwrap();
    let is_person = |update: &SessionUpdate| matches!(update, SessionUpdate::UserMessageChunk(_));
    assert!(!told.iter().any(is_person), "{told:?}");
}

#[tokio::test]
async fn sessions_are_of_the_user_whom_the_command_line_names() {
    let place = Place::new();
    assert_eq!(place.run(&["users", "add", "anna"]).code, Some(0));
    let answers = Answers::With(PermissionOptionKind::RejectOnce);
    let session = with_client(&place, &["--user", "anna", "acp"], answers, async |agent, _| {
        let session = session(&agent, &place).await?;
        assert_eq!(prompt(&agent, &session, "hello").await?, StopReason::EndTurn);
        Ok(session)
    })
    .await
    .unwrap();
    let hers = place.json(&["conversations", "list", "--json", "--user", "anna"]);
    assert_eq!(hers[0]["id"], session.to_string());
    assert_eq!(place.json(&["conversations", "list", "--json"]), json!([]));
}

#[tokio::test]
async fn what_an_editor_chooses_is_kept_with_the_conversation_and_what_is_chosen_elsewhere_counts() {
    let place = Place::with("approve = \"all\"\n");
    let named = with_agent(&place, PermissionOptionKind::AllowOnce, async |agent, _| {
        let session = session(&agent, &place).await?;
        agent.send_request(SetSessionModeRequest::new(session.clone(), "read-only")).block_task().await?;
        Ok(session)
    })
    .await
    .unwrap();
    let told = with_agent(&place, PermissionOptionKind::AllowOnce, async |agent, told| {
        let loaded = agent.send_request(LoadSessionRequest::new(named.clone(), place.path(""))).block_task().await?;
        assert_eq!(loaded.modes.unwrap().current_mode_id.to_string(), "read-only");
        prompt(&agent, &named, "write \"hi\" to file \"b.txt\"").await?;
        assert!(!place.path("b.txt").exists(), "it was denied before it was asked about");
        let server = Server::start(&place);
        server.ask(&format!("PATCH /api/v1/conversations/{named}"), &json!({"settings": {"approve": "all"}}));
        server.stop();
        // What another process writes is noticed a moment later.
        while !place.path("b.txt").exists() {
            prompt(&agent, &named, "write \"hi\" to file \"b.txt\"").await?;
        }
        Ok(told)
    })
    .await
    .unwrap();
    let told = told.lock().unwrap();
    let modes: Vec<_> = told
        .iter()
        .filter_map(|update| match update {
            SessionUpdate::CurrentModeUpdate(mode) => Some(mode.current_mode_id.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(modes, ["all"]);
}

#[tokio::test]
async fn a_model_that_is_chosen_at_another_door_is_told_to_the_editor() {
    let model = ModelServer::start(None, |_| vec![text_chunk("Done."), finish_chunk("stop"), Piece::Done]).unwrap();
    let place = Place::new();
    place.write("turnwright.toml", chosen(&model, "ask"));
    with_agent(&place, PermissionOptionKind::AllowOnce, async |agent, told| {
        let session = session(&agent, &place).await?;
        let server = Server::start(&place);
        server.ask(&format!("PATCH /api/v1/conversations/{session}"), &json!({"model": "scripted/other"}));
        server.stop();
        let models = || {
            let told = told.lock().unwrap();
            let options = told.iter().filter_map(|update| match update {
                SessionUpdate::ConfigOptionUpdate(update) => Some(json!(update.config_options)[0]["currentValue"].clone()),
                _ => None,
            });
            options.collect::<Vec<_>>()
        };
        // What another process writes is noticed a moment later.
        while models().is_empty() {
            prompt(&agent, &session, "hello").await?;
        }
        prompt(&agent, &session, "hello").await?;
        assert_eq!(models(), ["scripted/other"]);
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_permission_is_asked_while_another_call_of_the_turn_runs() {
    let model = ModelServer::start(None, |request| {
        if results_shown(request) > 0 {
            return vec![text_chunk("Done."), finish_chunk("stop"), Piece::Done];
        }
        vec![
            call_chunk(0, "command__run", r#"{"command":"until [ -e b.txt ]; do sleep 0.05; done"}"#),
            call_chunk(1, "filesystem__write", r#"{"path":"b.txt","content":"hi"}"#),
            finish_chunk("tool_calls"),
            Piece::Done,
        ]
    });
    let model = model.unwrap();
    let place = Place::new();
    let rule = "[[approval.rules]]\ntool = \"command__run\"\naction = \"allow\"\n";
    place.write("turnwright.toml", chosen(&model, "ask") + rule);
    let told = with_agent(&place, PermissionOptionKind::AllowOnce, async |agent, told| {
        let session = session(&agent, &place).await?;
        assert_eq!(prompt(&agent, &session, "both").await?, StopReason::EndTurn);
        Ok(told)
    })
    .await
    .unwrap();
    assert_eq!(text(&told), "Done.");
}

#[test]
fn what_an_editor_sends_is_not_logged_at_any_level() {
    let place = Place::new();
    let ask = |id: u32, method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
    };
    let mut agent = place.command(&["acp", "--log-level", "trace"]);
    let agent = agent.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut agent = agent.spawn().unwrap();
    let (told, said) = (follow(agent.stdout.take().unwrap()), follow(agent.stderr.take().unwrap()));
    let mut input = agent.stdin.take().unwrap();
    for (line, answer) in [
        (ask(0, "initialize", json!({"protocolVersion": 1})), "\"id\":0"),
        // From here on there is a log.
        (ask(1, "session/new", json!({"cwd": place.path(""), "mcpServers": []})), "sessionId"),
        (ask(2, "session/set_mode", json!({"sessionId": "amber-lantern", "modeId": "all"})), "\"id\":2"),
    ] {
        writeln!(input, "{line}").unwrap();
        wait_for("the answer", || told.lock().unwrap().contains(answer).then_some(()));
    }
    drop(input);
    assert_eq!(wait(&mut agent), Some(0));
    let said = said.lock().unwrap();
    assert!(said.contains("DEBUG"), "{said}");
    assert!(!said.contains("amber-lantern"), "{said}");
}

#[tokio::test]
async fn an_mcp_server_that_cannot_come_with_a_session_is_refused_by_name_alone() {
    let place = Place::new();
    with_agent(&place, PermissionOptionKind::RejectOnce, async |agent, _| {
        let header = HttpHeader::new("Authorization", "amber lantern");
        let far = McpServerSse::new("far", "http://127.0.0.1:9/").headers(vec![header]);
        let begin = NewSessionRequest::new(place.path("")).mcp_servers(vec![McpServer::Sse(far)]);
        let refused = agent.send_request(begin).block_task().await.unwrap_err();
        assert!(refused.message.contains("`far`") && !format!("{refused:?}").contains("amber"), "{refused:?}");
        Ok(())
    })
    .await
    .unwrap();
}

/// A server of the MCP tests, whose tool `t` answers with "slept" in the mode `parallel`, else with "ok {}".
fn brought(name: &str, mode: &str, variables: [&str; 2]) -> McpServer {
    let variables = variables.map(|name| EnvVariable::new(name, "amber lantern")).to_vec();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mcp/tests/servers/misbehave.py");
    let arguments = vec![script.display().to_string(), mode.to_owned(), "0".to_owned()];
    McpServer::Stdio(McpServerStdio::new(name, "python3").args(arguments).env(variables))
}

#[tokio::test]
async fn every_session_brings_its_mcp_servers_and_the_newest_of_a_name_is_called() {
    let model = asks_once("own__t", "{}");
    let place = Place::new();
    place.write("turnwright.toml", chosen(&model, "all"));
    with_agent(&place, PermissionOptionKind::RejectOnce, async |agent, told| {
        let begin = |server: McpServer| NewSessionRequest::new(place.path("")).mcp_servers(vec![server]);
        let asked = async |session: &SessionId| {
            told.lock().unwrap().clear();
            prompt(&agent, session, "ask").await?;
            Ok::<_, Error>(text(&told))
        };
        let first = session(&agent, &place).await?;
        let second = agent.send_request(begin(brought("own", "fine", ["ONE", "TWO"]))).block_task().await?.session_id;
        assert_eq!(asked(&second).await?, "It said: ok {}");
        // All sessions of the process have it, and one that comes again stays, however its variables are ordered.
        let servers = vec![brought("own", "fine", ["TWO", "ONE"]), brought("more", "fine", ["ONE", "TWO"])];
        let load = LoadSessionRequest::new(first.clone(), place.path("")).mcp_servers(servers);
        agent.send_request(load).block_task().await?;
        assert_eq!(asked(&first).await?, "It said: ok {}");
        let third = agent.send_request(begin(brought("own", "parallel", ["ONE", "TWO"]))).block_task().await?.session_id;
        assert_eq!(asked(&third).await?, "It said: slept");
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn an_mcp_server_that_the_configuration_has_too_is_that_one() {
    let model = asks_once("own__t", "{}");
    let place = Place::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mcp/tests/servers/misbehave.py");
    let own = format!(
        "[mcp.servers.own]\ncommand = \"python3\"\nargs = [\"{}\", \"fine\", \"0\"]\n\
         env = {{ ONE = \"amber lantern\", TWO = \"amber lantern\" }}\n",
        script.display()
    );
    place.write("turnwright.toml", chosen(&model, "all") + &own);
    with_agent(&place, PermissionOptionKind::RejectOnce, async |agent, told| {
        let begin = |server: McpServer| NewSessionRequest::new(place.path("")).mcp_servers(vec![server]);
        let session = agent.send_request(begin(brought("own", "fine", ["TWO", "ONE"]))).block_task().await?.session_id;
        prompt(&agent, &session, "ask").await?;
        assert_eq!(text(&told), "It said: ok {}");
        let refused = agent.send_request(begin(brought("own", "parallel", ["TWO", "ONE"]))).block_task().await.unwrap_err();
        assert!(refused.message.contains("there is an MCP server `own` already"), "{refused:?}");
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn what_an_mcp_server_asks_over_its_open_call_is_declined_at_once() {
    let model = asks_once("asks__t", "{}");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mcp/tests/servers/misbehave.py");
    let question = json!({"message": "Well?", "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}}});
    let place = Place::new();
    let server =
        format!("[mcp.servers.asks]\ncommand = \"python3\"\nargs = [\"{}\", \"elicits\", '{question}']\n", script.display());
    place.write("turnwright.toml", chosen(&model, "all") + &server);
    let told = with_agent(&place, PermissionOptionKind::RejectOnce, async |agent, told| {
        let session = session(&agent, &place).await?;
        assert_eq!(prompt(&agent, &session, "ask").await?, StopReason::EndTurn);
        Ok(told)
    })
    .await
    .unwrap();
    assert_eq!(text(&told), "It said: {\"action\": \"decline\"}");
}

#[tokio::test]
async fn a_session_is_loaded_without_the_messages_that_are_hidden_and_their_calls() {
    let place = Place::new();
    let named = with_agent(&place, PermissionOptionKind::RejectOnce, async |agent, _| {
        let session = session(&agent, &place).await?;
        prompt(&agent, &session, "read the file \"a.txt\"").await?;
        prompt(&agent, &session, "and hello").await?;
        Ok(session)
    })
    .await
    .unwrap();
    let server = Server::start(&place);
    let messages = format!("/api/v1/conversations/{named}/messages");
    let listed = server.ask(&format!("GET {messages}"), &Value::Null);
    let said = listed["data"].as_array().unwrap();
    let first = said.iter().find(|message| message["role"] == "user").unwrap();
    let calling = said.iter().find(|message| message["tool_calls"].is_array()).unwrap();
    for message in [first, calling] {
        server.ask(&format!("DELETE {messages}/{}", message["id"].as_str().unwrap()), &Value::Null);
    }
    server.stop();
    let told = with_agent(&place, PermissionOptionKind::RejectOnce, async |agent, told| {
        agent.send_request(LoadSessionRequest::new(named.clone(), place.path(""))).block_task().await?;
        Ok(told)
    })
    .await
    .unwrap();
    assert!(text(&told).contains("hello file"), "the answer is not hidden: {told:?}");
    let told = told.lock().unwrap();
    let shown: Vec<_> = told.iter().filter(|update| !matches!(update, SessionUpdate::AgentMessageChunk(_))).collect();
    let [SessionUpdate::UserMessageChunk(person)] = shown[..] else { panic!("{shown:?}") };
    assert_eq!(person.content, ContentBlock::from("and hello"));
}

#[tokio::test]
async fn a_prompt_to_a_session_that_is_not_there_makes_none() {
    let place = Place::new();
    with_agent(&place, PermissionOptionKind::RejectOnce, async |agent, _| {
        let session = session(&agent, &place).await?;
        agent.send_request(DeleteSessionRequest::new(session.clone())).block_task().await?;
        for gone in [session, SessionId::new("nobodys")] {
            let refused = prompt(&agent, &gone, "hello").await.unwrap_err();
            assert_eq!(refused.code, ErrorCode::RESOURCE_NOT_FOUND, "{refused:?}");
        }
        let listed = agent.send_request(ListSessionsRequest::new()).block_task().await?;
        assert_eq!(listed.sessions, []);
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn sessions_are_listed_a_page_at_a_time_and_for_their_folder_alone() {
    let place = Place::new();
    with_agent(&place, PermissionOptionKind::RejectOnce, async |agent, _| {
        let mut made = BTreeSet::new();
        for _ in 0..101 {
            made.insert(session(&agent, &place).await?.to_string());
        }
        let elsewhere = agent.send_request(ListSessionsRequest::new().cwd(PathBuf::from("/"))).block_task().await?;
        assert_eq!((elsewhere.sessions, elsewhere.next_cursor), (Vec::new(), None));
        let first = agent.send_request(ListSessionsRequest::new().cwd(place.path(""))).block_task().await?;
        let next = ListSessionsRequest::new().cwd(place.path("")).cursor(first.next_cursor);
        let second = agent.send_request(next).block_task().await?;
        assert_eq!((first.sessions.len(), second.sessions.len(), second.next_cursor), (100, 1, None));
        let listed = first.sessions.iter().chain(&second.sessions).map(|session| session.session_id.to_string());
        assert_eq!(listed.collect::<BTreeSet<_>>(), made);
        let wrong = agent.send_request(ListSessionsRequest::new().cursor(String::from("a b"))).block_task().await.unwrap_err();
        assert!(wrong.message.starts_with("the cursor is wrong: "), "{wrong:?}");
        Ok(())
    })
    .await
    .unwrap();
}

/// What is told of people and of models, a line for each message.
fn lines(told: &[SessionUpdate]) -> Vec<String> {
    let mut lines: Vec<(&str, Option<String>, String)> = Vec::new();
    for update in told {
        let (who, chunk) = match update {
            SessionUpdate::UserMessageChunk(chunk) => ("person", chunk),
            SessionUpdate::AgentMessageChunk(chunk) => ("model", chunk),
            _ => continue,
        };
        let ContentBlock::Text(text) = &chunk.content else { continue };
        let id = chunk.message_id.as_ref().map(ToString::to_string);
        match lines.last_mut() {
            Some((last, of, line)) if *last == who && *of == id => line.push_str(&text.text),
            _ => lines.push((who, id, text.text.clone())),
        }
    }
    lines.into_iter().map(|(who, _, line)| format!("{who}: {line}")).collect()
}

/// A model that always says this.
fn saying(place: &Place, text: &'static str) -> ModelServer {
    let model = ModelServer::start(None, move |_| vec![text_chunk(text), finish_chunk("stop"), Piece::Done]).unwrap();
    let url = model.base_url();
    let config = format!(
        "model = \"scripted/m\"\n[providers.scripted]\ndialect = \"openai-chat\"\nbase_url = \"{url}\"\nmodels = [\"m\"]\n"
    );
    place.write("turnwright.toml", config);
    model
}

#[tokio::test]
async fn what_is_said_at_another_door_is_told_to_the_session_while_it_is_open() {
    let place = Place::new();
    let _model = saying(&place, "Well.");
    let told = with_agent(&place, PermissionOptionKind::RejectOnce, async |agent, told| {
        let session = session(&agent, &place).await?;
        prompt(&agent, &session, "one").await?;
        let ran = place.run(&["chat", "two", "--conversation", &session.to_string()]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        while lines(&told.lock().unwrap()).len() < 3 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        prompt(&agent, &session, "three").await?;
        Ok(told)
    })
    .await
    .unwrap();
    let expected = ["model: Well.", "person: two", "model: Well.", "model: Well."];
    assert_eq!(lines(&told.lock().unwrap()), expected, "what the editor says itself is not told to it");
}

#[tokio::test]
async fn two_prompts_at_once_in_a_session_are_told_once() {
    let place = Place::new();
    let _model = saying(&place, "Well.");
    let told = with_agent(&place, PermissionOptionKind::RejectOnce, async |agent, told| {
        let session = session(&agent, &place).await?;
        let (first, second) = tokio::join!(prompt(&agent, &session, "one"), prompt(&agent, &session, "two"));
        assert_eq!((first?, second?), (StopReason::EndTurn, StopReason::EndTurn));
        Ok(told)
    })
    .await
    .unwrap();
    let told = lines(&told.lock().unwrap());
    assert!((1..=2).contains(&told.len()) && told.iter().all(|line| line == "model: Well."), "{told:?}");
}
