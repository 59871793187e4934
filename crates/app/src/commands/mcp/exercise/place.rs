//! The folder of an exercise: a configuration with one server, and data that nobody else uses.

use std::fmt::Write;
use std::path::PathBuf;

use serde_json::Value;
use turnwright_host::Overrides;

use crate::cli::McpExercise;
use crate::exit::Failure;

/// What the server is called.
pub(super) const NAME: &str = "server";

/// See the module. Removed when it is dropped.
pub(super) struct Place {
    folder: PathBuf,
}

impl Place {
    pub(super) fn new(exercise: &McpExercise) -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("turnwright-exercise-{}", std::process::id()));
        let made = std::fs::create_dir(&folder);
        let place = Self { folder };
        let written = made.and_then(|()| std::fs::write(place.file(), configuration(exercise)));
        let folder = place.folder.display();
        written.map_err(|error| Failure::failed(format!("{folder} cannot be used: {error}")))?;
        Ok(place)
    }

    fn file(&self) -> PathBuf {
        self.folder.join("turnwright.toml")
    }

    pub(super) fn overrides(&self) -> Overrides {
        Overrides { config: Some(self.file()), data_dir: Some(self.folder.join("data")), ..Overrides::default() }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.folder) {
            tracing::warn!(%error, folder = %self.folder.display(), "the folder of an exercise stays");
        }
    }
}

fn configuration(exercise: &McpExercise) -> String {
    // What is quoted for JSON is quoted for TOML; nothing of it is a variable.
    let quoted = |text: &str| Value::from(text.replace('$', "$$")).to_string();
    let approve = if exercise.yes { "all" } else { "read-only" };
    let mut text = format!(
        "model = \"practice/practice\"\napprove = \"{approve}\"\n[mcp]\nfiles = []\n[mcp.servers.{NAME}]\nurl = {}\n",
        quoted(&exercise.url)
    );
    let oauth = [
        ("client_id", &exercise.client_id),
        ("client_secret", &exercise.client_secret),
        ("client_metadata_url", &exercise.client_metadata_url),
    ];
    let grant = exercise.client_credentials.then(|| "client_credentials".to_owned());
    let oauth = oauth.into_iter().chain([("grant", &grant)]).collect::<Vec<_>>();
    if oauth.iter().any(|(_, value)| value.is_some()) {
        let _ = writeln!(text, "[mcp.servers.{NAME}.oauth]");
    }
    for (key, value) in oauth {
        if let Some(value) = value {
            let _ = writeln!(text, "{key} = {}", quoted(value));
        }
    }
    text
}
