//! What a person agrees to of foreign tools: their definitions, as they are.

use std::sync::Arc;

use turnwright_core::ToolDefinition;

use super::Engine;
use crate::catalog::CatalogTool;
use crate::inner::Inner;
use crate::live::Live;
use crate::{Documents, EngineError};

impl Engine {
    /// Keeps there what people agree to of foreign tools ([`crate::ToolSource::is_foreign`]): with the first call that a
    /// person allows, and by [`Engine::agree`]. A tool that is another one since is set aside until a person agrees again.
    pub async fn keep_pins(&self, documents: Arc<dyn Documents>) {
        self.inner.pins.keep(documents);
        self.inner.refresh_sources().await;
    }

    /// A person agrees to the definitions of a source's tools as they are now, or to that of one of them; the qualified
    /// names of those that it holds for. Where they were shown what it is ([`SetAside::definition`](crate::SetAside::definition)), they
    /// agree to that alone: its source may have made it another one while they read.
    ///
    /// # Errors
    /// [`EngineError::NoTool`] where there is no such tool; [`EngineError::Invalid`] where it is another than was shown.
    pub async fn agree(&self, source: &str, tool: Option<&str>, shown: Option<&str>) -> Result<Vec<String>, EngineError> {
        self.inner.settle_sources(&self.user, |known| known == source).await;
        let catalog = self.inner.catalogs.of(&self.user);
        let all = catalog.tools.iter().chain(catalog.changed.values());
        let is_meant =
            |found: &CatalogTool| found.definition.source == source && tool.is_none_or(|tool| found.definition.tool == tool);
        let found: Vec<&CatalogTool> = all.filter(|found| is_meant(found)).collect();
        if let Some(other) = found.iter().find(|found| shown.is_some_and(|shown| *found.hash != *shown)) {
            let name = &other.definition.name;
            let what = format!("`{name}` changed once more since it was looked at; nothing is agreed to, look at it again");
            return Err(EngineError::Invalid { what });
        }
        let mut definitions: Vec<_> = found.iter().map(|found| found.definition.clone()).collect();
        definitions.sort_by(|a, b| a.name.cmp(&b.name));
        if definitions.is_empty() {
            let what = match tool {
                Some(tool) => format!("`{tool}` of `{source}`"),
                None => format!("of `{source}` whose definition is known"),
            };
            return Err(EngineError::NoTool { what });
        }
        self.inner.agree(&definitions).await?;
        Ok(definitions.into_iter().map(|definition| definition.name.clone()).collect())
    }
}

impl Inner {
    /// A person agrees to these definitions, as far as they are others' to change.
    pub(crate) async fn agree(&self, definitions: &[Arc<ToolDefinition>]) -> Result<(), EngineError> {
        let sources = self.catalogs.sources();
        let is_foreign = |name: &str| sources.iter().any(|source| source.name() == name && source.is_foreign());
        let foreign: Vec<_> = definitions.iter().filter(|definition| is_foreign(&definition.source)).cloned().collect();
        self.pins.agree(&foreign).await?;
        self.catalogs.pin(self.pins.known());
        Ok(())
    }

    /// The same for those that go with decisions, which hold whether or not the definitions can be kept.
    pub(super) async fn keep_agreed(&self, live: &Live, agreed: &[Arc<ToolDefinition>]) {
        if !agreed.is_empty()
            && let Err(error) = self.agree(agreed).await
        {
            live.context().in_scope(|| tracing::warn!(%error, "what a person agreed to cannot be kept"));
        }
    }
}
