//! The real binary, killed with SIGKILL at chosen instants of a real turn and started again: the turn is finished or
//! parked, the history is complete, and an unsafe tool never has its effect twice for one call. On PostgreSQL, where
//! `TURNWRIGHT_TEST_DATABASE=postgres` wants that, the next process waits for the lease of the one that was killed.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and bounds its own waits"
)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use turnwright_testkit::model_server::{ModelServer, Piece, call_chunk, finish_chunk, results_shown, text_chunk};

/// No wait of these tests is longer; none is measured.
const LIMIT: Duration = Duration::from_mins(1);

/// When the process is killed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Moment {
    /// At a point of the model's answers.
    Model(&'static str),
    /// When a command is just before or just after its effect: `before-one`.
    Tool(&'static str),
    /// When the turn is parked.
    Parked,
}

const MOMENTS: [Moment; 15] = [
    Moment::Model("asked-1"),
    Moment::Model("text-1"),
    Moment::Model("arguments-1"),
    Moment::Model("calls-1"),
    Moment::Model("finish-1"),
    Moment::Tool("before-one"),
    Moment::Tool("after-one"),
    Moment::Tool("before-two"),
    Moment::Tool("after-two"),
    Moment::Model("asked-2"),
    Moment::Model("calls-2"),
    Moment::Tool("before-three"),
    Moment::Tool("after-three"),
    Moment::Model("asked-3"),
    Moment::Model("text-3"),
];

struct World {
    folder: tempfile::TempDir,
    model: ModelServer,
    /// Where it is not in the folder.
    database: Option<String>,
}

/// The address of a schema that nobody else has, where the tests use the server of `scripts/start-test-postgres`.
fn own_schema() -> Option<String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    std::env::var("TURNWRIGHT_TEST_DATABASE").ok().filter(|kind| kind == "postgres")?;
    let server = std::env::var("TURNWRIGHT_TEST_POSTGRES").unwrap();
    Some(format!("{server}?schema=k{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)))
}

/// A world for each of these moments, all at once.
fn each(moments: impl IntoIterator<Item = Moment>, check: impl Fn(Moment) + Sync) {
    thread::scope(|scope| {
        for moment in moments {
            let check = &check;
            scope.spawn(move || check(moment));
        }
    });
}

/// Two steps with tools, then the answer: the first asks for two calls of an unsafe tool, the second for one.
fn script(folder: &Path) -> impl Fn(&Value) -> Vec<Piece> + Send + Sync + 'static {
    let folder = folder.display().to_string();
    let effect = |name: &str| {
        let hold = |place: &str| {
            format!("touch {folder}/{place}-{name}; while [ -e {folder}/stop-{place}-{name} ]; do sleep 0.02; done")
        };
        json!({"command": format!("{}; echo {name} >> {folder}/effects; {}", hold("before"), hold("after"))}).to_string()
    };
    let (one, two, three) = (effect("one"), effect("two"), effect("three"));
    move |request| match results_shown(request) {
        0 => {
            let (first, rest) = one.split_at(one.len() / 2);
            vec![
                Piece::Point("asked-1"),
                text_chunk("I will "),
                Piece::Point("text-1"),
                text_chunk("run two commands."),
                call_chunk(0, "command__run", first),
                Piece::Point("arguments-1"),
                call_chunk(0, "", rest),
                call_chunk(1, "command__run", &two),
                Piece::Point("calls-1"),
                finish_chunk("tool_calls"),
                Piece::Point("finish-1"),
                Piece::Done,
            ]
        }
        2 => vec![
            Piece::Point("asked-2"),
            call_chunk(0, "command__run", &three),
            Piece::Point("calls-2"),
            finish_chunk("tool_calls"),
            Piece::Done,
        ],
        _ => vec![
            Piece::Point("asked-3"),
            text_chunk("All "),
            Piece::Point("text-3"),
            text_chunk("done."),
            finish_chunk("stop"),
            Piece::Done,
        ],
    }
}

impl World {
    fn new(moment: Moment, approve: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let stop = match moment {
            Moment::Model(point) => Some(point),
            Moment::Tool(place) => {
                std::fs::write(folder.path().join(format!("stop-{place}")), "").unwrap();
                None
            }
            Moment::Parked => None,
        };
        let model = ModelServer::start(stop, script(folder.path())).unwrap();
        let config = format!(
            "model = \"scripted/m\"\napprove = \"{approve}\"\n[providers.scripted]\ndialect = \"openai-chat\"\n\
             base_url = \"{}\"\nmodels = [\"m\"]\nmax_retries = 0\n[tools.filesystem]\nenabled = false\n",
            model.base_url()
        );
        std::fs::write(folder.path().join("turnwright.toml"), config).unwrap();
        Self { folder, model, database: own_schema() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_turnwright"));
        command.args(args).arg("--config").arg(self.path("turnwright.toml")).arg("--data-dir").arg(self.path("data"));
        command.current_dir(self.folder.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.envs(self.database.iter().map(|address| ("TURNWRIGHT_DATABASE", address)));
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().ends_with("_API_KEY")) {
            command.env_remove(name);
        }
        command
    }

    fn chat(&self) -> Child {
        self.command(&["chat", "Run the commands.", "--conversation", "kill", "--output", "json"]).spawn().unwrap()
    }

    /// Runs to the end: exit code, the printed object, standard error.
    fn run(&self, args: &[&str]) -> (i32, Value, String) {
        let output = self.command(args).output().unwrap();
        let printed = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        (output.status.code().unwrap(), printed, String::from_utf8_lossy(&output.stderr).into_owned())
    }

    fn effects(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("effects")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn wait_for_file(&self, name: &str) {
        let begun = Instant::now();
        while !self.path(name).exists() {
            assert!(begun.elapsed() < LIMIT, "{name} never came");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the moment and kills the process there.
    fn kill_at(&self, mut child: Child, moment: Moment) {
        match moment {
            Moment::Model(point) => assert!(self.model.wait_for(point, LIMIT), "{point} never came"),
            Moment::Tool(place) => self.wait_for_file(place),
            Moment::Parked => drop(child.wait().unwrap()),
        }
        // This is SIGKILL: nothing of the process runs after it.
        let _gone = child.kill();
        child.wait().unwrap();
        self.model.run_free();
    }

    /// Lets commands that hold go on.
    fn free_tools(&self) {
        for entry in std::fs::read_dir(self.folder.path()).unwrap().flatten() {
            if entry.file_name().to_string_lossy().starts_with("stop-") {
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
    }

    /// Starts again, answers whatever waits, and gives the object of the turn's end.
    fn finish(&self) -> Value {
        let resume = ["chat", "--conversation", "kill", "--output", "json"];
        let (mut code, mut printed, mut said) = self.run(&resume);
        for _ in 0..8 {
            if code != 3 {
                break;
            }
            let waiting = printed["waiting"].as_array().unwrap().clone();
            for call in waiting {
                let decision = if call["reason"] == "unknown_outcome" { "happened" } else { "allow" };
                let _decided =
                    self.run(&["approvals", "decide", call["id"].as_str().unwrap(), decision, "--conversation", "kill"]);
            }
            (code, printed, said) = self.run(&resume);
        }
        assert_eq!(code, 0, "{printed}\n{said}");
        printed
    }
}

fn assert_whole(world: &World, printed: &Value, what: &str) {
    let messages = printed["messages"].as_array().unwrap();
    let asked = messages.iter().filter_map(|message| message["tool_calls"].as_array()).flatten();
    let calls: Vec<&str> = asked.map(|call| call["id"].as_str().unwrap()).collect();
    let answers = messages.iter().filter(|message| message["role"] == "tool");
    let results: Vec<&str> = answers.map(|message| message["tool_call_id"].as_str().unwrap()).collect();
    assert_eq!(printed["status"], "completed", "{what}: {printed}");
    assert_eq!(printed["text"], "All done.", "{what}");
    assert_eq!(messages[0]["content"], "Run the commands.", "{what}");
    assert_eq!(results, calls, "{what}: one result per call, in call order");
    assert_eq!(calls.len(), 3, "{what}");
    let effects = world.effects();
    for name in ["one", "two", "three"] {
        let times = effects.iter().filter(|effect| *effect == name).count();
        assert!(times <= 1, "{what}: {name} happened {times} times");
    }
}

#[test]
fn a_chat_killed_at_any_moment_is_finished_by_the_next_and_repeats_no_effect() {
    each(MOMENTS, |moment| {
        let world = World::new(moment, "all");
        world.kill_at(world.chat(), moment);
        world.free_tools();
        assert_whole(&world, &world.finish(), &format!("{moment:?}"));
    });
    println!("killed at {} moments", MOMENTS.len());
}

#[test]
fn a_chat_that_asks_killed_before_anything_ran_goes_on_and_runs_each_call_once() {
    let before = MOMENTS.into_iter().take(5).chain([Moment::Parked]);
    each(before, |moment| {
        let world = World::new(moment, "ask");
        world.kill_at(world.chat(), moment);
        assert_whole(&world, &world.finish(), &format!("{moment:?}"));
        assert_eq!(world.effects().len(), 3, "{moment:?}: what a person allowed has happened");
    });
}

#[test]
fn a_decision_killed_while_the_tool_runs_asks_what_happened() {
    each([Moment::Tool("before-one"), Moment::Tool("after-one")], |moment| {
        let world = World::new(moment, "ask");
        let (code, printed, said) = world.run(&["chat", "Run the commands.", "--conversation", "kill", "--output", "json"]);
        assert_eq!(code, 3, "{printed}\n{said}");
        let first = printed["waiting"][0]["id"].as_str().unwrap();
        let child = world.command(&["approvals", "decide", first, "allow", "--conversation", "kill"]).spawn().unwrap();
        world.kill_at(child, moment);
        let (code, printed, said) = world.run(&["chat", "--conversation", "kill", "--output", "json"]);
        assert_eq!(code, 3, "{printed}\n{said}");
        let waiting = printed["waiting"].as_array().unwrap();
        let reasons: Vec<&str> = waiting.iter().map(|call| call["reason"].as_str().unwrap()).collect();
        assert!(reasons.contains(&"unknown_outcome"), "{reasons:?}");
        world.free_tools();
        assert_whole(&world, &world.finish(), &format!("{moment:?}"));
    });
}

#[test]
fn a_turn_that_was_left_behind_goes_on_as_chosen() {
    each([Moment::Model("asked-1"), Moment::Model("calls-1"), Moment::Model("asked-2")], |moment| {
        let world = World::new(moment, "all");
        world.kill_at(world.chat(), moment);
        let effects = world.effects();
        let (code, _, said) = world.run(&["chat", "--conversation", "kill", "--approve", "none"]);
        assert_eq!(code, 2, "{moment:?}: {said}");
        assert!(said.contains("approve all") && said.contains("--retry stops it"), "{said}");
        let retry = ["chat", "--conversation", "kill", "--retry", "--approve", "none", "--output", "json"];
        let (code, printed, said) = world.run(&retry);
        assert_eq!((code, &printed["text"]), (0, &json!("All done.")), "{moment:?}: {said}");
        assert_eq!(world.effects(), effects, "{moment:?}: no command ran");
    });
}
