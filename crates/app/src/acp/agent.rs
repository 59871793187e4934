//! What a client asks of the agent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, CancelNotification, Implementation, InitializeRequest, InitializeResponse, ListSessionsRequest,
    ListSessionsResponse, LoadSessionRequest, LoadSessionResponse, NewSessionRequest, NewSessionResponse, PromptCapabilities,
    PromptRequest, PromptResponse, SessionCapabilities, SessionId, SessionInfo, SessionListCapabilities, SessionMode,
    SessionModeState, SessionNotification, SetSessionModeRequest, SetSessionModeResponse, StopReason,
};
use agent_client_protocol::{Agent, Client, Error, ErrorCode, Stdio};
use turnwright_core::{ApproveMode, ConversationId};
use turnwright_engine::{Engine, NewConversation, WatchFrom};
use turnwright_server::timestamp;

use super::prompting::{Prompting, failed};
use super::started::{Started, start_hosts};
use super::updates::Updates;
use crate::cli::Everywhere;

/// How many sessions a list shows.
const LISTED: usize = 100;

/// The approve modes as the protocol's session modes.
const MODES: [(&str, &str, &str, ApproveMode); 3] = [
    ("ask", "Ask", "Asks before a call that is not declared read-only", ApproveMode::Ask),
    ("read-only", "Read only", "Runs what is declared read-only, denies the rest", ApproveMode::ReadOnly),
    ("all", "Everything", "Runs every call that no rule denies", ApproveMode::All),
];

/// The agent: one host, and what clients chose for their sessions.
#[derive(Debug)]
struct Turnwright {
    started: Started,
    modes: Mutex<HashMap<SessionId, ApproveMode>>,
}

/// Serves the client at standard input and output until it goes away.
pub(crate) async fn serve(everywhere: &Everywhere) -> Result<(), Error> {
    let (started, wished) = Started::new();
    let agent = Arc::new(Turnwright { started, modes: Mutex::default() });
    let (creating, loading, listing) = (agent.clone(), agent.clone(), agent.clone());
    let (choosing, prompting, stopping, ending) = (agent.clone(), agent.clone(), agent.clone(), agent);
    // What takes long is spawned: the connection reads the next message only once a handler is done.
    let connection = Agent
        .v1()
        .name("turnwright")
        .on_receive_request(
            async move |request: InitializeRequest, responder, _cx: ConnectionTo<Client>| {
                responder.respond(
                    InitializeResponse::new(request.protocol_version).agent_capabilities(capabilities()).agent_info(
                        Implementation::new("turnwright", env!("CARGO_PKG_VERSION")).title("Turnwright".to_owned()),
                    ),
                )
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: NewSessionRequest, responder, cx: ConnectionTo<Client>| {
                let agent = creating.clone();
                cx.spawn(async move { responder.respond_with_result(agent.create(request).await) })
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: LoadSessionRequest, responder, cx: ConnectionTo<Client>| {
                let (agent, client) = (loading.clone(), cx.clone());
                cx.spawn(async move { responder.respond_with_result(agent.load(request, &client).await) })
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |_request: ListSessionsRequest, responder, cx: ConnectionTo<Client>| {
                let agent = listing.clone();
                cx.spawn(async move { responder.respond_with_result(agent.list().await) })
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: SetSessionModeRequest, responder, _cx: ConnectionTo<Client>| {
                responder.respond_with_result(choosing.choose(&request))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: PromptRequest, responder, cx: ConnectionTo<Client>| {
                let (agent, client) = (prompting.clone(), cx.clone());
                cx.spawn(
                    async move { responder.respond_with_result(agent.prompt(request, client).await.map(PromptResponse::new)) },
                )
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_notification(
            async move |stop: CancelNotification, cx: ConnectionTo<Client>| {
                let agent = stopping.clone();
                cx.spawn(async move {
                    agent.cancel(&stop.session_id).await;
                    Ok(())
                })
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .connect_to(Stdio::new());
    let served = tokio::select! {
        served = connection => served,
        () = start_hosts(everywhere, wished) => Ok(()),
    };
    ending.started.end().await;
    served
}

fn capabilities() -> AgentCapabilities {
    AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(PromptCapabilities::new().image(true).embedded_context(true))
        .session_capabilities(SessionCapabilities::new().list(SessionListCapabilities::default()))
}

impl Turnwright {
    async fn create(&self, request: NewSessionRequest) -> Result<NewSessionResponse, Error> {
        let engine = self.started.in_folder(&request.cwd, &request.mcp_servers).await?;
        let made = engine.create(NewConversation::default()).await.map_err(|error| failed(&error))?;
        let session = SessionId::new(made.id.to_string());
        let modes = self.modes_of(&session, &engine);
        Ok(NewSessionResponse::new(session).modes(modes))
    }

    async fn load(&self, request: LoadSessionRequest, client: &ConnectionTo<Client>) -> Result<LoadSessionResponse, Error> {
        let engine = self.started.in_folder(&request.cwd, &request.mcp_servers).await?;
        let conversation = name(&request.session_id)?;
        let mut watch = engine.watch(&conversation, WatchFrom::After(None)).await.map_err(|error| failed(&error))?;
        let mut told = Vec::new();
        if let Some(frame) = watch.next().await {
            let mut updates = Updates::replaying(&request.cwd);
            for event in frame.events.iter() {
                updates.fold(event, &mut told);
            }
        }
        for update in told {
            client.send_notification(SessionNotification::new(request.session_id.clone(), update))?;
        }
        Ok(LoadSessionResponse::new().modes(self.modes_of(&request.session_id, &engine)))
    }

    async fn list(&self) -> Result<ListSessionsResponse, Error> {
        let Ok((engine, folder)) = self.started.begun().await else { return Ok(ListSessionsResponse::new(Vec::new())) };
        let all = engine.conversations(None, LISTED).await.map_err(|error| failed(&error))?;
        let told = all.into_iter().map(|conversation| {
            SessionInfo::new(conversation.id.to_string(), &folder)
                .title(conversation.title)
                .updated_at(timestamp(conversation.updated_at_ms))
        });
        Ok(ListSessionsResponse::new(told.collect()))
    }

    fn choose(&self, request: &SetSessionModeRequest) -> Result<SetSessionModeResponse, Error> {
        let wanted = request.mode_id.to_string();
        let Some((.., mode)) = MODES.iter().find(|(id, ..)| *id == wanted) else {
            let known = MODES.map(|(id, ..)| id).join(", ");
            return Err(Error::new(ErrorCode::INVALID_PARAMS, format!("there is no mode `{wanted}`; there are {known}")));
        };
        self.modes.lock().unwrap_or_else(PoisonError::into_inner).insert(request.session_id.clone(), *mode);
        Ok(SetSessionModeResponse::new())
    }

    async fn prompt(&self, request: PromptRequest, client: ConnectionTo<Client>) -> Result<StopReason, Error> {
        let (engine, folder) = self.started.begun().await?;
        let conversation = name(&request.session_id)?;
        let approve = self.mode(&request.session_id, &engine);
        let prompting =
            Prompting { engine: &engine, folder: &folder, session: request.session_id, conversation, approve, client };
        prompting.run(request.prompt).await
    }

    async fn cancel(&self, session: &SessionId) {
        let (Ok((engine, _)), Ok(conversation)) = (self.started.begun().await, name(session)) else { return };
        // One that is over already needs no stop.
        if let Err(error) = engine.cancel(&conversation, None).await {
            tracing::debug!(%error, "nothing to stop");
        }
    }

    fn mode(&self, session: &SessionId, engine: &Engine) -> ApproveMode {
        let chosen = self.modes.lock().unwrap_or_else(PoisonError::into_inner).get(session).copied();
        chosen.unwrap_or(engine.defaults().approve)
    }

    fn modes_of(&self, session: &SessionId, engine: &Engine) -> SessionModeState {
        let current = self.mode(session, engine);
        // Where nothing runs at all, that is what reading alone comes closest to.
        let current = MODES.iter().find(|(.., mode)| *mode == current).map_or("read-only", |(id, ..)| id);
        let all = MODES.map(|(id, name, what, _)| SessionMode::new(id, name).description(what.to_owned()));
        SessionModeState::new(current, all.to_vec())
    }
}

fn name(session: &SessionId) -> Result<ConversationId, Error> {
    let named = session.to_string().parse::<ConversationId>();
    named.map_err(|error| Error::new(ErrorCode::INVALID_PARAMS, format!("the session's id is wrong: {error}")))
}
