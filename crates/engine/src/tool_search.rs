//! Finding a tool among many by what it is wanted for.
//!
//! BM25 over the parts of a definition, each with a weight of its own: its name, its source, its description and its
//! parameters. Words are compared by their stems, by a list of words that people use for one another, and, where a word is in
//! no definition, by how it is spelled. Pure: the same tools and words give the same list.

use std::collections::HashMap;

use serde_json::Value;
use turnwright_core::ToolDefinition;

mod alike;
mod synonyms;
mod words;

use words::words;

/// How much a part of a definition says, and how little a long one says more than a short one (`b` of BM25).
#[derive(Debug, Clone, Copy)]
struct Part {
    weight: f32,
    length_matters: f32,
}

/// Name, source and title, description, names of parameters, descriptions of parameters.
const PARTS: [Part; 5] = [
    Part { weight: 2.5, length_matters: 0.4 },
    Part { weight: 2.0, length_matters: 0.3 },
    Part { weight: 1.5, length_matters: 0.6 },
    Part { weight: 0.6, length_matters: 0.8 },
    Part { weight: 0.2, length_matters: 0.9 },
];
/// From how many mentions on another one says little (`k1` of BM25).
const SATURATION: f32 = 1.2;
/// What a word counts that people use for the one that was asked for.
const SYNONYM: f32 = 0.8;
/// How much more a word says that is rare itself than one of which all that may stand for it are rare together.
const OWN_RARITY: f32 = 0.8;
/// How deep parameters are looked into.
const MAX_DEPTH: u32 = 3;
/// The longest question that is read, in words.
const MAX_WORDS: usize = 64;

/// Some tools, ready to be searched.
#[derive(Debug, Default)]
pub struct ToolIndex {
    /// Of each word where it stands, and how much it says there: tool and weight, the tools ascending.
    postings: HashMap<String, Vec<(u32, f32)>>,
    tools: u32,
}

impl ToolIndex {
    /// An index of these tools; they are known by their places.
    pub fn new<'a>(tools: impl IntoIterator<Item = &'a ToolDefinition>) -> Self {
        let tools: Vec<[Vec<String>; 5]> = tools.into_iter().map(parts).collect();
        let count = tools.len().max(1);
        let mut lengths = [0_usize; 5];
        for parts in &tools {
            for (length, part) in lengths.iter_mut().zip(parts) {
                *length += part.len();
            }
        }
        let mut postings: HashMap<String, Vec<(u32, f32)>> = HashMap::new();
        for (place, parts) in (0_u32..).zip(&tools) {
            let mut weights: HashMap<&str, f32> = HashMap::new();
            for ((part, own), all) in parts.iter().zip(PARTS).zip(lengths) {
                let usual = (ratio(all, count)).max(1.0);
                let length = 1.0 - own.length_matters + own.length_matters * ratio(part.len(), 1) / usual;
                for word in part {
                    *weights.entry(word).or_default() += own.weight / length;
                }
            }
            for (word, weight) in weights {
                postings.entry(word.to_owned()).or_default().push((place, weight));
            }
        }
        Self { postings, tools: u32::try_from(tools.len()).unwrap_or(u32::MAX) }
    }

    /// The places of the tools that fit `query` best, the best first, at most `limit` of those that `is_meant` takes. What has
    /// no word in common with it is not among them.
    pub fn search(&self, query: &str, limit: usize, is_meant: impl Fn(usize) -> bool) -> Vec<usize> {
        // Of each tool the sum over the words, and how many of these it has.
        let mut scores: HashMap<u32, (f32, f32)> = HashMap::new();
        let mut asked = words(query);
        asked.truncate(MAX_WORDS);
        let mut said: Vec<String> = Vec::new();
        for word in asked {
            if said.contains(&word) {
                continue;
            }
            // Of all that may stand for the word the best counts, so that a tool gains nothing by saying it in many ways.
            let mut best: HashMap<u32, f32> = HashMap::new();
            for (term, share) in self.terms(&word) {
                let found = self.postings.get(&term).map(Vec::as_slice).unwrap_or_default();
                let rarity = self.rarity(found.len()).powf(OWN_RARITY);
                for (tool, weight) in found {
                    let score = share * rarity * weight * (SATURATION + 1.0) / (weight + SATURATION);
                    let kept = best.entry(*tool).or_default();
                    *kept = kept.max(score);
                }
            }
            // A word that may mean much says less, however rare each of its meanings is.
            let rarity = self.rarity(best.len()).powf(1.0 - OWN_RARITY);
            for (tool, score) in best {
                let (sum, matches) = scores.entry(tool).or_default();
                *sum += rarity * score;
                *matches += 1.0;
            }
            said.push(word);
        }
        let mut found: Vec<(f32, usize)> = scores
            .into_iter()
            .filter_map(|(tool, (sum, matches))| {
                // What has two words of a question is meant rather than what has one that is twice as rare.
                Some((sum * matches.sqrt(), usize::try_from(tool).ok().filter(|tool| is_meant(*tool))?))
            })
            .collect();
        found.sort_by(|(a, first), (b, second)| b.total_cmp(a).then(first.cmp(second)));
        found.truncate(limit);
        found.into_iter().map(|(_, tool)| tool).collect()
    }

    /// What may stand for a word in a definition, and how much that counts.
    fn terms(&self, word: &str) -> Vec<(String, f32)> {
        let mut terms = vec![(word.to_owned(), 1.0)];
        let mut known = self.postings.contains_key(word);
        for synonym in synonyms::of(word) {
            known |= self.postings.contains_key(synonym);
            terms.push((synonym.to_owned(), SYNONYM));
        }
        if !known {
            terms.extend(alike::to(word, self.postings.keys()));
        }
        terms
    }

    /// How much a word says that so many tools have (the inverse document frequency of BM25).
    fn rarity(&self, tools: usize) -> f32 {
        let (all, having) = (ratio(self.tools as usize, 1), ratio(tools, 1));
        (1.0 + (all - having + 0.5) / (having + 0.5)).ln()
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of words and tools are far below what is lost")]
fn ratio(count: usize, by: usize) -> f32 {
    count as f32 / by as f32
}

/// The words of each part of a definition.
fn parts(tool: &ToolDefinition) -> [Vec<String>; 5] {
    let own = if tool.tool.is_empty() { &tool.name } else { &tool.tool };
    let mut source = words(&tool.source);
    source.extend(words(tool.title.as_deref().unwrap_or_default()));
    let (mut names, mut about) = (Vec::new(), Vec::new());
    parameters(&tool.input_schema, MAX_DEPTH, &mut names, &mut about);
    [words(own), source, words(&tool.description), names, about]
}

/// The words of the names and descriptions of a schema's properties, and of what these may be.
fn parameters(schema: &Value, depth: u32, names: &mut Vec<String>, about: &mut Vec<String>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    for (name, property) in properties {
        names.extend(words(name));
        about.extend(property.get("description").and_then(Value::as_str).map(words).unwrap_or_default());
        let choices = property.get("enum").and_then(Value::as_array).into_iter().flatten();
        about.extend(choices.filter_map(Value::as_str).flat_map(words));
        if depth > 0 {
            parameters(property, depth - 1, names, about);
            if let Some(items) = property.get("items") {
                parameters(items, depth - 1, names, about);
            }
        }
    }
}

#[cfg(test)]
mod tests;
