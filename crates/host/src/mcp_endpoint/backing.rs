//! Calls of MCP clients as turns of the engine.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Map;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnwright_core::{ApproveMode, ConversationId, Entry, Seq, ToolDefinition, TurnId};
use turnwright_engine::{
    Engine, EngineError, KeptBy, NewConversation, NewMessage, OnWaiting, SentState, SettingsOverlay, Watch, WatchFrom,
};
use turnwright_mcp::serve::{Backing, OfferedCall, OfferedTool, Refused, RunningCall};

use super::caller;
use super::pool::{Pool, Slot};
use super::running::Running;
use super::{McpServing, Questions};

/// How often it is looked whether another process changed what there is, once a client wants to know. What this one
/// changes is told at once.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// The steps of a call's turn: asking for it, and being content.
const STEPS: u32 = 2;

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

/// What the calls share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) pool: Pool,
    pub(super) tasks: TaskTracker,
    pub(super) stop: CancellationToken,
    pub(super) questions: Questions,
}

impl EngineBacking {
    pub(super) fn new(engine: Engine, kept_by: KeptBy, serving: McpServing) -> Self {
        let McpServing { approve, unqualified, questions } = serving;
        let shared = Arc::new(Shared { questions, ..Shared::default() });
        Self { engine, kept_by, approve, unqualified, shared, changes: OnceLock::new() }
    }

    /// Ends what runs beside the calls. What waits for a person stays stored.
    pub(super) async fn end(&self) {
        self.shared.stop.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
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
        let title = Some(format!("MCP client {client}"));
        let new = self.engine.create(NewConversation { title, ..NewConversation::default() }).await?;
        Ok((Slot { conversation: new.id, calls: 0 }, None))
    }

    async fn send(&self, call: &OfferedCall, qualified: &str) -> Result<Running, EngineError> {
        let (slot, after) = self.free(&call.client).await?;
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
        Ok(self.running(call, (slot.conversation.clone(), sent.turn_id), (watch, after), Some(slot)))
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
        slot: Option<Slot>,
    ) -> Running {
        let (engine, shared) = (self.engine.clone(), self.shared.clone());
        Running::new(engine, shared, key(call), call, turn, watched, slot)
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
        if let Some(handle) = self.shared.pool.left(&key(&call))
            && let Ok(running) = self.find(&handle, call.clone()).await
        {
            return Ok(running);
        }
        let other = |error: EngineError| Refused::Other(format!("`{}` was not called: {error}", call.tool));
        Ok(Box::new(self.send(&call, &qualified).await.map_err(other)?))
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
        self.shared.pool.forget(handle);
        let stuck = |error: EngineError| Refused::Other(format!("`{}` cannot go on: {error}", call.tool));
        let watched = self.watch_turn(&conversation, turn).await.map_err(stuck)?;
        // Where nobody drives it, what was decided elsewhere has not begun yet.
        self.engine.resume(&conversation).await.map_err(stuck)?;
        Ok(Box::new(self.running(&call, (conversation, turn), watched, None)))
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
        let stuck = |error: EngineError| Refused::Other(format!("`{}` cannot be answered: {error}", call.tool));
        let watched = self.watch_turn(&conversation, turn).await.map_err(stuck)?;
        Ok(Box::new(self.running(&call, (conversation, turn), watched, None)))
    }
}

fn unknown() -> Refused {
    Refused::Other("there is no such call to go on with; call the tool anew".to_owned())
}

/// The turn that a handle names.
fn place(handle: &str) -> Option<(ConversationId, TurnId)> {
    let (conversation, turn) = handle.split_once('/')?;
    Some((conversation.parse().ok()?, turn.parse().ok()?))
}

/// What makes two calls the same.
fn key(call: &OfferedCall) -> String {
    format!("{}\n{}\n{}", call.client, call.tool, serde_json::Value::Object(call.arguments.clone()))
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
