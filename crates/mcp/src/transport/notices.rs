//! What is done about each notification of a server.

use rmcp::model::ServerNotification;
use serde_json::{Value, json};

use super::wire::Wire;
use crate::log::{LogOrigin, ServerLog};

/// Acts on a notification; returns it where `rmcp` has to know of it too.
pub(super) fn noticed(wire: &Wire, log: &ServerLog, method: &str, params: Option<Value>) -> Option<ServerNotification> {
    match method {
        "notifications/progress" => wire.progressed(params),
        "notifications/tools/list_changed" => wire.tools_changed.notify_one(),
        "notifications/resources/list_changed" | "notifications/prompts/list_changed" => wire.shelf_changed.notify_one(),
        "notifications/tasks/status" | "notifications/tasks" => wire.task_changed.notify_waiters(),
        "notifications/elicitation/complete" => wire.completed(params.as_ref()),
        "notifications/resources/updated" => wire.updated(params.as_ref()),
        "notifications/message" => {
            let data = params.as_ref().and_then(|params| params.get("data"));
            match data {
                Some(Value::String(text)) => log.push(LogOrigin::Message, text),
                Some(other) => log.push(LogOrigin::Message, &other.to_string()),
                None => {}
            }
        }
        "notifications/cancelled" => {
            // Of a request of its own, which `rmcp` keeps.
            return serde_json::from_value(json!({"method": method, "params": params})).ok();
        }
        _ => {}
    }
    None
}
