//! Forms that tools ask people to fill in.

use serde_json::{Map, Value, json};
use turnwright_core::Form;

/// The reference's form, with every kind of field.
fn every_kind() -> Form {
    let schema = json!({"type": "object", "properties": {
        "name": {"type": "string", "title": "Name", "minLength": 1, "maxLength": 5, "default": "Ann"},
        "mail": {"type": "string", "format": "email"},
        "age": {"type": "integer", "minimum": 0, "maximum": 150, "default": 30},
        "height": {"type": "number", "minimum": 0.5},
        "ok": {"type": "boolean", "default": false},
        "one": {"type": "string", "enum": ["a", "b"], "default": "a"},
        "one_titled": {"type": "string", "oneOf": [{"const": "a", "title": "Apple"}, {"const": "b", "title": "Bean"}]},
        "old": {"type": "string", "enum": ["a"], "enumNames": ["Apple"]},
        "many": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string", "enum": ["a", "b", "c"]}, "default": ["a"]},
        "many_titled": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "Apple"}]}},
    }, "required": ["name", "mail"]});
    Form::read(&schema).expect("it is a form")
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

fn problems(given: Value) -> Vec<String> {
    every_kind().fill(object(given)).expect_err("it does not fit").iter().map(ToString::to_string).collect()
}

#[test]
fn fields_that_are_left_alone_go_out_with_their_defaults_in_the_order_of_the_form() {
    let filled = every_kind().fill(object(json!({"mail": "a@b.org", "age": null})));
    let expected = json!({"name": "Ann", "mail": "a@b.org", "age": 30, "ok": false, "one": "a", "many": ["a"]});
    assert_eq!(filled.map(|filled| Value::Object(filled).to_string()), Ok(expected.to_string()));
}

#[test]
fn what_is_wrong_is_said_for_each_field() {
    assert_eq!(problems(json!({})), ["`mail` is required"]);
    let given = json!({"mail": "nobody", "name": "Annabel", "age": 30.5, "height": 0.25, "ok": "yes", "one": "z", "many": [],
        "many_titled": ["z"], "one_titled": "Apple", "extra": 1});
    let expected = [
        "`name` must have 1 to 5 characters, not 7",
        "`mail` must be an e-mail address",
        "`age` must be a whole number, not 30.5",
        "`height` must be at least 0.5, not 0.25",
        "`ok` must be true or false",
        "`one` must be one of a, b",
        "`one_titled` must be one of a, b",
        "`many` must hold 1 to 2 of its choices, not 0",
        "`many_titled` must be a list of some of a",
        "`extra` is no field of the form; its fields are `name`, `mail`, `age`, `height`, `ok`, `one`, `one_titled`, `old`, \
         `many`, `many_titled`",
    ];
    assert_eq!(problems(given), expected);
}

#[test]
fn what_people_write_becomes_the_value_that_they_mean() {
    let form = every_kind();
    let read = |name: &str, text: &str| {
        let field = form.fields.iter().find(|field| field.name == name).expect("there is such a field");
        field.read(text)
    };
    assert_eq!(read("name", "Bo"), Ok(json!("Bo")));
    assert_eq!(read("age", " 7 "), Ok(json!(7)));
    assert_eq!(read("age", "seven"), Err("must be a whole number".to_owned()));
    assert_eq!(read("age", "200"), Err("must be 0 to 150, not 200".to_owned()));
    assert_eq!(read("ok", "Yes"), Ok(json!(true)));
    assert_eq!(read("ok", "maybe"), Err("must be yes or no".to_owned()));
    assert_eq!(read("one_titled", "bean"), Ok(json!("b")));
    assert_eq!(read("many", "a, c"), Ok(json!(["a", "c"])));
    assert_eq!(read("many", ""), Err("must hold 1 to 2 of its choices, not 0".to_owned()));
}

#[test]
fn a_field_says_what_it_takes() {
    let told: Vec<String> = every_kind().fields.iter().map(turnwright_core::Field::described).collect();
    let expected = [
        "1 to 5 characters",
        "an e-mail address",
        "a whole number, 0 to 150",
        "a number, at least 0.5",
        "yes or no",
        "one of a, b",
        "one of a (Apple), b (Bean)",
        "one of a (Apple)",
        "some of a, b, c, with commas between",
        "some of a (Apple), with commas between",
    ];
    assert_eq!(told, expected);
}

#[test]
fn texts_are_checked_against_their_format() {
    let cases = [
        ("email", &["a@b.org", "a+b@sub.example"][..], &["a@", "@b.org", "a b@c.org", "a@@b.org", "a@.org"][..]),
        ("uri", &["https://a/b?c", "urn:x:y"], &["a/b", "://a", "https://a b", "1a:b"]),
        ("date", &["2024-02-29", "2026-12-31"], &["2026-02-29", "2026-13-01", "26-01-01", "2026-1-1", "2026-01-01x"]),
        (
            "date-time",
            &["2026-11-22T09:30:00Z", "2026-11-22t09:30:00.25+01:00"],
            &["2026-11-22", "2026-11-22T24:00:00Z", "2026-11-22T09:30:00", "2026-11-22T09:30:00.Z", "2026-11-22T09:30Z"],
        ),
        ("something-else", &["whatever"], &[]),
    ];
    for (format, good, bad) in cases {
        let schema = json!({"type": "object", "properties": {"text": {"type": "string", "format": format}}});
        let form = Form::read(&schema).expect("it is a form");
        for (texts, fits) in [(good, true), (bad, false)] {
            for text in texts {
                assert_eq!(form.fill(object(json!({"text": text}))).is_ok(), fits, "{format}: {text}");
            }
        }
    }
}

#[test]
fn what_is_no_flat_form_is_refused_by_name() {
    let cases = [
        (json!([]), "the schema of the form is no object"),
        (json!({"type": "array"}), "the schema of the form is not of type object"),
        (json!({"properties": {"a": {"type": "object"}}}), "its field `a` is of type object, which no form has"),
        (
            json!({"properties": {"a": {"type": "array", "items": {"type": "string"}}}}),
            "its field `a` has no choices that are texts",
        ),
        (json!({"properties": {"a": {}}}), "its field `a` has no type"),
        (json!({"properties": {"a": {"type": "string", "enum": [1]}}}), "its field `a` has no choices that are texts"),
        (json!({"properties": {}, "required": ["a"]}), "the form requires `a` and has no such field"),
    ];
    for (schema, why) in cases {
        assert_eq!(Form::read(&schema).expect_err("it is no form"), why, "{schema}");
    }
    assert_eq!(Form::read(&json!({})).map(|form| form.fields.len()), Ok(0), "a form without fields asks for a yes or no");
}

#[test]
fn a_default_that_the_form_would_not_take_is_none() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}, "required": ["a"]});
    let form = Form::read(&schema).expect("it is a form");
    assert_eq!(form.fill(Map::new()).expect_err("nothing is there")[0].to_string(), "`a` is required");
}
