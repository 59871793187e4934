//! Models that do one thing.

use serde_json::Value;
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, results_shown, text_chunk};

/// A model that asks for this tool once and then says what it gave.
pub(crate) fn asks_once(tool: &'static str, arguments: &'static str) -> ModelServer {
    ModelServer::start(None, move |request| {
        if results_shown(request) == 0 {
            return vec![call_chunk(0, tool, arguments), finish_chunk("tool_calls"), Piece::Done];
        }
        let messages = request["messages"].as_array().cloned().unwrap_or_default();
        let said = messages.iter().rev().find_map(|message| (message["role"] == "tool").then(|| message["content"].clone()));
        let said = match said {
            Some(Value::String(text)) => text,
            other => other.unwrap_or_default().to_string(),
        };
        vec![text_chunk(&format!("It said: {said}")), finish_chunk("stop"), Piece::Done]
    })
    .unwrap()
}

/// The configuration of a place in which it is the model.
pub(crate) fn chosen(model: &ModelServer, approve: &str) -> String {
    let base_url = model.base_url();
    format!(
        "model = \"scripted/m\"\napprove = \"{approve}\"\n[providers.scripted]\ndialect = \"openai-chat\"\nbase_url = \"{base_url}\"\n\
         models = [\"m\"]\nmax_retries = 0\n"
    )
}
