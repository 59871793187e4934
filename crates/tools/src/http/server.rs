//! Where an API is: what the operator says, or else the description.

use serde_json::Value;
use url::Url;

use crate::net::Target;

/// Where requests go.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Base {
    pub(super) url: Url,
    pub(super) trust: Trust,
}

/// Who said where that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// The operator: it may be anywhere.
    Operator,
    /// The description alone: only a public address is reached.
    Description,
}

/// The address of a server of a description, its variables filled with what is usual.
pub(super) fn address(server: &Value) -> Option<String> {
    let mut address = server.get("url")?.as_str()?.to_owned();
    for (name, variable) in server.get("variables").and_then(Value::as_object).into_iter().flatten().take(50) {
        if let Some(usual) = variable.get("default").and_then(Value::as_str) {
            address = address.replace(&format!("{{{name}}}"), usual);
        }
    }
    Some(address)
}

/// Where the requests go.
///
/// `place` is the address that the description came from, where it came from one; `has_secrets` says whether something is sent that
/// not everybody may see. Fails with what the operator can do.
pub(super) fn base(
    configured: Option<&str>,
    server: Option<&str>,
    place: Option<&Url>,
    has_secrets: bool,
) -> Result<Base, String> {
    const DO: &str = "name the API's own address as `base_url`";
    if let Some(configured) = configured {
        let target = Target::named(configured).map_err(|refusal| format!("its `base_url` is not usable: {refusal}"))?;
        return Ok(Base { url: target.url().clone(), trust: Trust::Operator });
    }
    // Without a server an API is at the root of where its description is (OpenAPI 3.1, section 4.8.1).
    let server = server.unwrap_or("/");
    let joined = match place {
        Some(place) => place.join(server),
        None => Url::parse(server),
    };
    let url = joined.map_err(|error| format!("its server `{}` is no whole address ({error}); {DO}", shown(server)))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(format!("its server `{}` is no address of HTTP; {DO}", shown(server)));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("its server holds a user or a password; {DO}, and `auth`"));
    }
    if url.path().contains('{') || url.path().contains("%7B") {
        return Err(format!("its server `{}` has a variable without a usual value; {DO}", shown(server)));
    }
    let is_same = place.is_some_and(|place| place.origin() == url.origin());
    if is_same {
        return Ok(Base { url, trust: Trust::Operator });
    }
    if place.is_some() && has_secrets {
        // Whoever changes the description would choose who is told the secrets.
        let host = url.host_str().unwrap_or_default();
        return Err(format!(
            "its server is at `{host}`, which is not where the description is; {DO}, so that the secrets go there"
        ));
    }
    Ok(Base { url, trust: Trust::Description })
}

/// The base of an operation that says itself where it is: nowhere else than the API is.
pub(super) fn of_operation(base: &Base, is_configured: bool, own: Option<&str>, place: Option<&Url>) -> Result<Url, String> {
    let Some(own) = own else { return Ok(base.url.clone()) };
    let joined = place.unwrap_or(&base.url).join(own).map_err(|error| format!("its own server is no address ({error})"))?;
    if joined.origin() == base.url.origin() && !is_configured {
        return Ok(joined);
    }
    let host = joined.host_str().unwrap_or_default();
    Err(format!("it is at a server of its own, `{host}`; another API of the configuration with that `base_url` can offer it"))
}

fn shown(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(
        configured: Option<&str>,
        server: Option<&str>,
        place: Option<&str>,
        has_secrets: bool,
    ) -> Result<(String, Trust), String> {
        let place = place.map(|place| Url::parse(place).unwrap());
        base(configured, server, place.as_ref(), has_secrets).map(|base| (base.url.to_string(), base.trust))
    }

    #[test]
    fn the_operators_word_comes_first_and_is_trusted() {
        let place = Some("https://api.example.org/openapi.json");
        assert_eq!(
            of(Some("http://10.0.0.1/v1"), Some("https://x.example"), place, true),
            Ok(("http://10.0.0.1/v1".into(), Trust::Operator))
        );
        assert_eq!(of(None, Some("/v2"), place, true), Ok(("https://api.example.org/v2".into(), Trust::Operator)));
        assert_eq!(of(None, None, place, true), Ok(("https://api.example.org/".into(), Trust::Operator)));
        assert_eq!(of(None, Some("https://x.example/v1"), None, true), Ok(("https://x.example/v1".into(), Trust::Description)));
        assert_eq!(of(None, Some("http://127.0.0.1:1/"), place, false), Ok(("http://127.0.0.1:1/".into(), Trust::Description)));
    }

    #[test]
    fn a_description_does_not_choose_who_is_told_the_secrets() {
        let refused = of(None, Some("https://evil.example/"), Some("https://api.example.org/openapi.json"), true).unwrap_err();
        assert!(
            refused.contains("`evil.example`, which is not where the description is; name the API's own address as `base_url`"),
            "{refused}"
        );
    }

    #[test]
    fn what_is_no_address_says_what_to_do() {
        for (server, told) in [
            ("/v1", "no whole address"),
            ("ftp://a/", "no address of HTTP"),
            ("https://a:b@c/", "user"),
            ("https://a/{x}", "variable"),
        ] {
            let error = of(None, Some(server), None, false).unwrap_err();
            assert!(error.contains(told) && error.contains("`base_url`"), "{server}: {error}");
        }
        assert_eq!(
            address(
                &serde_json::json!({"url": "https://{r}.example/{v}", "variables": {"r": {"default": "eu"}, "v": {"default": "2"}}})
            ),
            Some("https://eu.example/2".into())
        );
    }
}
