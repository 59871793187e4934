//! What a turn is offered: every tool that is meant, or, where these would take too much of the model's window, those that are
//! always offered and a search that finds the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use turnwright_core::{
    AssistantBlock, CallId, Control, Entry, Journal, SEARCH_TOOL, ToolChoice, ToolDefinition, ToolErrorKind, ToolResult,
    TurnSettings, UserId, search_tool,
};

use crate::ChosenTools;
use crate::catalog::Catalog;
use crate::chosen_tools::{lets_in, letting_in, matcher};
use crate::engine::Engine;
use crate::inner::Inner;
use crate::names::may_let_in;

/// The window of a model of which it is not known, in tokens.
const ASSUMED_WINDOW: u32 = 128_000;
/// About how many bytes of a definition are a token.
const BYTES_A_TOKEN: usize = 4;
/// The most of a tool's description that a search tells, in characters; whole it is in the definition.
const MAX_DESCRIPTION_CHARS: usize = 200;

/// When tools are held back, and what is found of them.
#[derive(Debug, Clone, PartialEq)]
pub struct HoldBack {
    /// The share of the model's window that definitions may take, from 0 (tools are always held back) to 1.
    pub above_share: f64,
    /// Globs over qualified names of tools that are offered all the same.
    pub always: Vec<String>,
    /// How many tools a search gives; at least 1.
    pub results: usize,
}

impl Default for HoldBack {
    /// A tenth of the window, nothing besides, five tools.
    fn default() -> Self {
        Self { above_share: 0.1, always: Vec::new(), results: 5 }
    }
}

impl HoldBack {
    /// How many tokens definitions may take in a window of so many.
    fn most_tokens(&self, window: u32) -> f64 {
        f64::from(window) * self.above_share
    }
}

impl Engine {
    /// Holds tools back from now on where their definitions would take too much of a model's window. Counts once, before the
    /// first turn; without it every tool is offered.
    pub fn hold_back(&self, hold_back: HoldBack) {
        if self.inner().choices.hold_back.set(hold_back).is_err() {
            tracing::error!("when an engine holds tools back is said once, before its first turn");
        }
    }

    /// The tools of this source by qualified name, sorted. Waits for it alone where it is starting, at most its start limit.
    pub async fn tools_of(&self, source: &str) -> Vec<Arc<ToolDefinition>> {
        self.inner().settle_sources(self.user(), |known| known == source).await;
        self.tools_now().into_iter().filter(|tool| tool.source == source).collect()
    }

    /// Those of these globs over the names of tools that leave none. `None` for as long as there is a source whose tools one of them may
    /// let in and of which it is not known yet what it offers: for any other no turn with these globs waits.
    pub fn globs_without_tools(&self, globs: &[String]) -> Option<Vec<String>> {
        let is_meant = |source: &str| letting_in(globs).any(|glob| may_let_in(glob, source));
        if !self.inner().awaited(self.user(), is_meant).is_empty() {
            return None;
        }
        let catalog = self.inner().catalogs.of(self.user());
        let is_idle = |glob: &&String| {
            // One that is set aside because it changed is told of elsewhere.
            let mut names = catalog.tools.iter().map(|tool| &tool.definition.name).chain(catalog.changed.keys());
            // One that keeps out may do so for a source that is not there.
            lets_in(glob) && matcher(glob).is_some_and(|glob| !names.any(|name| glob.is_match(name)))
        };
        Some(globs.iter().filter(is_idle).cloned().collect())
    }
}

impl Inner {
    /// The entry that offers what is there now, where that is not what the journal offers.
    pub(crate) fn newly_offered(&self, owner: &UserId, journal: &Journal, settings: &TurnSettings) -> Option<Entry> {
        let catalog = self.catalogs.of(owner);
        let mut offered = catalog.offered(settings.tools.as_deref());
        if !settings.client_tools.is_empty() {
            // Where names meet, the one that asks has its own.
            offered.retain(|tool| settings.client_tool(&tool.name).is_none());
        }
        if let Some(hold_back) =
            self.choices.hold_back.get().filter(|hold_back| self.is_too_much(&offered, &catalog, settings, hold_back))
        {
            offered = held_back(offered, journal, settings, hold_back);
        } else if !settings.client_tools.is_empty() {
            offered.extend(settings.client_tools.iter().cloned());
            offered.sort_by(|a, b| a.name.cmp(&b.name));
        }
        let now = journal.offered();
        let is_same = now.len() == offered.len() && now.iter().zip(&offered).all(|(a, b)| Arc::ptr_eq(a, b) || a == b);
        (!is_same).then_some(Entry::Control(Control::Offered { definitions: offered }))
    }

    /// Whether these definitions would take too much of the window of the turn's model, or are more than its provider takes.
    fn is_too_much(
        &self,
        offered: &[Arc<ToolDefinition>],
        catalog: &Catalog,
        settings: &TurnSettings,
        hold_back: &HoldBack,
    ) -> bool {
        let provider = self.providers.get(settings.model.provider());
        let most = provider.as_ref().ok().and_then(|provider| provider.max_tools());
        if most.is_some_and(|most| offered.len() + settings.client_tools.len() > most) {
            return true;
        }
        let bytes: usize = offered.iter().filter_map(|tool| catalog.get(&tool.name)).map(|tool| tool.bytes).sum();
        let tokens = u32::try_from(bytes / BYTES_A_TOKEN).unwrap_or(u32::MAX);
        // Nobody has to be asked about few.
        if f64::from(tokens) <= hold_back.most_tokens(1_000) {
            return false;
        }
        let window = provider.ok().and_then(|provider| provider.facts(settings.model.model()).context_window);
        f64::from(tokens) > hold_back.most_tokens(window.unwrap_or(ASSUMED_WINDOW))
    }
}

/// What is offered of `all`: the search, what is always offered, what the request demands, the client's own, and then, in the
/// order in which they came, the tools that the conversation has found or called.
fn held_back(
    all: Vec<Arc<ToolDefinition>>,
    journal: &Journal,
    settings: &TurnSettings,
    hold_back: &HoldBack,
) -> Vec<Arc<ToolDefinition>> {
    let always: Vec<_> = hold_back.always.iter().filter_map(|glob| matcher(glob)).collect();
    let is_demanded = |name: &str| match &settings.tool_choice {
        Some(ToolChoice::Tool(tool)) => tool == name,
        Some(ToolChoice::Tools(tools)) => tools.iter().any(|tool| tool == name),
        Some(ToolChoice::Auto | ToolChoice::Required | ToolChoice::None) | None => false,
    };
    let is_always = |tool: &ToolDefinition| is_demanded(&tool.name) || always.iter().any(|glob| glob.is_match(&tool.name));
    let all: Vec<_> = all.into_iter().filter(|tool| tool.name != SEARCH_TOOL).collect();
    let (mut offered, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|tool| is_always(tool));
    let mut sources: BTreeMap<&str, usize> = BTreeMap::new();
    for tool in &rest {
        *sources.entry(&tool.source).or_default() += 1;
    }
    let sources: Vec<(&str, usize)> = sources.into_iter().collect();
    offered.extend(settings.client_tools.iter().cloned());
    if !sources.is_empty() {
        offered.push(Arc::new(search_tool(&sources)));
    }
    offered.sort_by(|a, b| a.name.cmp(&b.name));
    let by_name: BTreeMap<&str, &Arc<ToolDefinition>> = rest.iter().map(|tool| (tool.name.as_str(), tool)).collect();
    for name in known(journal) {
        if let Some(tool) = by_name.get(name).filter(|tool| !offered.iter().any(|known| known.name == tool.name)) {
            offered.push(Arc::clone(tool));
        }
    }
    offered
}

/// The names of what a conversation has found; where nothing was held back before, of what it has called.
fn known(journal: &Journal) -> Vec<&str> {
    if journal.holds_back() {
        return journal.offered().iter().map(|tool| tool.name.as_str()).collect();
    }
    let said = journal.entries().iter().filter_map(|stored| match &*stored.entry {
        Entry::Assistant(message) => Some(&message.blocks),
        _ => None,
    });
    let called = said.flatten().filter_map(|block| match block {
        AssistantBlock::Call(call) => Some(call.name.as_str()),
        AssistantBlock::Text { .. }
        | AssistantBlock::Reasoning { .. }
        | AssistantBlock::Refusal { .. }
        | AssistantBlock::Opaque { .. } => None,
    });
    called.collect()
}

/// What a search finds in `catalog` among the tools that the turn may use: the definitions that were not offered before, and
/// what the model is told.
pub(crate) fn find(
    catalog: &Catalog,
    settings: &TurnSettings,
    offered: &[Arc<ToolDefinition>],
    (call, query, results): (CallId, &str, usize),
) -> (Vec<Arc<ToolDefinition>>, ToolResult) {
    let chosen = settings.tools.as_deref().map(ChosenTools::of);
    let is_meant = |name: &str| {
        name != SEARCH_TOOL && settings.client_tool(name).is_none() && chosen.as_ref().is_none_or(|chosen| chosen.has(name))
    };
    let at = |place: usize| catalog.tools.get(place);
    let places =
        catalog.index().search(query, results.max(1), |place| at(place).is_some_and(|tool| is_meant(&tool.definition.name)));
    let found: Vec<Arc<ToolDefinition>> = places.into_iter().filter_map(at).map(|tool| tool.definition.clone()).collect();
    if found.is_empty() {
        let mut sources: Vec<&str> = catalog.tools.iter().map(|tool| tool.definition.source.as_str()).collect();
        sources.dedup();
        let text = format!(
            "No tool fits `{query}`. Try other words, or the name of what is to be worked with. There are tools of: {}.",
            sources.join(", ")
        );
        return (Vec::new(), ToolResult::failed(call, ToolErrorKind::NotFound, text));
    }
    let lines = found.iter().map(|tool| {
        let described = tool.described();
        let first = described.lines().next().unwrap_or_default();
        let told: String = first.chars().take(MAX_DESCRIPTION_CHARS).collect();
        format!("- `{}`: {told}", tool.name)
    });
    let lines: Vec<String> = lines.collect();
    let text = format!("These fit best; they can be called now, by these names:\n{}", lines.join("\n"));
    let new = found.into_iter().filter(|tool| offered.iter().all(|known| known.name != tool.name)).collect();
    (new, ToolResult::of(call, turnwright_core::Outcome::Success, text))
}
