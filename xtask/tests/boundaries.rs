//! Which crate may depend on which, and which dependency may be used where. The build would allow more than the design
//! does; these tests hold the line.

#![expect(clippy::unwrap_used, reason = "helpers of tests; clippy excuses only the test functions themselves")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

/// What a crate of ours may depend on among ours.
struct Crate {
    name: &'static str,
    may: &'static [&'static str],
    because: &'static str,
}

const CRATES: &[Crate] = &[
    Crate {
        name: "core",
        may: &[],
        because: "the model and its decisions stand alone, so that every one can be tested as a value",
    },
    Crate { name: "api", may: &[], because: "what clients are promised must not change when something inside does" },
    Crate {
        name: "dialects",
        may: &["core"],
        because: "translation is pure: it knows the model and one wire, and nothing that runs",
    },
    Crate { name: "engine", may: &["core"], because: "the driver knows ports, and nothing of what is behind them" },
    Crate {
        name: "providers",
        may: &["core", "dialects", "engine", "network"],
        because: "a provider fills one port of the engine, with the dialects; no other port's crate is its business",
    },
    Crate {
        name: "network",
        may: &[],
        because: "how requests leave the machine is the same for all who ask, and none of their business is its own",
    },
    Crate { name: "mcp", may: &["core", "engine", "network"], because: "it fills the port for tool sources, and nothing else" },
    Crate {
        name: "tools",
        may: &["core", "engine", "network"],
        because: "it fills the ports for tool sources and for what is shown besides, and nothing else",
    },
    Crate { name: "store", may: &["core", "engine"], because: "it fills the port for storage, and nothing else" },
    Crate { name: "nodes", may: &["core", "engine"], because: "it fills the port to other nodes, and decides nothing" },
    Crate {
        name: "host",
        may: &["core", "engine", "network", "nodes", "providers", "mcp", "tools", "store"],
        because: "it composes what fills the ports, and knows nothing of who calls it",
    },
    Crate {
        name: "server",
        may: &["core", "engine", "host", "api"],
        because: "it talks to the engine that the host made; which database or provider is behind it must not matter here",
    },
    Crate {
        name: "terminal",
        may: &["core", "engine", "host", "api"],
        because: "it talks to the engine that the host made; which database or provider is behind it must not matter here",
    },
    Crate { name: "memory", may: &[], because: "it is the allocator under everything" },
    Crate {
        name: "app",
        may: &["core", "engine", "host", "api", "memory", "server", "terminal"],
        because: "the command line calls the host, the server and the terminal; composing is the host's work",
    },
    Crate {
        name: "testkit",
        may: &["core", "engine"],
        because: "it stands in for what fills the ports, and is used by everybody's tests",
    },
];

/// A dependency that only some crates may have.
struct Kept {
    dependencies: &'static [&'static str],
    within: &'static [&'static str],
    because: &'static str,
}

const KEPT: &[Kept] = &[
    Kept {
        dependencies: &["reqwest"],
        within: &["network", "providers", "tools", "mcp", "host"],
        because: "what goes out over HTTP is a model call, a tool call, an MCP server, or an identity provider that the host asks",
    },
    Kept { dependencies: &["rmcp", "bollard"], within: &["mcp"], because: "MCP and containers are one kind of tool source" },
    Kept { dependencies: &["async-nats"], within: &["nodes"], because: "what nodes tell one another goes one way" },
    Kept {
        dependencies: &["rusqlite", "sqlx", "tokio-postgres", "deadpool-postgres"],
        within: &["store"],
        because: "only the store knows that there is a database",
    },
    Kept {
        dependencies: &["axum", "hyper", "tower", "tower-http"],
        within: &["server"],
        because: "only the server knows routes and status codes",
    },
    Kept {
        dependencies: &["clap", "anyhow", "color-eyre", "tracing-subscriber"],
        within: &["app"],
        because: "the command line, its errors and its log are the program's, not the library's",
    },
    Kept { dependencies: &["rustyline"], within: &["terminal"], because: "only the terminal reads keys" },
    Kept {
        dependencies: &["jsonschema"],
        within: &["engine", "mcp"],
        because: "schemas are checked where they come in, arguments where a call is about to run",
    },
    Kept {
        dependencies: &["mimalloc", "libmimalloc-sys"],
        within: &["memory"],
        because: "a program has one allocator, and its unsafe call is in a crate of its own",
    },
    Kept { dependencies: &["cap-std"], within: &["tools"], because: "only the filesystem tools open files for a model" },
    Kept { dependencies: &["toml"], within: &["host", "app"], because: "the configuration is read in one place" },
];

/// All that the pure crates may use besides ours: an addition is a decision, not a habit.
const PURE: &[(&str, &[&str])] = &[
    ("core", &["aho-corasick", "base64", "globset", "regex", "serde", "serde_json", "strsim", "thiserror"]),
    ("dialects", &["base64", "memchr", "serde", "serde_json", "thiserror", "tiktoken-rs"]),
    ("api", &["schemars", "serde", "serde_json", "utoipa"]),
];

/// What no pure crate may reach, not even through others.
const IMPURE: &[&str] = &[
    "async-trait",
    "chrono",
    "futures-executor",
    "getrandom",
    "hyper",
    "jiff",
    "mio",
    "rand",
    "reqwest",
    "socket2",
    "time",
    "tokio",
    "tracing",
];

#[test]
fn every_crate_depends_on_what_the_design_allows() {
    let mut wrong = Vec::new();
    for package in packages(&metadata()) {
        let Some(rule) = CRATES.iter().find(|rule| rule.name == short(&package)) else {
            wrong.push(format!("{} has no row in the table of this test: decide what it may depend on", package.name));
            continue;
        };
        for (dependency, kind) in ours(&package) {
            let allowed = rule.may.contains(&dependency.as_str());
            let for_tests = kind == DependencyKind::Development && (dependency == "testkit" || dependency == rule.name);
            if !allowed && !for_tests {
                wrong.push(format!("{} must not depend on {dependency} ({kind}): {}", rule.name, rule.because));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn a_dependency_is_used_only_where_it_belongs() {
    let mut wrong = Vec::new();
    for package in packages(&metadata()) {
        for dependency in third_party(&package, &[DependencyKind::Normal, DependencyKind::Build]) {
            for kept in KEPT.iter().filter(|kept| kept.dependencies.contains(&dependency.as_str())) {
                if !kept.within.contains(&short(&package)) {
                    wrong.push(format!("{} must not use {dependency}: {}", short(&package), kept.because));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn the_pure_crates_use_only_what_computes() {
    let mut wrong = Vec::new();
    for package in packages(&metadata()) {
        let Some((name, allowed)) = PURE.iter().find(|(name, _)| *name == short(&package)) else { continue };
        for dependency in third_party(&package, &[DependencyKind::Normal, DependencyKind::Build]) {
            if !allowed.contains(&dependency.as_str()) {
                wrong.push(format!("{name} must not use {dependency}: it may use {allowed:?}, all of which only compute"));
            }
        }
        for reached in reached(&package) {
            if IMPURE.contains(&reached.as_str()) {
                wrong
                    .push(format!("{name} reaches {reached} through others: no IO, no runtime, no clock, no randomness there"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn every_direct_dependency_has_its_reason_in_the_contributors_guide() {
    let guide = std::fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let kinds = [DependencyKind::Normal, DependencyKind::Build, DependencyKind::Development];
    let metadata = metadata();
    let used: BTreeSet<String> =
        metadata.workspace_packages().into_iter().flat_map(|package| third_party(package, &kinds)).collect();
    let listed: BTreeSet<String> = guide
        .lines()
        .skip_while(|line| *line != "| Dependency | For |")
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .flat_map(|line| line.split('|').nth(1).unwrap_or_default().split(','))
        .map(|name| name.trim().trim_matches('`').to_owned())
        .collect();
    let missing: Vec<_> = used.difference(&listed).collect();
    let stale: Vec<_> = listed.difference(&used).collect();
    assert!(
        missing.is_empty() && stale.is_empty(),
        "the table of dependencies in CONTRIBUTING.md lacks {missing:?} and lists {stale:?}, which nothing uses"
    );
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn metadata() -> Metadata {
    MetadataCommand::new().manifest_path(root().join("Cargo.toml")).no_deps().exec().unwrap()
}

/// The crates below `crates/`.
fn packages(metadata: &Metadata) -> Vec<Package> {
    let packages = metadata.workspace_packages().into_iter().filter(|package| package.name.as_str() != "xtask");
    packages.cloned().collect()
}

/// The folder's name, such as `core`.
fn short(package: &Package) -> &str {
    package.name.as_str().trim_start_matches("turnwright-")
}

fn ours(package: &Package) -> Vec<(String, DependencyKind)> {
    let dependencies = package.dependencies.iter();
    dependencies.filter_map(|one| Some((one.name.strip_prefix("turnwright-")?.to_owned(), one.kind))).collect()
}

fn third_party(package: &Package, kinds: &[DependencyKind]) -> Vec<String> {
    let dependencies = package.dependencies.iter().filter(|one| kinds.contains(&one.kind));
    dependencies.filter(|one| !one.name.starts_with("turnwright-")).map(|one| one.name.clone()).collect()
}

/// All that is built into a crate on this platform, through any number of others.
fn reached(package: &Package) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--package", package.name.as_str(), "--edges", "normal", "--prefix", "none"])
        .args(["--format", "{p}"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}
