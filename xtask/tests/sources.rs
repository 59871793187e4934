//! What every source file and document of the tree keeps to, as far as no lint checks it.

#![expect(clippy::unwrap_used, reason = "helpers of tests; clippy excuses only the test functions themselves")]

use std::path::{Path, PathBuf};

/// A file beyond this holds two ideas.
const MAX_LINES: usize = 600;

#[test]
fn no_source_file_is_longer_than_one_idea() {
    let mut wrong = Vec::new();
    for file in sources() {
        let lines = read(&file).lines().count();
        if lines > MAX_LINES {
            wrong.push(format!("{} has {lines} lines, limit {MAX_LINES}: split it by idea", shown(&file)));
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn every_crate_says_what_it_is() {
    let mut wrong = Vec::new();
    for folder in crate_folders() {
        let crate_root = ["src/lib.rs", "src/main.rs"].map(|name| folder.join(name)).into_iter().find(|path| path.exists());
        let documented = crate_root.is_some_and(|path| read(&path).trim_start().starts_with("//! "));
        if !documented {
            wrong.push(format!("{} must begin with its crate's documentation (`//! …`)", shown(&folder)));
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn the_names_of_the_conventions_for_traces_stand_in_one_module() {
    const NAMES: [&str; 5] = ["gen_ai.", "mcp.method.", "mcp.session.", "mcp.protocol.", "jsonrpc.request."];
    let home = root().join("crates/engine/src/telemetry");
    let wrong: Vec<String> = sources()
        .into_iter()
        .filter(|file| !file.starts_with(&home) && NAMES.iter().any(|name| read(file).contains(name)))
        .map(|file| format!("{} names attributes of spans: that is for {}", shown(&file), shown(&home)))
        .collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn every_path_and_test_that_the_documents_name_is_there() {
    let mut wrong = Vec::new();
    let mut documents = vec![root().join("README.md"), root().join("ARCHITECTURE.md"), root().join("CONTRIBUTING.md")];
    documents.extend(files_below(&root().join("docs"), "md"));
    for document in documents.into_iter().filter(|path| path.exists()) {
        for named in quoted(&read(&document)) {
            if let Err(why) = check_named(&named) {
                wrong.push(format!("{} names `{named}`: {why}", shown(&document)));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// A path of the tree, or `path::test`, the test by its function's name.
fn check_named(named: &str) -> Result<(), String> {
    const TOP: [&str; 7] = ["crates/", "xtask/", "docs/", "scripts/", "benches/", ".ci/", ".config/"];
    if !TOP.iter().any(|top| named.starts_with(top)) || named.contains(['*', '<', '{', ' ', '…']) {
        return Ok(());
    }
    let (path, test) = named.split_once("::").map_or((named, None), |(path, test)| (path, Some(test)));
    let path = root().join(path);
    if !path.exists() {
        return Err("there is no such file".to_owned());
    }
    match test {
        Some(test) if !read(&path).contains(&format!("fn {test}(")) => Err("that file has no such test".to_owned()),
        _ => Ok(()),
    }
}

/// What stands between backticks.
fn quoted(text: &str) -> Vec<String> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn crate_folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|path| path.join("Cargo.toml").exists());
    folders.push(root().join("xtask"));
    folders
}

fn sources() -> Vec<PathBuf> {
    crate_folders().iter().flat_map(|folder| files_below(&folder.join("src"), "rs")).collect()
}

fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| match path {
            path if path.is_dir() => files_below(&path, extension),
            path if path.extension().is_some_and(|found| found == extension) => vec![path],
            _ => Vec::new(),
        })
        .collect()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
