use turnwright_host::config::{Overrides, load};

use super::{environment, file, load_with};

#[test]
fn what_is_shown_names_the_place_of_each_value_and_hides_secrets() {
    let environment =
        environment().with("TOKEN", "sk-secret").with("TURNWRIGHT_APPROVE", "all").with("GROQ_API_KEY", "sk-groq");
    let text = r#"
[providers.p]
dialect = "openai-chat"
api_key = "${TOKEN}"
headers = { X-Key = "sk-secret" }
models = ["m"]
[mcp.servers."a b"]
command = "run"
args = ["--token", "${TOKEN}"]
env = { T = "sk-secret" }
[[approval.rules]]
tool = "a__*"
when = { path = "/tmp/**" }
action = "deny"
[storage]
database = "postgres://u:sk-secret@h/d"
"#;
    let overrides = Overrides { max_steps: Some(3), system: Some("a ${b}".to_owned()), ..Overrides::default() };
    let shown = load(Some(&file(text)), &environment, &overrides).unwrap().show();
    assert!(!shown.contains("sk-"), "{shown}");
    let expected = r#"# /work-dir/turnwright.toml
approve = "all"  # TURNWRIGHT_APPROVE
max_steps = 3  # --max-steps
system_prompt = "a $${b}"  # --system
data_dir = "/home/ada/.local/share/turnwright"  # default
log_format = "text"  # default

[providers.p]
dialect = "openai-chat"  # turnwright.toml:3
api_key = "***"  # turnwright.toml:4
models = ["m"]  # turnwright.toml:6

[providers.p.headers]
X-Key = "***"  # turnwright.toml:5

[mcp.servers."a b"]
command = "run"  # turnwright.toml:8
args = ["--token", "***"]  # turnwright.toml:9
enabled = true  # default
serial = false  # default
trust_annotations = false  # default
start = "lazy"  # default

[mcp.servers."a b".env]
T = "***"  # turnwright.toml:10

[tools.filesystem]
enabled = true  # default
roots = ["/work-dir"]  # default
hard_links = false  # default

[tools.command]
enabled = true  # default
roots = ["/work-dir"]  # default
sandbox = "preferred"  # default
network = false  # default

[tools.artifact]
enabled = true  # default

[tools.search]
above_percent = 10  # default
results = 5  # default

[knowledge]
enabled = true  # default
budget_tokens = 2000  # default
max_pieces = 8  # default
piece_tokens = 400  # default
overlap_tokens = 50  # default

[instructions]
enabled = true  # default
files = ["AGENTS.md"]  # default
max_bytes = 32768  # default

[memory]
enabled = true  # default

[[approval.rules]]
tool = "a__*"
when = { path = "/tmp/**" }
action = "deny"

[loops]
nudge = 3  # default
ask = 5  # default
stop = 8  # default

[storage]
durability = "process"  # default
database = "postgres://u:***@h/d"  # turnwright.toml:16

[server]
listen = "127.0.0.1:8700"  # default
tool_activity = "hidden"  # default
grace_ms = 10000  # default

[server.limits]
turns = 1024  # default
turns_per_user = 256  # default
streams = 8192  # default
streams_per_user = 2048  # default
body_bytes = 33554432  # default
body_bytes_per_second = 1024  # default
message_bytes = 4194304  # default
attachments = 32  # default
attachment_bytes = 20971520  # default
rules_per_user = 1000  # default

[apps]
enabled = true  # default

[telemetry]
sample = 1.0  # default
content = false  # default

[notify]
timeout_ms = 10000  # default
content = false  # default

[nats]
prefix = "turnwright"  # default
replicas = 1  # default
queue = 100000  # default

# [providers.groq] found by GROQ_API_KEY: openai-chat at https://api.groq.com/openai/v1
"#;
    assert_eq!(shown, expected);
}

#[test]
fn what_may_be_secret_in_a_url_is_not_shown() {
    let rows = [
        ("https://h/v1?key=SECRET&v=SECRET&x=", "https://h/v1?key=***&v=***&x="),
        ("https://h/v1?SECRET#SECRET", "https://h/v1?***"),
        ("https://h/v1#SECRET", "https://h/v1#***"),
        ("http://SECRET@h:1/v1", "http://***@h:1/v1"),
        ("http://u:SECRET@h", "http://***@h"),
        ("http://[::1]:8080/@scope/v1", "http://[::1]:8080/@scope/v1"),
    ];
    for (url, expected) in rows {
        let shown = load_with(&format!("[mcp.servers.p]\nurl = \"{url}\"\n"), &environment()).unwrap().show();
        assert!(shown.contains(&format!("\nurl = \"{expected}\"  # ")), "{url}:\n{shown}");
    }
    let rows = [
        ("postgres://ada@h/d", "postgres://ada@h/d"),
        ("postgres://ada:SECRET@h/d?password=SECRET", "postgres://ada:***@h/d?password=***"),
    ];
    for (url, expected) in rows {
        let shown = load_with(&format!("[storage]\ndatabase = \"{url}\"\n"), &environment()).unwrap().show();
        assert!(shown.contains(&format!("\ndatabase = \"{expected}\"  # ")), "{url}:\n{shown}");
    }
    // What people paste into a report is what lists show: parts of paths that are keys, and arguments that are named so.
    let text = r#"
[mcp.servers.h]
url = "https://h/mcp/k7JJ1B2C3D4E5F6G7H8SECRET?token=SECRET"
[mcp.servers.s]
command = "c"
args = ["--quiet", "--token", "open-SECRET", "--api-key=open-SECRET", "$${A}"]
[notify.webhook]
url = "https://h/hook/w7JJ1B2C3D4E5F6G7H8SECRET"
secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"
"#;
    let shown = load_with(text, &environment()).unwrap().show();
    for line in [
        "url = \"https://h/mcp/***?token=***\"",
        "args = [\"--quiet\", \"--token\", \"***\", \"--api-key=***\", \"$${A}\"]",
        "url = \"https://h/hook/***\"",
    ] {
        assert!(shown.contains(&format!("\n{line}  # ")) && !shown.contains("SECRET"), "{line}:\n{shown}");
    }
    let text = "[providers.p]\ndialect = \"gemini\"\nbase_url = \"ftp://u:SECRET@h?key=SECRET\"\n";
    let told = load_with(text, &environment()).unwrap_err().to_string();
    assert!(told.contains("is \"ftp://u:***@h?key=***\"; it must be"), "{told}");
    let prompt = "Look at http://h/a, --db=postgres://ada:SECRET@h/d first: x";
    let shown = load_with(&format!("system_prompt = \"{prompt}\"\n"), &environment()).unwrap().show();
    assert!(shown.contains(&format!("system_prompt = \"{}\"  # ", prompt.replace("SECRET", "***"))), "{shown}");
}

#[test]
fn what_is_shown_loads_as_the_same_configuration() {
    let text = "model = \"p.q/m\"\nsystem_prompt = \"\"\"\nline \\\"one\\\" $${x}\nline two\"\"\"\n[providers.\"p.q\"]\ndialect = \"gemini\"\n[[approval.rules]]\ntool = \"x\"\naction = \"ask\"\n";
    let first = load_with(text, &environment()).unwrap();
    let second = load_with(&first.show(), &environment()).unwrap();
    assert_eq!(
        second.show().replace(char::is_numeric, ""),
        first.show().replace("default", "turnwright.toml:").replace(char::is_numeric, "")
    );
    assert_eq!(second.config.providers, first.config.providers);
    assert_eq!(second.config.system_prompt, first.config.system_prompt);
    assert_eq!(second.config.approval, first.config.approval);
}

#[test]
fn no_debug_form_shows_a_secret() {
    let environment = environment().with("TOKEN", "sk-secret").with("OPENAI_API_KEY", "sk-secret");
    let text = "[providers.p]\ndialect = \"gemini\"\napi_key = \"${TOKEN}\"\nheaders = { K = \"sk-secret\" }\n[mcp.servers.s]\ncommand = \"c\"\nenv = { K = \"sk-secret\" }\n[storage]\ndatabase = \"postgres://u:sk-secret@h/d\"";
    let loaded = load_with(text, &environment).unwrap();
    let shown = format!("{loaded:?} {environment:?} {:?}", file(text));
    assert!(!shown.contains("sk-secret"), "{shown}");
}
