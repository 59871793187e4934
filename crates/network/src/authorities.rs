//! The certificates of authorities that an operator trusts besides the system's.

use reqwest::Certificate;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// Why a text names no authorities.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthoritiesError {
    /// There is none in it.
    #[error("it holds no certificate as PEM")]
    None,
    /// One of them cannot be used.
    #[error("its certificate {number} cannot be used: {reason}")]
    Unusable {
        /// Which one, from 1.
        number: usize,
        /// Why.
        reason: String,
    },
}

/// The certificates of a PEM file, each of which can vouch for others.
pub(crate) fn read(pem: &[u8]) -> Result<Vec<Certificate>, AuthoritiesError> {
    let mut found = Vec::new();
    for (index, der) in CertificateDer::pem_slice_iter(pem).enumerate() {
        let unusable = |reason: String| AuthoritiesError::Unusable { number: index + 1, reason };
        let der = der.map_err(|error| unusable(error.to_string()))?;
        RootCertStore::empty().add(der.clone()).map_err(|error| unusable(error.to_string()))?;
        found.push(Certificate::from_der(&der).map_err(|error| unusable(error.to_string()))?);
    }
    if found.is_empty() { Err(AuthoritiesError::None) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_no_certificate_is_refused_with_the_reason() {
        assert_eq!(read(b"").unwrap_err(), AuthoritiesError::None);
        assert_eq!(read(b"hello").unwrap_err(), AuthoritiesError::None);
        let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let told = read(broken).unwrap_err().to_string();
        assert!(told.starts_with("its certificate 1 cannot be used: "), "{told}");
    }
}
