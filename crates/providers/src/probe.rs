//! What an endpoint can do, found out by asking it: a dozen small questions that no turn asks.
//!
//! Each question changes one thing, so that a refusal says what is not taken. What is found differently from what the
//! endpoint's profile says becomes the `profile` table that would be right.

mod ask;

use std::sync::Arc;

use serde_json::{Value, json};
use turnwright_core::{ContentBlock, OutputFormat, OutputSchema, ProviderFailure, ProviderFailureKind, ToolChoice, counted};
use turnwright_dialects::{MaxTokensField, Offered, Profile, SystemRole, TextForm, TextForms, ToolChoices, text_forms_in};
use turnwright_engine::Clock;

use self::ask::{Ask, Said, TOOL, tools};
use crate::{EndpointConfig, HttpProvider};

/// A picture of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// What was found out about an endpoint and one of its models.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Probe {
    /// What was asked, in the order in which it was.
    pub findings: Vec<ProbeFinding>,
    /// What should be in the endpoint's `profile` table: keys and their values as TOML. Empty where it is right as it is.
    pub profile: Vec<(&'static str, String)>,
}

/// The answer to one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeFinding {
    /// What was asked for, such as `tool calls`.
    pub subject: &'static str,
    /// Whether it is there.
    pub verdict: Verdict,
    /// What shows it.
    pub reason: String,
}

/// Whether something is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Found,
    /// It is not.
    Not,
    /// It cannot be said.
    Unknown,
}

impl Verdict {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Found => "found",
            Self::Not => "not",
            Self::Unknown => "unknown",
        }
    }
}

/// Asks the endpoint what it can do with `model`. Costs some hundred tokens.
pub async fn probe(config: &EndpointConfig, model: &str, clock: Arc<dyn Clock>) -> Probe {
    let mut asking =
        Asking { config: EndpointConfig { max_retries: 0, ..config.clone() }, model, clock, probe: Probe::default() };
    asking.models().await;
    if asking.first().await {
        asking.system().await;
        asking.calls().await;
        asking.choices().await;
        asking.images().await;
        asking.output().await;
    }
    asking.probe
}

/// Asks the endpoint for its models, whether the configuration names them or not, and takes any answer: somebody is there. Once; costs nothing.
///
/// # Errors
/// Why nobody is: no connection, or no answer in time.
pub async fn reach(config: &EndpointConfig, clock: Arc<dyn Clock>) -> Result<(), ProviderFailure> {
    let once = EndpointConfig { max_retries: 0, ..config.clone() };
    match HttpProvider::new(once, clock).listed().await {
        Err(failure) if matches!(failure.kind, ProviderFailureKind::Connect | ProviderFailureKind::Timeout) => Err(failure),
        Ok(_) | Err(_) => Ok(()),
    }
}

struct Asking<'a> {
    config: EndpointConfig,
    model: &'a str,
    clock: Arc<dyn Clock>,
    probe: Probe,
}

impl Asking<'_> {
    fn tell(&mut self, subject: &'static str, verdict: Verdict, reason: impl Into<String>) {
        self.probe.findings.push(ProbeFinding { subject, verdict, reason: reason.into() });
    }

    fn suggest(&mut self, key: &'static str, value: impl Into<String>) {
        self.probe.profile.push((key, value.into()));
    }

    fn provider(&self, config: EndpointConfig) -> HttpProvider {
        HttpProvider::new(config, Arc::clone(&self.clock))
    }

    async fn ask(&self, ask: Ask) -> Result<Said, ProviderFailure> {
        ask::ask(&self.provider(self.config.clone()), &self.config.name, self.model, ask).await
    }

    async fn models(&mut self) {
        let listed = match self.provider(self.config.clone()).listed().await {
            Ok(listed) => listed,
            Err(failure) => return self.tell("model list", Verdict::Not, failure.message),
        };
        let is_there = listed.ids.iter().any(|id| id == self.model);
        let among = if is_there { ", and this one is among them" } else { "; this one is not among them" };
        self.tell("model list", Verdict::Found, format!("{}{among}", counted(listed.ids.len(), "model")));
        if let Some((name, profile)) = listed.server.and_then(|name| Some((name, Profile::preset(name).ok()?)))
            && self.config.profile == Profile::COMPATIBLE
        {
            self.tell("server", Verdict::Found, format!("it looks like {name}"));
            if profile != Profile::COMPATIBLE {
                self.suggest("preset", quoted(name));
                self.config.profile = profile;
            }
        }
    }

    /// Whether it answers at all, and what the limit of an answer is called. Where it does not answer nothing else is asked.
    async fn first(&mut self) -> bool {
        let mut answer = self.ask(Ask::says("Say hello.")).await;
        if matches!(&answer, Err(failure) if is_refusal(failure)) {
            let given = self.config.profile.max_tokens_field;
            self.config.profile.max_tokens_field = match given {
                MaxTokensField::MaxTokens => MaxTokensField::MaxCompletionTokens,
                MaxTokensField::MaxCompletionTokens => MaxTokensField::MaxTokens,
            };
            let second = self.ask(Ask::says("Say hello.")).await;
            if second.is_ok() {
                answer = second;
                self.suggest("max_tokens_field", quoted(field(self.config.profile.max_tokens_field)));
            } else {
                self.config.profile.max_tokens_field = given;
            }
        }
        let said = match answer {
            Ok(said) => said,
            Err(failure) => {
                self.unanswered(&failure);
                return false;
            }
        };
        self.tell("reachable", Verdict::Found, "it answers");
        let key = if self.config.api_key.is_some() { "it takes the key" } else { "it asks for none" };
        self.tell("key", Verdict::Found, key);
        let (verdict, reason) = match said.batches {
            0 | 1 => (Verdict::Unknown, "the answer came all at once"),
            _ => (Verdict::Found, "the answer came in pieces"),
        };
        self.tell("streaming", verdict, reason);
        let usage = said.message.usage;
        let is_told = usage.input_tokens.is_some() || usage.output_tokens.is_some();
        let reason = if is_told { "it says how many tokens it read and wrote" } else { "it says nothing of its tokens" };
        self.tell("usage", if is_told { Verdict::Found } else { Verdict::Not }, reason);
        let limit = field(self.config.profile.max_tokens_field);
        self.tell("answer limit", Verdict::Found, format!("it takes `{limit}`"));
        true
    }

    fn unanswered(&mut self, failure: &ProviderFailure) {
        let (subject, verdict) = match failure.kind {
            ProviderFailureKind::Connect | ProviderFailureKind::Timeout | ProviderFailureKind::Unavailable => {
                ("reachable", Verdict::Not)
            }
            ProviderFailureKind::Auth | ProviderFailureKind::Permission => ("key", Verdict::Not),
            _ => ("answer", Verdict::Not),
        };
        self.tell(subject, verdict, failure.message.clone());
    }

    async fn system(&mut self) {
        let role = self.config.profile.system_role;
        let word = |role| if role == SystemRole::System { "system" } else { "developer" };
        match self.ask(Ask { system: Some("Be brief."), ..Ask::says("Say hello.") }).await {
            Ok(_) => self.tell("system prompt", Verdict::Found, format!("it takes the role `{}`", word(role))),
            Err(failure) if is_refusal(&failure) => {
                let other = if role == SystemRole::System { SystemRole::Developer } else { SystemRole::System };
                self.config.profile.system_role = other;
                let again = self.ask(Ask { system: Some("Be brief."), ..Ask::says("Say hello.") }).await;
                if again.is_ok() {
                    self.suggest("system_role", quoted(word(other)));
                    self.tell("system prompt", Verdict::Found, format!("it takes the role `{}` alone", word(other)));
                } else {
                    self.config.profile.system_role = role;
                    self.tell("system prompt", Verdict::Not, failure.message);
                }
            }
            Err(failure) => self.tell("system prompt", Verdict::Unknown, failure.message),
        }
    }

    /// Whether it calls, in which form, and several tools at once.
    async fn calls(&mut self) {
        let before = self.config.profile.recover_text_calls;
        self.config.profile.recover_text_calls = TextForms::NONE;
        let question = "Which time is it in Paris, and which in Tokyo? Use the tool, once for each.";
        let said = self.ask(Ask::calls(question)).await;
        self.config.profile.recover_text_calls = before;
        let said = match said {
            Ok(said) => said,
            Err(failure) => {
                let is_refused = is_refusal(&failure);
                if is_refused {
                    self.suggest("tools", "false");
                }
                self.tell("tool calls", if is_refused { Verdict::Not } else { Verdict::Unknown }, failure.message);
                return;
            }
        };
        let native = said.message.calls().filter(|call| call.name == TOOL).count();
        if native > 0 {
            self.tell("tool calls", Verdict::Found, "it calls as its API says");
            let reason = format!("of two calls that were asked for came {native}");
            self.tell("parallel calls", if native > 1 { Verdict::Found } else { Verdict::Unknown }, reason);
            return;
        }
        let forms = text_forms_in(&said.message.text(), &Offered::to_call(tools()));
        let Some(first) = forms.first() else {
            self.tell("tool calls", Verdict::Unknown, "it called no tool, and wrote nothing that looks like a call");
            return;
        };
        let names: Vec<&str> = forms.iter().copied().map(TextForm::as_str).collect();
        let is_recovered = forms.iter().any(|form| before.contains(*form));
        let rest = if is_recovered { "they are recovered" } else { "they are not recovered as the profile is" };
        self.tell("tool calls", Verdict::Found, format!("it writes them as text, in the form {}; {rest}", names.join(", ")));
        if !is_recovered {
            self.suggest("recover_text_calls", format!("[{}]", quoted(first.as_str())));
        }
        self.tell("parallel calls", Verdict::Unknown, "calls that are written as text come one after another");
    }

    async fn choices(&mut self) {
        // Whether a demand is heard can only be seen where it is sent.
        let before = self.config.profile.tool_choice;
        if before == ToolChoices::NoneOnly {
            self.config.profile.tool_choice = ToolChoices::All;
        }
        let none = self.ask(Ask { tool_choice: Some(ToolChoice::None), ..Ask::calls("Which time is it in Paris?") }).await;
        match none {
            Ok(said) if said.message.calls().next().is_none() => {
                self.tell("tool_choice none", Verdict::Found, "it called nothing where it may not");
            }
            Ok(_) => self.tell("tool_choice none", Verdict::Not, "it called a tool all the same"),
            Err(failure) => self.refused("tool_choice none", &failure),
        }
        let required = self.ask(Ask { tool_choice: Some(ToolChoice::Required), ..Ask::calls("Say hello.") }).await;
        self.config.profile.tool_choice = before;
        let is_heard = match required {
            Ok(said) if said.message.calls().any(|call| !call.recovered) => {
                self.tell("tool_choice required", Verdict::Found, "it called a tool because it had to");
                true
            }
            Ok(_) => {
                self.tell("tool_choice required", Verdict::Not, "it answered without a call");
                false
            }
            Err(failure) => {
                self.refused("tool_choice required", &failure);
                !is_refusal(&failure)
            }
        };
        if !is_heard && before != ToolChoices::NoneOnly {
            self.suggest("tool_choice", quoted("none_only"));
        }
    }

    async fn images(&mut self) {
        let picture = ContentBlock::Image { data: PIXEL.to_owned(), mime_type: "image/png".to_owned() };
        // Whatever is known of it: it is asked.
        self.config.profile.images = true;
        self.config.model_facts.entry(self.model.to_owned()).or_default().images = Some(true);
        let asked =
            self.ask(Ask { content: vec![ContentBlock::text("Which colour is this?"), picture], ..Ask::says("") }).await;
        match asked {
            Ok(_) => self.tell("images", Verdict::Found, "it takes one; what it sees in it was not looked at"),
            // Some servers that take none fail over it in place of refusing it.
            Err(failure) if is_refusal(&failure) || failure.message.contains("image") => {
                self.tell("images", Verdict::Not, failure.message);
                self.suggest("images", "false");
            }
            Err(failure) => self.tell("images", Verdict::Unknown, failure.message),
        }
    }

    async fn output(&mut self) {
        let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": false});
        let output = OutputFormat::Schema(OutputSchema { name: "city".to_owned(), schema, strict: true });
        let asked = self.ask(Ask { output: Some(output), ..Ask::says("Which city is the capital of France?") }).await;
        match asked {
            Ok(said) => match serde_json::from_str::<Value>(said.message.text().trim()) {
                Ok(answer) if answer.get("city").is_some_and(Value::is_string) => {
                    self.tell("structured output", Verdict::Found, "its answer fits the schema");
                }
                Ok(_) | Err(_) => self.tell("structured output", Verdict::Not, "its answer does not fit the schema"),
            },
            Err(failure) => {
                self.refused("structured output", &failure);
                if is_refusal(&failure) {
                    self.suggest("structured_output", quoted("prompt"));
                }
            }
        }
    }

    fn refused(&mut self, subject: &'static str, failure: &ProviderFailure) {
        self.tell(subject, if is_refusal(failure) { Verdict::Not } else { Verdict::Unknown }, failure.message.clone());
    }
}

fn is_refusal(failure: &ProviderFailure) -> bool {
    failure.kind == ProviderFailureKind::InvalidRequest
}

fn field(field: MaxTokensField) -> &'static str {
    match field {
        MaxTokensField::MaxTokens => "max_tokens",
        MaxTokensField::MaxCompletionTokens => "max_completion_tokens",
    }
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}
