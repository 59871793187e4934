//! From arguments to a request: a decision of values.

use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use url::Url;

use super::operation::{Input, Operation, Part};
use super::parameter::{Form, Place};
use super::style::{Escaping, Style, Way, escaped, plain};

/// A request without what is secret.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpRequest {
    /// The method.
    pub method: Method,
    /// Where it goes.
    pub url: Url,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Option<Vec<u8>>,
}

impl Operation {
    /// The request of a call below `base`; `key` is the same for every attempt at it.
    ///
    /// # Errors
    /// Which argument cannot be placed, in words for a model.
    pub fn request(&self, base: &Url, arguments: &Map<String, Value>, key: &str) -> Result<HttpRequest, String> {
        let given = |input: &Input| arguments.get(&input.argument).filter(|value| !value.is_null());
        let mut url = base.clone();
        let path = base.path().trim_end_matches('/').to_owned() + &self.path(&given)?;
        url.set_path(&path);
        // It is written so that reading it changes nothing: what an argument holds leads nowhere else.
        if url.path() != path {
            return Err("an argument cannot stand in the path of the request".to_owned());
        }
        url.set_fragment(None);
        let (mut query, mut cookies) = (base.query().unwrap_or_default().to_owned(), String::new());
        if !self.query.is_empty() {
            query = if query.is_empty() { self.query.clone() } else { format!("{query}&{}", self.query) };
        }
        let mut headers = HeaderMap::new();
        for input in &self.inputs {
            let Some(value) = given(input) else {
                if input.required {
                    return Err(format!("`{}` is missing", input.argument));
                }
                continue;
            };
            match input.place {
                Place::Path => {}
                Place::Query => push(&mut query, input, value, "&"),
                Place::Cookie => push(&mut cookies, input, value, "; "),
                Place::Header => {
                    let (name, value) = header(input, value)?;
                    headers.insert(name, value);
                }
            }
        }
        url.set_query(Some(query.as_str()).filter(|query| !query.is_empty()));
        if let Ok(value) = HeaderValue::from_str(&self.accept) {
            headers.insert(ACCEPT, value);
        }
        if let Some(value) = HeaderValue::from_str(&cookies).ok().filter(|value| !value.is_empty()) {
            headers.insert(COOKIE, value);
        }
        if let (Some(name), Ok(value)) = (&self.idempotency, HeaderValue::from_str(key)) {
            headers.insert(name.clone(), value);
        }
        let body = self.body(arguments, key, &mut headers)?;
        Ok(HttpRequest { method: self.method.clone(), url, headers, body })
    }

    fn body(&self, arguments: &Map<String, Value>, key: &str, headers: &mut HeaderMap) -> Result<Option<Vec<u8>>, String> {
        let Some(body) = &self.body else { return Ok(None) };
        let Some(value) = arguments.get(&body.argument) else {
            return if body.required { Err(format!("`{}` is missing", body.argument)) } else { Ok(None) };
        };
        let (media_type, bytes) = body.written(value, key)?;
        let media_type =
            HeaderValue::from_str(&media_type).map_err(|_| "the media type of the body cannot be sent".to_owned())?;
        headers.insert(CONTENT_TYPE, media_type);
        Ok(Some(bytes))
    }

    fn path<'v>(&self, given: &impl Fn(&Input) -> Option<&'v Value>) -> Result<String, String> {
        let mut path = String::new();
        for part in &self.path {
            let index = match part {
                Part::Literal(text) => {
                    path.push_str(text);
                    continue;
                }
                Part::Input(index) => *index,
            };
            let Some(input) = self.inputs.get(index) else { continue };
            let value = given(input).ok_or_else(|| format!("`{}` is missing", input.argument))?;
            let text = match input.form {
                Form::Styled(way) => way.text(&input.name, value),
                Form::Json => escaped(&value.to_string(), Escaping::Strict),
                Form::Plain => escaped(&plain(value), Escaping::Strict),
            };
            if text.is_empty() {
                // Another operation may be where a part of the path is missing.
                return Err(format!("`{}` must not be empty", input.argument));
            }
            path.push_str(&text);
        }
        let is_dots = |segment: &str| matches!(segment.replace("%2e", ".").replace("%2E", ".").as_str(), "." | "..");
        if path.split('/').any(is_dots) {
            return Err("no part of the path may be `.` or `..`".to_owned());
        }
        Ok(path)
    }
}

fn push(text: &mut String, input: &Input, value: &Value, between: &str) {
    let pairs = match input.form {
        Form::Styled(way) => way.pairs(&input.name, value),
        Form::Json => vec![(escaped(&input.name, Escaping::Strict), escaped(&value.to_string(), Escaping::Strict))],
        Form::Plain => vec![(escaped(&input.name, Escaping::Strict), escaped(&plain(value), Escaping::Strict))],
    };
    for (name, value) in pairs {
        if !text.is_empty() {
            text.push_str(between);
        }
        text.push_str(&name);
        text.push('=');
        text.push_str(&value);
    }
}

fn header(input: &Input, value: &Value) -> Result<(HeaderName, HeaderValue), String> {
    let text = match input.form {
        Form::Styled(way) => way.text(&input.name, value),
        Form::Json => value.to_string(),
        Form::Plain => Way { style: Style::Simple, explode: false, escaping: Escaping::None }.text(&input.name, value),
    };
    let cannot =
        || format!("`{}` holds a line break or another control character, which a header cannot carry", input.argument);
    let name = HeaderName::from_bytes(input.name.as_bytes()).map_err(|_| cannot())?;
    Ok((name, HeaderValue::from_bytes(text.as_bytes()).map_err(|_| cannot())?))
}
