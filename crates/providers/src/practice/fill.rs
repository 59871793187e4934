//! A tool's arguments, filled with the clues of a question.

use std::collections::HashSet;

use serde_json::{Map, Number, Value};

use super::clues::{Clue, Question, Shape, number_of};
use super::schema::{Argument, Hint, Want, arguments_of};
use super::words::{is_stop_word, split, stem};

/// The most calls that one question makes.
pub(super) const MOST_CALLS: usize = 16;

/// How well an argument's name in front of a clue fits: better than any shape.
const NAMED: u8 = 10;
/// How well a clue fits whose shape is the wanted one.
const EXACT: u8 = 6;
/// From here on a clue is clear enough for an argument that need not be given.
const CLEAR: u8 = 5;

/// Words in front of a place.
const PLACE_WORDS: &[&str] = &["in", "under", "inside", "below", "from", "at", "into", "to", "within"];

/// What the question says about a tool's arguments.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Filled {
    /// The arguments of one call, or of several where the question names several things.
    Calls {
        /// At least one.
        arguments: Vec<Map<String, Value>>,
        /// Whether any of it came from a clue.
        has_clue: bool,
    },
    /// The required arguments that it does not say.
    Missing(Vec<String>),
}

/// Fills the arguments of a tool with this schema.
pub(super) fn fill(schema: &Value, question: &Question) -> Filled {
    let arguments = arguments_of(schema);
    let mut filling = Filling { question, used: HashSet::new(), values: Map::new(), keys: Vec::new() };
    let (required, optional): (Vec<&Argument<'_>>, Vec<&Argument<'_>>) =
        arguments.iter().partition(|argument| argument.is_required);
    filling.assign(&required, 1, 1);
    for argument in &required {
        filling.take_rest(argument);
    }
    let missing: Vec<String> = required
        .iter()
        .filter(|argument| !filling.values.contains_key(argument.name))
        .map(|argument| argument.name.to_owned())
        .collect();
    if !missing.is_empty() {
        return Filled::Missing(missing);
    }
    let (least_shaped, least_any) = if required.is_empty() { (CLEAR - 1, EXACT) } else { (CLEAR, NAMED) };
    filling.assign(&optional, least_shaped, least_any);
    for argument in optional.iter().filter(|argument| matches!(argument.want, Want::Boolean | Want::OneOf(_))) {
        filling.take_rest(argument);
    }
    let has_clue = !filling.used.is_empty();
    Filled::Calls { arguments: filling.several(&required, &arguments), has_clue }
}

struct Filling<'a> {
    question: &'a Question,
    /// Indices of the clues that are taken.
    used: HashSet<usize>,
    values: Map<String, Value>,
    /// Which clue became which argument, and how well it fits.
    keys: Vec<(String, usize, u8)>,
}

impl Filling<'_> {
    /// Gives each argument its clue, the best pairs first; of equal ones the first argument and the first clue.
    fn assign(&mut self, arguments: &[&Argument<'_>], least_shaped: u8, least_any: u8) {
        let mut pairs = Vec::new();
        for (order, argument) in arguments.iter().enumerate() {
            let least = match argument.want {
                Want::Text(Hint::Path | Hint::Url | Hint::Zone | Hint::Time) => least_shaped,
                Want::Text(Hint::Any) => least_any,
                Want::Integer | Want::Number => least_any.min(NAMED),
                Want::OneOf(_) | Want::Boolean | Want::List(_) | Want::Other => continue,
            };
            for (index, clue) in self.question.clues.iter().enumerate() {
                if let Some(grade) = grade(&argument.want, argument.name, clue).filter(|grade| *grade >= least) {
                    pairs.push((grade, order, index));
                }
            }
        }
        pairs.sort_by_key(|(grade, order, index)| (u8::MAX - grade, *order, *index));
        for (grade, order, index) in pairs {
            let (Some(argument), Some(clue)) = (arguments.get(order), self.question.clues.get(index)) else { continue };
            if self.used.contains(&index) || self.values.contains_key(argument.name) {
                continue;
            }
            if let Some(value) = value_of(&argument.want, clue) {
                self.used.insert(index);
                self.values.insert(argument.name.to_owned(), value);
                self.keys.push((argument.name.to_owned(), index, grade));
            }
        }
    }

    /// Fills what takes no single clue: lists, enumerations, booleans.
    fn take_rest(&mut self, argument: &Argument<'_>) {
        if self.values.contains_key(argument.name) {
            return;
        }
        let value = match &argument.want {
            Want::OneOf(values) => self.named_value(values),
            Want::Boolean => self.says(argument.name).then_some(Value::Bool(true)),
            Want::List(want) => {
                let mut items = Vec::new();
                for (index, clue) in self.question.clues.iter().enumerate() {
                    let fits = !self.used.contains(&index) && grade(want, argument.name, clue).is_some();
                    if let Some(value) = fits.then(|| value_of(want, clue)).flatten() {
                        items.push(value);
                        self.used.insert(index);
                    }
                }
                (!items.is_empty()).then_some(Value::Array(items))
            }
            Want::Integer | Want::Number | Want::Text(_) | Want::Other => None,
        };
        if let Some(value) = value {
            self.values.insert(argument.name.to_owned(), value);
        }
    }

    /// The first of these values that the question names.
    fn named_value(&mut self, values: &[&Value]) -> Option<Value> {
        let words = split(&self.question.rest);
        for value in values {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_lowercase);
            let clue = self.question.clues.iter().position(|clue| clue.text.to_lowercase() == text);
            if let Some(index) = clue {
                self.used.insert(index);
                return Some((*value).clone());
            }
            if !is_stop_word(&text) && words.contains(&text) {
                return Some((*value).clone());
            }
        }
        None
    }

    /// Whether the question has all words of an argument's name.
    fn says(&self, name: &str) -> bool {
        let words: Vec<String> = split(&self.question.rest).iter().map(|word| stem(word)).collect();
        let name = split(name);
        name.iter().any(|word| !is_stop_word(word)) && name.iter().all(|word| words.contains(&stem(word)))
    }

    /// One call, or one for each of several clues that fit the one argument equally well.
    fn several(self, required: &[&Argument<'_>], arguments: &[Argument<'_>]) -> Vec<Map<String, Value>> {
        let key = self.keys.first().filter(|_| required.len() <= 1 && (required.len() == 1 || self.keys.len() == 1));
        let Some((name, first, grade_of_first)) = key else { return vec![self.values] };
        let want = arguments.iter().find(|argument| argument.name == name).map(|argument| &argument.want);
        let (Some(want), Some(like)) = (want, self.question.clues.get(*first)) else { return vec![self.values] };
        let others = self.question.clues.iter().enumerate().filter(|(index, clue)| {
            !self.used.contains(index)
                && clue.is_quoted == like.is_quoted
                && (clue.shape == like.shape || clue.is_quoted)
                && grade(want, name, clue).is_some_and(|grade| grade.abs_diff(*grade_of_first) <= 2)
        });
        let values = others.filter_map(|(_, clue)| value_of(want, clue)).take(MOST_CALLS - 1);
        let mut calls = vec![self.values.clone()];
        for value in values {
            let mut values = self.values.clone();
            values.insert(name.clone(), value);
            if !calls.contains(&values) {
                calls.push(values);
            }
        }
        calls
    }
}

/// How well a clue fits, from 1; `None` where it does not.
fn grade(want: &Want<'_>, name: &str, clue: &Clue) -> Option<u8> {
    let by_shape = match want {
        Want::Integer | Want::Number => matches!(clue.shape, Shape::Number).then_some(CLEAR),
        Want::Text(hint) => text_grade(*hint, clue),
        Want::OneOf(_) | Want::Boolean | Want::List(_) | Want::Other => None,
    };
    let names = split(name).last().is_some_and(|last| stem(last) == stem(&clue.before)) || clue.before == name.to_lowercase();
    match (by_shape, names || clue.is_named) {
        (Some(grade), true) if names => Some(NAMED + grade),
        // A value that is named as something else is something else.
        (Some(_), true) => None,
        (None, true) if names && clue.is_named && matches!(want, Want::Text(_)) => Some(NAMED),
        (grade, _) => grade,
    }
}

fn text_grade(hint: Hint, clue: &Clue) -> Option<u8> {
    let place = if PLACE_WORDS.contains(&clue.before.as_str()) { 2 } else { 0 };
    match hint {
        Hint::Path => match clue.shape {
            Shape::Path => Some(EXACT + place),
            Shape::Zone => Some(3 + place),
            Shape::Text if clue.is_quoted => Some(4 + place),
            _ => None,
        },
        Hint::Url => (clue.shape == Shape::Url).then_some(EXACT),
        Hint::Zone => match clue.shape {
            Shape::Zone => Some(EXACT),
            Shape::Text if clue.is_quoted => Some(3),
            _ => None,
        },
        Hint::Time => match clue.shape {
            Shape::Time => Some(EXACT),
            Shape::Text | Shape::Number if clue.is_quoted => Some(3),
            _ => None,
        },
        Hint::Any => Some(match (clue.shape, clue.is_quoted) {
            (Shape::Text, true) => EXACT,
            (_, true) => 4,
            (Shape::Number, false) => 1,
            (_, false) => 3,
        }),
    }
}

fn value_of(want: &Want<'_>, clue: &Clue) -> Option<Value> {
    match want {
        Want::Text(_) => Some(Value::from(clue.text.as_str())),
        Want::Integer => number_of(&clue.text)?.parse::<i64>().ok().map(Value::from),
        Want::Number => {
            let number = number_of(&clue.text)?;
            let whole = number.parse::<i64>().ok().map(Number::from);
            whole.or_else(|| Number::from_f64(number.parse().ok()?)).map(Value::Number)
        }
        Want::OneOf(_) | Want::Boolean | Want::List(_) | Want::Other => None,
    }
}
