//! `turnwright acp` and an editor beside it, which is the protocol's own client library.

use std::process::Stdio;
use std::sync::{Arc, Mutex};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ContentBlock, InitializeRequest, NewSessionRequest, PermissionOptionKind, PromptRequest, PromptResponse,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome, SessionId,
    SessionNotification, SessionUpdate, StopReason, ToolCallUpdate,
};
use agent_client_protocol::{Agent, ByteStreams, Client, Error, Responder};
use tokio_util::compat::{TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt};

use crate::support::{LIMIT, Place};

pub(crate) type Told = Arc<Mutex<Vec<SessionUpdate>>>;

/// The calls that a client was asked about.
pub(crate) type Asked = Arc<Mutex<Vec<ToolCallUpdate>>>;

/// What a client does with a question.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answers {
    /// It takes an option of this kind.
    With(PermissionOptionKind),
    /// It says that it cannot ask.
    Fails,
    /// It never does.
    Never,
}

/// Runs `work` against an agent in `place` whose client answers every question with an option of this kind.
pub(crate) async fn with_agent<T: Send + 'static>(
    place: &Place,
    answer: PermissionOptionKind,
    work: impl AsyncFnOnce(ConnectionTo<Agent>, Told) -> Result<T, Error> + Send,
) -> Result<T, Error> {
    with_client(place, &["acp"], Answers::With(answer), work).await
}

/// The same with an agent that is started with these words.
pub(crate) async fn with_client<T: Send + 'static>(
    place: &Place,
    words: &[&str],
    answers: Answers,
    work: impl AsyncFnOnce(ConnectionTo<Agent>, Told) -> Result<T, Error> + Send,
) -> Result<T, Error> {
    with_asked(place, words, (answers, Asked::default()), work).await
}

/// The same with a client that keeps what it is asked about.
pub(crate) async fn with_asked<T: Send + 'static>(
    place: &Place,
    words: &[&str],
    (answers, asked): (Answers, Asked),
    work: impl AsyncFnOnce(ConnectionTo<Agent>, Told) -> Result<T, Error> + Send,
) -> Result<T, Error> {
    let mut command = tokio::process::Command::from(place.command(words));
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).kill_on_drop(true).spawn().unwrap();
    let streams = ByteStreams::new(child.stdin.take().unwrap().compat_write(), child.stdout.take().unwrap().compat());
    let told = Told::default();
    let into = told.clone();
    let unanswered = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&unanswered);
    let done = Client
        .v1()
        .on_receive_notification(
            async move |notification: SessionNotification, _cx| {
                into.lock().unwrap().push(notification.update);
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _cx| {
                asked.lock().unwrap().push(request.tool_call.clone());
                let answer = match answers {
                    Answers::With(answer) => answer,
                    Answers::Fails => return responder.respond_with_result(Err(Error::internal_error())),
                    Answers::Never => {
                        kept.lock().unwrap().push(responder);
                        return Ok(());
                    }
                };
                let chosen = request.options.iter().find(|option| option.kind == answer).unwrap().option_id.clone();
                let outcome = RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(chosen));
                responder.respond(RequestPermissionResponse::new(outcome))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(streams, async move |agent: ConnectionTo<Agent>| {
            agent.send_request(InitializeRequest::new(ProtocolVersion::V1)).block_task().await?;
            let done = tokio::time::timeout(LIMIT, work(agent, told)).await.unwrap();
            // Not every client knows a request that is taken back.
            let asked: Vec<_> = unanswered.lock().unwrap().iter().map(Responder::cancellation).collect();
            for cancellation in asked {
                tokio::select! {
                    biased;
                    () = cancellation.cancelled() => panic!("`$/cancel_request` was sent"),
                    () = std::future::ready(()) => {}
                }
            }
            done
        })
        .await;
    child.kill().await.unwrap();
    done
}

pub(crate) async fn session(agent: &ConnectionTo<Agent>, place: &Place) -> Result<SessionId, Error> {
    Ok(agent.send_request(NewSessionRequest::new(place.path(""))).block_task().await?.session_id)
}

pub(crate) async fn prompt(agent: &ConnectionTo<Agent>, session: &SessionId, text: &str) -> Result<StopReason, Error> {
    Ok(answered(agent, session, text).await?.stop_reason)
}

pub(crate) async fn answered(agent: &ConnectionTo<Agent>, session: &SessionId, text: &str) -> Result<PromptResponse, Error> {
    let request = PromptRequest::new(session.clone(), vec![ContentBlock::from(text)]);
    agent.send_request(request).block_task().await
}

pub(crate) fn text(told: &Told) -> String {
    let chunk = |update: &SessionUpdate| match update {
        SessionUpdate::AgentMessageChunk(chunk) => match &chunk.content {
            ContentBlock::Text(text) => Some(text.text.clone()),
            _ => None,
        },
        _ => None,
    };
    told.lock().unwrap().iter().filter_map(chunk).collect()
}
