use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use turnwright_host::config::{FILE_NAME, Overrides, find, open};
use turnwright_host::environment::Environment;

fn write(folder: &Path, text: &str) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join(FILE_NAME), text).unwrap();
}

fn named(path: &Path) -> Overrides {
    Overrides { config: Some(path.to_owned()), ..Overrides::default() }
}

#[test]
fn the_named_file_counts_then_the_working_directory_then_the_users_directory() {
    let folder = tempfile::tempdir().unwrap();
    let (work, user, other) = (folder.path().join("work"), folder.path().join("xdg/turnwright"), folder.path().join("other"));
    fs::create_dir_all(&work).unwrap();
    let environment = Environment::new(&work).with("XDG_CONFIG_HOME", folder.path().join("xdg"));
    assert_eq!(find(&environment, &Overrides::default()), None);
    assert_eq!(open(&environment, &Overrides::default()).unwrap().file, None);

    let steps = |overrides: &Overrides, environment: &Environment| open(environment, overrides).unwrap().config.max_steps();
    write(&user, "max_steps = 1");
    assert_eq!(steps(&Overrides::default(), &environment), 1);
    write(&work, "max_steps = 2");
    assert_eq!(steps(&Overrides::default(), &environment), 2);
    write(&other, "max_steps = 3");
    let by_variable = environment.clone().with("TURNWRIGHT_CONFIG", other.join(FILE_NAME));
    assert_eq!(steps(&Overrides::default(), &by_variable), 3);
    assert_eq!(steps(&named(Path::new("../xdg/turnwright/turnwright.toml")), &by_variable), 1);
}

#[test]
fn a_named_file_that_cannot_be_read_is_told_by_the_name_that_was_given() {
    let environment = Environment::new("/nowhere");
    let told = open(&environment, &named(Path::new("x.toml"))).unwrap_err().to_string();
    assert_eq!(
        told,
        "--config: /nowhere/x.toml cannot be read (No such file or directory (os error 2)); it must be a TOML file"
    );
}

#[test]
fn a_file_that_is_a_link_which_leads_nowhere_is_told_and_not_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let (link, gone) = (folder.path().join(FILE_NAME), folder.path().join("gone.toml"));
    std::os::unix::fs::symlink(&gone, &link).unwrap();
    let environment = Environment::new(folder.path());
    assert_eq!(find(&environment, &Overrides::default()), Some(link.clone()));
    let told = open(&environment, &Overrides::default()).unwrap_err().to_string();
    let expected = format!(
        "turnwright.toml: {} is a link to `{}`, and nothing is there; mend the link or remove it",
        link.display(),
        gone.display()
    );
    assert_eq!(told, expected);
    fs::write(&gone, "max_steps = 3").unwrap();
    assert_eq!(open(&environment, &Overrides::default()).unwrap().config.max_steps(), 3);
}

#[test]
fn files_that_tools_name_and_that_are_not_there_are_told_before_they_are_needed() {
    let folder = tempfile::tempdir().unwrap();
    let environment = Environment::new(folder.path());
    let text = "[tools.http.api]\ndescription = \"nope.json\"\n[tools.http.far]\ndescription = \"https://127.0.0.1/api.json\"\n\
                [tools.http.off]\ndescription = \"no.json\"\nenabled = false\n[tools.executable.w]\ncommand = \"./nope\"\n\
                [tools.executable.named]\ncommand = \"no-such-program\"\n";
    write(folder.path(), text);
    let told = open(&environment, &Overrides::default()).unwrap().unusable(&environment).unwrap().to_string();
    let (api, program) = (folder.path().join("nope.json"), folder.path().join("nope"));
    let expected = format!(
        "turnwright.toml:2: `tools.http.api.description` is `{}`, which cannot be used: No such file or directory (os error 2)\n\
         turnwright.toml:9: `tools.executable.w.command` is `{}`, which cannot be used: No such file or directory (os error 2)",
        api.display(),
        program.display()
    );
    assert_eq!(told, expected);
    fs::write(&api, "{}").unwrap();
    fs::write(&program, "").unwrap();
    assert_eq!(open(&environment, &Overrides::default()).unwrap().unusable(&environment), None);
}

#[test]
fn what_an_mcp_server_is_started_with_and_that_is_not_there_is_told_before_it_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let environment = Environment::new(folder.path());
    let text = "[mcp.servers.a]\ncommand = \"./nope\"\ncwd = \"none\"\nenv_file = \"a.env\"\n\
                [mcp.servers.named]\ncommand = \"no-such-program\"\nenv_file = \"b.env\"\n\
                [mcp.servers.off]\ncommand = \"./nope\"\nenabled = false\n";
    write(folder.path(), text);
    fs::write(folder.path().join("b.env"), "A=1\nx\n").unwrap();
    let told = open(&environment, &Overrides::default()).unwrap().unusable(&environment).unwrap().to_string();
    let why = |line: u32, key: &str, path: &str, why: &str| {
        let path = folder.path().join(path);
        format!("turnwright.toml:{line}: `mcp.servers.{key}` is `{}`, which cannot be used: {why}", path.display())
    };
    let missing = "No such file or directory (os error 2)";
    let expected = [
        why(2, "a.command", "nope", missing),
        why(3, "a.cwd", "none", missing),
        why(4, "a.env_file", "a.env", missing),
        why(7, "named.env_file", "b.env", "line 2 is not NAME=VALUE"),
    ];
    assert_eq!(told.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_program_that_is_in_no_folder_of_path_is_told_before_it_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let program = |name: &str, mode: u32| {
        let path = folder.path().join("bin").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    program("there", 0o755);
    program("text", 0o644);
    let text = "[mcp.servers.there]\ncommand = \"there\"\n[mcp.servers.gone]\ncommand = \"gone\"\n\
                [mcp.servers.text]\ncommand = \"text\"\n[mcp.servers.off]\ncommand = \"gone\"\nenabled = false\n\
                [mcp.servers.own]\ncommand = \"gone\"\nenv = { PATH = \"/own\" }\n[mcp.servers.far]\nurl = \"http://127.0.0.1:9\"\n\
                [tools.command]\nshell = \"nosh\"\n[tools.executable.x]\ncommand = \"nosuch\"\n[notify]\ncommand = [\"tell\", \"me\"]\n";
    write(folder.path(), text);
    let environment = Environment::new(folder.path()).with("PATH", "/nowhere:bin");
    let told = open(&environment, &Overrides::default()).unwrap().unusable(&environment).unwrap().to_string();
    let expected = [
        (4, "mcp.servers.gone.command", "gone"),
        (6, "mcp.servers.text.command", "text"),
        (16, "tools.command.shell", "nosh"),
        (18, "tools.executable.x.command", "nosuch"),
        (20, "notify.command", "tell"),
    ]
    .map(|(line, key, name)| {
        let why = "no folder of PATH has a program of this name; install it, or name its path";
        format!("turnwright.toml:{line}: `{key}` is `{name}`, which cannot be used: {why}")
    });
    assert_eq!(told.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_pattern_of_what_is_denied_begins_in_the_home_folder_where_it_says_so() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "[tools.filesystem]\ndeny = [\"~/plans.txt\", \"!~/a.key\", \"/private/\", \"*.sqlite\"]\n");
    let environment = Environment::new(folder.path()).with("HOME", "/home/me");
    let deny = open(&environment, &Overrides::default()).unwrap().config.tools.filesystem.deny;
    assert_eq!(deny, ["/home/me/plans.txt", "!/home/me/a.key", "/private/", "*.sqlite"]);
}

#[test]
fn a_path_of_what_is_denied_that_is_in_no_root_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["w/in", "w/usr/share", "out"] {
        fs::create_dir_all(path(name)).unwrap();
    }
    let deny = [path("w/in"), path("out"), path("gone"), "/usr/share".into(), "/usr".into()];
    write(folder.path(), &format!("[tools.filesystem]\nroots = [\"w\"]\ndeny = {deny:?}\n"));
    let environment = Environment::new(folder.path());
    let told = open(&environment, &Overrides::default()).unwrap().unusable(&environment).unwrap().to_string();
    let expected = format!(
        "turnwright.toml:3: `tools.filesystem.deny[1]` is `{}`, which is in none of `tools.filesystem.roots`, so that it denies nothing",
        path("out").display()
    );
    assert_eq!(told, expected);
}

#[test]
fn a_pipe_is_read_where_somebody_writes_it_and_given_up_where_nobody_does() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let environment = Environment::new(folder.path());
    let opened = || open(&environment, &named(&pipe));
    let told = opened().unwrap_err().to_string();
    assert!(told.contains("it is a pipe, and nobody wrote all of it within 5 seconds"), "{told}");
    let steps = std::thread::scope(|scope| {
        scope.spawn(|| fs::write(&pipe, "max_steps = 7\n").unwrap());
        opened().unwrap().config.max_steps()
    });
    assert_eq!(steps, 7);
}

#[test]
fn problems_name_a_file_in_the_working_directory_by_its_short_name_and_any_other_by_its_whole() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a = 1");
    let path = folder.path().join(FILE_NAME);
    let place =
        |environment: Environment| open(&environment, &named(&path)).unwrap_err().iter().next().unwrap().place.to_string();
    assert_eq!(place(Environment::new(folder.path())), "turnwright.toml:1");
    assert_eq!(place(Environment::new("/nowhere")), format!("{}:1", path.display()));
}

#[test]
fn a_database_that_cannot_be_there_is_told_before_it_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let shown = folder.path().display();
    let environment = Environment::new(folder.path()).with("XDG_DATA_HOME", folder.path().join("data"));
    let told = |database: &str| {
        write(folder.path(), &format!("[storage]\ndatabase = {database:?}\n"));
        let loaded = open(&environment, &Overrides::default()).unwrap();
        loaded.unusable(&environment).map(|problems| problems.to_string())
    };
    let within = |name: &str| folder.path().join(name).display().to_string();
    let expected = |why: String| Some(format!("turnwright.toml:2: the database cannot be used: {why}"));
    let is_folder = format!("`{shown}` is a folder; name the database file in it, such as `{shown}/turnwright.db`");
    for address in [format!("{shown}"), format!("sqlite:{shown}")] {
        assert_eq!(told(&address), expected(is_folder.clone()));
    }
    let nowhere = format!(
        "the folder of the database `{}` does not exist; create `{}` or name another file",
        within("none/a.db"),
        within("none")
    );
    assert_eq!(told(&within("none/a.db")), expected(nowhere));
    assert_eq!(told(&within("a.db")), None);
    assert!(told("mysql://h/d").unwrap().contains("name a SQLite file or `postgres://USER:PASSWORD@HOST/DATABASE`"));
    write(folder.path(), "");
    let loaded = open(&environment, &Overrides::default()).unwrap();
    assert_eq!(loaded.unusable(&environment), None);
    assert!(!folder.path().join("data").exists() && !folder.path().join("a.db").exists());
}

#[test]
fn what_the_configuration_says_of_a_server_without_its_way_is_about_one_of_a_json_file() {
    let folder = tempfile::tempdir().unwrap();
    let environment = Environment::new(folder.path());
    let servers = r#"{"mcpServers": {"weather": {"command": "w", "total_ms": 1500}}}"#;
    fs::write(folder.path().join("mcp.json"), servers).unwrap();
    let text = |name: &str| format!("[mcp]\nfiles = [\"mcp.json\"]\n[mcp.servers.{name}.tools.get_weather]\nread_only = true");
    write(folder.path(), &text("weather"));
    assert_eq!(open(&environment, &Overrides::default()).unwrap().unusable(&environment), None);
    write(folder.path(), &text("wether"));
    let told = open(&environment, &Overrides::default()).unwrap_err().to_string();
    let expected = "turnwright.toml:3: [mcp.servers.wether] has no `command`, `url` or `image`, and no file of servers has one of this \
                    name; it must have exactly one of them";
    assert_eq!(told, expected);
}

#[test]
fn a_server_of_a_json_file_is_left_out_where_rules_and_addresses_could_not_tell_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let environment = Environment::new(folder.path());
    let servers = r#"{"mcpServers": {"a__b": {"command": "w"}, "..": {"command": "w"}, "ok": {"command": "w"}}}"#;
    fs::write(folder.path().join("mcp.json"), servers).unwrap();
    write(folder.path(), "mcp.files = [\"mcp.json\"]");
    let told = open(&environment, &Overrides::default()).unwrap().unusable(&environment).unwrap().to_string();
    let lines: Vec<&str> = told.lines().collect();
    let [first, second] = lines.as_slice() else { panic!("{told}") };
    for (line, name) in [(first, "a__b"), (second, "..")] {
        let why = format!("MCP server `{name}` is left out: it cannot be called \"{name}\": choose a name without `__`");
        assert!(line.contains(&why), "{line}");
    }
}
