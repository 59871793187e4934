//! The members of a run: nodes, NATS servers and a database, each with its own network namespace, small disk and log; kept
//! running as a service manager does.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Error, Result};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::http::Door;
use crate::network::{Network, run};
use crate::plan::{Member, NODES};

const PASSWORD: &str = "tw-test-password";
/// No start takes longer.
const START: Duration = Duration::from_mins(1);
/// How long after its start what ended by itself is started again.
const RESTART_AFTER: Duration = Duration::from_secs(1);
/// The longest that a process may take to stand still once it is told to.
const STANDS_STILL_WITHIN: Duration = Duration::from_secs(20);

/// What the members run.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    pub(crate) turnwright: PathBuf,
    pub(crate) nats: PathBuf,
    /// The folder with `postgres` and `initdb`.
    pub(crate) postgres: PathBuf,
    /// The library that moves wall clocks, where there is one.
    pub(crate) clock: Option<PathBuf>,
}

/// Whether a member should run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Running,
    Killed,
}

#[derive(Debug)]
struct Process {
    child: Option<Child>,
    wanted: Wanted,
    launched: Instant,
    /// How often it was started, since it had ended by itself.
    ended: u32,
}

/// All members. Dropped, they are killed.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) network: Network,
    folder: PathBuf,
    programs: Programs,
    processes: BTreeMap<Member, Process>,
    token: String,
    /// When a node went on after SIGSTOP: its process, and the time since 1970.
    pub(crate) resumed: Vec<(u32, i128)>,
}

impl Cluster {
    /// Starts all of them, with a configuration that goes before what a cluster needs.
    pub(crate) fn start(folder: &Path, programs: Programs, network: Network, config: &str) -> Result<Self> {
        let mut cluster = Self {
            network,
            folder: folder.to_owned(),
            programs,
            processes: BTreeMap::new(),
            token: String::new(),
            resumed: Vec::new(),
        };
        for member in Member::all() {
            let disk = cluster.disk(member);
            std::fs::create_dir_all(&disk)?;
            let room = if member == Member::Postgres { "size=500m" } else { "size=48m" };
            run("mount", &["-t", "tmpfs", "-o", room, "tmpfs", &disk.display().to_string()])?;
        }
        cluster.initialise_database()?;
        for node in 0..NODES {
            let text = format!("{config}{}", cluster.own_config(Member::Node(node)));
            std::fs::write(cluster.disk(Member::Node(node)).join("turnwright.toml"), text)?;
            std::fs::write(cluster.clock(Member::Node(node)), "+0")?;
        }
        for member in Member::all().into_iter().filter(|member| !matches!(member, Member::Node(_))) {
            cluster.launch(member)?;
        }
        cluster.await_answer("PostgreSQL", |cluster| cluster.sql("SELECT 1").is_ok())?;
        cluster.await_answer("a leader of NATS", |cluster| cluster.nats_leader("meta").is_some())?;
        cluster.turnwright(&["users", "add", "chaos", "--role", "admin"])?;
        let token = cluster.turnwright(&["users", "token", "chaos"])?;
        token.trim().clone_into(&mut cluster.token);
        for node in 0..NODES {
            cluster.launch(Member::Node(node))?;
        }
        cluster.await_answer("the nodes", |cluster| {
            let answers = cluster.doors().into_iter().map(|door| door.ask("GET /readyz", "", &Value::Null));
            answers.into_iter().all(|answer| answer.is_ok_and(|answer| answer.body["nodes"] == NODES))
        })?;
        Ok(cluster)
    }

    fn await_answer(&mut self, what: &str, is_there: impl Fn(&Self) -> bool) -> Result<()> {
        let begun = Instant::now();
        while !is_there(self) {
            if begun.elapsed() > START {
                return Err(Error::other(format!("waited in vain for {what}; the logs are in {}", self.folder.display())));
            }
            self.keep_up()?;
            thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// The doors of the nodes.
    pub(crate) fn doors(&self) -> Vec<Door> {
        let address = |node| SocketAddr::from((self.network.address(Member::Node(node)), 8700));
        (0..NODES).map(|node| Door { address: address(node), token: self.token.clone() }).collect()
    }

    /// A member's own small file system.
    pub(crate) fn disk(&self, member: Member) -> PathBuf {
        self.folder.join(name(member))
    }

    /// The file by which its wall clock is moved.
    pub(crate) fn clock(&self, member: Member) -> PathBuf {
        self.folder.join(format!("clock-{}", name(member)))
    }

    /// Whether clocks can be moved.
    pub(crate) fn has_clocks(&self) -> bool {
        self.programs.clock.is_some()
    }

    pub(crate) fn database(&self) -> String {
        format!("postgres://turnwright:{PASSWORD}@{}:5432/postgres", self.network.address(Member::Postgres))
    }

    fn own_config(&self, member: Member) -> String {
        let nats: Vec<String> =
            (0..NODES).map(|at| format!("nats://{}:4222", self.network.address(Member::Nats(at)))).collect();
        format!(
            "[server]\nlisten = \"{}:8700\"\nauth = \"tokens\"\n[nats]\nurl = \"{}\"\nreplicas = 3\nname = \"{}\"\n",
            self.network.address(member),
            nats.join(","),
            name(member)
        )
    }

    /// Runs the binary for its output.
    fn turnwright(&self, words: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.programs.turnwright);
        command.args(words).current_dir(&self.folder).env_clear().env("TURNWRIGHT_DATABASE", self.database());
        command.env("TURNWRIGHT_DATA_DIR", self.folder.join("data")).env("HOME", &self.folder);
        let output = command.stdin(Stdio::null()).output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(String::from_utf8_lossy(&output.stdout).into_owned()) } else { Err(Error::other(said)) }
    }

    /// What the database says, as `psql` prints it.
    pub(crate) fn sql(&self, query: &str) -> Result<String> {
        run("psql", &[&self.database(), "--no-psqlrc", "--tuples-only", "--no-align", "--command", query])
    }

    fn initialise_database(&self) -> Result<()> {
        let (data, password) = (self.disk(Member::Postgres).join("data"), self.folder.join("password"));
        std::fs::write(&password, PASSWORD)?;
        std::fs::set_permissions(&self.folder, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        let disk = self.disk(Member::Postgres).display().to_string();
        run("chown", &["postgres", &disk])?;
        let initdb = self.programs.postgres.join("initdb").display().to_string();
        let (data, password) = (data.display().to_string(), password.display().to_string());
        let arguments =
            ["--pgdata", &data, "--username", "turnwright", "--encoding", "UTF8", "--auth", "scram-sha-256", "--pwfile"];
        run("setpriv", &[&AS_POSTGRES[..], &[&initdb], &arguments, &[&password, "--no-sync", "--locale", "C.UTF-8"]].concat())?;
        let access = Path::new(&data).join("pg_hba.conf");
        let rules = std::fs::read_to_string(&access)?;
        std::fs::write(&access, format!("{rules}\nhost all all {} scram-sha-256\n", self.network.range()))
    }

    /// What starts a member.
    fn command(&self, member: Member) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.network.space(member)]).current_dir(self.disk(member));
        let address = self.network.address(member).to_string();
        let disk = self.disk(member).display().to_string();
        match member {
            Member::Node(_) => {
                command.arg(&self.programs.turnwright).arg("serve").env_clear();
                command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", &disk);
                command.env("TURNWRIGHT_DATABASE", self.database()).env("TURNWRIGHT_DATA_DIR", self.disk(member).join("data"));
                if let Some(library) = &self.programs.clock {
                    command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", self.clock(member));
                    command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("FAKETIME_CACHE_DURATION", "1");
                }
            }
            Member::Nats(at) => {
                let routes: Vec<String> =
                    (0..NODES).map(|at| format!("nats://{}:6222", self.network.address(Member::Nats(at)))).collect();
                command.arg(&self.programs.nats).args(["-n", &format!("n{at}"), "-a", &address, "-p", "4222", "-m", "8222"]);
                command.args(["-js", "-sd", &disk, "--cluster_name", "chaos", "--cluster", &format!("nats://{address}:6222")]);
                command.args(["--routes", &routes.join(",")]);
            }
            Member::Postgres => {
                command.arg("setpriv").args(AS_POSTGRES).arg(self.programs.postgres.join("postgres"));
                command.args(["-D", &format!("{disk}/data"), "-h", &address, "-k", &disk, "-c", "max_wal_size=64MB"]);
                command.args(["-c", "min_wal_size=32MB", "-c", "shared_buffers=32MB", "-c", "max_connections=100"]);
                // What survives here is what survives the end of a process, not of the machine.
                command.args(["-c", "fsync=off"]);
            }
        }
        command
    }

    fn launch(&mut self, member: Member) -> Result<()> {
        let log = File::options().append(true).create(true).open(self.folder.join(format!("{}.log", name(member))))?;
        let mut command = self.command(member);
        let child = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?;
        let launched = Instant::now();
        let new = Process { child: None, wanted: Wanted::Running, launched, ended: 0 };
        let process = self.processes.entry(member).or_insert(new);
        process.child = Some(child);
        process.wanted = Wanted::Running;
        process.launched = launched;
        Ok(())
    }

    /// Starts what ended by itself, as whoever looks after services does.
    pub(crate) fn keep_up(&mut self) -> Result<()> {
        let mut ended = Vec::new();
        for (member, process) in &mut self.processes {
            let has_ended = match &mut process.child {
                Some(child) => child.try_wait()?.is_some(),
                None => true,
            };
            if has_ended && process.wanted == Wanted::Running && process.launched.elapsed() >= RESTART_AFTER {
                process.ended += 1;
                ended.push(*member);
            }
        }
        ended.into_iter().try_for_each(|member| self.launch(member))
    }

    /// How often each member ended by itself and was started again.
    pub(crate) fn ended(&self) -> Vec<String> {
        let ended = self.processes.iter().filter(|(_, process)| process.ended > 0);
        ended.map(|(member, process)| format!("{} {} times", name(*member), process.ended)).collect()
    }

    /// Sends a signal to a member: to all processes of the database, to a node or NATS server alone.
    pub(crate) fn signal(&mut self, member: Member, signal: Signal) -> Result<()> {
        let Some(own) = self.processes.get(&member).and_then(|process| process.child.as_ref()).map(Child::id) else {
            return Ok(());
        };
        let all = match member {
            Member::Postgres => run("ip", &["netns", "pids", &self.network.space(member)])?,
            Member::Node(_) | Member::Nats(_) => own.to_string(),
        };
        if signal == Signal::SIGCONT && matches!(member, Member::Node(_)) {
            self.resumed.push((own, now_ns()));
        }
        for process in all.split_whitespace().filter_map(|process| process.parse().ok()) {
            // It may have ended meanwhile.
            let _ended = kill(Pid::from_raw(process), signal);
            if signal == Signal::SIGSTOP {
                stands_still(process)?;
            }
        }
        Ok(())
    }

    /// Ends a member with no time for anything.
    pub(crate) fn kill(&mut self, member: Member) -> Result<()> {
        if let Some(process) = self.processes.get_mut(&member) {
            process.wanted = Wanted::Killed;
        }
        self.signal(member, Signal::SIGKILL)?;
        if let Some(mut child) = self.processes.get_mut(&member).and_then(|process| process.child.take()) {
            child.wait()?;
        }
        Ok(())
    }

    /// Removes what PostgreSQL could not write where it was started without room, as its own message asks a person to.
    pub(crate) fn forget_lock(&self) -> Result<()> {
        let lock = self.disk(Member::Postgres).join("data/postmaster.pid");
        if std::fs::metadata(&lock).is_ok_and(|lock| lock.len() == 0) { std::fs::remove_file(lock) } else { Ok(()) }
    }

    /// Ends all members.
    pub(crate) fn end(&mut self) {
        for member in Member::all() {
            drop(self.kill(member));
        }
    }

    /// Starts it again.
    pub(crate) fn revive(&mut self, member: Member) -> Result<()> {
        self.launch(member)
    }

    /// Which NATS server leads: the cluster (`meta`), or a stream of this name.
    pub(crate) fn nats_leader(&self, what: &str) -> Option<Member> {
        let told = (0..NODES).find_map(|at| {
            let address = SocketAddr::from((self.network.address(Member::Nats(at)), 8222));
            let door = Door { address, token: String::new() };
            let answer = door.ask("GET /jsz?streams=true", "", &Value::Null).ok()?.body;
            let of_stream = answer["account_details"][0]["stream_detail"].as_array().and_then(|streams| {
                streams.iter().find(|stream| stream["name"] == what)?["cluster"]["leader"].as_str().map(str::to_owned)
            });
            let leader = if what == "meta" { answer["meta_cluster"]["leader"].as_str().map(str::to_owned) } else { of_stream };
            leader.filter(|leader| !leader.is_empty())
        })?;
        Some(Member::Nats(told.strip_prefix('n')?.parse().ok()?))
    }
}

const AS_POSTGRES: [&str; 6] = ["--reuid", "postgres", "--regid", "postgres", "--clear-groups", "--"];

/// A member's name, for people and files.
pub(crate) fn name(member: Member) -> String {
    match member {
        Member::Node(at) => format!("node{}", at + 1),
        Member::Nats(at) => format!("nats{}", at + 1),
        Member::Postgres => "postgres".to_owned(),
    }
}

/// The wall clock, which no fault moves for us.
pub(crate) fn now_ns() -> i128 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i128::try_from(since.as_nanos()).unwrap_or_default()
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.end();
        for member in Member::all() {
            // Tools that their node left behind.
            let left = run("ip", &["netns", "pids", &self.network.space(member)]).unwrap_or_default();
            for process in left.split_whitespace().filter_map(|process| process.parse().ok()) {
                let _ended = kill(Pid::from_raw(process), Signal::SIGKILL);
            }
            for _ in 0..50 {
                if run("umount", &[&self.disk(member).display().to_string()]).is_ok() {
                    break;
                }
                thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

/// Waits until no thread of a process runs: that a signal was sent says nothing of when each of them heard it.
fn stands_still(process: i32) -> Result<()> {
    let is_still = |stat: &str| {
        // Behind the program's name, which may hold anything.
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        state.is_none_or(|state| "TtZX".contains(state))
    };
    let begun = Instant::now();
    while begun.elapsed() < STANDS_STILL_WITHIN {
        // It, or a thread of it, may have ended meanwhile.
        let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return Ok(()) };
        let mut stats = threads.flatten().filter_map(|thread| std::fs::read_to_string(thread.path().join("stat")).ok());
        if stats.all(|stat| is_still(&stat)) {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(1));
    }
    Err(Error::other(format!("the process {process} does not stand still")))
}
