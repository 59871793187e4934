//! What a host can say about itself: models, MCP servers, what is not right.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::json;
use tokio::time::Instant;
use turnwright_core::{
    Assembler, ContentBlock, ModelRef, Origin, ProviderFailure, ProviderFailureKind, Seq, ToolDefinition, TurnSettings,
    UserMessage, counted, prompt,
};
use turnwright_engine::{Clock, ModelInfo, Providers, SourceState, SystemClock};
use turnwright_mcp::{McpError, SignedOut};
use turnwright_providers::{Probe, SchemaReading, reach};

use crate::config::Server;
use crate::providers::{PRACTICE, endpoint_config};
use crate::servers::{Entry, McpStatus, status};
use crate::{Host, Oidc};

/// How long a provider may take to list its models.
const LIST_LIMIT: Duration = Duration::from_secs(10);

/// A provider with what it offers.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderModels {
    /// Its name.
    pub provider: String,
    /// The wire format that it speaks.
    pub dialect: String,
    /// Where it is; `None` for what is built in.
    pub base_url: Option<String>,
    /// What names it: `configuration`, a variable, `local server`, `built in`.
    pub origin: String,
    /// Its models, or why they are not known.
    pub models: Result<Vec<ModelInfo>, ProviderFailure>,
}

/// What asking a model showed.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelCheck {
    /// Which model.
    pub model: ModelRef,
    /// What it did, or why it did not.
    pub outcome: Result<ModelFindings, ProviderFailure>,
    /// What its endpoint can do; nothing for what is built in.
    pub probe: Option<Probe>,
}

/// What a model did with one small request that offers a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelFindings {
    /// Whether and how it asked for the tool.
    pub tool_call: ToolCallForm,
    /// It said something besides.
    pub text: bool,
    /// It said what it cost.
    pub usage_reported: bool,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

/// How a model asks for tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolCallForm {
    /// As its API says.
    Native,
    /// As text, which the endpoint's profile recovered.
    Text,
    /// It did not.
    None,
}

/// One thing that `doctor` found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is about.
    pub subject: String,
    /// How good or bad it is.
    pub level: Level,
    /// What was found, and what would be right.
    pub text: String,
}

/// How good or bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// As it should be.
    Ok,
    /// Good to know.
    Note,
    /// Not right, and something does not work.
    Problem,
}

impl Host {
    /// Every provider with its models. Those that must be asked are asked at the same time; local servers that are not
    /// there are left out.
    pub async fn models(&self) -> Vec<ProviderModels> {
        let asked = self.providers.entries().into_iter().map(|(name, entry)| async move {
            let models = match entry.provider() {
                Err(failure) => Err(failure),
                Ok(provider) => match tokio::time::timeout(LIST_LIMIT, provider.models()).await {
                    Ok(models) => models,
                    Err(_) => Err(late(&name)),
                },
            };
            let endpoint = entry.endpoint();
            let is_absent =
                models.is_err() && endpoint.is_some_and(|known| known.origin == crate::config::EndpointOrigin::Local);
            (!is_absent).then(|| ProviderModels {
                provider: name.clone(),
                dialect: entry.dialect(),
                base_url: endpoint.map(|known| known.base_url.clone()),
                origin: entry.origin(),
                models,
            })
        });
        futures_util::future::join_all(asked).await.into_iter().flatten().collect()
    }

    /// Asks a model one small question that needs a tool, then its endpoint what it can do. Costs some hundred tokens; nothing of
    /// it is asked in turns.
    pub async fn check_model(&self, model: &ModelRef) -> ModelCheck {
        let outcome = self.findings(model).await;
        let entry = self.providers.entries().into_iter().find(|(name, _)| *name == model.provider());
        let endpoint = entry.and_then(|(_, entry)| endpoint_config(entry.endpoint()?, &self.loaded.network).ok());
        let probe = match endpoint {
            Some(config) => Some(turnwright_providers::probe(&config, model.model(), Arc::new(SystemClock)).await),
            None => None,
        };
        ModelCheck { model: model.clone(), outcome, probe }
    }

    async fn findings(&self, model: &ModelRef) -> Result<ModelFindings, ProviderFailure> {
        const MAX_TOKENS: u32 = 200;
        let begun = Instant::now();
        let provider = self.providers.get(model.provider())?;
        let settings = TurnSettings { max_output_tokens: Some(MAX_TOKENS), ..TurnSettings::new(model.clone()) };
        let question = "Which time is it in \"Europe/Paris\"? Use the tool.";
        let user = UserMessage { content: vec![ContentBlock::text(question)], settings: settings.clone() };
        let tools = [Arc::new(ToolDefinition {
            name: "clock__time_in".to_owned(),
            source: "clock".to_owned(),
            tool: "time_in".to_owned(),
            title: None,
            description: "The time in a time zone".to_owned(),
            input_schema: json!({"type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]}),
            annotations: None,
            declared: turnwright_core::Declared::default(),
        })];
        let messages = vec![prompt::PromptMessage::User { seq: Seq::FIRST, message: &user }];
        let prompt = prompt::Prompt {
            conversation: None,
            settings: &settings,
            messages,
            tools: &tools,
            allow_calls: true,
            has_open_demand: false,
        };
        let mut stream = provider.call(model.model(), &prompt)?;
        let mut assembler = Assembler::default();
        while let Some(deltas) = stream.next().await {
            deltas?.into_iter().for_each(|delta| assembler.push(delta));
        }
        let origin = Origin { dialect: provider.dialect().to_owned(), provider: String::new(), model: String::new() };
        let message = assembler.complete(origin, Seq::FIRST);
        Ok(ModelFindings {
            text: !message.text().is_empty(),
            tool_call: match message.calls().find(|call| call.name == "clock__time_in") {
                Some(call) if call.recovered => ToolCallForm::Text,
                Some(_) => ToolCallForm::Native,
                None => ToolCallForm::None,
            },
            usage_reported: message.usage.input_tokens.is_some() || message.usage.output_tokens.is_some(),
            duration_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// The MCP servers as they are.
    pub fn mcp_servers(&self) -> Vec<McpStatus> {
        self.servers.known()
    }

    /// An MCP server after it has settled; `None` where there is none of this name.
    pub async fn check_mcp(&self, name: &str) -> Option<McpStatus> {
        let entry = self.servers.set.entry(name)?;
        if let Ok(server) = entry.server.as_ref()
            && server.config().enabled
        {
            server.start();
            server.outcome().await;
        }
        Some(status(&entry, &self.engine.tools_set_aside()))
    }

    /// Signs in at an MCP server; `show` is given the address that a person must open in a browser. `None` where there is
    /// none of this name.
    pub async fn sign_in_mcp(&self, name: &str, show: impl FnOnce(&str) + Send) -> Option<Result<(), McpError>> {
        let server = self.servers.set.entry(name)?.server.ok()?;
        Some(server.sign_in(show).await)
    }

    /// Forgets what signing in at an MCP server brought, and says whether there was something. `None` where there is none of
    /// this name.
    pub async fn sign_out_mcp(&self, name: &str) -> Option<Result<SignedOut, McpError>> {
        let server = self.servers.set.entry(name)?.server.ok()?;
        Some(server.sign_out().await)
    }

    /// A tool that models are offered, with what each kind of API is sent of its schema; `None` where there is none of this name.
    pub async fn tool(&self, name: &str) -> Option<(Arc<ToolDefinition>, Vec<SchemaReading>)> {
        let tools = self.engine.tools().await;
        let tool = tools.iter().find(|tool| tool.name == name)?;
        Some((Arc::clone(tool), turnwright_providers::schema_readings(&tool.input_schema)))
    }

    /// Looks at everything that a person can mend.
    pub async fn doctor(&self) -> Vec<Finding> {
        let ok = |subject: &str, text: String| Finding { subject: subject.to_owned(), level: Level::Ok, text };
        let mut findings = vec![match &self.loaded.file {
            Some(path) => ok("configuration", format!("{} is read", path.display())),
            None => Finding {
                subject: "configuration".to_owned(),
                level: Level::Note,
                text: format!("there is no {}; everything has its default", crate::config::FILE_NAME),
            },
        }];
        findings.extend(self.loaded.warnings.iter().map(|warning| Finding {
            subject: "configuration".to_owned(),
            level: Level::Problem,
            text: warning.to_string(),
        }));
        findings.extend(self.problems().iter().map(|problem| Finding {
            subject: "configuration".to_owned(),
            level: Level::Problem,
            text: problem.clone(),
        }));
        findings.push(ok("data", format!("{} can be written", self.loaded.data_dir.display())));
        let sandbox = crate::sandbox::finding(&self.loaded, &self.environment);
        findings.extend(sandbox.map(|(level, text)| Finding { subject: "sandbox".to_owned(), level, text }));
        let (listed, unreached) = futures_util::join!(self.models(), self.unreached());
        findings.push(of_default(self.default_model(), &listed));
        for provider in listed {
            let subject = format!("provider {}", provider.provider);
            let models = match unreached.get(&provider.provider) {
                Some(failure) => Err(failure.clone()),
                None => provider.models,
            };
            findings.push(match models {
                Ok(models) => ok(&subject, format!("{}, from {}", counted(models.len(), "model"), provider.origin)),
                Err(failure) => Finding { subject, level: Level::Problem, text: failure.message },
            });
        }
        findings.extend(self.identity_provider().await);
        let entries = self.servers.set.entries();
        let enabled = entries.iter().filter_map(|entry| entry.server.as_ref().ok()).filter(|server| server.config().enabled);
        futures_util::future::join_all(enabled.map(|server| server.outcome())).await;
        // What cannot be offered is known once all that offers something was waited for.
        let tools = self.engine.tools().await;
        let set_aside = self.engine.tools_set_aside();
        // Why a server of a file is left out is among the problems of the configuration.
        let told = |entry: &&Entry| entry.server.is_ok() || entry.is_added();
        findings.extend(entries.iter().filter(told).map(|entry| of_server(&status(entry, &set_aside))));
        findings.extend(set_aside.into_iter().map(|tool| Finding {
            subject: "tools".to_owned(),
            level: Level::Problem,
            text: format!("set aside: {tool}"),
        }));
        findings.extend(self.failing_sources(&entries));
        findings.push(ok("tools", format!("{} are offered", tools.len())));
        findings
    }

    /// What offers no tools although it is configured to, but for the MCP servers, which are looked at by themselves.
    fn failing_sources(&self, servers: &[Entry]) -> Vec<Finding> {
        let sources = self.engine.sources();
        let others = sources.iter().filter(|source| !servers.iter().any(|server| server.name == source.name()));
        let failing = others.filter_map(|source| match source.state() {
            SourceState::Failing { reason } | SourceState::NeedsSignIn { reason } => {
                Some(Finding { subject: format!("tools of {}", source.name()), level: Level::Problem, text: reason })
            }
            SourceState::Disabled | SourceState::Starting | SourceState::Ready | SourceState::Stopped => None,
        });
        failing.collect()
    }

    /// Why nobody answers at the endpoints whose models the configuration names, by their names: these are asked nothing before a turn.
    async fn unreached(&self) -> HashMap<String, ProviderFailure> {
        let named = self.providers.entries().into_iter().filter_map(|(name, entry)| {
            let config = endpoint_config(entry.endpoint()?, &self.loaded.network).ok()?;
            (!config.models.is_empty()).then_some((name, config))
        });
        let asked = named.map(|(name, config)| async move {
            let answered = tokio::time::timeout(LIST_LIMIT, reach(&config, Arc::new(SystemClock))).await;
            let failure = match answered {
                Ok(answered) => answered.err()?,
                Err(_) => late(&name),
            };
            Some((name, failure))
        });
        futures_util::future::join_all(asked).await.into_iter().flatten().collect()
    }

    /// Whether people could sign in at the identity provider, as far as that can be seen without them.
    async fn identity_provider(&self) -> Option<Finding> {
        let server = &self.loaded.config.server;
        let callback = format!("{}/login/callback", server.address(&server.listen));
        let oidc = Oidc::new(server.oidc.as_ref()?, callback.clone(), self.loaded.network.clone());
        let (level, text) = match oidc.check(SystemClock.now_ms() / 1_000).await {
            Err(error) => (Level::Problem, error.to_string()),
            Ok(()) if is_known(server) => {
                (Level::Ok, format!("{} is read; it has to send browsers back to {callback}", oidc.issuer()))
            }
            Ok(()) => (Level::Ok, format!("{} is read", oidc.issuer())),
        };
        Some(Finding { subject: "identity provider".to_owned(), level, text })
    }
}

/// Whether the model that answers where nobody names one is among those that its provider lists, where that is known.
fn of_default(model: &ModelRef, listed: &[ProviderModels]) -> Finding {
    let provider = listed.iter().find(|provider| provider.provider == model.provider());
    let models = provider.and_then(|provider| provider.models.as_ref().ok());
    // Where an endpoint knows versions by `NAME:VERSION`, the name alone is one of them.
    let is_it = |id: &str| id == model.model() || id.strip_prefix(model.model()).is_some_and(|rest| rest.starts_with(':'));
    let answers = format!("{model} answers where nobody names a model");
    let (level, text) = match models {
        Some(models) if !models.iter().any(|known| is_it(&known.id)) => match model.provider() {
            PRACTICE => (Level::Problem, format!("{answers}, and there is no such model, only {PRACTICE}/{PRACTICE}")),
            name => (Level::Note, format!("{answers}; `{name}` does not list it")),
        },
        Some(_) | None => (Level::Ok, answers),
    };
    Finding { subject: "model".to_owned(), level, text }
}

fn late(name: &str) -> ProviderFailure {
    let text = format!("`{name}` did not list its models within {} s", LIST_LIMIT.as_secs());
    ProviderFailure::new(ProviderFailureKind::Timeout, text)
}

/// Whether it can be said before a start by which address the server will be found.
fn is_known(server: &Server) -> bool {
    let is_one = |listen: SocketAddr| listen.port() != 0 && !listen.ip().is_unspecified();
    server.public_url.is_some() || (server.trusted_proxies.is_empty() && server.listen.parse().is_ok_and(is_one))
}

fn of_server(status: &McpStatus) -> Finding {
    let subject = format!("MCP server {}", status.name);
    let (level, text) = match &status.state {
        SourceState::Disabled => (Level::Note, "is switched off (enabled = false)".to_owned()),
        SourceState::Ready => (Level::Ok, format!("is ready with {}", counted(status.tools.len(), "tool"))),
        SourceState::Failing { reason } | SourceState::NeedsSignIn { reason } => (Level::Problem, reason.clone()),
        SourceState::Starting => (Level::Problem, "did not start within its limit (start_ms)".to_owned()),
        SourceState::Stopped => (Level::Problem, "is stopped".to_owned()),
    };
    Finding { subject, level, text }
}
