//! `turnwright tools`: what models are offered.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};
use turnwright_api::Tool;
use turnwright_core::{ApproveMode, ContentBlock, Outcome, ToolDefinition};
use turnwright_engine::{Engine, SourceState, Visibility, qualified, shown_name};
use turnwright_host::{Host, Needs, SchemaReading, SchemaStrictness};
use turnwright_terminal::Interrupts;

use crate::cli::{Everywhere, Listed, Tools};
use crate::exit::{Exit, Failure};
use crate::opened::{self, QUIET, TELLS_OF_SERVERS};
use crate::output::{Output, say};
use crate::signals::Signals;
use crate::table::{first_line, table};

/// The most characters of a description in a list.
const MAX_DESCRIPTION: usize = 100;

pub(super) async fn run(everywhere: &Everywhere, command: Tools, output: &mut Output) -> Result<Exit, Failure> {
    let log_level = if matches!(command, Tools::List(_)) { TELLS_OF_SERVERS } else { QUIET };
    let opened = opened::open(&opened::overrides(everywhere), log_level)?.of(everywhere);
    let mut signals = Signals::new().map_err(|error| Failure::failed(format!("signals cannot be heard: {error}")))?;
    let host = opened.start(Needs::Everything).await?;
    let engine = host.engine();
    let work = async {
        match command {
            Tools::List(listed) => Ok(list(engine, listed, output).await),
            Tools::Show { name, listed } => show(&host, &name, listed, output).await,
            Tools::Call { name, arguments, approve } => {
                let approve = approve.map_or(host.config().approve, ApproveMode::from);
                call(engine, &name, &arguments, approve, output).await
            }
        }
    };
    let result = tokio::select! {
        result = work => result,
        _ = signals.next() => Ok(Exit::Cancelled),
    };
    host.shutdown().await;
    result
}

async fn list(engine: &Engine, listed: Listed, output: &mut Output) -> Exit {
    let tools = engine.tools().await;
    for text in engine.tools_set_aside() {
        say(&format!("warning: set aside: {text}"));
    }
    for source in engine.sources().iter() {
        if let SourceState::Failing { reason } | SourceState::NeedsSignIn { reason } = source.state() {
            say(&format!("warning: {} does not run: {reason}", source.name()));
        }
    }
    if listed.json {
        output.json_pretty(&tools.iter().map(|definition| tool(engine, definition)).collect::<Vec<_>>());
        return Exit::Done;
    }
    let rows: Vec<_> = tools
        .iter()
        .map(|tool| {
            let kind = if tool.declared.read_only { "read-only" } else { "" };
            [tool.name.clone(), kind.to_owned(), first_line(&tool.description, MAX_DESCRIPTION)]
        })
        .collect();
    output.lines(&table(&rows));
    Exit::Done
}

async fn show(host: &Host, name: &str, listed: Listed, output: &mut Output) -> Result<Exit, Failure> {
    let Some((definition, readings)) = host.tool(name).await else {
        if is_for_pages(host.engine(), name) {
            return Err(Failure::usage(format!("`{name}` is for its server's own pages alone: models are not offered it")));
        }
        let near = host.engine().nearest_tool(name).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let failure = Failure::usage(format!("there is no tool `{name}`{near}"));
        return Err(failure.hint("`turnwright tools list` shows those that there are"));
    };
    if listed.json {
        let schemas = readings.iter().map(Sent::of).collect();
        output.json_pretty(&Shown { tool: tool(host.engine(), &definition), schemas });
        return Ok(Exit::Done);
    }
    let (source, own) = (&definition.source, shown_name(&definition.tool));
    output.line(&format!("{name}  ({own} of {source})"));
    if let Some(title) = &definition.title {
        output.line(title);
    }
    output.line(&definition.description);
    if definition.declared.read_only {
        output.line("declared read-only: runs without being asked");
    }
    if let Some(annotations) = &definition.annotations {
        output.line(&format!("its own hints, not checked: {annotations}"));
    }
    let face = host.engine().tool_face(name);
    if face.visibility != Visibility::default() {
        output.line(&format!("meant for: {}", face.visibility.as_list().join(", ")));
    }
    for icon in &face.icons {
        output.line(&format!("icon: {}", first_line(&icon.src, MAX_DESCRIPTION)));
    }
    output.line("arguments:");
    output.json_pretty(&definition.input_schema);
    if let Some(schema) = &face.output_schema {
        output.line("structured result:");
        output.json_pretty(schema);
    }
    readings.iter().flat_map(said).for_each(|line| output.line(&line));
    Ok(Exit::Done)
}

/// Whether there is a tool of this name that its server keeps from models.
fn is_for_pages(engine: &Engine, name: &str) -> bool {
    engine.sources().iter().any(|source| {
        let tools = source.tools();
        let mut hidden = tools.iter().filter(|tool| tool.face.visibility == Visibility::Pages);
        hidden.any(|tool| qualified(source.name(), &tool.name) == name)
    })
}

/// What `tools show --json` prints.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    tool: Tool,
    schemas: Vec<Sent<'a>>,
}

/// What a kind of API is sent of the schema.
#[derive(Serialize)]
struct Sent<'a> {
    reader: &'static str,
    /// Null where the API cannot be asked to hold to it.
    strict: Option<bool>,
    because: Option<&'a str>,
    losses: &'a [String],
}

impl<'a> Sent<'a> {
    fn of(reading: &'a SchemaReading) -> Self {
        let (strict, because) = match &reading.strictness {
            SchemaStrictness::NotAsked => (None, None),
            SchemaStrictness::Strict => (Some(true), None),
            SchemaStrictness::Loose { because } => (Some(false), Some(because.as_str())),
        };
        Self { reader: reading.reader, strict, because, losses: &reading.losses }
    }
}

/// A line for everything that is to be said of what a kind of API is sent.
fn said(reading: &SchemaReading) -> Vec<String> {
    let reader = reading.reader;
    let strictness = match &reading.strictness {
        SchemaStrictness::NotAsked => None,
        SchemaStrictness::Strict => Some(format!("{reader}: strict")),
        SchemaStrictness::Loose { because } => Some(format!("{reader}: loose, since {because}")),
    };
    let losses = reading.losses.iter().map(|loss| format!("{reader}: loses {loss}"));
    strictness.into_iter().chain(losses).collect()
}

/// What `tools call` prints.
#[derive(Serialize)]
struct Called<'a> {
    outcome: &'static str,
    is_error: bool,
    content: Cow<'a, [ContentBlock]>,
    structured_content: Option<Cow<'a, Value>>,
    duration_ms: Option<u64>,
}

async fn call(
    engine: &Engine,
    name: &str,
    arguments: &str,
    approve: ApproveMode,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let result = engine.call_tool(name, arguments, approve).await?;
    if let Some(diagnostic) = &result.diagnostic {
        say(&format!("note: {diagnostic}"));
    }
    if result.outcome == Outcome::Denied && approve != ApproveMode::All {
        say("hint: --approve all runs what a person would be asked about");
    }
    let is_error = result.outcome.is_error();
    let outcome = match result.outcome {
        Outcome::Success => "success",
        Outcome::Denied => "denied",
        Outcome::Error(kind) => kind.as_str(),
    };
    let mut called = Called {
        outcome,
        is_error,
        content: Cow::Borrowed(&result.content),
        structured_content: result.structured_content.as_ref().map(Cow::Borrowed),
        duration_ms: result.duration_ms,
    };
    if is_error && called.structured_content.is_none() {
        let failure = failure(outcome, &result.content);
        let others = result.content.iter().filter(|block| !matches!(block, ContentBlock::Text { .. })).cloned();
        called.content = std::iter::once(ContentBlock::text(failure.to_string())).chain(others).collect();
        called.structured_content = Some(Cow::Owned(failure));
    }
    output.json_pretty(&called);
    Ok(if is_error { Exit::Failed } else { Exit::Done })
}

/// What failed, as scripts read it: `{error, type, message}`.
fn failure(outcome: &str, content: &[ContentBlock]) -> Value {
    let texts = content.iter().filter_map(|block| match block {
        ContentBlock::Text { text } => Some(text.as_str()),
        _ => None,
    });
    json!({"error": true, "type": outcome, "message": texts.collect::<Vec<_>>().join("\n")})
}

/// A tool as the API tells it.
fn tool(engine: &Engine, definition: &ToolDefinition) -> Tool {
    let source = engine.sources().iter().find(|source| source.name() == definition.source).cloned();
    let state = source.map_or(SourceState::Stopped, |source| source.state());
    let face = engine.tool_face(&definition.name);
    Tool {
        id: definition.name.clone(),
        server_id: definition.source.clone(),
        tool_name: definition.tool.clone(),
        title: definition.title.clone(),
        description: definition.description.clone(),
        input_schema: definition.input_schema.clone(),
        output_schema: face.output_schema.clone(),
        annotations: definition.annotations.clone(),
        icons: face.icons.iter().map(icon).collect(),
        visibility: face.visibility.as_list().iter().map(ToString::to_string).collect(),
        app: face.app.clone(),
        read_only: definition.declared.read_only,
        server_state: state.as_str().to_owned(),
    }
}

fn icon(icon: &turnwright_engine::Icon) -> turnwright_api::Icon {
    let turnwright_engine::Icon { src, mime_type, sizes, theme } = icon.clone();
    turnwright_api::Icon { src, mime_type, sizes, theme }
}
