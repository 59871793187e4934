//! A tool of one's own, from its arguments to a model's answer: `cargo run -p turnwright-host --example own_tool`.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use turnwright_core::{Entry, text_of};
use turnwright_engine::{Engine, NewMessage, ToolOutput};
use turnwright_host::{Environment, Host, Overrides, config};
use turnwright_tools::{ToolSpec, TypedSource};

// The tool: ten lines. Its schema and the descriptions of its arguments come from the struct.
#[derive(Deserialize, JsonSchema)]
struct Reverse {
    /// The text to reverse.
    text: String,
}

fn words() -> TypedSource {
    let spec = ToolSpec::new("reverse", "Reverses a text, letter by letter.").read_only();
    TypedSource::new("words").tool(spec, |reverse: Reverse, _context| async move {
        Ok(ToolOutput::text(reverse.text.chars().rev().collect::<String>()))
    })
}

/// Asks the practice model, which needs no key, in a host whose data is in `folder`; what came of the tools, and the answer.
pub(crate) async fn ask(folder: &Path, question: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let environment = Environment::new(folder);
    let overrides = Overrides { data_dir: Some(folder.join("data")), ..Overrides::default() };
    let loaded = config::open(&environment, &overrides)?;
    let host = Host::builder(loaded, environment).source(Arc::new(words())).start().await?;
    let id = Engine::new_id()?;
    let sent = host.engine().send(&id, NewMessage { create: true, ..NewMessage::text(question) }).await?;
    host.engine().wait(&id, sent.turn_id).await?;
    let journal = host.engine().journal(&id).await?;
    let said = journal.entries().iter().filter_map(|stored| match &*stored.entry {
        Entry::Result(result) => Some(text_of(&result.content)),
        Entry::Assistant(message) => Some(message.text()).filter(|text| !text.is_empty()),
        _ => None,
    });
    let said = said.collect();
    host.shutdown().await;
    Ok(said)
}

#[tokio::main]
#[allow(dead_code, reason = "a test runs `ask` itself")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    for said in ask(folder.path(), "Reverse the text \"desserts\"").await? {
        writeln!(std::io::stdout(), "{said}")?;
    }
    Ok(())
}
