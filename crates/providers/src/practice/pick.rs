//! Which tools a question means: by its words, and the tools' names and descriptions.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value};
use turnwright_core::ToolDefinition;

use super::clues::{Question, Shape};
use super::fill::{Filled, MOST_CALLS, fill};
use super::words::{stem, words_of};

/// What to do about a question.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Pick {
    /// Call these, and say what is missing for others that it names.
    Call {
        /// At least one.
        calls: Vec<(String, Map<String, Value>)>,
        /// Named tools whose arguments it does not say.
        missing: Vec<Missing>,
    },
    /// Tools fit, but their arguments are not said.
    Ask(Vec<Missing>),
    /// Nothing fits.
    Nothing,
}

/// A tool whose required arguments the question does not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) tool: String,
    pub(super) arguments: Vec<String>,
}

/// How much a word counts by where the tool has it.
const IN_NAME: f64 = 6.0;
const IN_SOURCE: f64 = 3.0;
const IN_DESCRIPTION: f64 = 2.0;
/// A word that the question does not say and only its clues suggest counts this part.
const SUGGESTED: f64 = 0.5;
/// What is done with a file where nothing else is said.
const READ: &str = "read";
/// A tool that can be called is taken before one that cannot and scores at most this much better.
const NEAR: f64 = 0.75;

/// What the question means.
pub(super) fn pick(tools: &[Arc<ToolDefinition>], text: &str) -> Pick {
    let named = named_tools(tools, text);
    if !named.is_empty() {
        return by_name(&named, text);
    }
    let question = Question::of(text);
    let ranked = rank(tools, &question);
    let Some(best) = ranked.first() else { return Pick::Nothing };
    let near = ranked.iter().filter(|candidate| candidate.score >= best.score * NEAR);
    let callable = near.map(|candidate| (&candidate.tool.name, &candidate.filled)).find_map(|(name, filled)| match filled {
        Filled::Calls { arguments, .. } => Some(arguments.iter().map(|arguments| (name.clone(), arguments.clone())).collect()),
        Filled::Missing(_) => None,
    });
    match (callable, &best.filled) {
        (Some(calls), _) => Pick::Call { calls, missing: Vec::new() },
        (None, Filled::Missing(arguments)) => {
            Pick::Ask(vec![Missing { tool: best.tool.name.clone(), arguments: arguments.clone() }])
        }
        (None, Filled::Calls { .. }) => Pick::Nothing,
    }
}

/// Where the question has the very name of a tool, with where it begins and ends.
fn named_tools<'a>(tools: &'a [Arc<ToolDefinition>], text: &str) -> Vec<(usize, usize, &'a ToolDefinition)> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-';
    let mut found: Vec<(usize, usize, &ToolDefinition)> = Vec::new();
    for tool in tools {
        // One plain word as a name is a word like others.
        let own = Some(tool.tool.as_str()).filter(|name| name.contains(['_', '-']));
        for name in [Some(tool.name.as_str()), own].into_iter().flatten() {
            for (start, _) in text.match_indices(name) {
                let end = start + name.len();
                let is_whole = !text.get(..start).is_some_and(|before| before.ends_with(is_part))
                    && !text.get(end..).is_some_and(|after| after.starts_with(is_part));
                let is_new = !found.iter().any(|(known, until, _)| start < *until && *known < end);
                if is_whole && is_new {
                    found.push((start, end, tool));
                }
            }
        }
    }
    found.sort_by_key(|(start, _, _)| *start);
    found
}

/// Each named tool with what is said from its name to the next; before the first counts for it too.
fn by_name(named: &[(usize, usize, &ToolDefinition)], text: &str) -> Pick {
    let mut calls = Vec::new();
    let mut missing = Vec::new();
    let mut from = 0;
    for (index, (start, end, tool)) in named.iter().enumerate() {
        let until = named.get(index + 1).map_or(text.len(), |(next, _, _)| *next);
        let before = text.get(from..*start).unwrap_or_default();
        let question = Question::of(&format!("{before} {}", text.get(*end..until).unwrap_or_default()));
        match fill(&tool.input_schema, &question) {
            Filled::Calls { arguments, .. } => {
                calls.extend(arguments.into_iter().map(|arguments| (tool.name.clone(), arguments)));
            }
            Filled::Missing(arguments) => missing.push(Missing { tool: tool.name.clone(), arguments }),
        }
        from = until;
    }
    calls.truncate(MOST_CALLS);
    if calls.is_empty() { Pick::Ask(missing) } else { Pick::Call { calls, missing } }
}

struct Candidate<'a> {
    tool: &'a ToolDefinition,
    score: f64,
    filled: Filled,
}

/// The words of a tool, by where it has them.
struct Profile<'a> {
    tool: &'a ToolDefinition,
    name: HashSet<String>,
    source: HashSet<String>,
    description: HashSet<String>,
}

impl Profile<'_> {
    fn weight(&self, word: &str) -> Option<f64> {
        let places = [(&self.name, IN_NAME), (&self.source, IN_SOURCE), (&self.description, IN_DESCRIPTION)];
        let weights = places.iter().filter(|(words, _)| words.contains(word)).map(|(_, weight)| *weight);
        weights.reduce(f64::max)
    }
}

/// The tools that fit, the best first; of equal ones, those that change nothing, then the first offered.
fn rank<'a>(tools: &'a [Arc<ToolDefinition>], question: &Question) -> Vec<Candidate<'a>> {
    let profiles: Vec<Profile<'_>> = tools
        .iter()
        .map(|tool| Profile {
            tool,
            name: words_of(&tool.tool).into_iter().collect(),
            source: words_of(&tool.source).into_iter().collect(),
            description: words_of(&format!("{} {}", tool.title.as_deref().unwrap_or_default(), tool.description))
                .into_iter()
                .collect(),
        })
        .collect();
    let mut words: HashMap<String, f64> = suggested(question).map(|word| (stem(word), SUGGESTED)).collect();
    let said = words_of(&question.rest);
    let is_known = |word: &String| profiles.iter().any(|profile| profile.weight(word).is_some());
    // Who only names a file wants to see it.
    if !said.iter().any(is_known) && question.clues.iter().any(|clue| clue.shape == Shape::Path && has_ending(&clue.text)) {
        words.insert(stem(READ), SUGGESTED);
    }
    words.extend(said.into_iter().map(|word| (word, 1.0)));
    let mut words: Vec<(String, f64)> = words.into_iter().collect();
    words.sort_by(|a, b| a.0.cmp(&b.0));
    // A word that many tools have says little about which is meant.
    for (word, weight) in &mut words {
        let having = profiles.iter().filter(|profile| profile.weight(word).is_some()).count();
        *weight *= rarity(having, profiles.len());
    }
    let mut candidates: Vec<Candidate<'_>> = profiles
        .iter()
        .filter_map(|profile| {
            let hits: Vec<f64> =
                words.iter().filter_map(|(word, weight)| profile.weight(word).map(|in_tool| in_tool * weight)).collect();
            if hits.is_empty() {
                return None;
            }
            let filled = fill(&profile.tool.input_schema, question);
            let is_named = words.iter().any(|(word, _)| profile.name.contains(word) && !is_only_suggested(word, question));
            let has_clue = matches!(filled, Filled::Calls { has_clue: true, .. });
            // One word of a description is little, unless it is all that the question says.
            let fits = is_named || hits.len() > 1 || hits.len() == words.len() || has_clue;
            fits.then(|| Candidate { tool: profile.tool, score: hits.iter().sum(), filled })
        })
        .collect();
    let reads_only = |candidate: &Candidate<'_>| candidate.tool.declared.read_only;
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score).then(reads_only(b).cmp(&reads_only(a))));
    candidates
}

fn rarity(having: usize, of: usize) -> f64 {
    let ratio = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    if having == 0 { 0.0 } else { 1.0 + (ratio(of) / ratio(having)).ln() }
}

/// Words that the question's clues stand for.
fn suggested(question: &Question) -> impl Iterator<Item = &'static str> {
    question.clues.iter().filter_map(|clue| match clue.shape {
        Shape::Path if clue.text.ends_with('/') => Some("folder"),
        Shape::Path => Some("file"),
        Shape::Url => Some("url"),
        Shape::Time => Some("time"),
        Shape::Number | Shape::Zone | Shape::Name | Shape::Text => None,
    })
}

/// Whether a path is a file's by its ending, as far as paths can be.
fn has_ending(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').is_some_and(|(_, ending)| !ending.is_empty())
}

fn is_only_suggested(word: &str, question: &Question) -> bool {
    suggested(question).chain([READ]).any(|suggested| stem(suggested) == word)
        && !words_of(&question.rest).iter().any(|said| said == word)
}
