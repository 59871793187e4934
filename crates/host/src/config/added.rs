//! A server that is not in the configuration file: the same keys, checked by the same schema.

use std::path::Path;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::check::Check;
use super::document::{self, Node, NodeValue};
use super::key_path::KeyPath;
use super::meaning::Meaning;
use super::secret_table::{SecretTables, takes_from_here};
use super::{Config, McpServer, Place, Problem, Problems, schema};
use crate::Environment;

/// Whether something that this machine has would be put into keys of `[mcp.servers.NAME]`: by `${…}`, or by a table that says where a
/// secret is.
pub(crate) fn mcp_server_takes_from_here(keys: &Map<String, Value>) -> bool {
    let schema = schema::json_schema();
    let of_server = schema.pointer("/properties/mcp/properties/servers/additionalProperties");
    keys.iter().any(|(key, value)| {
        let of_key = of_server.and_then(|server| schema::properties(server)?.get(key));
        takes_from_here(value, of_key.unwrap_or(&Value::Null))
    })
}

/// Reads the keys of `[mcp.servers.NAME]` from JSON, variables put in. Relative paths start at `folder`; null is a key that
/// is not there.
///
/// # Errors
/// All that is wrong with them.
pub(crate) fn mcp_server(
    name: &str,
    keys: &Map<String, Value>,
    folder: &Path,
    environment: &Environment,
) -> Result<(McpServer, Vec<Problem>), Problems> {
    let (mut problems, mut warnings) = (Vec::new(), Vec::new());
    let place = Place::File { name: name.into(), line: None };
    let environment = &environment.reading_in(folder);
    let server = document::from_json(keys, &place, &KeyPath::of(["mcp", "servers", name]), environment, &mut problems);
    let in_table = |key: &str, node| Node::new(NodeValue::Table(IndexMap::from([(key.to_owned(), node)])), place.clone());
    let mut root = in_table("mcp", in_table("servers", in_table(name, server)));
    let schema = schema::json_schema();
    let mut aside = Vec::new();
    SecretTables { environment, problems: &mut problems, aside: &mut aside }.resolve(&mut root, &schema, &KeyPath::default());
    problems.extend(aside.into_iter().map(|left_out| left_out.problem));
    let home = environment.home();
    let mut check =
        Check { root: &schema, file_folder: folder, working_directory: folder, home: home.as_deref(), problems: &mut problems };
    let value = check.value(&root, &schema, &KeyPath::default()).unwrap_or(Value::Null);
    let mut config: Config = match serde_json::from_value(value) {
        Ok(config) => config,
        Err(error) if problems.is_empty() => return Err(Problem::new(place, error.to_string()).into()),
        Err(_) => Config::default(),
    };
    Meaning { config: &config, root: &root }.servers(None, &mut problems, &mut warnings);
    let server = config.mcp.servers.shift_remove(name);
    match (server, Problems::new(problems)) {
        (Some(server), None) => Ok((server, warnings)),
        (_, Some(problems)) => Err(problems),
        (None, None) => Err(Problem::new(place, "it is no server").into()),
    }
}
