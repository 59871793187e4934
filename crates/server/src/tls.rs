//! TLS for the server's own connections, where no proxy does it.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, ServerConfig, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, client};

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
    pub(crate) fn handshake<S: AsyncRead + AsyncWrite + Unpin + Send>(
        &self,
        stream: S,
        from: SocketAddr,
    ) -> impl Future<Output = Option<TlsStream<S>>> + Send + use<S> {
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

/// The other end, for whoever asks a server on this machine how it is. Whatever certificate it shows will do: names and authorities
/// say nothing of what listens here, and over plain HTTP nothing would be shown either. No secret may be sent.
///
/// # Errors
/// Where both do not agree on keys.
pub async fn connect_to_this_machine(stream: TcpStream) -> io::Result<client::TlsStream<TcpStream>> {
    let at = ServerName::from(stream.peer_addr()?.ip());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let any = Arc::new(AnyCertificate(Arc::clone(&provider)));
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(io::Error::other)?;
    let config = builder.dangerous().with_custom_certificate_verifier(any).with_no_client_auth();
    TlsConnector::from(Arc::new(config)).connect(at, stream).await
}

/// Takes every certificate.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Why a file is no key, with what would be one.
fn not_read(error: rustls::pki_types::pem::Error) -> String {
    match error {
        rustls::pki_types::pem::Error::NoItemsFound => "it holds no private key as PEM".to_owned(),
        other => other.to_string(),
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
    let private = PrivateKeyDer::from_pem_reader(file).map_err(|error| of_key(not_read(error)))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let together = |error: rustls::Error| TlsError::Together { file: key.display().to_string(), reason: error.to_string() };
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(together)?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, private).map_err(together)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// A certificate for another name and its key, by the `openssl` command; `None` where there is none.
    fn made(folder: &Path) -> Option<(PathBuf, PathBuf)> {
        let (cert, key) = (folder.join("a.crt"), folder.join("a.key"));
        let mut command = Command::new("openssl");
        command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]);
        command.args(["-subj", "/CN=elsewhere.example", "-keyout"]).arg(&key).arg("-out").arg(&cert);
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success()).then_some((cert, key))
    }

    #[tokio::test]
    async fn who_asks_on_this_machine_takes_a_certificate_of_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let Some((cert, key)) = made(folder.path()) else {
            println!("skipped: there is no openssl command");
            return;
        };
        let tls = Tls::read(&cert, &key).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serve = async {
            let (stream, from) = listener.accept().await.unwrap();
            let mut stream = tls.handshake(stream, from).await.unwrap();
            stream.write_all(b"here").await.unwrap();
            stream.shutdown().await.unwrap();
        };
        let ask = async {
            let mut stream = connect_to_this_machine(TcpStream::connect(address).await.unwrap()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let ((), answer) = tokio::join!(serve, ask);
        assert_eq!(answer, "here");
        // What is no key is told with what would be one.
        let told = Tls::read(&cert, &cert).unwrap_err().to_string();
        assert!(told.ends_with("cannot be used: it holds no private key as PEM"), "{told}");
    }
}
