//! A place for secrets that tests can take away for a while.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use turnwright_mcp::TokenStore;

/// How what is stored refers to the secret.
pub(crate) const REFERENCE: &str = "${sealed:00112233445566778899aabbccddeeff}";

/// Has `sesame` under every name, unless it fails.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    fails: AtomicBool,
}

impl Tokens {
    pub(crate) fn fail(&self, fails: bool) {
        self.fails.store(fails, Ordering::Relaxed);
    }
}

#[async_trait]
impl TokenStore for Tokens {
    async fn load(&self, _name: &str) -> io::Result<Option<String>> {
        if self.fails.load(Ordering::Relaxed) {
            return Err(io::Error::other("the disk does not answer"));
        }
        Ok(Some("sesame".to_owned()))
    }

    async fn save(&self, _name: &str, _text: &str) -> io::Result<()> {
        Ok(())
    }

    async fn remove(&self, _name: &str) -> io::Result<bool> {
        Ok(true)
    }

    async fn lock(&self, _name: &str) -> io::Result<Box<dyn Send + Sync>> {
        Ok(Box::new(()))
    }
}
