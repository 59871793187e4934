//! What the built-in tools cost beside doing the same plainly: a search beside `rg`, reading and editing 10 MB beside reading
//! and writing them, a confined command beside a bare one.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    reason = "a benchmark fails by panicking"
)]

use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use turnwright_engine::source::{CallContext, Progress, ProgressSink, SourceCall, ToolOutput, ToolSource};
use turnwright_tools::{
    CommandConfig, FilesystemConfig, PlainLauncher, SandboxConfig, SandboxLauncher, TypedSource, command, filesystem,
};

const FILES: usize = 50_000;
const FILES_IN_FOLDER: usize = 100;
const LARGE: usize = 10 * 1024 * 1024;

#[derive(Debug)]
struct NoProgress;

impl ProgressSink for NoProgress {
    fn report(&self, _: Progress) {}
}

fn call(runtime: &Runtime, source: &TypedSource, tool: &str, arguments: &Value) -> ToolOutput {
    let Value::Object(arguments) = arguments.clone() else { return ToolOutput::default() };
    let call = SourceCall { tool: tool.to_owned(), arguments, idempotency_key: String::new() };
    let context = CallContext::new(CancellationToken::new(), Arc::new(NoProgress));
    runtime.block_on(source.call(call, context)).unwrap()
}

fn tree(root: &Path) {
    let line = "let value = compute(index, other) + 17; // an ordinary line of an ordinary program\n";
    for number in 0..FILES {
        let folder = root.join(format!("folder{}", number / FILES_IN_FOLDER));
        if number % FILES_IN_FOLDER == 0 {
            std::fs::create_dir(&folder).unwrap();
        }
        let mut text = line.repeat(10 + number % 40);
        if number % 1_000 == 7 {
            text.push_str("a needle in this file\n");
        }
        std::fs::write(folder.join(format!("file{number}.rs")), text).unwrap();
    }
    std::fs::write(root.join(".gitignore"), "*.log\ntarget/\n").unwrap();
}

fn search(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    tree(folder.path());
    let runtime = Runtime::new().unwrap();
    let source = filesystem(FilesystemConfig::new(vec![folder.path().to_path_buf()])).unwrap();
    let mut group = criterion.benchmark_group("search 50,000 files");
    group.sample_size(10);
    let found = call(&runtime, &source, "search", &json!({"pattern": "needle"})).structured_content.unwrap();
    assert_eq!(found["matches"].as_array().map(Vec::len), Some(FILES / 1_000));
    group.bench_function("tool", |bencher| {
        bencher.iter(|| black_box(call(&runtime, &source, "search", &json!({"pattern": "needle"}))));
    });
    let rg = || Command::new("rg").args(["--hidden", "--no-require-git", "needle"]).current_dir(folder.path()).output();
    if rg().is_ok() {
        group.bench_function("rg", |bencher| bencher.iter(|| black_box(rg().unwrap())));
    } else {
        println!("skipped: rg is not installed");
    }
    group.finish();
}

fn large_file(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let text = "an ordinary line of a long file, number 0000000\n".repeat(LARGE / 48);
    let middle = text.len() / 2;
    let text = format!("{}\nthe one line\n{}", &text[..middle], &text[middle..]);
    let path = folder.path().join("large.txt");
    std::fs::write(&path, &text).unwrap();
    let mut config = FilesystemConfig::new(vec![folder.path().to_path_buf()]);
    (config.max_read_bytes, config.max_write_bytes) = (64 << 20, 64 << 20);
    let (source, runtime) = (filesystem(config).unwrap(), Runtime::new().unwrap());
    let mut group = criterion.benchmark_group("a file of 10 MB");
    group.sample_size(20);
    group.bench_function("read plainly", |bencher| bencher.iter(|| black_box(std::fs::read_to_string(&path).unwrap())));
    group.bench_function("read by the tool", |bencher| {
        bencher.iter(|| black_box(call(&runtime, &source, "read", &json!({"path": "large.txt"}))));
    });
    group.bench_function("read, change and write plainly", |bencher| {
        bencher.iter(|| {
            let text = std::fs::read_to_string(&path).unwrap();
            std::fs::write(&path, text.replacen("the one line", "the own line", 1)).unwrap();
        });
    });
    // As it was, and known to the tool.
    std::fs::write(&path, &text).unwrap();
    call(&runtime, &source, "read", &json!({"path": "large.txt"}));
    let mut turn = 0;
    group.bench_function("edit by the tool", |bencher| {
        bencher.iter(|| {
            let (old, new) =
                if turn % 2 == 0 { ("the one line", "the other line") } else { ("the other line", "the one line") };
            turn += 1;
            call(&runtime, &source, "edit", &json!({"path": "large.txt", "old_text": old, "new_text": new}));
        });
    });
    group.finish();
}

fn start(criterion: &mut Criterion) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let environment = vec![("PATH".into(), "/usr/bin:/bin".into())];
    let mut config = CommandConfig::new(vec![folder.path().to_path_buf()], environment);
    let runtime = Runtime::new().unwrap();
    let mut group = criterion.benchmark_group("start of a command");
    group.sample_size(30);
    group.bench_function("bare", |bencher| {
        bencher.iter(|| Command::new("true").stdin(Stdio::null()).status().unwrap());
    });
    config.launcher = Arc::new(PlainLauncher);
    let plain = command(config.clone()).unwrap();
    group.bench_function("tool", |bencher| {
        bencher.iter(|| black_box(call(&runtime, &plain, "run", &json!({"command": "true", "args": []}))));
    });
    let helper = vec![env!("CARGO_BIN_EXE_turnwright-sandbox").into()];
    config.launcher = Arc::new(SandboxLauncher::new(SandboxConfig::new(helper, folder.path().join("temporary"))));
    let confined = command(config).unwrap();
    group.bench_function("tool in the sandbox", |bencher| {
        bencher.iter(|| black_box(call(&runtime, &confined, "run", &json!({"command": "true", "args": []}))));
    });
    group.finish();
}

// The tree is last: ext4 makes a new file many times as slowly for a while after tens of thousands were deleted.
criterion_group!(benches, large_file, start, search);
criterion_main!(benches);
