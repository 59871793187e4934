//! The tools of all sources at one moment, by qualified name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use turnwright_core::secrets::Secrets;
use turnwright_core::{ToolDefinition, UserId, shell_word};

use crate::names::{hex, qualified};
use crate::pins::Known;
use crate::schema::check_schema;
use crate::source::shown_name;
use crate::tool_search::ToolIndex;
use crate::{ChosenTools, KnownSecrets, SetAside, SourceTool, ToolFace, ToolSource, Visibility};

/// A tool that can be called.
#[derive(Debug, Clone)]
pub(crate) struct CatalogTool {
    pub(crate) definition: Arc<ToolDefinition>,
    /// Over name, description, schema and annotations: what a person agrees to when they allow a call.
    pub(crate) hash: Arc<str>,
    /// About how long its definition is, in bytes.
    pub(crate) bytes: usize,
    pub(crate) source: Arc<dyn ToolSource>,
    /// What else its source says of it.
    pub(crate) face: Arc<ToolFace>,
    /// The source's free slots.
    pub(crate) slots: Arc<Semaphore>,
}

/// All tools of one moment, sorted by qualified name: the canonical order of every request (law 7).
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    pub(crate) tools: Vec<CatalogTool>,
    by_name: HashMap<String, usize>,
    /// Tools that are other than a person agreed to, by qualified name: not offered until one agrees again.
    pub(crate) changed: HashMap<String, CatalogTool>,
    /// Tools that cannot be offered, and why.
    pub(crate) set_aside: Vec<SetAside>,
    /// Tools for their source's own pages, which no model is offered.
    for_pages: Vec<CatalogTool>,
    /// Made when somebody searches.
    index: OnceLock<ToolIndex>,
    /// What lists of globs leave, by list, for [`MOST_CHOSEN`] of them: a conversation asks for the same at each turn, and
    /// compiling its globs is a good part of what a short turn takes.
    chosen: Mutex<HashMap<Vec<String>, Vec<Arc<ToolDefinition>>>>,
}

/// How many lists of globs are remembered.
const MOST_CHOSEN: usize = 64;

impl Catalog {
    /// What of it is for `user`: everybody's tools and the user's own.
    fn of(self: &Arc<Self>, user: &UserId, sources: &[Arc<dyn ToolSource>]) -> Arc<Self> {
        let is_anothers = |source: &Arc<dyn ToolSource>| source.owner().is_some_and(|owner| owner != user);
        let hidden: Vec<&str> = sources.iter().filter(|source| is_anothers(source)).map(|source| source.name()).collect();
        if hidden.is_empty() {
            return self.clone();
        }
        let is_shown = |source: &str| !hidden.contains(&source);
        let mut own = Self {
            tools: self.tools.iter().filter(|tool| is_shown(&tool.definition.source)).cloned().collect(),
            by_name: HashMap::new(),
            changed: self
                .changed
                .iter()
                .filter(|(_, tool)| is_shown(&tool.definition.source))
                .map(|(name, tool)| (name.clone(), tool.clone()))
                .collect(),
            set_aside: self.set_aside.iter().filter(|aside| is_shown(&aside.source)).cloned().collect(),
            for_pages: self.for_pages.iter().filter(|tool| is_shown(&tool.definition.source)).cloned().collect(),
            index: OnceLock::new(),
            chosen: Mutex::default(),
        };
        own.name();
        Arc::new(own)
    }

    /// Its tools, ready to be searched, by their places.
    pub(crate) fn index(&self) -> &ToolIndex {
        self.index.get_or_init(|| ToolIndex::new(self.tools.iter().map(|tool| &*tool.definition)))
    }

    fn name(&mut self) {
        self.by_name = self.tools.iter().enumerate().map(|(index, tool)| (tool.definition.name.clone(), index)).collect();
    }

    pub(crate) fn get(&self, name: &str) -> Option<&CatalogTool> {
        self.by_name.get(name).and_then(|index| self.tools.get(*index))
    }

    /// The tool that a page of `source` calls by its name there: one whose source means it for pages.
    pub(crate) fn for_page(&self, source: &str, tool: &str) -> Option<&CatalogTool> {
        let is_it = |known: &&CatalogTool| known.definition.source == source && known.definition.tool == tool;
        let mut all = self.tools.iter().chain(&self.for_pages).filter(is_it);
        all.find(|known| known.face.visibility != Visibility::Models)
    }

    /// The same, also where it is set aside because it changed: whoever is about to run it must ask first.
    pub(crate) fn get_changed_too(&self, name: &str) -> Option<&CatalogTool> {
        self.get(name).or_else(|| self.changed.get(name))
    }

    /// Why a tool is set aside that changed, and how a person agrees to it.
    pub(crate) fn why_changed(&self, name: &str) -> Option<&str> {
        let tool = self.changed.get(name)?;
        let is_it = |aside: &&SetAside| aside.source == tool.definition.source && aside.tool == tool.definition.tool;
        Some(self.set_aside.iter().find(is_it).map_or("", |aside| aside.reason.as_str()))
    }

    /// What is set aside because it changed, for people.
    pub(crate) fn changed_in_words(&self) -> Option<String> {
        let mut names: Vec<&str> = self.changed.keys().map(String::as_str).collect();
        names.sort_unstable();
        (!names.is_empty())
            .then(|| format!("changed since a person agreed to them, left out until one agrees again: {}", names.join(", ")))
    }

    /// The tools that these globs leave; all where there are none.
    pub(crate) fn offered(&self, globs: Option<&[String]>) -> Vec<Arc<ToolDefinition>> {
        let Some(globs) = globs else { return self.tools.iter().map(|tool| tool.definition.clone()).collect() };
        let mut chosen = self.chosen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = chosen.get(globs) {
            return known.clone();
        }
        let those = ChosenTools::of(globs);
        let left: Vec<_> =
            self.tools.iter().filter(|tool| those.has(&tool.definition.name)).map(|tool| tool.definition.clone()).collect();
        if chosen.len() >= MOST_CHOSEN {
            chosen.clear();
        }
        chosen.insert(globs.to_vec(), left.clone());
        left
    }
}

/// The sources, and their catalog, made anew when a source's tools change or the sources do.
#[derive(Debug)]
pub(crate) struct Catalogs {
    newest: Mutex<Newest>,
    /// What is hidden in what sources say of their tools.
    secrets: OnceLock<KnownSecrets>,
}

/// A catalog, and the lists that it was made of.
#[derive(Debug)]
struct Newest {
    sources: Arc<[Arc<dyn ToolSource>]>,
    /// Of each source, by its place.
    slots: Vec<Arc<Semaphore>>,
    /// `None` where the sources are others since the catalog was made.
    seen: Option<Vec<Arc<[SourceTool]>>>,
    pins: Arc<Known>,
    catalog: Arc<Catalog>,
}

impl Catalogs {
    pub(crate) fn new(sources: Vec<Arc<dyn ToolSource>>) -> Self {
        let slots = sources.iter().map(slots).collect();
        Self {
            newest: Mutex::new(Newest {
                sources: sources.into(),
                slots,
                seen: None,
                pins: Arc::default(),
                catalog: Arc::default(),
            }),
            secrets: OnceLock::new(),
        }
    }

    /// Hides these in what sources say of their tools.
    pub(crate) fn hide(&self, known: KnownSecrets) {
        drop(self.secrets.set(known));
        self.newest.lock().unwrap_or_else(PoisonError::into_inner).seen = None;
    }

    pub(crate) fn sources(&self) -> Arc<[Arc<dyn ToolSource>]> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner).sources.clone()
    }

    /// Puts other sources in place of those that there are. One that stays keeps its slots.
    pub(crate) fn replace(&self, sources: Arc<[Arc<dyn ToolSource>]>) {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&newest.sources, &sources) {
            return;
        }
        let kept = |source: &Arc<dyn ToolSource>| {
            let mut before = newest.sources.iter().zip(&newest.slots);
            before.find(|(before, _)| Arc::ptr_eq(before, source)).map(|(_, slots)| slots.clone())
        };
        let slots = sources.iter().map(|source| kept(source).unwrap_or_else(|| slots(source))).collect();
        (newest.sources, newest.slots, newest.seen) = (sources, slots, None);
    }

    /// What people agreed to, as it is known now.
    pub(crate) fn pin(&self, pins: Arc<Known>) {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&newest.pins, &pins) {
            (newest.pins, newest.seen) = (pins, None);
        }
    }

    /// The catalog of this moment, as far as it is for `user`.
    pub(crate) fn of(&self, user: &UserId) -> Arc<Catalog> {
        let catalog = self.current();
        catalog.of(user, &self.sources())
    }

    /// The sources that are everybody's, and the user's own.
    pub(crate) fn sources_of(&self, user: &UserId) -> Arc<[Arc<dyn ToolSource>]> {
        let all = self.sources();
        let is_for = |source: &Arc<dyn ToolSource>| source.owner().is_none_or(|owner| owner == user);
        if all.iter().all(is_for) { all } else { all.iter().filter(|source| is_for(source)).cloned().collect() }
    }

    fn current(&self) -> Arc<Catalog> {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let Newest { sources, slots, seen, pins, catalog } = &mut *newest;
        let is_same =
            seen.as_ref().is_some_and(|seen| sources.iter().zip(seen).all(|(source, seen)| same_tools(&source.tools(), seen)));
        if !is_same {
            let tools: Vec<_> = sources.iter().map(|source| source.tools()).collect();
            let secrets = self.secrets.get().map(KnownSecrets::now).unwrap_or_default();
            *catalog = Arc::new(build(sources, slots, &tools, (pins, &secrets)));
            *seen = Some(tools);
        }
        catalog.clone()
    }
}

/// The slots of a source, all of them free.
fn slots(source: &Arc<dyn ToolSource>) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(source.max_concurrent_calls().clamp(1, Semaphore::MAX_PERMITS)))
}

/// Whether the very same list is meant; an empty list is one value wherever it lies.
fn same_tools(a: &Arc<[SourceTool]>, b: &Arc<[SourceTool]>) -> bool {
    Arc::ptr_eq(a, b) || (a.is_empty() && b.is_empty())
}

fn build(
    sources: &[Arc<dyn ToolSource>],
    slots: &[Arc<Semaphore>],
    tools: &[Arc<[SourceTool]>],
    (pins, secrets): (&Known, &Secrets),
) -> Catalog {
    let mut catalog = Catalog::default();
    for ((source, slots), tools) in sources.iter().zip(slots).zip(tools) {
        for tool in tools.iter() {
            if let Err(why) = check_schema(&tool.input_schema) {
                tracing::info!(source = source.name(), tool = shown_name(&tool.name), why, "tool set aside");
                let source = source.name().to_owned();
                catalog.set_aside.push(SetAside { source, tool: tool.name.clone(), reason: why, definition: None });
                continue;
            }
            let mut definition = Arc::new(definition(source.name(), tool));
            secrets.hide_in_definition(&mut definition);
            let (hash, bytes) = measured(&definition);
            let pin = pins.get(&definition.name).filter(|pin| source.is_foreign() && !pin.is_of(&definition));
            let (source, face, slots) = (source.clone(), tool.face.clone(), slots.clone());
            let tool = CatalogTool { definition, hash, bytes, source, face, slots };
            match pin {
                None if tool.face.visibility == Visibility::Pages => catalog.for_pages.push(tool),
                None => catalog.tools.push(tool),
                Some(pin) => {
                    let definition = &tool.definition;
                    let reason = format!(
                        "its definition changed since a person agreed to it; `mcp approve {} {}` agrees to:\n  {}",
                        shell_word(&definition.source),
                        shell_word(&definition.tool),
                        pin.difference(definition).join("\n  ")
                    );
                    let (source, name) = (definition.source.clone(), definition.tool.clone());
                    let now = Some(tool.hash.to_string());
                    catalog.set_aside.push(SetAside { source, tool: name, reason, definition: now });
                    catalog.changed.insert(definition.name.clone(), tool);
                }
            }
        }
    }
    catalog.tools.sort_by(|a, b| a.definition.name.cmp(&b.definition.name));
    let mut twice = Vec::new();
    catalog.tools.dedup_by(|later, first| {
        let definition = &later.definition;
        let is_twice = definition.name == first.definition.name;
        if is_twice {
            tracing::warn!(tool = definition.name, "a second tool of the same name is set aside");
            let reason = format!("another tool is called `{}` too", definition.name);
            let (source, tool) = (definition.source.clone(), definition.tool.clone());
            twice.push(SetAside { source, tool, reason, definition: None });
        }
        is_twice
    });
    catalog.set_aside.append(&mut twice);
    catalog.name();
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
    measured(definition).0
}

/// The same, and about how long the definition is as a model is told it, in bytes.
fn measured(definition: &ToolDefinition) -> (Arc<str>, usize) {
    let mut hasher = Sha256::new();
    let annotations = definition.annotations.as_ref().map(ToString::to_string).unwrap_or_default();
    let schema = definition.input_schema.to_string();
    for part in [&definition.source, &definition.tool, &definition.description, &schema, &annotations] {
        hasher.update(part.len().to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let bytes = definition.name.len() + definition.description.len() + schema.len();
    (hex(&hasher.finalize()).into(), bytes)
}
