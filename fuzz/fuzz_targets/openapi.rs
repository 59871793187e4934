//! OpenAPI import: any bytes are refused with a reason or become tools, and whatever a model fills their arguments with, a request
//! goes nowhere else than below the API's base. Description and a text for all arguments are parted by a zero byte.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};
use turnwright_tools::http::{Choice, Operation, import};
use turnwright_tools::net::{Allow, Target};

fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let (description, text) = (parts.next().unwrap_or_default(), parts.next().unwrap_or(b".."));
    let Ok(imported) = import(description, &Choice::default()) else { return };
    let base = Target::parse("https://api.example/v1", &Allow::nothing()).expect("it is a public address");
    let text = String::from_utf8_lossy(text);
    let values = [json!(text), json!([text, ".."]), json!({text.as_ref(): text, "..": 1}), json!({"text": text, "filename": text})];
    for operation in &imported.operations {
        assert!(operation.input_schema.is_object());
        assert!(!operation.name.is_empty() && operation.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)));
        for value in &values {
            let Ok(request) = operation.request(base.url(), &filled(operation, value), "key") else { continue };
            assert_eq!(request.url.origin(), base.url().origin());
            let below = request.url.path().strip_prefix("/v1/").expect("the path is below the base's");
            assert!(!below.split('/').any(|segment| matches!(segment, "." | "..")), "{below}");
        }
    }
});

/// The same value for each argument.
fn filled(operation: &Operation, value: &Value) -> Map<String, Value> {
    let properties = operation.input_schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().map(|(name, _)| (name.clone(), value.clone())).collect()
}
