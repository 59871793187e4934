//! The `extensions` of goose's `config.yaml`, as the entries that other programs write.

use serde_json::{Map, Value, json};

use super::{Import, ImportError};

/// Reads the file's text.
pub(super) fn read(text: &str) -> Result<Import, ImportError> {
    let file: Value =
        serde_saphyr::from_str_with_options(text, as_goose_reads()).map_err(|error| ImportError::NotYaml(error.to_string()))?;
    let Some(Value::Object(extensions)) = file.get("extensions") else { return Err(ImportError::NoServers) };
    let mut import = Import::default();
    for (name, extension) in extensions {
        let Value::Object(extension) = extension else {
            import.problems.push(format!("`{name}` is no table"));
            continue;
        };
        match extension.get("type").and_then(Value::as_str).unwrap_or("stdio") {
            "stdio" | "streamable_http" | "sse" => import.take(name.clone(), entry(extension)),
            kind => import.problems.push(format!("`{name}` was left out: it is of the type `{kind}`, which is goose's own")),
        }
    }
    Ok(import)
}

/// The rules of `serde_yaml`, by which goose reads its file: words such as `y`, `on` and `no`, and figures such as `007` and
/// `1_000`, are texts.
fn as_goose_reads() -> serde_saphyr::Options {
    serde_saphyr::options! {
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
    }
}

/// An extension by the names that other programs have for its keys.
fn entry(extension: &Map<String, Value>) -> Value {
    const NAMES: [(&str, &str); 8] = [
        ("cmd", "command"),
        ("args", "args"),
        ("envs", "env"),
        ("uri", "url"),
        ("headers", "headers"),
        ("name", "name"),
        ("description", "description"),
        ("enabled", "enabled"),
    ];
    let renamed = |(from, to): (&str, &str)| Some((to.to_owned(), extension.get(from)?.clone()));
    let mut entry: Map<String, Value> = NAMES.into_iter().filter_map(renamed).collect();
    // Variables that goose keeps in the system's keyring.
    for key in extension.get("env_keys").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        let env = entry.entry("env").or_insert_with(|| json!({}));
        if let Value::Object(env) = env {
            env.entry(key).or_insert_with(|| format!("${{{key}}}").into());
        }
    }
    if let Some(seconds) = extension.get("timeout").and_then(Value::as_u64) {
        entry.insert("total_ms".to_owned(), seconds.saturating_mul(1_000).into());
    }
    Value::Object(entry)
}
