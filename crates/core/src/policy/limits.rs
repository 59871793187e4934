//! What a rule must be that somebody adds: one that may match, and no larger than this, since each is made ready at once and looked at
//! for each call.
//!
//! Rules that are already stored hold whatever their size, and so do those of the configuration.

use super::{PredicateText, RuleError, RuleText};

const MAX_ARGUMENTS: usize = 64;
const MAX_VALUES: usize = 1_000;
const MAX_GLOB_BYTES: usize = 4_096;
/// Of all names, folders and values of a rule together; values as JSON.
const MAX_BYTES: usize = 256 * 1024;
/// Of all globs of a rule together.
const MAX_WILDCARDS: usize = 256;

impl RuleText {
    /// Whether a rule can be added: it is small enough, and may match.
    ///
    /// # Errors
    /// What of it is too much, and the limit; or why it matches nothing.
    pub fn fits(&self) -> Result<(), RuleError> {
        let error = |at: String, reason: String| RuleError { rule: "rule".to_owned(), at, reason };
        if let Some(reason) = self.names_no_tool() {
            return Err(error("tool".to_owned(), reason));
        }
        let within = |at: String, count: usize, limit: usize, what: &str| {
            if count <= limit { Ok(()) } else { Err(error(at, format!("has {count} {what}, limit {limit}"))) }
        };
        within("when".to_owned(), self.when.len(), MAX_ARGUMENTS, "arguments")?;
        let mut bytes = 0_usize;
        for (key, predicate) in &self.when {
            bytes = bytes.saturating_add(key.len());
            if let PredicateText::Tests(tests) = predicate {
                bytes = bytes.saturating_add(tests.below.iter().flatten().map(String::len).sum());
                bytes = bytes.saturating_add(tests.one_of.iter().flatten().map(|value| value.to_string().len()).sum());
            }
            within("when".to_owned(), bytes, MAX_BYTES, "bytes")?;
        }
        let mut globs = vec![("tool".to_owned(), self.tool.as_str())];
        for (key, predicate) in &self.when {
            let tests = match predicate {
                PredicateText::Glob(glob) => {
                    globs.push((format!("when.{key}"), glob));
                    continue;
                }
                PredicateText::Tests(tests) => tests,
            };
            globs.extend(tests.glob.as_deref().map(|glob| (format!("when.{key}.glob"), glob)));
            let programs = tests.program.as_deref().unwrap_or_default();
            globs.extend(programs.iter().map(|name| (format!("when.{key}.program"), name.as_str())));
            within(format!("when.{key}.program"), programs.len(), MAX_VALUES, "values")?;
            within(format!("when.{key}.below"), tests.below.as_ref().map_or(0, Vec::len), MAX_VALUES, "values")?;
            within(format!("when.{key}.one_of"), tests.one_of.as_ref().map_or(0, Vec::len), MAX_VALUES, "values")?;
        }
        let mut wildcards = 0;
        for (at, glob) in globs {
            within(at.clone(), glob.len(), MAX_GLOB_BYTES, "bytes")?;
            wildcards += glob.chars().filter(|c| matches!(c, '*' | '?' | '[' | '{')).count();
            if wildcards > MAX_WILDCARDS {
                let reason = format!("brings the wildcards of the rule to more than {MAX_WILDCARDS}, which is the limit");
                return Err(error(at, reason));
            }
        }
        Ok(())
    }
}
