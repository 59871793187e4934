//! Pages that servers have for the calls of their tools (MCP Apps, protocol 2026-01-26).
//!
//! What is said of a page is read here. Not here: what of it is let in, which whoever shows it decides.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::JsonObject;
use serde_json::{Map, Value, json};
use turnwright_core::ToolErrorKind;
use turnwright_engine::ToolError;

use crate::McpServer;
use crate::agreed::Offer;
use crate::list::capped_to;

/// The extension's name.
pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/ui";
/// The media type of a page.
const MIME_TYPE: &str = "text/html;profile=mcp-app";
/// The largest page that is taken, in bytes.
const MAX_PAGE_BYTES: usize = 8 << 20;
/// Domains that are taken of one list, and the longest one, in bytes.
const MAX_DOMAINS: usize = 20;
const MAX_DOMAIN_BYTES: usize = 300;

/// What is declared to servers: pages of this kind can be shown.
pub(crate) fn declared() -> JsonObject {
    let mut kinds = JsonObject::new();
    kinds.insert("mimeTypes".to_owned(), json!([MIME_TYPE]));
    kinds
}

/// A page, and what its server wants for it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AppPage {
    /// Its HTML, at most 8 MiB.
    pub html: String,
    /// Where it wants to reach.
    pub domains: Domains,
    /// What it wants of the device.
    pub permissions: Vec<AppPermission>,
    /// Whether it wants a border; `None` where it does not say.
    pub prefers_border: Option<bool>,
}

/// The origins that a page wants to reach, as its server wrote them, not checked (`_meta.ui.csp`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Domains {
    /// For requests (`connectDomains`).
    pub connect: Vec<String>,
    /// For scripts, styles, pictures, sound and fonts (`resourceDomains`).
    pub resource: Vec<String>,
    /// For frames in it (`frameDomains`).
    pub frame: Vec<String>,
    /// For its base address (`baseUriDomains`).
    pub base_uri: Vec<String>,
}

/// What a page may want of the device (`_meta.ui.permissions`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppPermission {
    /// The camera.
    Camera,
    /// The microphone.
    Microphone,
    /// Where the device is.
    Geolocation,
    /// Writing to the clipboard.
    ClipboardWrite,
}

impl AppPermission {
    const ALL: [(Self, &str); 4] = [
        (Self::Camera, "camera"),
        (Self::Microphone, "microphone"),
        (Self::Geolocation, "geolocation"),
        (Self::ClipboardWrite, "clipboardWrite"),
    ];

    /// As browsers name it in a permissions policy.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Camera => "camera",
            Self::Microphone => "microphone",
            Self::Geolocation => "geolocation",
            Self::ClipboardWrite => "clipboard-write",
        }
    }
}

impl McpServer {
    /// The page at this `ui://` address.
    ///
    /// # Errors
    /// [`ToolErrorKind::InvalidArguments`] where the address is none of a page, [`ToolErrorKind::ExecutionFailed`] where what is
    /// there is none, and as [`McpServer::read_resource`].
    pub async fn app_page(&self, uri: &str) -> Result<AppPage, ToolError> {
        if !uri.starts_with("ui://") {
            let text = format!("`{}` is no address of a page; it must begin with `ui://`.", capped_to(uri.to_owned(), 200));
            return Err(ToolError::new(ToolErrorKind::InvalidArguments, text));
        }
        let limit = self.config().limits.total;
        let answer = self.asked(Offer::Resources, "resources/read", json!({"uri": uri}), limit).await?;
        page(&answer).map_err(|why| {
            let text = format!("The page `{uri}` of the MCP server `{}` cannot be shown: {why}.", self.config().name);
            ToolError::new(ToolErrorKind::ExecutionFailed, text)
        })
    }
}

/// The page in an answer to `resources/read`, or why there is none.
fn page(answer: &Value) -> Result<AppPage, String> {
    let content = answer.pointer("/contents/0").and_then(Value::as_object).ok_or("the answer holds no content")?;
    let kind = content.get("mimeType").and_then(Value::as_str).unwrap_or("nothing");
    if !is_page(kind) {
        return Err(format!("its media type is `{}`, it must be `{MIME_TYPE}`", capped_to(kind.to_owned(), 100)));
    }
    let html = html(content)?;
    if html.len() > MAX_PAGE_BYTES {
        return Err(format!("it is {} bytes, limit {MAX_PAGE_BYTES}", html.len()));
    }
    let ui = content.get("_meta").and_then(|meta| meta.get("ui"));
    let wants = |path: &str| ui.and_then(|ui| ui.pointer(path));
    let permissions = wants("/permissions").and_then(Value::as_object);
    let is_wanted = |name: &str| permissions.and_then(|all| all.get(name)).is_some_and(|given| *given != Value::Bool(false));
    Ok(AppPage {
        html,
        domains: Domains {
            connect: domains(wants("/csp/connectDomains")),
            resource: domains(wants("/csp/resourceDomains")),
            frame: domains(wants("/csp/frameDomains")),
            base_uri: domains(wants("/csp/baseUriDomains")),
        },
        permissions: AppPermission::ALL.into_iter().filter(|(_, name)| is_wanted(name)).map(|(wanted, _)| wanted).collect(),
        prefers_border: wants("/prefersBorder").and_then(Value::as_bool),
    })
}

/// `text/html` with the profile, whatever stands between them.
fn is_page(kind: &str) -> bool {
    let mut parts = kind.split(';').map(|part| part.trim().to_ascii_lowercase());
    parts.next().as_deref() == Some("text/html") && parts.any(|part| part == "profile=mcp-app" || part == "profile=\"mcp-app\"")
}

fn html(content: &Map<String, Value>) -> Result<String, String> {
    if let Some(text) = content.get("text").and_then(Value::as_str) {
        return Ok(text.to_owned());
    }
    let blob = content.get("blob").and_then(Value::as_str).ok_or("it has neither `text` nor `blob`")?;
    let bytes = STANDARD.decode(blob).map_err(|error| format!("its `blob` is not base64: {error}"))?;
    String::from_utf8(bytes).map_err(|_| "its `blob` is not UTF-8".to_owned())
}

fn domains(list: Option<&Value>) -> Vec<String> {
    let listed = list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    listed.filter(|domain| domain.len() <= MAX_DOMAIN_BYTES).take(MAX_DOMAINS).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(content: &Value) -> Result<AppPage, String> {
        page(&json!({ "contents": [content] }))
    }

    #[test]
    fn a_page_is_read_with_what_its_server_wants_for_it() {
        let ui = json!({
            "csp": {"connectDomains": ["https://a.test", 7], "resourceDomains": ["https://b.test"], "frameDomains": "https://c.test"},
            "permissions": {"camera": {}, "geolocation": false, "clipboardWrite": {}, "rockets": {}},
            "prefersBorder": true,
        });
        let expected = AppPage {
            html: "<p>é</p>".into(),
            domains: Domains {
                connect: vec!["https://a.test".into()],
                resource: vec!["https://b.test".into()],
                ..Domains::default()
            },
            permissions: vec![AppPermission::Camera, AppPermission::ClipboardWrite],
            prefers_border: Some(true),
        };
        let text = json!({"uri": "ui://a", "mimeType": MIME_TYPE, "text": "<p>é</p>", "_meta": {"ui": ui}});
        assert_eq!(of(&text), Ok(expected.clone()));
        let blob = json!({"mimeType": "Text/HTML; profile=mcp-app", "blob": STANDARD.encode("<p>é</p>"), "_meta": {"ui": ui}});
        assert_eq!(of(&blob), Ok(expected));
        let bare = of(&json!({"mimeType": MIME_TYPE, "text": ""}));
        assert_eq!(bare, Ok(AppPage::default()), "nothing is let in where nothing is declared");
    }

    #[test]
    fn what_is_no_page_is_refused_with_the_reason() {
        let why = |content: Value| of(&content).unwrap_err();
        assert_eq!(page(&json!({"contents": []})).unwrap_err(), "the answer holds no content");
        assert_eq!(
            why(json!({"mimeType": "text/html", "text": "<p>"})),
            "its media type is `text/html`, it must be `text/html;profile=mcp-app`"
        );
        assert_eq!(why(json!({"mimeType": MIME_TYPE})), "it has neither `text` nor `blob`");
        assert!(why(json!({"mimeType": MIME_TYPE, "blob": "?"})).starts_with("its `blob` is not base64: "));
        let large = "x".repeat(MAX_PAGE_BYTES + 1);
        assert_eq!(why(json!({"mimeType": MIME_TYPE, "text": large})), "it is 8388609 bytes, limit 8388608");
    }
}
