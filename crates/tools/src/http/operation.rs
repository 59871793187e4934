//! One operation of a description, made ready to be called: its tool, and where each argument goes.

use std::collections::HashSet;

use reqwest::Method;
use reqwest::header::HeaderName;
use serde_json::{Map, Value, json};
use turnwright_core::Declared;

use super::body::{self, Body};
use super::description::Document;
use super::fields::FieldPath;
use super::parameter::{self, Form, Parameter, Place, is_json};
use super::schema::Schemas;
use super::style::{Escaping, escaped};
use super::text::{free, plain_name, shortened};

/// The longest description of a tool, in characters.
const MAX_DESCRIPTION: usize = 1_500;
/// The longest name of an argument that every provider takes.
const MAX_ARGUMENT: usize = 64;
/// The most parameters of an operation.
const MAX_PARAMETERS: usize = 200;

/// An operation that can be called.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// The tool's name at its source: the operation's id, or its method and path, as letters, digits, `_` and `-`.
    pub name: String,
    /// A title for people.
    pub title: Option<String>,
    /// What it does, for models.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// What is declared of it: `GET` and `HEAD` change nothing, the operator says the rest.
    pub declared: Declared,
    pub(super) method: Method,
    pub(super) path: Vec<Part>,
    /// What its path holds of a query, escaped.
    pub(super) query: String,
    pub(super) inputs: Vec<Input>,
    pub(super) body: Option<Body>,
    /// A header that takes a key by which the API knows a repeated request.
    pub(super) idempotency: Option<HeaderName>,
    pub(super) accept: String,
    pub(super) fields: Vec<FieldPath>,
    /// Where it is below the API's base, where it says that itself.
    pub(super) server: Option<String>,
}

/// A piece of a path.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    /// Escaped already.
    Literal(String),
    /// The index of the input that fills it.
    Input(usize),
}

/// An argument that goes into the address, a header or a cookie.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Input {
    pub(super) argument: String,
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) form: Form,
    pub(super) required: bool,
}

/// What the configuration sends with every request; no argument takes its place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Filled {
    /// In small letters.
    pub(super) headers: HashSet<String>,
    pub(super) query: HashSet<String>,
}

/// An operation as it is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written<'d> {
    pub(super) id: Option<&'d str>,
    pub(super) method: &'d str,
    pub(super) path: &'d str,
    /// What holds for all operations of the path.
    pub(super) item: &'d Value,
    pub(super) value: &'d Value,
}

impl Operation {
    /// Reads an operation.
    ///
    /// Fails with the reason for which it cannot be used.
    pub(super) fn read<'d>(document: &'d Document, written: Written<'d>, name: &str, filled: &Filled) -> Result<Self, String> {
        let method = Method::from_bytes(written.method.as_bytes()).map_err(|_| "its method is none".to_owned())?;
        if method == Method::TRACE {
            return Err("a TRACE would answer with the authentication".to_owned());
        }
        let parameters = parameters(document, written)?;
        let idempotency = parameters.iter().find(|one| is_idempotency_key(one)).map(|one| one.name);
        let names: Vec<&str> = path_names(written.path)?;
        let shown: Vec<Parameter<'d>> = parameters.into_iter().filter(|one| is_argument(one, filled, &names)).collect();
        let mut schemas = Schemas::new(document);
        let mut properties = Map::new();
        let mut required = Vec::new();
        let mut inputs = Vec::with_capacity(shown.len());
        for (parameter, argument) in shown.iter().zip(argument_names(&shown)) {
            properties.insert(argument.clone(), property(parameter, &argument, &mut schemas));
            if parameter.required {
                required.push(Value::from(argument.as_str()));
            }
            let Parameter { name, place, form, required, .. } = *parameter;
            inputs.push(Input { argument, name: name.to_owned(), place, form, required });
        }
        let takes_body = !(document.is_first() && matches!(method, Method::GET | Method::HEAD));
        let written_body = written.value.get("requestBody").filter(|_| takes_body);
        let body = body::read(document, written_body, &mut schemas)?;
        let body = body.map(|(body, schema)| {
            let argument = free("body", |name| properties.contains_key(name));
            if body.required {
                required.push(argument.as_str().into());
            }
            properties.insert(argument.clone(), schema);
            body.called(argument)
        });
        let (path, query) = path(written.path, &inputs)?;
        let mut root = Map::new();
        root.insert("type".to_owned(), "object".into());
        root.insert("properties".to_owned(), Value::Object(properties));
        if !required.is_empty() {
            root.insert("required".to_owned(), Value::Array(required));
        }
        root.insert("additionalProperties".to_owned(), false.into());
        Ok(Self {
            name: name.to_owned(),
            title: text(written, "summary").map(|text| shortened(text, 120)).filter(|text| !text.is_empty()),
            description: description(written),
            input_schema: schemas.finish(root),
            declared: Declared { read_only: matches!(method, Method::GET | Method::HEAD), ..Declared::default() },
            accept: accept(document, written.value),
            method,
            path,
            query,
            inputs,
            body,
            idempotency: idempotency.and_then(|name| HeaderName::from_bytes(name.as_bytes()).ok()),
            fields: Vec::new(),
            server: server(written),
        })
    }

    /// Whether it changes something, as HTTP has it and whatever is declared: what came of it may not be known.
    pub(super) fn may_change(&self) -> bool {
        !(self.declared.read_only || matches!(self.method, Method::GET | Method::HEAD | Method::OPTIONS))
    }

    /// The argument that fills a parameter of the query.
    pub(super) fn query_argument(&self, name: &str) -> Option<&str> {
        self.inputs.iter().find(|input| input.place == Place::Query && input.name == name).map(|input| input.argument.as_str())
    }
}

/// The parameters of the path and of the operation, which replaces those of the same name and place.
fn parameters<'d>(document: &'d Document, written: Written<'d>) -> Result<Vec<Parameter<'d>>, String> {
    let mut found: Vec<Parameter<'d>> = Vec::new();
    for list in [written.item.get("parameters"), written.value.get("parameters")] {
        for value in list.and_then(Value::as_array).into_iter().flatten() {
            let Some(parameter) = parameter::read(document, value)? else { continue };
            match found.iter_mut().find(|known| known.name == parameter.name && known.place == parameter.place) {
                Some(known) => *known = parameter,
                None => found.push(parameter),
            }
            if found.len() > MAX_PARAMETERS {
                return Err(format!("it has more than {MAX_PARAMETERS} parameters"));
            }
        }
    }
    Ok(found)
}

fn is_idempotency_key(parameter: &Parameter<'_>) -> bool {
    parameter.place == Place::Header && parameter.name.eq_ignore_ascii_case("idempotency-key")
}

/// Whether a model fills it.
fn is_argument(parameter: &Parameter<'_>, filled: &Filled, path: &[&str]) -> bool {
    match parameter.place {
        Place::Path => path.contains(&parameter.name),
        Place::Query => !filled.query.contains(parameter.name),
        Place::Header => !is_idempotency_key(parameter) && !filled.headers.contains(&parameter.name.to_ascii_lowercase()),
        // The configuration's own cookies are a header as a whole.
        Place::Cookie => !filled.headers.contains("cookie"),
    }
}

/// A name for each argument: that of its parameter, with its place where two are called the same.
fn argument_names(parameters: &[Parameter<'_>]) -> Vec<String> {
    let plain: Vec<String> = parameters.iter().map(|one| plain_name(one.name, true, MAX_ARGUMENT - 16)).collect();
    let mut names: Vec<String> = Vec::with_capacity(parameters.len());
    for (parameter, name) in parameters.iter().zip(&plain) {
        let is_shared = plain.iter().filter(|other| *other == name).count() > 1;
        let name = if is_shared { format!("{}_{name}", parameter.place.as_str()) } else { name.clone() };
        let name = free(&name, |name| names.iter().any(|known| known == name));
        names.push(name);
    }
    names
}

fn property<'d>(parameter: &Parameter<'d>, argument: &str, schemas: &mut Schemas<'d>) -> Value {
    let mut schema = parameter.schema.map_or_else(|| json!({}), |schema| schemas.add(schema));
    let Some(object) = schema.as_object_mut() else { return schema };
    if let Some(text) = parameter.description {
        object.insert("description".to_owned(), shortened(text, 400).into());
    }
    if argument != parameter.name {
        let told = object.get("description").and_then(Value::as_str).unwrap_or_default();
        let told = format!("`{}` of the {}. {told}", shortened(parameter.name, 60), parameter.place.as_str());
        object.insert("description".to_owned(), told.trim_end().into());
    }
    if parameter.is_deprecated {
        object.insert("deprecated".to_owned(), true.into());
    }
    schema
}

/// The names within the braces of a path.
fn path_names(path: &str) -> Result<Vec<&str>, String> {
    let mut names = Vec::new();
    let mut rest = path;
    while let Some((_, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').ok_or("a brace of its path is not closed")?;
        names.push(name);
        rest = after;
    }
    Ok(names)
}

/// The path, and what is written behind it for a query, as some descriptions do to tell operations apart. A fragment is never sent.
fn path(path: &str, inputs: &[Input]) -> Result<(Vec<Part>, String), String> {
    let path = path.split('#').next().unwrap_or_default();
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    if query.contains('{') {
        return Err("its path holds a query that is to be filled".to_owned());
    }
    let Some(first) = path.strip_prefix('/') else { return Err("its path does not begin with `/`".to_owned()) };
    let mut parts = vec![Part::Literal("/".to_owned())];
    let mut rest = first;
    while let Some((before, after)) = rest.split_once('{') {
        parts.push(Part::Literal(literal(before)));
        let (name, after) = after.split_once('}').ok_or("a brace of its path is not closed")?;
        let index = inputs.iter().position(|input| input.place == Place::Path && input.name == name);
        let shown: String = name.chars().take(60).collect();
        parts.push(Part::Input(index.ok_or_else(|| format!("no parameter fills `{{{shown}}}` of its path"))?));
        rest = after;
    }
    parts.push(Part::Literal(literal(rest)));
    let is_dotted =
        |part: &Part| matches!(part, Part::Literal(text) if text.split('/').any(|segment| matches!(segment, "." | "..")));
    // What is only dotted because of its neighbours is seen where the path is filled.
    if parts.len() == 2 && parts.iter().any(is_dotted) {
        return Err("its path holds `.` or `..`".to_owned());
    }
    Ok((parts, literal(query)))
}

/// A piece of a path as it stands, with what cannot stand there escaped.
fn literal(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    for letter in text.chars() {
        // What RFC 3986 allows in a path, and what is escaped already.
        if letter.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@/%".contains(letter) {
            made.push(letter);
        } else {
            made.push_str(&escaped(letter.encode_utf8(&mut [0; 4]), Escaping::Strict));
        }
    }
    made
}

fn text<'d>(written: Written<'d>, key: &str) -> Option<&'d str> {
    let of = |value: &'d Value| value.get(key).and_then(Value::as_str);
    of(written.value).or_else(|| of(written.item))
}

fn description(written: Written<'_>) -> String {
    let (summary, description) =
        (text(written, "summary").unwrap_or_default(), text(written, "description").unwrap_or_default());
    let (summary, description) = (shortened(summary, 300), shortened(description, MAX_DESCRIPTION));
    let mut told =
        if description.starts_with(summary.trim_end_matches('.')) { description } else { joined(&summary, &description) };
    if written.value.get("deprecated") == Some(&Value::Bool(true)) {
        told = joined("Deprecated.", &told);
    }
    joined(&told, &format!("({} {})", written.method, shortened(written.path, 200)))
}

fn joined(first: &str, second: &str) -> String {
    match (first, second) {
        ("", only) | (only, "") => only.to_owned(),
        (first, second) if first.ends_with(['.', '!', '?', '…', ':']) => format!("{first} {second}"),
        (first, second) => format!("{first}. {second}"),
    }
}

/// What is asked for: JSON where the operation gives it.
fn accept(document: &Document, value: &Value) -> String {
    let responses = value.get("responses").and_then(Value::as_object).into_iter().flatten();
    let successes = responses.filter(|(status, _)| status.starts_with('2') || *status == "default");
    let contents = successes.filter_map(|(_, response)| document.resolved(response).ok()?.get("content")?.as_object());
    let types: Vec<&String> = contents.flat_map(|content| content.keys()).take(20).collect();
    let chosen = types.iter().find(|name| is_json(name)).or(types.first());
    let plain = |text: &&&String| text.len() < 100 && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    match chosen.filter(plain) {
        Some(chosen) if chosen.as_str() != "*/*" => format!("{chosen}, */*;q=0.5"),
        Some(_) | None => "application/json, */*;q=0.5".to_owned(),
    }
}

/// The server of the operation or of its path, where it is not that of the whole description.
fn server(written: Written<'_>) -> Option<String> {
    let of = |value: &Value| value.get("servers").and_then(Value::as_array).and_then(|servers| servers.first()).cloned();
    of(written.value).or_else(|| of(written.item)).as_ref().and_then(super::server::address)
}
