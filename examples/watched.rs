//! What happens in a turn, as it happens, and a program that decides about its calls: `cargo run -p turnwright-host --example watched`.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use turnwright_core::Verdict;
use turnwright_engine::{Choice, Engine, Event, NewMessage, ToolOutput, WatchFrom};
use turnwright_host::{Environment, Host, Overrides, config};
use turnwright_tools::{ToolSpec, TypedSource};

#[derive(Deserialize, JsonSchema)]
struct Publish {
    /// The text to publish.
    text: String,
}

/// A tool that changes something, so that it is asked about before it runs.
fn press() -> TypedSource {
    let spec = ToolSpec::new("publish", "Publishes a text.");
    TypedSource::new("press").tool(spec, |publish: Publish, _context| async move {
        Ok(ToolOutput::text(format!("published {} letters", publish.text.chars().count())))
    })
}

/// Asks the practice model, in a host whose data is in `folder`, and allows each call or none; what was seen on the way.
pub(crate) async fn ask(folder: &Path, question: &str, allows: bool) -> Result<Vec<String>, Box<dyn Error>> {
    let environment = Environment::new(folder);
    let overrides = Overrides { data_dir: Some(folder.join("data")), ..Overrides::default() };
    let loaded = config::open(&environment, &overrides)?;
    let host = Host::builder(loaded, environment).source(Arc::new(press())).start().await?;
    let engine = host.engine();
    let id = Engine::new_id()?;
    let sent = engine.send(&id, NewMessage { create: true, ..NewMessage::text(question) }).await?;
    // From the beginning: whoever comes later, or comes back, is told what was missed.
    let mut watch = engine.watch(&id, WatchFrom::After(None)).await?;
    let (mut seen, mut answer, mut after) = (Vec::new(), String::new(), None);
    'turn: loop {
        let Some(frame) = watch.next().await else {
            if watch.is_deleted() {
                break;
            }
            // It was cut off since it was too slow: it goes on where it was. Where the engine ended this is an error.
            watch = engine.watch(&id, WatchFrom::After(after)).await?;
            continue;
        };
        after = frame.seq.or(after);
        for event in frame.events.iter() {
            match event {
                // What was said of the step before is not the answer, nor what was said until a step began again.
                Event::StepStarted { .. } | Event::StepReset => answer.clear(),
                Event::TextDelta { text, .. } => answer.push_str(text),
                Event::ToolInputReady { name, arguments, .. } => seen.push(format!("{name} {arguments}")),
                Event::ToolApprovalRequested { call_id, .. } => {
                    let verdict = if allows { Verdict::Allow } else { Verdict::Deny };
                    engine.decide(&id, *call_id, Choice { verdict, arguments: None, reason: None }).await?;
                    seen.push(format!("{verdict:?}"));
                }
                Event::TurnFinished { turn_id, status, .. } if *turn_id == sent.turn_id => {
                    seen.push((*status).to_owned());
                    break 'turn;
                }
                _ => {}
            }
        }
    }
    host.shutdown().await;
    seen.push(answer);
    Ok(seen)
}

#[tokio::main]
#[allow(dead_code, reason = "a test runs `ask` itself")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    for seen in ask(folder.path(), "Publish the text \"Good news\"", true).await? {
        writeln!(std::io::stdout(), "{seen}")?;
    }
    Ok(())
}
