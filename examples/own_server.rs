//! The whole HTTP API, the page with it, in a server of one's own: `cargo run -p turnwright-server --example own_server`.

use std::error::Error;
use std::io::Write;
use std::path::Path;

use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;
use turnwright_host::{Environment, Host, Overrides, config};
use turnwright_server::{ServerOptions, ServerState, router, serve};

/// Routes of one's own before those of a host whose data is in `folder`.
pub(crate) async fn app(folder: &Path) -> Result<(Host, Router), Box<dyn Error>> {
    let environment = Environment::new(folder);
    let overrides = Overrides { data_dir: Some(folder.join("data")), ..Overrides::default() };
    let loaded = config::open(&environment, &overrides)?;
    let host = Host::builder(loaded, environment).start().await?;
    let state = ServerState::new(host.engine().clone(), ServerOptions::default()).with_artifacts(host.artifacts().clone());
    let app = Router::new().route("/hello", get(async || "Hello.")).fallback_service(router(state));
    Ok((host, app))
}

#[tokio::main]
#[allow(dead_code, reason = "a test runs `app` itself")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let (host, app) = app(folder.path()).await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "http://{}/hello, and the API below /api/v1", listener.local_addr()?)?;
    // Turns that are open when it ends go on at the next start.
    host.engine().resume_open_turns().await?;
    let end = async {
        // Where it cannot be heard, the process is ended from outside.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    serve(listener, app, end).await?;
    host.shutdown().await;
    Ok(())
}
