//! Where secrets are kept that come while a host runs: what signing in brings, what is typed in with a server, keys of providers.
//! Sealed files in the data directory; where a key is configured for it, sealed documents in the database, so that all who use
//! it have them.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use turnwright_engine::Document;
use turnwright_mcp::{FileTokens, SealKey, TokenStore};
use turnwright_store::Storage;

use crate::HostError;
use crate::config::Loaded;

/// The kind of its documents.
const KIND: &str = "sealed";
/// What tells whether a key is the one that everything is sealed with.
const CHECK: &str = "check";
const CHECK_TEXT: &str = "turnwright";
const KEY_BYTES: usize = 32;

/// The stores of secrets. Both may be the same.
#[derive(Debug, Clone)]
pub(crate) struct Secrets {
    /// Of MCP servers.
    pub(crate) servers: Arc<dyn TokenStore>,
    /// Of providers.
    pub(crate) providers: Arc<dyn TokenStore>,
}

impl Secrets {
    /// Where the configuration says.
    ///
    /// # Errors
    /// Where the database's secrets are sealed with another key.
    pub(crate) async fn of(loaded: &Loaded, store: &Arc<dyn Storage>) -> Result<Self, HostError> {
        if let Some(key) = loaded.config.storage.seal_key.as_ref().and_then(|key| key_bytes(key.expose())) {
            let key = SealKey::new(&key).ok_or(HostError::SealKey)?;
            let documents = SealedDocuments { store: Arc::clone(store), key };
            documents.check().await?;
            let documents: Arc<dyn TokenStore> = Arc::new(documents);
            return Ok(Self { servers: Arc::clone(&documents), providers: documents });
        }
        let files = |folder| Arc::new(FileTokens::new(loaded.data_dir.join(folder))) as Arc<dyn TokenStore>;
        Ok(Self { servers: files("mcp/tokens"), providers: files("providers") })
    }
}

/// The bytes of a key as it is written: 64 hexadecimal digits.
pub(crate) fn key_bytes(text: &str) -> Option<[u8; KEY_BYTES]> {
    let mut bytes = [0_u8; KEY_BYTES];
    if text.len() != 2 * KEY_BYTES || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * place..2 * place + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// Documents of the database, each sealed and bound to its name.
#[derive(Debug)]
struct SealedDocuments {
    store: Arc<dyn Storage>,
    key: SealKey,
}

impl SealedDocuments {
    /// Seals something known with the first key, and looks with every later one whether it opens that.
    async fn check(&self) -> Result<(), HostError> {
        if self.store.document(KIND, CHECK).await?.is_none() {
            let document = self.sealed(CHECK, CHECK_TEXT).map_err(|_| HostError::SealKey)?;
            self.store.add_document(KIND, document).await?;
        }
        let known = self.store.document(KIND, CHECK).await?;
        let opened = known.and_then(|known| self.opened(&known));
        if opened.as_deref() == Some(CHECK_TEXT) { Ok(()) } else { Err(HostError::SealKey) }
    }

    fn sealed(&self, name: &str, text: &str) -> io::Result<Document> {
        Ok(Document { key: name.to_owned(), body: STANDARD.encode(self.key.seal(name, text)?) })
    }

    fn opened(&self, document: &Document) -> Option<String> {
        self.key.open(&document.key, &STANDARD.decode(&document.body).ok()?)
    }
}

#[async_trait]
impl TokenStore for SealedDocuments {
    async fn load(&self, name: &str) -> io::Result<Option<String>> {
        let Some(document) = self.store.document(KIND, name).await.map_err(io::Error::other)? else { return Ok(None) };
        let damaged = || {
            let text = format!(
                "the secret `{name}` of the database cannot be opened with `storage.seal_key`; sign in or set it again"
            );
            io::Error::new(io::ErrorKind::InvalidData, text)
        };
        self.opened(&document).map(Some).ok_or_else(damaged)
    }

    async fn save(&self, name: &str, text: &str) -> io::Result<()> {
        self.store.put_document(KIND, self.sealed(name, text)?).await.map_err(io::Error::other)
    }

    async fn remove(&self, name: &str) -> io::Result<bool> {
        let was_there = self.store.document(KIND, name).await.map_err(io::Error::other)?.is_some();
        self.store.remove_document(KIND, name).await.map_err(io::Error::other)?;
        Ok(was_there)
    }

    async fn lock(&self, name: &str) -> io::Result<Box<dyn Send + Sync>> {
        self.store.lock(name).await.map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use turnwright_store::{SqliteOptions, SqliteStore};

    use super::*;

    #[tokio::test]
    async fn what_one_keeps_in_the_database_another_with_its_key_reads_and_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn Storage> = Arc::new(SqliteStore::open(&SqliteOptions::in_directory(folder.path())).unwrap());
        let with = |byte| SealedDocuments { store: Arc::clone(&store), key: SealKey::new(&[byte; KEY_BYTES]).unwrap() };
        let (one, other, stranger) = (with(1), with(1), with(2));
        one.check().await.unwrap();
        other.check().await.unwrap();
        assert!(matches!(stranger.check().await, Err(HostError::SealKey)));

        one.save("a", "sesame").await.unwrap();
        assert_eq!(other.load("a").await.unwrap().as_deref(), Some("sesame"));
        let body = store.document(KIND, "a").await.unwrap().unwrap().body;
        assert!(!body.contains("sesame") && !body.contains(&STANDARD.encode("sesame")), "{body}");
        store.put_document(KIND, Document { key: "b".to_owned(), body }).await.unwrap();
        for (tokens, name) in [(&stranger, "a"), (&other, "b")] {
            let error = tokens.load(name).await.unwrap_err().to_string();
            assert!(error.ends_with("cannot be opened with `storage.seal_key`; sign in or set it again"), "{error}");
        }
        assert_eq!((one.remove("a").await.unwrap(), one.remove("a").await.unwrap()), (true, false));
        assert_eq!(other.load("a").await.unwrap(), None);
    }

    #[test]
    fn a_key_is_64_hexadecimal_digits() {
        assert_eq!(key_bytes(&"0F".repeat(32)), Some([15; KEY_BYTES]));
        for text in ["", "0f", &"0f".repeat(33), &"xx".repeat(32), &"ä".repeat(32)] {
            assert_eq!(key_bytes(text), None, "{text}");
        }
    }
}
