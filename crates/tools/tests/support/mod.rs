//! Calls tools as the engine does.

pub(crate) mod site;

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use turnwright_core::{ToolErrorKind, text_of};
use turnwright_engine::source::{CallContext, Progress, ProgressSink, SourceCall, ToolError, ToolOutput, ToolSource};
use turnwright_tools::{CommandConfig, FilesystemConfig, TypedSource, command, filesystem};

#[derive(Debug)]
struct NoProgress;

impl ProgressSink for NoProgress {
    fn report(&self, _: Progress) {}
}

pub(crate) fn context(cancel: &CancellationToken) -> CallContext {
    CallContext::new(cancel.clone(), Arc::new(NoProgress))
}

pub(crate) fn call_of(tool: &str, arguments: Value) -> SourceCall {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    SourceCall { tool: tool.to_owned(), arguments, idempotency_key: "key".to_owned() }
}

pub(crate) async fn call(source: &TypedSource, tool: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
    source.call(call_of(tool, arguments), context(&CancellationToken::new())).await
}

/// The text of a success.
pub(crate) async fn text(source: &TypedSource, tool: &str, arguments: Value) -> String {
    text_of(&call(source, tool, arguments).await.expect("the call works").content)
}

/// The kind and the text of a failure.
pub(crate) async fn failure(source: &TypedSource, tool: &str, arguments: Value) -> (ToolErrorKind, String) {
    let error = call(source, tool, arguments).await.expect_err("the call fails");
    (error.kind, error.model_text)
}

/// An outside with a secret, and an inside that is the root.
pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) outside: PathBuf,
    pub(crate) root: PathBuf,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let (outside, root) = (base.join("outside"), base.join("root"));
        std::fs::create_dir_all(&outside).unwrap();
        std::fs::create_dir_all(&root).unwrap();
        std::fs::write(outside.join("secret.txt"), "secret").unwrap();
        Self { folder, outside, root }
    }

    pub(crate) fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn get(&self, path: &str) -> String {
        std::fs::read_to_string(self.root.join(path)).unwrap()
    }

    pub(crate) fn link(&self, target: impl AsRef<std::path::Path>, path: &str) {
        std::os::unix::fs::symlink(target, self.root.join(path)).unwrap();
    }

    pub(crate) fn filesystem(&self) -> TypedSource {
        filesystem(FilesystemConfig::new(vec![self.root.clone()])).unwrap()
    }

    pub(crate) fn config(&self) -> FilesystemConfig {
        FilesystemConfig::new(vec![self.root.clone()])
    }

    pub(crate) fn command(&self) -> TypedSource {
        command(self.command_config()).unwrap()
    }

    pub(crate) fn command_config(&self) -> CommandConfig {
        CommandConfig::new(vec![self.root.clone()], vec![("PATH".into(), "/usr/bin:/bin".into())])
    }
}
