//! The peer benchmark's target: the HTTP API over a host with `echo`, `get_time` and `sleep` in process.
//!
//! `PORT` is where it listens, `MOCK_V1` the model's base address, `STORE` the database file. With `MCP_CMD` it offers that
//! MCP server's tools instead of its own. One thread, since the benchmark gives every target one core.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::net::TcpListener;
use turnwright_engine::ToolOutput;
use turnwright_host::config::{self, ConfigFile};
use turnwright_host::{Environment, Host, Overrides};
use turnwright_tools::{ToolSpec, TypedSource};

/// The binary's allocator too.
#[global_allocator]
static ALLOCATOR: turnwright_memory::Allocator = turnwright_memory::Allocator;

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// Text to give back
    message: String,
}

#[derive(Deserialize, JsonSchema)]
struct GetTime {}

#[derive(Deserialize, JsonSchema)]
struct Sleep {
    ms: u64,
}

fn tools() -> TypedSource {
    TypedSource::new("bench")
        .tool(ToolSpec::new("echo", "Echoes back the message").read_only(), |echo: Echo, _| async move {
            Ok(ToolOutput::text(format!("Echo: {}", echo.message)))
        })
        .tool(ToolSpec::new("get_time", "The current time in seconds").read_only(), |_: GetTime, _| async move {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            Ok(ToolOutput::text(since.as_secs().to_string()))
        })
        .tool(ToolSpec::new("sleep", "Waits some milliseconds").read_only(), |sleep: Sleep, _| async move {
            tokio::time::sleep(Duration::from_millis(sleep.ms)).await;
            Ok(ToolOutput::text(format!("slept {}", sleep.ms)))
        })
}

/// A configuration file's text: one provider, the tools of the benchmark and nothing else. What its peers do not have either is
/// switched off: memory, documents, and the tools that read on in large results.
fn configuration(environment: &Environment) -> String {
    let base_url = environment.get("MOCK_V1").unwrap_or("http://127.0.0.1:9900/v1");
    let store = environment.get("STORE").unwrap_or("bench.db");
    let mut text = format!(
        "approve = \"all\"\nsystem_prompt = \"You are a helpful assistant.\"\n\
         [providers.mock]\ndialect = \"openai-chat\"\nbase_url = \"{base_url}\"\napi_key = \"sk-mock\"\nmodels = [\"gpt-mock\"]\n\
         [storage]\ndatabase = \"{store}\"\n[tools.filesystem]\nenabled = false\n[tools.command]\nenabled = false\n\
         [tools.artifact]\nenabled = false\n[memory]\nenabled = false\n[knowledge]\nenabled = false\n"
    );
    if let Some(command) = environment.get("MCP_CMD") {
        let mut words = command.split_whitespace();
        let program = words.next().unwrap_or_default();
        let args: Vec<String> = words.map(|word| format!("\"{word}\"")).collect();
        text.push_str(&format!("[mcp.servers.everything]\ncommand = \"{program}\"\nargs = [{}]\n", args.join(", ")));
    }
    text
}

async fn run() -> Result<()> {
    let environment = Environment::read()?;
    let port = environment.get("PORT").unwrap_or("9800");
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    let file = ConfigFile { path: environment.working_directory().join("turnwright.toml"), text: configuration(&environment) };
    let store = std::path::PathBuf::from(environment.get("STORE").unwrap_or("bench.db"));
    let overrides = Overrides { data_dir: Some(store.with_extension("data")), ..Overrides::default() };
    let loaded = config::load(Some(&file), &environment, &overrides)?;
    let mut host = Host::builder(loaded, environment.clone());
    if environment.get("MCP_CMD").is_none() {
        host = host.source(Arc::new(tools()));
    }
    let host = host.start().await?;
    let state = turnwright_server::ServerState::new(host.engine().clone(), turnwright_server::ServerOptions::default());
    let end = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    let router = turnwright_server::router(state);
    // As the binary does.
    turnwright_memory::give_back_the_start();
    turnwright_server::serve(listener, router, end).await.context("the server failed")?;
    host.shutdown().await;
    Ok(())
}

fn main() -> Result<()> {
    turnwright_memory::give_back_soon();
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run())
}
