use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use turnwright_core::policy::{Action, RuleText};
use turnwright_core::{ApproveMode, ModelRef, ReasoningEffort};
use turnwright_host::config::{
    ConfigFile, Dialect, Durability, McpFile, McpTool, McpTransport, Overrides, Profile, Secret, expand, json_schema, load,
    printed_schema,
};
use turnwright_host::environment::Environment;

use super::{WORK, environment, file, load_text, load_with};

/// The example of docs/configuration.md.
const CONTRACT: &str = r#"
[providers.local]
dialect  = "openai-chat"               # openai-chat | openai-responses | anthropic | gemini | ollama
base_url = "http://127.0.0.1:8080/v1"
api_key  = "${LOCAL_KEY:-}"
models   = ["qwen2.5-coder-1.5b"]      # optional: else asked from the endpoint
[mcp.servers.time]
command = "mcp-server-time"            # or: url = "…"   or: image = "…" (Docker)
[mcp.servers.time.tools.get_current_time]
read_only = true                       # also: replayable, serial, cache_ttl_ms; trust_annotations on a server
[[approval.rules]]
tool = "filesystem__write*"
when = { "path" = "/tmp/**" }
action = "allow"
"#;

#[test]
fn the_example_of_the_contract_loads() {
    let loaded = load_text(CONTRACT).unwrap();
    assert_eq!(loaded.warnings, []);
    let config = loaded.config;
    let provider = &config.providers["local"];
    assert_eq!(provider.dialect, Some(Dialect::OpenaiChat));
    assert_eq!(provider.base_url.as_deref(), Some("http://127.0.0.1:8080/v1"));
    assert_eq!(provider.api_key, Some(Secret::new("")));
    assert_eq!(provider.models, ["qwen2.5-coder-1.5b"]);
    let server = &config.mcp.servers["time"];
    assert_eq!(server.transport(), Some(McpTransport::Command("mcp-server-time")));
    assert!(server.enabled);
    assert_eq!(server.tools["get_current_time"], McpTool { read_only: Some(true), ..McpTool::default() });
    assert_eq!(
        config.approval.rules,
        [RuleText {
            tool: "filesystem__write*".to_owned(),
            when: BTreeMap::from([("path".to_owned(), "/tmp/**".into())]),
            action: Action::Allow
        }]
    );
}

#[test]
fn a_rule_can_test_arguments_in_every_way() {
    let text = r#"
[[approval.rules]]
tool = "a__*"
when = { amount = { min = 0, max = 9.5 }, path = { below = ["/tmp", "notes"] }, to = { below = "~/out" }, mode = { one_of = ["a", 1] }, command = { program = "git" }, "/a/b" = { glob = "x*" } }
action = "allow"
"#;
    let rules = load_text(text).unwrap().config.approval.rules;
    let expected = "allow a__* when /a/b = x* and amount 0 to 9.5 and command program git and mode one of \"a\", 1 \
                    and path below /tmp or /work-dir/notes and to below /home/ada/out";
    assert_eq!(rules.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
}

#[test]
fn every_key_has_its_place() {
    let config = load_text(
        r#"
model = "a/x"
approve = "read-only"
max_steps = 7
system_prompt = "Be brief."
data_dir = "data"
log_level = "warn,turnwright_mcp=debug"
[settings]
temperature = 1
max_output_tokens = 1000
reasoning_effort = "high"
[providers."a.b c"]
dialect = "ollama"
headers = { X-Title = "t" }
max_retries = 0
fallback = ["b/y"]
profile = { tools = true, recover_text_calls = ["json"] }
connect_ms = 1
start_ms = 3
idle_ms = 2
[providers.b]
dialect = "anthropic"
profile = "vllm"
[mcp]
files = ["servers.json", "/etc/servers.json", "~/servers.json"]
[mcp.servers.s]
image = "mcp/time"
args = ["--utc"]
env = { A = "b" }
serial = true
trust_annotations = true
start_ms = 1
idle_ms = 2
total_ms = 3
max_concurrent_calls = 4
tools = { t = { replayable = true, serial = true, cache_ttl_ms = 5, idle_ms = 6, total_ms = 7 } }
[mcp.servers.r]
url = "https://example.com/mcp"
headers = { Authorization = "Bearer x" }
enabled = false
[tools.filesystem]
roots = [".", "docs", "/tmp"]
[tools.command]
enabled = false
roots = ["sub"]
shell = "/bin/bash"
max_timeout_ms = 30
timeout_ms = 10
max_output_bytes = 20
env = { LANG = "C" }
[storage]
durability = "power"
database = "postgres://u:p@h/d"
[server]
listen = "localhost:80"
"#,
    )
    .unwrap()
    .config;
    assert_eq!(config.model, Some(ModelRef::new("a", "x")));
    assert_eq!((config.approve, config.max_steps()), (ApproveMode::ReadOnly, 7));
    let settings = config.turn_settings(ModelRef::new("a", "x"));
    assert_eq!((settings.temperature, settings.max_output_tokens), (Some(1.0), Some(1000)));
    assert_eq!(
        (settings.reasoning_effort, settings.system_prompt.as_deref()),
        (Some(ReasoningEffort::High), Some("Be brief."))
    );
    assert_eq!(config.providers["a.b c"].fallback, [ModelRef::new("b", "y")]);
    assert!(matches!(&config.providers["a.b c"].profile, Some(Profile::Switches(switches)) if switches.len() == 2));
    assert_eq!(config.providers["b"].profile, Some(Profile::Named("vllm".to_owned())));
    let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
    assert_eq!(config.mcp.files, Some(paths(&["/work-dir/servers.json", "/etc/servers.json", "/home/ada/servers.json"])));
    assert_eq!(config.mcp.servers["s"].transport(), Some(McpTransport::Image("mcp/time")));
    assert_eq!(config.mcp.servers["s"].tools["t"].cache_ttl_ms, Some(5));
    assert_eq!(config.mcp.servers["r"].headers["Authorization"].expose(), "Bearer x");
    assert_eq!(config.tools.filesystem.roots, paths(&["/work-dir", "/work-dir/docs", "/tmp"]));
    assert_eq!(config.tools.command.roots, paths(&["/work-dir/sub"]));
    assert_eq!(config.storage.durability, Durability::Power);
    assert_eq!(config.server.listen, "localhost:80");
}

#[test]
fn providers_and_servers_keep_the_order_of_the_file() {
    let text = ["z", "a", "m"]
        .map(|name| format!("[providers.{name}]\ndialect = \"gemini\"\n[mcp.servers.{name}]\ncommand = \"x\"\n"));
    let config = load_text(&text.concat()).unwrap().config;
    assert_eq!(config.providers.keys().collect::<Vec<_>>(), ["z", "a", "m"]);
    assert_eq!(config.mcp.servers.keys().collect::<Vec<_>>(), ["z", "a", "m"]);
}

#[test]
fn nothing_configured_is_a_configuration() {
    let loaded = load(None, &environment(), &Overrides::default()).unwrap();
    assert_eq!(loaded.data_dir, Path::new("/home/ada/.local/share/turnwright"));
    assert_eq!((loaded.config.max_steps(), loaded.config.approve), (25, ApproveMode::Ask));
    assert_eq!(loaded.config.server.listen, "127.0.0.1:8700");
    assert_eq!(loaded.config.tools.filesystem.roots, [Path::new(WORK)]);
    assert_eq!(loaded.config.tools.command.roots, [Path::new(WORK)]);
    assert_eq!((loaded.endpoints, loaded.file, loaded.warnings), (vec![], None, vec![]));
}

#[test]
fn variables_stand_above_the_file_and_flags_above_variables() {
    let environment = environment()
        .with("TURNWRIGHT_MODEL", "practice/practice")
        .with("TURNWRIGHT_APPROVE", "none")
        .with("TURNWRIGHT_MAX_STEPS", "3")
        .with("TURNWRIGHT_DATA_DIR", "from-variable")
        .with("TURNWRIGHT_LISTEN", "127.0.0.1:1")
        .with("TURNWRIGHT_DATABASE", "postgres://h/d")
        .with("TURNWRIGHT_TOOLS_FILESYSTEM_ROOTS", "/a, b")
        .with("TURNWRIGHT_TOOLS_COMMAND_ENABLED", "false")
        .with("TURNWRIGHT_SETTINGS_TEMPERATURE", "0.5")
        .with("TURNWRIGHT_LOG_LEVEL", "");
    let text = "model = \"x/y\"\napprove = \"all\"\nmax_steps = 9\nlog_level = \"info\"\n[settings]\nmax_steps = 8\n";
    let overrides = Overrides {
        approve: Some("ask".to_owned()),
        data_dir: Some("from-flag".into()),
        max_steps: Some(4),
        system: Some("${literal}".to_owned()),
        ..Overrides::default()
    };
    let loaded = load(Some(&file(text)), &environment, &overrides).unwrap();
    let config = loaded.config;
    assert_eq!(config.model, Some(ModelRef::new("practice", "practice")));
    assert_eq!((config.approve, config.max_steps()), (ApproveMode::Ask, 4));
    assert_eq!(loaded.data_dir, Path::new("/work-dir/from-flag"));
    assert_eq!(config.server.listen, "127.0.0.1:1");
    assert_eq!(config.storage.database, Some(Secret::new("postgres://h/d")));
    assert_eq!(config.tools.filesystem.roots, [Path::new("/a"), Path::new("/work-dir/b")]);
    assert!(!config.tools.command.enabled);
    assert_eq!(config.settings.temperature, Some(0.5));
    assert_eq!(config.log_level.as_deref(), Some("info"));
    assert_eq!(config.system_prompt.as_deref(), Some("${literal}"));
}

#[test]
fn a_variable_that_sets_nothing_is_a_warning_with_the_nearest_name() {
    let environment =
        environment().with("TURNWRIGHT_MODLE", "a/b").with("TURNWRIGHT_TEST_POSTGRES", "x").with("TURNWRIGHT_RECORDINGS", "y");
    let warnings = load_with("", &environment).unwrap().warnings;
    let told: Vec<_> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["TURNWRIGHT_MODLE: no such setting; did you mean `TURNWRIGHT_MODEL`?"]);
}

#[test]
fn a_variable_that_is_no_text_is_refused() {
    let environment = environment().with("TURNWRIGHT_MODEL", OsStr::from_bytes(b"p/\xff"));
    assert_eq!(
        load_with("", &environment).unwrap_err().to_string(),
        "TURNWRIGHT_MODEL: its value is not UTF-8; it must be text"
    );
}

#[test]
fn a_key_without_effect_and_a_model_without_provider_are_warnings() {
    let text = "model = \"opnai/x\"\n[providers.openai]\n[mcp.servers.a]\nurl = \"http://h\"\nargs = [\"x\"]\n";
    let told: Vec<_> = load_text(text).unwrap().warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "turnwright.toml:3: [mcp.servers.a] is reached by `url`; `args` has no effect there",
            "turnwright.toml:1: there is no provider `opnai`; did you mean `openai`?"
        ]
    );
}

#[test]
fn a_limit_in_dollars_over_models_whose_price_nobody_knows_is_a_warning() {
    let told = |budgets: &str, more: &str| -> Vec<String> {
        let text = format!(
            "model = \"here/large\"\n[budgets]\n{budgets}\n[providers.here]\ndialect = \"openai-chat\"\nbase_url = \"http://h/v1\"\n\
             models = [\"small\", \"large\"]\nfallback = [\"openai/gpt-5-mini\"]\n[providers.openai]\n{more}"
        );
        load_text(&text).unwrap().warnings.iter().map(ToString::to_string).collect()
    };
    let priced = |model: &str| format!("[models.\"here/{model}\"]\nprices = {{ input = 0, output = 0 }}\n");
    assert_eq!(
        told("turn = { tokens = 5 }\nusers.ann.user_day = { usd = 1 }", ""),
        [
            "turnwright.toml:4: `budgets.users.ann.user_day.usd` limits dollars, and no price is known of `here/large`, `here/small`: no model \
             without one is asked. Write one under [models.\"here/large\"], such as `prices = { input = 0, output = 0 }`, or limit tokens"
        ]
    );
    assert_eq!(told("day = { usd = 1 }", &priced("large")).len(), 1);
    assert_eq!(told("day = { usd = 1 }", &(priced("large") + &priced("small"))), Vec::<String>::new());
    assert_eq!(told("day = { tokens = 1 }", ""), Vec::<String>::new());
}

#[test]
fn variables_are_put_in_everywhere_once() {
    let environment = environment().with("A", "${B}").with("N", "12").with("YES", "true").with("EMPTY", "").with("LIST", "x,y");
    let text = r#"
system_prompt = "${A} ${MISSING:-d} ${EMPTY:-e} <${EMPTY}> $${A} $A ${env:N} ${workspaceFolderBasename}${/}${userHome}"
max_steps = "${N}"
[settings]
temperature = "${T:-0.5}"
[mcp.servers.s]
command = "${DIR:-bin}/x"
args = ["${N}"]
enabled = "${YES}"
[providers.p]
dialect = "${D:-gemini}"
models = "${LIST}"
"#;
    let config = load_with(text, &environment).unwrap().config;
    assert_eq!(config.system_prompt.as_deref(), Some("${B} d e <> ${A} $A 12 work-dir//home/ada"));
    assert_eq!((config.max_steps, config.settings.temperature), (Some(12), Some(0.5)));
    let server = &config.mcp.servers["s"];
    assert_eq!((server.command.as_deref(), server.args.as_slice()), (Some("/work-dir/bin/x"), ["12".to_owned()].as_slice()));
    assert_eq!(config.providers["p"].dialect, Some(Dialect::Gemini));
    assert_eq!(config.providers["p"].models, ["x", "y"]);
    let expanded = expand("$$${A}", &environment).unwrap();
    assert_eq!((expanded.text.as_str(), expanded.has_variables), ("$${A}", false));
}

#[test]
fn a_server_that_is_switched_off_misses_no_variable() {
    let config = load_text("[mcp.servers.s]\nenabled = false\ncommand = \"c\"\nenv = { K = \"${NOT_SET}\" }").unwrap().config;
    assert!(!config.mcp.servers["s"].enabled);
}

#[test]
fn the_default_file_of_mcp_servers_lies_beside_the_configuration_or_in_the_working_directory() {
    let optional = |path: &str| McpFile { path: path.into(), is_required: false };
    let elsewhere = ConfigFile { path: "/etc/tw/turnwright.toml".into(), text: String::new() };
    let loaded = load(Some(&elsewhere), &environment(), &Overrides::default()).unwrap();
    assert_eq!(loaded.mcp_files, [optional("/etc/tw/config/mcp-servers.json"), optional("/work-dir/config/mcp-servers.json")]);
    assert_eq!(load_text("").unwrap().mcp_files, [optional("/work-dir/config/mcp-servers.json")]);
    let named = McpFile { path: "/work-dir/m.json".into(), is_required: true };
    assert_eq!(load_text("mcp.files = [\"m.json\"]").unwrap().mcp_files, [named]);
    assert_eq!(load_text("mcp.files = []").unwrap().mcp_files, []);
}

#[test]
fn whoever_uses_a_value_can_tell_a_problem_with_its_place() {
    let loaded = load_text("\n[providers.p]\ndialect = \"gemini\"\nprofile = \"vllm\"").unwrap();
    let told = |keys: &[&str]| loaded.problem(keys, "no").to_string();
    assert_eq!(told(&["providers", "p", "profile"]), "turnwright.toml:4: no");
    assert_eq!(told(&["providers", "p", "headers", "X"]), "turnwright.toml:2: no");
    assert_eq!(told(&["server"]), "turnwright.toml: no");
}

#[test]
fn the_schema_describes_every_key_and_knows_no_null() {
    let schema = json_schema();
    let text = schema.to_string();
    assert!(!text.contains("null") && !text.contains("$ref"), "{text}");
    let provider = &schema["properties"]["providers"]["additionalProperties"];
    assert_eq!(provider["properties"]["max_retries"]["type"], "integer");
    assert_eq!(
        provider["properties"]["base_url"]["description"],
        "What comes before the API's own path, such as `http://127.0.0.1:8080/v1`."
    );
    assert_eq!(schema["properties"]["approve"]["enum"], serde_json::json!(["ask", "all", "none", "read-only"]));
}

#[test]
fn the_printed_schema_takes_variables_for_what_is_no_text() {
    let schema = printed_schema();
    let with_variable = serde_json::json!({"type": "string", "pattern": r"\$\{"});
    for place in [
        "/properties/approve",
        "/properties/max_steps",
        "/properties/log_format",
        "/properties/providers/additionalProperties/properties/models",
        "/properties/mcp/properties/servers/additionalProperties/properties/enabled",
        "/properties/approval/properties/rules/items/properties/when/additionalProperties/anyOf/1/properties/min",
    ] {
        let plain = json_schema();
        let written = plain.pointer(place).unwrap();
        // A list may be a text in its place.
        let key = schema.pointer(&place.replace("/items/", "/anyOf/0/items/")).unwrap();
        assert_eq!(key["description"], written["description"], "{place}");
        assert_eq!(key["anyOf"][0]["type"], written["type"], "{place}");
        assert_eq!(key["anyOf"][1], with_variable, "{place}");
    }
    assert_eq!(schema["properties"]["system_prompt"]["type"], "string");
    let [command, url, image] = ["command", "url", "image"].map(|key| serde_json::json!({"required": [key]}));
    let none = serde_json::json!({"not": {"anyOf": [command, url, image]}});
    let ways = serde_json::json!([command, url, image, none]);
    assert_eq!(schema["properties"]["mcp"]["properties"]["servers"]["additionalProperties"]["oneOf"], ways);
    load_text("max_steps = \"${STEPS:-7}\"\nmcp.servers.a = { command = \"x\", enabled = \"${ON:-false}\" }").unwrap();
}

#[test]
fn the_printed_schema_takes_a_table_in_the_place_of_a_secret() {
    let schema = printed_schema();
    for place in [
        "/properties/providers/additionalProperties/properties/api_key",
        "/properties/mcp/properties/servers/additionalProperties/properties/headers/additionalProperties",
        "/properties/mcp/properties/servers/additionalProperties/properties/oauth/properties/client_secret",
    ] {
        let plain = json_schema();
        let (written, key) = (plain.pointer(place).unwrap(), schema.pointer(place).unwrap());
        assert_eq!(key["description"], written["description"], "{place}");
        assert_eq!(key["anyOf"][0]["format"], "password", "{place}");
        let places = key["anyOf"].as_array().unwrap().iter().skip(1).map(|form| form["required"][0].as_str().unwrap());
        assert_eq!(places.collect::<Vec<_>>(), ["file", "env", "keyring"], "{place}");
    }
}

#[test]
fn every_word_of_the_schema_is_a_value() {
    for word in ["ask", "all", "none", "read-only"] {
        load_text(&format!("approve = \"{word}\"")).unwrap();
    }
    for word in ["none", "minimal", "low", "medium", "high", "xhigh", "max"] {
        load_text(&format!("settings.reasoning_effort = \"{word}\"")).unwrap();
    }
    for word in ["openai-chat", "openai-responses", "anthropic", "gemini", "ollama"] {
        let config = load_text(&format!("[providers.p]\ndialect = \"{word}\"")).unwrap().config;
        assert_eq!(config.providers["p"].dialect.map(Dialect::as_str), Some(word));
    }
}

#[test]
fn a_database_file_starts_where_its_name_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = ConfigFile { path: folder.path().join("turnwright.toml"), text: String::new() };
    let environment = environment();
    let database = |text: String, environment: &Environment, overrides: &Overrides| {
        let loaded = load(Some(&ConfigFile { text, ..file.clone() }), environment, overrides).unwrap();
        loaded.config.storage.database.unwrap().expose().to_owned()
    };
    let written = |value: &str| database(format!("[storage]\ndatabase = {value:?}"), &environment, &Overrides::default());
    let within = |name: &str| folder.path().join(name).display().to_string();
    let rows = [
        ("a.db", within("a.db")),
        ("./b/a.db", within("b/a.db")),
        ("sqlite:a.db", within("a.db")),
        ("sqlite:///var/a.db", "/var/a.db".to_owned()),
        ("~/a.db", "/home/ada/a.db".to_owned()),
        ("/var/a.db", "/var/a.db".to_owned()),
        ("postgres://h/d", "postgres://h/d".to_owned()),
    ];
    for (value, expected) in rows {
        assert_eq!(written(value), expected, "{value}");
    }
    let by_variable = environment.clone().with("TURNWRIGHT_STORAGE_DATABASE", "a.db");
    assert_eq!(database(String::new(), &by_variable, &Overrides::default()), format!("{WORK}/a.db"));
    let by_flag = Overrides { database: Some("a.db".to_owned()), ..Overrides::default() };
    assert_eq!(database("[storage]\ndatabase = \"b.db\"".to_owned(), &environment, &by_flag), format!("{WORK}/a.db"));
}
