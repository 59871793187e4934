//! Variables in strings: `${VAR}` and `${VAR:-default}`.
//!
//! One pass from left to right: neither a value nor a default is looked at again. `$${` is a literal `${`. Besides
//! variables there are the names that other hosts' files use: `${env:VAR}`, `${userHome}`, `${workspaceFolder}` (the
//! working directory), `${workspaceFolderBasename}`, `${pathSeparator}` and `${/}`. `${file:PATH}` and `${keyring:SERVICE/NAME}`
//! are secrets that are kept elsewhere.

use turnwright_core::nearest;

use crate::Environment;

/// A string after its variables were put in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expanded {
    /// The string.
    pub text: String,
    /// Whether something was put in: then it may hold what is not to be shown.
    pub has_variables: bool,
}

/// Why a string cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    /// A variable without default is not set.
    #[error("the variable {variable} is not set{}; set it, or give a default: `${{{variable}:-default}}`", match similar {
        Some(name) => format!(" (did you mean {name}, which is?)"),
        None => String::new(),
    })]
    Missing {
        /// Its name.
        variable: String,
        /// A variable that is set and has nearly this name.
        similar: Option<String>,
    },
    /// A `${` without its `}`.
    #[error("`${{` has no `}}`; close it, or write `$${{` for a literal `${{`")]
    NotClosed,
    /// A file or a keyring does not have it.
    #[error("{what}")]
    Unavailable {
        /// What is not there, and why.
        what: String,
    },
    /// Nothing of this machine may stand there.
    #[error("what this machine has is its own, and not put into a member's server")]
    Closed,
    /// What is in the braces is no name.
    #[error("`${{{0}}}` names no variable; write `${{VAR}}` or `${{VAR:-default}}`, or `$${{` for a literal `${{`")]
    NotAName(String),
}

/// Puts variables into `text`.
///
/// # Errors
/// The first one that cannot be put in.
pub fn expand(text: &str, environment: &Environment) -> Result<Expanded, ExpandError> {
    let mut result = Expanded { text: String::with_capacity(text.len()), has_variables: false };
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            result.text.push_str(before);
            result.text.push_str("${");
            rest = after;
            continue;
        }
        let (inside, after) = after.split_once('}').ok_or(ExpandError::NotClosed)?;
        result.text.push_str(before);
        result.text.push_str(&value(inside, environment)?);
        result.has_variables = true;
        rest = after;
    }
    result.text.push_str(rest);
    Ok(result)
}

fn value(inside: &str, environment: &Environment) -> Result<String, ExpandError> {
    if environment.is_closed() {
        return Err(ExpandError::Closed);
    }
    let folder = environment.working_directory();
    match inside {
        "userHome" => {
            let home = environment.home().ok_or_else(|| ExpandError::Missing { variable: "HOME".to_owned(), similar: None })?;
            return Ok(home.to_string_lossy().into_owned());
        }
        "workspaceFolder" => return Ok(folder.to_string_lossy().into_owned()),
        "workspaceFolderBasename" => {
            return Ok(folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default());
        }
        "pathSeparator" | "/" => return Ok(std::path::MAIN_SEPARATOR.to_string()),
        _ => {}
    }
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    if let Some(kept) = kept(name, environment) {
        return match (kept, default) {
            (Ok(value), _) => Ok(value),
            (Err(_), Some(default)) => Ok(default.to_owned()),
            (Err(what), None) => Err(ExpandError::Unavailable { what }),
        };
    }
    let name = name.strip_prefix("env:").unwrap_or(name);
    if !is_name(name) {
        return Err(ExpandError::NotAName(inside.to_owned()));
    }
    match (environment.get(name), default) {
        (Some("") | None, Some(default)) => Ok(default.to_owned()),
        (Some(value), _) => Ok(value.to_owned()),
        (None, None) => Err(ExpandError::Missing {
            variable: name.to_owned(),
            similar: nearest(name, environment.names()).map(str::to_owned),
        }),
    }
}

/// A secret of a file or of the system's keyring; nothing where the name says neither.
fn kept(name: &str, environment: &Environment) -> Option<Result<String, String>> {
    if let Some(path) = name.strip_prefix("file:") {
        return Some(environment.secret_file(path));
    }
    let entry = name.strip_prefix("keyring:")?;
    Some(match entry.split_once('/') {
        Some((service, name)) if !service.is_empty() && !name.is_empty() => environment.keyring(service, name),
        Some(_) | None => Err(format!("`${{keyring:{entry}}}` names nothing in a keyring; write `${{keyring:SERVICE/NAME}}`")),
    })
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
