use turnwright_host::config::{Overrides, load, open};
use turnwright_host::environment::Environment;

use super::messages::says;
use super::{environment, file, load_text};

#[test]
fn a_server_with_the_name_of_built_in_tools_is_told_before_it_is_missed() {
    let told = |text: &str| {
        let loaded = load_text(text).unwrap();
        let warnings: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
        let unusable = loaded.unusable(&environment()).map(|problems| problems.to_string());
        assert_eq!(loaded.left_out.values().cloned().collect::<Vec<_>>(), warnings, "{text}");
        assert_eq!(unusable.unwrap_or_default(), warnings.join("\n"), "{text}");
        warnings
    };
    let expected = |line: u32, name: &str| {
        format!(
            "turnwright.toml:{line}: [mcp.servers.{name}] has the name of built-in tools and is left out; it must have another, or they be turned off"
        )
    };
    let data = "data_dir = \"/\"\n";
    let two = format!("{data}[mcp.servers.filesystem]\ncommand = \"x\"\n[mcp.servers.command]\nurl = \"https://h\"");
    assert_eq!(told(&two), [expected(2, "filesystem"), expected(4, "command")]);
    for name in ["artifact", "resources", "memory"] {
        assert_eq!(told(&format!("{data}[mcp.servers.{name}]\ncommand = \"x\"")), [expected(2, name)]);
    }
    let off = load_text(&format!("{data}[mcp.servers.filesystem]\ncommand = \"x\"\nenabled = false")).unwrap();
    let warned: Vec<_> = off.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warned, [expected(2, "filesystem").replace("left out;", "left out, also once it is enabled;")]);
    assert!(off.left_out.is_empty() && off.unusable(&environment()).is_none(), "nothing is missed");
    // Where the built-in one is not offered, the name is free.
    for free in [
        "[tools.filesystem]\nenabled = false\n[mcp.servers.filesystem]\ncommand = \"x\"",
        "[memory]\nenabled = false\n[mcp.servers.memory]\ncommand = \"x\"",
        "[mcp.servers.web]\ncommand = \"x\"",
    ] {
        assert_eq!(told(&format!("{data}{free}")), Vec::<String>::new());
    }
}

#[test]
fn a_server_of_another_programs_file_whose_name_is_taken_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let environment = Environment::new(folder.path());
    std::fs::write(
        path("turnwright.toml"),
        "data_dir = \"/\"\n[mcp]\nfiles = [\"a.json\"]\n[mcp.servers.own]\ncommand = \"x\"",
    )
    .unwrap();
    let servers = r#"{"mcpServers": {"command": {"command": "x"}, "memory": {"command": "x"}, "own": {"command": "x"}, "free": {"command": "x"}}}"#;
    std::fs::write(path("a.json"), servers).unwrap();
    let loaded = open(&environment, &Overrides::default()).unwrap();
    let told = loaded.unusable(&environment).unwrap().to_string();
    let expected = ["command", "memory", "own"].map(|name| {
        format!("turnwright.toml:3: {}: the name `{name}` is taken; this server is left out", path("a.json").display())
    });
    assert_eq!(told.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn the_address_of_the_page_holds_nothing_but_where_it_is() {
    let user = "turnwright.toml:2: `server.public_url` has a user or a password, which all would see who are sent there; it must be without";
    let query = "turnwright.toml:2: `server.public_url` has a query or a fragment, behind which there are no paths; it must end with its path";
    for (url, expected) in [
        ("https://ada:SECRET@h.test", user),
        ("https://ada@h.test/x", user),
        ("https://h.test?a=SECRET", query),
        ("https://h.test/x?a", query),
        ("https://h.test/#SECRET", query),
    ] {
        says(&format!("[server]\npublic_url = \"{url}\""), &[expected]);
    }
    for url in ["https://h.test", "https://h.test/", "http://[::1]:8700/a@b"] {
        let loaded = load_text(&format!("[server]\npublic_url = \"{url}\"\nbase_path = \"/a\"")).err();
        assert!(!loaded.is_some_and(|told| told.to_string().contains("has a ")), "{url}");
    }
}

#[test]
fn what_an_identity_provider_is_asked_for_has_a_name() {
    says(
        "[server.oidc]\nissuer = \"https://id.test\"\nclient_id = \"\"\ngroups_claim = \" \"\nadmin_group = \"\"\nmember_group = \"\"",
        &[
            "turnwright.toml:3: `server.oidc.client_id` is empty; it must be the name by which the provider knows this server",
            "turnwright.toml:4: `server.oidc.groups_claim` is empty; it must be the name of a claim, or left out",
            "turnwright.toml:5: `server.oidc.admin_group` is empty; it must be the name of a group, or left out",
            "turnwright.toml:6: `server.oidc.member_group` is empty; it must be the name of a group, or left out",
        ],
    );
}

#[test]
fn the_files_for_other_servers_are_read_before_those_are_called() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("no.pem"), "no certificate").unwrap();
    std::fs::write(path("creds"), "x").unwrap();
    let environment = Environment::new(folder.path());
    let told = |text: &str| {
        std::fs::write(path("turnwright.toml"), format!("[nats]\n{text}")).unwrap();
        open(&environment, &Overrides::default()).err().map(|told| told.to_string()).unwrap_or_default()
    };
    let url = "url = \"nats://127.0.0.1:1\"\n";
    let missing = |line: u32, key: &str, name: &str| {
        let file = path(name);
        format!("turnwright.toml:{line}: `nats.{key}` is `{}`, which cannot be used: No such file", file.display())
    };
    let both = told(&format!("{url}ca_file = \"none.pem\"\ncredentials = \"none.creds\""));
    let lines: Vec<_> = both.lines().collect();
    assert!(lines[0].starts_with(&missing(3, "ca_file", "none.pem")), "{both}");
    assert!(lines[1].starts_with(&missing(4, "credentials", "none.creds")), "{both}");
    assert!(told(&format!("{url}ca_file = \"no.pem\"")).contains("`nats.ca_file` is `"));
    assert_eq!(told(&format!("{url}credentials = \"creds\"")), "");
    assert_eq!(told("ca_file = \"none.pem\""), "");
}

#[test]
fn an_address_of_a_database_that_is_none_is_told_without_what_it_holds() {
    let right =
        "it must be `postgres://USER:PASSWORD@HOST/DATABASE`, or for a file of such a name its path, as in `./postgres:x`";
    for address in ["postgres:/u:SECRET@h/d", "postgresql:u:SECRET@h/d", "POSTGRES://u:SECRET@h/d", "postgres:x"] {
        let expected = format!("turnwright.toml:2: `storage.database` is a value that is not shown; {right}");
        says(&format!("[storage]\ndatabase = \"{address}\""), &[&expected]);
    }
    assert!(load_text("[storage]\ndatabase = \"./postgres:x\"").is_ok());
    let empty = "`storage.database` is empty; it must be a database URL or file, such as `postgres://user@host/name`";
    says("[storage]\ndatabase = \"\"", &[&format!("turnwright.toml:2: {empty}")]);
    let by_flag = Overrides { database: Some(String::new()), ..Overrides::default() };
    let told = load(Some(&file("")), &environment(), &by_flag).unwrap_err().to_string();
    assert_eq!(told, format!("--database: {empty}"));
}

#[test]
fn no_more_of_a_piece_is_repeated_than_there_is() {
    says(
        "[knowledge]\npiece_tokens = 40\noverlap_tokens = 40\n",
        &["turnwright.toml:3: `knowledge.overlap_tokens` is 40; it must be less than `knowledge.piece_tokens`, which is 40"],
    );
    for fits in ["piece_tokens = 40\noverlap_tokens = 39", "piece_tokens = 40"] {
        load_text(&format!("[knowledge]\n{fits}\n")).unwrap();
    }
}

#[test]
fn a_folder_of_which_nothing_is_looked_up_and_a_budget_below_a_piece_are_told() {
    let folder = "[knowledge.folders.docs]\npath = \"docs\"\n";
    let right = "it must hold globs, or be left out for all files";
    says(
        &format!("{folder}include = []\n"),
        &[&format!("turnwright.toml:3: `knowledge.folders.docs.include` is empty, and so is what would be looked up; {right}")],
    );
    load_text(folder).unwrap();
    let told = |text: &str| -> Vec<String> { load_text(text).unwrap().warnings.iter().map(ToString::to_string).collect() };
    let expected = "turnwright.toml:2: `knowledge.budget_tokens` is 100, less than `knowledge.piece_tokens`, which is 400: no message is \
                    shown with a whole piece";
    assert_eq!(told("[knowledge]\nbudget_tokens = 100\n"), [expected]);
    assert_eq!(told("[knowledge]\nbudget_tokens = 400\n"), [""; 0]);
}

#[test]
fn a_path_that_no_system_opens_is_told() {
    says("data_dir = \"a\\u0000b\"\n", &["turnwright.toml:1: `data_dir` is \"a\\0b\"; it must be a path"]);
}
