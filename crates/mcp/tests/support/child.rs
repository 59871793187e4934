//! This test binary once more, as a process of its own that can be killed or can meet another.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Runs this one test in another process, with this variable, by which it knows what it is to do there.
pub(crate) fn run_again(test: &str, variable: &str, value: impl AsRef<OsStr>) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(variable, value)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Waits until the process has made the file `ready` in this folder.
pub(crate) async fn until_ready(host: &mut Child, folder: &Path, limit: Duration) {
    let ready = async {
        while !folder.join("ready").exists() {
            assert!(host.try_wait().unwrap().is_none(), "the host ended by itself");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(limit, ready).await.expect("the host is ready");
}
