//! What `/metrics` tells, in the text form of Prometheus (`OpenMetrics` 1.0).
//!
//! Counted as it happens: turns, model calls and tool calls by being the engine's [`Observer`], requests by [`mod@requests`].
//! Looked at when asked: what runs at that moment, and the process itself. No label holds anything that a client, a model or a
//! tool can choose freely without a bound: past [`MAX_NAMES`] different ones all others are `other`. Clients name models, also such
//! as there are not, and some endpoints answer to any name: one that nobody configured takes no place before it has answered, and
//! none of those that are configured.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use turnwright_core::ModelRef;
use turnwright_engine::nodes::Condition;
use turnwright_engine::{Engine, Fact, ModelEnd, Observer};

mod process;
pub(crate) mod requests;

/// The media type of what is told.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The most different names of one kind that are told apart.
const MAX_NAMES: usize = 500;

/// The most different models that are told apart which nobody configured.
const MAX_UNLISTED_MODELS: usize = 100;

/// The longest name that is told, in bytes.
const MAX_NAME_BYTES: usize = 200;

/// Seconds at which histograms of calls count, from a quick tool to a model that thinks for minutes.
const CALL_SECONDS: [f64; 14] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StatusLabel {
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModelLabels {
    provider: String,
    model: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModelEndLabels {
    provider: String,
    model: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TokenLabels {
    provider: String,
    model: String,
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ToolLabels {
    source: String,
    tool: String,
    outcome: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SourceLabel {
    source: String,
}

/// The names that are told apart.
#[derive(Debug, Default)]
struct Names {
    providers: HashSet<String>,
    /// Those that the configuration names.
    listed_models: HashSet<String>,
    /// Others that answered.
    models: HashSet<String>,
    sources: HashSet<String>,
    tools: HashSet<String>,
}

/// A family of histograms over seconds of calls.
type Seconds<L> = Family<L, Histogram, fn() -> Histogram>;

fn seconds<L: Clone + std::hash::Hash + Eq>() -> Seconds<L> {
    Family::new_with_constructor(|| Histogram::new(CALL_SECONDS))
}

/// All that is counted. Cheap to clone; all clones are one.
#[derive(Debug, Clone)]
pub struct Metrics(Arc<Counted>);

#[derive(Debug)]
struct Counted {
    registry: Registry,
    names: Mutex<Names>,
    turns_started: Counter,
    turns_parked: Counter,
    turns_finished: Family<StatusLabel, Counter>,
    model_calls: Family<ModelEndLabels, Counter>,
    model_seconds: Seconds<ModelLabels>,
    first_content_seconds: Seconds<ModelLabels>,
    model_tokens: Family<TokenLabels, Counter>,
    model_cost: Family<ModelLabels, Counter<f64, std::sync::atomic::AtomicU64>>,
    tool_calls: Family<ToolLabels, Counter>,
    tool_seconds: Seconds<SourceLabel>,
    requests: requests::Counted,
    driven_turns: Gauge,
    watchers: Gauge,
    conversations: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Nothing happened yet.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("turnwright");
        let counted = Counted {
            names: Mutex::default(),
            turns_started: Counter::default(),
            turns_parked: Counter::default(),
            turns_finished: Family::default(),
            model_calls: Family::default(),
            model_seconds: seconds(),
            first_content_seconds: seconds(),
            model_tokens: Family::default(),
            model_cost: Family::default(),
            tool_calls: Family::default(),
            tool_seconds: seconds(),
            requests: requests::Counted::new(&mut registry),
            driven_turns: Gauge::default(),
            watchers: Gauge::default(),
            conversations: Gauge::default(),
            registry: Registry::default(),
        };
        registry.register("turns_started", "Turns that a message opened", counted.turns_started.clone());
        registry.register("turns_parked", "How often a turn came to wait for people", counted.turns_parked.clone());
        registry.register("turns_finished", "Turns that are over, by status", counted.turns_finished.clone());
        registry.register("model_calls", "Model calls that are over, by how they ended", counted.model_calls.clone());
        registry.register_with_unit("model_call", "How long model calls took", Unit::Seconds, counted.model_seconds.clone());
        registry.register_with_unit(
            "model_first_content",
            "How long models took to say their first",
            Unit::Seconds,
            counted.first_content_seconds.clone(),
        );
        registry.register("model_tokens", "Tokens, as providers count them", counted.model_tokens.clone());
        registry.register("model_cost_dollars", "What models cost, where prices are known", counted.model_cost.clone());
        registry.register("tool_calls", "Tool calls that are over, by how they ended", counted.tool_calls.clone());
        registry.register_with_unit("tool_call", "How long tool calls took", Unit::Seconds, counted.tool_seconds.clone());
        registry.register("turns_driven", "Turns that this process drives now", counted.driven_turns.clone());
        registry.register("watchers", "Streams that watch conversations now", counted.watchers.clone());
        registry.register("conversations_in_memory", "Conversations in memory now", counted.conversations.clone());
        let build = prometheus_client::metrics::info::Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "What runs", build);
        Self(Arc::new(Counted { registry, ..counted }))
    }

    /// Everything, as text.
    pub(crate) fn told(&self, engine: &Engine) -> String {
        self.expect(engine);
        let load = engine.workload();
        let set = |gauge: &Gauge, count: usize| gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        set(&self.0.driven_turns, load.driven_turns);
        set(&self.0.watchers, load.watchers);
        set(&self.0.conversations, load.conversations);
        let mut text = String::new();
        if let Err(error) = encode(&mut text, &self.0.registry) {
            tracing::error!(%error, "the metrics cannot be written");
        }
        // The end mark of the format comes last.
        let body = text.strip_suffix("# EOF\n").unwrap_or(&text).len();
        text.truncate(body);
        sources(engine, &mut text);
        nodes(engine, &mut text);
        process::tell(&mut text);
        text.push_str("# EOF\n");
        text
    }

    pub(crate) fn requests(&self) -> &requests::Counted {
        &self.0.requests
    }

    /// The models that are asked where a request names none, and those that the configuration lists, are told by their names,
    /// whatever else was asked for, and whether or not they answer.
    pub(crate) fn expect(&self, engine: &Engine) {
        let model = engine.defaults().model.clone();
        let mut listed = engine.providers().listed();
        listed.extend(engine.providers().fallback(&model));
        listed.push(model);
        self.list(listed.iter().map(ModelRef::model));
    }

    fn list<'a>(&self, models: impl Iterator<Item = &'a str>) {
        let mut names = self.0.names.lock().unwrap_or_else(PoisonError::into_inner);
        for model in models {
            if !names.listed_models.contains(model) {
                names.listed_models.insert(model.to_owned());
            }
        }
    }

    /// The model's name; `other` where too many were seen that nobody configured, or where it is one that only a client has named
    /// yet.
    fn model(&self, name: &str, has_answered: bool) -> String {
        let mut names = self.0.names.lock().unwrap_or_else(PoisonError::into_inner);
        let is_told = names.listed_models.contains(name)
            || if has_answered { has_place(&mut names.models, name, MAX_UNLISTED_MODELS) } else { names.models.contains(name) };
        if is_told { name.to_owned() } else { "other".to_owned() }
    }

    /// The name, or `other` where too many of its kind were seen.
    fn bounded(&self, kind: fn(&mut Names) -> &mut HashSet<String>, name: &str) -> String {
        let mut names = self.0.names.lock().unwrap_or_else(PoisonError::into_inner);
        if has_place(kind(&mut names), name, MAX_NAMES) { name.to_owned() } else { "other".to_owned() }
    }
}

/// Whether a name is among those that are told, which it becomes where there is room.
fn has_place(names: &mut HashSet<String>, name: &str, most: usize) -> bool {
    if names.contains(name) {
        return true;
    }
    let has_room = names.len() < most && name.len() <= MAX_NAME_BYTES;
    if has_room {
        names.insert(name.to_owned());
    }
    has_room
}

/// What the tool sources are doing.
fn sources(engine: &Engine, text: &mut String) {
    text.push_str("# HELP turnwright_tool_source_state What a tool source is doing: 1 for its state.\n");
    text.push_str("# TYPE turnwright_tool_source_state gauge\n");
    for source in engine.sources().iter() {
        let (name, state) = (escaped(source.name()), source.state());
        let _ = writeln!(text, "turnwright_tool_source_state{{source=\"{name}\",state=\"{}\"}} 1", state.as_str());
    }
}

/// How the connection to other nodes is; nothing where there are none.
fn nodes(engine: &Engine, text: &mut String) {
    let (is_connected, nodes) = match engine.nodes() {
        Condition::Alone => return,
        Condition::Connected { nodes, troubles: _ } => (1, nodes),
        Condition::Unreachable { .. } => (0, None),
    };
    text.push_str("# HELP turnwright_nats_connected Whether NATS can be reached.\n# TYPE turnwright_nats_connected gauge\n");
    let _ = writeln!(text, "turnwright_nats_connected {is_connected}");
    if let Some(count) = nodes {
        text.push_str("# HELP turnwright_nodes Servers over the same data that live.\n# TYPE turnwright_nodes gauge\n");
        let _ = writeln!(text, "turnwright_nodes {count}");
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

impl Observer for Metrics {
    fn observe(&self, fact: &Fact<'_>) {
        let counted = &*self.0;
        match fact {
            Fact::TurnBegan => drop(counted.turns_started.inc()),
            Fact::TurnParked => drop(counted.turns_parked.inc()),
            Fact::TurnOver { status } => {
                counted.turns_finished.get_or_create(&StatusLabel { status: status.as_contract() }).inc();
            }
            Fact::ModelCalled { provider, model, end, duration, first_content, usage } => {
                let provider = self.bounded(|names| &mut names.providers, provider);
                let model = self.model(model, *end == ModelEnd::Complete || first_content.is_some());
                let labels = ModelLabels { provider: provider.clone(), model: model.clone() };
                let outcome = end.as_str();
                let ended = ModelEndLabels { provider: provider.clone(), model: model.clone(), outcome };
                counted.model_calls.get_or_create(&ended).inc();
                observe(&counted.model_seconds, &labels, *duration);
                if let Some(first) = first_content {
                    observe(&counted.first_content_seconds, &labels, *first);
                }
                let tokens = [
                    ("input", usage.input_tokens),
                    ("output", usage.output_tokens),
                    ("cached_input", usage.cached_input_tokens),
                    ("cache_write", usage.cache_write_tokens),
                    ("reasoning", usage.reasoning_tokens),
                ];
                for (kind, count) in tokens {
                    if let Some(count) = count {
                        let labels = TokenLabels { provider: provider.clone(), model: model.clone(), kind };
                        counted.model_tokens.get_or_create(&labels).inc_by(count);
                    }
                }
                if let Some(cost) = usage.cost_usd {
                    counted.model_cost.get_or_create(&labels).inc_by(cost);
                }
            }
            Fact::ToolCalled { source, tool, outcome, duration } => {
                let source = self.bounded(|names| &mut names.sources, source);
                let tool = self.bounded(|names| &mut names.tools, tool);
                let labels = ToolLabels { source: source.clone(), tool, outcome: (*outcome).to_owned() };
                counted.tool_calls.get_or_create(&labels).inc();
                observe(&counted.tool_seconds, &SourceLabel { source }, *duration);
            }
        }
    }
}

fn observe<L: Clone + std::hash::Hash + Eq>(seconds: &Seconds<L>, labels: &L, duration: Duration) {
    seconds.get_or_create(labels).observe(duration.as_secs_f64());
}

#[cfg(test)]
mod tests {
    use super::{MAX_NAME_BYTES, MAX_NAMES, MAX_UNLISTED_MODELS, Metrics};

    #[test]
    fn many_names_of_one_kind_leave_room_for_those_of_another() {
        let metrics = Metrics::new();
        let tool = |number: usize| metrics.bounded(|names| &mut names.tools, &format!("tool_{number}"));
        assert!((0..MAX_NAMES).all(|number| tool(number) != "other"));
        assert_eq!((tool(MAX_NAMES).as_str(), tool(0).as_str()), ("other", "tool_0"));
        assert_eq!(metrics.bounded(|names| &mut names.sources, "large"), "large");
        assert_eq!(metrics.bounded(|names| &mut names.sources, &"x".repeat(MAX_NAME_BYTES + 1)), "other");
    }

    #[test]
    fn a_model_that_never_answered_takes_no_place() {
        let metrics = Metrics::new();
        assert!((0..MAX_NAMES).all(|number| metrics.model(&format!("made_up_{number}"), false) == "other"));
        assert_eq!((metrics.model("large", true), metrics.model("large", false)), ("large".into(), "large".into()));
    }

    #[test]
    fn models_that_answer_to_any_name_take_no_place_of_those_that_are_configured() {
        let metrics = Metrics::new();
        metrics.list(["early"].into_iter());
        let told = (0..10_000).filter(|number| metrics.model(&format!("made_up_{number}"), true) != "other").count();
        assert_eq!((told, metrics.model("made_up_0", false).as_str()), (MAX_UNLISTED_MODELS, "made_up_0"));
        // Also one that is configured while they come.
        assert_eq!(metrics.model("late", true), "other");
        metrics.list(["late"].into_iter());
        assert_eq!((metrics.model("early", false), metrics.model("late", false)), ("early".into(), "late".into()));
    }
}
