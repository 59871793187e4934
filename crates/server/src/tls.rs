//! TLS for the server's own connections, where no proxy does it.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How long a client may take to say who it is and agree on keys.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// A certificate with its key, which can be read again while the server runs. Clones are one.
#[derive(Debug, Clone)]
pub struct Tls {
    files: Arc<(PathBuf, PathBuf)>,
    config: Arc<RwLock<Arc<ServerConfig>>>,
}

/// Why a certificate cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// The file of the certificate.
    #[error("the certificate `{file}` cannot be used: {reason}")]
    Certificate {
        /// The file.
        file: String,
        /// Why.
        reason: String,
    },
    /// The file of the key.
    #[error("the private key `{file}` cannot be used: {reason}")]
    Key {
        /// The file.
        file: String,
        /// Why.
        reason: String,
    },
    /// Each by itself may be right.
    #[error("the private key `{file}` and the certificate cannot be used together: {reason}")]
    Together {
        /// The file of the key.
        file: String,
        /// Why.
        reason: String,
    },
}

impl Tls {
    /// Reads a certificate, with those that it was signed with after it, and its key, both as PEM.
    ///
    /// # Errors
    /// Where one cannot be read, or they do not belong together.
    pub fn read(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let config = Arc::new(RwLock::new(Arc::new(config(cert, key)?)));
        Ok(Self { files: Arc::new((cert.to_owned(), key.to_owned())), config })
    }

    /// Reads both again. Connections from now on get what they hold; where they cannot be used, what they held before.
    ///
    /// # Errors
    /// As [`Tls::read`].
    pub fn read_again(&self) -> Result<(), TlsError> {
        let (cert, key) = &*self.files;
        let config = Arc::new(config(cert, key)?);
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    /// Agrees with a client on keys; `None` where that fails or takes too long.
    pub(crate) fn handshake(
        &self,
        stream: TcpStream,
        from: SocketAddr,
    ) -> impl Future<Output = Option<TlsStream<TcpStream>>> + Send + use<> {
        let acceptor: TlsAcceptor = self.config.read().unwrap_or_else(PoisonError::into_inner).clone().into();
        async move {
            match tokio::time::timeout(HANDSHAKE_LIMIT, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => Some(stream),
                Ok(Err(error)) => {
                    tracing::debug!(%from, %error, "a client and the server did not agree on TLS");
                    None
                }
                Err(_) => {
                    tracing::debug!(%from, "a client took too long to agree on TLS");
                    None
                }
            }
        }
    }
}

fn config(cert: &Path, key: &Path) -> Result<ServerConfig, TlsError> {
    let of_certificate = |reason: String| TlsError::Certificate { file: cert.display().to_string(), reason };
    let of_key = |reason: String| TlsError::Key { file: key.display().to_string(), reason };
    let file = File::open(cert).map_err(|error| of_certificate(error.to_string()))?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_reader_iter(file).collect();
    let chain = chain.map_err(|error| of_certificate(error.to_string()))?;
    if chain.is_empty() {
        return Err(of_certificate("it holds no certificate as PEM".to_owned()));
    }
    let file = File::open(key).map_err(|error| of_key(error.to_string()))?;
    let private = PrivateKeyDer::from_pem_reader(file).map_err(|error| of_key(error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let together = |error: rustls::Error| TlsError::Together { file: key.display().to_string(), reason: error.to_string() };
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(together)?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, private).map_err(together)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
