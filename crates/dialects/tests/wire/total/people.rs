//! What people choose: settings, tools, decisions; and the policy that decides for them.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwright_core::{
    ApproveMode, CallView, DecidedBy, Decision, Declared, ModelRef, OutputFormat, OutputSchema, Question, QuestionReason,
    ReasoningEffort, Ruler, Ruling, StartRuling, ToolChoice, ToolDefinition, ToolErrorKind, ToolResult, TurnSettings, Verdict,
};

use super::features::Features;
use super::random::Random;

/// Settings of a turn.
pub(crate) fn settings(
    random: &mut Random,
    features: &mut Features,
    model: ModelRef,
    tools: &[Arc<ToolDefinition>],
) -> TurnSettings {
    use ReasoningEffort as R;
    let mut settings = TurnSettings::new(model);
    settings.approve =
        *random.pick(&[ApproveMode::Ask, ApproveMode::All, ApproveMode::All, ApproveMode::None, ApproveMode::ReadOnly]);
    settings.max_steps = *random.pick(&[1, 2, 3, 25]);
    settings.system_prompt = random.pick(&[None, None, Some("Be brief."), Some(""), Some(" ")]).map(str::to_owned);
    settings.temperature = *random.pick(&[None, None, None, Some(0.5), Some(1.0)]);
    settings.max_output_tokens = *random.pick(&[None, None, None, Some(500), Some(16_000)]);
    settings.reasoning_effort = *random.pick(&[
        None,
        None,
        None,
        Some(R::None),
        Some(R::Minimal),
        Some(R::Low),
        Some(R::Medium),
        Some(R::High),
        Some(R::Max),
    ]);
    settings.tool_choice = match random.below(12) {
        0 => Some(ToolChoice::None),
        1 => Some(ToolChoice::Required),
        2 => tools.first().map(|tool| ToolChoice::Tool(tool.name.clone())),
        3 => Some(ToolChoice::Tool("gone__tool".to_owned())),
        4 => Some(ToolChoice::Auto),
        5 => Some(ToolChoice::Tools(tools.iter().map(|tool| tool.name.clone()).take(3).collect())),
        _ => None,
    };
    settings.parallel_calls = *random.pick(&[None, None, None, Some(true), Some(false)]);
    if settings.tool_choice.is_some() {
        features.saw("a tool choice");
    }
    if random.percent(6) {
        features.saw("structured output");
        settings.output = Some(OutputFormat::Schema(OutputSchema {
            name: "answer".to_owned(),
            schema: json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false}),
            strict: random.percent(50),
        }));
    }
    settings
}

/// The tools of a moment, in their canonical order.
pub(crate) fn tools(random: &mut Random) -> Vec<Arc<ToolDefinition>> {
    let offer = |index: usize| random.percent(60).then(|| tool(index, random.percent(15)));
    let mut tools: Vec<_> = (0..NAMES.len()).filter_map(offer).collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    tools
}

/// The first `count` tools, made anew as by a server that comes back.
pub(crate) fn some_tools(count: usize) -> Vec<Arc<ToolDefinition>> {
    let mut tools: Vec<_> = (0..count).map(|index| tool(index, false)).collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    tools
}

pub(crate) const NAMES: [&str; 6] = [
    "filesystem__read",
    "filesystem__write",
    "time__now",
    "my_server__do_it_now_e06b92b0c1b4",
    "db__query-rows",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa__b_0123abcd",
];

fn tool(index: usize, is_changed: bool) -> Arc<ToolDefinition> {
    let name = NAMES[index];
    Arc::new(ToolDefinition {
        name: name.to_owned(),
        source: "s".to_owned(),
        tool: name.to_owned(),
        title: None,
        description: if is_changed { String::new() } else { format!("Does {name}.") },
        input_schema: schema(index),
        annotations: None,
        declared: Declared { read_only: index.is_multiple_of(2), ..Declared::default() },
    })
}

fn schema(index: usize) -> Value {
    match index {
        0 => {
            json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"], "additionalProperties": false})
        }
        1 => json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
            "properties": {"path": {"$ref": "#/$defs/path"}, "mode": {"const": "append"}, "size": {"type": ["integer", "null"], "minimum": 1}},
            "$defs": {"path": {"type": "string", "minLength": 1, "format": "uri"}},
        }),
        2 => json!({"type": "object"}),
        3 => json!({"type": "object", "properties": {}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        4 => {
            json!({"type": "object", "properties": {"rows": {"type": "array"}, "deep": {"type": "object", "properties": {}}, "any": true}})
        }
        _ => {
            json!({"type": "object", "properties": {"n": {"enum": [1, 2]}, "t": {"oneOf": [{"type": "string"}, {"type": "null"}]}}, "required": ["n", "gone"]})
        }
    }
}

/// What a person decides about a call that waits.
pub(crate) fn decision(random: &mut Random, features: &mut Features, call: &CallView<'_>, question: &Question) -> Decision {
    let verdict = match question.reason {
        QuestionReason::Approval | QuestionReason::DefinitionChanged | QuestionReason::Loop => {
            *random.pick(&[Verdict::Allow, Verdict::Allow, Verdict::Deny])
        }
        QuestionReason::ClientTool => Verdict::Deny,
        QuestionReason::UnknownOutcome => {
            features.saw("an unknown outcome that a person settled");
            *random.pick(&[Verdict::Happened, Verdict::RunAgain, Verdict::Skip])
        }
    };
    let arguments = matches!(verdict, Verdict::Allow | Verdict::RunAgain) && random.percent(30);
    if arguments {
        features.saw("edited arguments");
    }
    if verdict == Verdict::Deny {
        features.saw("denied by a person");
    }
    Decision {
        call: call.id,
        verdict,
        by: DecidedBy::Person,
        definition_hash: Some("hash".to_owned()),
        arguments: arguments.then(|| "{\"edited\":\"ü\"}".to_owned()),
        reason: random.percent(50).then(|| "not \"today\"".to_owned()),
        remembered: None,
    }
}

/// A policy that differs from call to call.
pub(crate) struct Rules<'a> {
    pub(crate) random: &'a mut Random,
    pub(crate) features: &'a mut Features,
    pub(crate) free_slots: usize,
    pub(crate) mode: ApproveMode,
}

impl Ruler for Rules<'_> {
    fn rule(&mut self, call: &CallView<'_>) -> Ruling {
        if !NAMES.contains(&call.name) {
            self.features.saw("a call of a tool that does not exist");
            return Ruling::Refuse(ToolResult::failed(call.id, ToolErrorKind::NotFound, "There is no such tool."));
        }
        if serde_json::from_str::<serde_json::Map<String, Value>>(call.arguments).is_err() && !call.arguments.is_empty() {
            return Ruling::Refuse(ToolResult::failed(call.id, ToolErrorKind::InvalidArguments, "not a JSON object"));
        }
        match (self.mode, self.random.below(10)) {
            (_, 0) | (ApproveMode::None, 1..5) => {
                self.features.saw("denied by a rule");
                Ruling::Deny { rule: "rule 1".to_owned() }
            }
            (ApproveMode::Ask, 1..6) => Ruling::Ask { rule: "approve mode ask".to_owned() },
            _ => Ruling::Allow { rule: "rule 2".to_owned(), definition_hash: "hash".to_owned() },
        }
    }

    fn start(&mut self, call: &CallView<'_>) -> StartRuling {
        if self.free_slots == 0 {
            return StartRuling::Later;
        }
        match self.random.below(20) {
            0 => StartRuling::Refuse(ToolResult::failed(call.id, ToolErrorKind::Unavailable, "The server is gone.")),
            1 => {
                self.features.saw("a definition that changed");
                StartRuling::DefinitionChanged { definition_hash: "another".to_owned() }
            }
            _ => {
                self.free_slots -= 1;
                StartRuling::Start { replayable: self.random.percent(40) }
            }
        }
    }
}
