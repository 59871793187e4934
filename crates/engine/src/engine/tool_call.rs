//! One tool run by hand, as a turn would run it: `turnwright tools call`.

use std::sync::Arc;

use turnwright_core::policy::{Action, Whose};
use turnwright_core::{ApproveMode, CallId, ConversationId, Outcome, Seq, ToolErrorKind, ToolResult};

use super::Engine;
use crate::driver::{Aids, run_alone};
use crate::names::qualified;
use crate::ruler::{Permit, Ready};
use crate::{EngineError, SettingsOverlay};

impl Engine {
    /// Runs the tool with the qualified name `name` under the policy, its schema and its limits. Nothing is stored. The
    /// result's call id means nothing.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] where there is no such tool. Whatever the tool does is a result.
    pub async fn call_tool(&self, name: &str, arguments: &str, approve: ApproveMode) -> Result<ToolResult, EngineError> {
        self.inner.settle_source_of(&self.user, name).await;
        let catalog = self.inner.catalogs.of(&self.user);
        if catalog.changed.contains_key(name) {
            let aside = catalog.set_aside.iter().find(|aside| qualified(&aside.source, &aside.tool) == name);
            let why = aside.map(|aside| aside.reason.clone()).unwrap_or_default();
            return Err(EngineError::Invalid { what: format!("`{name}` is set aside: {why}") });
        }
        let Some(tool) = catalog.get(name) else {
            return Err(EngineError::NotFound { what: format!("tool `{name}`; `turnwright tools list` shows what there is") });
        };
        let id = CallId { message: Seq::FIRST, index: 0 };
        let arguments = match self.inner.validators.check(&tool.hash, &tool.definition.input_schema, arguments) {
            Ok(arguments) => arguments,
            Err(problem) => return Ok(ToolResult::failed(id, ToolErrorKind::InvalidArguments, problem)),
        };
        let value = serde_json::Value::Object(arguments.clone());
        let policy = self.inner.rules.over(&self.inner.policy, Whose { conversation: None, turn: None, owner: &self.user });
        let verdict = policy.decide(approve, name, tool.definition.declared, &value);
        match verdict.action {
            Action::Allow => {}
            Action::Deny => return Ok(ToolResult::of(id, Outcome::Denied, format!("denied by {}", verdict.rule))),
            Action::Ask => {
                let text = format!("{} wants a person to allow this; --approve all does", verdict.rule);
                return Ok(ToolResult::of(id, Outcome::Denied, text));
            }
        }
        let of_source = tool.slots.clone().acquire_owned().await.map_err(|_closed| EngineError::ShuttingDown)?;
        let of_all = match self.inner.choices.calls.get() {
            Some(slots) => Some(slots.clone().acquire_owned().await.map_err(|_closed| EngineError::ShuttingDown)?),
            None => None,
        };
        let permit = Permit { _source: of_source, _overall: of_all };
        let conversation: ConversationId =
            "by-hand".parse().map_err(|error: turnwright_core::IdError| EngineError::Invalid { what: error.to_string() })?;
        let live = Arc::new(crate::live::Live::new(conversation, self.user.clone(), SettingsOverlay::default(), None));
        let ready = Ready { tool: tool.clone(), arguments, permit };
        let aids = Aids::of(&self.inner, &self.user);
        Ok(run_alone(id, ready, live, self.inner.shutdown.child_token(), aids).await)
    }
}
