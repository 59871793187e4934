//! `turnwright serve`: the page and the API.

use std::convert::Infallible;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use turnwright_engine::{Clock as _, SystemClock};
use turnwright_host::{Host, Loaded, McpEndpoint, McpServing, Needs, Overrides, config};
use turnwright_server::auth::first_link;
use turnwright_server::{Auth, Metrics, ServerOptions, ServerState, Tls, TlsError, router, while_starting};
use turnwright_terminal::Interrupts;

use crate::cli::{Everywhere, Serve};
use crate::exit::{Exit, Failure};
use crate::flags::flags_elsewhere;
use crate::logging::announce;
use crate::opened::{self, SERVER};
use crate::orphans::Orphans;
use crate::output::say;
use crate::signals::{SERVICE_VARIABLE, Signals, is_service};

/// How long turns and connections may take to come to rest once the server was told to end.
const DRAIN: Duration = Duration::from_secs(10);

pub(super) async fn run(everywhere: &Everywhere, serve: Serve) -> Result<Exit, Failure> {
    let overrides = Overrides { listen: serve.listen, nats: serve.nats, ..opened::overrides(everywhere) };
    if everywhere.user.is_some() {
        return Err(Failure::usage("a server acts for whoever signs in; --user is for the commands on the database itself"));
    }
    let opened = opened::open(&overrides, SERVER)?;
    let orphans = Orphans::adopt();
    let tls = read_tls(&opened.loaded)?;
    warn_of_days(tls.as_ref());
    let unheard = |error: std::io::Error| Failure::failed(format!("signals cannot be heard: {error}"));
    // With a certificate SIGHUP means to read it again; a service is told by it to read what there is, and has no terminal.
    let hangups = if tls.is_some() || is_service(opened.environment.get(SERVICE_VARIABLE), std::process::id()) {
        Some(signal(SignalKind::hangup()).map_err(unheard)?)
    } else {
        None
    };
    let signals = if hangups.is_some() { Signals::without_hangups() } else { Signals::new() };
    let mut signals = signals.map_err(unheard)?;
    // Bound before anything is started: whoever connects early waits instead of being refused.
    let (listener, auth) = bind(&opened.loaded.config.server).await?;
    let metrics = Metrics::new();
    // Who comes from another machine types no command at this one.
    let command_flags = if auth == Auth::Local { flags_elsewhere(everywhere, &opened) } else { String::new() };
    let path = opened.loaded.config.server.path().to_owned();
    let start = opened.start_with(Needs::Everything, |builder| {
        let builder = builder.observer(Arc::new(metrics.clone())).showing_apps().practising();
        if serve.conformance_fixtures { builder.conformance_fixtures() } else { builder }
    });
    let host = tokio::select! {
        host = while_starting(&listener, tls.as_ref(), &path, start) => host?,
        _ = signals.next() => return Ok(Exit::Done),
    };
    let body_limit_bytes = host.config().server.limits.body_bytes;
    let endpoint = if serve.conformance_fixtures {
        host.mcp_endpoint_with_fixtures(body_limit_bytes)
    } else {
        host.mcp_endpoint(McpServing { command_flags: command_flags.clone(), ..McpServing::default() }, body_limit_bytes)
    };
    let serving = serve_on(&host, (listener, auth, tls), (endpoint, metrics, command_flags), (&mut signals, hangups));
    let result = tokio::select! {
        result = serving => result,
        never = orphans.take_leave() => match never {},
    };
    let drained = tokio::select! {
        biased;
        () = signals.hurry() => false,
        drained = tokio::time::timeout(DRAIN, host.shutdown()) => drained.is_ok(),
    };
    if !drained {
        tracing::warn!("ended before everything had come to rest; open turns go on at the next start");
    }
    result
}

/// Who has to sign in at a server that listens at these addresses, and the first of them that other machines reach.
fn sign_in(server: &config::Server, addresses: &[SocketAddr]) -> Result<(Auth, Option<SocketAddr>), Failure> {
    let outside = addresses.iter().find(|address| !address.ip().is_loopback()).copied();
    let auth = match (server.auth, outside) {
        (Some(config::Auth::Tokens), _) => Auth::Required,
        (None, _) if server.oidc.is_some() => Auth::Required,
        (Some(config::Auth::Local) | None, None) => Auth::Local,
        (Some(config::Auth::Local) | None, Some(address)) => {
            let text =
                format!("{address} can be reached from other machines, and nobody has to sign in, so it does not listen there");
            let hint = "write `auth = \"tokens\"` below `[server]`, then `turnwright users add NAME --role admin` and \
                        `turnwright users token NAME`; or listen at 127.0.0.1";
            return Err(Failure::usage(text).hint(hint));
        }
    };
    Ok((auth, outside))
}

/// Refuses an identity provider that would not know to which address it sends browsers back.
fn sent_back(server: &config::Server, addresses: &[SocketAddr]) -> Result<(), Failure> {
    if server.oidc.is_none() || server.public_url.is_some() {
        return Ok(());
    }
    let (why, port) = match addresses.iter().find(|address| address.ip().is_unspecified()) {
        Some(address) => (format!("{address} stands for all addresses of this machine"), address.port()),
        None if server.trusted_proxies.is_empty() => return Ok(()),
        None => {
            let why = "by which address browsers reach `server.trusted_proxies` the proxies alone know";
            (why.to_owned(), addresses.first().map_or(0, SocketAddr::port))
        }
    };
    let text = format!("[server.oidc] needs `server.public_url`, the address to which the provider sends browsers back: {why}");
    let hint = format!(
        "write `public_url` below `[server]`: the address by which browsers know the server, or `http://localhost:{port}` where all \
         of them are at this machine"
    );
    Err(Failure::usage(text).hint(hint))
}

/// Looks whether a server with this configuration would listen where it says.
pub(super) fn check_listening(loaded: &Loaded) -> Result<(), Failure> {
    let server = &loaded.config.server;
    // A name may be known only where the server will run.
    let Ok(addresses) = server.listen.to_socket_addrs() else { return Ok(()) };
    let addresses: Vec<SocketAddr> = addresses.collect();
    let told_at = |key: &'static str| {
        move |Failure { exit, text, hint }| {
            let text = loaded.problem(&["server", key], text).to_string();
            Failure { exit, text, hint }
        }
    };
    sign_in(server, &addresses).map(drop).map_err(told_at("listen"))?;
    sent_back(server, &addresses).map_err(told_at("oidc"))
}

async fn bind(server: &config::Server) -> Result<(TcpListener, Auth), Failure> {
    let listen = &server.listen;
    let addresses: Vec<SocketAddr> = match listen.to_socket_addrs() {
        Ok(addresses) => addresses.collect(),
        Err(error) => return Err(Failure::usage(format!("`{listen}` is not an address to listen at: {error}"))),
    };
    let (auth, outside) = sign_in(server, &addresses)?;
    sent_back(server, &addresses)?;
    let is_https = server.tls.is_some() || server.public_url.as_deref().is_some_and(|url| url.starts_with("https://"));
    if let Some(address) = outside.filter(|_| !is_https) {
        say(&format!(
            "warning: {address} speaks plain HTTP; name a certificate as `tls` below `[server]`, or put a proxy with TLS before it and name its \
             address as `public_url`"
        ));
    }
    let listener = TcpListener::bind(addresses.as_slice()).await.map_err(|error| {
        Failure::failed(format!("cannot listen at {listen}: {error}")).hint("--listen 127.0.0.1:0 takes any free port")
    })?;
    Ok((listener, auth))
}

/// What the server shows of itself by TLS, where it speaks that.
pub(super) fn read_tls(loaded: &Loaded) -> Result<Option<Tls>, Failure> {
    let Some(tls) = &loaded.config.server.tls else { return Ok(None) };
    let read = Tls::read(&tls.cert, &tls.key);
    let told = |error: TlsError| {
        let key = match &error {
            TlsError::Certificate { .. } => "cert",
            TlsError::Key { .. } | TlsError::Together { .. } => "key",
        };
        Failure::usage(loaded.problem(&["server", "tls", key], error.to_string()).to_string())
    };
    read.map(Some).map_err(told)
}

/// What of the certificate clients refuse today, in the words of the file that names it.
pub(super) fn out_of_date(loaded: &Loaded, tls: &Tls) -> Vec<String> {
    let said = tls.out_of_date(SystemClock.now_ms()).into_iter();
    said.map(|said| loaded.problem(&["server", "tls", "cert"], said).to_string()).collect()
}

fn warn_of_days(tls: Option<&Tls>) {
    for said in tls.map(|tls| tls.out_of_date(SystemClock.now_ms())).unwrap_or_default() {
        tracing::warn!("{said}");
    }
}

/// Reads the certificate and its key again at each SIGHUP; for ever.
async fn keep_reading(tls: Option<&Tls>, hangups: Option<Signal>) -> Infallible {
    let Some(mut hangups) = hangups else { return std::future::pending().await };
    while hangups.recv().await.is_some() {
        match tls.map(Tls::read_again) {
            Some(Ok(())) => {
                tracing::info!("read the certificate again");
                warn_of_days(tls);
            }
            Some(Err(error)) => tracing::error!(%error, "the new certificate cannot be used; the old one stays"),
            None => tracing::info!("there is no certificate to read again; the configuration is read at a start alone"),
        }
    }
    std::future::pending().await
}

/// A link for the first admin, while no admin has ever had a way in.
async fn welcome(host: &Host, base: &str) -> Result<(), Failure> {
    // A way in is for people.
    if host.is_run_by_a_tool() {
        return Ok(());
    }
    let link = first_link(host.accounts(), host.engine().clock().now_ms()).await;
    if let Some(secret) = link.map_err(|error| Failure::failed(error.to_string()))? {
        let format = host.config().log_format;
        announce(format, "no admin has signed in here yet; whoever opens this within 15 minutes, once, is the admin `local`:");
        announce(format, &format!("{base}/login?code={}", secret.expose()));
    }
    Ok(())
}

async fn serve_on(
    host: &Host,
    (listener, auth, tls): (TcpListener, Auth, Option<Tls>),
    (mcp, metrics, command_flags): (McpEndpoint, Metrics, String),
    (signals, hangups): (&mut Signals, Option<Signal>),
) -> Result<Exit, Failure> {
    let engine = host.engine();
    let failed = |error: std::io::Error| Failure::failed(format!("cannot serve: {error}"));
    let address = listener.local_addr().map_err(failed)?;
    let base = host.config().server.address(&address.to_string());
    host.begin(&base).await?;
    let base = base.as_str();
    let options = ServerOptions { auth, command_flags, ..ServerOptions::of(host.config()) };
    let state = ServerState::of_host(host, mcp.clone(), options, address).with_metrics(metrics);
    let router = router(state);
    let (tell, told) = watch::channel(false);
    let end = async move {
        let mut told = told;
        // A sender that is gone means the same.
        drop(told.wait_for(|told| *told).await);
    };
    let served_tls = tls.clone();
    let mut serving = std::pin::pin!(async move {
        match (auth, served_tls) {
            (auth, Some(tls)) => turnwright_server::serve_over_tls((listener, &tls), router, auth, end).await,
            (Auth::Local, None) => turnwright_server::serve(listener, router, end).await,
            (Auth::Required, None) => turnwright_server::serve_anyone(listener, router, end).await,
        }
    });
    let scheme = if tls.is_some() { "https" } else { "http" };
    announce(host.config().log_format, &format!("listening on {scheme}://{address}{}", host.config().server.path()));
    if auth == Auth::Required {
        welcome(host, base).await?;
    }
    turnwright_memory::give_back_the_start();
    tokio::select! {
        served = &mut serving => return served.map(|()| Exit::Done).map_err(|error| Failure::failed(error.to_string())),
        never = host.keep() => match never {},
        never = keep_reading(tls.as_ref(), hangups) => match never {},
        _ = signals.next() => {}
    }
    let grace = Duration::from_millis(host.config().server.grace_ms);
    tracing::info!(grace_ms = grace.as_millis(), "ending; turns come to the end of their step");
    tokio::select! {
        served = &mut serving => return served.map(|()| Exit::Done).map_err(|error| Failure::failed(error.to_string())),
        has_rested = engine.drain(grace) => if !has_rested {
            tracing::warn!("turns are stopped in the middle of a step; they go on at the next start");
        },
        () = signals.hurry() => {}
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
        () = signals.hurry() => Ok(Exit::Done),
    }
}
