//! One tool run outside of a turn, as a turn would run it: by hand (`turnwright tools call`), or for a page that a server has
//! for the calls of its tools (MCP Apps).

use std::sync::Arc;

use turnwright_core::policy::{Action, Whose};
use turnwright_core::{ApproveMode, CallId, ConversationId, Outcome, Seq, ToolErrorKind, ToolResult};

use super::Engine;
use crate::catalog::CatalogTool;
use crate::driver::{Aids, Keyed, run_alone};
use crate::names::{meant, qualified, random};
use crate::ruler::{Permit, Ready};
use crate::{Chosen, EngineError, SettingsOverlay, shown_name};

/// The id of a call that belongs to no conversation.
const NO_CALL: CallId = CallId { message: Seq::FIRST, index: 0 };

/// A call that a page asks for (MCP Apps, `tools/call` of a view).
#[derive(Debug, Clone, Copy)]
pub struct PageCall<'a> {
    /// The page's own source; tools of others are not there for it.
    pub source: &'a str,
    /// The tool's name there.
    pub tool: &'a str,
    /// Its arguments, as JSON text.
    pub arguments: &'a str,
    /// The conversation in which the page is shown, whose rules and approve mode hold; the defaults where there is none.
    pub conversation: Option<&'a ConversationId>,
    /// Whether a person was shown this very call and allowed it. Rules that deny hold all the same.
    pub is_allowed: bool,
    /// What tells the request from the user's others where it may come again, see [`Engine::call_tool_as`].
    pub key: Option<&'a str>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub enum PageCalled {
    /// It ran, or was denied: the result says which. Its call id means nothing.
    Came(ToolResult),
    /// A person must allow it first, by this rule. Nothing ran.
    Asks {
        /// The rule or mode that asks.
        rule: String,
    },
}

/// Under what a call is looked at.
#[derive(Clone, Copy)]
struct Under<'a> {
    approve: ApproveMode,
    conversation: Option<&'a ConversationId>,
    key: Option<&'a str>,
}

impl Engine {
    /// Runs the tool with the qualified name `name` under the policy, its schema and its limits. Nothing is stored. The
    /// result's call id means nothing.
    ///
    /// # Errors
    /// [`EngineError::NoTool`] where there is no such tool; [`EngineError::NotAllowed`] and [`EngineError::PeopleOnly`]
    /// where more would run than by the installation's settings and no person asks. Whatever the tool does is a result.
    pub async fn call_tool(&self, name: &str, arguments: &str, approve: ApproveMode) -> Result<ToolResult, EngineError> {
        self.called_by_hand(name, arguments, Under { approve, conversation: None, key: None }).await
    }

    /// The same for a request that may come again: where `key`, the tool and the arguments are those of an earlier call of this user,
    /// the tool is given the same idempotency key. Without one each call has a key of its own.
    ///
    /// # Errors
    /// As [`Self::call_tool`].
    pub async fn call_tool_as(
        &self,
        key: &str,
        name: &str,
        arguments: &str,
        approve: ApproveMode,
    ) -> Result<ToolResult, EngineError> {
        self.called_by_hand(name, arguments, Under { approve, conversation: None, key: Some(key) }).await
    }

    async fn called_by_hand(&self, name: &str, arguments: &str, under: Under<'_>) -> Result<ToolResult, EngineError> {
        self.inner.settle_source_of(&self.user, name).await;
        let catalog = self.inner.catalogs.of(&self.user);
        if let Some(why) = catalog.why_changed(name) {
            return Err(EngineError::Invalid { what: format!("`{name}` is set aside: {why}") });
        }
        let Some(tool) = catalog.get(name) else {
            return Err(self.no_such_tool(name));
        };
        self.must_not_widen(under.approve, None).await?;
        Ok(match self.called_alone(tool, arguments, under).await? {
            PageCalled::Came(result) => result,
            PageCalled::Asks { rule } => {
                let text = format!("{rule} wants a person to allow this; the approve mode `all` runs it without");
                ToolResult::of(NO_CALL, Outcome::Denied, text)
            }
        })
    }

    /// Runs a tool for a page of its own source, where its source means it for pages. Nothing is stored.
    ///
    /// # Errors
    /// [`EngineError::NoTool`] where the source has no such tool for its pages; [`EngineError::NotFound`] where the conversation is
    /// not the user's.
    /// Whatever the tool does is a result.
    pub async fn call_for_page(&self, call: PageCall<'_>) -> Result<PageCalled, EngineError> {
        let PageCall { source, tool: name, arguments, conversation, is_allowed, key } = call;
        self.inner.settle_source_of(&self.user, &qualified(source, name)).await;
        let mode = match conversation {
            Some(id) => self.conversation(id).await?.overlay.approve,
            None => None,
        };
        let catalog = self.inner.catalogs.of(&self.user);
        let Some(tool) = catalog.for_page(source, name) else {
            return Err(EngineError::NoTool { what: format!("`{}` of `{source}` for its pages", shown_name(name)) });
        };
        let approve = if is_allowed && self.must_decide().await.is_ok() {
            ApproveMode::All
        } else {
            mode.unwrap_or(self.inner.defaults().approve)
        };
        let came = self.called_alone(tool, arguments, Under { approve, conversation, key }).await?;
        let outcome = match &came {
            PageCalled::Came(result) => format!("{:?}", result.outcome),
            PageCalled::Asks { rule } => format!("asks: {rule}"),
        };
        tracing::info!(source, tool = shown_name(name), is_allowed, outcome, "a page called a tool");
        Ok(came)
    }

    /// The tool whose name was probably meant by one that there is not, among those of this moment.
    pub fn nearest_tool(&self, name: &str) -> Option<String> {
        let catalog = self.inner.catalogs.of(&self.user);
        meant(name, &catalog.tools.iter().map(|tool| tool.definition.name.as_str())).first().map(|name| (*name).to_owned())
    }

    pub(super) fn no_such_tool(&self, name: &str) -> EngineError {
        let near = self.nearest_tool(name).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        EngineError::NoTool { what: format!("`{name}`{near}") }
    }

    async fn called_alone(&self, tool: &CatalogTool, arguments: &str, under: Under<'_>) -> Result<PageCalled, EngineError> {
        if self.is_draining() {
            return Err(EngineError::ShuttingDown);
        }
        let id = NO_CALL;
        let name = tool.definition.name.as_str();
        let arguments = match self.inner.validators.check(&tool.hash, &tool.definition.input_schema, arguments) {
            Ok(arguments) => arguments,
            Err(problem) => return Ok(PageCalled::Came(ToolResult::failed(id, ToolErrorKind::InvalidArguments, problem))),
        };
        let value = serde_json::Value::Object(arguments.clone());
        let policy = self
            .inner
            .rules
            .over(&self.inner.policy, Whose { conversation: under.conversation, turn: None, owner: &self.user });
        let verdict = policy.decide(under.approve, name, tool.definition.declared, &value);
        match verdict.action {
            Action::Allow => {}
            Action::Deny => {
                let text = format!("denied by {}", verdict.rule);
                return Ok(PageCalled::Came(ToolResult::of(id, Outcome::Denied, text)));
            }
            Action::Ask => return Ok(PageCalled::Asks { rule: verdict.rule }),
        }
        let of_source = tool.slots.clone().acquire_owned().await.map_err(|_closed| EngineError::ShuttingDown)?;
        let of_all = match self.inner.choices.calls.get() {
            Some(slots) => Some(slots.clone().acquire_owned().await.map_err(|_closed| EngineError::ShuttingDown)?),
            None => None,
        };
        let permit = Permit { _source: of_source, _overall: of_all };
        let keyed = Keyed::Alone(under.key.map_or_else(random::<16>, |key| Ok(format!("as {key}")))?);
        // It belongs to no conversation: this name is for its progress, which nobody watches.
        let live = Arc::new(crate::live::Live::new(
            super::new_id()?,
            (self.user.clone(), 0),
            SettingsOverlay::default(),
            Chosen::default(),
        ));
        let ready = Ready { tool: tool.clone(), arguments, permit };
        let aids = Aids::of(&self.inner, &self.user);
        // Counted among the drivers: where the process ends and gives them time, it gives it to this call too.
        let run = run_alone((id, keyed), ready, live, self.inner.shutdown.child_token(), aids);
        let result = self.inner.drivers.track_future(run).await;
        if self.inner.shutdown.is_cancelled() && result.outcome == Outcome::Error(ToolErrorKind::Interrupted) {
            let text = format!("The server ended while `{name}` ran: it may or may not have happened.");
            return Ok(PageCalled::Came(ToolResult::failed(id, ToolErrorKind::Interrupted, text)));
        }
        Ok(PageCalled::Came(result))
    }
}
