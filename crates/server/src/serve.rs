//! Listening.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::response::Response;
use futures_util::future::Either;
use futures_util::{FutureExt, TryFutureExt};
use http::{Request, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::auth::Auth;
use crate::door::Connection;
use crate::entrance::{Entrance, Place};
use crate::routes;
use crate::socket::{EndsWithSending, Socket};
use crate::tls::Tls;

/// How long connections may go on after the server was told to end.
const SHUTDOWN_TIME: Duration = Duration::from_secs(5);
/// How long a client may take for the head of a request, and be silent before the next one.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// How long who comes while the server starts waits for it.
const START_TIME: Duration = Duration::from_secs(1);
/// How long those whom it was told that the server starts may take to hear it, once it has.
const STARTED_TIME: Duration = Duration::from_millis(250);
/// When it is tried again where no connection can be taken.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Why the server does not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address can be reached from elsewhere, and nothing here asks who is there.
    #[error("{address} can be reached from other machines and nobody has to sign in; listen on 127.0.0.1 or [::1]")]
    NotLoopback {
        /// The address.
        address: SocketAddr,
    },
    /// The socket.
    #[error("cannot serve: {0}")]
    Io(#[from] std::io::Error),
}

/// Serves until `shutdown` is ready; then no connection is taken any more, and requests in hand are answered for at most
/// five seconds. Streams end when their engine does: call its `shutdown` beside this, not after it.
///
/// # Errors
/// [`ServeError::NotLoopback`] where the listener is not a loopback address, [`ServeError::Io`] where the socket fails.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    let address = listener.local_addr()?;
    if !address.ip().is_loopback() {
        return Err(ServeError::NotLoopback { address });
    }
    serve_anyone(listener, router, shutdown).await
}

/// The same at any address, for a router that asks everybody who they are.
///
/// # Errors
/// [`ServeError::Io`] where the socket fails.
pub async fn serve_anyone(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    until_told(listener, None, router, shutdown).await;
    Ok(())
}

/// The same over TLS, at the addresses at which `auth` lets it listen.
///
/// # Errors
/// [`ServeError::NotLoopback`] where nobody has to sign in and the listener is not a loopback address, [`ServeError::Io`]
/// where the socket fails.
pub async fn serve_over_tls(
    (listener, tls): (TcpListener, &Tls),
    router: Router,
    auth: Auth,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    let address = listener.local_addr()?;
    if auth == Auth::Local && !address.ip().is_loopback() {
        return Err(ServeError::NotLoopback { address });
    }
    until_told(listener, Some(tls), router, shutdown).await;
    Ok(())
}

/// Does `start`, of which the server's routes are made. Where that takes longer than a second, as where a large database is brought up,
/// it is said meanwhile that the server starts: `/healthz` answers 200, `/readyz` and all others 503 `starting`. Who comes
/// before that waits. `path` is the [site's](crate::Site).
pub async fn while_starting<T>(listener: &TcpListener, tls: Option<&Tls>, path: &str, start: impl Future<Output = T>) -> T {
    let mut start = std::pin::pin!(start);
    if let Ok(started) = tokio::time::timeout(START_TIME, &mut start).await {
        return started;
    }
    let (taken, started) = Taken::until(listener, tls, &routes::starting(path), start).await;
    taken.end(STARTED_TIME).await;
    started
}

/// Serves until it is told to end, and for as long after that as connections may go on.
async fn until_told(listener: TcpListener, tls: Option<&Tls>, router: Router, shutdown: impl Future<Output = ()> + Send) {
    let (taken, ()) = Taken::until(&listener, tls, &router, shutdown).await;
    // Nobody is taken any more; who is there is answered.
    drop(listener);
    if !taken.end(SHUTDOWN_TIME).await {
        tracing::warn!(seconds = SHUTDOWN_TIME.as_secs(), "connections were still open and are cut off");
    }
}

/// The connections that were taken.
struct Taken {
    entrance: Arc<Entrance>,
    graceful: GracefulShutdown,
    /// Those that agree on keys.
    ending: CancellationToken,
    tasks: JoinSet<()>,
}

impl Taken {
    /// Takes all that come until `told` is ready, which is told too.
    async fn until<T>(listener: &TcpListener, tls: Option<&Tls>, router: &Router, told: impl Future<Output = T>) -> (Self, T) {
        let mut taken = Self {
            entrance: Arc::default(),
            graceful: GracefulShutdown::new(),
            ending: CancellationToken::new(),
            tasks: JoinSet::new(),
        };
        let mut told = std::pin::pin!(told);
        // Whoever ends meanwhile does not end its pause where no connection can be taken.
        let mut accepting = std::pin::pin!(accept(listener));
        loop {
            let (stream, from) = tokio::select! {
                // Who comes after it is for whoever listens next.
                biased;
                told = &mut told => return (taken, told),
                Some(_ended) = taken.tasks.join_next() => continue,
                accepted = &mut accepting => accepted,
            };
            accepting.set(accept(listener));
            let (watcher, entrance) = (taken.graceful.watcher(), Arc::clone(&taken.entrance));
            let (door, ends) = (Connection::new(from, stream.local_addr().ok()), EndsWithSending::default());
            let socket = Socket::new(stream, ends.clone());
            let answers = Answers { from, door, ends, router: router.clone(), entrance };
            match tls {
                None => taken.tasks.spawn(connection(socket, answers, watcher)),
                Some(tls) => {
                    let handshake = tls.handshake(socket, from);
                    let ending = taken.ending.clone();
                    taken.tasks.spawn(async move {
                        // Who is still to agree on keys has asked for nothing.
                        if let Some(Some(stream)) = ending.run_until_cancelled(handshake).await {
                            connection(stream, answers, watcher).await;
                        }
                    })
                }
            };
        }
    }

    /// Ends them once they are answered; whether that was within `time`.
    async fn end(mut self, time: Duration) -> bool {
        self.ending.cancel();
        let all_ended = async {
            self.graceful.shutdown().await;
            while self.tasks.join_next().await.is_some() {}
        };
        let has_ended = tokio::time::timeout(time, all_ended).await.is_ok();
        self.tasks.shutdown().await;
        has_ended
    }
}

/// Answers the requests of one connection. What it is made of is the future alone: idle streams are many.
fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    answers: Answers,
    watcher: Watcher,
) -> impl Future<Output = ()> {
    let mut connections = http1::Builder::new();
    connections.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).half_close(true);
    let service = service_fn(move |request| answers.answer(request));
    watcher.watch(connections.serve_connection(TokioIo::new(stream), service)).map(|ended| {
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection broke off");
        }
    })
}

/// What answers the requests of one connection.
struct Answers {
    from: SocketAddr,
    door: Connection,
    ends: EndsWithSending,
    router: Router,
    entrance: Arc<Entrance>,
}

impl Answers {
    fn answer(&self, mut request: Request<Incoming>) -> impl Future<Output = Result<Response, Infallible>> + use<> {
        request.extensions_mut().insert(ConnectInfo(self.from));
        request.extensions_mut().insert(self.door.clone());
        // A call of an MCP client is cancelled by its going, also before it is answered.
        self.ends.set(request.uri().path().ends_with("/mcp"));
        let (router, ends) = (self.router.clone(), self.ends.clone());
        if let Some(place) = self.entrance.try_enter() {
            return Either::Left(answered(router, request, ends, place));
        }
        let entrance = Arc::clone(&self.entrance);
        // Boxed, so that it takes no room in those that need not wait.
        Either::Right(Box::pin(async move {
            let place = entrance.enter().await;
            answered(router, request, ends, place).await
        }))
    }
}

fn answered(
    router: Router,
    mut request: Request<Incoming>,
    ends: EndsWithSending,
    place: Place,
) -> impl Future<Output = Result<Response, Infallible>> {
    request.extensions_mut().insert(place.clone());
    router.oneshot(request.map(Body::new)).inspect_ok(move |response| {
        place.leave();
        if is_stream(response) {
            ends.set(true);
        }
    })
}

fn is_stream(response: &Response) -> bool {
    response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

/// The next connection. What keeps one from being taken, such as too many open files, passes: it is tried again.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "small packets will wait for each other");
                }
                return (stream, from);
            }
            Err(error) if is_of_the_connection(&error) => tracing::debug!(%error, "a connection was gone before it was taken"),
            Err(error) => {
                tracing::error!(%error, "no connection can be taken");
                tokio::time::sleep(ACCEPT_AGAIN_AFTER).await;
            }
        }
    }
}

fn is_of_the_connection(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
