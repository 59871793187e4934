//! `[tools.http.NAME]`: HTTP APIs whose operations are tools.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::format::header_name;
use super::{Secret, schema};

/// An HTTP API whose operations are tools, from its OpenAPI 3 description: `NAME__operation`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpTools {
    /// Its OpenAPI description, in JSON or YAML: a file (a path is meant from the folder of the configuration file) or an address.
    #[schemars(extend("format" = "document"))]
    pub description: String,
    /// Whether its tools are offered.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Where the API is, what comes before the paths of the description; its first server unless said otherwise.
    #[serde(default)]
    #[schemars(extend("format" = "api-url"))]
    pub base_url: Option<String>,
    /// Which operations are offered, by globs over their ids, the names of their tools, or their methods and paths
    /// (`GET /issues/*`); all unless said otherwise.
    #[serde(default)]
    #[schemars(extend("format" = "operation-glob"))]
    pub operations: Vec<String>,
    /// Which of them are not.
    #[serde(default)]
    #[schemars(extend("format" = "operation-glob"))]
    pub except: Vec<String>,
    /// How it is told who asks, in one of these ways.
    #[serde(default)]
    pub auth: Option<HttpAuthentication>,
    /// Headers of every request.
    #[serde(default)]
    #[schemars(extend("propertyNames" = { "format": "header-name" }))]
    pub headers: IndexMap<String, Secret>,
    /// What the model is given of the answers, by globs over operations: ways such as `issues.fields.summary`.
    #[serde(default)]
    #[schemars(schema_with = "schema::http_fields")]
    pub fields: IndexMap<String, Vec<String>>,
    /// What the operator declares of operations, by globs over them; the later of two wins.
    #[serde(default)]
    #[schemars(extend("propertyNames" = { "format": "operation-glob" }))]
    pub tools: IndexMap<String, HttpOperations>,
    /// How long an answer may take with its redirects, in milliseconds; 30 seconds unless said otherwise.
    #[serde(default)]
    #[schemars(range(min = 1, max = 600_000))]
    pub timeout_ms: Option<u64>,
    /// The most that is read of an answer, in bytes; 4 MiB unless said otherwise.
    #[serde(default)]
    #[schemars(range(min = 1, max = 104_857_600))]
    pub max_bytes: Option<u64>,
}

fn yes() -> bool {
    true
}

/// How an API is told who asks: exactly one of these.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HttpAuthentication {
    /// A token, sent as `Authorization: Bearer …`.
    pub bearer: Option<Secret>,
    /// A user and a password.
    pub basic: Option<HttpBasic>,
    /// A header of the API's own.
    pub header: Option<HttpNamed>,
    /// A parameter of the query.
    pub query: Option<HttpNamed>,
}

/// A user and a password, sent as `Authorization: Basic …`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpBasic {
    /// The user.
    pub user: String,
    /// The password, or the token that stands for one.
    pub password: Secret,
}

/// A name with a secret value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpNamed {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Secret,
}

/// What the operator declares of operations. What is not said stays as it is: `GET` and `HEAD` change nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HttpOperations {
    /// Whether they change nothing: they run without being asked about, and may be run again.
    pub read_only: Option<bool>,
    /// Whether running one twice is the same as running it once.
    pub replayable: Option<bool>,
    /// Whether their calls run one after another.
    pub serial: Option<bool>,
    /// Whether they are asked again and again for how far something is: their calls are no loop.
    pub polled: Option<bool>,
}

impl HttpTools {
    /// What a schema cannot say: the keys below its table, and what is wrong with what is there.
    pub(crate) fn wrong(&self) -> Vec<(Vec<&str>, &'static str)> {
        let mut found = Vec::new();
        let HttpAuthentication { bearer, basic, header, query } = self.auth.clone().unwrap_or_default();
        let ways = [bearer.is_some(), basic.is_some(), header.is_some(), query.is_some()];
        if self.auth.is_some() && ways.iter().filter(|is_given| **is_given).count() != 1 {
            found.push((vec!["auth"], "must have exactly one of `bearer`, `basic`, `header`, `query`"));
        }
        if basic.as_ref().is_some_and(|basic| basic.user.contains(':')) {
            found.push((vec!["auth", "basic", "user"], "holds `:`, which ends a user's name; it must be a name without it"));
        }
        if header.as_ref().is_some_and(|header| header_name(&header.name).is_err()) {
            found.push((
                vec!["auth", "header", "name"],
                "must be the name of an HTTP header, such as `X-Api-Key`, and not one that says how a request is sent",
            ));
        }
        if query.as_ref().is_some_and(|query| query.name.is_empty()) {
            found.push((vec!["auth", "query", "name"], "is empty; it must be the name of a parameter, such as `api_key`"));
        }
        let mut secrets: Vec<(Vec<&str>, String)> = Vec::new();
        secrets.extend(bearer.map(|token| (vec!["auth", "bearer"], token.expose().to_owned())));
        secrets.extend(basic.map(|basic| (vec!["auth", "basic", "password"], basic.password.expose().to_owned())));
        secrets.extend(header.map(|header| (vec!["auth", "header", "value"], header.value.expose().to_owned())));
        secrets.extend(self.headers.iter().map(|(name, value)| (vec!["headers", name.as_str()], value.expose().to_owned())));
        let is_line = |text: &str| !text.chars().any(|letter| letter.is_ascii_control() && letter != '\t');
        let lines = secrets.into_iter().filter(|(_, secret)| !is_line(secret));
        found.extend(
            lines.map(|(keys, _)| (keys, "holds a line break or another control character; it must be one line of text")),
        );
        found
    }
}
