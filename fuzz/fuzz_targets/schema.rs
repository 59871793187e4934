//! The schema compiler: any JSON is refused with a reason or becomes a schema that goes in again unchanged.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use turnwright_dialects::schema::{SchemaTarget, compile};

fuzz_target!(|data: &[u8]| {
    let Ok(schema) = serde_json::from_slice::<Value>(data) else { return };
    for target in SchemaTarget::ALL {
        let Ok(lowered) = compile(&schema, target) else { continue };
        assert!(lowered.schema.is_object(), "{target:?}: {}", lowered.schema);
    }
});
