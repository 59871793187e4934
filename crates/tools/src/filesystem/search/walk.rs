//! A tree, gone through by several threads. Each folder is reached by name from the open one above it, and no link is
//! followed, so the walk cannot leave the tree whatever is changed in it meanwhile.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use cap_std::fs::Dir;
use grep_searcher::Searcher;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::FileType;
use tokio_util::sync::CancellationToken;

use super::Wanted;
use super::kept::{Kept, Match};
use super::lines::{lines_of, searcher};
use crate::filesystem::Shared;
use crate::filesystem::open::{Spot, is_of_processes, kind_of_stat, look, open_file, open_folder};

/// The most files and folders that one search looks at.
const MOST_VISITED: usize = 1_000_000;
/// The deepest folder that is looked into.
const DEEPEST: usize = 200;
/// How many files of one folder a thread takes at once.
const BATCH: usize = 128;
/// The most threads.
const MOST_THREADS: usize = 8;
/// The largest `.gitignore` that is read, in bytes.
const MOST_RULE_BYTES: u64 = 1024 * 1024;

/// What `.gitignore` and `.ignore` of a folder and of those above it leave out.
#[derive(Debug)]
pub(in crate::filesystem) struct Rules {
    above: Option<Arc<Rules>>,
    /// The folder, relative to the root.
    base: PathBuf,
    matcher: Gitignore,
}

/// No rules, and whether any are looked for.
pub(super) type RulesSoFar = Option<Option<Arc<Rules>>>;

/// The rules of the folders from the root to this one, which is itself left out: the walk begins with it.
pub(super) fn rules_above(spot: &Spot<'_>) -> Option<Arc<Rules>> {
    let mut rules = None;
    let mut folder = spot.place.dir().try_clone().ok()?;
    let mut base = PathBuf::new();
    for part in spot.real.components() {
        rules = rules_of(&folder, &base, rules);
        base.push(part);
        folder = open_folder(&folder, Path::new(part.as_os_str())).ok()?;
    }
    rules
}

/// The rules of `folder` on top of those above it.
pub(in crate::filesystem) fn rules_of(folder: &Dir, base: &Path, above: Option<Arc<Rules>>) -> Option<Arc<Rules>> {
    use std::io::Read as _;
    let mut builder = GitignoreBuilder::new("");
    let mut has_any = false;
    for name in [".gitignore", ".ignore"] {
        let Ok(file) = open_file(folder, Path::new(name)) else { continue };
        if !file.metadata().is_ok_and(|found| found.is_file()) {
            continue;
        }
        let mut bytes = Vec::new();
        if file.take(MOST_RULE_BYTES).read_to_end(&mut bytes).is_err() {
            continue;
        }
        for line in String::from_utf8_lossy(&bytes).trim_start_matches('\u{feff}').lines() {
            // A line that says nothing leaves nothing out.
            has_any |= builder.add_line(None, line).is_ok();
        }
    }
    if !has_any {
        return above;
    }
    match builder.build() {
        Ok(matcher) if !matcher.is_empty() => Some(Arc::new(Rules { above, base: base.to_path_buf(), matcher })),
        _ => above,
    }
}

impl Rules {
    pub(in crate::filesystem) fn leave_out(&self, path: &Path, is_folder: bool) -> bool {
        let mut rules = Some(self);
        while let Some(these) = rules {
            if let Ok(below) = path.strip_prefix(&these.base) {
                let found = these.matcher.matched(below, is_folder);
                if !found.is_none() {
                    return found.is_ignore();
                }
            }
            rules = these.above.as_deref();
        }
        false
    }
}

/// A piece of work.
enum Job {
    /// A folder that is not yet open, by its name in one that is.
    Folder { above: Arc<Dir>, name: PathBuf, below: PathBuf, rules: RulesSoFar, depth: usize },
    /// Files of an open folder.
    Files { folder: Arc<Dir>, below: PathBuf, names: Vec<PathBuf> },
}

#[derive(Default)]
struct Queue {
    jobs: Vec<Job>,
    /// Jobs that are being worked on, and may bring new ones.
    busy: usize,
}

/// What a walk did not look into.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counts {
    /// Files that are binary, unreadable or denied.
    pub(super) skipped: usize,
    /// Whether there was more than is looked at.
    pub(super) is_cut: bool,
}

/// One search on its way through a tree.
pub(super) struct Walk<'a> {
    shared: &'a Shared,
    wanted: &'a Wanted,
    cancel: &'a CancellationToken,
    kept: &'a Kept,
    /// The root, and where it begins, relative to that.
    root: &'a Path,
    start: &'a Path,
    queue: Mutex<Queue>,
    news: Condvar,
    visited: AtomicUsize,
    skipped: AtomicUsize,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        wanted: &'a Wanted,
        cancel: &'a CancellationToken,
        kept: &'a Kept,
        (root, start): (&'a Path, &'a Path),
    ) -> Self {
        let (queue, news) = (Mutex::default(), Condvar::new());
        let (visited, skipped) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { shared, wanted, cancel, kept, root, start, queue, news, visited, skipped }
    }

    pub(super) fn counts(&self) -> Counts {
        Counts { skipped: self.skipped.load(Ordering::Relaxed), is_cut: self.visited.load(Ordering::Relaxed) >= MOST_VISITED }
    }

    /// Goes through the tree below `folder`; `rules` are those of the folders above it, where any are looked for.
    pub(super) fn run(&self, folder: Dir, rules: RulesSoFar) {
        let first = Job::Folder { above: Arc::new(folder), name: PathBuf::from("."), below: PathBuf::new(), rules, depth: 0 };
        self.push(vec![first]);
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| self.work());
            }
            self.work();
        });
    }

    /// Looks into one file.
    pub(super) fn one(&self, folder: &Dir, name: &Path, below: &Path) {
        match self.wanted {
            Wanted::Names(names) if names.fits(below) => {
                self.kept.add(below.to_path_buf(), vec![Match::Path { is_folder: false }]);
            }
            Wanted::Names(_) => {}
            Wanted::Lines { context, .. } => self.file(&mut searcher(*context), folder, name, below),
        }
    }

    fn push(&self, jobs: Vec<Job>) {
        if jobs.is_empty() {
            return;
        }
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.jobs.extend(jobs);
        self.news.notify_all();
    }

    /// The next job; `None` where there is none and none can come.
    fn next(&self) -> Option<Job> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(job) = queue.jobs.pop() {
                queue.busy += 1;
                return Some(job);
            }
            if queue.busy == 0 {
                return None;
            }
            queue = self.news.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn done(&self) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.busy -= 1;
        if queue.busy == 0 && queue.jobs.is_empty() {
            self.news.notify_all();
        }
    }

    fn is_over(&self) -> bool {
        self.cancel.is_cancelled() || self.visited.load(Ordering::Relaxed) >= MOST_VISITED
    }

    fn work(&self) {
        let mut searcher = searcher(match self.wanted {
            Wanted::Lines { context, .. } => *context,
            Wanted::Names(_) => 0,
        });
        while let Some(job) = self.next() {
            // A job that is left is still taken off, so that whoever waits for the last sees the end.
            if !self.is_over() {
                match job {
                    Job::Folder { above, name, below, rules, depth } => {
                        self.folder(&mut searcher, &above, &name, &below, rules, depth);
                    }
                    Job::Files { folder, below, names } => self.files(&mut searcher, &folder, &below, &names),
                }
            }
            self.done();
        }
    }

    fn skip(&self) {
        self.skipped.fetch_add(1, Ordering::Relaxed);
    }

    fn folder(&self, searcher: &mut Searcher, above: &Dir, name: &Path, below: &Path, rules: RulesSoFar, depth: usize) {
        let opened = open_folder(above, name);
        let Some(folder) = opened.ok().filter(|folder| depth < DEEPEST && self.may_enter(folder)) else {
            self.skip();
            return;
        };
        let rules = rules.map(|above| rules_of(&folder, &self.start.join(below), above));
        let folder = Arc::new(folder);
        let Ok(entries) = rustix::fs::Dir::read_from(&*folder) else {
            self.skip();
            return;
        };
        let (mut jobs, mut files) = (Vec::new(), Vec::new());
        for entry in entries {
            let Ok(entry) = entry else { break };
            let name = Path::new(OsStr::from_bytes(entry.file_name().to_bytes()));
            if name == Path::new(".") || name == Path::new("..") {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    look(&folder, name).map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
                }
                kind => kind,
            };
            let is_folder = kind == FileType::Directory;
            if !(is_folder || kind == FileType::RegularFile) || (is_folder && name == Path::new(".git")) {
                continue;
            }
            let shown = below.join(name);
            let real = self.start.join(&shown);
            if rules.as_ref().and_then(Option::as_ref).is_some_and(|rules| rules.leave_out(&real, is_folder)) {
                continue;
            }
            if self.visited.fetch_add(1, Ordering::Relaxed) >= MOST_VISITED {
                break;
            }
            if self.shared.guard.covers_entry(self.root, &real, is_folder) || self.shared.ours().is_place(self.root, &real) {
                self.skip();
                continue;
            }
            if let Wanted::Names(names) = self.wanted
                && names.fits(&shown)
            {
                self.kept.add(shown.clone(), vec![Match::Path { is_folder }]);
            }
            if is_folder {
                let (above, rules, name) = (Arc::clone(&folder), rules.clone(), name.to_path_buf());
                jobs.push(Job::Folder { above, name, below: shown, rules, depth: depth + 1 });
            } else if let Wanted::Lines { files: glob, .. } = self.wanted
                && glob.as_ref().is_none_or(|glob| glob.fits(&shown))
            {
                files.push(name.to_path_buf());
            }
        }
        let mut batches = files.chunks(BATCH);
        let first = batches.next().unwrap_or_default();
        for names in batches {
            jobs.push(Job::Files { folder: Arc::clone(&folder), below: below.to_path_buf(), names: names.to_vec() });
        }
        self.push(jobs);
        self.files(searcher, &folder, below, first);
    }

    /// Neither folders of this program nor the system's tree of processes.
    fn may_enter(&self, folder: &Dir) -> bool {
        let is_ours = rustix::fs::fstat(folder).is_ok_and(|stat| self.shared.ours().is(&stat));
        !is_ours && !is_of_processes(folder)
    }

    fn files(&self, searcher: &mut Searcher, folder: &Dir, below: &Path, names: &[PathBuf]) {
        for name in names {
            if self.cancel.is_cancelled() {
                return;
            }
            self.file(searcher, folder, name, &below.join(name));
        }
    }

    fn file(&self, searcher: &mut Searcher, folder: &Dir, name: &Path, shown: &Path) {
        let Wanted::Lines { pattern, .. } = self.wanted else { return };
        if self.kept.is_past(shown) {
            return;
        }
        let Ok(file) = open_file(folder, name) else {
            self.skip();
            return;
        };
        let stat = rustix::fs::fstat(&file)
            .ok()
            .filter(|stat| kind_of_stat(stat) == "file" && !self.shared.is_linked(stat) && !self.shared.ours().is(stat));
        match stat.map(|stat| (lines_of(searcher, pattern, &file, self.kept.most()), stat)) {
            Some((Ok(Some(matches)), _)) if matches.is_empty() => {}
            // This takes longer than most files do, and only what is shown can tell anything of what is outside.
            Some((Ok(Some(matches)), stat)) if !self.shared.may_be_outside(folder, name, &stat) => {
                self.kept.add(shown.to_path_buf(), matches);
            }
            Some((Ok(_) | Err(_), _)) | None => self.skip(),
        }
    }
}
