//! The model, the policy and the person of the scenario. Each answers from what it is shown, so a repetition of a question
//! has the same answer.

use serde_json::Value;
use turnwright_core::prompt::Prompt;
use turnwright_core::{
    ApproveMode, Assembler, AssistantMessage, CallId, CallView, Control, CutOffCause, DecidedBy, Decision, Elicitation,
    Elicited, Entry, Finish, FinishReason, Journal, LoopLimits, ModelRef, Origin, ProviderFailure, ProviderFailureKind,
    Question, QuestionReason, Ruler, Ruling, Sampling, SamplingBudget, Seq, StartRuling, StoredEntry, StreamDelta,
    ToolErrorKind, ToolResult, TurnSettings, Usage, Verdict, Waits, Wants,
};

/// What differs between scenarios.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Script {
    pub(crate) mode: ApproveMode,
    /// What the person says about an unknown outcome.
    pub(crate) unknown: Verdict,
    /// What the provider does.
    pub(crate) provider: Service,
}

/// How a provider serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    /// As it should.
    Good,
    /// The first model is overloaded at first, and then the conversation becomes too long, and once more a step later.
    Troubled,
    /// As it should; its tools ask people for something while they run.
    Asking,
    /// As it should; its tools want models to be asked, or go on by themselves.
    Working,
    /// As it should; the model asks for the same again and again, and gets the same.
    Circling,
    /// As it should; the model asks for more and more, and there is a budget for the turn.
    Spending,
}

/// The tokens that a turn of [`Service::Spending`] may take.
pub(crate) const TURN_TOKENS: u64 = 90;
/// What every answer takes: prompt and answer, in tokens.
pub(crate) const TAKEN: (u64, u64) = (10, 5);
/// What is reserved for an answer.
pub(crate) const RESERVED: (u64, u64) = (10, 8);
/// What a tool's question to a model takes, although nothing comes of it.
pub(crate) const SAMPLED: (u64, u64) = (3, 2);

impl Script {
    pub(crate) fn settings(self) -> TurnSettings {
        let fallback = match self.provider {
            Service::Good | Service::Asking | Service::Working | Service::Circling | Service::Spending => Vec::new(),
            Service::Troubled => vec![ModelRef::new("scripted", "second")],
        };
        let loops = match self.provider {
            Service::Circling => LoopLimits { nudge: Some(2), ask: Some(3), stop: Some(4) },
            Service::Good | Service::Asking | Service::Working | Service::Troubled | Service::Spending => LoopLimits::default(),
        };
        TurnSettings { approve: self.mode, fallback, loops, ..TurnSettings::new(ModelRef::new("scripted", "model")) }
    }

    /// What the person decides when asked.
    pub(crate) fn decision(self, call: &CallView<'_>, question: &Question) -> Decision {
        let mut decision = Decision {
            call: call.id,
            verdict: Verdict::Allow,
            by: DecidedBy::Person,
            definition_hash: Some("hash".to_owned()),
            arguments: None,
            reason: None,
            remembered: None,
        };
        match question.reason {
            QuestionReason::UnknownOutcome => decision.verdict = self.unknown,
            QuestionReason::Loop => {}
            QuestionReason::ClientTool => decision.verdict = Verdict::Deny,
            QuestionReason::Approval | QuestionReason::DefinitionChanged => match call.name {
                "send" => {
                    decision.verdict = Verdict::Deny;
                    decision.reason = Some("not today".to_owned());
                }
                "edit" => decision.arguments = Some(EDITED.to_owned()),
                _ => {}
            },
        }
        decision
    }
}

/// What the person makes of the arguments of `edit`.
pub(crate) const EDITED: &str = r#"{"edited":true}"#;

/// How often `fill` parks to ask.
pub(crate) const ROUNDS: u32 = 2;

/// What `fill` asks in this round: two things, and then one more.
pub(crate) fn fill_asks(call: CallId, round: u32) -> Elicited {
    let asks = (round..ROUNDS).map(|key| ask(&key.to_string())).collect();
    let waits = Waits::Parked { resume: Value::from(round) };
    Elicited { call, source: "scripted".to_owned(), asks, waits }
}

/// What `talk` asks over its connection.
pub(crate) fn talk_asks(call: CallId) -> Elicited {
    Elicited { call, source: "scripted".to_owned(), asks: vec![ask("")], waits: Waits::Open { until_ms: 0 } }
}

/// What `think` wants a model to be asked.
pub(crate) fn think_asks(call: CallId) -> Elicited {
    let request = Box::new(Sampling {
        model: None,
        system_prompt: None,
        messages: Vec::new(),
        max_tokens: 5,
        temperature: None,
        stop_sequences: Vec::new(),
        hints: Vec::new(),
        tools: Vec::new(),
        tool_choice: None,
        budget: SamplingBudget { max_requests: 1, max_output_tokens: 5 },
    });
    let ask = Elicitation { key: String::new(), message: "?".to_owned(), wants: Wants::Sampling { request } };
    Elicited { call, source: "scripted".to_owned(), asks: vec![ask], waits: Waits::Parked { resume: Value::Null } }
}

fn ask(key: &str) -> Elicitation {
    Elicitation { key: key.to_owned(), message: "?".to_owned(), wants: Wants::Url { url: "https://example.org".to_owned() } }
}

/// Whether the tool may be run again by itself.
pub(crate) fn is_replayable(name: &str) -> bool {
    name == "read" || name == "look"
}

/// How a model call of the troubled provider fails, where it does. `said` is as in [`answer`].
pub(crate) fn trouble(model: &ModelRef, journal: &Journal, said: usize) -> Option<ProviderFailure> {
    let fails = |kind| Some(ProviderFailure::new(kind, "trouble"));
    match said {
        0 if model.model() == "model" => fails(ProviderFailureKind::Overloaded),
        3 if journal.compaction().is_none() => fails(ProviderFailureKind::ContextLength),
        4 if summaries(journal) < 2 => fails(ProviderFailureKind::ContextLength),
        _ => None,
    }
}

/// How often the conversation was shortened.
fn summaries(journal: &Journal) -> usize {
    let is_summary = |stored: &&StoredEntry| matches!(*stored.entry, Entry::Control(Control::Compacted(_)));
    journal.entries().iter().filter(is_summary).count()
}

/// The scripted model: its answer depends on how many messages of models are shown to people, and on whether the turn was
/// retried.
pub(crate) fn answer(prompt: &Prompt<'_>, service: Service, saw: Seq, said: usize, is_retried: bool) -> AssistantMessage {
    let model = &prompt.settings.model;
    let origin = Origin { dialect: "scripted".into(), provider: "scripted".into(), model: model.model().into() };
    let mut assembler = Assembler::default();
    assembler.push(StreamDelta::Text(format!("message {said}")));
    let call = |assembler: &mut Assembler, key: u32, name: &str, arguments: &str| {
        assembler.push(StreamDelta::CallStarted { key, name: name.to_owned(), provider_id: Some("repeated".to_owned()) });
        assembler.push(StreamDelta::CallArguments { key, text: arguments.to_owned() });
    };
    let finish = |assembler: &mut Assembler, reason| {
        assembler.push(StreamDelta::Usage(Usage { input_tokens: Some(10), ..Usage::default() }));
        assembler.push(StreamDelta::Finished(Finish { reason, raw: None }));
    };
    match said {
        _ if !prompt.allow_calls => finish(&mut assembler, FinishReason::Stop),
        0 if service == Service::Asking => {
            call(&mut assembler, 0, "fill", r#"{"a":0}"#);
            call(&mut assembler, 1, "talk", r#"{"a":1}"#);
            call(&mut assembler, 2, "write", r#"{"a":2}"#);
            finish(&mut assembler, FinishReason::ToolCalls);
        }
        0 if service == Service::Working => {
            call(&mut assembler, 0, "think", r#"{"a":0}"#);
            call(&mut assembler, 1, "write", r#"{"a":1}"#);
            call(&mut assembler, 2, "job", r#"{"a":2}"#);
            finish(&mut assembler, FinishReason::ToolCalls);
        }
        _ if service == Service::Circling => {
            call(&mut assembler, 0, "look", r#"{"a":0}"#);
            finish(&mut assembler, FinishReason::ToolCalls);
        }
        _ if service == Service::Spending => {
            let name = if said == 0 { "think" } else { "read" };
            call(&mut assembler, 0, name, &format!(r#"{{"a":{said}}}"#));
            let (input_tokens, output_tokens) = (Some(TAKEN.0), Some(TAKEN.1));
            assembler.push(StreamDelta::Usage(Usage { input_tokens, output_tokens, ..Usage::default() }));
            assembler.push(StreamDelta::Finished(Finish { reason: FinishReason::ToolCalls, raw: None }));
        }
        _ if matches!(service, Service::Asking | Service::Working) => finish(&mut assembler, FinishReason::Stop),
        0 => {
            call(&mut assembler, 0, "read", r#"{"a":0}"#);
            call(&mut assembler, 1, "write", r#"{"a":1}"#);
            call(&mut assembler, 2, "send", r#"{"a":2}"#);
            call(&mut assembler, 3, "edit", r#"{"a":3}"#);
            finish(&mut assembler, FinishReason::ToolCalls);
        }
        1 if !is_retried => {
            call(&mut assembler, 0, "post", r#"{"a":1}"#);
            call(&mut assembler, 1, "post", r#"{"a":"#);
            return assembler.cut_off(origin, saw, CutOffCause::Provider(Box::new(ProviderFailure::cut_off())));
        }
        1 => {
            call(&mut assembler, 0, "post", r#"{"a":"#);
            finish(&mut assembler, FinishReason::Length);
        }
        2 => {
            call(&mut assembler, 0, "post", r#"{"a":0}"#);
            call(&mut assembler, 1, "nowhere", "{}");
            call(&mut assembler, 2, "read", "not json");
            call(&mut assembler, 3, "read", r#"{"a":3}"#);
            finish(&mut assembler, FinishReason::ToolCalls);
        }
        3 if service == Service::Troubled => {
            call(&mut assembler, 0, "read", r#"{"a":4}"#);
            finish(&mut assembler, FinishReason::ToolCalls);
        }
        _ => finish(&mut assembler, FinishReason::Stop),
    }
    assembler.complete(origin, saw)
}

/// The policy, with two slots for running calls.
pub(crate) struct Rules {
    pub(crate) mode: ApproveMode,
    pub(crate) running: usize,
}

impl Ruler for Rules {
    fn rule(&mut self, call: &CallView<'_>) -> Ruling {
        if serde_json::from_str::<Value>(call.arguments).is_err() {
            return Ruling::Refuse(ToolResult::failed(call.id, ToolErrorKind::InvalidArguments, "not JSON"));
        }
        match (call.name, self.mode) {
            ("read" | "post" | "fill" | "talk" | "think" | "job" | "look", _)
            | ("write" | "send" | "edit", ApproveMode::All) => {
                Ruling::Allow { rule: "allow".to_owned(), definition_hash: "hash".to_owned() }
            }
            ("write" | "send" | "edit", _) => Ruling::Ask { rule: "ask".to_owned() },
            _ => Ruling::Refuse(ToolResult::failed(call.id, ToolErrorKind::NotFound, "no such tool")),
        }
    }

    fn start(&mut self, call: &CallView<'_>) -> StartRuling {
        if self.running >= 2 {
            return StartRuling::Later;
        }
        self.running += 1;
        StartRuling::Start { replayable: is_replayable(call.name) }
    }
}
