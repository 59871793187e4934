//! The way to a value through tables and lists, as people read it.

use std::fmt;

/// One step of the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Segment {
    Key(String),
    Index(usize),
}

/// The way from the top to a value: `providers."my host".models[0]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KeyPath(Vec<Segment>);

impl KeyPath {
    pub(crate) fn of<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        Self(keys.into_iter().map(|key| Segment::Key(key.to_owned())).collect())
    }

    pub(crate) fn key(&self, key: &str) -> Self {
        self.with(Segment::Key(key.to_owned()))
    }

    pub(crate) fn index(&self, index: usize) -> Self {
        self.with(Segment::Index(index))
    }

    fn with(&self, segment: Segment) -> Self {
        let mut segments = Vec::with_capacity(self.0.len() + 1);
        segments.extend_from_slice(&self.0);
        segments.push(segment);
        Self(segments)
    }

    pub(crate) fn is_top(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this is the table of one server, `mcp.servers.NAME`.
    pub(crate) fn is_mcp_server(&self) -> bool {
        self.0.len() == 3 && self.server().is_some()
    }

    /// The server whose table this is, or is in.
    pub(crate) fn server(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Segment::Key(mcp), Segment::Key(servers), Segment::Key(name), ..] if mcp == "mcp" && servers == "servers" => {
                Some(name)
            }
            _ => None,
        }
    }

    /// The table that the way leads to, as its header is written: `[mcp.servers.time]`, `[[approval.rules]]`, `the top level`.
    pub(crate) fn section(&self) -> String {
        match self.0.split_last() {
            None => "the top level".to_owned(),
            Some((Segment::Index(_), list)) => format!("[[{}]]", Self(list.to_vec())),
            Some((Segment::Key(_), _)) => format!("[{self}]"),
        }
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Key(key) if position == 0 => f.write_str(&quoted(key))?,
                Segment::Key(key) => write!(f, ".{}", quoted(key))?,
                Segment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// A key as TOML wants it: bare where it can be.
pub(crate) fn quoted(key: &str) -> String {
    let is_bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    // A JSON string is a TOML basic string.
    if is_bare { key.to_owned() } else { serde_json::Value::from(key).to_string() }
}
