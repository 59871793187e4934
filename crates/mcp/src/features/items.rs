//! Resources, templates and prompts as servers list them, read so that one bad entry spoils itself alone.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use turnwright_core::secrets::Secrets;
use turnwright_engine::shown_name;

use crate::list::{capped_to, text};

/// Bytes of an address or a name, and of a description, that are taken.
const MAX_NAME_BYTES: usize = 8 << 10;
const MAX_DESCRIPTION_BYTES: usize = 4 << 10;
/// Arguments of one prompt that are taken.
const MAX_ARGUMENTS: usize = 100;

/// A resource that a server lists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resource {
    /// Its address.
    pub uri: String,
    /// Its name; its address where it has none.
    pub name: String,
    /// A title for people.
    #[serde(default)]
    pub title: Option<String>,
    /// What it is.
    #[serde(default)]
    pub description: Option<String>,
    /// Its media type, where known.
    #[serde(default)]
    pub mime_type: Option<String>,
    /// Its size in bytes, where known.
    #[serde(default)]
    pub size: Option<u64>,
    /// The server's own hints (`audience`, `priority`), not checked.
    #[serde(default)]
    pub annotations: Option<Value>,
}

/// A family of resources.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResourceTemplate {
    /// Their address with variables in it (RFC 6570).
    pub uri_template: String,
    /// Its name; its address where it has none.
    pub name: String,
    /// A title for people.
    #[serde(default)]
    pub title: Option<String>,
    /// What they are.
    #[serde(default)]
    pub description: Option<String>,
    /// Their media type, where it is one.
    #[serde(default)]
    pub mime_type: Option<String>,
}

/// A prompt that a server has for people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prompt {
    /// Its name at the server.
    pub name: String,
    /// A title for people.
    #[serde(default)]
    pub title: Option<String>,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// What it must be given.
    #[serde(default)]
    pub arguments: Vec<PromptArgument>,
}

/// An argument of a prompt; its value is a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// What it is.
    #[serde(default)]
    pub description: Option<String>,
    /// Whether the prompt cannot be had without it.
    #[serde(default)]
    pub is_required: bool,
}

/// What a server offers besides tools.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Shelf {
    /// Its resources.
    pub resources: Vec<Resource>,
    /// Its families of resources.
    pub templates: Vec<ResourceTemplate>,
    /// Its prompts.
    pub prompts: Vec<Prompt>,
    /// What is wrong with its lists, in words for people.
    pub problems: Vec<String>,
}

impl Shelf {
    /// Whether there is anything to read.
    pub fn has_resources(&self) -> bool {
        !self.resources.is_empty() || !self.templates.is_empty()
    }

    /// The same without secrets.
    pub(crate) fn without(mut self, secrets: &Secrets) -> Self {
        let mut hide = |text: &mut String| secrets.hide_in(text);
        for Resource { uri, name, title, description, mime_type, size: _, annotations } in &mut self.resources {
            [Some(uri), Some(name), title.as_mut(), description.as_mut(), mime_type.as_mut()]
                .into_iter()
                .flatten()
                .for_each(&mut hide);
            if let Some(hints) = annotations {
                secrets.hide_in_value(hints);
            }
        }
        for ResourceTemplate { uri_template, name, title, description, mime_type } in &mut self.templates {
            let texts = [Some(uri_template), Some(name), title.as_mut(), description.as_mut(), mime_type.as_mut()];
            texts.into_iter().flatten().for_each(&mut hide);
        }
        for Prompt { name, title, description, arguments } in &mut self.prompts {
            [Some(name), title.as_mut(), description.as_mut()].into_iter().flatten().for_each(&mut hide);
            for PromptArgument { name, description, is_required: _ } in arguments {
                [Some(name), description.as_mut()].into_iter().flatten().for_each(&mut hide);
            }
        }
        self.problems.iter_mut().for_each(&mut hide);
        self
    }
}

/// An entry of a list.
pub(super) trait Item: Sized {
    /// Where its entries are in a page.
    const KEY: &'static str;

    /// Reads an entry, or says what is wrong with it.
    fn read(entry: &mut Map<String, Value>) -> Result<Self, &'static str>;

    /// What is there once.
    fn id(&self) -> &str;
}

impl Item for Resource {
    const KEY: &'static str = "resources";

    fn read(entry: &mut Map<String, Value>) -> Result<Self, &'static str> {
        let uri = named(entry, "uri").ok_or("a resource without an address is left out")?;
        Ok(Self {
            name: named(entry, "name").unwrap_or_else(|| uri.clone()),
            uri,
            title: named(entry, "title"),
            description: description(entry),
            mime_type: named(entry, "mimeType"),
            size: entry.get("size").and_then(Value::as_u64),
            annotations: entry.remove("annotations").filter(Value::is_object),
        })
    }

    fn id(&self) -> &str {
        &self.uri
    }
}

impl Item for ResourceTemplate {
    const KEY: &'static str = "resourceTemplates";

    fn read(entry: &mut Map<String, Value>) -> Result<Self, &'static str> {
        let uri_template = named(entry, "uriTemplate").ok_or("a template without an address is left out")?;
        Ok(Self {
            name: named(entry, "name").unwrap_or_else(|| uri_template.clone()),
            uri_template,
            title: named(entry, "title"),
            description: description(entry),
            mime_type: named(entry, "mimeType"),
        })
    }

    fn id(&self) -> &str {
        &self.uri_template
    }
}

impl Item for Prompt {
    const KEY: &'static str = "prompts";

    fn read(entry: &mut Map<String, Value>) -> Result<Self, &'static str> {
        let name = named(entry, "name").ok_or("a prompt without a name is left out")?;
        let arguments = match entry.remove("arguments") {
            Some(Value::Array(arguments)) => arguments.into_iter().filter_map(argument).take(MAX_ARGUMENTS).collect(),
            _ => Vec::new(),
        };
        Ok(Self { name, title: named(entry, "title"), description: description(entry), arguments })
    }

    fn id(&self) -> &str {
        &self.name
    }
}

fn argument(argument: Value) -> Option<PromptArgument> {
    let Value::Object(mut argument) = argument else { return None };
    let is_required = argument.get("required") == Some(&Value::Bool(true));
    Some(PromptArgument { name: named(&mut argument, "name")?, description: description(&mut argument), is_required })
}

/// A text that is not too long to be one's name: a cut one would be another's.
fn named(entry: &mut Map<String, Value>, key: &str) -> Option<String> {
    text(entry.remove(key)).filter(|text| text.len() <= MAX_NAME_BYTES)
}

fn description(entry: &mut Map<String, Value>) -> Option<String> {
    text(entry.remove("description")).map(|text| capped_to(text, MAX_DESCRIPTION_BYTES))
}

/// That something is there twice, for people.
pub(super) fn twice(id: &str) -> String {
    format!("`{}` is listed twice: the first one is kept", shown_name(id))
}
