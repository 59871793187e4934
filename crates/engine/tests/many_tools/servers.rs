//! The servers of `servers.txt` and the questions of `questions.txt`.

use serde_json::{Map, Value, json};
use turnwright_core::{Declared, ToolDefinition};

/// What somebody wants, and the tools that do it.
pub(crate) struct Question {
    pub(crate) words: String,
    pub(crate) right: Vec<String>,
}

/// How servers name what they do with an object.
const USUAL: [[(&str, &str); 5]; 2] = [
    [
        ("list", "Lists every {}, page by page"),
        ("get", "Returns a {} by its id"),
        ("create", "Creates a {}"),
        ("update", "Updates fields of a {}"),
        ("delete", "Deletes a {} permanently"),
    ],
    [
        ("list", "Retrieve all {} entries. Supports pagination and filtering."),
        ("get", "Retrieve the details of a single {}."),
        ("create", "Create a new {} with the given fields."),
        ("update", "Modify an existing {}. Only the fields that are given change."),
        ("delete", "Delete a {}. This cannot be undone."),
    ],
];

/// The questions.
pub(crate) fn questions() -> Vec<Question> {
    read(include_str!("questions.txt"))
}

/// Others, by which nothing was chosen.
pub(crate) fn held_out() -> Vec<Question> {
    read(include_str!("held_out.txt"))
}

fn read(text: &str) -> Vec<Question> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let (words, right) = line.split_once(" = ").expect("a question has its answer");
            Question { words: words.to_owned(), right: right.split('|').map(str::to_owned).collect() }
        })
        .collect()
}

/// All tools, server by server.
pub(crate) fn tools() -> Vec<ToolDefinition> {
    let (mut tools, mut server, mut is_camel, mut count) = (Vec::new(), "", false, 0);
    for line in include_str!("servers.txt").lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        if let Some(rest) = line.strip_prefix('[') {
            let (name, style) = rest.split_once("] ").expect("a server has a style");
            (server, is_camel, count) = (name, style == "camel", count + 1);
        } else if let Some(object) = line.strip_prefix("* ") {
            let mut fields = object.split(" | ");
            let (name, what) = (fields.next().expect("a name"), fields.next().expect("what it is"));
            let parameters = fields.next().expect("parameters");
            let [short, long] = USUAL;
            for (verb, says) in if count % 2 == 0 { short } else { long } {
                let wanted = if matches!(verb, "create" | "update") { parameters } else { "id" };
                tools.push(tool(server, &named(verb, name, is_camel), &says.replace("{}", what), wanted));
            }
        } else {
            let (name, rest) = line.split_once('(').expect("a tool has parameters");
            let (parameters, says) = rest.split_once(") ").expect("a tool has a description");
            tools.push(tool(server, name, says, parameters));
        }
    }
    tools
}

fn named(verb: &str, name: &str, is_camel: bool) -> String {
    if !is_camel {
        return format!("{verb}_{name}{}", if verb == "list" { "s" } else { "" });
    }
    let (first, rest) = name.split_at(1);
    format!("{verb}{}{rest}{}", first.to_uppercase(), if verb == "list" { "s" } else { "" })
}

fn tool(source: &str, name: &str, description: &str, parameters: &str) -> ToolDefinition {
    let names = parameters.split(", ").filter(|name| !name.is_empty());
    let about = |name: &str| json!({"type": "string", "description": format!("The {}", name.replace('_', " "))});
    let properties: Map<String, Value> = names.map(|name| (name.to_owned(), about(name))).collect();
    ToolDefinition {
        name: format!("{source}__{name}"),
        source: source.to_owned(),
        tool: name.to_owned(),
        title: None,
        description: description.to_owned(),
        input_schema: json!({"type": "object", "properties": properties, "additionalProperties": false}),
        annotations: None,
        declared: Declared::default(),
    }
}
