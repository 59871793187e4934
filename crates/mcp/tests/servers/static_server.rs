//! An MCP server (handshake era, over its standard input and output) that needs nothing but a kernel: built statically by
//! scripts/start-test-docker, it is all there is in the image of the container tests.
//!
//! Its tool `look TEXT` says what it can see and do in there, `crash` ends it with 3, `eat` takes memory without end.
//! As `server deaf` it minds neither SIGTERM (it has no handler; whoever is first of a container is deaf by that) nor the
//! end of its input.

use std::fmt::Write as _;
use std::io::{BufRead, Write as _};

fn main() {
    let deaf = std::env::args().nth(1).as_deref() == Some("deaf");
    eprintln!("started");
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Some(id) = field(&line, "\"id\":") else { continue };
        let answer = if line.contains("\"initialize\"") {
            let version = field(&line, "\"protocolVersion\":").unwrap_or("\"2025-11-25\"");
            format!(
                r#""result":{{"protocolVersion":{version},"capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"static","version":"1"}}}}"#
            )
        } else if line.contains("\"tools/list\"") {
            let tool = |name: &str| format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#);
            format!(r#""result":{{"tools":[{},{},{}]}}"#, tool("look"), tool("crash"), tool("eat"))
        } else if line.contains("\"tools/call\"") && line.contains("\"look\"") {
            format!(r#""result":{{"content":[{{"type":"text","text":"{}"}}]}}"#, escaped(&look()))
        } else if line.contains("\"tools/call\"") && line.contains("\"crash\"") {
            eprintln!("about to crash");
            std::process::exit(3);
        } else if line.contains("\"tools/call\"") && line.contains("\"eat\"") {
            let mut eaten = Vec::new();
            loop {
                eaten.push(vec![1_u8; 1 << 20]);
            }
        } else {
            r#""error":{"code":-32601,"message":"Method not found"}"#.to_owned()
        };
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#).and_then(|()| out.flush());
    }
    while deaf {
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
}

/// The value after this text, where it is a number or a plain string.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = line.split_once(name)?.1.trim_start();
    rest.find([',', '}']).and_then(|end| rest.get(..end)).map(str::trim)
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// One line for each thing that a container may or may not have.
fn look() -> String {
    let mut seen = String::new();
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let networks = std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let mut networks: Vec<_> = networks.map(|it| it.file_name().to_string_lossy().into_owned()).collect();
    networks.sort();
    let _ = writeln!(seen, "networks: {}", networks.join(" "));
    let status = read("/proc/self/status");
    for wanted in ["CapEff:", "NoNewPrivs:"] {
        let _ = writeln!(seen, "{}", status.lines().find(|it| it.starts_with(wanted)).unwrap_or_default().replace('\t', " "));
    }
    for path in ["/written", "/tmp/written", "/shut/written", "/open/written"] {
        let _ = writeln!(seen, "{path}: {}", if std::fs::write(path, "x").is_ok() { "written" } else { "refused" });
    }
    let _ = writeln!(seen, "/shut/note: {}", read("/shut/note"));
    let mut names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
    names.sort();
    let _ = writeln!(seen, "variables: {}", names.join(" "));
    let _ = write!(seen, "GIVEN={}", std::env::var("GIVEN").unwrap_or_default());
    seen
}
