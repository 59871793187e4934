//! Who may change what: changes of the same path, or of a folder and of what is in it, happen one after the other, in the order
//! in which they asked. Others happen at the same time.
//!
//! The engine keeps the calls of one step in order by what their arguments say ([`written`]). Here the paths are real ones, without links, and
//! the calls are those of all conversations.

use std::path::{Component, Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};
use turnwright_engine::source::{ToolError, Writes};

use super::Shared;
use super::open::AtEnd;
use crate::error::failed;
use crate::roots::{Place, Roots};

/// The changes that happen, and those that wait.
#[derive(Debug, Default)]
pub(super) struct Changing {
    queue: Mutex<Queue>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    next: u64,
    /// In the order in which they asked.
    asked: Vec<(u64, Vec<PathBuf>)>,
}

/// A change that may happen, until it is dropped.
#[derive(Debug)]
pub(super) struct Held<'a> {
    changing: &'a Changing,
    number: u64,
}

impl Changing {
    /// Waits until nothing that asked before is about to change one of `paths`, something in them, or a folder that they are in.
    pub(super) fn hold(&self, paths: &[PathBuf]) -> Held<'_> {
        let paths: Vec<PathBuf> = paths.iter().map(|path| folded(path)).collect();
        let mut queue = self.queue();
        let number = queue.next;
        queue.next = number.wrapping_add(1);
        queue.asked.push((number, paths));
        while queue.is_blocked(number) {
            queue = self.freed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        Held { changing: self, number }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn is_blocked(&self, number: u64) -> bool {
        let Some((_, paths)) = self.asked.iter().find(|(asked, _)| *asked == number) else { return false };
        let mut before = self.asked.iter().take_while(|(asked, _)| *asked != number);
        before.any(|(_, theirs)| theirs.iter().any(|their| paths.iter().any(|our| overlap(our, their))))
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.changing.queue().asked.retain(|(asked, _)| *asked != self.number);
        self.changing.freed.notify_all();
    }
}

fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Names that some file systems take for the same are the same here.
fn folded(path: &Path) -> PathBuf {
    PathBuf::from(path.to_string_lossy().to_lowercase())
}

impl Shared {
    /// Waits until what these paths really name may be changed. Nothing is made on the way.
    pub(super) fn hold(&self, paths: &[(&str, AtEnd)]) -> Result<Held<'_>, ToolError> {
        let places = paths.iter().map(|(path, at_end)| Ok((self.roots.place(path)?, *at_end)));
        self.hold_places(&places.collect::<Result<Vec<_>, ToolError>>()?)
    }

    /// The same for places.
    pub(super) fn hold_places(&self, places: &[(Place<'_>, AtEnd)]) -> Result<Held<'_>, ToolError> {
        // A link may be put in place of a folder while it is waited.
        const ROUNDS: usize = 8;
        let real = || places.iter().map(|(place, at_end)| self.absolute(place, *at_end)).collect::<Result<Vec<_>, _>>();
        let mut wanted = real()?;
        for _ in 0..ROUNDS {
            let held = self.changing.hold(&wanted);
            let now = real()?;
            if now == wanted {
                return Ok(held);
            }
            drop(held);
            wanted = now;
        }
        let names: Vec<String> = places.iter().map(|(place, _)| format!("`{}`", place.shown)).collect();
        Err(failed(format!("{} was changed while it was looked at; try again", names.join(" or "))))
    }
}

/// What a call writes, by its arguments alone: links are not looked at.
pub(super) fn written(roots: &Roots, arguments: &Map<String, Value>) -> Writes {
    let keys = ["path", "from", "to"];
    let paths = keys.iter().filter_map(|key| arguments.get(*key)?.as_str());
    let paths: Option<Vec<PathBuf>> = paths.map(|path| Some(without_dots(&roots.place(path).ok()?.absolute()))).collect();
    // Where it is said by an id, or leads out: whatever it is.
    paths.filter(|paths| !paths.is_empty()).map_or(Writes::All, Writes::Paths)
}

fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex};

    use super::{Changing, overlap};

    fn paths(paths: &[&str]) -> Vec<PathBuf> {
        paths.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn changes_of_different_files_happen_at_once() {
        let changing = Changing::default();
        let held = [&["/r/a"][..], &["/r/b"], &["/r/ab", "/r/d/x"], &["/r/d/y"]].map(|these| changing.hold(&paths(these)));
        drop(held);
        assert_eq!(changing.queue().asked.len(), 0);
    }

    #[test]
    fn a_change_waits_for_all_that_asked_before_and_name_the_same() {
        for (first, second) in [("/r/a", "/r/a"), ("/r/a", "/r/A"), ("/r/d", "/r/d/x"), ("/r/d/x", "/r/d"), ("/", "/r")] {
            let (changing, has_begun) = (Arc::new(Changing::default()), Arc::new(AtomicBool::new(false)));
            let held = changing.hold(&paths(&[first]));
            let waiting = std::thread::spawn({
                let (changing, has_begun) = (changing.clone(), has_begun.clone());
                move || {
                    let _held = changing.hold(&paths(&["/other", second]));
                    has_begun.store(true, Ordering::SeqCst);
                }
            });
            while changing.queue().asked.len() < 2 {
                std::thread::yield_now();
            }
            // Nobody overtakes it, though what is held is another.
            assert!(changing.queue().is_blocked(1) && !has_begun.load(Ordering::SeqCst), "{first} {second}");
            drop(held);
            waiting.join().unwrap();
            assert!(has_begun.load(Ordering::SeqCst));
        }
    }

    #[test]
    fn whatever_is_changed_by_many_at_once_no_two_changes_of_the_same_overlap() {
        const PATHS: [&str; 7] = ["/a", "/a/b", "/a/b/c", "/a/d", "/ab", "/e", "/e/f"];
        let (changing, active) = (Changing::default(), Mutex::new(Vec::<Vec<PathBuf>>::new()));
        std::thread::scope(|scope| {
            for thread in 0..6_usize {
                let (changing, active) = (&changing, &active);
                scope.spawn(move || {
                    for round in 0..300_usize {
                        let number = thread.wrapping_mul(7_919).wrapping_add(round.wrapping_mul(104_729));
                        let wanted = paths(&[PATHS[number % 7], PATHS[number / 7 % 7]]);
                        let held = changing.hold(&wanted);
                        {
                            let mut active = active.lock().unwrap();
                            let clashes = |theirs: &Vec<PathBuf>| {
                                theirs.iter().any(|their| wanted.iter().any(|our: &PathBuf| overlap(our, Path::new(their))))
                            };
                            assert!(!active.iter().any(clashes), "{wanted:?} and {active:?}");
                            active.push(wanted.clone());
                        }
                        std::thread::yield_now();
                        let mut active = active.lock().unwrap();
                        let at = active.iter().position(|theirs| *theirs == wanted).unwrap();
                        active.remove(at);
                        drop(held);
                    }
                });
            }
        });
    }
}
