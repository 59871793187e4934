//! The page in a real browser: `web/tests` over the real binary, with a scripted model and MCP servers that nobody here
//! wrote. Needs Node.js with what `scripts/install-test-browser` installs.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and says why it was skipped")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the tests are run with.
struct Tools {
    web: PathBuf,
    chromium: PathBuf,
    servers: Option<PathBuf>,
}

fn tools() -> Result<Tools, &'static str> {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web");
    let hint = "run scripts/install-test-browser";
    if !web.join("node_modules/playwright-core").is_dir() || !web.join("node_modules/axe-core").is_dir() {
        return Err(hint);
    }
    if !web.join("made/page/index.html").is_file() {
        return Err("run cargo xtask page");
    }
    let named = std::env::var_os("TURNWRIGHT_CHROMIUM").map(PathBuf::from);
    let known = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]
        .map(|name| Path::new("/usr/bin").join(name));
    let chromium = named.into_iter().chain(known).find(|path| path.is_file()).ok_or(hint)?;
    Ok(Tools { web, chromium, servers: servers() })
}

/// Where `scripts/install-test-servers` puts them.
fn servers() -> Option<PathBuf> {
    let folder = std::env::var_os("TURNWRIGHT_TEST_SERVERS").map(PathBuf::from).or_else(|| {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
        Some(cache.join("turnwright/test-servers"))
    });
    folder.filter(|folder| folder.join("installed").is_file())
}

/// Runs the tests of one file.
fn run(file: &str) {
    let tools = match tools() {
        Ok(tools) => tools,
        Err(hint) => {
            let is_required = std::env::var_os("TURNWRIGHT_REQUIRE_TEST_BROWSER").is_some_and(|value| value == "1");
            assert!(!is_required, "the page cannot be tested: {hint}");
            println!("skipped: the page is tested in a browser; {hint}");
            return;
        }
    };
    let mut command = Command::new("node");
    command.arg("--test").arg("--test-reporter=spec").arg(format!("tests/{file}")).current_dir(&tools.web);
    command.env("TURNWRIGHT_BINARY", env!("CARGO_BIN_EXE_turnwright")).env("TURNWRIGHT_CHROMIUM", &tools.chromium);
    match &tools.servers {
        Some(servers) => command.env("TURNWRIGHT_TEST_SERVERS", servers),
        None => command.env_remove("TURNWRIGHT_TEST_SERVERS"),
    };
    let ran = command.stdin(Stdio::null()).output().unwrap();
    assert!(ran.status.success(), "{}\n{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn what_people_say_is_answered_and_survives_reloads_kills_and_lost_networks() {
    run("chat.test.mjs");
}

#[test]
fn what_is_said_is_sent_as_it_was_shown_and_in_its_order() {
    run("sending.test.mjs");
}

#[test]
fn tools_are_shown_decided_about_and_brought_by_servers() {
    run("tools.test.mjs");
}

#[test]
fn pages_of_servers_are_shown_in_frames_and_stay_in_them() {
    run("apps.test.mjs");
}

#[test]
fn people_decide_by_what_they_see_and_what_is_remembered_is_what_was_shown() {
    run("approvals.test.mjs");
}

#[test]
fn conversations_are_branched_commanded_saved_and_set() {
    run("branches.test.mjs");
}

#[test]
fn usage_turns_settings_and_servers_have_their_screens() {
    run("rooms.test.mjs");
}

#[test]
fn the_page_never_stands_still() {
    run("speed.test.mjs");
}

#[test]
fn every_screen_is_for_everybody_and_nothing_hostile_runs() {
    run("quality.test.mjs");
}

#[test]
fn the_first_run_is_practice_and_leads_to_a_model() {
    run("first-run.test.mjs");
}

#[test]
fn what_goes_wrong_is_said_and_loses_nothing() {
    run("bad-input.test.mjs");
}

#[test]
fn no_text_of_others_does_anything_wherever_it_is_shown() {
    run("hostile.test.mjs");
}

#[test]
fn who_looks_elsewhere_is_told_what_waits() {
    run("notify.test.mjs");
}

#[test]
fn cards_say_what_calls_did_and_what_they_ask() {
    run("cards.test.mjs");
}

#[test]
fn nobody_is_kept_out_of_any_state_of_any_screen() {
    run("barriers.test.mjs");
}

#[test]
fn keys_alone_are_enough_and_what_happens_is_said() {
    run("keyboard.test.mjs");
}

#[test]
fn every_writing_is_shown_as_it_is_written_and_what_is_filled_in_is_kept() {
    run("writing.test.mjs");
}

#[test]
fn several_people_have_what_is_theirs() {
    run("people.test.mjs");
}
