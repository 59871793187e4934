//! From the text of a description to the operations that are wanted of it.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use turnwright_core::Declared;

use super::description::{DescriptionError, Document};
use super::fields::FieldPath;
use super::globs::{Names, OperationGlob};
use super::operation::{Filled, Operation, Written};
use super::server;
use super::text::plain_name;

/// The most operations of one API that are offered.
const MAX_OPERATIONS: usize = 1_000;
/// The most operations of a description that are looked at.
const MAX_WRITTEN: usize = 50_000;
/// The longest name of a tool at its source.
const MAX_NAME: usize = 60;

const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/// What is wanted of a description.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Choice {
    /// Which operations are offered; all where there is none.
    pub operations: Vec<OperationGlob>,
    /// Which of them are not.
    pub except: Vec<OperationGlob>,
    /// What the operator declares of operations; the later of two wins.
    pub declared: Vec<(OperationGlob, Declaration)>,
    /// What is left of the answers of operations.
    pub fields: Vec<(OperationGlob, Vec<FieldPath>)>,
}

/// What an operator declares of operations, where they say it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Declaration {
    /// Whether they change nothing.
    pub read_only: Option<bool>,
    /// Whether running one twice is the same as running it once.
    pub replayable: Option<bool>,
    /// Whether their calls run one after another.
    pub serial: Option<bool>,
    /// Whether they are asked again and again for how far something is: their calls are no loop.
    pub polled: Option<bool>,
}

/// An operation, or a word of the configuration, that comes to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The operation's id, or its method and path; empty where it is not about one.
    pub operation: String,
    /// Why, for people.
    pub reason: String,
}

/// What came of a description.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The operations, in the order of the description.
    pub operations: Vec<Operation>,
    /// What cannot be offered.
    pub left_out: Vec<LeftOut>,
    /// The address of the first server, as the description says it.
    pub server: Option<String>,
    /// How the API calls itself.
    pub title: Option<String>,
}

/// The operations of a description that are wanted.
///
/// # Errors
/// [`DescriptionError`], where the text is none. An operation that cannot be used is left out and the rest is not.
pub fn import(bytes: &[u8], choice: &Choice) -> Result<Imported, DescriptionError> {
    import_beside(bytes, choice, &Filled::default())
}

/// The same, beside what the configuration sends with every request.
pub(super) fn import_beside(bytes: &[u8], choice: &Choice, filled: &Filled) -> Result<Imported, DescriptionError> {
    let document = Document::read(bytes)?;
    let (written, mut left_out) = written(&document)?;
    let names = names(&written);
    let called = |index: usize| {
        let operation = written.get(index)?;
        let tool = names.get(index)?.as_str();
        Some(Names { id: operation.id, tool, method: operation.method, path: operation.path })
    };
    let is_wanted = |names: Names<'_>| {
        let among = |globs: &[OperationGlob]| globs.iter().any(|glob| glob.fits(names));
        (choice.operations.is_empty() || among(&choice.operations)) && !among(&choice.except)
    };
    let all: Vec<Names<'_>> = (0..written.len()).filter_map(called).collect();
    left_out.extend(idle(choice, &all));
    let server = document.root().get("servers").and_then(Value::as_array).and_then(|all| all.first()).and_then(server::address);
    let mut operations = Vec::new();
    let mut too_many = 0_usize;
    for (written, names) in written.iter().zip(&all).filter(|(_, names)| is_wanted(**names)) {
        if operations.len() == MAX_OPERATIONS {
            too_many += 1;
            continue;
        }
        match Operation::read(&document, *written, names.tool, filled) {
            Ok(mut operation) => {
                choose(choice, *names, &mut operation);
                operation.server.take_if(|own| Some(&*own) == server.as_ref());
                operations.push(operation);
            }
            Err(reason) => left_out.push(LeftOut { operation: shown(*names), reason }),
        }
    }
    if too_many > 0 {
        let reason = format!(
            "{too_many} more operations than the {MAX_OPERATIONS} that can be offered; `operations` names those that are wanted"
        );
        left_out.push(LeftOut { operation: String::new(), reason });
    }
    let title = document.root().pointer("/info/title").and_then(Value::as_str).map(|title| super::text::shortened(title, 100));
    Ok(Imported { operations, left_out, server, title })
}

/// All operations, and paths that lead to none.
fn written(document: &Document) -> Result<(Vec<Written<'_>>, Vec<LeftOut>), DescriptionError> {
    let paths = document.root().get("paths").and_then(Value::as_object).ok_or(DescriptionError::NoPaths)?;
    let (mut found, mut left_out) = (Vec::new(), Vec::new());
    for (path, item) in paths.iter().filter(|(path, _)| !path.starts_with("x-")) {
        let item = match document.resolved(item) {
            Ok(item) => item,
            Err(broken) => {
                let operation = path.chars().take(200).collect();
                left_out.push(LeftOut { operation, reason: broken.to_string() });
                continue;
            }
        };
        for method in METHODS {
            let Some(value) = item.get(method).filter(|value| value.is_object()) else { continue };
            let id = value.get("operationId").and_then(Value::as_str).filter(|id| !id.trim().is_empty());
            found.push(Written { id, method: upper(method), path, item, value });
        }
        if found.len() > MAX_WRITTEN {
            break;
        }
    }
    if found.is_empty() && left_out.is_empty() {
        return Err(DescriptionError::NoPaths);
    }
    Ok((found, left_out))
}

fn upper(method: &str) -> &'static str {
    match method {
        "get" => "GET",
        "put" => "PUT",
        "post" => "POST",
        "delete" => "DELETE",
        "options" => "OPTIONS",
        "head" => "HEAD",
        "patch" => "PATCH",
        _ => "TRACE",
    }
}

/// A name for each operation, none twice; not dependent on which are wanted.
fn names(written: &[Written<'_>]) -> Vec<String> {
    let mut taken: HashSet<String> = HashSet::new();
    let mut numbers: HashMap<String, u32> = HashMap::new();
    let mut names = Vec::with_capacity(written.len());
    for operation in written {
        let own = operation.id.map(|id| plain_name(id, false, MAX_NAME)).filter(|name| name != "value");
        let place = || plain_name(&format!("{} {}", operation.method.to_ascii_lowercase(), operation.path), false, MAX_NAME);
        let plain = own.unwrap_or_else(place);
        let mut name = plain.clone();
        while !taken.insert(name.clone()) {
            let number = numbers.entry(plain.clone()).or_insert(1);
            *number += 1;
            name = format!("{plain}_{number}");
        }
        names.push(name);
    }
    names
}

/// What the configuration says of an operation.
fn choose(choice: &Choice, names: Names<'_>, operation: &mut Operation) {
    for (_, said) in choice.declared.iter().filter(|(glob, _)| glob.fits(names)) {
        let Declared { read_only, replayable, serial, polled } = &mut operation.declared;
        *read_only = said.read_only.unwrap_or(*read_only);
        *replayable = said.replayable.unwrap_or(*replayable);
        *serial = said.serial.unwrap_or(*serial);
        *polled = said.polled.unwrap_or(*polled);
    }
    let fields = choice.fields.iter().filter(|(glob, _)| glob.fits(names)).flat_map(|(_, fields)| fields);
    operation.fields = fields.cloned().collect();
    if !operation.fields.is_empty() {
        let paths: Vec<&str> = operation.fields.iter().map(FieldPath::text).collect();
        operation.description = format!("{} Of the answer you are given: {}.", operation.description, paths.join(", "));
    }
}

/// Globs that fit no operation: most likely a slip.
fn idle(choice: &Choice, all: &[Names<'_>]) -> Vec<LeftOut> {
    let lists = [
        ("operations", choice.operations.iter().collect::<Vec<_>>()),
        ("except", choice.except.iter().collect()),
        ("tools", choice.declared.iter().map(|(glob, _)| glob).collect()),
        ("fields", choice.fields.iter().map(|(glob, _)| glob).collect()),
    ];
    let mut found = Vec::new();
    for (key, globs) in lists {
        for glob in globs.into_iter().filter(|glob| !all.iter().any(|names| glob.fits(*names))) {
            let near = nearest(glob.text(), all).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            let reason = format!("`{key}` names `{}`, which no operation fits{near}", glob.text());
            found.push(LeftOut { operation: String::new(), reason });
        }
    }
    found
}

fn nearest<'n>(text: &str, all: &[Names<'n>]) -> Option<&'n str> {
    let limit = (text.chars().count() / 3).max(1);
    let names = all.iter().map(|names| names.id.unwrap_or(names.tool)).filter(|name| name.len() <= text.len() + limit);
    names
        .map(|name| (strsim::osa_distance(text, name), name))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, name)| name)
}

fn shown(names: Names<'_>) -> String {
    names.id.map_or_else(|| format!("{} {}", names.method, names.path), str::to_owned).chars().take(200).collect()
}

#[cfg(test)]
mod tests;
