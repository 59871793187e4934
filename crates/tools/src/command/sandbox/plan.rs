//! What the helper is told: which files, which limits. Pure but for the one listing of folders that is handed in.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Enclosure, Network};

/// What a command may use. Each process of it has these for itself; of processes all together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandLimits {
    /// Time on the processor, in seconds.
    pub cpu_seconds: u64,
    /// Memory for data, in bytes.
    pub memory_bytes: u64,
    /// How many processes and threads may be started beyond those that run. The system does not count those of root.
    pub processes: u64,
    /// The largest file that is written, in bytes.
    pub file_bytes: u64,
    /// Files that are open at once.
    pub open_files: u64,
}

impl Default for CommandLimits {
    /// Ten minutes, 8 GiB, 1,024 processes, files of 4 GiB, 4,096 open files.
    fn default() -> Self {
        Self { cpu_seconds: 600, memory_bytes: 8 << 30, processes: 1_024, file_bytes: 4 << 30, open_files: 4_096 }
    }
}

/// What a command sees of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct View {
    /// What it may write to; all there and without links.
    pub(super) writable: Vec<PathBuf>,
    /// What it must not see; all there and without links.
    pub(super) hidden: Vec<PathBuf>,
    /// What of that it may see where only Landlock hides, since nothing new could be made beside it.
    pub(super) spared: Vec<PathBuf>,
    pub(super) network: Network,
}

/// The orders of the helper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Plan {
    /// Landlock: what may be read and run; `None` where it is not used.
    pub(super) files: Option<Files>,
    /// What is better than that, where what is hidden lies in what may be written to, and the system lets it be covered.
    pub(super) cover: Option<Cover>,
    /// Whether seccomp closes what no command needs.
    pub(super) seccomp: bool,
    /// Which sockets seccomp leaves.
    pub(super) sockets: Sockets,
    /// The process with which the command ends, where nothing around it sees to that.
    pub(super) ends_with: Option<u32>,
    pub(super) limits: CommandLimits,
}

/// What is covered by mounts before Landlock opens what it lies in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cover {
    pub(super) hidden: Vec<PathBuf>,
    /// What lies within that and is used all the same.
    pub(super) kept: Vec<PathBuf>,
    /// The folders above it, up to a root, which must not be renamed.
    pub(super) pinned: Vec<PathBuf>,
    /// What Landlock leaves open then.
    pub(super) files: Files,
    /// What a person should know where nothing can be covered.
    pub(super) otherwise: Option<String>,
}

/// What Landlock leaves open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Files {
    pub(super) readable: Vec<PathBuf>,
    pub(super) writable: Vec<PathBuf>,
    pub(super) network: bool,
}

/// Which sockets a command may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Sockets {
    /// Pairs of connected ones alone: also the sockets of this machine are doors.
    None,
    /// All that programs use.
    All,
}

impl Plan {
    /// The orders for this enclosure. `names_in` gives what is in a folder.
    pub(super) fn new(
        enclosure: Enclosure,
        view: &View,
        limits: CommandLimits,
        names_in: &dyn Fn(&Path) -> Vec<PathBuf>,
    ) -> Self {
        let names = |folder: &Path| {
            let names = names_in(folder).into_iter();
            names.filter(|name| folder != Path::new("/proc") || !is_process(name)).collect()
        };
        // The variables, the memory and the files of others, and disks as devices: root owns all of them.
        let others = || KERNEL_MEMORY.iter().chain(["/dev"].iter()).map(PathBuf::from);
        let files = |to_read: &[PathBuf], to_write: &[PathBuf]| {
            let [to_read, to_write] =
                [to_read, to_write].map(|hidden| hidden.iter().cloned().chain(others()).collect::<Vec<_>>());
            Files {
                readable: without(Path::new("/"), &to_read, &names),
                writable: view.writable.iter().flat_map(|path| without(path, &to_write, &names)).collect(),
                network: view.network == Network::On,
            }
        };
        let is_landlock = enclosure == Enclosure::Landlock;
        let seen = || -> Vec<PathBuf> { view.hidden.iter().filter(|path| !view.spared.contains(path)).cloned().collect() };
        let cover =
            is_landlock.then(|| view.within_roots()).filter(|(within, _)| !within.is_empty()).map(|(within, rest)| Cover {
                kept: view.writable.iter().filter(|path| is_below(path, &within)).cloned().collect(),
                pinned: view.pinned(),
                // A root that is hidden itself opens nothing.
                files: files(
                    &view.hidden,
                    &[rest, within.iter().filter(|path| view.writable.contains(path)).cloned().collect()].concat(),
                ),
                otherwise: view.closed_root(&seen()),
                hidden: within,
            });
        let sockets = match (enclosure, view.network) {
            (Enclosure::None, _) | (_, Network::On) => Sockets::All,
            (Enclosure::Bubblewrap | Enclosure::Landlock, Network::Off) => Sockets::None,
        };
        let files = is_landlock.then(|| files(&seen(), &seen()));
        let ends_with = (enclosure != Enclosure::Bubblewrap).then(std::process::id);
        Self { files, cover, seccomp: enclosure != Enclosure::None, sockets, ends_with, limits }
    }

    pub(super) fn to_argument(&self) -> io::Result<OsString> {
        Ok(serde_json::to_string(self)?.into())
    }
}

/// `path` without what is hidden below it: itself where nothing is, else what is in it, one by one.
fn without(path: &Path, hidden: &[PathBuf], names_in: &dyn Fn(&Path) -> Vec<PathBuf>) -> Vec<PathBuf> {
    if hidden.iter().any(|hidden| path.starts_with(hidden)) {
        // What is named itself is meant, such as the folder of temporary files within a hidden one.
        return if hidden.iter().any(|hidden| path == hidden) { Vec::new() } else { vec![path.to_path_buf()] };
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(path)) {
        return vec![path.to_path_buf()];
    }
    let inner = names_in(path).into_iter().filter(|inner| !hidden.contains(inner));
    inner.flat_map(|inner| without(&inner, hidden, names_in)).collect()
}

/// What is in a folder, as whole paths; links are left out, they lead to what is named elsewhere, or hidden there.
pub(super) fn names_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let entries = entries.filter_map(Result::ok).filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
    entries.map(|entry| entry.path()).collect()
}

/// Whether this is the folder of a process in `/proc`.
fn is_process(path: &Path) -> bool {
    path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
}

/// What shows the memory or the words of the kernel, or gives it orders.
const KERNEL_MEMORY: &[&str] = &["/proc/kcore", "/proc/kmsg", "/proc/vmcore", "/proc/keys", "/proc/sysrq-trigger"];

/// Devices that every program may use.
pub(super) const DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts"];

/// Whether a path lies below one of these, and is none of them.
fn is_below(path: &Path, folders: &[PathBuf]) -> bool {
    folders.iter().any(|folder| path != folder && path.starts_with(folder))
}

impl View {
    /// What is hidden below what may be written to, and what is hidden elsewhere.
    fn within_roots(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        self.hidden.iter().cloned().partition(|hidden| is_below(hidden, &self.writable))
    }

    /// The folders between a root and what is hidden in it, the outer ones first. Each is mounted over itself: a folder in which
    /// something is hidden could be renamed otherwise, and another one made in its place.
    fn pinned(&self) -> Vec<PathBuf> {
        let root_of = |hidden: &Path| {
            let roots = self.writable.iter().filter(|root| hidden != root.as_path() && hidden.starts_with(root));
            roots.max_by_key(|root| root.components().count()).filter(|root| root.as_path() != Path::new("/"))
        };
        let between = |hidden: &Path| -> Vec<PathBuf> {
            let Some(root) = root_of(hidden) else { return Vec::new() };
            let above = hidden.ancestors().skip(1).take_while(|above| *above != root.as_path());
            above.map(Path::to_path_buf).collect()
        };
        let mut pinned: Vec<PathBuf> = self.hidden.iter().flat_map(|hidden| between(hidden)).collect();
        // What lies in a hidden folder is gone with it, unless a root gives it back.
        pinned.retain(|path| {
            let covered =
                self.hidden.iter().filter(|hidden| path.starts_with(hidden)).map(|hidden| hidden.components().count());
            let given = self.writable.iter().filter(|root| path.starts_with(root)).map(|root| root.components().count());
            covered.max() < given.max()
        });
        pinned.sort_by(|a, b| a.components().count().cmp(&b.components().count()).then_with(|| a.cmp(b)));
        pinned.dedup();
        pinned
    }

    /// That nothing new can be made in a root, where Landlock alone keeps what is hidden in it.
    fn closed_root(&self, hidden: &[PathBuf]) -> Option<String> {
        let root = self.writable.iter().find(|root| hidden.iter().any(|hidden| hidden != *root && hidden.starts_with(root)))?;
        Some(format!(
            "note: nothing new can be made in `{}` itself: this program's data is in it, and the system lets a command have no mounts of \
             its own; install bubblewrap, or choose another data directory",
            root.display()
        ))
    }

    /// The arguments of `bwrap`, up to what it starts: everything to be read, the writable to be written, the hidden gone,
    /// processes, network and the like of its own.
    pub(super) fn bubblewrap(&self, cwd: &Path, helper: &OsStr) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        let mut add = |parts: &[&OsStr]| arguments.extend(parts.iter().map(|part| (*part).to_owned()));
        let word = OsStr::new;
        add(&[word("--unshare-user-try"), word("--unshare-pid"), word("--unshare-ipc"), word("--unshare-uts")]);
        add(&[word("--unshare-cgroup-try"), word("--hostname"), word("sandbox")]);
        if self.network == Network::Off {
            add(&[word("--unshare-net")]);
        }
        add(&[word("--die-with-parent")]);
        // Where all is to be written to it is bound first, so that what is hidden of it stays hidden.
        let all = Path::new("/");
        let base = if self.writable.iter().any(|path| path == all) { "--bind" } else { "--ro-bind" };
        add(&[word(base), word("/"), word("/"), word("--dev"), word("/dev"), word("--proc"), word("/proc")]);
        // Their owner may write to these without any capability, and root owns them.
        for name in ["/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/sysrq-trigger"] {
            add(&[word("--ro-bind-try"), word(name), word(name)]);
        }
        for folder in ["/tmp", "/var/tmp", "/run", "/dev/shm"] {
            add(&[word("--tmpfs"), word(folder)]);
        }
        if self.network == Network::On {
            // Where the names of the network are explained on many systems.
            add(&[word("--ro-bind-try"), word("/run/systemd/resolve"), word("/run/systemd/resolve")]);
        }
        // The deeper comes later: what is named within the hidden comes back, what is hidden within that does not, nor does a root
        // that is hidden itself.
        let bound =
            self.writable.iter().filter(|path| *path != all && !self.hidden.contains(path)).cloned().chain(self.pinned());
        let mut places: Vec<(PathBuf, bool)> =
            bound.map(|path| (path, false)).chain(self.hidden.iter().map(|path| (path.clone(), true))).collect();
        places.sort_by_key(|(path, _)| path.components().count());
        for (path, is_hidden) in &places {
            match (is_hidden, path.is_dir()) {
                (false, _) => add(&[word("--bind"), path.as_os_str(), path.as_os_str()]),
                (true, true) => add(&[word("--tmpfs"), path.as_os_str()]),
                (true, false) => add(&[word("--ro-bind"), word("/dev/null"), path.as_os_str()]),
            }
        }
        // The helper may be where nothing is left to be seen.
        add(&[word("--ro-bind"), helper, helper]);
        add(&[word("--cap-drop"), word("ALL"), word("--chdir"), cwd.as_os_str()]);
        arguments
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{CommandLimits, Plan, View, without};
    use crate::command::sandbox::{Enclosure, Network};

    fn names_in(folder: &Path) -> Vec<PathBuf> {
        let names: &[&str] = match folder.to_str().unwrap() {
            "/" => &["bin", "home"],
            "/home" => &["ann", "bob"],
            "/home/ann" => &[".ssh", "work", "data"],
            "/proc" => &["1", "4711", "cpuinfo", "kcore"],
            _ => &[],
        };
        names.iter().map(|name| folder.join(name)).collect()
    }

    #[test]
    fn what_is_hidden_is_left_out_and_all_beside_it_stays() {
        let hidden = [PathBuf::from("/home/ann/.ssh"), PathBuf::from("/home/ann/data")];
        let paths = |path: &str| without(Path::new(path), &hidden, &names_in);
        assert_eq!(paths("/"), ["/bin", "/home/ann/work", "/home/bob"].map(PathBuf::from));
        assert_eq!(paths("/home/ann/work"), [PathBuf::from("/home/ann/work")]);
        assert_eq!(paths("/home/ann/data"), Vec::<PathBuf>::new());
        assert_eq!(paths("/home/ann/data/tmp/1"), [PathBuf::from("/home/ann/data/tmp/1")]);
    }
    #[test]
    fn by_landlock_no_other_process_no_memory_and_no_device_is_shown() {
        let view = View { writable: vec!["/proc".into()], hidden: Vec::new(), spared: Vec::new(), network: Network::Off };
        let names_in = |folder: &Path| match folder.to_str().unwrap() {
            "/" => ["/dev", "/proc", "/usr"].map(PathBuf::from).to_vec(),
            _ => names_in(folder),
        };
        let plan = Plan::new(Enclosure::Landlock, &view, CommandLimits::default(), &names_in);
        let files = plan.files.unwrap();
        assert_eq!(files.readable, ["/proc/cpuinfo", "/usr"].map(PathBuf::from));
        assert_eq!(files.writable, ["/proc/cpuinfo"].map(PathBuf::from));
    }

    #[test]
    fn a_root_that_is_hidden_itself_is_not_given_back() {
        let (data, inner) = (PathBuf::from("/home/ann/data"), PathBuf::from("/home/ann/data/files"));
        let view = View {
            writable: vec![data.clone(), inner.clone()],
            hidden: vec![data.clone()],
            spared: Vec::new(),
            network: Network::Off,
        };
        let arguments = view.bubblewrap(&data, "/usr/bin/helper".as_ref());
        let bound = |path: &PathBuf| arguments.windows(3).any(|words| words[0] == "--bind" && words[2] == path.as_os_str());
        assert!(!bound(&data) && bound(&inner), "{arguments:?}");
        let files = Plan::new(Enclosure::Landlock, &view, CommandLimits::default(), &names_in).files.unwrap();
        assert_eq!(files.writable, [inner]);
    }

    #[test]
    fn what_is_hidden_in_a_root_is_covered_and_what_is_used_of_it_stays() {
        let [home, ssh, data, inner] =
            ["/home/ann", "/home/ann/.ssh", "/home/ann/data", "/home/ann/data/tmp/1"].map(PathBuf::from);
        let view = View {
            writable: vec![home.clone(), inner.clone()],
            hidden: vec![ssh.clone(), data.clone()],
            spared: vec![ssh.clone()],
            network: Network::Off,
        };
        let plan = Plan::new(Enclosure::Landlock, &view, CommandLimits::default(), &names_in);
        let cover = plan.cover.unwrap();
        assert_eq!((cover.hidden, cover.kept), (vec![ssh.clone(), data], vec![inner.clone()]));
        assert_eq!(cover.files.writable, [home, inner.clone()]);
        assert!(!cover.files.readable.iter().any(|path| path.starts_with(&ssh)));
        // Where nothing can be covered: the one is seen for the sake of the root, the other never.
        assert_eq!(plan.files.unwrap().writable, [ssh, "/home/ann/work".into(), inner]);
        assert!(cover.otherwise.unwrap().contains("`/home/ann`"));
    }

    #[test]
    fn a_folder_in_which_something_is_hidden_can_not_be_renamed() {
        let [root, file, other] = ["/w", "/w/a/config/mcp.json", "/w/a/b/key"].map(PathBuf::from);
        let hidden = vec![file, other, "/home/ann/.ssh".into()];
        let view = View { writable: vec![root], hidden, spared: Vec::new(), network: Network::Off };
        let pinned = ["/w/a", "/w/a/b", "/w/a/config"].map(PathBuf::from);
        assert_eq!(view.pinned(), pinned);
        let arguments = view.bubblewrap(Path::new("/w"), "/usr/bin/helper".as_ref());
        let at = |last: &str| {
            let binds = |words: &[std::ffi::OsString]| words[0].to_string_lossy().ends_with("bind") && words[2] == last;
            arguments.windows(3).position(binds).unwrap()
        };
        assert!(at("/w") < at("/w/a") && at("/w/a/config") < at("/w/a/config/mcp.json"), "{arguments:?}");
        let plan = Plan::new(Enclosure::Landlock, &view, CommandLimits::default(), &names_in);
        assert_eq!(plan.cover.unwrap().pinned, pinned);
    }

    #[test]
    fn where_nothing_is_hidden_in_a_root_nothing_is_covered() {
        let view = View {
            writable: vec!["/home/ann/work".into()],
            hidden: vec!["/home/ann/data".into()],
            spared: Vec::new(),
            network: Network::Off,
        };
        assert_eq!(Plan::new(Enclosure::Landlock, &view, CommandLimits::default(), &names_in).cover, None);
    }

    #[test]
    fn where_everything_is_to_be_written_to_what_is_hidden_stays_so() {
        let hidden = vec!["/home/ann/.ssh".into()];
        let view = View { writable: vec!["/".into()], hidden, spared: Vec::new(), network: Network::Off };
        let arguments = view.bubblewrap(Path::new("/"), "/usr/bin/helper".as_ref());
        let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
        let all: Vec<usize> = words.windows(3).enumerate().filter(|(_, w)| w[1..] == ["/", "/"]).map(|(at, _)| at).collect();
        let proc = words.windows(2).position(|w| w == ["--proc", "/proc"]).unwrap();
        assert!(all.len() == 1 && words[all[0]] == "--bind" && all[0] < proc, "{words:?}");
    }
}
