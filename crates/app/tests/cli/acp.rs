//! `turnwright acp`, asked by the protocol's own client library.

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, CloseSessionRequest, ContentBlock, DeleteSessionRequest, EmbeddedResource, EmbeddedResourceResource,
    ListSessionsRequest, LoadSessionRequest, McpServer, McpServerStdio, NewSessionRequest, PermissionOptionKind, PromptRequest,
    ResourceLink, ResumeSessionRequest, SessionConfigKind, SessionConfigSelectOptions, SessionId, SessionUpdate,
    SetSessionConfigOptionRequest, SetSessionModeRequest, StopReason, TextResourceContents, ToolCallContent, ToolCallStatus,
    ToolKind,
};
use agent_client_protocol::{Agent, Error, ErrorCode};
use serde_json::{Value, json};

use crate::editor::{Answers, Asked, prompt, session, text, with_agent, with_asked, with_client};
use crate::support::Place;

/// Prompts, and cancels that as soon as it is time.
async fn stopped_once(
    agent: &ConnectionTo<Agent>,
    session: &SessionId,
    text: &str,
    is_time: impl Fn() -> bool,
) -> Result<StopReason, Error> {
    let stopping = async {
        while !is_time() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        agent.send_notification(CancelNotification::new(session.clone()))
    };
    let (stopped, sent) = tokio::join!(prompt(agent, session, text), stopping);
    sent?;
    stopped
}

#[tokio::test]
async fn a_prompt_is_answered_with_a_tool_call_that_is_shown() {
    let place = Place::new();
    let told = with_agent(&place, PermissionOptionKind::RejectOnce, async |agent, told| {
        let session = session(&agent, &place).await?;
        assert_eq!(prompt(&agent, &session, "read the file \"a.txt\"").await?, StopReason::EndTurn);
        Ok(told)
    })
    .await
    .unwrap();
    assert!(text(&told).contains("hello file"), "{told:?}");
    let updates = told.lock().unwrap();
    let call = updates.iter().find_map(|update| if let SessionUpdate::ToolCall(call) = update { Some(call) } else { None });
    let call = call.unwrap();
    assert_eq!(call.locations[0].path, place.path("").canonicalize().unwrap().join("a.txt"));
    let done = updates.iter().any(|update| {
        matches!(update, SessionUpdate::ToolCallUpdate(update)
            if update.tool_call_id == call.tool_call_id && update.fields.status == Some(ToolCallStatus::Completed))
    });
    assert!(done, "{updates:?}");
}

#[tokio::test]
async fn a_write_shows_its_diff_and_happens_only_where_the_client_allows_it() {
    for (answer, is_written) in [(PermissionOptionKind::AllowOnce, true), (PermissionOptionKind::RejectOnce, false)] {
        let place = Place::new();
        let told = with_agent(&place, answer, async |agent, told| {
            let session = session(&agent, &place).await?;
            assert_eq!(prompt(&agent, &session, "write \"hi\" to file \"b.txt\"").await?, StopReason::EndTurn);
            Ok(told)
        })
        .await
        .unwrap();
        assert_eq!(place.path("b.txt").exists(), is_written);
        let updates = told.lock().unwrap();
        let has_diff = updates.iter().any(|update| match update {
            SessionUpdate::ToolCall(call) => {
                call.content.iter().any(|content| matches!(content, ToolCallContent::Diff(diff) if diff.new_text == "hi"))
            }
            _ => false,
        });
        assert!(has_diff, "{updates:?}");
    }
}

#[tokio::test]
async fn a_file_that_was_written_over_is_shown_with_what_it_held() {
    let place = Place::new();
    let told = with_agent(&place, PermissionOptionKind::AllowOnce, async |agent, told| {
        let session = session(&agent, &place).await?;
        assert_eq!(prompt(&agent, &session, "write \"hi\" to file \"a.txt\"").await?, StopReason::EndTurn);
        Ok(told)
    })
    .await
    .unwrap();
    let updates = told.lock().unwrap();
    let mut changed = updates.iter().filter_map(|update| match update {
        SessionUpdate::ToolCallUpdate(update) => update.fields.content.as_ref(),
        _ => None,
    });
    let diff = changed.find_map(|content| {
        content.iter().find_map(|content| if let ToolCallContent::Diff(diff) = content { Some(diff) } else { None })
    });
    let diff = diff.unwrap();
    assert_eq!((diff.old_text.as_deref(), diff.new_text.as_str()), (Some("hello file\n"), "hi"));
}

#[tokio::test]
async fn who_is_asked_about_a_write_sees_what_is_there_and_what_will_be() {
    let place = Place::new();
    let asked = Asked::default();
    let answers = (Answers::With(PermissionOptionKind::RejectOnce), asked.clone());
    with_asked(&place, &["acp"], answers, async |agent, _| {
        let session = session(&agent, &place).await?;
        for file in ["a.txt", "new.txt"] {
            prompt(&agent, &session, &format!("write \"hi\" to file \"{file}\"")).await?;
        }
        Ok(())
    })
    .await
    .unwrap();
    let folder = place.path("").canonicalize().unwrap();
    let asked = asked.lock().unwrap();
    let titles: Vec<_> = asked.iter().map(|call| call.fields.title.as_deref()).collect();
    // As on the card of the call, which takes it over.
    assert_eq!(titles, [Some("Write a file: a.txt"), Some("Write a file: new.txt")]);
    let shown = asked.iter().map(|call| match call.fields.content.as_deref() {
        Some([ToolCallContent::Content(_), ToolCallContent::Diff(diff)]) => {
            (diff.path.clone(), diff.old_text.as_deref(), diff.new_text.as_str())
        }
        other => panic!("{other:?}"),
    });
    let shown: Vec<_> = shown.collect();
    assert_eq!(shown, [(folder.join("a.txt"), Some("hello file\n"), "hi"), (folder.join("new.txt"), None, "hi")]);
}

#[tokio::test]
async fn what_is_allowed_for_the_session_is_not_asked_again() {
    let place = Place::new();
    with_agent(&place, PermissionOptionKind::AllowAlways, async |agent, _| {
        let session = session(&agent, &place).await?;
        for text in ["one", "two"] {
            prompt(&agent, &session, &format!("write \"{text}\" to file \"b.txt\"")).await?;
        }
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(std::fs::read_to_string(place.path("b.txt")).unwrap(), "two");
    let rules = place.json(&["approvals", "rules", "list", "--json"]);
    assert_eq!(rules.as_array().map(Vec::len), Some(1), "{rules}");
}

#[tokio::test]
async fn a_session_is_loaded_with_all_that_was_said_by_another_process() {
    let place = Place::new();
    let named = with_agent(&place, PermissionOptionKind::AllowOnce, async |agent, _| {
        let session = session(&agent, &place).await?;
        prompt(&agent, &session, "read the file \"a.txt\"").await?;
        Ok(session)
    })
    .await
    .unwrap();
    let told = with_agent(&place, PermissionOptionKind::AllowOnce, async |agent, told| {
        agent.send_request(LoadSessionRequest::new(named.clone(), place.path(""))).block_task().await?;
        Ok(told)
    })
    .await
    .unwrap();
    assert!(text(&told).contains("hello file"), "{told:?}");
    let told = told.lock().unwrap();
    assert!(matches!(told.first(), Some(SessionUpdate::UserMessageChunk(_))), "{told:?}");
    let called = told.iter().find_map(|update| if let SessionUpdate::ToolCall(call) = update { Some(call) } else { None });
    let called = called.unwrap();
    assert_eq!(called.kind, ToolKind::Read, "{called:?}");
    let is_done = told.iter().any(|update| {
        matches!(update, SessionUpdate::ToolCallUpdate(update)
            if update.tool_call_id == called.tool_call_id && update.fields.status == Some(ToolCallStatus::Completed))
    });
    assert!(is_done, "{told:?}");
}

#[tokio::test]
async fn a_cancelled_prompt_ends_as_cancelled() {
    let place = Place::with("approve = \"all\"\n");
    with_agent(&place, PermissionOptionKind::AllowOnce, async |agent, _| {
        let session = session(&agent, &place).await?;
        let began = place.path("began");
        let stopped = stopped_once(&agent, &session, "run the command \"touch began; sleep 60\"", || began.exists()).await?;
        assert_eq!(stopped, StopReason::Cancelled);
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_prompt_is_cancelled_by_what_is_read_right_after_it() {
    let place = Place::with("approve = \"all\"\n");
    with_agent(&place, PermissionOptionKind::AllowOnce, async |agent, _| {
        let session = session(&agent, &place).await?;
        for _ in 0..10 {
            let stopped = stopped_once(&agent, &session, "run the command \"sleep 2\"", || true).await?;
            assert_eq!(stopped, StopReason::Cancelled);
        }
        assert_eq!(prompt(&agent, &session, "hello").await?, StopReason::EndTurn);
        Ok(())
    })
    .await
    .unwrap();
}

#[test]
fn a_line_that_is_no_json_or_no_text_is_answered_and_the_next_one_is_too() {
    let place = Place::new();
    let hello = r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":1}}"#;
    let written = [b"{\"jsonrpc\":\n\xff\xfe{}\n".as_slice(), hello.as_bytes(), b"\n"].concat();
    let ran = place.run_with(&["acp"], &written);
    let told: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seen: Vec<_> = told.iter().map(|message| (&message["id"], &message["error"]["code"])).collect();
    assert_eq!(seen, [(&Value::Null, &json!(-32700)), (&Value::Null, &json!(-32700)), (&json!(7), &Value::Null)], "{ran:?}");
    assert!(ran.code == Some(0) && told[2]["result"]["protocolVersion"] == 1, "{ran:?}");
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_in_words() {
    let place = Place::with("[mcp.servers.known]\ncommand = \"true\"\nenabled = false\n");
    with_agent(&place, PermissionOptionKind::AllowOnce, async |agent, _| {
        let early = prompt(&agent, &SessionId::new("x"), "hi").await.unwrap_err();
        assert_eq!(early.message, "there is no session yet; begin one first");
        let server = |name: &str| McpServer::Stdio(McpServerStdio::new(name, "true"));
        for servers in [vec![server("known")], vec![server("own"), server("own")]] {
            let name = if servers.len() == 1 { "known" } else { "own" };
            let taken = NewSessionRequest::new(place.path("")).mcp_servers(servers);
            let taken = agent.send_request(taken).block_task().await.unwrap_err();
            assert_eq!(taken.code, ErrorCode::INVALID_PARAMS);
            assert!(taken.message.starts_with(&format!("there is an MCP server `{name}` already")), "{taken:?}");
        }
        let relative = agent.send_request(NewSessionRequest::new("here")).block_task().await.unwrap_err();
        assert_eq!(relative.message, "cwd is `here`, it must be an absolute path");
        let first = session(&agent, &place).await?;
        let elsewhere = agent.send_request(NewSessionRequest::new("/")).block_task().await.unwrap_err();
        assert!(elsewhere.message.contains("start another `turnwright acp`"), "{elsewhere:?}");
        assert_eq!(prompt(&agent, &first, "hello").await?, StopReason::EndTurn);
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_prompt_is_cancelled_while_its_client_is_asked_and_does_not_answer() {
    let place = Place::new();
    with_client(&place, &["acp"], Answers::Never, async |agent, _| {
        let session = session(&agent, &place).await?;
        let waits = || place.json(&["approvals", "list", "--json"]).as_array().is_some_and(|waiting| !waiting.is_empty());
        let stopped = stopped_once(&agent, &session, "write \"hi\" to file \"b.txt\"", waits).await?;
        assert_eq!(stopped, StopReason::Cancelled);
        Ok(())
    })
    .await
    .unwrap();
    assert!(!place.path("b.txt").exists());
}

#[tokio::test]
async fn a_prompt_whose_session_is_closed_or_deleted_while_its_client_is_asked_ends_as_cancelled() {
    let place = Place::new();
    with_client(&place, &["acp"], Answers::Never, async |agent, _| {
        for is_deleted in [false, true] {
            let session = session(&agent, &place).await?;
            let ending = async {
                while place.json(&["approvals", "list", "--json"]).as_array().is_none_or(Vec::is_empty) {
                    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                }
                if is_deleted {
                    agent.send_request(DeleteSessionRequest::new(session.clone())).block_task().await.map(drop)
                } else {
                    agent.send_request(CloseSessionRequest::new(session.clone())).block_task().await.map(drop)
                }
            };
            let (ended, done) = tokio::join!(prompt(&agent, &session, "write \"hi\" to file \"b.txt\""), ending);
            done?;
            assert_eq!(ended?, StopReason::Cancelled, "deleted: {is_deleted}");
        }
        Ok(())
    })
    .await
    .unwrap();
    assert!(!place.path("b.txt").exists());
}

#[tokio::test]
async fn a_model_is_chosen_for_a_session_and_a_mode_with_it() {
    let place = Place::new();
    with_agent(&place, PermissionOptionKind::RejectOnce, async |agent, _| {
        let made = agent.send_request(NewSessionRequest::new(place.path(""))).block_task().await?;
        let options = made.config_options.unwrap();
        let SessionConfigKind::Select(models) = &options[0].kind else { panic!("{options:?}") };
        let SessionConfigSelectOptions::Ungrouped(known) = &models.options else { panic!("{options:?}") };
        assert!(known.iter().any(|option| option.value == models.current_value), "{options:?}");
        let chosen = models.current_value.to_string();
        let request = SetSessionConfigOptionRequest::new(made.session_id.clone(), "model", chosen.as_str());
        assert_eq!(agent.send_request(request).block_task().await?.config_options, options);
        let request = SetSessionConfigOptionRequest::new(made.session_id.clone(), "model", "nobody/nothing");
        let refused = agent.send_request(request).block_task().await.unwrap_err();
        assert!(refused.message.contains("nobody"), "{refused:?}");
        agent.send_request(SetSessionModeRequest::new(made.session_id.clone(), "all")).block_task().await?;
        let nobodys = agent.send_request(SetSessionModeRequest::new("nobodys", "all")).block_task().await.unwrap_err();
        assert!(nobodys.message.contains("nobodys"), "{nobodys:?}");
        prompt(&agent, &made.session_id, "write \"hi\" to file \"b.txt\"").await?;
        Ok(())
    })
    .await
    .unwrap();
    assert!(place.path("b.txt").exists(), "the mode runs it without asking");
}

#[tokio::test]
async fn a_session_goes_on_without_being_told_again_and_is_deleted() {
    let place = Place::new();
    with_agent(&place, PermissionOptionKind::RejectOnce, async |agent, told| {
        let session = session(&agent, &place).await?;
        prompt(&agent, &session, "hello").await?;
        agent.send_request(CloseSessionRequest::new(session.clone())).block_task().await?;
        told.lock().unwrap().clear();
        agent.send_request(ResumeSessionRequest::new(session.clone(), place.path(""))).block_task().await?;
        assert_eq!(told.lock().unwrap().len(), 0);
        assert_eq!(prompt(&agent, &session, "hello again").await?, StopReason::EndTurn);
        agent.send_request(DeleteSessionRequest::new(session.clone())).block_task().await?;
        agent.send_request(DeleteSessionRequest::new(session.clone())).block_task().await?;
        let gone = agent.send_request(ResumeSessionRequest::new(session, place.path(""))).block_task().await.unwrap_err();
        assert!(gone.message.contains("conversation"), "{gone:?}");
        let listed = agent.send_request(ListSessionsRequest::new()).block_task().await?;
        assert_eq!(listed.sessions, []);
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn what_an_editor_embeds_in_a_prompt_is_kept_with_its_message() {
    let place = Place::new();
    let session = with_agent(&place, PermissionOptionKind::RejectOnce, async |agent, _| {
        let session = session(&agent, &place).await?;
        let text = TextResourceContents::new("fn main() {}", "file:///main.rs");
        let resource = EmbeddedResource::new(EmbeddedResourceResource::TextResourceContents(text));
        let link = ResourceLink::new("a.txt", "file:///a.txt");
        let blocks = vec![ContentBlock::from("hello"), ContentBlock::Resource(resource), ContentBlock::ResourceLink(link)];
        let answered = agent.send_request(PromptRequest::new(session.clone(), blocks)).block_task().await?;
        assert_eq!(answered.stop_reason, StopReason::EndTurn);
        Ok(session)
    })
    .await
    .unwrap();
    let kept = place.json(&["conversations", "export", &session.to_string(), "--format", "openai"]).to_string();
    assert!(kept.contains("fn main() {}") && kept.contains("file:///a.txt"), "{kept}");
}
