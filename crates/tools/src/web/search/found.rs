//! A page that was found.

use serde::Serialize;
use url::Url;

/// The longest title, in characters.
const TITLE_CHARS: usize = 300;
/// The longest snippet, in characters.
const SNIPPET_CHARS: usize = 1_500;

/// A page that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Found {
    pub(super) title: String,
    pub(super) url: String,
    pub(super) snippet: String,
}

impl Found {
    /// What a service says of a page; nothing where it does not say where that is.
    pub(super) fn of(title: Option<String>, url: Option<String>, snippet: Option<String>) -> Option<Self> {
        Some(Self { title: title.unwrap_or_default(), url: url?, snippet: snippet.unwrap_or_default() })
    }

    /// The same as plain text of bounded length; nothing where its address is none of the web.
    pub(super) fn tidied(self) -> Option<Self> {
        let url = Url::parse(self.url.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
        let title = plain(&self.title, TITLE_CHARS);
        let snippet = plain(&self.snippet, SNIPPET_CHARS);
        Some(Self { title: if title.is_empty() { url.to_string() } else { title }, url: url.into(), snippet })
    }
}

/// Services mark what fits with elements, in what is otherwise text with entities.
fn plain(text: &str, max_chars: usize) -> String {
    let text = if text.contains(['<', '&']) { dom_query::Document::from(text).text().to_string() } else { text.to_owned() };
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
