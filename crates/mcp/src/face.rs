//! What a server says of a tool besides what models are told: the schema of its results, icons, and whom it is for.

use serde_json::{Map, Value};
use turnwright_engine::{Icon, ToolFace, Visibility};

/// The most icons that are kept of a tool, and the longest address of one: a picture may be in it.
const MAX_ICONS: usize = 8;
const MAX_ICON_BYTES: usize = 64 << 10;
/// The longest address of a page.
const MAX_APP_BYTES: usize = 2 << 10;

/// Takes it out of a tool. A schema that is none is left out; the reason is the second value.
pub(crate) fn read(tool: &mut Map<String, Value>) -> (ToolFace, Option<String>) {
    let (output_schema, problem) = match tool.remove("outputSchema") {
        None | Some(Value::Null) => (None, None),
        Some(schema) => match checked(&schema) {
            Ok(()) => (Some(schema), None),
            Err(reason) => (None, Some(reason)),
        },
    };
    let icons = icons(tool.remove("icons"));
    let visibility = tool.get("_meta").map(visibility).unwrap_or_default();
    let app = tool.get("_meta").and_then(app);
    (ToolFace { output_schema, icons, visibility, app }, problem)
}

fn checked(schema: &Value) -> Result<(), String> {
    if !schema.is_object() {
        return Err("its outputSchema is no object".to_owned());
    }
    super::list::is_schema(schema).map_err(|reason| format!("its outputSchema is no JSON Schema: {reason}"))
}

/// Those that can be shown; the others are left out, since a picture is worth no tool.
pub(crate) fn icons(icons: Option<Value>) -> Vec<Icon> {
    let Some(Value::Array(icons)) = icons else { return Vec::new() };
    icons.iter().filter_map(icon).take(MAX_ICONS).collect()
}

fn icon(icon: &Value) -> Option<Icon> {
    let text = |key: &str| icon.get(key).and_then(Value::as_str).map(str::to_owned);
    let src = text("src").filter(|src| src.len() <= MAX_ICON_BYTES)?;
    let is_picture = src.starts_with("https://") || src.starts_with("data:image/");
    let sizes = match icon.get("sizes") {
        Some(Value::Array(sizes)) => sizes.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        // The form of the protocol's draft.
        Some(Value::String(sizes)) => sizes.split_whitespace().map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    is_picture.then(|| Icon { src, mime_type: text("mimeType"), sizes, theme: text("theme") })
}

/// The page of a tool: of the key that is nested, or of the flat one of before.
fn app(meta: &Value) -> Option<String> {
    let address = meta.pointer("/ui/resourceUri").or_else(|| meta.get("ui/resourceUri"))?.as_str()?;
    (address.starts_with("ui://") && address.len() <= MAX_APP_BYTES).then(|| address.to_owned())
}

fn visibility(meta: &Value) -> Visibility {
    let Some(listed) = meta.pointer("/ui/visibility").and_then(Value::as_array) else { return Visibility::Everyone };
    let has = |who: &str| listed.iter().any(|listed| listed == who);
    match (has("model"), has("app")) {
        (true, false) => Visibility::Models,
        (false, true) => Visibility::Pages,
        (true, true) | (false, false) => Visibility::Everyone,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(tool: Value) -> (ToolFace, Option<String>) {
        let Value::Object(mut tool) = tool else { panic!("an object") };
        read(&mut tool)
    }

    #[test]
    fn what_a_server_says_is_kept() {
        let schema = json!({"type": "object", "properties": {"celsius": {"type": "number"}}});
        let icons = json!([
            {"src": "https://example.test/a.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"},
            {"src": "data:image/svg+xml;base64,AA==", "sizes": "any"},
            {"src": "javascript:alert(1)"},
            {"src": 7},
            "no",
        ]);
        let (face, problem) = of(
            json!({"outputSchema": schema, "icons": icons, "_meta": {"ui": {"visibility": ["app"], "resourceUri": "ui://a/b.html"}}}),
        );
        let icon = |src: &str, mime_type: Option<&str>, sizes: &[&str], theme: Option<&str>| Icon {
            src: src.into(),
            mime_type: mime_type.map(Into::into),
            sizes: sizes.iter().map(ToString::to_string).collect(),
            theme: theme.map(Into::into),
        };
        let expected = ToolFace {
            output_schema: Some(schema),
            icons: vec![
                icon("https://example.test/a.png", Some("image/png"), &["48x48"], Some("dark")),
                icon("data:image/svg+xml;base64,AA==", None, &["any"], None),
            ],
            visibility: Visibility::Pages,
            app: Some("ui://a/b.html".into()),
        };
        assert_eq!((face, problem), (expected, None));
    }

    #[test]
    fn the_page_of_a_tool_is_a_ui_address_under_the_new_key_or_the_old() {
        let app = |meta: Value| of(json!({ "_meta": meta })).0.app;
        assert_eq!(app(json!({"ui/resourceUri": "ui://old"})), Some("ui://old".to_owned()));
        assert_eq!(app(json!({"ui/resourceUri": "ui://old", "ui": {"resourceUri": "ui://new"}})), Some("ui://new".to_owned()));
        for not_one in [json!("https://example.test/a.html"), json!("file:///etc/passwd"), json!(7), Value::Null] {
            assert_eq!(app(json!({"ui": {"resourceUri": not_one}})), None, "{not_one}");
        }
        assert_eq!(app(json!({"ui": {"resourceUri": format!("ui://{}", "a".repeat(MAX_APP_BYTES))}})), None);
    }

    #[test]
    fn a_schema_of_results_that_is_none_is_left_out_and_named() {
        let (face, problem) = of(json!({"outputSchema": true}));
        assert_eq!((face, problem), (ToolFace::default(), Some("its outputSchema is no object".to_owned())));
        let (face, problem) = of(json!({"outputSchema": {"type": "strng"}}));
        assert_eq!(face, ToolFace::default());
        assert!(problem.unwrap().starts_with("its outputSchema is no JSON Schema: \"strng\" is not valid"));
        assert_eq!(of(json!({"_meta": {"ui": {"visibility": ["model"]}}})).0.visibility, Visibility::Models);
        assert_eq!(of(json!({"_meta": {"ui": {"visibility": []}}})).0.visibility, Visibility::Everyone);
    }
}
