//! The form that a tool asks a person to fill in: a flat object of texts, numbers, yes or no, and choices (MCP elicitation,
//! form mode). Pure, so that every door reads, fills and refuses the same way.

use std::fmt;

use serde_json::{Map, Value};

mod format;
mod read;

/// The most fields that a form may have.
const MAX_FIELDS: usize = 100;

/// A form.
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    /// Its fields, in the order in which they are asked.
    pub fields: Vec<Field>,
}

/// One field of a form.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name in the answer.
    pub name: String,
    /// What it is called for people.
    pub title: Option<String>,
    /// What is to be written there.
    pub description: Option<String>,
    /// Whether there is no answer without it.
    pub is_required: bool,
    /// What it takes.
    pub kind: FieldKind,
    /// What it holds where nobody says anything else.
    pub default: Option<Value>,
}

/// What a field takes.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldKind {
    /// A text.
    Text {
        /// The fewest characters.
        min_length: Option<u64>,
        /// The most characters.
        max_length: Option<u64>,
        /// What it must look like.
        format: Option<TextFormat>,
    },
    /// A number.
    Number {
        /// Whether it has no fraction.
        is_integer: bool,
        /// The least.
        minimum: Option<f64>,
        /// The greatest.
        maximum: Option<f64>,
    },
    /// Yes or no.
    Boolean,
    /// One of these.
    One(Vec<Choice>),
    /// Some of these.
    Some {
        /// What can be chosen.
        choices: Vec<Choice>,
        /// The fewest.
        min_items: Option<u64>,
        /// The most.
        max_items: Option<u64>,
    },
}

/// One thing that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Its value in the answer.
    pub value: String,
    /// What it is called for people.
    pub title: Option<String>,
}

/// What a text must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFormat {
    /// An e-mail address.
    Email,
    /// An absolute URI.
    Uri,
    /// A day, such as `2026-11-22`.
    Date,
    /// A moment, such as `2026-11-22T09:30:00Z`.
    DateTime,
}

/// What is wrong with one field of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldProblem {
    /// The field's name.
    pub field: String,
    /// What is wrong, as the end of a sentence that begins with the field.
    pub problem: String,
}

impl fmt::Display for FieldProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.field, self.problem)
    }
}

impl Form {
    /// Reads the schema of a form.
    ///
    /// # Errors
    /// Where it is not flat, or has a field of a kind that no form has; says which.
    pub fn read(schema: &Value) -> Result<Self, String> {
        read::form(schema)
    }

    /// The answer that is sent: what was given, checked, and the defaults of the fields that were left alone.
    ///
    /// # Errors
    /// What is wrong, field by field.
    pub fn fill(&self, mut given: Map<String, Value>) -> Result<Map<String, Value>, Vec<FieldProblem>> {
        let mut filled = Map::new();
        let mut problems = Vec::new();
        for field in &self.fields {
            let value = given.shift_remove(&field.name).filter(|value| !value.is_null()).or_else(|| field.default.clone());
            let problem = match &value {
                Some(value) => field.problem(value),
                None if field.is_required => Some("is required".to_owned()),
                None => None,
            };
            match (problem, value) {
                (Some(problem), _) => problems.push(FieldProblem { field: field.name.clone(), problem }),
                (None, Some(value)) => drop(filled.insert(field.name.clone(), value)),
                (None, None) => {}
            }
        }
        let names = || self.fields.iter().map(|field| format!("`{}`", field.name)).collect::<Vec<_>>().join(", ");
        problems.extend(given.into_iter().map(|(field, _)| {
            let problem = if self.fields.is_empty() {
                "is no field of the form, which has none".to_owned()
            } else {
                format!("is no field of the form; its fields are {}", names())
            };
            FieldProblem { field, problem }
        }));
        if problems.is_empty() { Ok(filled) } else { Err(problems) }
    }
}

impl Field {
    /// What is wrong with a value, as the end of a sentence that begins with the field; `None` where it fits.
    pub fn problem(&self, value: &Value) -> Option<String> {
        match &self.kind {
            FieldKind::Text { min_length, max_length, format } => {
                let Value::String(text) = value else { return Some("must be a text".to_owned()) };
                let length = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
                if min_length.is_some_and(|least| length < least) || max_length.is_some_and(|most| length > most) {
                    return Some(format!("must have {} characters, not {length}", range(*min_length, *max_length)));
                }
                format.filter(|format| !format.fits(text)).map(|format| format!("must be {}", format.described()))
            }
            FieldKind::Number { is_integer, minimum, maximum } => {
                let Some(number) = value.as_f64().filter(|_| value.is_number()) else {
                    return Some(if *is_integer { "must be a whole number" } else { "must be a number" }.to_owned());
                };
                if *is_integer && !(value.is_i64() || value.is_u64() || number.fract() == 0.0) {
                    return Some(format!("must be a whole number, not {number}"));
                }
                let is_outside = minimum.is_some_and(|least| number < least) || maximum.is_some_and(|most| number > most);
                is_outside.then(|| format!("must be {}, not {number}", range(*minimum, *maximum)))
            }
            FieldKind::Boolean => (!value.is_boolean()).then(|| "must be true or false".to_owned()),
            FieldKind::One(choices) => {
                let fits = value.as_str().is_some_and(|value| choices.iter().any(|choice| choice.value == value));
                (!fits).then(|| format!("must be one of {}", values(choices)))
            }
            FieldKind::Some { choices, min_items, max_items } => {
                let Value::Array(chosen) = value else {
                    return Some(format!("must be a list of some of {}", values(choices)));
                };
                let is_choice =
                    |value: &Value| value.as_str().is_some_and(|value| choices.iter().any(|choice| choice.value == value));
                if !chosen.iter().all(is_choice) {
                    return Some(format!("must be a list of some of {}", values(choices)));
                }
                let count = u64::try_from(chosen.len()).unwrap_or(u64::MAX);
                let is_outside = min_items.is_some_and(|least| count < least) || max_items.is_some_and(|most| count > most);
                is_outside.then(|| format!("must hold {} of its choices, not {count}", range(*min_items, *max_items)))
            }
        }
    }

    /// The value that a person means who writes `text`: choices by value or title, several with commas between, yes and no in
    /// the usual words.
    ///
    /// # Errors
    /// As [`Field::problem`].
    pub fn read(&self, text: &str) -> Result<Value, String> {
        let value = match &self.kind {
            FieldKind::Text { .. } => Value::String(text.to_owned()),
            FieldKind::Number { is_integer, .. } => {
                let number: Option<Value> = serde_json::from_str(text.trim()).ok().filter(Value::is_number);
                number.ok_or(if *is_integer { "must be a whole number" } else { "must be a number" })?
            }
            FieldKind::Boolean => match text.trim().to_lowercase().as_str() {
                "true" | "yes" | "y" => Value::Bool(true),
                "false" | "no" | "n" => Value::Bool(false),
                _ => return Err("must be yes or no".to_owned()),
            },
            FieldKind::One(choices) => Value::String(meant(choices, text)),
            FieldKind::Some { choices, .. } => {
                let chosen = text.split(',').map(str::trim).filter(|text| !text.is_empty());
                Value::Array(chosen.map(|text| Value::String(meant(choices, text))).collect())
            }
        };
        match self.problem(&value) {
            Some(problem) => Err(problem),
            None => Ok(value),
        }
    }

    /// What it takes, in a few words for people; empty where it takes any text.
    pub fn described(&self) -> String {
        match &self.kind {
            FieldKind::Text { format: Some(format), .. } => format.described().to_owned(),
            FieldKind::Text { min_length: None, max_length: None, .. } => String::new(),
            FieldKind::Text { min_length, max_length, .. } => format!("{} characters", range(*min_length, *max_length)),
            FieldKind::Number { is_integer, minimum, maximum } => {
                let number = if *is_integer { "a whole number" } else { "a number" };
                if minimum.is_none() && maximum.is_none() {
                    return number.to_owned();
                }
                format!("{number}, {}", range(*minimum, *maximum))
            }
            FieldKind::Boolean => "yes or no".to_owned(),
            FieldKind::One(choices) => format!("one of {}", told(choices)),
            FieldKind::Some { choices, .. } => format!("some of {}, with commas between", told(choices)),
        }
    }
}

/// The choice that a text names; the text itself where it names none.
fn meant(choices: &[Choice], text: &str) -> String {
    let text = text.trim();
    let by_value = choices.iter().find(|choice| choice.value == text);
    let by_title = || choices.iter().find(|choice| choice.title.as_ref().is_some_and(|title| title.eq_ignore_ascii_case(text)));
    by_value.or_else(by_title).map_or_else(|| text.to_owned(), |choice| choice.value.clone())
}

fn values(choices: &[Choice]) -> String {
    choices.iter().map(|choice| choice.value.as_str()).collect::<Vec<_>>().join(", ")
}

fn told(choices: &[Choice]) -> String {
    let one = |choice: &Choice| match &choice.title {
        Some(title) if *title != choice.value => format!("{} ({title})", choice.value),
        Some(_) | None => choice.value.clone(),
    };
    choices.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn range<T: fmt::Display>(least: Option<T>, most: Option<T>) -> String {
    match (least, most) {
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (Some(least), None) => format!("at least {least}"),
        (None, Some(most)) => format!("at most {most}"),
        (None, None) => "any number of".to_owned(),
    }
}
