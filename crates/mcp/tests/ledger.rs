//! The memory of processes: what a killed host left is swept at the next start, and nothing else is touched.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{misbehaving, started};
use turnwright_engine::ToolSource;
use turnwright_mcp::{FileLedger, ProcessLedger, ProcessRecord, sweep_gone};

/// A process that nobody owns any more, with or without a mark.
fn orphan(mark: Option<&str>) -> Child {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new("sleep");
    command.arg("3600").stdin(Stdio::null()).process_group(0);
    if let Some(mark) = mark {
        command.env("TURNWRIGHT_PROCESS", mark);
    }
    command.spawn().unwrap()
}
fn record(mark: &str) -> ProcessRecord {
    ProcessRecord::new(mark, "s")
}
fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned()
}

/// Field 22 of `stat`.
fn start_of(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap()
}
async fn sweep(folder: &Path) -> usize {
    sweep_gone(folder, async |driver| driver == "alive").await.unwrap()
}

/// Whether the process was ended; ends it in any case.
fn was_ended(mut child: Child) -> bool {
    let was_ended = !crate::support::is_alive(child.id().cast_signed());
    child.kill().unwrap();
    child.wait().unwrap();
    was_ended
}

#[tokio::test]
async fn marked_processes_of_a_gone_driver_are_swept_and_those_of_a_living_one_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let mark = format!("{:x}", std::process::id());
    let (gone, alive) = (format!("{mark}a"), format!("{mark}b"));
    FileLedger::open(folder.path(), "gone").unwrap().started(&record(&gone)).unwrap();
    FileLedger::open(folder.path(), "alive").unwrap().started(&record(&alive)).unwrap();
    let (left, kept) = (orphan(Some(&gone)), orphan(Some(&alive)));
    assert_eq!(sweep(folder.path()).await, 1);
    assert!(was_ended(left), "also one whose group was not recorded yet");
    assert!(!was_ended(kept));
    let drivers: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|driver| driver.unwrap().file_name()).collect();
    assert_eq!(drivers, ["alive"]);
}

#[tokio::test]
async fn an_unmarked_process_is_swept_only_where_it_is_the_recorded_one() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = FileLedger::open(folder.path(), "gone").unwrap();
    let (same, other, rebooted) = (orphan(None), orphan(None), orphan(None));
    let recorded = |child: &Child, mark: &str, later: u64, boot_id: String| ProcessRecord {
        pgid: Some(child.id().cast_signed()),
        started: Some(start_of(child.id()) + later),
        boot_id: Some(boot_id),
        ..record(mark)
    };
    ledger.started(&recorded(&same, "c1", 0, boot_id())).unwrap();
    ledger.started(&recorded(&other, "c2", 1, boot_id())).unwrap();
    ledger.started(&recorded(&rebooted, "c3", 0, "another".into())).unwrap();
    assert_eq!(sweep(folder.path()).await, 3);
    assert_eq!((was_ended(same), was_ended(other), was_ended(rebooted)), (true, false, false));
}

/// Copies the records of the driver `gone`.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to.join("gone")).unwrap();
    for file in from.join("gone").read_dir().unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), to.join("gone").join(file.file_name())).unwrap();
    }
}

#[tokio::test]
async fn a_copy_of_the_folder_ends_nothing_and_the_folder_itself_does_also_where_it_was_moved() {
    let folder = tempfile::tempdir().unwrap();
    let (served, copied, moved) = (folder.path().join("served"), folder.path().join("copied"), folder.path().join("moved"));
    let mark = format!("{:x}c0", std::process::id());
    let left = orphan(Some(&mark));
    let of_group = ProcessRecord {
        pgid: Some(left.id().cast_signed()),
        started: Some(start_of(left.id())),
        boot_id: Some(boot_id()),
        ..record(&mark)
    };
    FileLedger::open(&served, "gone").unwrap().started(&of_group).unwrap();
    copy(&served, &copied);
    let of_copy = sweep(&copied).await;
    let lives = crate::support::is_alive(left.id().cast_signed());
    let is_forgotten = !copied.join("gone").exists();
    std::fs::rename(&served, &moved).unwrap();
    let of_moved = sweep(&moved).await;
    assert_eq!((of_copy, lives, is_forgotten, of_moved), (0, true, true, 1));
    assert!(was_ended(left));
}

#[tokio::test]
async fn a_record_that_does_not_say_where_it_was_written_ends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mark = format!("{:x}01d", std::process::id());
    let left = orphan(Some(&mark));
    let of_older_version = serde_json::json!({"mark": mark, "server": "s", "pgid": null, "started": null, "boot_id": null});
    let driver = folder.path().join("gone");
    std::fs::create_dir(&driver).unwrap();
    std::fs::write(driver.join(format!("{mark}.json")), of_older_version.to_string()).unwrap();
    assert_eq!(sweep(folder.path()).await, 0);
    assert!(!was_ended(left));
    assert!(!driver.exists());
}

#[tokio::test]
async fn no_folder_holds_no_records() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(sweep(&folder.path().join("none")).await, 0);
}

#[tokio::test]
async fn a_running_server_is_recorded_and_swept_whole_when_its_host_is_gone() {
    let fixture = started(misbehaving("tree_deaf", "")).await;
    fixture.logged("child").await;
    let children = crate::support::children(&fixture);
    let records = fixture.records();
    assert_eq!((records.len(), records[0].server.as_str()), (1, "bad"));
    // What the next host does; here the owner lives and sees its server die.
    let processes = fixture.folder.path().join("processes");
    let copied = tempfile::tempdir().unwrap();
    let ledger = FileLedger::open(copied.path(), "test").unwrap();
    ledger.started(&records[0]).unwrap();
    assert_eq!(sweep(copied.path()).await, 1);
    assert!(!children.iter().any(|child| crate::support::is_alive(*child)));
    fixture.logged("it ended by itself (killed by SIGKILL)").await;
    fixture.server.stop().await;
    assert!(processes.join("test").read_dir().unwrap().next().is_none());
}
