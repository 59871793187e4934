//! The configuration and the database, where they are wrong.

use std::path::Path;

use crate::support::{Place, Ran};

#[test]
fn a_wrong_configuration_is_told_line_by_line() {
    let place = Place::with("aprove = \"all\"\nmax_steps = 0\n");
    for words in [&["chat", "hi"] as &[&str], &["tools", "list"], &["config", "check"], &["serve"]] {
        let ran = place.run(words);
        let lines: Vec<_> = ran.stderr.lines().map(|line| line.split(';').next().unwrap()).collect();
        let expected =
            ["error: turnwright.toml:2: unknown key `aprove` at the top level", "error: turnwright.toml:3: `max_steps` is 0"];
        assert_eq!((ran.code, ran.stdout.as_str(), lines), (Some(2), "", expected.to_vec()), "{words:?}");
    }
}

#[test]
fn what_is_named_and_cannot_be_used_is_not_in_order() {
    let says = |config: &str, expected: &[&str]| {
        let place = Place::new();
        place.write("turnwright.toml", config);
        place.write("broken.json", "{");
        place.write("servers.json", r#"{"mcpServers": {"a": {"command": "true", "args": "notalist"}}}"#);
        let ran = place.run(&["config", "check"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{config}: {ran:?}");
        let lines: Vec<_> = ran.stderr.lines().collect();
        assert_eq!(lines.len(), expected.len(), "{config}: {ran:?}");
        for (line, expected) in lines.iter().zip(expected) {
            assert!(line.starts_with("error: turnwright.toml:") && line.contains(expected), "{config}: {ran:?}");
        }
    };
    says(
        "[tools.filesystem]\nroots = [\".\", \"/no/such/root\"]\n",
        &["`tools.filesystem.roots[1]` is `/no/such/root`, which cannot be used: No such file or directory"],
    );
    says("[tools.command]\nroots = [\"broken.json\"]\n", &["broken.json`, which cannot be used: it is not a folder"]);
    says(
        "[tools.filesystem]\nenabled = false\nroots = [\"/no/such/root\"]\n",
        &["`tools.filesystem.roots[0]` is `/no/such/root`, which cannot be used: No such file or directory"],
    );
    says(
        "[knowledge.folders.a]\npath = \"/no/such/folder\"\n",
        &["`knowledge.folders.a.path` is `/no/such/folder`, which cannot be used: No such file or directory"],
    );
    says("model = \"nope/x\"\n", &["there is no provider `nope`"]);
    says("[mcp]\nfiles = [\"nofile.json\"]\n", &["nofile.json cannot be used: No such file or directory"]);
    says("[mcp]\nfiles = [\"broken.json\"]\n", &["broken.json cannot be used: the file is not JSON: "]);
    says("[mcp]\nfiles = [\"servers.json\"]\n", &["servers.json: `a` was left out: its `args` is no array"]);
    says(
        "model = \"nope/x\"\n[tools.filesystem]\nroots = [\"/no/such/root\"]\n",
        &["there is no provider `nope`", "which cannot be used: No such file or directory"],
    );
}

#[test]
fn the_configuration_can_be_looked_at() {
    let place = Place::with("approve = \"none\"\n");
    let shown = place.run(&["config", "show"]);
    assert!(shown.stdout.contains("approve = \"none\"  # turnwright.toml:2\n"), "{shown:?}");
    let path = place.run(&["config", "path"]);
    assert_eq!(path.stdout.trim_end(), place.path("turnwright.toml").canonicalize().unwrap().display().to_string());
    assert_eq!(place.run(&["config", "check"]).code, Some(0));
    assert_eq!(place.json(&["config", "schema"])["title"], "turnwright.toml");
    assert!(!place.path("data").exists(), "looking starts nothing");
}

#[test]
fn a_database_that_is_none_of_ours_is_refused() {
    let place = Place::new();
    place.write("other.db", "this is not a database, whatever it is");
    let ran = place.run(&["conversations", "list", "--database", "other.db"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains("is not a SQLite database"), "{ran:?}");
    let ran = place.run(&["conversations", "list", "--database", "mysql://ada:secret@db/turnwright"]);
    let stderr = "error: the database `mysql://…` cannot be used: name a SQLite file or `postgres://USER:PASSWORD@HOST/DATABASE`, or leave it out\n";
    assert_eq!(ran, Ran { code: Some(2), stdout: String::new(), stderr: stderr.to_owned() });
    let ran = place.run(&["conversations", "list", "--database", "postgres://ada:secret@127.0.0.1:1/turnwright"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    let begin = "error: the database `postgres://ada:***@127.0.0.1:1/turnwright` cannot be reached: ";
    assert!(ran.stderr.starts_with(begin) && ran.stderr.contains("it must be running"), "{ran:?}");
}

#[test]
fn the_data_directory_is_created_and_another_database_can_be_named() {
    let place = Place::new();
    assert_eq!(place.run(&["chat", "hi", "--data-dir", "deep/er"]).code, Some(0));
    assert!(place.path("deep/er").is_dir());
    assert_eq!(place.path("deep/er/turnwright.db").exists(), place.database().is_none());
    assert_eq!(place.run(&["chat", "hi", "--database", "sqlite:own.db"]).code, Some(0));
    assert!(place.path("own.db").exists());
}

#[test]
fn the_unit_starts_a_server_again_whose_database_is_not_there_yet() {
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/turnwright.service");
    let unit = std::fs::read_to_string(unit).unwrap();
    let place = Place::new();
    let database = "postgres://ada:secret@127.0.0.1:1/turnwright";
    let ran = place.run(&["serve", "--listen", "127.0.0.1:0", "--database", database]);
    let code = ran.code.unwrap().to_string();
    let mut prevented =
        unit.lines().filter_map(|line| line.strip_prefix("RestartPreventExitStatus=")).flat_map(str::split_whitespace);
    assert!(unit.lines().any(|line| line == "Restart=on-failure") && code != "0", "{ran:?}");
    assert!(!prevented.any(|status| status == code), "{ran:?}");
}

#[test]
fn the_deployment_files_set_what_there_is() {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let text = |name: &str| std::fs::read_to_string(deploy.join(name)).unwrap();
    let secret = "long-enough-to-be-hidden";
    let fill = |text: &str| {
        let filled = text.replace("${POSTGRES_PASSWORD:?}", secret).replace("${NATS_PASSWORD:?}", secret);
        filled.replace("${SEAL_KEY:?}", &"0f".repeat(32))
    };

    let compose = fill(&text("compose.yaml"));
    let set = |line: &str| {
        let (name, value) = line.trim().split_once(": ").filter(|(name, _)| name.starts_with("TURNWRIGHT_"))?;
        Some((name.to_owned(), value.trim_matches('"').to_owned()))
    };
    let variables: Vec<(String, String)> = compose.lines().filter_map(set).collect();
    assert!(variables.len() > 5, "{variables:?}");
    let place = variables.iter().fold(Place::new(), |place, (name, value)| place.with_variable(name, value));
    is_in_order(&place);

    let kubernetes = text("kubernetes/turnwright.yaml");
    let (_, map) = kubernetes.split_once("turnwright.toml: |\n").unwrap();
    let (map, _) = map.split_once("\n---").unwrap();
    let config: Vec<&str> = map.lines().map(str::trim_start).collect();
    let place = Place::new().with_variable("NATS_PASSWORD", secret);
    place.write("turnwright.toml", config.join("\n"));
    is_in_order(&place);
}

fn is_in_order(place: &Place) {
    let ran = place.run(&["config", "check"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.stderr.contains("warning"), "{ran:?}");
}
