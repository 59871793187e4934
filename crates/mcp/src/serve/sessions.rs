//! Sessions of clients of the era that has them (up to 2025-11-25), which every process over the same data goes on with.
//!
//! The protocol's library has them in memory. Two things make them everybody's. How a session was opened is kept ([`Kept`]), and
//! who does not know it opens it again in the same way. And what a client is asked goes out under a name that says which call
//! asks it ([`Asking`]): where the answer comes to another process, that one gives it to the call through its journal. Numbers of
//! the library's own would mean another question there. What is not wanted any more ([`Calls`]) is written down for the process
//! that runs it. And events have names by which a client finds the answer to its request where the process that was asked is gone
//! ([`Asked`]).

mod asking;
mod calls;
mod kept;
mod place;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientNotification, ClientRequest, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::transport::common::server_side_http::{ServerSseMessage, SessionId};
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, LocalSessionManagerError};
use rmcp::transport::streamable_http_server::session::{RestoreOutcome, SessionManager};
use serde_json::Value;

use super::backing::{Backing, Happened, Refused};
use super::wanted::{Refusals, Wanted};

pub(super) use asking::Asking;
use asking::{Name, named};
pub(super) use calls::{Call, Calls};
pub(super) use kept::Kept;
pub use kept::SessionKeeping;
use place::Asked;

/// How long a session is kept in memory in which nothing is said; a person may think about a question for so long.
const SESSION_IDLE: Duration = Duration::from_hours(1);
/// What a client is told whose request nobody has any more.
const LOST: &str = "the server that was asked is gone, and what it began for this request is not found; ask again";
/// How long a call at another process may take to take its answer.
const SETTLED_WITHIN: Duration = Duration::from_secs(10);

/// What a client is told, in one stream or another.
type Told = Pin<Box<dyn Stream<Item = ServerSseMessage> + Send + Sync>>;

/// See the module.
#[derive(Debug)]
pub(super) struct Sessions {
    local: LocalSessionManager,
    backing: Arc<dyn Backing>,
    kept: Option<Arc<Kept>>,
    calls: Arc<Calls>,
    /// Which names of questions are this process's.
    process: String,
}

/// Why a message did not reach its session.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionsError {
    /// The session did not take it.
    #[error(transparent)]
    Local(#[from] LocalSessionManagerError),
    /// The call that asked is at another process, and did not take the answer.
    #[error("the answer was not taken: {0}")]
    NotSettled(String),
}

impl Sessions {
    pub(super) fn new(backing: Arc<dyn Backing>, calls: Arc<Calls>, kept: Option<Arc<Kept>>) -> Self {
        if let Some(kept) = &kept {
            calls.keep(kept.clone());
        }
        let mut local = LocalSessionManager::default();
        local.session_config.keep_alive = Some(SESSION_IDLE);
        // As unique as the session's own name.
        let process = rmcp::transport::common::server_side_http::session_id().to_string();
        Self { local, backing, kept, calls, process }
    }

    /// How many are open in this process.
    pub(super) async fn count(&self) -> usize {
        self.local.sessions.read().await.len()
    }

    /// Whether this process knows a session of this name.
    pub(super) async fn knows(&self, id: &str) -> bool {
        self.local.sessions.read().await.contains_key(id)
    }

    /// Whether there is a session of this name, in this process or for whoever goes on with it.
    pub(super) async fn has(&self, id: &str) -> bool {
        let is_kept = async {
            match &self.kept {
                Some(kept) => kept.client(id).await.is_some(),
                None => false,
            }
        };
        self.knows(id).await || is_kept.await
    }

    /// Gives a call that another process waits for what its person said.
    async fn settle(&self, session: &str, asking: &Asking, said: &Value) -> Result<(), SessionsError> {
        let client = match &self.kept {
            Some(kept) => kept.client(session).await,
            None => None,
        };
        let settling = async {
            let client = client.as_deref().unwrap_or("the client");
            let mut running = self.backing.join(&asking.handle, client).await?;
            loop {
                let wanted = match running.next().await {
                    // What was asked before this is answered too late.
                    Happened::Asked(question) if question.key != asking.key && asking.is_about_leave() => return Ok(()),
                    Happened::Asked(question) => Wanted::Approval(question),
                    Happened::Inquired(inquiry) => Wanted::Answer(inquiry),
                    // It was answered elsewhere, or is not needed any more.
                    Happened::Ended(_) => return Ok(()),
                    Happened::Progress(_) | Happened::Decided | Happened::Answered(_) => continue,
                };
                if wanted.key() == asking.key {
                    // The process that asked is another: nobody is asked again from here.
                    let told = Refusals::without_another().settle(wanted, &mut *running, said, &mut VecDeque::new()).await;
                    return told.map_err(Refused::Other);
                }
            }
        };
        match tokio::time::timeout(SETTLED_WITHIN, settling).await {
            Ok(settled) => settled.map_err(|refused: Refused| SessionsError::NotSettled(refused.to_string())),
            Err(_late) => Err(SessionsError::NotSettled("nothing is asked there".to_owned())),
        }
    }

    /// A client's message for the session of this process; `None` where it was for another's, and is dealt with.
    async fn own(
        &self,
        session: &str,
        mut message: ClientJsonRpcMessage,
    ) -> Result<Option<ClientJsonRpcMessage>, SessionsError> {
        let (id, said) = match &mut message {
            ClientJsonRpcMessage::Response(response) => (Some(&mut response.id), serde_json::to_value(&response.result).ok()),
            ClientJsonRpcMessage::Error(error) => (error.id.as_mut(), None),
            ClientJsonRpcMessage::Notification(notice) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notice.notification
                    && let Some(request) = &cancelled.params.request_id
                {
                    self.calls.cancel(session, request).await;
                }
                return Ok(Some(message));
            }
            ClientJsonRpcMessage::Request(_) => return Ok(Some(message)),
        };
        let Some(RequestId::String(text)) = id.as_deref() else { return Ok(Some(message)) };
        let Some(Name { process, number, asking }) = Name::read(text) else { return Ok(Some(message)) };
        if process == self.process {
            if let Some(id) = id {
                *id = RequestId::Number(number);
            }
            return Ok(Some(message));
        }
        if let Some(asking) = asking {
            self.settle(session, &asking, &said.unwrap_or_default()).await?;
        }
        Ok(None)
    }

    /// The stream with names that say where they belong; `asked` is the request that it answers, where it is of one.
    fn named<S>(&self, stream: S, asked: Option<Asked>) -> impl Stream<Item = ServerSseMessage> + Send + Sync + 'static + use<S>
    where
        S: Stream<Item = ServerSseMessage> + Send + Sync + 'static,
    {
        let process = self.process.clone();
        stream.map(move |message| {
            let mut told = named(message, &process);
            if let Some(asked) = &asked {
                told.event_id = told.event_id.map(|event| asked.name(&event));
            }
            told
        })
    }

    /// What `message` asks this process, where another could find the answer.
    fn asked(&self, message: &ClientJsonRpcMessage) -> Option<Asked> {
        Asked::of(message, &self.process, self.kept.as_ref()?.now_ms())
    }

    /// The request by which the answer to one is found that another process was asked: it joins the call, and begins none.
    async fn lost(&self, session: &str, asked: &Asked) -> Option<ClientJsonRpcMessage> {
        let client = self.kept.as_ref()?.client(session).await?;
        let (handle, call) = self.backing.lost(&client, asked.call.as_deref()?, asked.at_ms).await?;
        let mut params = CallToolRequestParams::new(call.tool).with_arguments(call.arguments);
        params.request_state = Some(handle);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        Some(ClientJsonRpcMessage::request(request, asked.request.clone()))
    }
}

impl SessionManager for Sessions {
    type Error = SessionsError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        Ok(self.local.create_session().await?)
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        Ok(self.local.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        let has = self.local.has_session(id).await?;
        if let Some(kept) = self.kept.as_ref().filter(|_| has) {
            kept.is_used(id).await;
        }
        Ok(has)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        if let Some(kept) = &self.kept {
            kept.forget(id);
        }
        Ok(self.local.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let asked = self.asked(&message);
        Ok(self.named(self.local.create_stream(id, message).await?, asked))
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        match self.own(id, message).await? {
            Some(message) => Ok(self.local.accept_message(id, message).await?),
            None => Ok(()),
        }
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(self.named(self.local.create_standalone_stream(id).await?, None))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let Some((event, asked)) = Asked::read(&last_event_id) else {
            return Ok(Box::pin(self.named(self.local.resume(id, last_event_id).await?, None)) as Told);
        };
        if asked.process == self.process {
            return Ok(Box::pin(self.named(self.local.resume(id, event.to_owned()).await?, Some(asked))));
        }
        if let Some(message) = self.lost(id, &asked).await {
            let again = self.asked(&message).map(|again| Asked { at_ms: asked.at_ms, ..again });
            Ok(Box::pin(self.named(self.local.create_stream(id, message).await?, again)))
        } else {
            let error = ServerJsonRpcMessage::error(ErrorData::internal_error(LOST, None), Some(asked.request));
            Ok(Box::pin(futures_util::stream::iter([ServerSseMessage::from_message(error)])))
        }
    }

    async fn restore_session(&self, id: SessionId) -> Result<RestoreOutcome<Self::Transport>, Self::Error> {
        Ok(self.local.restore_session(id).await?)
    }
}
