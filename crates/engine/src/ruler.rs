//! The policy, the tools and the free slots of this moment, as the plan asks for them.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use turnwright_core::policy::{Action, Asked, Policy};
use turnwright_core::{
    ApproveMode, CallId, CallView, Ruler, Ruling, RunsAt, SEARCH_TOOL, StartRuling, ToolChoice, ToolDefinition, ToolErrorKind,
    ToolResult, TurnSettings,
};

use crate::ChosenTools;
use crate::arguments::Validators;
use crate::catalog::{Catalog, CatalogTool, definition_hash};
use crate::chosen_tools::matcher;
use crate::names::meant;
use crate::offering::find;
use crate::writes::Writing;

/// What the driver of one turn knows about starting calls. Lives as long as the driver.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    /// Permits that were waited for and not used yet, by source.
    pub(crate) granted: HashMap<String, Vec<OwnedSemaphorePermit>>,
    /// Sources whose slots are all taken; all of them together have the empty name.
    pub(crate) wanted: HashMap<String, Arc<Semaphore>>,
    /// What the calls of serial tools write that run.
    pub(crate) writing: Writing,
    /// Calls that began before their message was stored, with their slots.
    pub(crate) ahead: HashMap<CallId, Begun>,
}

impl Slots {
    /// One of these slots, where one was waited for or is free; else it is waited for.
    fn take(&mut self, name: &str, slots: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
        let kept = self.granted.get_mut(name).and_then(Vec::pop);
        let permit = kept.or_else(|| slots.clone().try_acquire_owned().ok());
        if permit.is_none() {
            self.wanted.insert(name.to_owned(), slots.clone());
        }
        permit
    }
}

/// What a call began with before its message was stored.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) name: String,
    pub(crate) arguments: String,
    /// The hash of its tool's definition.
    pub(crate) tool: Arc<str>,
}

/// A call that got its slot.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) tool: CatalogTool,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) permit: Permit,
}

/// A call's place among those of its source, and among all.
#[derive(Debug)]
pub(crate) struct Permit {
    pub(crate) _source: OwnedSemaphorePermit,
    pub(crate) _overall: Option<OwnedSemaphorePermit>,
}

/// The slots of all sources together, among those of the sources, none of which has this name.
const OVERALL: &str = "";

/// Answers the plan's questions for one plan.
#[derive(Debug)]
pub(crate) struct TurnRuler<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) settings: &'a TurnSettings,
    pub(crate) offered: &'a [Arc<ToolDefinition>],
    /// What this plan offers besides.
    pub(crate) found: Vec<Arc<ToolDefinition>>,
    /// How many tools a search gives, where tools are held back.
    pub(crate) results: Option<usize>,
    pub(crate) catalog: &'a Catalog,
    pub(crate) validators: &'a Validators,
    pub(crate) slots: &'a mut Slots,
    /// The slots of all sources together, where there are not as many as one likes.
    pub(crate) overall: Option<&'a Arc<Semaphore>>,
    /// The calls that got their slots in this plan.
    pub(crate) ready: HashMap<CallId, Ready>,
    /// What the calls would write that this plan let wait: none overtakes one before it that writes the same.
    pub(crate) waiting: Writing,
    /// Whether nothing of what the driver before began may still be ending.
    pub(crate) is_quiet: bool,
}

/// How many names a model that asked for an unknown tool is told.
const MAX_NAMES_TOLD: usize = 40;

/// Whether one of the globs takes a name.
fn is_in(globs: &[String], name: &str) -> bool {
    globs.iter().any(|glob| matcher(glob).is_some_and(|matcher| matcher.is_match(name)))
}

/// Whether any tool may be called in a turn with these settings.
pub(crate) fn may_call(settings: &TurnSettings) -> bool {
    settings.tool_choice != Some(ToolChoice::None)
}

/// What the policy is asked about a call in a turn with these settings.
pub(crate) fn asked<'a>(settings: &TurnSettings, definition: &'a ToolDefinition, arguments: &'a Value) -> Asked<'a> {
    Asked {
        mode: settings.approve,
        name: &definition.name,
        declared: definition.declared,
        arguments,
        is_always_asked: is_in(&settings.always_ask, &definition.name),
    }
}

/// The result of a call that cannot start. One that was started before may have happened then.
fn not_run(call: &CallView<'_>, kind: ToolErrorKind, why: &str) -> ToolResult {
    if call.starts == 0 {
        return ToolResult::failed(call.id, kind, format!("`{}` did not run: {why}.", call.name));
    }
    let text = format!("`{}` was interrupted: it may or may not have happened. It did not run again: {why}.", call.name);
    ToolResult::failed(call.id, ToolErrorKind::Interrupted, text)
}

impl TurnRuler<'_> {
    fn offered(&self, name: &str) -> Option<&Arc<ToolDefinition>> {
        self.offered.iter().chain(&self.found).find(|definition| definition.name == name)
    }

    /// The search for tools that are held back, where the call is one.
    fn is_search(&self, call: &CallView<'_>) -> bool {
        self.results.is_some() && self.offered(call.name).is_some_and(|definition| definition.is_search())
    }

    fn search(&mut self, call: &CallView<'_>) -> StartRuling {
        let arguments: Map<String, Value> = serde_json::from_str(call.arguments).unwrap_or_default();
        let query = arguments.get("query").and_then(Value::as_str).unwrap_or_default();
        let offered: Vec<_> = self.offered.iter().chain(&self.found).cloned().collect();
        let asked = (call.id, query, self.results.unwrap_or(1));
        let (definitions, result) = find(self.catalog, self.settings, &offered, asked);
        self.found.extend(definitions.iter().cloned());
        StartRuling::Found { definitions, result }
    }

    /// The hash of an offered definition; the catalog's where it is still the same one.
    fn hash(&self, definition: &ToolDefinition) -> Arc<str> {
        match self.catalog.get(&definition.name) {
            Some(tool) if *tool.definition == *definition => tool.hash.clone(),
            _ => definition_hash(definition),
        }
    }

    /// A slot of the source and one of all together, where both are free.
    fn permit(&mut self, source: &str, slots: &Arc<Semaphore>) -> Option<Permit> {
        let of_source = self.slots.take(source, slots)?;
        let of_all = match self.overall {
            None => None,
            Some(overall) => Some(self.slots.take(OVERALL, overall)?),
        };
        Some(Permit { _source: of_source, _overall: of_all })
    }

    fn no_such_tool(&self, call: &CallView<'_>) -> ToolResult {
        let mut names: Vec<&str> = self.offered.iter().map(|tool| tool.name.as_str()).collect();
        let meant = meant(call.name, &names.iter().copied());
        names.sort_by_key(|name| !meant.contains(name));
        let more = match names.len().saturating_sub(MAX_NAMES_TOLD) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        names.truncate(MAX_NAMES_TOLD);
        let text = if self.results.is_some() {
            format!(
                "There is no tool `{}`; it is not among those that are held back either. Call `{SEARCH_TOOL}` to find one.",
                call.name
            )
        } else if names.is_empty() {
            format!("There is no tool `{}`, and no other.", call.name)
        } else {
            format!("There is no tool `{}`. The tools are: {}{more}.", call.name, names.join(", "))
        };
        ToolResult::failed(call.id, ToolErrorKind::NotFound, text)
    }
}

impl Ruler for TurnRuler<'_> {
    fn is_quiet(&self) -> bool {
        self.is_quiet
    }

    fn rule(&mut self, call: &CallView<'_>) -> Ruling {
        // Models are told so, and some call all the same.
        if !may_call(self.settings) {
            let text = format!("`{}` did not run: no tool may be called in this turn. Answer without one.", call.name);
            return Ruling::Refuse(ToolResult::failed(call.id, ToolErrorKind::PermissionDenied, text));
        }
        if call.runs_at == RunsAt::Client {
            return Ruling::HandOver;
        }
        let Some(definition) = self.offered(call.name) else { return Ruling::Refuse(self.no_such_tool(call)) };
        let hash = self.hash(definition);
        let arguments = match self.validators.check(&hash, &definition.input_schema, call.arguments) {
            Ok(arguments) => Value::Object(arguments),
            Err(problem) => {
                let text = format!("`{}` did not run: {problem}.", call.name);
                return Ruling::Refuse(ToolResult::failed(call.id, ToolErrorKind::InvalidArguments, text));
            }
        };
        // Where nothing runs that no rule allows, nothing would be found that a rule allows.
        let mode = if definition.is_search() { ApproveMode::All } else { self.settings.approve };
        let asked = Asked { mode, ..asked(self.settings, definition, &arguments) };
        let verdict = self.policy.verdict(asked);
        match verdict.action {
            Action::Allow => Ruling::Allow { rule: verdict.rule, definition_hash: hash.to_string() },
            Action::Ask => Ruling::Ask { rule: verdict.rule },
            Action::Deny => Ruling::Deny { rule: verdict.rule },
        }
    }

    fn reveal(&mut self, call: &CallView<'_>) -> Option<Arc<ToolDefinition>> {
        self.results?;
        if self.offered(call.name).is_some() {
            return None;
        }
        let definition = &self.catalog.get(call.name)?.definition;
        let is_meant = self.settings.tools.as_deref().is_none_or(|globs| ChosenTools::of(globs).has(call.name));
        is_meant.then(|| {
            self.found.push(definition.clone());
            definition.clone()
        })
    }

    fn start(&mut self, call: &CallView<'_>) -> StartRuling {
        if self.is_search(call) {
            return self.search(call);
        }
        let Some(tool) = self.catalog.get_changed_too(call.name) else {
            if call.task.is_some() {
                let text = format!(
                    "`{}` went on as a task, and its server is not there any more. What came of it is unknown.",
                    call.name
                );
                return StartRuling::Refuse(ToolResult::failed(call.id, ToolErrorKind::Interrupted, text));
            }
            return StartRuling::Refuse(not_run(call, ToolErrorKind::Unavailable, "it is not there at the moment"));
        };
        let is_set_aside = self.catalog.changed.contains_key(call.name);
        // A task is only asked for.
        if call.task.is_none() && call.decided_hash.map_or(is_set_aside, |hash| *hash != *tool.hash) {
            if self.settings.approve == ApproveMode::Ask {
                return StartRuling::DefinitionChanged { definition_hash: tool.hash.to_string() };
            }
            let why = "its definition changed since it was allowed";
            return StartRuling::Refuse(not_run(call, ToolErrorKind::PermissionDenied, why));
        }
        let arguments = match self.validators.check(&tool.hash, &tool.definition.input_schema, call.arguments) {
            Ok(arguments) => arguments,
            Err(_) if call.task.is_some() => Map::new(),
            Err(problem) => return StartRuling::Refuse(not_run(call, ToolErrorKind::InvalidArguments, &problem)),
        };
        let replayable = tool.definition.declared.is_replayable();
        let is_the_same =
            |begun: &Begun| begun.name == call.name && begun.arguments == call.arguments && begun.tool == tool.hash;
        if self.slots.ahead.get(&call.id).is_some_and(is_the_same) {
            return StartRuling::Start { replayable };
        }
        let source = tool.source.name();
        let writes = tool.definition.declared.serial.then(|| tool.source.writes(&tool.definition.tool, &arguments));
        let has_to_wait = writes.as_ref().is_some_and(|writes| {
            self.slots.writing.blocks(call.id, source, writes) || self.waiting.stands_before(call.id, source, writes)
        });
        let permit = if has_to_wait { None } else { self.permit(source, &tool.slots) };
        match (permit, writes) {
            (None, writes) => {
                if let Some(writes) = writes {
                    self.waiting.begin(call.id, source, writes);
                }
                return StartRuling::Later;
            }
            (Some(permit), writes) => {
                if let Some(writes) = writes {
                    self.slots.writing.begin(call.id, source, writes);
                }
                self.ready.insert(call.id, Ready { tool: tool.clone(), arguments, permit });
            }
        }
        StartRuling::Start { replayable }
    }
}
