//! Why a request failed, in words that tell what to do.

use std::error::Error;
use std::io;

use rustls::CertificateError;

/// Why a request failed, for people. Holds no address.
pub fn reason(error: &reqwest::Error) -> String {
    let last = causes(error).last().map(ToString::to_string);
    known_reason(error).or(last).unwrap_or_else(|| error.to_string())
}

/// Why a request failed, where that can be told better than the libraries do.
pub fn known_reason(error: &reqwest::Error) -> Option<String> {
    causes(error).find_map(told)
}

/// What is below an error.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |now| {
        let now = *now;
        // An error of IO has what it was made of not below it, but in it.
        let within = now.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        within.map(|within| within as &(dyn Error + 'static)).or_else(|| now.source())
    })
}

/// What is known better than the libraries say it.
fn told(cause: &(dyn Error + 'static)) -> Option<String> {
    if let Some(rustls::Error::InvalidCertificate(why)) = cause.downcast_ref() {
        return Some(certificate(why));
    }
    // The tunnel's own type cannot be named.
    let said = cause.to_string();
    let tunnel = said.strip_prefix("tunnel error: ")?;
    Some(match tunnel {
        "proxy authorization required" => {
            "the proxy wants a name and a password: `proxy_user` and `proxy_password` below `[network]`".to_owned()
        }
        "unsuccessful" => "the proxy refuses to connect to it".to_owned(),
        "unexpected end of file" => "the proxy hangs up".to_owned(),
        // What is below says more.
        "failed to create underlying connection" | "io error establishing tunnel" => return None,
        other => format!("the proxy does not connect to it: {other}"),
    })
}

fn certificate(why: &CertificateError) -> String {
    match why {
        CertificateError::UnknownIssuer => {
            "its certificate is from an authority that is not trusted here; where that is your own, name \
                                            its certificate as `ca_file` below `[network]`"
                .to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "its certificate has expired".to_owned(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet; is the clock of this machine right?".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("its certificate is for another name ({why})")
        }
        CertificateError::Revoked => "its certificate was revoked".to_owned(),
        // The list of them grows; the words of each are its own.
        other => format!("its certificate cannot be trusted: {other}"),
    }
}
