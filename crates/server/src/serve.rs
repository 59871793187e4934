//! Listening.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How long connections may go on after the server was told to end.
const SHUTDOWN_TIME: Duration = Duration::from_secs(5);

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
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "small packets will wait for each other");
        }
    });
    let told = CancellationToken::new();
    let tell = told.clone();
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    let serving = axum::serve(listener, service).with_graceful_shutdown(async move {
        shutdown.await;
        tell.cancel();
    });
    let deadline = async {
        told.cancelled().await;
        tokio::time::sleep(SHUTDOWN_TIME).await;
    };
    tokio::select! {
        result = serving => Ok(result?),
        () = deadline => {
            tracing::warn!(seconds = SHUTDOWN_TIME.as_secs(), "connections were still open and are cut off");
            Ok(())
        }
    }
}
