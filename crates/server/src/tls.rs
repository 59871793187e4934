//! TLS for the server's own connections, where no proxy does it.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, client};

use crate::timestamp::timestamp;

/// How long a client may take to say who it is and agree on keys.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// A certificate with its key, which can be read again while the server runs. Clones are one.
#[derive(Debug, Clone)]
pub struct Tls {
    files: Arc<(PathBuf, PathBuf)>,
    held: Arc<RwLock<Held>>,
}

/// What the files held when they were read.
#[derive(Debug, Clone)]
struct Held {
    config: Arc<ServerConfig>,
    chain: Arc<[CertificateDer<'static>]>,
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
        let held = Arc::new(RwLock::new(held(cert, key)?));
        Ok(Self { files: Arc::new((cert.to_owned(), key.to_owned())), held })
    }

    /// Reads both again. Connections from now on get what they hold; where they cannot be used, what they held before.
    ///
    /// # Errors
    /// As [`Tls::read`].
    pub fn read_again(&self) -> Result<(), TlsError> {
        let (cert, key) = &*self.files;
        let read = held(cert, key)?;
        *self.held.write().unwrap_or_else(PoisonError::into_inner) = read;
        Ok(())
    }

    /// Which of the certificates clients will not take at this time, in milliseconds since 1970 UTC, and since or until which day:
    /// a sentence for each that has expired or is not valid yet.
    pub fn out_of_date(&self, now_ms: u64) -> Vec<String> {
        let (file, _) = &*self.files;
        let chain = Arc::clone(&self.held.read().unwrap_or_else(PoisonError::into_inner).chain);
        let said = chain.iter().enumerate().filter_map(|(index, certificate)| {
            let what = match index {
                0 => format!("the certificate `{}`", file.display()),
                _ => format!("certificate {} in `{}`, which the one before it is signed with,", index + 1, file.display()),
            };
            out_of_date(certificate, now_ms).map(|how| format!("{what} {how}; clients refuse the server"))
        });
        said.collect()
    }

    /// Agrees with a client on keys; `None` where that fails or takes too long.
    pub(crate) fn handshake<S: AsyncRead + AsyncWrite + Unpin + Send>(
        &self,
        stream: S,
        from: SocketAddr,
    ) -> impl Future<Output = Option<TlsStream<S>>> + Send + use<S> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner).clone();
        let acceptor = TlsAcceptor::from(held.config);
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

/// How a certificate's days do not hold this time. What else is wrong with it is not looked at: who signed it, a client knows.
fn out_of_date(certificate: &CertificateDer<'_>, now_ms: u64) -> Option<String> {
    let parsed = ParsedCertificate::try_from(certificate).ok()?;
    let now = UnixTime::since_unix_epoch(Duration::from_millis(now_ms));
    let algorithms = rustls::crypto::ring::default_provider().signature_verification_algorithms.all;
    let at = |time: UnixTime| timestamp(time.as_secs().saturating_mul(1_000));
    // Its days are looked at before anything else. That nobody is trusted is the answer for one that they hold for.
    let looked = verify_server_cert_signed_by_trust_anchor(&parsed, &RootCertStore::empty(), &[], now, algorithms);
    match looked {
        Err(rustls::Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            Some(format!("expired on {}", at(not_after)))
        }
        Err(rustls::Error::InvalidCertificate(CertificateError::NotValidYetContext { not_before, .. })) => {
            Some(format!("is not valid before {}", at(not_before)))
        }
        Ok(()) | Err(_) => None,
    }
}

/// Why a file is no key, with what would be one.
fn not_read(error: rustls::pki_types::pem::Error, pem: &[u8]) -> String {
    if is_encrypted(pem) {
        return "it is encrypted, and a server has nobody to ask for its password; `openssl pkey -in FILE -out NEW` writes it without one"
            .to_owned();
    }
    match error {
        rustls::pki_types::pem::Error::NoItemsFound => "it holds no private key as PEM".to_owned(),
        other => other.to_string(),
    }
}

/// Whether a key is under a password, in the form of PKCS #8 or the older one of OpenSSL.
fn is_encrypted(pem: &[u8]) -> bool {
    let lines = pem.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    lines.into_iter().any(|line| {
        line == b"-----BEGIN ENCRYPTED PRIVATE KEY-----" || (line.starts_with(b"Proc-Type:") && line.ends_with(b"ENCRYPTED"))
    })
}

fn held(cert: &Path, key: &Path) -> Result<Held, TlsError> {
    let of_certificate = |reason: String| TlsError::Certificate { file: cert.display().to_string(), reason };
    let of_key = |reason: String| TlsError::Key { file: key.display().to_string(), reason };
    let file = File::open(cert).map_err(|error| of_certificate(error.to_string()))?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_reader_iter(file).collect();
    let chain = chain.map_err(|error| of_certificate(error.to_string()))?;
    if chain.is_empty() {
        return Err(of_certificate("it holds no certificate as PEM".to_owned()));
    }
    let pem = std::fs::read(key).map_err(|error| of_key(error.to_string()))?;
    let private = PrivateKeyDer::from_pem_slice(&pem).map_err(|error| of_key(not_read(error, &pem)))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let together = |error: rustls::Error| TlsError::Together { file: key.display().to_string(), reason: error.to_string() };
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(together)?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain.clone(), private).map_err(together)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Held { config: Arc::new(config), chain: chain.into() })
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
