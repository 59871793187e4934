//! Whether a tool's structured result is what the tool promised.
//!
//! A result that is not is kept as it came, and both the model and the operator are told.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use turnwright_core::ContentBlock;
use turnwright_engine::{BoundedValidator, SourceTool, ToolOutput, bounded_validator};

use crate::list::capped_to;

/// How many problems are told at once, and how much of each: a problem repeats what does not fit.
const MAX_PROBLEMS: usize = 3;
const MAX_PROBLEM_BYTES: usize = 300;

/// The schemas of one server's results, compiled when they are needed.
#[derive(Debug, Default)]
pub(crate) struct Promises {
    compiled: Mutex<HashMap<String, Option<Arc<BoundedValidator>>>>,
}

impl Promises {
    /// The result of a tool, with what is to be said of it.
    pub(crate) fn judged(&self, tool: Option<&SourceTool>, mut output: ToolOutput) -> ToolOutput {
        let Some((tool, schema)) = tool.and_then(|tool| Some((tool, tool.face.output_schema.as_ref()?))) else { return output };
        if output.is_error {
            return output;
        }
        let problem = match &output.structured_content {
            None => Some("it gave no structured content, which its output schema promises".to_owned()),
            Some(content) => self.validator(&tool.name, schema).and_then(|validator| problem(&validator, content)),
        };
        if let Some(problem) = problem {
            let remark =
                format!("[The result of this tool is not what its output schema promises: {problem}. It is kept as it came.]");
            output.content.push(ContentBlock::text(remark));
            output.diagnostic = Some(format!("the result does not fit the tool's outputSchema: {problem}"));
        }
        output
    }

    /// The compiled schema; `None` where it cannot be compiled, in which case nothing is promised.
    fn validator(&self, tool: &str, schema: &Value) -> Option<Arc<BoundedValidator>> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = compiled.get(tool) {
            return known.clone();
        }
        let validator = bounded_validator(schema).map(Arc::new);
        compiled.insert(tool.to_owned(), validator.clone());
        validator
    }
}

fn problem(validator: &BoundedValidator, content: &Value) -> Option<String> {
    // What takes without end to find out counts as kept.
    if validator.fits(content) != Some(false) {
        return None;
    }
    let Some(problems) = validator.problems(content) else { return Some("it is too deep to say where".to_owned()) };
    let problems: Vec<String> = problems
        .take(MAX_PROBLEMS)
        .map(|error| {
            let place = error.instance_path().to_string();
            let said = capped_to(error.to_string(), MAX_PROBLEM_BYTES);
            if place.is_empty() { said } else { format!("at {place}: {said}") }
        })
        .collect();
    (!problems.is_empty()).then(|| problems.join("; "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnwright_core::Declared;
    use turnwright_engine::ToolFace;

    use super::*;

    fn tool(schema: Option<Value>) -> SourceTool {
        SourceTool {
            name: "weather".into(),
            title: None,
            description: String::new(),
            input_schema: json!({"type": "object"}),
            annotations: None,
            declared: Declared::default(),
            face: Arc::new(ToolFace { output_schema: schema, ..ToolFace::default() }),
        }
    }

    fn celsius() -> Value {
        json!({"type": "object", "properties": {"celsius": {"type": "number"}}, "required": ["celsius"]})
    }

    #[test]
    fn a_result_that_is_not_what_was_promised_is_kept_and_named() {
        let promises = Promises::default();
        let output = promises.judged(Some(&tool(Some(celsius()))), ToolOutput::json(json!({"celsius": "warm"})));
        let problem = "at /celsius: \"warm\" is not of type \"number\"";
        let expected = ToolOutput {
            content: vec![
                ContentBlock::text(r#"{"celsius":"warm"}"#),
                ContentBlock::text(format!(
                    "[The result of this tool is not what its output schema promises: {problem}. It is kept as it came.]"
                )),
            ],
            structured_content: Some(json!({"celsius": "warm"})),
            is_error: false,
            diagnostic: Some(format!("the result does not fit the tool's outputSchema: {problem}")),
        };
        assert_eq!(output, expected);
        let none = promises.judged(Some(&tool(Some(celsius()))), ToolOutput::text("warm"));
        let why =
            "the result does not fit the tool's outputSchema: it gave no structured content, which its output schema promises";
        assert_eq!(none.diagnostic.as_deref(), Some(why));
    }

    #[test]
    fn what_keeps_its_promise_or_made_none_is_left_alone() {
        let error = ToolOutput { is_error: true, ..ToolOutput::text("no such city") };
        for (tool, output) in [
            (Some(tool(Some(celsius()))), ToolOutput::json(json!({"celsius": 4}))),
            (Some(tool(Some(celsius()))), error),
            (Some(tool(Some(json!({"$ref": "https://example.test/x"})))), ToolOutput::json(json!(1))),
            (Some(tool(None)), ToolOutput::text("warm")),
            (None, ToolOutput::text("warm")),
        ] {
            assert_eq!(Promises::default().judged(tool.as_ref(), output.clone()), output);
        }
    }
}
