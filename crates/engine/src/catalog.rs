//! The tools of all sources at one moment, by qualified name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use globset::{GlobBuilder, GlobMatcher};
use sha2::{Digest, Sha256};
use turnwright_core::ToolDefinition;

use crate::names::{hex, qualified};
use crate::schema::check_schema;
use crate::source::shown_name;
use crate::{SetAside, SourceTool, ToolFace, ToolSource, Visibility};

/// A tool that can be called.
#[derive(Debug, Clone)]
pub(crate) struct CatalogTool {
    pub(crate) definition: Arc<ToolDefinition>,
    /// Over name, description, schema and annotations: what a person agrees to when they allow a call.
    pub(crate) hash: Arc<str>,
    pub(crate) source: Arc<dyn ToolSource>,
    /// What else its source says of it.
    pub(crate) face: Arc<ToolFace>,
}

/// All tools of one moment, sorted by qualified name: the canonical order of every request (law 7).
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    pub(crate) tools: Vec<CatalogTool>,
    by_name: HashMap<String, usize>,
    /// Tools that cannot be offered, and why.
    pub(crate) set_aside: Vec<SetAside>,
}

impl Catalog {
    pub(crate) fn get(&self, name: &str) -> Option<&CatalogTool> {
        self.by_name.get(name).and_then(|index| self.tools.get(*index))
    }

    /// The tools that these globs leave; all where there are none.
    pub(crate) fn offered(&self, globs: Option<&[String]>) -> Vec<Arc<ToolDefinition>> {
        let matchers: Option<Vec<GlobMatcher>> = globs.map(|globs| globs.iter().filter_map(|glob| matcher(glob)).collect());
        let is_in = |name: &str| matchers.as_ref().is_none_or(|all| all.iter().any(|glob| glob.is_match(name)));
        self.tools.iter().filter(|tool| is_in(&tool.definition.name)).map(|tool| tool.definition.clone()).collect()
    }
}

fn matcher(glob: &str) -> Option<GlobMatcher> {
    GlobBuilder::new(glob).build().ok().map(|glob| glob.compile_matcher())
}

/// The sources, and their catalog, made anew when a source's tools change.
#[derive(Debug)]
pub(crate) struct Catalogs {
    sources: Vec<Arc<dyn ToolSource>>,
    newest: Mutex<Newest>,
}

/// A catalog, and the lists that it was made of.
#[derive(Debug, Default)]
struct Newest {
    seen: Vec<Arc<[SourceTool]>>,
    catalog: Arc<Catalog>,
}

impl Catalogs {
    pub(crate) fn new(sources: Vec<Arc<dyn ToolSource>>) -> Self {
        Self { sources, newest: Mutex::default() }
    }

    pub(crate) fn sources(&self) -> &[Arc<dyn ToolSource>] {
        &self.sources
    }

    /// The catalog of this moment.
    pub(crate) fn current(&self) -> Arc<Catalog> {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let Newest { seen, catalog } = &mut *newest;
        let is_same = seen.len() == self.sources.len()
            && self.sources.iter().zip(seen.iter()).all(|(source, seen)| same_tools(&source.tools(), seen));
        if !is_same {
            *seen = self.sources.iter().map(|source| source.tools()).collect();
            *catalog = Arc::new(build(&self.sources, seen));
        }
        catalog.clone()
    }
}

/// Whether the very same list is meant; an empty list is one value wherever it lies.
fn same_tools(a: &Arc<[SourceTool]>, b: &Arc<[SourceTool]>) -> bool {
    Arc::ptr_eq(a, b) || (a.is_empty() && b.is_empty())
}

fn build(sources: &[Arc<dyn ToolSource>], tools: &[Arc<[SourceTool]>]) -> Catalog {
    let mut catalog = Catalog::default();
    for (source, tools) in sources.iter().zip(tools) {
        for tool in tools.iter().filter(|tool| tool.face.visibility != Visibility::Pages) {
            if let Err(why) = check_schema(&tool.input_schema) {
                tracing::info!(source = source.name(), tool = shown_name(&tool.name), why, "tool set aside");
                let source = source.name().to_owned();
                catalog.set_aside.push(SetAside { source, tool: tool.name.clone(), reason: why });
                continue;
            }
            let definition = Arc::new(definition(source.name(), tool));
            let hash = definition_hash(&definition);
            catalog.tools.push(CatalogTool { definition, hash, source: source.clone(), face: tool.face.clone() });
        }
    }
    catalog.tools.sort_by(|a, b| a.definition.name.cmp(&b.definition.name));
    catalog.tools.dedup_by(|later, first| {
        let is_twice = later.definition.name == first.definition.name;
        if is_twice {
            tracing::warn!(tool = later.definition.name, "a second tool of the same name is set aside");
        }
        is_twice
    });
    catalog.by_name = catalog.tools.iter().enumerate().map(|(index, tool)| (tool.definition.name.clone(), index)).collect();
    catalog
}

fn definition(source: &str, tool: &SourceTool) -> ToolDefinition {
    ToolDefinition {
        name: qualified(source, &tool.name),
        source: source.to_owned(),
        tool: tool.name.clone(),
        title: tool.title.clone(),
        description: tool.description.clone(),
        input_schema: tool.input_schema.clone(),
        annotations: tool.annotations.clone(),
        declared: tool.declared,
    }
}

/// The hash of what a person agrees to: name, description, schema, annotations.
pub(crate) fn definition_hash(definition: &ToolDefinition) -> Arc<str> {
    let mut hasher = Sha256::new();
    let annotations = definition.annotations.as_ref().map(ToString::to_string).unwrap_or_default();
    let schema = definition.input_schema.to_string();
    for part in [&definition.source, &definition.tool, &definition.description, &schema, &annotations] {
        hasher.update(part.len().to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hex(&hasher.finalize()).into()
}
