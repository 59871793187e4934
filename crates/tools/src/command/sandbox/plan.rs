//! What the helper is told, and what it makes of that: which files, which limits. Pure but for the listing of folders that is handed in.

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct View {
    /// What it may write to; all there and without links.
    pub(super) writable: Vec<PathBuf>,
    /// What it must not see; all there and without links.
    pub(super) hidden: Vec<PathBuf>,
    /// What of that it may see where only Landlock hides, since nothing new could be made beside it.
    pub(super) spared: Vec<PathBuf>,
    pub(super) network: Network,
}

/// The orders of the helper. What is in folders it lists itself: an argument has no room for the names of a large one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Plan {
    /// Landlock: what is seen; `None` where it is not used.
    pub(super) view: Option<View>,
    /// Whether seccomp closes what no command needs.
    pub(super) seccomp: bool,
    /// Which sockets seccomp leaves.
    pub(super) sockets: Sockets,
    /// The process with which the command ends, where nothing around it sees to that.
    pub(super) ends_with: Option<u32>,
    pub(super) limits: CommandLimits,
}

/// What is mounted over a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    /// What is there: it cannot be renamed, and is seen where something above it is hidden.
    Itself,
    /// Nothing is to be seen of it.
    Nothing,
}

/// What Landlock leaves open.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// The orders for this enclosure.
    pub(super) fn new(enclosure: Enclosure, view: &View, limits: CommandLimits) -> Self {
        let sockets = match (enclosure, view.network) {
            (Enclosure::None, _) | (_, Network::On) => Sockets::All,
            (Enclosure::Bubblewrap | Enclosure::Landlock, Network::Off) => Sockets::None,
        };
        let view = (enclosure == Enclosure::Landlock).then(|| view.clone());
        let ends_with = (enclosure != Enclosure::Bubblewrap).then(std::process::id);
        Self { view, seccomp: enclosure != Enclosure::None, sockets, ends_with, limits }
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
    /// What Landlock leaves open where nothing is covered. `names_in` gives what is in a folder.
    pub(super) fn files(&self, names_in: &dyn Fn(&Path) -> Vec<PathBuf>) -> Files {
        let seen = self.not_spared();
        self.open(&seen, &seen, names_in)
    }

    /// The same where [`View::cover`] is done.
    pub(super) fn files_beside_cover(&self, names_in: &dyn Fn(&Path) -> Vec<PathBuf>) -> Files {
        let (within, mut closed) = self.within_roots();
        // A root that is hidden itself opens nothing.
        closed.extend(within.into_iter().filter(|path| self.writable.contains(path)));
        self.open(&self.hidden, &closed, names_in)
    }

    fn open(&self, to_read: &[PathBuf], to_write: &[PathBuf], names_in: &dyn Fn(&Path) -> Vec<PathBuf>) -> Files {
        let names = |folder: &Path| {
            let names = names_in(folder).into_iter();
            names.filter(|name| folder != Path::new("/proc") || !is_process(name)).collect()
        };
        // The variables, the memory and the files of others, and disks as devices: root owns all of them.
        let others = || KERNEL_MEMORY.iter().chain(["/dev"].iter()).map(PathBuf::from);
        let [to_read, to_write] = [to_read, to_write].map(|hidden| hidden.iter().cloned().chain(others()).collect::<Vec<_>>());
        Files {
            readable: without(Path::new("/"), &to_read, &names),
            writable: self.writable.iter().flat_map(|path| without(path, &to_write, &names)).collect(),
            network: self.network == Network::On,
        }
    }

    /// What is hidden where only Landlock hides.
    fn not_spared(&self) -> Vec<PathBuf> {
        self.hidden.iter().filter(|path| !self.spared.contains(path)).cloned().collect()
    }

    /// What is mounted where, in this order, before Landlock opens what it lies in; empty where nothing hidden lies in a root.
    pub(super) fn cover(&self) -> Vec<(PathBuf, Over)> {
        let (within, _) = self.within_roots();
        let given = self.writable.iter().filter(|path| is_below(path, &within) && !self.hidden.contains(path)).cloned();
        let given = given.collect::<Vec<_>>();
        self.places(given, within)
    }

    /// What is mounted where: what is seen all the same and what must not be renamed, and what is hidden. The deeper comes later: what is
    /// named within the hidden comes back, what is hidden within that does not.
    fn places(&self, given: Vec<PathBuf>, mut hidden: Vec<PathBuf>) -> Vec<(PathBuf, Over)> {
        // There is nothing left to mount over.
        hidden.retain(|path| path.parent().is_none_or(|above| !self.is_gone(above)));
        let seen = given.into_iter().chain(self.pinned()).map(|path| (path, Over::Itself));
        let mut places: Vec<_> = seen.chain(hidden.into_iter().map(|path| (path, Over::Nothing))).collect();
        places.sort_by_key(|(path, _)| path.components().count());
        places
    }

    /// Whether a path is not to be seen: something above it is hidden, or it is itself, and no root within that gives it back.
    fn is_gone(&self, path: &Path) -> bool {
        let depth = |places: &[PathBuf]| {
            places.iter().filter(|place| path.starts_with(place)).map(|place| place.components().count()).max()
        };
        let hidden = depth(&self.hidden);
        hidden.is_some() && hidden >= depth(&self.writable)
    }

    /// Whether a command can put something else in the place of a path.
    pub(super) fn is_open(&self, path: &Path) -> bool {
        is_below(path, &self.writable) && !self.is_gone(path)
    }

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
        pinned.retain(|path| !self.is_gone(path));
        pinned.sort_by(|a, b| a.components().count().cmp(&b.components().count()).then_with(|| a.cmp(b)));
        pinned.dedup();
        pinned
    }

    /// That nothing new can be made in a root, where Landlock alone keeps what is hidden in it.
    pub(super) fn closed_root(&self) -> Option<String> {
        let hidden = self.not_spared();
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
        // A root that is hidden itself does not come back.
        let given = self.writable.iter().filter(|path| *path != all && !self.hidden.contains(path)).cloned().collect();
        for (path, over) in &self.places(given, self.hidden.clone()) {
            match (over, path.is_dir()) {
                (Over::Itself, _) => add(&[word("--bind"), path.as_os_str(), path.as_os_str()]),
                (Over::Nothing, true) => add(&[word("--tmpfs"), path.as_os_str()]),
                (Over::Nothing, false) => add(&[word("--ro-bind"), word("/dev/null"), path.as_os_str()]),
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

    use super::{Over, View, without};
    use crate::command::sandbox::Network;

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
        let files = view.files(&names_in);
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
        assert_eq!(view.files(&names_in).writable, [inner]);
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
        let cover = [(ssh.clone(), Over::Nothing), (data, Over::Nothing), (inner.clone(), Over::Itself)];
        assert_eq!(view.cover(), cover);
        let files = view.files_beside_cover(&names_in);
        assert_eq!(files.writable, [home, inner.clone()]);
        assert!(!files.readable.iter().any(|path| path.starts_with(&ssh)));
        // Where nothing can be covered: the one is seen for the sake of the root, the other never.
        assert_eq!(view.files(&names_in).writable, [ssh, "/home/ann/work".into(), inner]);
        assert!(view.closed_root().unwrap().contains("`/home/ann`"));
    }

    #[test]
    fn nothing_is_mounted_in_what_is_gone_and_what_is_hidden_in_what_came_back_is_hidden_last() {
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        let view = View {
            writable: paths(&["/home/ann", "/home/ann/data/files"]),
            hidden: paths(&["/home/ann/.aws/key", "/home/ann/.aws", "/home/ann/data/files/a/token", "/home/ann/data"]),
            spared: Vec::new(),
            network: Network::Off,
        };
        let expected = [
            ("/home/ann/.aws", Over::Nothing),
            ("/home/ann/data", Over::Nothing),
            ("/home/ann/data/files", Over::Itself),
            ("/home/ann/data/files/a", Over::Itself),
            ("/home/ann/data/files/a/token", Over::Nothing),
        ];
        assert_eq!(view.cover(), expected.map(|(path, over)| (PathBuf::from(path), over)));
        let open = |path: &str| view.is_open(Path::new(path));
        assert!(open("/home/ann/turnwright.toml") && open("/home/ann/data/files/link"));
        assert!(!open("/home/ann/.aws/link") && !open("/home/ann/data/link") && !open("/home/ann") && !open("/home/bob"));
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
        let cover = view.cover();
        assert!(pinned.iter().all(|path| cover.contains(&(path.clone(), Over::Itself))), "{cover:?}");
    }

    #[test]
    fn where_nothing_is_hidden_in_a_root_nothing_is_covered() {
        let view = View {
            writable: vec!["/home/ann/work".into()],
            hidden: vec!["/home/ann/data".into()],
            spared: Vec::new(),
            network: Network::Off,
        };
        assert_eq!(view.cover(), []);
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
