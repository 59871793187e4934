use serde_json::{Value, json};

use super::*;

fn body(content: &Value) -> (Body, Value) {
    let text = json!({"openapi": "3.0.0", "body": {"content": content}});
    let document = Document::read(text.to_string().as_bytes()).unwrap();
    let mut schemas = Schemas::new(&document);
    let (body, schema) = read(&document, document.root().get("body"), &mut schemas).unwrap().unwrap();
    (Body { argument: "body".into(), ..body }, schema)
}

fn sent(content: &Value, value: &Value) -> (String, String) {
    let (media_type, bytes) = body(content).0.written(value, "k").unwrap();
    (media_type, String::from_utf8(bytes).unwrap())
}

#[test]
fn the_form_that_says_most_is_chosen() {
    let plain = json!({"schema": {"type": "string"}});
    let cases = [
        (json!({"text/plain": plain, "application/json": plain}), "application/json"),
        (json!({"application/xml": plain, "application/vnd.api+json; charset=utf-8": plain}), "application/vnd.api+json"),
        (
            json!({"multipart/form-data": plain, "application/x-www-form-urlencoded": plain}),
            "application/x-www-form-urlencoded",
        ),
        (json!({"*/*": plain}), "application/json"),
        (json!({"application/octet-stream": plain}), "application/octet-stream"),
        (json!({"image/*": plain}), "application/octet-stream"),
    ];
    for (content, media_type) in cases {
        assert_eq!(body(&content).0.media_type, media_type, "{content}");
    }
}

#[test]
fn each_form_is_written_as_it_is_read() {
    let any = json!({"schema": {"type": "object"}});
    assert_eq!(sent(&json!({"application/json": any}), &json!({"a": [1]})), ("application/json".into(), "{\"a\":[1]}".into()));
    assert_eq!(
        sent(
            &json!({"application/x-www-form-urlencoded": any}),
            &json!({"a b": "c&d", "list": [1, 2], "o": {"x": 1}, "n": null})
        )
        .1,
        "a%20b=c%26d&list=1&list=2&o=%7B%22x%22%3A1%7D"
    );
    let deep = json!({"schema": {"type": "object"}, "encoding": {"o": {"style": "deepObject"}, "list": {"style": "form", "explode": false}}});
    assert_eq!(
        sent(&json!({"application/x-www-form-urlencoded": deep}), &json!({"list": [1, 2], "o": {"x": 1}})).1,
        "list=1,2&o%5Bx%5D=1"
    );
    assert_eq!(sent(&json!({"text/csv": any}), &json!("a,b")), ("text/csv; charset=utf-8".into(), "a,b".into()));
    let file = json!({"base64": "aGk=", "media_type": "image/png"});
    assert_eq!(sent(&json!({"application/octet-stream": any}), &file), ("image/png".into(), "hi".into()));
    let (octets, _) = body(&json!({"application/octet-stream": any}));
    assert_eq!(octets.written(&json!({}), "k"), Err("`body`: a file must have either `text` or `base64`".into()));
    assert!(octets.written(&json!({"base64": "***"}), "k").unwrap_err().contains("its `base64` cannot be read"));
}

#[test]
fn files_go_in_parts_with_their_names() {
    let content = json!({"multipart/form-data": {"schema": {"type": "object", "required": ["file"], "properties": {
        "file": {"type": "string", "format": "binary"}, "more": {"type": "array", "items": {"type": "string", "format": "binary"}},
        "note": {"type": "string"}, "meta": {"type": "object"}}}}});
    let (form, schema) = body(&content);
    assert_eq!(schema["properties"]["file"], file_schema(None));
    assert_eq!(schema["properties"]["more"]["items"], file_schema(None));
    let value = json!({"file": {"filename": "a\"b.txt", "text": "hi --turnwright-k"}, "note": "n", "meta": {"x": 1}});
    let (media_type, bytes) = form.written(&value, "k").unwrap();
    assert_eq!(media_type, "multipart/form-data; boundary=turnwright-kx");
    assert_eq!(
        String::from_utf8(bytes).unwrap(),
        "--turnwright-kx\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a%22b.txt\"\r\nContent-Type: application/octet-stream\r\n\r\nhi --turnwright-k\r\n\
         --turnwright-kx\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nn\r\n\
         --turnwright-kx\r\nContent-Disposition: form-data; name=\"meta\"\r\nContent-Type: application/json\r\n\r\n{\"x\":1}\r\n--turnwright-kx--\r\n"
    );
}
