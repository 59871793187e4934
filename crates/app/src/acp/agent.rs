//! What a client asks of the agent.

use std::io::{BufReader, stdin, stdout};
use std::sync::Arc;

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, CancelNotification, CloseSessionRequest, CloseSessionResponse, DeleteSessionRequest,
    DeleteSessionResponse, Implementation, InitializeRequest, InitializeResponse, ListSessionsRequest, ListSessionsResponse,
    LoadSessionRequest, LoadSessionResponse, McpCapabilities, NewSessionRequest, NewSessionResponse, PromptCapabilities,
    PromptRequest, PromptResponse, ResumeSessionRequest, ResumeSessionResponse, SessionCapabilities, SessionCloseCapabilities,
    SessionConfigOption, SessionDeleteCapabilities, SessionId, SessionInfo, SessionListCapabilities, SessionModeState,
    SessionNotification, SessionResumeCapabilities, SetSessionConfigOptionRequest, SetSessionConfigOptionResponse,
    SetSessionModeRequest, SetSessionModeResponse,
};
use agent_client_protocol::{Agent, ByteStreams, Client, Error, ErrorCode};
use blocking::Unblock;
use turnwright_core::{ConversationId, Journal};
use turnwright_engine::{Engine, EngineError, NewConversation, Place, WatchFrom};
use turnwright_server::timestamp;

use super::choices::{Choices, Session};
use super::in_hand::{InHand, Prompted};
use super::input::Input;
use super::prompting::{Prompting, failed};
use super::sessions::{Open, Sessions, Telling};
use super::started::{Started, start_hosts};
use super::updates::Updates;
use crate::cli::Everywhere;

/// How many sessions a page of the list shows.
const LISTED: usize = 100;

/// The agent: one host, and what is told of its sessions.
#[derive(Debug)]
struct Turnwright {
    started: Started,
    choices: Choices,
    in_hand: InHand,
    sessions: Sessions,
}

/// Serves the client at standard input and output until it goes away.
pub(crate) async fn serve(everywhere: &Everywhere) -> Result<(), Error> {
    let (started, wished) = Started::new();
    let (choices, in_hand, sessions) = <(Choices, InHand, Sessions)>::default();
    let agent = Arc::new(Turnwright { started, choices, in_hand, sessions });
    let [creating, loading, listing, choosing, setting, resuming, closing, deleting, prompting, stopping, ending] =
        std::array::from_fn(|_| agent.clone());
    // What takes long is spawned: the connection reads the next message only once a handler is done.
    let connection = Agent
        .v1()
        .name("turnwright")
        .on_receive_request(
            async move |request: InitializeRequest, responder, _cx: ConnectionTo<Client>| {
                responder.respond(introduced(&request))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: NewSessionRequest, responder, cx: ConnectionTo<Client>| {
                let (agent, client) = (creating.clone(), cx.clone());
                cx.spawn(async move { responder.respond_with_result(agent.create(request, client).await) })
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: LoadSessionRequest, responder, cx: ConnectionTo<Client>| {
                let (agent, client) = (loading.clone(), cx.clone());
                cx.spawn(async move { responder.respond_with_result(agent.load(request, client).await) })
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ListSessionsRequest, responder, cx: ConnectionTo<Client>| {
                let agent = listing.clone();
                cx.spawn(async move { responder.respond_with_result(agent.list(&request).await) })
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: SetSessionModeRequest, responder, cx: ConnectionTo<Client>| {
                let agent = choosing.clone();
                cx.spawn(async move { responder.respond_with_result(agent.choose_mode(&request).await) })
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: SetSessionConfigOptionRequest, responder, cx: ConnectionTo<Client>| {
                let agent = setting.clone();
                cx.spawn(async move { responder.respond_with_result(agent.choose(&request).await) })
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ResumeSessionRequest, responder, cx: ConnectionTo<Client>| {
                let (agent, client) = (resuming.clone(), cx.clone());
                cx.spawn(async move { responder.respond_with_result(agent.resume(request, client).await) })
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: CloseSessionRequest, responder, cx: ConnectionTo<Client>| {
                let agent = closing.clone();
                cx.spawn(async move { responder.respond(agent.close(&request.session_id).await) })
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: DeleteSessionRequest, responder, cx: ConnectionTo<Client>| {
                let agent = deleting.clone();
                cx.spawn(async move { responder.respond_with_result(agent.delete(&request.session_id).await) })
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: PromptRequest, responder, cx: ConnectionTo<Client>| {
                // Before the next message is read, which may stop it.
                let prompted = prompting.in_hand.begin(&request.session_id);
                let (agent, client) = (prompting.clone(), cx.clone());
                cx.spawn(async move { responder.respond_with_result(agent.prompt(request, client, prompted).await) })
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_notification(
            async move |stop: CancelNotification, cx: ConnectionTo<Client>| {
                let agent = stopping.clone();
                // Before the next message is read: a prompt that comes after it goes on.
                if agent.in_hand.stop(&stop.session_id) {
                    return Ok(());
                }
                cx.spawn(async move {
                    agent.cancel(&stop.session_id).await;
                    Ok(())
                })
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .connect_to(ByteStreams::new(Unblock::new(stdout()), Unblock::new(Input::new(BufReader::new(stdin())))));
    let served = tokio::select! {
        served = connection => served,
        () = start_hosts(everywhere, wished) => Ok(()),
    };
    Box::pin(ending.started.end()).await;
    served
}

fn introduced(request: &InitializeRequest) -> InitializeResponse {
    let this = Implementation::new("turnwright", env!("CARGO_PKG_VERSION")).title("Turnwright".to_owned());
    InitializeResponse::new(request.protocol_version).agent_capabilities(capabilities()).agent_info(this)
}

fn capabilities() -> AgentCapabilities {
    AgentCapabilities::new()
        .load_session(true)
        .mcp_capabilities(McpCapabilities::new().http(true))
        .prompt_capabilities(PromptCapabilities::new().image(true).embedded_context(true))
        .session_capabilities(
            SessionCapabilities::new()
                .list(SessionListCapabilities::default())
                .resume(SessionResumeCapabilities::default())
                .close(SessionCloseCapabilities::default())
                .delete(SessionDeleteCapabilities::default()),
        )
}

impl Turnwright {
    async fn create(&self, request: NewSessionRequest, client: ConnectionTo<Client>) -> Result<NewSessionResponse, Error> {
        let engine = self.started.in_folder(&request.cwd, &request.mcp_servers).await?;
        let made = engine.create(NewConversation::default()).await.map_err(|error| failed(&error))?;
        let session = SessionId::new(made.id.to_string());
        let conversation = made.id.clone();
        self.open(Telling { engine: engine.clone(), conversation: made.id, session: session.clone(), client }).await?;
        let (modes, options) = self.chosen(&session, engine, conversation).await?;
        Ok(NewSessionResponse::new(session).modes(modes).config_options(options))
    }

    async fn load(&self, request: LoadSessionRequest, client: ConnectionTo<Client>) -> Result<LoadSessionResponse, Error> {
        let engine = self.started.in_folder(&request.cwd, &request.mcp_servers).await?;
        let conversation = name(&request.session_id)?;
        let journal = engine.journal(&conversation).await.map_err(|error| failed(&error))?;
        let session = request.session_id;
        // It is told once.
        self.sessions.close(&session);
        let mut watch = engine.watch(&conversation, WatchFrom::After(None)).await.map_err(|error| failed(&error))?;
        let mut updates = Updates::replaying(&request.cwd, &journal);
        // Where nothing was said there is no first frame either: it would be waited for.
        let first = if journal.last_seq().is_some() { watch.next().await } else { None };
        let mut told = Vec::new();
        for event in first.iter().flat_map(|frame| frame.events.iter()) {
            updates.fold(event, &mut told);
        }
        for update in told {
            client.send_notification(SessionNotification::new(session.clone(), update))?;
        }
        let telling = Telling { engine: engine.clone(), conversation: conversation.clone(), session: session.clone(), client };
        self.sessions.open(telling, watch, updates, first.and_then(|frame| frame.seq))?;
        let (modes, options) = self.chosen(&session, engine, conversation).await?;
        Ok(LoadSessionResponse::new().modes(modes).config_options(options))
    }

    /// A page of the sessions, the one with the newest entry first. The cursor is the place of the last one of the page before.
    async fn list(&self, request: &ListSessionsRequest) -> Result<ListSessionsResponse, Error> {
        let nothing = || Ok(ListSessionsResponse::new(Vec::new()));
        let Ok((engine, folder)) = self.started.begun().await else { return nothing() };
        // All are shown as sessions of the one folder.
        if request.cwd.as_ref().is_some_and(|wanted| *wanted != folder) {
            return nothing();
        }
        let after = request.cursor.as_deref().map(str::parse::<Place>).transpose();
        let after = after.map_err(|error| Error::new(ErrorCode::INVALID_PARAMS, format!("the cursor is wrong: {error}")))?;
        // One more than is shown says whether there are more.
        let found = engine.conversations(after.as_ref(), LISTED + 1).await;
        let mut page = found.map_err(|error| failed(&error))?;
        let has_more = page.len() > LISTED;
        page.truncate(LISTED);
        let next = page.last().filter(|_| has_more).map(|last| last.place().to_string());
        let told = page.into_iter().map(|conversation| {
            SessionInfo::new(conversation.id.to_string(), &folder)
                .title(conversation.title)
                .updated_at(timestamp(conversation.updated_at_ms))
        });
        Ok(ListSessionsResponse::new(told.collect()).next_cursor(next))
    }

    async fn choose_mode(&self, request: &SetSessionModeRequest) -> Result<SetSessionModeResponse, Error> {
        let session = self.session(&request.session_id).await?;
        self.choices.choose_mode(request, &session).await?;
        Ok(SetSessionModeResponse::new())
    }

    async fn session(&self, session: &SessionId) -> Result<Session, Error> {
        let (engine, _) = self.started.begun().await?;
        Ok(Session { engine, conversation: name(session)? })
    }

    /// What is chosen for a session's conversation.
    async fn chosen(
        &self,
        session: &SessionId,
        engine: Engine,
        conversation: ConversationId,
    ) -> Result<(SessionModeState, Vec<SessionConfigOption>), Error> {
        let of = Session { engine, conversation };
        Ok((self.choices.modes(session, &of).await?, self.choices.options(session, &of).await?))
    }

    async fn choose(&self, request: &SetSessionConfigOptionRequest) -> Result<SetSessionConfigOptionResponse, Error> {
        let session = self.session(&request.session_id).await?;
        Choices::choose_option(request, &session).await?;
        Ok(SetSessionConfigOptionResponse::new(self.choices.options(&request.session_id, &session).await?))
    }

    /// Goes on with a session without telling what was said: the client has it.
    async fn resume(
        &self,
        request: ResumeSessionRequest,
        client: ConnectionTo<Client>,
    ) -> Result<ResumeSessionResponse, Error> {
        let engine = self.started.in_folder(&request.cwd, &request.mcp_servers).await?;
        let session = request.session_id;
        let conversation = name(&session)?;
        engine.conversation(&conversation).await.map_err(|error| failed(&error))?;
        let (telling, of) = (conversation.clone(), session.clone());
        self.open(Telling { engine: engine.clone(), conversation: telling, session: of, client }).await?;
        let (modes, options) = self.chosen(&session, engine, conversation).await?;
        Ok(ResumeSessionResponse::new().modes(modes).config_options(options))
    }

    /// Stops what runs in a session; its conversation stays.
    async fn close(&self, session: &SessionId) -> CloseSessionResponse {
        self.in_hand.stop(session);
        self.cancel(session).await;
        self.sessions.close(session);
        self.choices.forget(session);
        CloseSessionResponse::new()
    }

    async fn delete(&self, session: &SessionId) -> Result<DeleteSessionResponse, Error> {
        let (engine, _) = self.started.begun().await?;
        match engine.delete(&name(session)?).await {
            // What is not there need not be deleted.
            Ok(()) | Err(EngineError::NotFound { .. }) => {}
            Err(error) => return Err(failed(&error)),
        }
        self.in_hand.stop(session);
        self.sessions.close(session);
        self.choices.forget(session);
        Ok(DeleteSessionResponse::new())
    }

    async fn prompt(
        &self,
        request: PromptRequest,
        client: ConnectionTo<Client>,
        prompted: Prompted,
    ) -> Result<PromptResponse, Error> {
        let (engine, folder) = self.started.begun().await?;
        let conversation = name(&request.session_id)?;
        let open = if let Some(open) = self.sessions.get(&request.session_id) {
            open
        } else {
            let (conversation, session) = (conversation.clone(), request.session_id.clone());
            self.open(Telling { engine: engine.clone(), conversation, session, client: client.clone() }).await?
        };
        let of = Session { engine: engine.clone(), conversation: conversation.clone() };
        for update in self.choices.changes(&request.session_id, &of).await? {
            client.send_notification(SessionNotification::new(request.session_id.clone(), update))?;
        }
        let prompting =
            Prompting { engine: &engine, folder: &folder, session: request.session_id, conversation, client, prompted, open };
        prompting.run(request.prompt).await
    }

    /// Tells a session what happens from here on.
    async fn open(&self, telling: Telling) -> Result<Arc<Open>, Error> {
        let (engine, conversation) = (&telling.engine, &telling.conversation);
        let (_, folder) = self.started.begun().await?;
        let look = |journal: &Journal| (journal.offered().clone(), journal.last_seq());
        let (offered, last) = engine.look(conversation, look).await.map_err(|error| failed(&error))?;
        let watch = engine.watch(conversation, WatchFrom::Now).await.map_err(|error| failed(&error))?;
        self.sessions.open(telling, watch, Updates::new(&folder, offered), last)
    }

    async fn cancel(&self, session: &SessionId) {
        let (Ok((engine, _)), Ok(conversation)) = (self.started.begun().await, name(session)) else { return };
        // One that is over already needs no stop.
        if let Err(error) = engine.cancel(&conversation, None).await {
            tracing::debug!(%error, "nothing to stop");
        }
    }
}

fn name(session: &SessionId) -> Result<ConversationId, Error> {
    let named = session.to_string().parse::<ConversationId>();
    named.map_err(|error| Error::new(ErrorCode::INVALID_PARAMS, format!("the session's id is wrong: {error}")))
}
