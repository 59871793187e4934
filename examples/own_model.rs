//! A model of one's own, and an answer that is a value of a Rust type: `cargo run -p turnwright-host --example own_model`.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream;
use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};
use turnwright_core::prompt::{Prompt, PromptMessage};
use turnwright_core::{Finish, FinishReason, ModelFacts, OutputFormat, OutputSchema, ProviderFailure, StreamDelta, text_of};
use turnwright_engine::{Engine, ModelInfo, ModelStream, NewMessage, Provider, SettingsOverlay};
use turnwright_host::{Environment, Host, Overrides, config};

/// What the answer is. The model is shown the schema.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Counted {
    /// How many words were said.
    pub(crate) words: usize,
    /// Whether it ends with a question mark.
    pub(crate) is_question: bool,
}

/// The model: anything that makes deltas of a prompt, such as an inference library in this process.
#[derive(Debug)]
struct Counting;

#[async_trait]
impl Provider for Counting {
    fn dialect(&self) -> &'static str {
        "counting"
    }

    fn call(&self, _model: &str, prompt: &Prompt<'_>) -> Result<ModelStream, ProviderFailure> {
        let said = prompt.messages.iter().rev().find_map(|message| match message {
            PromptMessage::User { message, .. } => Some(text_of(&message.content)),
            _ => None,
        });
        let said = said.unwrap_or_default();
        let counted = Counted { words: said.split_whitespace().count(), is_question: said.ends_with('?') };
        let text = serde_json::to_string(&counted).unwrap_or_default();
        let finish = Finish { reason: FinishReason::Stop, raw: None };
        Ok(Box::pin(stream::iter([Ok(vec![StreamDelta::Text(text)]), Ok(vec![StreamDelta::Finished(finish)])])))
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, ProviderFailure> {
        Ok(vec![ModelInfo { id: "words".to_owned(), description: None, facts: ModelFacts::default() }])
    }
}

/// Asks the model, in a host whose data is in `folder`, for an answer of this form.
pub(crate) async fn ask(folder: &Path, question: &str) -> Result<Counted, Box<dyn Error>> {
    let environment = Environment::new(folder);
    let overrides = Overrides { data_dir: Some(folder.join("data")), ..Overrides::default() };
    let loaded = config::open(&environment, &overrides)?;
    let host = Host::builder(loaded, environment).provider("counting", Arc::new(Counting)).start().await?;
    let output = OutputFormat::Schema(OutputSchema {
        name: "counted".to_owned(),
        schema: schema_for!(Counted).to_value(),
        strict: true,
    });
    let overlay = SettingsOverlay { output: Some(output), ..SettingsOverlay::default() };
    let id = Engine::new_id()?;
    let sent = host.engine().send(&id, NewMessage { create: true, overlay, ..NewMessage::text(question) }).await?;
    host.engine().wait(&id, sent.turn_id).await?;
    let journal = host.engine().journal(&id).await?;
    host.shutdown().await;
    let answer = journal.answer(sent.turn_id).ok_or("the model gave no answer")?;
    Ok(serde_json::from_str(&answer.text())?)
}

#[tokio::main]
#[allow(dead_code, reason = "a test runs `ask` itself")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let counted = ask(folder.path(), "How many words are these?").await?;
    writeln!(std::io::stdout(), "{counted:?}")?;
    Ok(())
}
