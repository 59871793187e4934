//! What vendors publish of their models: a data file with its date, read when it is first asked.
//!
//! A model is found by any of the names under which services offer it. What holds only at one address (a price) or depends
//! on who runs the model (the window of open weights) is said only there.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::facts::{ModelFacts, Prices, ReasoningStyle};
use crate::profile::host_of;

/// The data.
const TEXT: &str = include_str!("catalogue/models.json");

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "about")]
    _about: String,
    date: String,
    vendors: HashMap<String, Vec<String>>,
    models: Vec<Model>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Model {
    id: String,
    #[serde(default)]
    aliases: Vec<String>,
    vendor: String,
    /// Whether anybody may run it, with a window of their own.
    #[serde(default)]
    open: bool,
    context_window: Option<u32>,
    max_output_tokens: Option<u32>,
    images: Option<bool>,
    documents: Option<bool>,
    tools: Option<bool>,
    reasoning: Option<ReasoningStyle>,
    temperature: Option<bool>,
    /// At the vendor's own address.
    prices: Option<Prices>,
    /// At others', by the vendor's name.
    #[serde(default)]
    prices_at: HashMap<String, Prices>,
}

#[derive(Debug, Default)]
struct Catalogue {
    file: File,
    /// Places in `file.models`, by plain name.
    by_name: HashMap<String, usize>,
}

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| {
    let file: File = serde_json::from_str(TEXT).unwrap_or_default();
    let mut by_name = HashMap::new();
    for (place, model) in file.models.iter().enumerate() {
        by_name.extend(model.aliases.iter().chain([&model.id]).map(|name| (plain(name), place)));
    }
    Catalogue { file, by_name }
});

/// The day of what the catalogue says, as `YYYY-MM-DD`.
pub fn catalogue_date() -> &'static str {
    &CATALOGUE.file.date
}

/// What is known of a model that an endpoint offers by this name; nothing where the model is not known.
pub fn catalogue_facts(base_url: &str, model: &str) -> ModelFacts {
    let Catalogue { file, by_name } = &*CATALOGUE;
    let Some(model) = find(model, |name| by_name.get(name).and_then(|place| file.models.get(*place))) else {
        return ModelFacts::default();
    };
    let host = host_of(base_url);
    let vendor = file.vendors.iter().find(|(_, hosts)| hosts.iter().any(|known| known == host)).map(|(name, _)| name);
    // Whoever runs open weights chooses how much of them.
    let has_limits = vendor.is_some() || !model.open;
    ModelFacts {
        context_window: model.context_window.filter(|_| has_limits),
        max_output_tokens: model.max_output_tokens.filter(|_| has_limits),
        images: model.images,
        documents: model.documents,
        tools: model.tools,
        reasoning: model.reasoning,
        temperature: model.temperature,
        prices: match vendor {
            Some(vendor) if *vendor == model.vendor => model.prices,
            Some(vendor) => model.prices_at.get(vendor).copied(),
            None => None,
        },
    }
}

/// A name as the catalogue compares it: `claude-3.5-haiku@20241022` and `claude-3-5-haiku-20241022` are the same.
fn plain(name: &str) -> String {
    name.chars()
        .map(|c| match c {
            '.' | '@' | ':' | '_' | ' ' => '-',
            other => other.to_ascii_lowercase(),
        })
        .collect()
}

/// The first that `get` gives for the name, without what services put before and behind it.
fn find<T>(name: &str, get: impl Fn(&str) -> Option<T>) -> Option<T> {
    let name = name.rsplit('/').next().unwrap_or_default();
    let mut bare = name;
    for prefix in ["us.", "eu.", "apac.", "global.", "anthropic.", "openai.", "meta.", "mistral.", "deepseek.", "moonshotai."] {
        bare = bare.strip_prefix(prefix).unwrap_or(bare);
    }
    let untagged = bare.split(':').next().unwrap_or_default();
    [bare, untagged].into_iter().find_map(|name| {
        let name = plain(name);
        let mut rest = Some(name.as_str());
        while let Some(name) = rest {
            if let Some(found) = get(name) {
                return Some(found);
            }
            rest = shorter(name);
        }
        None
    })
}

/// A name without the last part, where that part says only which day's version is meant.
fn shorter(name: &str) -> Option<&str> {
    for word in ["-latest", "-preview", "-free", "-beta", "-fp8"] {
        if let Some(rest) = name.strip_suffix(word) {
            return Some(rest);
        }
    }
    // From the end: how many digits each group has.
    let groups: Vec<&str> = name.rsplit('-').take(4).collect();
    let digits = |group: &&str| if group.bytes().all(|byte| byte.is_ascii_digit()) { group.len() } else { 0 };
    let lengths: Vec<usize> = groups.iter().map(digits).collect();
    let is_version = |group: &&str| group.strip_prefix('v').is_some_and(|number| number.len() == 1 && number != "0");
    let dropped = match lengths.as_slice() {
        [2, 2, 4, ..] => 3,
        [2 | 4, 2, ..] if groups.get(2) == Some(&"preview") => 2,
        [8, ..] => 1,
        [3, ..] if name.starts_with("gemini-") => 1,
        [1, ..] if groups.get(1).is_some_and(is_version) => 2,
        _ => return None,
    };
    let length: usize = groups.iter().take(dropped).map(|group| group.len() + 1).sum();
    name.get(..name.len().checked_sub(length)?)
}

#[cfg(test)]
mod tests;
