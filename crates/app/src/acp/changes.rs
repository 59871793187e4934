//! What a call is about to change in a file, as a client shows it beside the question whether it may.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use agent_client_protocol::v1::schema::Diff;
use serde_json::Value;

/// The largest file that is shown as it is before it is written over.
const MAX_SHOWN_BYTES: u64 = 1 << 20;

/// The file that a call is about; the protocol wants absolute paths.
pub(super) fn path(folder: &Path, input: &Value) -> Option<PathBuf> {
    Some(folder.join(input.get("path")?.as_str()?))
}

/// What a call changes in a file, as far as its arguments say.
pub(super) fn told(folder: &Path, name: &str, input: &Value) -> Option<Diff> {
    let path = path(folder, input)?;
    let text = |key: &str| input.get(key).and_then(Value::as_str);
    match name {
        "filesystem__write" => Some(Diff::new(path, text("content")?)),
        "filesystem__edit" => Some(Diff::new(path, text("new_text")?).old_text(text("old_text")?.to_owned())),
        _ => None,
    }
}

/// The same with what a file holds that is to be written over. That is not said of one outside of `folder`, one that is large, or
/// no text.
pub(super) fn read(folder: &Path, name: &str, input: &Value) -> Option<Diff> {
    let diff = told(folder, name, input)?;
    if diff.old_text.is_some() {
        return Some(diff);
    }
    let before = text_in(folder, &diff.path);
    Some(diff.old_text(before))
}

fn text_in(folder: &Path, path: &Path) -> Option<String> {
    let path = fs::canonicalize(path).ok()?;
    if !path.starts_with(fs::canonicalize(folder).ok()?) || !fs::metadata(&path).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    File::open(path).ok()?.take(MAX_SHOWN_BYTES.saturating_add(1)).read_to_string(&mut text).ok()?;
    (text.len() as u64 <= MAX_SHOWN_BYTES).then_some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_write_is_shown_with_what_its_file_holds() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("work");
        fs::create_dir_all(folder.join("sub")).unwrap();
        fs::write(folder.join("a.txt"), "hello\n").unwrap();
        fs::write(folder.join("bytes"), b"\xff\xfe").unwrap();
        fs::write(folder.join("large"), vec![b'x'; (1 << 20) + 1]).unwrap();
        fs::write(outer.path().join("out.txt"), "not yours").unwrap();
        std::os::unix::fs::symlink(outer.path().join("out.txt"), folder.join("link")).unwrap();
        let inside = folder.join("a.txt").display().to_string();
        let outside = outer.path().join("out.txt").display().to_string();
        let rows = [
            ("a.txt", Some("hello\n")),
            ("sub/../a.txt", Some("hello\n")),
            (inside.as_str(), Some("hello\n")),
            ("new.txt", None),
            ("sub", None),
            ("bytes", None),
            ("large", None),
            ("link", None),
            ("../out.txt", None),
            (outside.as_str(), None),
        ];
        for (path, before) in rows {
            let diff = read(&folder, "filesystem__write", &json!({"path": path, "content": "hi"})).unwrap();
            assert_eq!((diff.path, diff.old_text.as_deref(), diff.new_text.as_str()), (folder.join(path), before, "hi"));
        }
    }

    #[test]
    fn an_edit_is_shown_as_its_arguments_say_and_what_changes_no_file_not_at_all() {
        let edit = json!({"path": "a.txt", "old_text": "a", "new_text": "b"});
        let diff = read(Path::new("/w"), "filesystem__edit", &edit).unwrap();
        assert_eq!((diff.old_text.as_deref(), diff.new_text.as_str()), (Some("a"), "b"));
        assert_eq!(read(Path::new("/w"), "filesystem__delete", &json!({"path": "a.txt"})), None);
        assert_eq!(read(Path::new("/w"), "filesystem__write", &json!({"content": "x"})), None);
    }
}
