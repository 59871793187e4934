//! Calls of MCP clients as turns of the engine.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Map;
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use turnwright_core::{ApproveMode, ConversationId, DriverId, Entry, Seq, ToolDefinition, TurnId};
use turnwright_engine::{
    Conversation, Documents, Engine, EngineError, KeptBy, NewConversation, NewMessage, OnWaiting, SentState, SettingsOverlay,
    Watch, WatchFrom,
};
use turnwright_mcp::serve::{Backing, OfferedCall, OfferedTool, Refused, RunningCall};

use super::McpServing;
use super::caller;
use super::earlier::{Earlier, State, earlier, since};
use super::pool::Slot;
use super::running::Running;
use super::shared::{Attending, Shared, Telling};

/// How often it is looked whether another process changed what there is, once a client wants to know. What this one
/// changes is told at once.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// The steps of a call's turn: asking for it and being content, and one more so that the second is not the last that it may have.
const STEPS: u32 = 3;
/// How many of the user's newest conversations are looked through for a call that was begun before.
const MAX_LOOKED_AT: usize = 200;
/// How long it is the same call that comes again, and not the next one, once it has its result.
const SAME_FOR: Duration = Duration::from_hours(24);
/// What a renewal of a lease takes that was under way.
const RENEWAL: Duration = Duration::from_millis(300);
/// How often it is looked again whether such a node lives.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// How long after its end a call comes again whose process was killed in the moment between the end and the answer.
const AGAIN_WITHIN: Duration = Duration::from_mins(10);

/// What came of looking for a call that was begun before.
enum Sought {
    /// Its handle and its message.
    Found(String, String),
    /// Another node has it and looks alive, which it also does for a while once it was killed.
    Unclear,
    Nothing,
}

impl Sought {
    fn found(self) -> Option<(String, String)> {
        match self {
            Self::Found(handle, message) => Some((handle, message)),
            Self::Unclear | Self::Nothing => None,
        }
    }
}

/// Whether a client has the result of its call.
enum Told {
    Yes,
    No,
    /// A node that looks alive told it, or was killed just now.
    Unclear,
}

/// Who waits for the open call of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiter {
    Nobody,
    /// A client of this process.
    Here,
    /// A client of another node, where that lives.
    There,
}

/// See the module.
#[derive(Debug)]
pub(super) struct EngineBacking {
    engine: Engine,
    kept_by: KeptBy,
    approve: Option<ApproveMode>,
    unqualified: Option<String>,
    shared: Arc<Shared>,
    changes: OnceLock<watch::Sender<u64>>,
}

impl EngineBacking {
    pub(super) fn new(engine: Engine, kept_by: KeptBy, serving: McpServing, documents: Arc<dyn Documents>) -> Self {
        let McpServing { approve, unqualified, questions, command_flags } = serving;
        let shared = Arc::new(Shared::new(questions, documents, command_flags));
        Self { engine, kept_by, approve, unqualified, shared, changes: OnceLock::new() }
    }

    /// Ends what runs beside the calls. What waits for a person stays stored.
    pub(super) async fn end(&self) {
        self.shared.stop.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
        self.shared.tellings.close();
        self.shared.tellings.wait().await;
    }

    /// A tool under the name by which clients call it.
    fn offered(&self, tool: Arc<ToolDefinition>) -> Arc<ToolDefinition> {
        if self.unqualified.as_ref() == Some(&tool.source) {
            Arc::new(ToolDefinition { name: tool.tool.clone(), ..(*tool).clone() })
        } else {
            tool
        }
    }

    /// The qualified name of the tool that clients call `name`.
    async fn qualified(&self, name: &str) -> Result<String, Refused> {
        let find = |tools: Vec<Arc<ToolDefinition>>| {
            let qualified = |tool: &Arc<ToolDefinition>| tool.name.clone();
            tools.iter().find(|tool| self.offered(Arc::clone(tool)).name == name).map(qualified)
        };
        // Another process may have taken it away.
        self.engine.refresh_sources().await;
        match find(self.engine.tools_now()) {
            Some(found) => Ok(found),
            // It may belong to a source that is only just starting.
            None => find(self.engine.tools().await).ok_or_else(|| Refused::NoSuchTool(name.to_owned())),
        }
    }

    /// A conversation without an open turn, and its last entry.
    async fn free(&self, client: &str) -> Result<(Slot, Option<Seq>), EngineError> {
        while let Some(slot) = self.shared.pool.take(client) {
            let look = |journal: &turnwright_core::Journal| (journal.open_turn().is_none(), journal.last_seq());
            match self.engine.look(&slot.conversation, look).await {
                Ok((true, last)) => return Ok((slot, last)),
                // Somebody else uses it, or deleted it.
                Ok((false, _)) | Err(EngineError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let (id, title) = (Some(new_id(client)?), Some(title(client)));
        let new = self.engine.create(NewConversation { id, title, ..NewConversation::default() }).await?;
        Ok((Slot { conversation: new.id, calls: 0 }, None))
    }

    async fn send(&self, call: &OfferedCall, qualified: &str) -> Result<Running, EngineError> {
        let (slot, after) = self.free(&call.client).await?;
        // From before it begins: nobody else of this process takes it for one that was left.
        let attending = self.shared.attend(&slot.conversation);
        let overlay = SettingsOverlay {
            model: Some(caller::model()),
            approve: self.approve,
            max_steps: Some(STEPS),
            ..SettingsOverlay::default()
        };
        let message = NewMessage {
            overlay,
            on_waiting: OnWaiting::Hold,
            kept_by: self.kept_by,
            ..NewMessage::text(caller::message(qualified, &call.arguments))
        };
        // From before it begins: how far a call is, is told once.
        let watch = self.engine.watch(&slot.conversation, WatchFrom::After(after)).await?;
        let sent = self.engine.send(&slot.conversation, message).await?;
        if sent.state != SentState::Started {
            return Err(EngineError::Invalid { what: format!("conversation `{}` is in use", slot.conversation) });
        }
        let running = self.running(call, (slot.conversation.clone(), sent.turn_id), (watch, after), Some(attending));
        Ok(running.giving_back(slot))
    }

    /// Begins a call, whether or not the same was begun before.
    pub(super) async fn begin_anew(&self, call: &OfferedCall) -> Result<Box<dyn RunningCall>, Refused> {
        let qualified = self.qualified(&call.tool).await?;
        Ok(Box::new(self.send(call, &qualified).await.map_err(|error| not_called(call, &error))?))
    }

    /// The same call, where this client asked for it before and may not know what came of it.
    async fn earlier(&self, client: &str, is: impl Fn(&str) -> bool + Send + Sync) -> Result<Sought, EngineError> {
        let (mut ended, own) = (None, self.engine.driver());
        let mut is_unclear = false;
        for conversation in self.conversations_of(client).await? {
            let Conversation { id, updated_at_ms, created_at_ms, .. } = conversation;
            if self.shared.quiet.is(&id, updated_at_ms) {
                continue;
            }
            let found = match self.engine.look(&id, earlier).await {
                Ok(found) => found,
                Err(EngineError::NotFound { .. }) => continue,
                // It cannot be read the next time either.
                Err(EngineError::Store(error)) if error.is_of_what_is_stored() => continue,
                Err(error) => return Err(error),
            };
            let is_just_now = self.is_within(AGAIN_WITHIN, updated_at_ms);
            if found.iter().all(|found| matches!(&found.state, State::EndedAlone(driver) if driver == own || !is_just_now)) {
                self.shared.quiet.note(id, updated_at_ms);
                continue;
            }
            // What is older than its conversation came with a copy.
            for found in found.iter().filter(|found| found.at_ms >= created_at_ms && is(&found.message)) {
                let is_it = match &found.state {
                    State::Unknown => true,
                    State::Open(driver) => match self.waiter(&id, found.turn, driver.as_ref()).await? {
                        Waiter::Nobody => true,
                        Waiter::Here => false,
                        Waiter::There => {
                            is_unclear |= !self.only_reads(&found.message);
                            false
                        }
                    },
                    State::Ended | State::EndedAlone(_) => {
                        if ended.is_none() && self.may_be_untold(found, updated_at_ms) {
                            match self.told(&id, found).await? {
                                Told::Yes => {}
                                Told::No => ended = Some(Sought::Found(handle(&id, found.turn), found.message.clone())),
                                Told::Unclear => is_unclear |= !self.only_reads(&found.message),
                            }
                        }
                        false
                    }
                };
                if is_it {
                    return Ok(Sought::Found(handle(&id, found.turn), found.message.clone()));
                }
            }
        }
        let is_unclear = is_unclear && self.engine.goes_by_leases();
        Ok(ended.unwrap_or(if is_unclear { Sought::Unclear } else { Sought::Nothing }))
    }

    /// Whether it matters if the client of a call that has its result was told it.
    fn may_be_untold(&self, found: &Earlier, updated_at_ms: u64) -> bool {
        match &found.state {
            State::EndedAlone(driver) => {
                driver != self.engine.driver()
                    && self.is_within(AGAIN_WITHIN, updated_at_ms)
                    && !self.only_reads(&found.message)
            }
            State::Ended => self.is_within(SAME_FOR, updated_at_ms),
            State::Unknown | State::Open(_) => false,
        }
    }

    /// Whether the client of a call that has its result was told it.
    async fn told(&self, conversation: &ConversationId, found: &Earlier) -> Result<Told, EngineError> {
        let teller = match (self.shared.telling(conversation, found.turn).await?, &found.state) {
            (Telling::Done, _) => return Ok(Told::Yes),
            (Telling::By(driver), _) => driver,
            // Told at once, unless its process was killed then.
            (Telling::Not, State::EndedAlone(driver)) => driver.clone(),
            (Telling::Not, State::Unknown | State::Open(_) | State::Ended) => return Ok(Told::No),
        };
        Ok(match teller {
            own if own == *self.engine.driver() => Told::Yes,
            other if self.engine.lives(&other).await? => Told::Unclear,
            _ => Told::No,
        })
    }

    /// Whether a message asks for a tool that changes nothing.
    fn only_reads(&self, message: &str) -> bool {
        let tool = caller::asked_in(message).map(|(tool, _)| tool);
        self.engine.tools_now().iter().any(|known| Some(known.name.as_str()) == tool && known.declared.read_only)
    }

    /// The handle and the message of the first call that a client asked for after this time, else of one that was not told.
    async fn lost_call(
        &self,
        client: &str,
        is: impl Fn(&str) -> bool + Send + Sync,
        since_ms: u64,
    ) -> Result<Option<(String, String)>, EngineError> {
        let mut first: Option<(u64, (String, String))> = None;
        for conversation in self.conversations_of(client).await? {
            let Ok(found) = self.engine.look(&conversation.id, |journal| since(journal, since_ms)).await else { continue };
            for (turn, at_ms, message) in found.into_iter().filter(|(_, _, message)| is(message)) {
                if first.as_ref().is_none_or(|(known_ms, _)| at_ms < *known_ms) {
                    first = Some((at_ms, (handle(&conversation.id, turn), message)));
                }
            }
        }
        match first {
            Some((_, found)) => Ok(Some(found)),
            None => Ok(self.earlier(client, is).await?.found()),
        }
    }

    /// Where this client's calls are: what waits, however old, and what happened lately.
    async fn conversations_of(&self, client: &str) -> Result<Vec<Conversation>, EngineError> {
        let (prefix, title) = (id_prefix(client), Some(title(client)));
        let mut found = Vec::new();
        for waiting in self.engine.all_waiting().await? {
            if found.iter().any(|known: &Conversation| known.id == waiting.conversation) {
                continue;
            }
            match self.engine.conversation(&waiting.conversation).await {
                Ok(conversation) => found.push(conversation),
                Err(EngineError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let newest = self.engine.conversations(None, MAX_LOOKED_AT).await?;
        let newest = newest.into_iter().filter(|conversation| self.is_within(SAME_FOR, conversation.updated_at_ms));
        let newest: Vec<_> = newest.filter(|new| found.iter().all(|known| known.id != new.id)).collect();
        found.extend(newest);
        // Whoever renames one changes nothing about whose it is; those of older versions are known by their titles alone.
        found.retain(|conversation| conversation.id.as_str().starts_with(&prefix) || conversation.title == title);
        Ok(found)
    }

    fn is_within(&self, time: Duration, at_ms: u64) -> bool {
        Duration::from_millis(self.engine.clock().now_ms().saturating_sub(at_ms)) < time
    }

    /// Who waits for the open call of a conversation, which this driver had last. Where nobody does, somebody does here from now on.
    async fn waiter(
        &self,
        conversation: &ConversationId,
        turn: TurnId,
        driver: Option<&DriverId>,
    ) -> Result<Waiter, EngineError> {
        if self.shared.is_attended(conversation) {
            return Ok(Waiter::Here);
        }
        let (noted, own) = (self.shared.noted(conversation, turn).await?, self.engine.driver());
        let attending = match (&noted, driver) {
            (Some(noted), _) => noted.driver.as_ref(),
            // Who began it waits for it.
            (None, Some(driver)) => Some(driver),
            // Somebody is about to begin it.
            (None, None) => return Ok(Waiter::There),
        };
        if let Some(attending) = attending
            && attending != own
            && self.engine.lives(attending).await?
        {
            return Ok(Waiter::There);
        }
        match noted {
            Some(noted) if !self.shared.take(&noted, turn, own).await? => Ok(Waiter::There),
            Some(_) | None => Ok(Waiter::Nobody),
        }
    }

    /// What happens in a turn, from its beginning.
    async fn watch_turn(&self, conversation: &ConversationId, turn: TurnId) -> Result<(Watch, Option<Seq>), EngineError> {
        let after = turn.0.get().checked_sub(1).and_then(Seq::new);
        Ok((self.engine.watch(conversation, WatchFrom::After(after)).await?, after))
    }

    fn running(
        &self,
        call: &OfferedCall,
        turn: (ConversationId, TurnId),
        watched: (Watch, Option<Seq>),
        attending: Option<Attending>,
    ) -> Running {
        Running::new(self.engine.clone(), self.shared.clone(), call, turn, watched, attending)
    }
}

#[async_trait]
impl Backing for EngineBacking {
    async fn tools(&self) -> Vec<OfferedTool> {
        let tool = |tool: Arc<ToolDefinition>| {
            let face = self.engine.tool_face(&tool.name);
            OfferedTool { definition: self.offered(tool), face }
        };
        self.engine.tools().await.into_iter().map(tool).collect()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        let changes = self.changes.get_or_init(|| {
            let changes = watch::Sender::new(0);
            self.shared.tasks.spawn(look(self.engine.clone(), changes.clone(), self.shared.stop.clone()));
            changes
        });
        changes.subscribe()
    }

    async fn begin(&self, call: OfferedCall) -> Result<Box<dyn RunningCall>, Refused> {
        let qualified = self.qualified(&call.tool).await?;
        let message = caller::message(&qualified, &call.arguments);
        let until = Instant::now() + turnwright_store::LEASE + RENEWAL;
        loop {
            let earlier =
                self.earlier(&call.client, |asked| asked == message).await.map_err(|error| not_called(&call, &error))?;
            match earlier {
                // Where it cannot be gone on with at this moment, it is not begun a second time either.
                Sought::Found(handle, _) => return self.find(&handle, call).await,
                // A node that was killed before this call came does not look alive for longer.
                Sought::Unclear if Instant::now() < until => tokio::time::sleep(LOOK_AGAIN).await,
                Sought::Unclear | Sought::Nothing => break,
            }
        }
        Ok(Box::new(self.send(&call, &qualified).await.map_err(|error| not_called(&call, &error))?))
    }

    async fn find(&self, handle: &str, call: OfferedCall) -> Result<Box<dyn RunningCall>, Refused> {
        let (conversation, turn) = place(handle).ok_or_else(unknown)?;
        let qualified = self.qualified(&call.tool).await?;
        let message = caller::message(&qualified, &call.arguments);
        let is_this = |journal: &turnwright_core::Journal| match journal.entry(turn.0).map(|stored| &*stored.entry) {
            Some(Entry::User(said)) => {
                said.settings.model == caller::model() && said.content == [turnwright_core::ContentBlock::text(message)]
            }
            _ => false,
        };
        if !self.engine.look(&conversation, is_this).await.unwrap_or(false) {
            return Err(unknown());
        }
        let attending = self.shared.attend(&conversation);
        let stuck = |error: EngineError| Refused::Other(format!("`{}` cannot go on: {}", call.tool, told(&error)));
        // Somebody waits for it from here on, whatever node left it.
        let noted = self.shared.note_attended(&conversation, turn, self.engine.driver()).await;
        noted.map_err(|error| stuck(error.into()))?;
        let watched = self.watch_turn(&conversation, turn).await.map_err(stuck)?;
        // Where nobody drives it, what was decided elsewhere has not begun yet.
        self.engine.resume(&conversation).await.map_err(stuck)?;
        Ok(Box::new(self.running(&call, (conversation, turn), watched, Some(attending))))
    }

    async fn join(&self, handle: &str, client: &str) -> Result<Box<dyn RunningCall>, Refused> {
        let (conversation, turn) = place(handle).ok_or_else(unknown)?;
        let tool = |journal: &turnwright_core::Journal| match journal.entry(turn.0).map(|stored| &*stored.entry) {
            Some(Entry::User(said)) if said.settings.model == caller::model() => {
                caller::asked(said).map(|(tool, _)| tool.to_owned())
            }
            _ => None,
        };
        let tool = self.engine.look(&conversation, tool).await.ok().flatten().ok_or_else(unknown)?;
        let call = OfferedCall { client: client.to_owned(), tool, arguments: Map::new() };
        let stuck = |error: EngineError| Refused::Other(format!("`{}` cannot be answered: {}", call.tool, told(&error)));
        let watched = self.watch_turn(&conversation, turn).await.map_err(stuck)?;
        Ok(Box::new(self.running(&call, (conversation, turn), watched, None)))
    }

    async fn lost(&self, client: &str, digest: &str, since_ms: u64) -> Option<(String, OfferedCall)> {
        let is = |message: &str| call_in(client, message).is_some_and(|call| call.digest() == digest);
        match self.lost_call(client, is, since_ms).await {
            Ok(found) => found.and_then(|(handle, message)| Some((handle, call_in(client, &message)?))),
            Err(error) => {
                tracing::warn!(%error, "it cannot be looked for what an MCP client comes back for");
                None
            }
        }
    }
}

/// The call that a message asks for.
fn call_in(client: &str, message: &str) -> Option<OfferedCall> {
    let (tool, arguments) = caller::asked_in(message)?;
    let arguments = serde_json::from_str(arguments).ok()?;
    Some(OfferedCall { client: client.to_owned(), tool: tool.to_owned(), arguments })
}

fn unknown() -> Refused {
    Refused::Other("there is no such call to go on with; call the tool anew".to_owned())
}

/// The turn that a handle names.
fn place(handle: &str) -> Option<(ConversationId, TurnId)> {
    let (conversation, turn) = handle.split_once('/')?;
    Some((conversation.parse().ok()?, turn.parse().ok()?))
}

/// Names a turn.
pub(super) fn handle(conversation: &ConversationId, turn: TurnId) -> String {
    format!("{conversation}/{turn}")
}

/// What the ids of a client's conversations begin with.
fn id_prefix(client: &str) -> String {
    let hash = Sha256::digest(client);
    let first = hash.first_chunk().copied().unwrap_or_default();
    format!("conv_mcp_{:016x}_", u64::from_be_bytes(first))
}

fn new_id(client: &str) -> Result<ConversationId, EngineError> {
    let invalid = |what: String| EngineError::Invalid { what };
    let mut bytes = [0_u8; 8];
    getrandom::fill(&mut bytes).map_err(|error| invalid(format!("no random numbers: {error}")))?;
    let id = format!("{}{:016x}", id_prefix(client), u64::from_ne_bytes(bytes)).parse();
    id.map_err(|error: turnwright_core::IdError| invalid(error.to_string()))
}

/// What a client's conversations are called.
fn title(client: &str) -> String {
    format!("MCP client {client}")
}

fn not_called(call: &OfferedCall, error: &EngineError) -> Refused {
    Refused::Other(format!("`{}` was not called: {}", call.tool, told(error)))
}

/// What a client is told of a failure. Where that is less than it says, the log has the rest.
pub(super) fn told(error: &EngineError) -> String {
    let told = error.for_clients();
    if told != error.to_string() {
        tracing::warn!(%error, "a call of an MCP client fails");
    }
    told
}

/// Counts how often the tools change.
async fn look(engine: Engine, changes: watch::Sender<u64>, stop: CancellationToken) {
    let mut known = engine.tools_now();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            now = tokio::time::timeout(LOOK_EVERY, engine.tools_besides(&known)) => if let Ok(now) = now {
                known = now;
                changes.send_modify(|count| *count += 1);
            },
        }
    }
}
