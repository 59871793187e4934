//! `turnwright serve`: the page and the API.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use turnwright_host::{Host, McpEndpoint, McpServing, Needs, Overrides, config};
use turnwright_server::{Metrics, ServerOptions, ServerState, ToolActivity, router};
use turnwright_terminal::Interrupts;

use crate::cli::{Everywhere, Serve};
use crate::exit::{Exit, Failure};
use crate::opened::{self, SERVER};
use crate::output::say;
use crate::signals::Signals;

/// How long turns and connections may take to come to rest once the server was told to end.
const DRAIN: Duration = Duration::from_secs(10);

pub(super) async fn run(everywhere: &Everywhere, serve: Serve) -> Result<Exit, Failure> {
    let overrides = Overrides { listen: serve.listen, ..opened::overrides(everywhere) };
    let opened = opened::open(&overrides, SERVER)?;
    let mut signals = Signals::new().map_err(|error| Failure::failed(format!("signals cannot be heard: {error}")))?;
    // Bound before anything is started: whoever connects early waits instead of being refused.
    let listener = bind(&opened.loaded.config.server.listen).await?;
    let metrics = Metrics::new();
    let host = tokio::select! {
        host = opened.start_with(Needs::Everything, |builder| {
            let builder = builder.observer(Arc::new(metrics.clone()));
            if serve.conformance_fixtures { builder.conformance_fixtures() } else { builder }
        }) => host?,
        _ = signals.next() => return Ok(Exit::Done),
    };
    let body_limit_bytes = ServerOptions::default().body_limit_bytes;
    let endpoint = if serve.conformance_fixtures {
        host.mcp_endpoint_with_fixtures(body_limit_bytes)
    } else {
        host.mcp_endpoint(McpServing::default(), body_limit_bytes)
    };
    let result = serve_on(&host, listener, (endpoint, metrics), &mut signals).await;
    let drained = tokio::select! {
        drained = tokio::time::timeout(DRAIN, host.shutdown()) => drained.is_ok(),
        _ = signals.next() => false,
    };
    if !drained {
        tracing::warn!("ended before everything had come to rest; open turns go on at the next start");
    }
    result
}

async fn bind(listen: &str) -> Result<TcpListener, Failure> {
    let addresses: Vec<SocketAddr> = match listen.to_socket_addrs() {
        Ok(addresses) => addresses.collect(),
        Err(error) => return Err(Failure::usage(format!("`{listen}` is not an address to listen at: {error}"))),
    };
    if let Some(address) = addresses.iter().find(|address| !address.ip().is_loopback()) {
        let text = format!(
            "{address} can be reached from other machines; that needs logins, which this version does not have, so it does not listen there"
        );
        return Err(Failure::usage(text).hint("listen at 127.0.0.1 or [::1], and reach it through SSH or a proxy with logins"));
    }
    TcpListener::bind(addresses.as_slice()).await.map_err(|error| {
        Failure::failed(format!("cannot listen at {listen}: {error}")).hint("--listen 127.0.0.1:0 takes any free port")
    })
}

async fn serve_on(
    host: &Host,
    listener: TcpListener,
    (mcp, metrics): (McpEndpoint, Metrics),
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let engine = host.engine();
    let failed = |error: std::io::Error| Failure::failed(format!("cannot serve: {error}"));
    let address = listener.local_addr().map_err(failed)?;
    match engine.resume_open_turns().await? {
        0 => {}
        resumed => tracing::info!(resumed, "took up open turns"),
    }
    engine.keep_resuming();
    let tool_activity = match host.config().server.tool_activity {
        config::ToolActivity::Hidden => ToolActivity::Hidden,
        config::ToolActivity::Reasoning => ToolActivity::Reasoning,
        config::ToolActivity::Content => ToolActivity::Content,
        config::ToolActivity::Details => ToolActivity::Details,
    };
    let options = ServerOptions { tool_activity, ..ServerOptions::default() };
    let router = router(
        ServerState::with_mcp(engine.clone(), options, mcp.clone(), host.mcp().clone())
            .with_resources(host.resources().clone())
            .with_metrics(metrics),
    );
    let (tell, told) = watch::channel(false);
    let mut serving = std::pin::pin!(turnwright_server::serve(listener, router, async move {
        let mut told = told;
        // A sender that is gone means the same.
        drop(told.wait_for(|told| *told).await);
    }));
    say(&format!("listening on http://{address}"));
    tokio::select! {
        served = &mut serving => return served.map(|()| Exit::Done).map_err(|error| Failure::failed(error.to_string())),
        _ = signals.next() => {}
    }
    let grace = Duration::from_millis(host.config().server.grace_ms);
    tracing::info!(grace_ms = grace.as_millis(), "ending; turns come to the end of their step");
    tokio::select! {
        served = &mut serving => return served.map(|()| Exit::Done).map_err(|error| Failure::failed(error.to_string())),
        has_rested = engine.drain(grace) => if !has_rested {
            tracing::warn!("turns are stopped in the middle of a step; they go on at the next start");
        },
        _ = signals.next() => {}
    }
    tell.send_replace(true);
    // Streams end when their engine does. Turns stay open and go on at the next start.
    let at_rest = async {
        tokio::join!(serving, async {
            mcp.end().await;
            engine.shutdown().await;
        })
        .0
    };
    tokio::select! {
        served = tokio::time::timeout(DRAIN, at_rest) => match served {
            Ok(Err(error)) => Err(Failure::failed(error.to_string())),
            Ok(Ok(())) | Err(_) => Ok(Exit::Done),
        },
        _ = signals.next() => Ok(Exit::Done),
    }
}
