//! Ways out of the sandbox of commands: each is tried in every enclosure that this system has, and none leads anywhere.

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;

use crate::support::{call, call_of, context};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use turnwright_core::ToolErrorKind;
use turnwright_engine::source::ToolSource as _;
use turnwright_tools::{
    CommandConfig, CommandLimits, Enclosure, Protections, SandboxConfig, SandboxLauncher, SandboxMode, TypedSource, command,
};

/// What no output may hold.
const SIGN: &str = "ESCAPED";

/// A way out, as a line for the shell. It prints the sign where it got out; what it changed outside is looked at too.
struct Escape {
    name: &'static str,
    line: String,
    /// Why it is not held by Landlock alone, where it is not.
    beyond_landlock: Option<&'static str>,
}

fn escape(name: &'static str, line: impl Into<String>) -> Escape {
    Escape { name, line: line.into(), beyond_landlock: None }
}

/// A call of the kernel that must be refused before its arguments are looked at.
fn kernel(name: &'static str, arguments: &str) -> Escape {
    let line = format!("perl -e 'syscall({arguments}) == -1 && ($!{{EPERM}} || $!{{ENOSYS}}) or print \"ESCAPED\"'");
    escape(name, line)
}

fn files() -> Vec<Escape> {
    let metadata = Some("Landlock has no rule for permissions and times");
    vec![
        escape("a new file outside", "echo x > {outside}/new"),
        escape("more in a file outside", "echo x >> {outside}/secret.txt"),
        escape("an emptied file outside", ": > {outside}/secret.txt"),
        escape("a deleted file outside", "rm -f {outside}/secret.txt"),
        escape("a deleted tree outside", "rm -rf {outside}"),
        escape("a renamed file outside", "mv {outside}/secret.txt {outside}/other.txt"),
        escape("a file moved in", "mv {outside}/secret.txt stolen.txt"),
        escape("a file moved out", "echo x > mine; mv mine {outside}/mine"),
        escape("a folder outside", "mkdir {outside}/folder"),
        escape("a FIFO outside", "mkfifo {outside}/pipe"),
        escape("a link outside", "ln -s /etc {outside}/link"),
        escape("through a link", "ln -s {outside} link; echo x > link/new"),
        escape("through a hard link", "ln {outside}/secret.txt hard && echo x >> hard"),
        escape("through dots", "echo x > ../outside/new"),
        escape("through the root of a process", "echo x > /proc/self/root{outside}/new"),
        escape("through the root of another", "echo x > /proc/{victim}/root{outside}/new"),
        escape("through the folder of a process", "echo x > /proc/self/cwd/../outside/new"),
        escape("through a descriptor", "perl -e 'open(F, \"+<\", \"{outside}/secret.txt\") and print F \"changed\"'"),
        escape("by a tool that copies blocks", "dd if=/dev/zero of={outside}/secret.txt count=1 2> /dev/null"),
        escape("by truncation", "perl -e 'truncate(\"{outside}/secret.txt\", 0)'"),
        escape("by an exchange of names", "cp {outside}/secret.txt x; mv --exchange x {outside}/secret.txt"),
        escape(
            "in the system's configuration",
            "echo x > /etc/turnwright-escape && echo ESCAPED; rm -f /etc/turnwright-escape",
        ),
        escape(
            "in the system's programs",
            "echo x > /usr/bin/turnwright-escape && echo ESCAPED; rm -f /usr/bin/turnwright-escape",
        ),
        escape("in the kernel's settings", "cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern && echo ESCAPED"),
        Escape { beyond_landlock: metadata, ..escape("other permissions", "chmod 777 {outside}/secret.txt") },
        Escape { beyond_landlock: metadata, ..escape("other times", "touch -d 2001-01-01 {outside}/secret.txt") },
        escape("a hidden file", "cat {hidden}/key"),
        escape("a hidden file through a link", "ln -s {hidden}/key key; cat key"),
        escape("a hidden file through the root of a process", "cat /proc/self/root{hidden}/key"),
        escape("a hidden file through the root of another", "cat /proc/{victim}/root{hidden}/key"),
        escape("a hidden file through a link beside it", "cat {base}/way/key"),
        escape("the names in a hidden folder", "ls {hidden} | grep -q key && echo ESCAPED"),
    ]
}

fn processes() -> Vec<Escape> {
    let names = Some("Landlock has no name space of processes");
    vec![
        escape("another's variables", "cat /proc/{victim}/environ"),
        escape("another's memory", "grep -q . /proc/{victim}/maps && echo ESCAPED"),
        escape("a signal to another", "kill -9 {victim}"),
        Escape {
            beyond_landlock: names,
            ..escape("a process that detaches", "setsid env -i sleep 1000.{port} > /dev/null 2>&1 &")
        },
        escape("a user name space", "unshare -Ur true && echo ESCAPED"),
        escape("a mount name space", "unshare -m true && echo ESCAPED"),
        escape("the memory of the kernel", "head -c 1 /proc/kcore | grep -q . && echo ESCAPED"),
        escape("a disk as a device", "head -c 1 /dev/vda /dev/sda /dev/nvme0n1 2> /dev/null | grep -q ^[^=] && echo ESCAPED"),
        escape("a device that is made", "mknod null c 1 3 && echo ESCAPED"),
        escape("another owner", "touch own; chown 12345 own && echo ESCAPED"),
        escape("the memory of another written to", "echo x > /proc/{victim}/mem && echo ESCAPED"),
        escape("another's open files", "ls /proc/{victim}/fd | grep -q . && echo ESCAPED"),
        escape("a mount", "mount --bind {outside} . 2> /dev/null && echo ESCAPED"),
        escape("another's name space", "nsenter -t {victim} -m true && echo ESCAPED"),
    ]
}

#[cfg(target_arch = "x86_64")]
fn kernel_calls() -> Vec<Escape> {
    vec![
        kernel("ptrace", "101, 16, {victim}, 0, 0"),
        kernel("ptrace by its second number", "0x40000065, 16, {victim}, 0, 0"),
        kernel("process_vm_readv", "310, {victim}, 0, 0, 0, 0, 0"),
        kernel("chroot", "161, \"/\""),
        kernel("pivot_root", "155, \"/\", \"/\""),
        kernel("setns", "308, 0, 0"),
        kernel("bpf", "321, 0, 0, 0"),
        kernel("perf_event_open", "298, 0, 0, 0, 0, 0"),
        kernel("keyctl", "250, 0, 0, 0"),
        kernel("io_uring_setup", "425, 1, 0"),
        kernel("userfaultfd", "323, 0"),
        kernel("init_module", "175, 0, 0, \"\""),
        kernel("kexec_load", "246, 0, 0, 0, 0"),
        kernel("open_by_handle_at", "304, 0, 0, 0"),
        kernel("pidfd_getfd", "438, 0, 0, 0"),
        kernel("clone3", "435, 0, 0"),
        kernel("typing into a terminal", "16, 0, 0x5412, \"x\""),
        kernel("a socket of virtual machines", "41, 40, 1, 0"),
        kernel("a socket of packets", "41, 17, 3, 0"),
        kernel("a socket by its second number", "0x40000029, 2, 1, 0"),
    ]
}

#[cfg(not(target_arch = "x86_64"))]
fn kernel_calls() -> Vec<Escape> {
    Vec::new()
}

fn network() -> Vec<Escape> {
    let tcp = |host: &str| format!("perl -MIO::Socket -e 'IO::Socket::INET->new(\"{host}:{{port}}\") and print \"ESCAPED\"'");
    vec![
        escape("a connection over loopback", tcp("127.0.0.1")),
        escape("a connection to any address", tcp("0.0.0.0")),
        escape(
            "a datagram",
            "perl -MSocket -e 'socket(S, PF_INET, SOCK_DGRAM, 0); send(S, \"x\", 0, sockaddr_in({udp}, inet_aton(\"127.0.0.1\")))'",
        ),
        escape("a raw socket", "perl -MSocket -e 'socket(S, PF_INET, SOCK_RAW, 1) and print \"ESCAPED\"'"),
        escape(
            "a socket of the machine",
            "perl -MIO::Socket -e 'IO::Socket::UNIX->new(\"{outside}/socket\") and print \"ESCAPED\"'",
        ),
        escape("a netlink socket", "perl -e 'socket(S, 16, 3, 0) and print \"ESCAPED\"'"),
    ]
}

fn limits() -> Vec<Escape> {
    vec![
        escape("more memory than allowed", "perl -e '$x = \"x\" x (1 << 30); print \"ESCAPED\"'"),
        escape(
            "a larger file than allowed",
            "head -c 40000000 /dev/zero > big; [ $(stat -c %s big) -gt 16777216 ] && echo ESCAPED",
        ),
        escape(
            "more open files than allowed",
            "perl -e 'for (1..200) { open($f[$_], \"/dev/null\") or exit } print \"ESCAPED\"'",
        ),
        escape("more time than allowed", "perl -e 'while ((times)[0] < 4) {} print \"ESCAPED\"'"),
    ]
}

/// What stands around one escape.
struct World {
    folder: tempfile::TempDir,
    victim: Child,
    tcp: TcpListener,
    udp: UdpSocket,
    socket: UnixListener,
}

impl World {
    fn new() -> Self {
        // Not where temporary files are: those are another's in the sandbox anyway.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for name in ["outside", "root", "hidden"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        std::fs::write(folder.path().join("outside/secret.txt"), "secret").unwrap();
        std::fs::write(folder.path().join("hidden/key"), SIGN).unwrap();
        std::os::unix::fs::symlink("hidden", folder.path().join("way")).unwrap();
        let victim = Command::new("sleep").arg("1000").env_clear().env("TOKEN", SIGN).spawn().unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = UnixListener::bind(folder.path().join("outside/socket")).unwrap();
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        socket.set_nonblocking(true).unwrap();
        Self { folder, victim, tcp, udp, socket }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn filled(&self, line: &str) -> String {
        let port = |address: std::net::SocketAddr| address.port().to_string();
        line.replace("{base}", &self.path("").display().to_string())
            .replace("{outside}", &self.path("outside").display().to_string())
            .replace("{hidden}", &self.path("hidden").display().to_string())
            .replace("{victim}", &self.victim.id().to_string())
            .replace("{port}", &port(self.tcp.local_addr().unwrap()))
            .replace("{udp}", &port(self.udp.local_addr().unwrap()))
    }

    fn source(&self, enclosure: Enclosure, limits: CommandLimits) -> TypedSource {
        let mut sandbox = SandboxConfig::new(vec![helper()], self.path("temporary"));
        sandbox.mode = SandboxMode::Required;
        sandbox.hidden = vec![self.path("hidden")];
        sandbox.limits = limits;
        let launcher = SandboxLauncher::with_protections(sandbox, only(enclosure));
        let mut config = CommandConfig::new(vec![self.path("root")], vec![("PATH".into(), "/usr/bin:/bin".into())]);
        config.launcher = Arc::new(launcher);
        command(config).unwrap()
    }

    /// What changed outside, in words.
    fn changes(&mut self, before: &BTreeMap<PathBuf, String>) -> Vec<String> {
        let mut changes = Vec::new();
        let after = everything(&self.path("outside"));
        if after != *before {
            changes.push(format!("files: {before:?} became {after:?}"));
        }
        if self.victim.try_wait().unwrap().is_some() {
            changes.push("another process was ended".to_owned());
        }
        if self.tcp.accept().is_ok() || self.socket.accept().is_ok() || self.udp.recv(&mut [0; 8]).is_ok() {
            changes.push("something came over a socket".to_owned());
        }
        let left = format!("1000.{}", self.tcp.local_addr().unwrap().port());
        // What is left in a name space of its own ends a moment after the command.
        let mut rounds = 4_000;
        while is_running(&left) && rounds > 0 {
            std::thread::sleep(std::time::Duration::from_millis(5));
            rounds -= 1;
        }
        if is_running(&left) {
            changes.push("a process outlived its command".to_owned());
        }
        changes
    }
}

impl Drop for World {
    fn drop(&mut self) {
        drop(self.victim.kill());
        drop(self.victim.wait());
    }
}

fn helper() -> OsString {
    env!("CARGO_BIN_EXE_turnwright-sandbox").into()
}

/// A system that has this enclosure alone.
fn only(enclosure: Enclosure) -> Protections {
    match enclosure {
        Enclosure::Bubblewrap => Protections { bubblewrap: Ok(()), landlock: 0, seccomp: true },
        Enclosure::Landlock => Protections { bubblewrap: Err("not asked".to_owned()), landlock: 3, seccomp: true },
        Enclosure::None => Protections { bubblewrap: Err("not asked".to_owned()), landlock: 0, seccomp: true },
    }
}

fn everything(folder: &Path) -> BTreeMap<PathBuf, String> {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = std::fs::read_dir(folder) else { return BTreeMap::new() };
    let told = entries.map(|entry| {
        let path = entry.unwrap().path();
        let found = std::fs::symlink_metadata(&path).unwrap();
        let content = if found.is_file() { std::fs::read_to_string(&path).unwrap() } else { String::new() };
        (path, format!("{content} {:o} {} {}", found.mode(), found.mtime(), found.nlink()))
    });
    told.collect()
}

fn is_running(argument: &str) -> bool {
    let Ok(entries) = std::fs::read_dir("/proc") else { return false };
    entries.filter_map(Result::ok).any(|entry| {
        let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        words.starts_with(b"sleep") && String::from_utf8_lossy(&words).contains(argument)
    })
}

/// The enclosures that this system has; of the others it is said that they are skipped.
fn enclosures() -> Vec<Enclosure> {
    let system = Protections::of_this_system();
    println!("this system has {}", system.present());
    let mut enclosures = Vec::new();
    match &system.bubblewrap {
        Ok(()) if system.seccomp => enclosures.push(Enclosure::Bubblewrap),
        Ok(()) => println!("skipped: everything in bubblewrap, since seccomp is missing"),
        Err(reason) => println!("skipped: everything in bubblewrap, which does not work: {reason}"),
    }
    if system.landlock > 0 && system.seccomp {
        enclosures.push(Enclosure::Landlock);
    } else {
        println!("skipped: everything in Landlock, since Landlock or seccomp is missing");
    }
    enclosures
}

#[tokio::test]
async fn no_way_leads_out_of_the_sandbox() {
    let has_perl = Command::new("perl").args(["-e", "1"]).status().is_ok_and(|status| status.success());
    let narrow = CommandLimits {
        cpu_seconds: 1,
        memory_bytes: 512 << 20,
        file_bytes: 16 << 20,
        open_files: 64,
        ..CommandLimits::default()
    };
    for enclosure in enclosures() {
        let (mut held, mut skipped) = (0, 0);
        let wide = [files(), processes(), kernel_calls(), network()].into_iter().flatten();
        let all =
            wide.map(|escape| (escape, CommandLimits::default())).chain(limits().into_iter().map(|escape| (escape, narrow)));
        for (escape, limits) in all {
            let reason = match (enclosure, escape.beyond_landlock) {
                (Enclosure::Landlock, Some(reason)) => Some(reason),
                _ if escape.line.contains("perl ") && !has_perl => Some("perl is not installed"),
                _ => None,
            };
            if let Some(reason) = reason {
                println!("skipped in {enclosure:?}: {}: {reason}", escape.name);
                skipped += 1;
                continue;
            }
            let mut world = World::new();
            let source = world.source(enclosure, limits);
            let before = everything(&world.path("outside"));
            let line = world.filled(&escape.line);
            let output = call(&source, "run", json!({"command": line})).await.unwrap();
            let said = format!("{:?}", output.structured_content);
            assert!(!said.contains(SIGN), "{enclosure:?}: {}: {said}", escape.name);
            assert!(!said.contains("could not be confined"), "{enclosure:?}: {}: {said}", escape.name);
            assert_eq!(world.changes(&before), Vec::<String>::new(), "{enclosure:?}: {}: {said}", escape.name);
            held += 1;
        }
        println!("{held} ways out of the sandbox were tried in {enclosure:?} and all are held; {skipped} were skipped");
        assert!(held + skipped >= 40);
    }
}

#[tokio::test]
async fn what_a_command_is_for_works_in_the_sandbox() {
    for enclosure in enclosures() {
        let world = World::new();
        let source = world.source(enclosure, CommandLimits::default());
        let line = "echo in > file && cat file && mkdir -p a/b && mv file a/b/file && cat a/b/file && ls /usr > /dev/null \
            && mktemp > /dev/null && echo x | cat - | wc -c && sh -c 'exit 3'";
        let output = call(&source, "run", json!({"command": line})).await.unwrap();
        let content = output.structured_content.unwrap();
        assert_eq!((&content["stdout"], &content["exit_code"]), (&json!("in\nin\n2\n"), &json!(3)), "{enclosure:?}: {content}");
        let error = call(&source, "run", json!({"command": "no-such-program", "args": []})).await.unwrap_err();
        assert_eq!((error.kind, error.model_text.as_str()), (ToolErrorKind::NotFound, "there is no program `no-such-program`"));
    }
}

#[tokio::test]
async fn a_root_that_holds_data_takes_new_files_and_shows_none_of_the_data() {
    for enclosure in enclosures() {
        for mode in [SandboxMode::Preferred, SandboxMode::Required] {
            let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
            let root = folder.path().canonicalize().unwrap();
            for (name, text) in
                [("data/store", SIGN), ("data/tmp/other", SIGN), ("data/files/mine", "mine\n"), ("keys/id", SIGN)]
            {
                std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
                std::fs::write(root.join(name), text).unwrap();
            }
            std::fs::write(root.join("token"), SIGN).unwrap();
            let mut sandbox = SandboxConfig::new(vec![helper()], root.join("data/tmp"));
            (sandbox.mode, sandbox.never, sandbox.hidden) =
                (mode, vec![root.join("data")], vec![root.join("keys"), root.join("token")]);
            let mut config =
                CommandConfig::new(vec![root.clone(), root.join("data/files")], vec![("PATH".into(), "/usr/bin:/bin".into())]);
            config.launcher = Arc::new(SandboxLauncher::with_protections(sandbox, only(enclosure)));
            let source = command(config).unwrap();
            let line = "echo new > new; cat data/files/mine; mktemp > /dev/null && echo temporary; cat data/store keys/id token; \
                ls -R data keys; cat /proc/*/root$PWD/data/store; echo x > data/other; echo x > data/store; cd data/files; \
                cat ../store; echo more >> mine";
            let output = call(&source, "run", json!({"command": line})).await.unwrap().structured_content.unwrap();
            let said = output.to_string();
            let cannot = said.contains("lets a command have no mounts of its own");
            if cannot {
                println!("skipped in {enclosure:?}: a new file, since this system lets a command have no mounts of its own");
            } else {
                assert_eq!(std::fs::read_to_string(root.join("new")).unwrap(), "new\n", "{enclosure:?}: {said}");
                assert!(!said.contains(SIGN), "{enclosure:?}: {said}");
            }
            assert!(said.contains("mine\\ntemporary\\n"), "{enclosure:?}: {said}");
            assert_eq!(std::fs::read_to_string(root.join("data/store")).unwrap(), SIGN);
            assert!(!root.join("data/other").exists(), "{enclosure:?}: {said}");
            assert_eq!(std::fs::read_to_string(root.join("data/files/mine")).unwrap(), "mine\nmore\n", "{enclosure:?}: {said}");
        }
    }
}

#[tokio::test]
async fn what_is_hidden_deep_in_a_root_keeps_its_place() {
    for enclosure in enclosures() {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("app/config")).unwrap();
        std::fs::write(root.join("app/config/mcp.json"), SIGN).unwrap();
        let mut sandbox = SandboxConfig::new(vec![helper()], root.join("tmp"));
        (sandbox.mode, sandbox.hidden) = (SandboxMode::Preferred, vec![root.join("app/config/mcp.json")]);
        let mut config = CommandConfig::new(vec![root.clone()], vec![("PATH".into(), "/usr/bin:/bin".into())]);
        config.launcher = Arc::new(SandboxLauncher::with_protections(sandbox, only(enclosure)));
        let source = command(config).unwrap();
        let line = "mv app/config app/old; mv app old; mkdir -p app/config; rm -f app/config/mcp.json; \
            echo evil > app/config/mcp.json; cat app/config/mcp.json; echo new > app/config/new && cat app/config/new";
        let output = call(&source, "run", json!({"command": line})).await.unwrap().structured_content.unwrap();
        let said = output.to_string();
        if said.contains("lets a command have no mounts of its own") {
            println!("skipped in {enclosure:?}: this system lets a command have no mounts of its own");
            continue;
        }
        assert!(said.contains("new\\n") && !said.contains(SIGN), "{enclosure:?}: {said}");
        assert_eq!(std::fs::read_to_string(root.join("app/config/mcp.json")).unwrap(), SIGN, "{enclosure:?}: {said}");
    }
}

#[tokio::test]
async fn where_a_link_to_what_is_read_at_the_start_could_be_replaced_nothing_runs() {
    for enclosure in enclosures() {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let base = folder.path().canonicalize().unwrap();
        for inner in ["root/app", "outside/conf"] {
            std::fs::create_dir_all(base.join(inner)).unwrap();
        }
        std::fs::write(base.join("outside/conf/mcp.json"), SIGN).unwrap();
        std::os::unix::fs::symlink("outside/conf", base.join("way")).unwrap();
        std::os::unix::fs::symlink("../../outside/conf", base.join("root/app/config")).unwrap();
        let tried = async |kept: PathBuf| {
            let mut sandbox = SandboxConfig::new(vec![helper()], base.join("tmp"));
            (sandbox.mode, sandbox.kept) = (SandboxMode::Preferred, [kept].into());
            let mut config = CommandConfig::new(vec![base.join("root")], vec![("PATH".into(), "/usr/bin:/bin".into())]);
            config.launcher = Arc::new(SandboxLauncher::with_protections(sandbox, only(enclosure)));
            call(&command(config).unwrap(), "run", json!({"command": "echo x > ran; cat ../way/mcp.json"})).await
        };
        let error = tried(base.join("root/app/config/mcp.json")).await.unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::PermissionDenied);
        let link = format!("`{}` is a link to what this program reads at its start", base.join("root/app/config").display());
        assert!(error.model_text.contains(&link) && !base.join("root/ran").exists(), "{}", error.model_text);
        // A link that no command can replace is none to be afraid of, nor is one to what is not there.
        for kept in ["way/mcp.json", "root/app/config/other.json"] {
            let output = tried(base.join(kept)).await.unwrap();
            let is_seen = kept == "way/mcp.json" && format!("{output:?}").contains(SIGN);
            assert!(base.join("root/ran").exists() && !is_seen, "{enclosure:?}: {output:?}");
        }
    }
}

#[tokio::test]
async fn a_command_runs_beside_a_secret_that_is_hidden_twice_or_has_thousands_of_neighbours() {
    for enclosure in enclosures() {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let root = folder.path().canonicalize().unwrap();
        for inner in [".aws", "many"] {
            std::fs::create_dir(root.join(inner)).unwrap();
            std::fs::write(root.join(inner).join("key"), SIGN).unwrap();
        }
        for number in 0..6_000 {
            std::fs::write(root.join(format!("many/a-file-with-a-name-of-some-length-{number}")), "").unwrap();
        }
        let mut sandbox = SandboxConfig::new(vec![helper()], root.join("tmp"));
        (sandbox.mode, sandbox.hidden) = (SandboxMode::Preferred, vec![root.join(".aws")]);
        sandbox.kept = [".aws/key", "many/key"].map(|name| root.join(name)).into();
        let mut config = CommandConfig::new(vec![root.clone()], vec![("PATH".into(), "/usr/bin:/bin".into())]);
        config.launcher = Arc::new(SandboxLauncher::with_protections(sandbox, only(enclosure)));
        let source = command(config).unwrap();
        let output = call(&source, "run", json!({"command": "cat .aws/key many/key; echo ran"})).await.unwrap();
        let said = output.structured_content.unwrap().to_string();
        let cannot = said.contains("lets a command have no mounts of its own");
        assert!(said.contains("ran\\n") && (cannot || !said.contains(SIGN)), "{enclosure:?}: {said}");
    }
}

#[tokio::test]
async fn a_required_sandbox_that_is_missing_lets_nothing_run() {
    let world = World::new();
    let source = world.source(Enclosure::None, CommandLimits::default());
    let error = call(&source, "run", json!({"command": "echo x > ran"})).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::PermissionDenied);
    let expected = "the command cannot be isolated: the configuration requires a sandbox (sandbox = \"required\"), and here is none: \
        bubblewrap does not work (not asked), the kernel has no Landlock";
    assert_eq!(error.model_text, expected);
    assert!(!world.path("root/ran").exists());
}

/// Whether the process that this host's file names runs.
fn runs(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Waits until it holds.
async fn eventually(holds: impl Fn() -> bool) {
    for _ in 0..4_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("it never holds");
}

/// A host that is killed: this test's own program, which starts a command and waits.
#[tokio::test]
#[ignore = "only run by another test, which kills it"]
async fn a_host_that_waits() {
    let (folder, enclosure) = (std::env::var_os("HOST_FOLDER").unwrap(), std::env::var_os("HOST_ENCLOSURE").unwrap());
    let enclosure = if enclosure == "bubblewrap" { Enclosure::Bubblewrap } else { Enclosure::Landlock };
    let mut sandbox = SandboxConfig::new(vec![helper()], PathBuf::from(&folder).join("temporary"));
    sandbox.mode = SandboxMode::Required;
    let mut config = CommandConfig::new(vec![folder.into()], vec![("PATH".into(), "/usr/bin:/bin".into())]);
    config.launcher = Arc::new(SandboxLauncher::with_protections(sandbox, only(enclosure)));
    let source = command(config).unwrap();
    call(&source, "run", json!({"command": "echo up > up; exec sleep 1000.5", "timeout_ms": 600_000})).await.unwrap();
}

#[tokio::test]
async fn a_confined_command_ends_with_a_host_that_is_killed() {
    for enclosure in enclosures() {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let word = match enclosure {
            Enclosure::Bubblewrap => "bubblewrap",
            Enclosure::Landlock | Enclosure::None => "landlock",
        };
        let mut host = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "escapes::a_host_that_waits", "--ignored"])
            .env("HOST_FOLDER", folder.path())
            .env("HOST_ENCLOSURE", word)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let up = folder.path().join("up");
        eventually(|| up.exists()).await;
        // Those whose working folder is the root: the command, and what stands around it.
        let here = folder.path().canonicalize().unwrap();
        let commands: Vec<String> = std::fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|pid| pid.bytes().all(|byte| byte.is_ascii_digit()))
            .filter(|pid| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == here))
            .collect();
        assert!(!commands.is_empty());
        host.kill().unwrap();
        host.wait().unwrap();
        for pid in commands {
            eventually(|| !runs(&pid)).await;
        }
    }
}

#[tokio::test]
async fn a_confined_command_that_is_stopped_has_its_time_to_clean_up() {
    for enclosure in enclosures() {
        let world = World::new();
        let source = world.source(enclosure, CommandLimits::default());
        let line = "trap 'echo cleaned; exit 0' TERM; echo up; while :; do sleep 0.01; done";
        let started = call(&source, "start", json!({"command": line, "wait_ms": 0})).await.unwrap();
        let process = started.structured_content.unwrap()["process"].clone();
        let up = json!({"process": process, "wait_ms": 60_000});
        assert_eq!(call(&source, "output", up).await.unwrap().structured_content.unwrap()["output"], "up\n");
        let stopped = call(&source, "stop", json!({"process": process})).await.unwrap().structured_content.unwrap();
        assert_eq!(stopped["exit_code"], 0, "{enclosure:?}: {stopped}");
        // Where `sleep` was told first, the shell says so.
        assert_eq!(
            stopped["output"].as_str().unwrap().replace("Terminated\n", ""),
            "up\ncleaned\n",
            "{enclosure:?}: {stopped}"
        );
    }
}

#[tokio::test]
async fn a_confined_command_that_a_stop_kills_gives_no_result() {
    for enclosure in enclosures() {
        let world = World::new();
        let source = world.source(enclosure, CommandLimits::default());
        let cancel = CancellationToken::new();
        let line = json!({"command": "echo begun | tee begun; sleep 1000; echo never"});
        let running = source.call(call_of("run", line), context(&cancel));
        let stop = async {
            eventually(|| world.path("root").join("begun").exists()).await;
            cancel.cancel();
        };
        let (result, ()) = tokio::join!(running, stop);
        let error = result.unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Interrupted, "{enclosure:?}: {}", error.model_text);
        assert!(error.model_text.contains("; what it did until then happened"), "{enclosure:?}: {}", error.model_text);
    }
}
