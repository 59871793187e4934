//! The whole HTTP API, the page with it, in a server of one's own: `cargo run -p turnwright-server --example own_server`.

use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;

use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;
use turnwright_host::{Environment, Host, McpEndpoint, McpServing, Overrides, config, confine};
use turnwright_server::{ServerOptions, ServerState, router, serve};

/// The word by which this program is called as the helper of its own commands.
const HELPER: &str = "__sandbox";

/// Routes of one's own before those of a host whose data is in `folder`, for a server that listens at `address`.
pub(crate) async fn app(folder: &Path, address: SocketAddr) -> Result<(Host, McpEndpoint, Router), Box<dyn Error>> {
    let helper = vec![std::env::current_exe()?.into(), HELPER.into()];
    let environment = Environment::new(folder).with_command_helper(helper);
    let overrides = Overrides { data_dir: Some(folder.join("data")), ..Overrides::default() };
    let loaded = config::open(&environment, &overrides)?;
    let host = Host::builder(loaded, environment).start().await?;
    // Limits, other nodes, the turns that are open since the last process ended, whoever is told of those that wait.
    host.begin(&format!("http://{address}")).await?;
    let options = ServerOptions::of(host.config());
    let mcp = host.mcp_endpoint(McpServing::default(), options.body_limit_bytes);
    let state = ServerState::of_host(&host, mcp.clone(), options, address);
    let app = Router::new().route("/hello", get(async || "Hello.")).fallback_service(router(state));
    Ok((host, mcp, app))
}

#[allow(dead_code, reason = "a test runs `app` itself")]
fn main() -> Result<(), Box<dyn Error>> {
    // A command of a tool, which confines itself before it becomes the command: nothing else may have happened yet.
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|word| word == HELPER) {
        return Err(confine(arguments).into());
    }
    run()
}

#[tokio::main]
#[allow(dead_code, reason = "a test runs `app` itself")]
async fn run() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let (host, mcp, app) = app(folder.path(), listener.local_addr()?).await?;
    writeln!(std::io::stdout(), "http://{}/hello, and the API below /api/v1", listener.local_addr()?)?;
    let end = async {
        // Where it cannot be heard, the process is ended from outside.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        served = serve(listener, app, end) => served?,
        never = host.keep() => match never {},
    }
    mcp.end().await;
    // Turns that are open when it ends go on at the next start.
    host.shutdown().await;
    Ok(())
}
