//! `turnwright models`: models and their providers.

use serde::Serialize;
use serde_json::json;
use turnwright_core::{ModelFacts, ModelRef, TokenCounting};
use turnwright_host::{Host, ModelCheck, Needs, Overrides, ProbeFinding, ToolCallForm, catalogue_date};
use turnwright_terminal::beginning;

use crate::cli::{Everywhere, Listed, Models};
use crate::exit::{Exit, Failure};
use crate::opened::{self, QUIET};
use crate::output::{Output, say};
use crate::table::{first_line, table};

/// The most characters of a description in a list.
const MAX_DESCRIPTION: usize = 100;
/// The most characters of a reason in a list.
const MAX_REASON: usize = 160;

pub(super) async fn run(everywhere: &Everywhere, command: Models, output: &mut Output) -> Result<Exit, Failure> {
    let named = match &command {
        Models::Check { model, .. } => model.clone(),
        Models::List(_) => None,
    };
    let overrides = Overrides { model: named.as_ref().map(ToString::to_string), ..opened::overrides(everywhere) };
    let opened = opened::open(&overrides, QUIET)?;
    if let Some(missing) = named.as_ref().and_then(|model| opened.loaded.missing_provider(model.provider())) {
        return Err(Failure::usage(missing).hint("`turnwright models list` shows the models that there are"));
    }
    let host = opened.start(Needs::Everything).await?;
    let exit = match command {
        Models::List(listed) => list(&host, listed, output).await,
        Models::Check { model, listed } => {
            let model = model.unwrap_or_else(|| host.default_model().clone());
            check(&host, &model, listed, output).await
        }
    };
    host.shutdown().await;
    Ok(exit)
}

/// A model in a list.
#[derive(Serialize)]
struct Listing {
    id: String,
    provider: String,
    model: String,
    description: Option<String>,
    is_default: bool,
    dialect: String,
    base_url: Option<String>,
    origin: String,
    /// By what the tokens of a prompt are counted.
    token_counting: TokenCounting,
    #[serde(flatten)]
    facts: ModelFacts,
    /// The day of the catalogue from which what is known comes where the configuration does not say it.
    catalogue_date: &'static str,
}

async fn list(host: &Host, listed: Listed, output: &mut Output) -> Exit {
    let default = host.default_model();
    let counting = |provider: &str, model: &str| {
        let provider = host.engine().providers().get(provider);
        provider.map_or(TokenCounting::Estimated, |provider| provider.counts_by(model))
    };
    let mut models = Vec::new();
    for provider in host.models().await {
        match provider.models {
            Ok(found) => models.extend(found.into_iter().map(|model| Listing {
                id: format!("{}/{}", provider.provider, model.id),
                provider: provider.provider.clone(),
                is_default: default.provider() == provider.provider && default.model() == model.id,
                description: model.description,
                model: model.id.clone(),
                token_counting: counting(&provider.provider, &model.id),
                facts: model.facts,
                catalogue_date: catalogue_date(),
                dialect: provider.dialect.clone(),
                base_url: provider.base_url.clone(),
                origin: provider.origin.clone(),
            })),
            Err(failure) => say(&format!("warning: {} does not list its models: {failure}", provider.provider)),
        }
    }
    if listed.json {
        output.json_pretty(&models);
        return Exit::Done;
    }
    let rows: Vec<_> = models
        .iter()
        .map(|model| {
            let mark = if model.is_default { "default" } else { "" };
            let about = first_line(model.description.as_deref().unwrap_or_default(), MAX_DESCRIPTION);
            let facts = &model.facts;
            let tokens =
                |count: Option<u32>, what: &str| count.map_or_else(String::new, |count| format!("{} {what}", short(count)));
            [
                model.id.clone(),
                mark.to_owned(),
                model.origin.clone(),
                tokens(facts.context_window, "context"),
                tokens(facts.max_output_tokens, "output"),
                inputs(facts).to_owned(),
                format!("tokens {}", model.token_counting.as_str()),
                facts.prices.map_or_else(String::new, |prices| format!("${} in, ${} out", prices.input, prices.output)),
                about,
            ]
        })
        .collect();
    output.lines(&table(&rows));
    say(&format!("note: limits and prices are those of {}, where the configuration says none", catalogue_date()));
    Exit::Done
}

/// Tokens as people write them: `200k`, `1.05M`.
fn short(tokens: u32) -> String {
    match tokens {
        1_000_000.. => format!("{}M", f64::from(tokens / 10_000) / 100.0),
        1_000.. => format!("{}k", tokens / 1_000),
        _ => tokens.to_string(),
    }
}

/// What a model takes besides text.
fn inputs(facts: &ModelFacts) -> &'static str {
    match (facts.images, facts.documents) {
        (Some(true), Some(true)) => "images, PDF",
        (Some(true), Some(false) | None) => "images",
        (Some(false) | None, Some(true)) => "PDF",
        (Some(false), Some(false) | None) => "text only",
        (None, Some(false) | None) => "",
    }
}

async fn check(host: &Host, model: &ModelRef, listed: Listed, output: &mut Output) -> Exit {
    let checked = host.check_model(model).await;
    let findings = match &checked.outcome {
        Ok(findings) => findings,
        Err(failure) => {
            if listed.json {
                output.json_pretty(&json!({"model": model.to_string(), "ok": false, "error": {
                    "kind": failure.kind.as_str(), "status": failure.status, "message": failure.message,
                }, "findings": findings_json(&checked), "profile": profile_json(&checked)}));
            } else {
                told(&checked, output);
            }
            say(&format!("error: {model} does not answer: {}", beginning(&failure.to_string())));
            return Exit::Failed;
        }
    };
    let called_tool = findings.tool_call != ToolCallForm::None;
    let is_ok = findings.text || called_tool;
    if listed.json {
        output.json_pretty(&json!({
            "model": model.to_string(),
            "ok": is_ok,
            "text": findings.text,
            "called_tool": called_tool,
            "recovered_from_text": findings.tool_call == ToolCallForm::Text,
            "usage_reported": findings.usage_reported,
            "duration_ms": findings.duration_ms,
            "findings": findings_json(&checked),
            "profile": profile_json(&checked),
        }));
    } else {
        let did = if is_ok { "answers" } else { "gives an empty answer" };
        output.line(&format!("{model} {did} in {} ms", findings.duration_ms));
        output.line(match findings.tool_call {
            ToolCallForm::Native => "it calls tools",
            ToolCallForm::Text => "it writes tool calls as text; they are recovered",
            ToolCallForm::None => "it did not call the tool that it was offered",
        });
        output.line(if findings.usage_reported { "it reports its tokens" } else { "it does not report its tokens" });
        told(&checked, output);
    }
    if is_ok {
        return Exit::Done;
    }
    say(&format!("error: {model} says nothing and calls nothing; it cannot be used as it is configured"));
    Exit::Failed
}

/// What the endpoint was asked, for programs.
fn findings_json(checked: &ModelCheck) -> Vec<serde_json::Value> {
    let findings = checked.probe.iter().flat_map(|probe| &probe.findings);
    let finding =
        |found: &ProbeFinding| json!({"subject": found.subject, "verdict": found.verdict.as_str(), "reason": found.reason});
    findings.map(finding).collect()
}

/// What should be in the `profile` table, for programs: keys, and their values as TOML.
fn profile_json(checked: &ModelCheck) -> serde_json::Map<String, serde_json::Value> {
    let profile = checked.probe.iter().flat_map(|probe| &probe.profile);
    profile.map(|(key, value)| ((*key).to_owned(), json!(value))).collect()
}

/// What the endpoint was asked, for people, and what should be in the configuration.
fn told(checked: &ModelCheck, output: &mut Output) {
    let Some(probe) = &checked.probe else { return };
    let rows: Vec<_> = probe
        .findings
        .iter()
        .map(|found| [found.subject.to_owned(), found.verdict.as_str().to_owned(), first_line(&found.reason, MAX_REASON)])
        .collect();
    output.lines(&table(&rows));
    if probe.profile.is_empty() {
        return;
    }
    let keys: Vec<_> = probe.profile.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    output.line("");
    output.line("# for the configuration:");
    output.line(&format!("[providers.{}]", checked.model.provider()));
    output.line(&format!("profile = {{ {} }}", keys.join(", ")));
}
