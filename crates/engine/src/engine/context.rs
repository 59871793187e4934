//! Choosing what gathers.

use std::sync::Arc;

use super::Engine;
use crate::ContextSource;

impl Engine {
    /// What gathers what models are shown besides what was said, from now on. Only the first counts.
    pub fn show_besides(&self, source: Arc<dyn ContextSource>) {
        if self.inner.context.set(source).is_err() {
            tracing::error!("what gathers context for an engine is chosen once");
        }
    }
}
