//! Values as text of a request: the styles of OpenAPI 3.1, section 4.8.12, as RFC 6570 expands them.

use serde_json::Value;

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Simple,
    Label,
    Matrix,
    Form,
    SpaceDelimited,
    PipeDelimited,
    DeepObject,
}

/// Which characters stay as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escaping {
    /// Letters, digits and `-._~` alone (RFC 3986, "unreserved").
    Strict,
    /// Also those that a query may hold and that part nothing in it.
    Reserved,
    /// All: a header is no part of an address.
    None,
}

/// A parameter's way of being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) style: Style,
    /// Whether each item of a list, and each member of an object, stands for itself.
    pub(super) explode: bool,
    pub(super) escaping: Escaping,
}

impl Style {
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "simple" => Self::Simple,
            "label" => Self::Label,
            "matrix" => Self::Matrix,
            "form" => Self::Form,
            "spaceDelimited" => Self::SpaceDelimited,
            "pipeDelimited" => Self::PipeDelimited,
            "deepObject" => Self::DeepObject,
            _ => return None,
        })
    }
}

/// A value in its three shapes.
enum Shape {
    One(String),
    List(Vec<String>),
    Object(Vec<(String, String)>),
}

impl Way {
    /// A value in a path or a header.
    pub(super) fn text(self, name: &str, value: &Value) -> String {
        let name = self.escaped(name);
        let (prefix, between, shape) = match self.style {
            Style::Label => (".", if self.explode { "." } else { "," }, self.shape(value)),
            Style::Matrix => return self.matrix(&name, self.shape(value)),
            Style::Simple | Style::Form | Style::SpaceDelimited | Style::PipeDelimited | Style::DeepObject => {
                ("", ",", self.shape(value))
            }
        };
        let text = match shape {
            Shape::One(text) => text,
            Shape::List(items) => items.join(between),
            Shape::Object(members) if self.explode => joined(members, "=", between),
            Shape::Object(members) => joined(members, ",", between),
        };
        format!("{prefix}{text}")
    }

    fn matrix(self, name: &str, shape: Shape) -> String {
        match shape {
            Shape::One(text) if text.is_empty() => format!(";{name}"),
            Shape::One(text) => format!(";{name}={text}"),
            Shape::List(items) if self.explode => items.iter().flat_map(|item| [";", name, "=", item]).collect(),
            Shape::List(items) => format!(";{name}={}", items.join(",")),
            Shape::Object(members) if self.explode => members.iter().flat_map(|(key, value)| [";", key, "=", value]).collect(),
            Shape::Object(members) => format!(";{name}={}", joined(members, ",", ",")),
        }
    }

    /// A value as the pairs of a query, a form or cookies, escaped.
    pub(super) fn pairs(self, name: &str, value: &Value) -> Vec<(String, String)> {
        if self.style == Style::DeepObject {
            let mut pairs = Vec::new();
            self.deep(self.escaped(name), value, &mut pairs);
            return pairs;
        }
        let name = self.escaped(name);
        let between = match self.style {
            Style::SpaceDelimited => "%20",
            Style::PipeDelimited => "%7C",
            Style::Simple | Style::Label | Style::Matrix | Style::Form | Style::DeepObject => ",",
        };
        match self.shape(value) {
            Shape::One(text) => vec![(name, text)],
            Shape::List(items) if self.explode => items.into_iter().map(|item| (name.clone(), item)).collect(),
            // RFC 6570, section 2.3: what has no parts is not defined, and is not sent. As an empty text it would be a value.
            Shape::List(items) if items.is_empty() => Vec::new(),
            Shape::List(items) => vec![(name, items.join(between))],
            Shape::Object(members) if self.explode || members.is_empty() => members,
            Shape::Object(members) => vec![(name, joined(members, between, between))],
        }
    }

    /// `name[key]=value`; what is within a member goes on in the same way, and a list has `[]`, as most servers read it.
    fn deep(self, name: String, value: &Value, pairs: &mut Vec<(String, String)>) {
        match value {
            Value::Object(members) => {
                for (key, value) in members.iter().filter(|(_, value)| !value.is_null()) {
                    self.deep(format!("{name}%5B{}%5D", self.escaped(key)), value, pairs);
                }
            }
            Value::Array(items) => {
                let is_plain = items.iter().all(|item| !item.is_object() && !item.is_array());
                for (index, item) in items.iter().enumerate().filter(|(_, item)| !item.is_null()) {
                    let place = if is_plain { String::new() } else { index.to_string() };
                    self.deep(format!("{name}%5B{place}%5D"), item, pairs);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                pairs.push((name, self.escaped(&plain(value))));
            }
        }
    }

    fn shape(self, value: &Value) -> Shape {
        let text = |value: &Value| self.escaped(&plain(value));
        match value {
            Value::Array(items) => Shape::List(items.iter().filter(|item| !item.is_null()).map(text).collect()),
            Value::Object(members) => {
                let members = members.iter().filter(|(_, value)| !value.is_null());
                Shape::Object(members.map(|(key, value)| (self.escaped(key), text(value))).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Shape::One(text(value)),
        }
    }

    pub(super) fn escaped(self, text: &str) -> String {
        escaped(text, self.escaping)
    }
}

/// A value as text; what has parts of its own, where there is no room for them, as JSON.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// A text with what must not stand for itself as `%XX`.
pub(super) fn escaped(text: &str, escaping: Escaping) -> String {
    if escaping == Escaping::None {
        return text.to_owned();
    }
    let mut made = String::with_capacity(text.len());
    for byte in text.bytes() {
        let stays = byte.is_ascii_alphanumeric()
            || b"-._~".contains(&byte)
            // `&`, `=`, `+`, `#`, `[` and `]` would part the query, or are not allowed in one.
            || (escaping == Escaping::Reserved && b":/?@!$'()*,;".contains(&byte));
        if stays {
            made.push(char::from(byte));
        } else {
            const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
            let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or('0');
            made.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    made
}

fn joined(members: Vec<(String, String)>, within: &str, between: &str) -> String {
    members.into_iter().map(|(key, value)| key + within + &value).collect::<Vec<_>>().join(between)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// OpenAPI 3.1.1, section 4.8.12.5, "Style Examples": empty text, text, list, object.
    #[test]
    fn the_styles_are_those_of_the_examples_of_openapi() {
        let values = [json!(""), json!("blue"), json!(["blue", "black", "brown"]), json!({"R": 100, "G": 200, "B": 150})];
        let cases = [
            (Style::Matrix, false, [";color", ";color=blue", ";color=blue,black,brown", ";color=R,100,G,200,B,150"]),
            (Style::Matrix, true, [";color", ";color=blue", ";color=blue;color=black;color=brown", ";R=100;G=200;B=150"]),
            (Style::Label, false, [".", ".blue", ".blue,black,brown", ".R,100,G,200,B,150"]),
            (Style::Label, true, [".", ".blue", ".blue.black.brown", ".R=100.G=200.B=150"]),
            (Style::Simple, false, ["", "blue", "blue,black,brown", "R,100,G,200,B,150"]),
            (Style::Simple, true, ["", "blue", "blue,black,brown", "R=100,G=200,B=150"]),
        ];
        for (style, explode, expected) in cases {
            let way = Way { style, explode, escaping: Escaping::Strict };
            let texts = values.each_ref().map(|value| way.text("color", value));
            assert_eq!(texts, expected, "{style:?} {explode}");
        }
        let query = [
            (Style::Form, false, ["color=", "color=blue", "color=blue,black,brown", "color=R,100,G,200,B,150"]),
            (Style::Form, true, ["color=", "color=blue", "color=blue&color=black&color=brown", "R=100&G=200&B=150"]),
        ];
        for (style, explode, expected) in query {
            assert_eq!(values.each_ref().map(|value| written(style, explode, value)), expected, "{style:?} {explode}");
        }
        assert_eq!(written(Style::SpaceDelimited, false, &values[2]), "color=blue%20black%20brown");
        assert_eq!(written(Style::SpaceDelimited, false, &values[3]), "color=R%20100%20G%20200%20B%20150");
        assert_eq!(written(Style::PipeDelimited, false, &values[2]), "color=blue%7Cblack%7Cbrown");
        assert_eq!(written(Style::PipeDelimited, false, &values[3]), "color=R%7C100%7CG%7C200%7CB%7C150");
        assert_eq!(written(Style::DeepObject, true, &values[3]), "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150");
    }

    #[test]
    fn a_list_or_an_object_without_parts_is_not_sent() {
        for style in [Style::Form, Style::SpaceDelimited, Style::PipeDelimited, Style::DeepObject] {
            for (value, explode) in
                [(json!([]), true), (json!([]), false), (json!([null]), false), (json!({}), true), (json!({}), false)]
            {
                assert_eq!(written(style, explode, &value), "", "{style:?} {explode} {value}");
            }
        }
    }

    fn written(style: Style, explode: bool, value: &Value) -> String {
        let way = Way { style, explode, escaping: Escaping::Strict };
        let pairs = way.pairs("color", value).into_iter().map(|(name, value)| format!("{name}={value}"));
        pairs.collect::<Vec<_>>().join("&")
    }

    #[test]
    fn what_would_part_a_text_is_escaped() {
        let way = |escaping| Way { style: Style::Form, explode: false, escaping };
        let value = json!(["a,b", "c&d=e#[f]", "ü/?:@"]);
        let strict = way(Escaping::Strict).pairs("q", &value);
        assert_eq!(strict, [("q".into(), "a%2Cb,c%26d%3De%23%5Bf%5D,%C3%BC%2F%3F%3A%40".into())]);
        let reserved = way(Escaping::Reserved).pairs("q", &json!("a/b?c&d=e+f#g:h"));
        assert_eq!(reserved, [("q".into(), "a/b?c%26d%3De%2Bf%23g:h".into())]);
    }

    #[test]
    fn what_is_deep_goes_on_in_brackets() {
        let value = json!({"a": {"b": [1, 2]}, "c": [{"d": true}], "e": null});
        assert_eq!(
            written(Style::DeepObject, true, &value),
            "color%5Ba%5D%5Bb%5D%5B%5D=1&color%5Ba%5D%5Bb%5D%5B%5D=2&color%5Bc%5D%5B0%5D%5Bd%5D=true"
        );
        assert_eq!(written(Style::Form, true, &json!([{"a": 1}])), "color=%7B%22a%22%3A1%7D");
    }
}
