use serde_json::json;

use super::*;

struct Taken(Vec<Value>, usize);

impl Take for Taken {
    fn take(&mut self, value: &Value, _: &Numbers<'_>) -> bool {
        self.0.push(value.clone());
        self.0.len() < self.1
    }
}

fn selected(path: &str, text: &str, most: usize) -> Result<Vec<Value>, Broken> {
    let mut taken = Taken(Vec::new(), most);
    select(&Path::new(path).unwrap(), text.as_bytes(), &mut taken).map(|()| taken.0)
}

#[test]
fn a_path_selects_in_the_stream_what_it_selects_of_the_whole() {
    let text = r#"{"items": [{"id": 1, "name": "a", "tags": ["x", "y"]}, {"id": 2, "name": "b", "tags": []}],
        "of": {"first": {"id": 7}, "second": {"id": 8}}, "ä-b": [[1, 2], [3]], "n": null, "a": [true, 1.5, -3, "s"]}"#;
    let whole: Value = serde_json::from_str(text).unwrap();
    let paths = [
        "$",
        "$.items",
        "$.items[*].name",
        "$.items[1]",
        "$.items[1]['tags']",
        "$['ä-b'][0][1]",
        "$.items.name",
        "$.of.*.id",
        "$[\"of\"][\"second\"].id",
        "$.items[?@.id > 1]",
        "$.items[?@.id > 0].name",
        "$.of[?@.id == 8]",
        "$..id",
        "$.items[0:1]",
        "$.items[-1]",
        "$.items[0,1].id",
        "$.a[*]",
        "$.n",
        "$.n.x",
        "$.missing[*]",
        "$.items[?@.id == $.of.first.id]",
        "$.items[*].tags[*]",
        "$ .items [ 0 ] .id",
        "$.items[?@.tags[0] == 'x'].id",
        "$.items[?@.id == 2, ?@.id == 1].id",
    ];
    for path in paths {
        let expected: Vec<Value> = JsonPath::parse(path).unwrap().query(&whole).iter().map(|found| (*found).clone()).collect();
        assert_eq!(selected(path, text, 100).unwrap(), expected, "{path}");
    }
}

#[test]
fn numbers_come_as_they_are_written_however_they_are_selected() {
    struct Texts(Vec<String>);
    impl Take for Texts {
        fn take(&mut self, value: &Value, numbers: &Numbers<'_>) -> bool {
            self.0.push(numbers.text(value));
            true
        }
    }
    let text = r#"{"items": [{"id": 12345678901234567890123, "f": 1.10}, {"id": 2, "f": 1e5}], "of": {"a": {"f": 2.50}}}"#;
    let paths: [(&str, &[&str]); 7] = [
        ("$.items[*].id", &["12345678901234567890123", "2"]),
        ("$.items[0]", &[r#"{"id":12345678901234567890123,"f":1.10}"#]),
        ("$.items[?@.id > 1].f", &["1.10", "1e5"]),
        ("$.items[?@.id == 2]", &[r#"{"id":2,"f":1e5}"#]),
        ("$.of[?@.f > 1]", &[r#"{"f":2.50}"#]),
        ("$..f", &["1.10", "1e5", "2.50"]),
        ("$.items[-1].f", &["1e5"]),
    ];
    for (path, expected) in paths {
        let mut taken = Texts(Vec::new());
        select(&Path::new(path).unwrap(), text.as_bytes(), &mut taken).unwrap();
        assert_eq!(taken.0, expected, "{path}");
    }
}

#[test]
fn no_more_is_read_than_is_wanted() {
    assert_eq!(selected("$[*]", "[1, 2, 3, this is not JSON", 2).unwrap(), [json!(1), json!(2)]);
    assert!(matches!(selected("$[*]", "[1, 2, 3, this is not JSON", 9), Err(Broken::Unreadable(_))));
    assert!(matches!(selected("$.a", "{\"a\": 1} x", 9), Err(Broken::Unreadable(_))));
    assert!(matches!(selected("$.a", "{\"a\": 1", 9), Err(Broken::Unreadable(_))));
}

#[test]
fn of_several_values_each_is_asked() {
    let lines = "{\"a\": 1}\n{\"b\": 2}\n{\"a\": 3}\n{\"a\": ";
    assert_eq!(selected("$.a", lines, 9).unwrap(), [json!(1), json!(3)]);
    assert_eq!(selected("$[?@ > 1]", lines, 9).unwrap(), [json!(2), json!(3)]);
}

#[test]
fn of_a_text_of_any_size_only_what_is_selected_is_held() {
    let large = usize::try_from(MOST_VALUE_BYTES).unwrap() + 1_000_000;
    let text = format!(
        "{{\"pad\": \"{}\", \"rows\": [{{\"id\": 1}}, {{\"id\": 2}}], \"more\": [{}1]}}",
        "x".repeat(large),
        "1,".repeat(large)
    );
    assert_eq!(selected("$.rows[1].id", &text, 9).unwrap(), [json!(2)]);
    assert_eq!(selected("$.rows[?@.id == 1]", &text, 9).unwrap(), [json!({"id": 1})]);
    for held in ["$", "$.pad", "$.pad.x", "$..id"] {
        assert!(matches!(selected(held, &text, 9), Err(Broken::TooLarge)), "{held}");
    }
    let deep = "[".repeat(100_000);
    assert!(matches!(selected("$[*]", &deep, 9), Err(Broken::Unreadable(_))));
}
