//! Waiting until the tools are others than before.

use std::sync::Arc;

use turnwright_core::ToolDefinition;

use crate::Engine;

impl Engine {
    /// The tools of the moment at which they are others than `known`, without waiting for sources that start. What this
    /// process changes is seen at once; what others change, when this is asked again.
    pub async fn tools_besides(&self, known: &[Arc<ToolDefinition>]) -> Vec<Arc<ToolDefinition>> {
        loop {
            self.inner.refresh_sources().await;
            let sources = self.inner.catalogs.sources();
            let of_set = self.inner.source_set.get().and_then(|set| set.news());
            // Before the look: what changes from here on is told.
            let mut news: Vec<_> = sources.iter().filter_map(|source| source.news()).chain(of_set).collect();
            let now = self.tools_now();
            let is_same = now.len() == known.len() && now.iter().zip(known).all(|(a, b)| Arc::ptr_eq(a, b) || a == b);
            if !is_same {
                return now;
            }
            if news.is_empty() {
                return std::future::pending().await;
            }
            let (_told_or_gone, ..) =
                futures_util::future::select_all(news.iter_mut().map(|one| Box::pin(one.changed()))).await;
        }
    }
}
