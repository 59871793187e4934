use turnwright_host::config::{Overrides, load};

use super::{environment, file, load_text, load_with};

/// Each row: what is written, and all that is said about it.
#[track_caller]
pub(crate) fn says(text: &str, expected: &[&str]) {
    let told = match load_text(text) {
        Ok(loaded) => panic!("it loads: {:?}", loaded.config),
        Err(problems) => problems.to_string(),
    };
    assert_eq!(told.lines().collect::<Vec<_>>(), expected, "for\n{text}");
}

#[test]
fn an_unknown_key_gets_its_line_its_section_and_the_nearest_name() {
    const PROVIDER: &str = "known: `dialect`, `base_url`, `api_key`, `models`, `headers`, `max_retries`, `fallback`, `profile`, `connect_ms`, `start_ms`, `idle_ms`";
    says(
        "[providers.local]\ndialect = \"openai-chat\"\nbase_ulr = \"http://127.0.0.1:8080/v1\"\n",
        &[&format!("turnwright.toml:3: unknown key `base_ulr` in [providers.local]; did you mean `base_url`? {PROVIDER}")],
    );
    says(
        "[providers.\"my host\"]\ndialect = \"ollama\"\napiKey = \"x\"\n",
        &[&format!("turnwright.toml:3: unknown key `apiKey` in [providers.\"my host\"]; did you mean `api_key`? {PROVIDER}")],
    );
    says(
        "[storage]\ndurabillity = \"power\"",
        &[
            "turnwright.toml:2: unknown key `durabillity` in [storage]; did you mean `durability`? known: `durability`, `database`, `seal_key`, `retention`",
        ],
    );
    says(
        "[mcp.servers.time]\ncommand = \"t\"\n[mcp.servers.time.tools.now]\nreadonly = true",
        &[
            "turnwright.toml:4: unknown key `readonly` in [mcp.servers.time.tools.now]; did you mean `read_only`? known: `read_only`, `replayable`, `serial`, `polled`, `cache_ttl_ms`, `idle_ms`, `total_ms`",
        ],
    );
    says(
        "[models.\"local/a\"]\ncontext = 1\nprices = { input = 1, ouput = 2 }\n[models.a]\n",
        &[
            "turnwright.toml:2: unknown key `context` in [models.\"local/a\"]; known: `context_window`, `max_output_tokens`, `images`, `documents`, `tools`, `reasoning`, `temperature`, `prices`",
            "turnwright.toml:3: unknown key `ouput` in [models.\"local/a\".prices]; did you mean `output`? known: `input`, `cached_input`, `cache_write`, `output`, `long_prompts`",
            "turnwright.toml:3: [models.\"local/a\".prices] has no `output`; it must be a number from 0",
            "turnwright.toml:4: the name \"a\" in [models] is not valid; it must be PROVIDER/MODEL, such as `local/qwen3`",
        ],
    );
    says(
        "[[approval.rules]]\ntool = \"a\"\naction = \"deny\"\nwhne = 1",
        &["turnwright.toml:4: unknown key `whne` in [[approval.rules]]; did you mean `when`? known: `tool`, `when`, `action`"],
    );
}

#[test]
fn a_key_that_belongs_elsewhere_is_told_its_place() {
    says(
        "[server]\napprove = \"all\"",
        &[
            "turnwright.toml:2: unknown key `approve` in [server]; it belongs to the top level; known: `listen`, `tool_activity`, `grace_ms`, `auth`, `public_url`, `base_path`, `trusted_proxies`, `allowed_origins`, `limits`, `oidc`, `tls`",
        ],
    );
    says(
        "[tools]\nroots = [\"/tmp\"]",
        &[
            "turnwright.toml:2: unknown key `roots` in [tools]; it belongs to [tools.filesystem]; known: `max_concurrent_calls`, `filesystem`, `command`, `web`, `artifact`, `search`, `executable`, `http`",
        ],
    );
    says(
        "[mcpServers.time]\ncommand = \"t\"",
        &[
            "turnwright.toml:1: unknown key `mcpServers` at the top level; it belongs to [mcp.servers]; known: `model`, `approve`, `max_steps`, `system_prompt`, `data_dir`, `log_level`, `log_format`, `settings`, `providers`, `models`, `mcp`, `tools`, `knowledge`, `embeddings`, `instructions`, `memory`, `approval`, `loops`, `budgets`, `storage`, `server`, `apps`, `network`, `telemetry`, `notify`, `nats`",
        ],
    );
}

#[test]
fn a_time_limit_of_a_provider_by_another_name_is_told_those_that_there_are() {
    for name in ["timeout", "timeout_seconds"] {
        let known = "known: `dialect`, `base_url`, `api_key`, `models`, `headers`, `max_retries`, `fallback`, `profile`, `connect_ms`, `start_ms`, `idle_ms`";
        let told =
            format!("turnwright.toml:4: unknown key `{name}` in [providers.a]; did you mean `start_ms` or `idle_ms`? {known}");
        let config = format!("[providers.a]\ndialect = \"openai-chat\"\nbase_url = \"http://localhost:1/v1\"\n{name} = 60");
        says(&config, &[&told]);
    }
}

#[test]
fn a_search_that_cannot_be_asked_and_an_address_that_is_none_are_told() {
    says(
        "[tools.web]\nallow = [\"localhost\"]\n[tools.web.search]\nengine = \"google\"",
        &[
            "turnwright.toml:2: `tools.web.allow[0]` is \"localhost\"; it must be an address or a range, with a port or without, such as `127.0.0.1:8080` or `10.1.0.0/16`",
            "turnwright.toml:4: `tools.web.search.engine` is \"google\"; it must be one of `duckduckgo`, `brave`, `tavily`, `searxng`",
        ],
    );
    says(
        "[tools.web.search]\nengine = \"brave\"",
        &["turnwright.toml:1: [tools.web.search] has no `api_key`; it must be the key that the service gave you"],
    );
    says(
        "[tools.web.search]\nengine = \"searxng\"",
        &["turnwright.toml:1: [tools.web.search] has no `base_url`; it must be the address of the server"],
    );
}

#[test]
fn what_cannot_reach_other_servers_is_told() {
    says(
        "[nats]\nurl = \"http://a:1\"\nprefix = \"a.b\"",
        &[
            "turnwright.toml:2: `nats.url` is \"http://a:1\"; it must be `nats://HOST:PORT` or `tls://HOST:PORT`, more than one with commas between them",
            "turnwright.toml:3: `nats.prefix` is \"a.b\"; it must be 1 to 32 letters, digits, `-` and `_`",
        ],
    );
    says(
        "[nats]\nreplicas = 2\nuser = \"a\"\ntoken = \"b\"",
        &[
            "turnwright.toml:2: `nats.replicas` is 2; it must be 1, 3 or 5",
            "turnwright.toml:3: `nats.user` has no `password` beside it",
            "turnwright.toml:3: `nats.user` stands beside `token`; a server is known to NATS in one way",
        ],
    );
}

#[test]
fn a_word_that_is_none_of_the_valid_ones_gets_all_of_them_and_the_nearest() {
    says(
        "approve = \"al\"",
        &["turnwright.toml:1: `approve` is \"al\"; it must be one of `ask`, `all`, `none`, `read-only`; did you mean `all`?"],
    );
    says("approve = true", &["turnwright.toml:1: `approve` is true; it must be one of `ask`, `all`, `none`, `read-only`"]);
    says(
        "[providers.local]\ndialect = \"openai\"",
        &[
            "turnwright.toml:2: `providers.local.dialect` is \"openai\"; it must be one of `openai-chat`, `openai-responses`, `anthropic`, `gemini`, `ollama`",
        ],
    );
    says(
        "[storage]\ndurability = \"pwoer\"",
        &["turnwright.toml:2: `storage.durability` is \"pwoer\"; it must be one of `process`, `power`; did you mean `power`?"],
    );
    says(
        "[settings]\nreasoning_effort = \"hihg\"",
        &[
            "turnwright.toml:2: `settings.reasoning_effort` is \"hihg\"; it must be one of `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max`; did you mean `high`?",
        ],
    );
    says(
        "[mcp.servers.s]\ncommand = \"t\"\nprotocol = \"2025-11-26\"",
        &[
            "turnwright.toml:3: `mcp.servers.s.protocol` is \"2025-11-26\"; it must be one of `2024-11-05`, `2025-03-26`, `2025-06-18`, `2025-11-25`, `2026-07-28`; did you mean `2025-11-25`?",
        ],
    );
    says(
        "log_level = \"a[b=debug\"",
        &[
            "turnwright.toml:1: `log_level` is \"a[b=debug\"; it must be `off`, `error`, `warn`, `info`, `debug`, `trace`, or directives such as `warn,turnwright_mcp=debug`",
        ],
    );
    says(
        "[tools.filesystem]\ndeny = [\"x\", \"[z-a]\"]",
        &[
            "turnwright.toml:2: `tools.filesystem.deny[1]` is \"[z-a]\"; it must be a pattern as in `.gitignore`, such as `private/` or `*.sqlite` (error parsing glob '[z-a]': invalid range; 'z' > 'a')",
        ],
    );
    says(
        "log_level = \"loud\"",
        &[
            "turnwright.toml:1: `log_level` is \"loud\"; it must be `off`, `error`, `warn`, `info`, `debug`, `trace`, or directives such as `warn,turnwright_mcp=debug`",
        ],
    );
}

#[test]
fn a_value_of_the_wrong_kind_is_named_with_the_right_kind() {
    says("max_steps = \"many\"", &["turnwright.toml:1: `max_steps` is \"many\"; it must be a whole number from 1"]);
    says("max_steps = 0", &["turnwright.toml:1: `max_steps` is 0; it must be a whole number from 1"]);
    says("max_steps = 5000000000", &["turnwright.toml:1: `max_steps` is 5000000000; it must be at most 4294967295"]);
    says("max_steps = 2.5", &["turnwright.toml:1: `max_steps` is 2.5; it must be a whole number from 1"]);
    says("[settings]\ntemperature = 3", &["turnwright.toml:2: `settings.temperature` is 3; it must be a number from 0 to 2"]);
    says(
        "[settings]\ntemperature = nan",
        &["turnwright.toml:2: `settings.temperature` is NaN; it must be a number from 0 to 2"],
    );
    says("model = 2024-01-01", &["turnwright.toml:1: `model` is 2024-01-01; it must be a string"]);
    says("model = \"gpt\"", &["turnwright.toml:1: `model` is \"gpt\"; it must be PROVIDER/MODEL, such as `local/qwen3`"]);
    says("providers = []", &["turnwright.toml:1: `providers` is an empty list; it must be a table"]);
    says(
        "[providers.a]\ndialect = \"gemini\"\nmodels = \"one\"\nprofile = 3\nmax_retries = -1",
        &[
            "turnwright.toml:3: `providers.a.models` is \"one\"; it must be a list of strings",
            "turnwright.toml:4: `providers.a.profile` is 3; it must be a string or a table",
            "turnwright.toml:5: `providers.a.max_retries` is -1; it must be a whole number from 0",
        ],
    );
    says(
        "[mcp.servers.a]\ncommand = \"a\"\nargs = [\n  \"x\",\n  7,\n]\nenabled = \"yes\"",
        &[
            "turnwright.toml:5: `mcp.servers.a.args[1]` is 7; it must be a string",
            "turnwright.toml:7: `mcp.servers.a.enabled` is \"yes\"; it must be true or false",
        ],
    );
    says(
        "[tools.filesystem]\nroots = []",
        &["turnwright.toml:2: `tools.filesystem.roots` is an empty list; it must be a list of strings with at least one item"],
    );
    says(
        "[server]\nlisten = \"8700\"",
        &["turnwright.toml:2: `server.listen` is \"8700\"; it must be ADDRESS:PORT, such as `127.0.0.1:8700`"],
    );
}

#[test]
fn a_value_that_may_be_secret_is_not_repeated() {
    says(
        "[providers.a]\ndialect = \"gemini\"\napi_key = 123456",
        &["turnwright.toml:3: `providers.a.api_key` is a value that is not shown; it must be a string"],
    );
    let told = load_with("max_steps = \"${N}\"", &environment().with("N", "sk-secret")).map(|_| ()).unwrap_err().to_string();
    assert_eq!(told, "turnwright.toml:1: `max_steps` is a value that is not shown; it must be a whole number from 1");
}

#[test]
fn a_missing_variable_is_named_with_its_key_and_both_ways_out() {
    says(
        "[providers.local]\ndialect = \"openai-chat\"\n\napi_key = \"${LOCAL_KEY}\"",
        &[
            "turnwright.toml:4: `providers.local.api_key`: the variable LOCAL_KEY is not set; set it, or give a default: `${LOCAL_KEY:-default}`",
        ],
    );
    let near = environment().with("LOCAL_KEY", "x");
    let told =
        load_with("[providers.a]\ndialect = \"gemini\"\napi_key = \"${LOCL_KEY}\"", &near).map(|_| ()).unwrap_err().to_string();
    assert_eq!(
        told,
        "turnwright.toml:3: `providers.a.api_key`: the variable LOCL_KEY is not set (did you mean LOCAL_KEY, which is?); set it, or give a default: `${LOCL_KEY:-default}`"
    );
    let servers = "[mcp.servers.a]\ncommand = \"a\"\nenv = { K = \"${LOCAL_KYE}\" }\n[mcp.servers.b]\ncommand = \"b\"";
    let loaded = load_with(servers, &near).unwrap();
    assert_eq!(loaded.config.mcp.servers.keys().collect::<Vec<_>>(), ["b"], "it costs nothing but its server");
    let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "turnwright.toml:3: `mcp.servers.a.env.K`: the variable LOCAL_KYE is not set (did you mean LOCAL_KEY, which is?); set it, or give a default: `${LOCAL_KYE:-default}`; until then this server is left out"
        ]
    );
    says(
        "[mcp.servers.a]\nurl = \"https://a.example\"\nheaders = { X = \"a\\nb\" }",
        &[
            "turnwright.toml:3: [mcp.servers.a] `headers.X` holds a line break or another control character, which cannot be sent",
        ],
    );
    says(
        "system_prompt = \"${\"",
        &["turnwright.toml:1: `system_prompt`: `${` has no `}`; close it, or write `$${` for a literal `${`"],
    );
    says(
        "system_prompt = \"${a b}\"",
        &[
            "turnwright.toml:1: `system_prompt`: `${a b}` names no variable; write `${VAR}` or `${VAR:-default}`, or `$${` for a literal `${`",
        ],
    );
}

#[test]
fn a_server_in_a_file_has_a_name_under_which_it_could_be_added() {
    let right = "a name without `__`, line breaks and other control characters, not `.` or `..`, at most 128 bytes";
    for name in ["a__a", "..", &"x".repeat(129)] {
        says(
            &format!("[mcp.servers.\"{name}\"]\ncommand = \"t\""),
            &[&format!("turnwright.toml:1: the name {name:?} in [mcp.servers] is not valid; it must be {right}")],
        );
    }
}

#[test]
fn a_provider_must_be_askable() {
    says(
        "[providers.local]\nbase_url = \"http://127.0.0.1:8080/v1\"",
        &[
            "turnwright.toml:1: [providers.local] has no `dialect`; it must be one of `openai-chat`, `openai-responses`, `anthropic`, `gemini`, `ollama`",
        ],
    );
    says(
        "[providers.\"a/b\"]\ndialect = \"gemini\"",
        &[
            "turnwright.toml:1: the name \"a/b\" in [providers] is not valid; it must be a name without `/`, because a model is PROVIDER/MODEL, split at the first `/`",
        ],
    );
    says(
        "[providers.a]\ndialect = \"gemini\"\nbase_url = \"localhost:1\"",
        &[
            "turnwright.toml:3: `providers.a.base_url` is \"localhost:1\"; it must be a URL that begins with http:// or https://",
        ],
    );
    says(
        "[providers.a]\ndialect = \"openai-chat\"\nbase_url = \"http://h/v1/chat/completions\"",
        &[
            "turnwright.toml:3: `providers.a.base_url` is \"http://h/v1/chat/completions\"; it must be what comes before the API's own path: `http://h/v1`",
        ],
    );
    says(
        "[providers.a]\ndialect = \"gemini\"\nfallback = [\"b\"]",
        &["turnwright.toml:3: `providers.a.fallback[0]` is \"b\"; it must be PROVIDER/MODEL, such as `local/qwen3`"],
    );
    says(
        "[providers.a]\ndialect = \"gemini\"\nfallback = [\"aa/x\"]",
        &["turnwright.toml:3: `providers.a.fallback[0]` is \"aa/x\": there is no provider `aa`; did you mean `a`?"],
    );
    says(
        "[providers.a]\ndialect = \"gemini\"\nfallback = [\"b/y\"]\n[providers.b]\ndialect = \"gemini\"\nmodels = [\"x\", \"z\"]",
        &["turnwright.toml:3: `providers.a.fallback[0]` is \"b/y\"; the models of `b` are `x`, `z`"],
    );
    let ring = |name: &str, next: &str| {
        format!("[providers.{name}]\ndialect = \"gemini\"\nfallback = [\"{name}/small\", \"{next}/m\"]\n")
    };
    says(
        &(ring("a", "b") + &ring("b", "c") + &ring("c", "b")),
        &["turnwright.toml:6: `providers.b.fallback` leads back to where it began: b → c → b"],
    );
    says(
        "[providers.a]\ndialect = \"gemini\"\nmodels = [\"m\"]\nfallback = [\"a/m\"]",
        &[
            "turnwright.toml:4: `providers.a.fallback[0]` is \"a/m\", the one model of `a`, which cannot stand in for itself; it must be another model, or one of another provider",
        ],
    );
    says(
        "[providers.a]\ndialect = \"gemini\"\nheaders = { \"X Y\" = \"1\" }",
        &[
            "turnwright.toml:3: the name \"X Y\" in [providers.a.headers] is not valid; it must be the name of an HTTP header, such as `X-Title`",
        ],
    );
    for (table, name) in [
        ("providers.a]\ndialect = \"gemini\"\n[providers.a.headers", "Content-Length"),
        ("mcp.servers.a]\nurl = \"https://h\"\n[mcp.servers.a.headers", "transfer-encoding"),
        ("tools.http.a]\ndescription = \"https://h\"\n[tools.http.a.headers", "Connection"),
    ] {
        let section = table.rsplit_once('[').unwrap().1;
        let told = format!(
            "turnwright.toml:4: the name {name:?} in [{section}] is not valid; it must be a header that says nothing of how a request is sent, which is done for each request by itself"
        );
        says(&format!("[{table}]\n{name} = \"1\""), &[&told]);
    }
}

#[test]
fn a_model_that_stands_in_for_itself_alone_is_a_warning_where_others_may_be_asked() {
    let warnings = |list: &str| {
        let text = format!("model = \"a/m\"\n[providers.a]\ndialect = \"gemini\"\nfallback = [{list}]\n");
        load_text(&text).unwrap().warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        warnings("\"a/m\""),
        ["turnwright.toml:4: `providers.a.fallback[0]` is \"a/m\", which is `model` too: nothing stands in for that by it"]
    );
    assert_eq!(warnings("\"a/m\", \"a/small\""), Vec::<String>::new());
}

#[test]
fn nobody_is_sent_to_an_identity_provider_where_nobody_signs_in() {
    let oidc = "[server.oidc]\nissuer = \"https://id.example.org\"\nclient_id = \"t\"\nclient_secret = \"s\"\n";
    says(
        &format!("[server]\nauth = \"local\"\n{oidc}"),
        &[
            "turnwright.toml:2: `server.auth` is \"local\", where nobody signs in, and [server.oidc] says at whom; it must be \"tokens\" or left out beside that, or [server.oidc] left out",
        ],
    );
    for before in ["", "[server]\nauth = \"tokens\"\n"] {
        assert!(load_text(&format!("{before}{oidc}")).is_ok(), "{before}");
    }
}

#[test]
fn an_identity_provider_is_asked_who_somebody_is_and_over_tls() {
    let oidc = |issuer: &str, scopes: &str| format!("[server.oidc]\nissuer = \"{issuer}\"\nclient_id = \"t\"\n{scopes}\n");
    for scopes in ["[]", "[\"profile\"]", "[\"openid_more\", \"OpenID\"]"] {
        says(
            &oidc("https://id.test", &format!("scopes = {scopes}")),
            &[
                "turnwright.toml:4: `server.oidc.scopes` is without \"openid\", and so no provider says who signed in; it must be there",
            ],
        );
    }
    let warnings = |issuer: &str, scopes: &str| {
        load_text(&oidc(issuer, scopes)).unwrap().warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let open = "turnwright.toml:2: `server.oidc.issuer` is `http://id.test/x`: by http:// all on the way there see the client's secret, and can sign in as anybody; it should begin with https://";
    assert_eq!(warnings("http://id.test/x", ""), [open]);
    assert_eq!(warnings("http://localhost.id.test", "").len(), 1);
    for issuer in ["https://id.test", "http://LOCALHOST:8080/realms/x", "http://127.0.0.2", "http://[::1]:8080"] {
        assert_eq!(warnings(issuer, "scopes = [\"profile openid\"]"), Vec::<String>::new(), "{issuer}");
    }
}

#[test]
fn a_command_may_take_the_time_that_it_is_given() {
    let above = |given: u64, longest: u64| {
        format!(
            "turnwright.toml:2: `tools.command.timeout_ms` is {given}, above the {longest} of `tools.command.max_timeout_ms`, so that no command would run; it must be at most that"
        )
    };
    says("[tools.command]\ntimeout_ms = 5001\nmax_timeout_ms = 5000", &[&above(5_001, 5_000)]);
    says("[tools.command]\ntimeout_ms = 600001", &[&above(600_001, 600_000)]);
    let times = |text: &str| {
        let command = load_text(&format!("[tools.command]\n{text}")).unwrap().config.tools.command;
        (command.usual().as_millis(), command.longest().as_millis())
    };
    assert_eq!(times(""), (30_000, 600_000));
    assert_eq!(times("max_timeout_ms = 5000"), (5_000, 5_000));
    assert_eq!(times("timeout_ms = 5000\nmax_timeout_ms = 5000"), (5_000, 5_000));
}

#[test]
fn an_mcp_server_has_exactly_one_transport() {
    says(
        "[mcp.servers.a]\nargs = []",
        &[
            "turnwright.toml:1: [mcp.servers.a] has no `command`, `url` or `image`, and no file of servers has one of this name; it must \
           have exactly one of them",
        ],
    );
    says(
        "[mcp.servers.a]\ncommand = \"a\"\nurl = \"http://h\"",
        &["turnwright.toml:1: [mcp.servers.a] has `command`, `url`; it must have exactly one of them"],
    );
    says(
        "[mcp.servers.a]\nimage = \" \"",
        &["turnwright.toml:1: [mcp.servers.a] has `image`, which is empty; it must say what is started or reached"],
    );
    says(
        "[mcp.servers.a]\nurl = \"h\"",
        &["turnwright.toml:2: `mcp.servers.a.url` is \"h\"; it must be a URL that begins with http:// or https://"],
    );
}

#[test]
fn what_a_container_may_do_and_how_to_sign_in_are_checked() {
    says(
        "[mcp.servers.a]\nimage = \"i\"\n[mcp.servers.a.docker]\nmounts = [\"data:/data\"]\nmemory = 3\npull = \"always\"",
        &[
            "turnwright.toml:4: `mcp.servers.a.docker.mounts[0]` is \"data:/data\"; it must be a mount, `/here:/there` with absolute paths, and `:ro` or `:rw` after it",
            "turnwright.toml:5: unknown key `memory` in [mcp.servers.a.docker]; did you mean `memory_mb`? known: `mounts`, `network`, `memory_mb`, `cpus`, `max_processes`, `writable`, `user`, `pull`",
            "turnwright.toml:6: `mcp.servers.a.docker.pull` is \"always\"; it must be one of `never`, `missing`",
        ],
    );
    says(
        "[mcp.servers.a]\nurl = \"http://h\"\n[mcp.servers.a.oauth]\nredirect_port = 0",
        &["turnwright.toml:4: `mcp.servers.a.oauth.redirect_port` is 0; it must be a whole number from 1 to 65535"],
    );
}

#[test]
fn a_rule_must_be_whole_and_its_globs_valid() {
    says(
        "[[approval.rules]]\ntool = \"a\"",
        &["turnwright.toml:1: [[approval.rules]] has no `action`; it must be one of `allow`, `ask`, `deny`"],
    );
    says(
        "[[approval.rules]]\naction = \"deny\"",
        &["turnwright.toml:1: [[approval.rules]] has no `tool`; it must be a glob, such as `filesystem__write*`"],
    );
    says(
        "[[approval.rules]]\ntool = \"a\"\naction = \"deny\"\nwhen = { path = \"[a\" }",
        &[
            "turnwright.toml:4: `approval.rules[0].when.path` is \"[a\"; it must be a glob, such as `filesystem__write*` (unclosed character class; missing ']')",
        ],
    );
}

#[test]
fn a_test_of_an_argument_must_be_one_that_can_be_used() {
    let rule =
        |when: &str| format!("approve = \"ask\"\n[[approval.rules]]\ntool = \"a\"\naction = \"deny\"\nwhen = {{ {when} }}");
    says(
        &rule("path = { belw = \"/tmp\" }"),
        &[
            "turnwright.toml:5: unknown key `belw` in [approval.rules[0].when.path]; did you mean `below`? known: `glob`, `below`, `min`, `max`, `one_of`, `program`",
        ],
    );
    says(
        &rule("path = { below = \"/tmp/../etc\" }"),
        &[
            "turnwright.toml:5: `approval.rules[0].when.path.below` `/tmp/../etc` is not an absolute folder without `..`, such as `/tmp/notes`",
        ],
    );
    says(
        &rule("n = { min = 2, max = 1 }"),
        &["turnwright.toml:5: `approval.rules[0].when.n.min` is 2, above `max`, 1; exchange them"],
    );
    says(&rule("n = { min = \"2\" }"), &["turnwright.toml:5: `approval.rules[0].when.n.min` is \"2\"; it must be a number"]);
    says(
        &rule("c = { program = \"git status\" }"),
        &[
            "turnwright.toml:5: `approval.rules[0].when.c.program` `git status` is not a program alone, such as `git`; its arguments are not part of a rule",
        ],
    );
    says(
        &rule("c = 1"),
        &["turnwright.toml:5: `approval.rules[0].when.c` is 1; it must be a glob, such as `filesystem__write*` or a table"],
    );
}

#[test]
fn all_problems_are_told_in_the_order_of_the_file_then_those_of_variables_and_flags() {
    let environment = environment().with("TURNWRIGHT_APPROVE", "maybe");
    let overrides = Overrides { log_level: Some("x".to_owned()), listen: Some("y".to_owned()), ..Overrides::default() };
    let text = "modle = \"a/b\"\n[providers.a]\ndialect = \"x\"\napi_key = \"${K}\"\n[mcp.servers.s]\n";
    let told = load(Some(&file(text)), &environment, &overrides).map(|_| ()).unwrap_err();
    let places: Vec<_> = told.iter().map(|problem| problem.place.to_string()).collect();
    assert_eq!(
        places,
        [
            "turnwright.toml:1",
            "turnwright.toml:3",
            "turnwright.toml:4",
            "turnwright.toml:5",
            "TURNWRIGHT_APPROVE",
            "--log-level",
            "--listen"
        ]
    );
}

#[test]
fn what_is_not_toml_is_told_with_its_lines() {
    says(
        "model = \n[a\napprove = \"ask\"\n",
        &[
            "turnwright.toml:1: this is not TOML: string values must be quoted, expected literal string",
            "turnwright.toml:2: this is not TOML: unclosed table, expected `]`",
        ],
    );
    says("model = \"a/b\"\nmodel = \"a/c\"", &["turnwright.toml:2: this is not TOML: duplicate key"]);
}

#[test]
fn a_profile_must_be_known_with_all_its_switches() {
    let provider = "[providers.p]\ndialect = \"openai-chat\"\nbase_url = \"http://h/v1\"\nprofile";
    let told = |profile: &str| load_text(&format!("{provider} = {profile}\n")).unwrap_err().to_string();
    let begins = |profile: &str, expected: &[&str]| {
        let told = told(profile);
        let lines: Vec<_> = told.lines().collect();
        let fits = lines.len() == expected.len() && lines.iter().zip(expected).all(|(line, begin)| line.starts_with(begin));
        assert!(fits, "for {profile}:\n{told}\nexpected\n{expected:#?}");
    };
    let known = "it must be one of `compatible`, `openai`, ";
    begins("\"vlm\"", &[&format!("turnwright.toml:4: `providers.p.profile` is \"vlm\"; did you mean `vllm`? {known}")]);
    begins("\"\"", &[&format!("turnwright.toml:4: `providers.p.profile` is \"\"; {known}")]);
    begins(
        "{ imags = false }",
        &[
            "turnwright.toml:4: `providers.p.profile.imags` is false; unknown field `imags`, expected one of `preset`, `system_role`, ",
        ],
    );
    begins(
        "{ stream_usage = \"yes\" }",
        &["turnwright.toml:4: `providers.p.profile.stream_usage` is \"yes\"; invalid type: string \"yes\", expected a boolean"],
    );
    begins(
        "{ preset = \"nope\", tool_choice = \"sometimes\" }",
        &[
            &format!("turnwright.toml:4: `providers.p.profile.preset` is \"nope\"; {known}"),
            "turnwright.toml:4: `providers.p.profile.tool_choice` is \"sometimes\"; unknown variant `sometimes`, expected ",
        ],
    );
    begins("3", &["turnwright.toml:4: `providers.p.profile` is 3; it must be a string or a table"]);
    for profile in ["\"vllm\"", "{}", "{ preset = \"vllm\", images = false }"] {
        let loaded = load_text(&format!("{provider} = {profile}\n"));
        assert!(loaded.is_ok(), "for {profile}: {loaded:?}");
    }
}

#[test]
fn what_is_sent_to_a_provider_must_be_sendable() {
    let base_url = |url: &str, expected: &str| {
        says(
            &format!("[providers.p]\ndialect = \"openai-chat\"\nbase_url = \"{url}\""),
            &[&format!("turnwright.toml:3: `providers.p.base_url` is {expected}")],
        );
    };
    let port = "it must be a URL whose port is a number from 1 to 65535";
    base_url("http://127.0.0.1:99999/v1", &format!("\"http://127.0.0.1:99999/v1\"; {port}"));
    base_url("http://[::1]:0", &format!("\"http://[::1]:0\"; {port}"));
    base_url("http://h:http/v1", &format!("\"http://h:http/v1\"; {port}"));
    base_url("http://:8080", "\"http://:8080\"; it must be a URL with the name of a host, such as `http://127.0.0.1:8080`");
    let user = "it must be a URL without a user or a key before its host, which are never sent; use `api_key` or `headers`";
    base_url("https://me:SECRET@h/v1", &format!("\"https://***@h/v1\"; {user}"));
    says(
        "[providers.p]\ndialect = \"gemini\"\nmodels = [\"a\", \"\", \"a\", \" \"]",
        &[
            "turnwright.toml:3: `providers.p.models` holds \"\"; each must be the name of a model",
            "turnwright.toml:3: `providers.p.models` holds \"a\" twice; each must be there once",
            "turnwright.toml:3: `providers.p.models` holds \" \"; each must be the name of a model",
        ],
    );
    says(
        "[providers.p]\ndialect = \"gemini\"\napi_key = \"SECRET\\n\"\nheaders = { X-Key = \"SEC\\u0000RET\" }",
        &[
            "turnwright.toml:3: `providers.p.api_key` holds a line break or another control character; it must be one line of text",
            "turnwright.toml:4: `providers.p.headers.X-Key` holds a line break or another control character; it must be one line of text",
        ],
    );
    says(
        "[telemetry]\notlp_headers = { x-key = \"SEC\\nRET\" }",
        &[
            "turnwright.toml:2: `telemetry.otlp_headers.x-key` holds a line break or another control character; it must be one line of text",
        ],
    );
    let anthropic = |url: &str| format!("[providers.anthropic]\nbase_url = \"{url}\"");
    for url in ["https://h/api", "https://h/v1", "http://[::1]:8080/x@y", "http://[::1]", "http://h:1?a=b@c"] {
        let loaded = load_text(&anthropic(url));
        assert!(loaded.is_ok(), "for {url}: {loaded:?}");
    }
}

#[test]
fn the_frames_of_apps_have_an_origin_of_their_own_beside_that_of_the_page() {
    let server = "[server]\npublic_url = \"https://tw.test/x\"\n[apps]\n";
    says(
        "[apps]\nsandbox_origin = \"https://apps.test/x\"",
        &[
            "turnwright.toml:2: `apps.sandbox_origin` is \"https://apps.test/x\"; it must be an origin: scheme, host and port alone, such as `https://apps.example.org`",
        ],
    );
    says(
        "[apps]\nsandbox_origin = \"https://apps.test\"",
        &["turnwright.toml:2: `apps.sandbox_origin` needs `server.public_url`, the address of the page that the frames are in"],
    );
    says(
        &format!("{server}sandbox_origin = \"https://TW.test:443\""),
        &[
            "turnwright.toml:4: `apps.sandbox_origin` is `https://tw.test:443`, where the page is too; it must be another host name or port",
        ],
    );
    says(
        &format!("{server}sandbox_origin = \"http://apps.test\""),
        &[
            "turnwright.toml:4: `apps.sandbox_origin` is `http://apps.test`; it must begin with https:// as `server.public_url` does, or browsers do not load it",
        ],
    );
}

#[test]
fn what_is_wrong_with_an_http_api_is_told_at_its_place() {
    says(
        "[tools.http.jira]\nbase_url = \"jira.example\"\noperations = [\"a[\"]\ntimeout_ms = 0\n\
         [tools.http.jira.fields]\n\"search*\" = [\"a..b\"]\n[tools.http.jira.tools.x]\nreadonly = true",
        &[
            "turnwright.toml:1: [tools.http.jira] has no `description`; it must be a string",
            "turnwright.toml:2: `tools.http.jira.base_url` is \"jira.example\"; it must be a URL that begins with http:// or https://",
            "turnwright.toml:3: `tools.http.jira.operations[0]` is \"a[\"; it must be a glob over operations, such as `issues/*` or `GET /issues/*` (unclosed character class; missing ']')",
            "turnwright.toml:4: `tools.http.jira.timeout_ms` is 0; it must be a whole number from 1 to 600000",
            "turnwright.toml:6: `tools.http.jira.fields.\"search*\"[0]` is \"a..b\"; it must be the way to a field of an answer, such as `issues.fields.summary` (a name in it is empty)",
            "turnwright.toml:8: unknown key `readonly` in [tools.http.jira.tools.x]; did you mean `read_only`? known: `read_only`, `replayable`, `serial`, `polled`",
        ],
    );
    says(
        "[tools.http.a]\ndescription = \"a.json\"\noperations = []",
        &[
            "turnwright.toml:3: `tools.http.a.operations` is empty, and so is what would be offered; it must name operations, or be left out for all",
        ],
    );
    says(
        "[tools.http.a]\ndescription = \"ftp://a/b\"\n[tools.http.b]\ndescription = \"https://me:key@a/b\"",
        &[
            "turnwright.toml:2: `tools.http.a.description` is \"ftp://a/b\"; it must be a file, or an address that begins with https:// or http://",
            "turnwright.toml:4: `tools.http.b.description` is \"https://***@a/b\"; it must be a URL without a user or a key before its host; they belong to `auth`",
        ],
    );
    says(
        "[tools.http.web]\ndescription = \"a.json\"\n[tools.http.b]\ndescription = \"a.json\"\nauth = { bearer = \"a\", basic = { user = \"u:v\", password = \"s\\nt\" } }\n\
         [tools.http.c]\ndescription = \"a.json\"\nheaders = { X-A = \"a\\nb\" }\nauth = {}\n[mcp.servers.c]\ncommand = \"x\"",
        &[
            "turnwright.toml:1: `tools.http.web` has the name of built-in tools; it must be another one",
            "turnwright.toml:5: `tools.http.b.auth` must have exactly one of `bearer`, `basic`, `header`, `query`",
            "turnwright.toml:5: `tools.http.b.auth.basic.user` holds `:`, which ends a user's name; it must be a name without it",
            "turnwright.toml:5: `tools.http.b.auth.basic.password` holds a line break or another control character; it must be one line of text",
            "turnwright.toml:6: `tools.http.c` has the name of an MCP server; one of them must have another",
            "turnwright.toml:8: `tools.http.c.headers.X-A` holds a line break or another control character; it must be one line of text",
            "turnwright.toml:9: `tools.http.c.auth` must have exactly one of `bearer`, `basic`, `header`, `query`",
        ],
    );
}
