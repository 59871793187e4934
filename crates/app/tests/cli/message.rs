//! What a client of the AI SDK makes of the chunks that it is told, over any number of connections.

use serde_json::Value;

/// A message of the AI SDK as somebody saw it who came back with the id of the last chunk.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Message {
    /// The text of each step.
    pub(crate) steps: Vec<String>,
    /// The id of the last chunk.
    pub(crate) last: Option<String>,
    /// Whether the stream was told to its end.
    pub(crate) is_done: bool,
}

impl Message {
    /// Takes the next chunk; says what does not fit.
    pub(crate) fn take(&mut self, id: &str, chunk: &Value) -> Result<(), String> {
        if id.is_empty() || self.is_done {
            return Err(format!("no place for {chunk}"));
        }
        self.last = Some(id.to_owned());
        match chunk["type"].as_str() {
            None if chunk == "[DONE]" => self.is_done = true,
            Some("start") => self.steps.clear(),
            Some("start-step") => self.steps.push(String::new()),
            Some(kind @ ("reset-step" | "text-delta")) => {
                let step = self.steps.last_mut().ok_or_else(|| format!("no step is open: {chunk}"))?;
                match kind {
                    "reset-step" => step.clear(),
                    _ => step.push_str(chunk["delta"].as_str().unwrap_or_default()),
                }
            }
            Some("error") => return Err(chunk.to_string()),
            Some(_) => {}
            None => return Err(format!("no chunk: {chunk}")),
        }
        Ok(())
    }
}
