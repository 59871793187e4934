use super::*;

fn stdio(name: &str, command: &str, args: &[&str], env: &[(&str, &str)]) -> ImportedServer {
    ImportedServer {
        name: name.into(),
        title: None,
        description: None,
        enabled: true,
        total_ms: None,
        transport: ImportedTransport::Stdio {
            command: command.into(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            env_file: None,
            cwd: None,
        },
    }
}

#[test]
fn the_list_of_the_source_document_is_read_as_it_is() {
    let text = r#"{"servers": [
        {"id": "weather", "name": "Weather Server", "description": "Get weather information", "enabled": true,
         "transport": "stdio", "command": "/Volumes/.../weatherMCP/run-mcp-server.sh", "args": [], "env": {}},
        {"id": "github", "name": "GitHub Server", "enabled": false, "transport": "stdio", "command": "npx",
         "args": ["@modelcontextprotocol/server-github"], "env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}"}},
        {"command": "nameless"}
    ]}"#;
    let weather = ImportedServer {
        title: Some("Weather Server".into()),
        description: Some("Get weather information".into()),
        ..stdio("weather", "/Volumes/.../weatherMCP/run-mcp-server.sh", &[], &[])
    };
    let github = ImportedServer {
        title: Some("GitHub Server".into()),
        enabled: false,
        ..stdio("github", "npx", &["@modelcontextprotocol/server-github"], &[("GITHUB_TOKEN", "${GITHUB_TOKEN}")])
    };
    let left_out = vec!["entry 3 has no `id`".into()];
    let expected = Import { servers: vec![weather, github], left_out, ..Import::default() };
    assert_eq!(read(text).unwrap(), expected);
}

#[test]
fn the_form_of_claude_desktop_is_read() {
    let text = r#"{"globalShortcut": "", "mcpServers": {
        "files": {"command": "npx", "args": ["-y", "server-filesystem", "/tmp"], "env": {"PORT": 80, "A": null}, "cwd": "/tmp"},
        "off": {"command": "x", "disabled": true, "autoApprove": ["read"]},
        "remote": {"type": "http", "url": "https://example.invalid/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
        "windsurf": {"serverUrl": "https://example.invalid/sse", "type": "sse"},
        "empty": {}
    }}"#;
    let mut files = stdio("files", "npx", &["-y", "server-filesystem", "/tmp"], &[("PORT", "80")]);
    let ImportedTransport::Stdio { cwd, .. } = &mut files.transport else { panic!() };
    *cwd = Some("/tmp".into());
    let http = |name: &str, url: &str, headers: &[(&str, &str)]| ImportedServer {
        transport: ImportedTransport::Http {
            url: url.into(),
            headers: headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        },
        ..stdio(name, "", &[], &[])
    };
    let expected = Import {
        servers: vec![
            files,
            ImportedServer { enabled: false, ..stdio("off", "x", &[], &[]) },
            http("remote", "https://example.invalid/mcp", &[("Authorization", "Bearer ${TOKEN}")]),
            http("windsurf", "https://example.invalid/sse", &[]),
        ],
        inputs: Vec::new(),
        left_out: vec!["`empty` was left out: it has neither a `command` nor a `url`".to_owned()],
        problems: [
            "a value in `env` of `files` was left out: it is no string",
            "`autoApprove` of `off` was left out: approvals are never imported",
        ]
        .map(str::to_owned)
        .to_vec(),
    };
    assert_eq!(read(text).unwrap(), expected);
}

#[test]
fn the_form_of_vs_code_is_read_with_its_comments() {
    let text = "\u{feff}{
        // of this project
        \"inputs\": [{\"id\": \"key\", \"type\": \"promptString\", \"password\": true}, {\"type\": \"promptString\"}],
        \"servers\": {\"github\": {\"type\": \"stdio\", \"command\": \"npx\", \"env\": {\"KEY\": \"${input:key}\"}, \"envFile\": \".env\",},},
    }";
    let mut github = stdio("github", "npx", &[], &[("KEY", "${input:key}")]);
    let ImportedTransport::Stdio { env_file, .. } = &mut github.transport else { panic!() };
    *env_file = Some(".env".into());
    let expected = Import {
        servers: vec![github],
        inputs: vec![ImportedInput { id: "key".into(), is_password: true, ..ImportedInput::default() }],
        ..Import::default()
    };
    assert_eq!(read(text).unwrap(), expected);
}

#[test]
fn the_extensions_of_goose_are_read() {
    let text = r#"
GOOSE_PROVIDER: anthropic
extensions:
  developer: {type: builtin, name: developer, enabled: true, bundled: true}
  github:
    name: GitHub
    type: stdio
    cmd: npx
    args: ["-y", "server-github", 3]
    envs: {HOST: example.invalid}
    env_keys: [GITHUB_TOKEN]
    timeout: 300
    enabled: false
  remote: {type: streamable_http, uri: "https://example.invalid/mcp", headers: {X-A: b}, description: far}
"#;
    let env = [("HOST", "example.invalid"), ("GITHUB_TOKEN", "${GITHUB_TOKEN}")];
    let github = ImportedServer {
        title: Some("GitHub".into()),
        enabled: false,
        total_ms: Some(300_000),
        ..stdio("github", "npx", &["-y", "server-github", "3"], &env)
    };
    let remote = ImportedServer {
        description: Some("far".into()),
        transport: ImportedTransport::Http {
            url: "https://example.invalid/mcp".into(),
            headers: vec![("X-A".into(), "b".into())],
        },
        ..stdio("remote", "", &[], &[])
    };
    let expected = Import {
        servers: vec![github, remote],
        inputs: Vec::new(),
        left_out: Vec::new(),
        problems: vec!["`developer` was left out: it is of the type `builtin`, which is goose's own".into()],
    };
    assert_eq!(read_as(form_of(Path::new("/x/config.yaml")), text).unwrap(), expected);
    assert!(matches!(read_as(Form::Yaml, "extensions: [").unwrap_err(), ImportError::NotYaml(_)));
    assert!(matches!(read_as(Form::Yaml, "a: 1").unwrap_err(), ImportError::NoServers));
}

#[test]
fn words_and_figures_of_goose_are_what_goose_takes_them_for() {
    let text = "extensions:\n  s:\n    cmd: y\n    args: [on, no, true, 007, 1_000, 12]\n    envs: {YES: Yes, OFF: off, N: n}\n    \
                enabled: true\n";
    let env = [("YES", "Yes"), ("OFF", "off"), ("N", "n")];
    let expected = stdio("s", "y", &["on", "no", "true", "007", "1_000", "12"], &env);
    assert_eq!(read_as(Form::Yaml, text).unwrap(), Import { servers: vec![expected], ..Import::default() });
}

#[test]
fn an_address_that_no_server_is_reached_by_leaves_its_server_out() {
    let text = r#"{"mcpServers": {"socket": {"url": "WSS://example.invalid/mcp"}, "far": {"url": "HTTPS://example.invalid/mcp"},
                                  "said": {"url": "${ADDRESS}://x"}}}"#;
    let import = read(text).unwrap();
    let problem = "`socket` was left out: its address begins with `WSS://`, and must begin with http:// or https://";
    assert_eq!(import.left_out, [problem]);
    assert_eq!(import.servers.iter().map(|server| server.name.as_str()).collect::<Vec<_>>(), ["far", "said"]);
}

#[test]
fn a_file_that_lists_no_servers_is_refused() {
    for text in ["[]", "{}", r#"{"servers": 7}"#] {
        assert!(matches!(read(text), Err(ImportError::NoServers)), "{text}");
    }
    assert!(matches!(read("{"), Err(ImportError::NotJson(_))));
}

#[test]
fn a_server_is_left_out_where_it_would_run_without_what_it_was_meant_to_have() {
    let text = r#"{"mcpServers": {
        "word": {"command": "x", "args": "notalist"},
        "hole": {"command": "x", "args": ["a", null]},
        "deep": {"command": "x", "args": ["a", ["b"]]},
        "list": {"command": "x", "env": ["A=b"]},
        "table": {"command": "x", "env": {"A": {}}},
        "far": {"url": "https://example.invalid/mcp", "headers": "Authorization: Bearer x"},
        "whole": {"command": "x", "args": ["a", 1, true]}
    }}"#;
    let problems = [
        "`word` was left out: its `args` is no array",
        "`hole` was left out: a value in its `args` is no string",
        "`deep` was left out: a value in its `args` is no string",
        "`list` was left out: its `env` is no object",
        "`table` was left out: a value in its `env` is no string",
        "`far` was left out: its `headers` is no object",
    ];
    let left_out = problems.map(str::to_owned).to_vec();
    let servers = vec![stdio("whole", "x", &["a", "1", "true"], &[])];
    assert_eq!(read(text).unwrap(), Import { servers, left_out, ..Import::default() });
}

#[test]
fn an_entry_that_does_not_say_how_it_is_reached_is_told_with_the_keys_that_it_has_instead() {
    let text =
        r#"{"mcpServers": {"a": {"comand": "y", "args": []}, "b": {"URL": "https://example.invalid", "colour": "red"}}}"#;
    let problems = [
        "`a` was left out: it has neither a `command` nor a `url`; `comand` is unknown (did you mean `command`?)",
        "`b` was left out: it has neither a `command` nor a `url`; `URL` is unknown (did you mean `url`?); \
         `colour` is unknown",
    ];
    assert_eq!(read(text).unwrap(), Import { left_out: problems.map(str::to_owned).to_vec(), ..Import::default() });
}

#[test]
fn a_switch_is_read_also_as_a_text_or_a_number_and_never_guessed() {
    for (written, expected) in [
        (r#""enabled": "false""#, Some(false)),
        (r#""enabled": 0"#, Some(false)),
        (r#""disabled": "True""#, Some(false)),
        (r#""enabled": 1, "disabled": null"#, Some(true)),
        (r#""enabled": "no""#, None),
        (r#""disabled": []"#, None),
    ] {
        let list = read(&format!(r#"{{"mcpServers": {{"s": {{"command": "x", {written}}}}}}}"#)).unwrap();
        assert_eq!(list.servers.first().map(|server| server.enabled), expected, "{written}");
    }
    let list = read(r#"{"mcpServers": {"s": {"command": "x", "enabled": "no"}}}"#).unwrap();
    assert_eq!(list.left_out, ["`s` was left out: its `enabled` is \"no\"; it must be true or false"]);
}
