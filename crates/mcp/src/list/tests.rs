use super::*;
use crate::{StdioConfig, ToolDeclaration};

fn read(config: &ServerConfig, pages: &[Value]) -> (Vec<SourceTool>, Vec<(String, String)>) {
    let mut reader = ListReader::new(config);
    for page in pages {
        reader.page(page.clone());
    }
    let quarantined = reader.listing.quarantined.into_iter().map(|bad| (bad.tool, bad.reason)).collect();
    (reader.listing.tools, quarantined)
}

fn tool(name: &str, declared: Declared) -> SourceTool {
    SourceTool {
        name: name.into(),
        title: None,
        description: String::new(),
        input_schema: json!({"type": "object"}),
        annotations: None,
        declared,
        face: Arc::default(),
    }
}

#[test]
fn one_bad_tool_spoils_itself_alone() {
    let page = json!({"tools": [
        {"name": "good", "inputSchema": {"type": "object"}},
        {"name": "none"},
        {"name": "null", "inputSchema": null},
        {"name": "untyped", "inputSchema": {}},
        {"name": "text", "inputSchema": {"type": "string"}},
        {"name": "true", "inputSchema": true},
        {"name": "broken", "inputSchema": {"type": "object", "properties": {"a": {"type": "strng"}}}},
        {"name": "good", "title": "second"},
        {"title": "nameless"},
        7,
    ]});
    let (tools, quarantined) = read(&ServerConfig::new("s", StdioConfig::new("c")), &[page]);
    assert_eq!(tools, ["good", "none", "null", "untyped"].map(|name| tool(name, Declared::default())));
    let expected = [
        ("text", "its inputSchema is of type \"string\", not of type \"object\""),
        ("true", "its inputSchema is no object"),
        (
            "broken",
            "its inputSchema is no JSON Schema: \"strng\" is not valid under any of the schemas listed in the 'anyOf' keyword",
        ),
        ("good", "the name is there twice: the first one is kept"),
        ("", "the tool has no name"),
        ("", "the entry is no object"),
    ];
    assert_eq!(quarantined, expected.map(|(tool, reason)| (tool.to_owned(), reason.to_owned())));
}

#[test]
fn a_list_ends_where_it_is_too_long_or_too_heavy_and_says_so() {
    let config = ServerConfig::new("s", StdioConfig::new("c"));
    let named = |count: usize| (0..count).map(|index| json!({"name": format!("t{index}")})).collect::<Vec<_>>();
    let (tools, quarantined) = read(&config, &[json!({"tools": named(MAX_TOOLS + 2), "nextCursor": "more"})]);
    assert_eq!(tools.len(), MAX_TOOLS);
    assert_eq!(quarantined, [(String::new(), "there are more than 10000 tools: the rest is left out".to_owned())]);

    // A million numbers are two megabytes as text, and sixteen times that here.
    let heavy = json!({"name": "heavy", "inputSchema": {"enum": vec![1; 1 << 20]}});
    let (tools, quarantined) = read(&config, &[json!({"tools": [{"name": "a"}, heavy, {"name": "b"}], "nextCursor": "more"})]);
    assert_eq!(tools, [tool("a", Declared::default())]);
    assert_eq!(quarantined, [(String::new(), "the tools take more than 32 MiB: the rest is left out".to_owned())]);

    let (_, quarantined) = read(&config, &[json!({"tools": vec![json!(7); 5_000]})]);
    assert_eq!(quarantined.len(), MAX_COMPLAINTS + 1);
    assert_eq!(quarantined.last().unwrap().1, "there are more than 1000; the others are not named");
}

#[test]
fn a_schema_of_another_dialect_is_read_by_its_own_rules() {
    let draft_4 = json!({"$schema": "http://json-schema.org/draft-04/schema#", "type": "object",
        "properties": {"n": {"type": "number", "minimum": 0, "exclusiveMinimum": true}}});
    assert_eq!(schema(Some(draft_4.clone())), Ok(draft_4));
    let unknown = json!({"$schema": "https://example.invalid/own", "type": "object"});
    assert_eq!(schema(Some(unknown.clone())), Ok(unknown));
}

#[test]
fn a_repeating_cursor_ends_the_list() {
    let config = ServerConfig::new("s", StdioConfig::new("c"));
    let mut reader = ListReader::new(&config);
    let page = json!({"tools": [{"name": "t"}], "nextCursor": "same"});
    assert_eq!(reader.page(page.clone()), Some("same".to_owned()));
    assert_eq!(reader.page(page), None);
    assert_eq!(reader.listing.tools.len(), 1);
}

#[test]
fn a_list_is_true_for_as_long_as_its_server_says_and_not_asked_for_all_the_time() {
    let config = ServerConfig::new("s", StdioConfig::new("c"));
    let fresh_for = |ttls: &[Value]| {
        let mut reader = ListReader::new(&config);
        for ttl in ttls {
            reader.page(json!({"tools": [], "ttlMs": ttl}));
        }
        reader.listing.fresh_for
    };
    assert_eq!(fresh_for(&[json!(300_000)]), Some(Duration::from_mins(5)));
    assert_eq!(fresh_for(&[json!(300_000), json!(120_000), Value::Null]), Some(Duration::from_mins(2)));
    assert_eq!(fresh_for(&[json!(5)]), Some(LEAST_FRESH));
    assert_eq!([fresh_for(&[json!(0)]), fresh_for(&[json!("soon")]), fresh_for(&[])], [None; 3]);
}

#[test]
fn hints_count_only_where_they_are_trusted_and_declarations_always() {
    let page = json!({"tools": [
        {"name": "a", "annotations": {"readOnlyHint": true, "idempotentHint": "yes"}},
        {"name": "b"},
    ]});
    let mut config = ServerConfig::new("s", StdioConfig::new("c"));
    let replayable = Declared { replayable: true, ..Declared::default() };
    config.tools.insert("b".into(), ToolDeclaration { replayable: Some(true), ..ToolDeclaration::default() });
    let of = |config: &ServerConfig| {
        read(config, std::slice::from_ref(&page)).0.iter().map(|tool| tool.declared).collect::<Vec<_>>()
    };
    assert_eq!(of(&config), [Declared::default(), replayable]);
    (config.trust_annotations, config.serial) = (true, true);
    let read_only = Declared { read_only: true, serial: true, ..Declared::default() };
    assert_eq!(of(&config), [read_only, Declared { serial: true, ..replayable }]);
    let no = Some(false);
    config.tools.insert("a".into(), ToolDeclaration { read_only: no, serial: no, ..ToolDeclaration::default() });
    assert_eq!(of(&config)[0], Declared::default(), "the operator has the last word");
}
