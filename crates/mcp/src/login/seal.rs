//! Sealing: ChaCha20-Poly1305 with a random nonce before what is sealed, bound to its name.

use std::{fmt, io};

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

const KEY_BYTES: usize = 32;

/// A key that seals texts under names. What is put under another name opens nothing.
pub struct SealKey(LessSafeKey);

impl SealKey {
    /// Of 32 bytes that are random; `None` of any other number.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        UnboundKey::new(&CHACHA20_POLY1305, bytes).ok().map(LessSafeKey::new).map(Self)
    }

    /// The bytes of a new key.
    pub(super) fn random() -> io::Result<[u8; KEY_BYTES]> {
        let mut bytes = [0_u8; KEY_BYTES];
        random(&mut bytes)?;
        Ok(bytes)
    }

    /// Seals a text under a name.
    ///
    /// # Errors
    /// Where the system has no random bytes.
    pub fn seal(&self, name: &str, text: &str) -> io::Result<Vec<u8>> {
        let mut nonce = [0_u8; NONCE_LEN];
        random(&mut nonce)?;
        let mut sealed = text.as_bytes().to_vec();
        self.0
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(name), &mut sealed)
            .map_err(|_| io::Error::other("it could not be sealed"))?;
        Ok([nonce.as_slice(), &sealed].concat())
    }

    /// The text that was sealed under a name; `None` where it was with another key or under another name, or is damaged.
    pub fn open(&self, name: &str, sealed: &[u8]) -> Option<String> {
        let (nonce, text) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let mut text = text.to_vec();
        let open = self.0.open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::from(name), &mut text).ok()?;
        String::from_utf8(open.to_vec()).ok()
    }
}

impl fmt::Debug for SealKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SealKey")
    }
}

pub(super) fn random(bytes: &mut [u8]) -> io::Result<()> {
    getrandom::fill(bytes).map_err(|error| io::Error::other(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_with_its_key_and_name_alone() {
        let key = SealKey::new(&[7; 32]).unwrap();
        let sealed = key.seal("one", "a secret").unwrap();
        assert_ne!(key.seal("one", "a secret").unwrap(), sealed);
        assert_eq!(key.open("one", &sealed).as_deref(), Some("a secret"));
        assert_eq!(key.open("two", &sealed), None);
        assert_eq!(SealKey::new(&[8; 32]).unwrap().open("one", &sealed), None);
        assert_eq!(key.open("one", &sealed[..20]), None);
        assert_eq!(key.open("one", &[]), None);
        assert!(SealKey::new(&[7; 31]).is_none());
    }
}
