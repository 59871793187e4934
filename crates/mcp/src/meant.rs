//! The tool that a call means, as it was offered when the call came.

use std::sync::Arc;

use turnwright_engine::SourceTool;

/// A tool of a list that is shared: its schema may be long, and each call has one of these.
#[derive(Debug, Clone)]
pub(crate) struct Meant {
    tools: Arc<[SourceTool]>,
    at: usize,
}

impl Meant {
    /// The tool of this name.
    pub(crate) fn find(tools: Arc<[SourceTool]>, name: &str) -> Option<Self> {
        let at = tools.iter().position(|tool| tool.name == name)?;
        Some(Self { tools, at })
    }

    /// The tool.
    pub(crate) fn tool(&self) -> Option<&SourceTool> {
        self.tools.get(self.at)
    }
}

/// Whether it is offered as it was.
impl PartialEq for Meant {
    fn eq(&self, other: &Self) -> bool {
        (Arc::ptr_eq(&self.tools, &other.tools) && self.at == other.at) || self.tool() == other.tool()
    }
}
