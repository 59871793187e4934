//! A folder in which the binary runs, and what came of it.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// No wait of these tests is longer; none is measured.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);

/// How every answer of the practice model begins.
pub(crate) const PRACTICE: &str = "Practice model (no language model, only word matching): ";

/// A folder with a configuration, and data beside it.
pub(crate) struct Place {
    folder: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

/// What a run of the binary gave.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    /// A folder in which the practice model is chosen.
    pub(crate) fn new() -> Self {
        Self::with("")
    }

    /// The same, with more in its configuration.
    pub(crate) fn with(config: &str) -> Self {
        let database = own_database().map(|address| ("TURNWRIGHT_DATABASE".to_owned(), address));
        let place = Self { folder: tempfile::tempdir().unwrap(), variables: database.into_iter().collect() };
        place.write("turnwright.toml", format!("model = \"practice/practice\"\n{config}"));
        place.write("a.txt", "hello file\n");
        std::fs::create_dir(place.path("config")).unwrap();
        place.write("config/mcp-servers.json", "{\"mcpServers\": {}}");
        place
    }

    /// One whose data is on PostgreSQL, whatever the other tests use; `None` where there is none.
    pub(crate) fn on_postgres() -> Option<Self> {
        let database = own_schema(&test_postgres()?);
        Some(Self::new().with_variable("TURNWRIGHT_DATABASE", &database))
    }

    /// The address of its database, where that is not in its folder.
    pub(crate) fn database(&self) -> Option<&str> {
        self.variables.iter().rfind(|(name, _)| name == "TURNWRIGHT_DATABASE").map(|(_, address)| address.as_str())
    }

    /// The same with one more variable of the environment.
    pub(crate) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// The binary with these words, in a clean environment.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        self.clean(Command::new(env!("CARGO_BIN_EXE_turnwright")), words)
    }

    /// A program with these words, in a clean environment.
    pub(crate) fn clean(&self, mut command: Command, words: &[&str]) -> Command {
        let path = std::env::var_os("PATH").unwrap();
        command.args(words).current_dir(self.folder.path()).env_clear().env("PATH", path);
        command.env("HOME", self.folder.path()).env("TURNWRIGHT_DATA_DIR", self.path("data")).env("TERM", "xterm");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs the binary with nothing on standard input.
    pub(crate) fn run(&self, words: &[&str]) -> Ran {
        self.run_with(words, "")
    }

    /// Runs the binary with `input` on standard input.
    pub(crate) fn run_with(&self, words: &[&str], input: impl AsRef<[u8]>) -> Ran {
        let mut command = self.command(words);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.as_ref().to_vec();
        let writer = thread::spawn(move || drop(stdin.write_all(&input)));
        let ran = Ran::of(child.wait_with_output().unwrap());
        writer.join().unwrap();
        ran
    }

    /// Runs the binary and reads what it prints as JSON.
    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let ran = self.run(words);
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
    }

    /// Begins a turn that waits for a person to allow a write to `b.txt`.
    pub(crate) fn park(&self, conversation: &str) {
        let ran = self.run(&["chat", "write \"hi\" to file \"b.txt\"", "--conversation", conversation]);
        assert_eq!(ran.code, Some(3), "{ran:?}");
    }
}

/// The address of a schema that nobody else has, where `TURNWRIGHT_TEST_DATABASE=postgres` wants the tests to use the server of
/// `scripts/start-test-postgres`.
pub(crate) fn own_database() -> Option<String> {
    std::env::var("TURNWRIGHT_TEST_DATABASE").ok().filter(|kind| kind == "postgres")?;
    let server = test_postgres();
    Some(own_schema(&server.unwrap_or_else(|| unreachable!("these tests are run by scripts/start-test-postgres"))))
}

/// The server of `scripts/start-test-postgres`; says otherwise that the test is skipped, or fails where that must not be.
pub(crate) fn test_postgres() -> Option<String> {
    let server = std::env::var("TURNWRIGHT_TEST_POSTGRES").ok();
    if server.is_none() {
        let is_required = std::env::var_os("TURNWRIGHT_REQUIRE_TEST_POSTGRES").is_some_and(|value| value == "1");
        assert!(!is_required, "no PostgreSQL: run the tests by `scripts/start-test-postgres COMMAND`");
        println!("skipped: no PostgreSQL: run the tests by `scripts/start-test-postgres COMMAND`");
    }
    server
}

/// The address of a schema of a server that nobody else has.
pub(crate) fn own_schema(server: &str) -> String {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    format!("{server}?schema=e{}_{number}", std::process::id())
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// Waits until `ready` says something.
pub(crate) fn wait_for<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = ready() {
            return found;
        }
        assert!(begun.elapsed() < LIMIT, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Waits for a child, and ends it where it does not end by itself.
pub(crate) fn wait(child: &mut Child) -> Option<i32> {
    let code = wait_for("the end of the process", || child.try_wait().unwrap());
    code.code()
}

/// Reads a stream of a child on a thread, so that it can be looked at while it grows.
pub(crate) fn follow(mut stream: impl Read + Send + 'static) -> std::sync::Arc<std::sync::Mutex<String>> {
    let text = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let told = text.clone();
    thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(read) = stream.read(&mut bytes) {
            if read == 0 {
                return;
            }
            told.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
    });
    text
}
