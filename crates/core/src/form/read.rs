//! From the schema of a form to the form.

use serde_json::{Map, Value};

use super::{Choice, Field, FieldKind, Form, MAX_FIELDS, TextFormat};

pub(super) fn form(schema: &Value) -> Result<Form, String> {
    let object = schema.as_object().ok_or("the schema of the form is no object")?;
    if object.get("type").is_some_and(|kind| kind != "object") {
        return Err("the schema of the form is not of type object".to_owned());
    }
    let none = Map::new();
    let properties = match object.get("properties") {
        Some(properties) => properties.as_object().ok_or("the properties of the form are no object")?,
        None => &none,
    };
    if properties.len() > MAX_FIELDS {
        return Err(format!("the form has {} fields, limit {MAX_FIELDS}", properties.len()));
    }
    let required: Vec<&str> = match object.get("required") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        Some(_) | None => Vec::new(),
    };
    if let Some(missing) = required.iter().find(|name| !properties.contains_key(**name)) {
        return Err(format!("the form requires `{missing}` and has no such field"));
    }
    let fields = properties.iter().map(|(name, field)| {
        self::field(name, field, required.contains(&name.as_str())).map_err(|problem| format!("its field `{name}` {problem}"))
    });
    Ok(Form { fields: fields.collect::<Result<_, _>>()? })
}

fn field(name: &str, schema: &Value, is_required: bool) -> Result<Field, String> {
    let object = schema.as_object().ok_or("is no schema")?;
    let text = |key: &str| object.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut field = Field {
        name: name.to_owned(),
        title: text("title"),
        description: text("description"),
        is_required,
        kind: kind(object)?,
        default: None,
    };
    // A default that the form itself would not take is none.
    field.default = object.get("default").filter(|default| field.problem(default).is_none()).cloned();
    Ok(field)
}

fn kind(object: &Map<String, Value>) -> Result<FieldKind, String> {
    let count = |key: &str| object.get(key).and_then(Value::as_u64);
    let number = |key: &str| object.get(key).and_then(Value::as_f64);
    let is_chosen = object.contains_key("enum") || object.contains_key("oneOf");
    match object.get("type").and_then(Value::as_str) {
        Some("string") | None if is_chosen => Ok(FieldKind::One(choices(object)?)),
        Some("string") => Ok(FieldKind::Text {
            min_length: count("minLength"),
            max_length: count("maxLength"),
            format: object.get("format").and_then(Value::as_str).and_then(TextFormat::named),
        }),
        Some(kind @ ("integer" | "number")) => {
            Ok(FieldKind::Number { is_integer: kind == "integer", minimum: number("minimum"), maximum: number("maximum") })
        }
        Some("boolean") => Ok(FieldKind::Boolean),
        Some("array") => {
            let items = object.get("items").and_then(Value::as_object).ok_or("is a list without choices")?;
            Ok(FieldKind::Some { choices: choices(items)?, min_items: count("minItems"), max_items: count("maxItems") })
        }
        Some(kind) => Err(format!("is of type {kind}, which no form has")),
        None => Err("has no type".to_owned()),
    }
}

fn choices(object: &Map<String, Value>) -> Result<Vec<Choice>, String> {
    let none = || "has no choices that are texts".to_owned();
    let titled = object.get("oneOf").or_else(|| object.get("anyOf")).and_then(Value::as_array);
    if let Some(titled) = titled {
        let one = |choice: &Value| {
            let title = choice.get("title").and_then(Value::as_str).map(str::to_owned);
            Some(Choice { value: choice.get("const")?.as_str()?.to_owned(), title })
        };
        return titled.iter().map(|choice| one(choice).ok_or_else(none)).collect();
    }
    let values = object.get("enum").and_then(Value::as_array).ok_or_else(none)?;
    let names = object.get("enumNames").and_then(Value::as_array);
    let title = |at: usize| names.and_then(|names| names.get(at)).and_then(Value::as_str).map(str::to_owned);
    let one = |(at, value): (usize, &Value)| {
        value.as_str().map(|value| Choice { value: value.to_owned(), title: title(at) }).ok_or_else(none)
    };
    values.iter().enumerate().map(one).collect()
}
