//! The expansions of other programs' files, in one pass: what is known when a file is imported is put in, and what may be a
//! secret or differ from one start to the next stays a reference, `${VAR}`, as this program's own configuration has them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Something that a file asks a person for: `inputs` of VS Code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportedInput {
    /// Its name in `${input:ID}`.
    pub id: String,
    /// What the person is asked.
    pub description: Option<String>,
    /// Whether it is a secret.
    pub is_password: bool,
    /// What it is where nobody says otherwise.
    pub default: Option<String>,
    /// What it may be, where that is said.
    pub options: Vec<String>,
}

/// Which expansions a file knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expansions {
    /// None: what looks like one is a text.
    None,
    /// All.
    All,
}

/// What is known when a file is imported.
#[derive(Debug, Clone)]
pub struct Known<'a> {
    /// Which expansions its file knows.
    pub expansions: Expansions,
    /// The folder of the project that the file belongs to.
    pub workspace: PathBuf,
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// The names of the variables that are set.
    pub variables: BTreeSet<&'a str>,
    /// What the file asks for.
    pub inputs: &'a [ImportedInput],
    /// What the person answered.
    pub answers: &'a BTreeMap<String, String>,
}

/// A text in our own form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Translated {
    /// With references as `${VAR}` and `${VAR:-default}`; `$${` is a literal `${`.
    pub text: String,
    /// What the person should know.
    pub words: Vec<String>,
}

/// Why a text cannot be taken over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TranslateError {
    /// A variable without default is not set.
    #[error("the variable {0} is not set")]
    Unset(String),
    /// Something that the file asks for was not said.
    #[error("the input `{id}` is not given{}", about.as_ref().map(|about| format!(" ({about})")).unwrap_or_default())]
    NoInput {
        /// Its name.
        id: String,
        /// What the person is asked.
        about: Option<String>,
    },
    /// A password was given where it would be stored.
    #[error("the input `{id}` is a password and is not stored: set the variable {variable} instead of giving it")]
    Password {
        /// Its name.
        id: String,
        /// The variable that it is a reference to.
        variable: String,
    },
    /// An answer is not among the options.
    #[error("the input `{id}` must be one of: {options}")]
    NotAnOption {
        /// Its name.
        id: String,
        /// What it may be.
        options: String,
    },
    /// The file asks for something that it does not describe.
    #[error("the file does not say what the input `{0}` is")]
    UnknownInput(String),
    /// A `${` that is not known.
    #[error("`${{{0}}}` is no expansion that is known")]
    Unknown(String),
    /// A `${` without its `}`.
    #[error("`${{` has no `}}`")]
    NotClosed,
    /// There is no home directory.
    #[error("`${{userHome}}` is not known: the variable HOME is not set")]
    NoHome,
}

/// Translates a text. Left to right, once: what was put in is not looked at again.
///
/// # Errors
/// The first thing that cannot be taken over.
pub fn translate(text: &str, known: &Known<'_>) -> Result<Translated, TranslateError> {
    let mut translated = Translated::default();
    if known.expansions == Expansions::None {
        if text.contains("${") {
            translated.words.push(format!("`{text}` is taken as it is: its program puts nothing into it"));
        }
        translated.text = text.replace("${", "$${");
        return Ok(translated);
    }
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        translated.plain(before);
        if before.ends_with('$') {
            // Already a literal.
            translated.text.push_str("${");
            rest = after;
            continue;
        }
        let (inside, after) = after.split_once('}').ok_or(TranslateError::NotClosed)?;
        let expanded = expand(inside, known, &mut translated.words)?;
        translated.text.push_str(&expanded);
        rest = after;
    }
    translated.plain(rest);
    Ok(translated)
}

/// The variable that stands for a password that a file asks for.
pub fn variable_of(id: &str) -> String {
    let plain: String = id.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    if plain.starts_with(|c: char| c.is_ascii_digit()) { format!("_{plain}") } else { plain }
}

impl Translated {
    /// A piece without `${`.
    fn plain(&mut self, piece: &str) {
        let words = piece.split(|c: char| !(c.is_ascii_alphanumeric() || "$%_{}:".contains(c)));
        for word in words.filter(|word| looks_like_a_variable(word)) {
            self.words.push(format!("`{word}` stays as it is: only `${{VAR}}` is put in"));
        }
        self.text.push_str(piece);
    }
}

/// `$VAR`, `%VAR%` and `{env:VAR}`, which some programs know.
fn looks_like_a_variable(word: &str) -> bool {
    let is_name = |name: &str| name.len() > 1 && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    word.strip_prefix('$').is_some_and(is_name)
        || word.strip_prefix('%').and_then(|word| word.strip_suffix('%')).is_some_and(is_name)
        || (word.starts_with("{env:") && word.ends_with('}'))
}

fn expand(inside: &str, known: &Known<'_>, words: &mut Vec<String>) -> Result<String, TranslateError> {
    let path = |path: &std::path::Path| path.to_string_lossy().replace("${", "$${");
    match inside {
        "userHome" => return known.home.as_deref().map(path).ok_or(TranslateError::NoHome),
        "workspaceFolder" | "workspaceRoot" => return Ok(path(&known.workspace)),
        "workspaceFolderBasename" => {
            return Ok(known.workspace.file_name().map(|name| path(name.as_ref())).unwrap_or_default());
        }
        "pathSeparator" | "/" => return Ok(std::path::MAIN_SEPARATOR.to_string()),
        _ => {}
    }
    if let Some(id) = inside.strip_prefix("input:") {
        return input(id, known, words);
    }
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let name = name.strip_prefix("env:").unwrap_or(name);
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match default {
        _ if !is_name => Err(TranslateError::Unknown(inside.to_owned())),
        Some(default) => Ok(format!("${{{name}:-{default}}}")),
        None if known.variables.contains(name) => Ok(format!("${{{name}}}")),
        None => Err(TranslateError::Unset(name.to_owned())),
    }
}

fn input(id: &str, known: &Known<'_>, words: &mut Vec<String>) -> Result<String, TranslateError> {
    let id = id.to_owned();
    let Some(input) = known.inputs.iter().find(|input| input.id == id) else { return Err(TranslateError::UnknownInput(id)) };
    let answer = known.answers.get(&id);
    if input.is_password {
        let variable = variable_of(&id);
        if answer.is_some() {
            return Err(TranslateError::Password { id, variable });
        }
        let is_set = if known.variables.contains(variable.as_str()) {
            "which is set"
        } else {
            "which must be set before the server is added"
        };
        words.push(format!("the password `{id}` is taken from the variable {variable}, {is_set}"));
        return Ok(format!("${{{variable}}}"));
    }
    let Some(value) = answer.or(input.default.as_ref()) else {
        return Err(TranslateError::NoInput { id, about: input.description.clone() });
    };
    if !input.options.is_empty() && !input.options.contains(value) {
        return Err(TranslateError::NotAnOption { id, options: input.options.join(", ") });
    }
    Ok(value.replace("${", "$${"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(text: &str, expansions: Expansions) -> Result<Translated, TranslateError> {
        let inputs = [
            ImportedInput { id: "api-key".into(), is_password: true, ..ImportedInput::default() },
            ImportedInput { id: "region".into(), description: Some("Which region".into()), ..ImportedInput::default() },
            ImportedInput {
                id: "size".into(),
                default: Some("small".into()),
                options: vec!["small".into(), "large".into()],
                ..ImportedInput::default()
            },
            ImportedInput { id: "odd".into(), default: Some("${HOME}".into()), ..ImportedInput::default() },
        ];
        let known = Known {
            expansions,
            workspace: "/srv/my project".into(),
            home: Some("/home/me".into()),
            variables: BTreeSet::from(["SET"]),
            inputs: &inputs,
            answers: &BTreeMap::new(),
        };
        translate(text, &known)
    }

    #[test]
    fn every_expansion_is_put_in_or_stays_a_reference() {
        for (text, expected) in [
            ("plain", "plain"),
            ("${SET} and ${env:SET}", "${SET} and ${SET}"),
            ("${UNSET:-a b}${env:UNSET:-}", "${UNSET:-a b}${UNSET:-}"),
            ("${userHome}/x", "/home/me/x"),
            ("${workspaceFolder}${/}${workspaceFolderBasename}${pathSeparator}", "/srv/my project/my project/"),
            ("${input:size}", "small"),
            ("${input:odd}", "$${HOME}"),
            ("$${SET}", "$${SET}"),
        ] {
            let expected = Translated { text: expected.into(), words: Vec::new() };
            assert_eq!(translated(text, Expansions::All), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_not_known_is_refused_by_its_name() {
        use TranslateError as E;
        for (text, error) in [
            ("${UNSET}", E::Unset("UNSET".into())),
            ("${env:UNSET}", E::Unset("UNSET".into())),
            ("${input:region}", E::NoInput { id: "region".into(), about: Some("Which region".into()) }),
            ("${input:nobody}", E::UnknownInput("nobody".into())),
            ("${command:x}", E::Unknown("command:x".into())),
            ("${SET", E::NotClosed),
        ] {
            assert_eq!(translated(text, Expansions::All), Err(error), "{text}");
        }
        let error = translated("${input:region}", Expansions::All).unwrap_err().to_string();
        assert_eq!(error, "the input `region` is not given (Which region)");
    }

    #[test]
    fn a_password_stays_a_reference_and_the_person_is_told() {
        let words = "the password `api-key` is taken from the variable API_KEY, which must be set before the server is added";
        let expected = Translated { text: "Bearer ${API_KEY}".into(), words: vec![words.into()] };
        assert_eq!(translated("Bearer ${input:api-key}", Expansions::All), Ok(expected));
    }

    #[test]
    fn what_other_programs_would_put_in_stays_and_the_person_is_told() {
        let told = translated("a $HOME b %USER% {env:X} $5 100%", Expansions::All).unwrap();
        assert_eq!(told.text, "a $HOME b %USER% {env:X} $5 100%");
        assert_eq!(told.words.len(), 3, "{told:?}");
        let literal = translated("${SET}", Expansions::None).unwrap();
        assert_eq!((literal.text.as_str(), literal.words.len()), ("$${SET}", 1));
    }
}
