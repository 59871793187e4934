//! Deciding about calls, each step in a process of its own.

use serde_json::json;

use crate::servers::SERVER;
use crate::support::{PRACTICE, Place, Ran};

#[test]
fn a_turn_that_parks_says_how_to_decide_and_a_later_process_ends_it() {
    let place = Place::new();
    let ran = place.run(&["chat", "write \"hi\" to file \"b.txt\"", "--conversation", "c", "--config", "turnwright.toml"]);
    let stderr = "waiting: filesystem__write {\"path\":\"b.txt\",\"content\":\"hi\"} waits to be allowed (approve mode ask)\n\
                  hint: turnwright approvals decide call_4_0 allow --approval appr_4_0 --conversation c --config turnwright.toml\n"
        .to_owned();
    assert_eq!(ran, Ran { code: Some(3), stdout: String::new(), stderr });
    assert!(!place.path("b.txt").exists());

    let waiting = json!([{"id": "call_4_0", "approval_id": "appr_4_0", "conversation_id": "c", "name": "filesystem__write",
                          "arguments": "{\"path\":\"b.txt\",\"content\":\"hi\"}", "reason": "approval",
                          "rule": "approve mode ask",
                          "always": {"tool": "filesystem__write", "when": {"path": {"one_of": ["b.txt"]}}, "action": "allow",
                                     "text": "allow filesystem__write when path is \"b.txt\""}}]);
    assert_eq!(place.json(&["approvals", "list", "--json"]), waiting);

    let ran = place.run(&["approvals", "decide", "call_4_0", "allow", "--conversation", "c"]);
    assert_eq!((ran.code, ran.stdout.starts_with(PRACTICE)), (Some(0), true), "{ran:?}");
    assert!(ran.stderr.starts_with("→ filesystem__write {\"path\":\"b.txt\",\"content\":\"hi\"}\n"), "{ran:?}");
    assert_eq!(std::fs::read_to_string(place.path("b.txt")).unwrap(), "hi");
    assert_eq!(place.json(&["approvals", "list", "--json"]), json!([]));
}

#[test]
fn a_call_is_decided_about_in_the_folder_in_which_its_turn_works() {
    let place = Place::new();
    place.park("c");
    let (other, config) = (Place::new(), place.path("turnwright.toml"));
    let config = config.to_str().unwrap();
    let elsewhere = |config: &str, words: &[&str]| {
        let mut command = place.command(&[words, &["--config", config]].concat());
        Ran::of(command.current_dir(other.path("")).stdin(std::process::Stdio::null()).output().unwrap())
    };
    let decide = ["approvals", "decide", "call_4_0", "allow"];
    let folder = place.path("").canonicalize().unwrap().display().to_string();
    let stderr = format!(
        "error: the tools of the open turn work in `{folder}`, and here they would work in another folder; nothing was done\n\
         hint: run it there: cd {folder}\n"
    );
    // Nor is it taken up there by a chat, with words or without, after which it would be decided about there.
    for words in [&decide[..], &["chat", "--conversation", "c", "go on"], &["chat", "--continue", ""]] {
        assert_eq!(elsewhere(config, words), Ran { code: Some(1), stdout: String::new(), stderr: stderr.clone() }, "{words:?}");
    }
    assert!(!other.path("b.txt").exists() && !place.path("b.txt").exists());
    // A configuration that names the folder decides wherever it is asked.
    let text = std::fs::read_to_string(config).unwrap_or_default();
    place.write("named.toml", format!("{text}\n[tools.filesystem]\nroots = [\"{folder}\"]\n"));
    let ran = elsewhere(place.path("named.toml").to_str().unwrap(), &decide);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(place.path("b.txt").exists() && !other.path("b.txt").exists());
}

#[test]
fn a_turn_is_begun_again_in_another_folder_by_a_retry_and_what_waited_is_not_done() {
    let place = Place::new();
    place.park("c");
    let (other, config) = (Place::new(), place.path("turnwright.toml"));
    let elsewhere = |words: &[&str]| {
        let mut command = place.command(&[words, &["--conversation", "c", "--config", config.to_str().unwrap()]].concat());
        Ran::of(command.current_dir(other.path("")).stdin(std::process::Stdio::null()).output().unwrap())
    };
    elsewhere(&["chat", "--retry"]);
    assert!(!other.path("b.txt").exists() && !place.path("b.txt").exists());
    // A conversation without an open turn goes on wherever it is gone on with.
    let ran = elsewhere(&["chat", "--approve", "all", "write \"hi\" to file \"c.txt\""]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(other.path("c.txt").exists() && !place.path("c.txt").exists());
}

#[test]
fn the_call_alone_is_enough_where_only_one_is_called_so() {
    let place = Place::new();
    place.park("one");
    let ran = place.run(&["approvals", "decide", "call_4_0", "deny", "--reason", "not now"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("denied by the user: not now"), "{ran:?}");
    assert!(!place.path("b.txt").exists());

    place.park("two");
    place.park("three");
    let ran = place.run(&["approvals", "decide", "call_4_0", "allow"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.starts_with("error: `call_4_0` waits in several conversations: "), "{ran:?}");
}

#[test]
fn a_person_may_change_the_arguments_and_they_must_fit() {
    let place = Place::new();
    place.park("c");
    let wrong = place.run(&["approvals", "decide", "call_4_0", "allow", "--arguments", "{\"path\":\"c.txt\"}"]);
    let stderr = "error: the arguments do not fit the tool's schema: \"content\" is a required property\n".to_owned();
    assert_eq!(wrong, Ran { code: Some(2), stdout: String::new(), stderr });
    let changed = "{\"path\":\"c.txt\",\"content\":\"changed\"}";
    assert_eq!(place.run(&["approvals", "decide", "call_4_0", "allow", "--arguments", changed]).code, Some(0));
    assert_eq!(std::fs::read_to_string(place.path("c.txt")).unwrap(), "changed");
    assert!(!place.path("b.txt").exists());
}

#[test]
fn what_does_not_wait_cannot_be_decided() {
    let place = Place::new();
    let ran = place.run(&["approvals", "decide", "call_4_0", "allow"]);
    let stderr =
        "error: no call `call_4_0` waits for a decision\nhint: `turnwright approvals list` shows what waits\n".to_owned();
    assert_eq!(ran, Ran { code: Some(2), stdout: String::new(), stderr });
    place.park("c");
    assert_eq!(place.run(&["approvals", "decide", "call_4_0", "happened"]).code, Some(2));
}

#[test]
fn a_decision_that_names_its_question_answers_no_other() {
    let place = Place::new();
    place.park("c");
    let listed = place.run(&["approvals", "list"]).stdout;
    assert!(listed.starts_with("call_4_0") && listed.contains(" appr_4_0 "), "{listed}");
    let decide = |asked: &str| place.run(&["approvals", "decide", "call_4_0", "allow", "--approval", asked]);
    let other = decide("appr_4_0-2");
    assert_eq!(other.code, Some(1), "{other:?}");
    assert!(other.stderr.contains("`appr_4_0-2` is not what is asked about it: that is `appr_4_0`, approval"), "{other:?}");
    let foreign = decide("appr_5_0");
    assert_eq!(foreign.code, Some(2), "{foreign:?}");
    assert!(foreign.stderr.starts_with("error: `appr_5_0` is no question about `call_4_0`\n"), "{foreign:?}");
    assert!(!place.path("b.txt").exists());
    assert_eq!(decide("appr_4_0").code, Some(0));
    assert!(place.path("b.txt").exists());
}

#[test]
fn a_parked_turn_stays_parked_until_somebody_decides() {
    let place = Place::new();
    place.park("c");
    let ran = place.run(&["chat", "--conversation", "c"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "{ran:?}");
    let held = place.run(&["chat", "and more", "--conversation", "c"]);
    assert_eq!((held.code, held.stdout.as_str()), (Some(3), ""), "{held:?}");
    assert_eq!(place.run(&["approvals", "decide", "call_4_0", "allow"]).code, Some(0));
    let roles = place.json(&["conversations", "show", "c", "--json"])["messages"].clone();
    let roles: Vec<_> = roles.as_array().unwrap().iter().map(|message| message["role"].clone()).collect();
    assert_eq!(roles.last().unwrap(), "assistant");
}

#[test]
fn where_nothing_is_open_the_last_answer_is_told_again() {
    let place = Place::new();
    let first = place.run(&["chat", "read the file \"a.txt\"", "--conversation", "c"]);
    let again = place.run(&["chat", "--continue"]);
    assert_eq!((again.code, &again.stdout), (Some(0), &first.stdout));
    assert!(again.stderr.starts_with("note: no turn is open; this is how the last one ended\n"), "{again:?}");
}

#[test]
fn a_decision_that_is_remembered_is_asked_for_once_and_can_be_forgotten() {
    let place = Place::new();
    place.park("c");
    let ran = place.run(&["approvals", "decide", "call_4_0", "allow", "--remember", "everyone"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let rules = place.json(&["approvals", "rules", "list", "--json"]);
    let id = rules[0]["id"].as_str().unwrap().to_owned();
    let note = format!("note: {id} from now on, for everyone: allow filesystem__write when path is \"b.txt\"\n");
    assert!(ran.stderr.contains(&note), "{ran:?}");

    let explained = |mode: &str| {
        let arguments = r#"{"path":"b.txt","content":"hi"}"#;
        place.run(&["approvals", "explain", "filesystem__write", "--arguments", arguments, "--approve", mode]).stdout
    };
    let by_rule = format!("allow: {id}, remembered for everyone (allow filesystem__write when path is \"b.txt\")\n");
    assert_eq!(explained("ask"), by_rule);
    assert_eq!(place.run(&["chat", "write \"ho\" to file \"b.txt\"", "--conversation", "d"]).code, Some(0));
    assert_eq!(std::fs::read_to_string(place.path("b.txt")).unwrap(), "ho");

    assert_eq!(place.run(&["approvals", "rules", "remove", &id]).code, Some(0));
    assert_eq!(place.json(&["approvals", "rules", "list", "--json"]), json!([]));
    let asked = "ask: approve mode ask\n\"always\" would store: allow filesystem__write when path is \"b.txt\"\n";
    assert_eq!((explained("ask").as_str(), explained("none").as_str()), (asked, "deny: approve mode none\n"));
    assert_eq!(place.run(&["approvals", "rules", "remove", &id]).code, Some(2));
}

#[test]
fn a_call_is_explained_with_all_rules_that_match_it() {
    let place = Place::new();
    let rules = "[[approval.rules]]\ntool = \"command__run\"\nwhen = { command = { program = [\"git\", \"ls\"] } }\naction = \"allow\"\n\
                 [[approval.rules]]\ntool = \"command__*\"\nwhen = { command = { program = \"rm\" } }\naction = \"deny\"\n";
    std::fs::write(place.path("rules.toml"), rules).unwrap();
    let explain = |command: &str| {
        let arguments = json!({"command": command}).to_string();
        let arguments = ["approvals", "explain", "command__run", "--config", "rules.toml", "--json", "--arguments", &arguments];
        let told = place.json(&arguments);
        (
            told["action"].as_str().unwrap().to_owned(),
            told["rule"].as_str().unwrap_or_default().to_owned(),
            told["others"].clone(),
        )
    };
    let git = "rule 1 (allow command__run when command program git, ls)";
    let rm = "rule 2 (deny command__* when command program rm)";
    assert_eq!(explain("git status | ls"), ("allow".to_owned(), git.to_owned(), json!([])));
    assert_eq!(explain("sudo -u x env A=1 bash -c \"git status; rm -rf /\""), ("deny".to_owned(), rm.to_owned(), json!([])));
    assert_eq!(explain("cat x"), ("ask".to_owned(), "approve mode ask".to_owned(), json!([])));
    let added = place.run(&["approvals", "rules", "add", "ask", "*", "--when", r#"{"command": {"program": "git"}}"#]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let (action, _, others) = explain("git log");
    assert_eq!((action.as_str(), others), ("ask", json!([{"action": "allow", "rule": git}])));
    for (words, told) in [
        (&["--scope", "conversation"][..], "--scope conversation needs --conversation ID"),
        (&["--scope", "user", "--conversation", "c"], "--scope user and --conversation do not go together"),
    ] {
        let wrong = place.run(&[&["approvals", "rules", "add", "allow", "x"], words].concat());
        assert!(wrong.code == Some(2) && wrong.stderr.contains(told), "{wrong:?}");
    }
    let wrong = place.run(&["approvals", "rules", "add", "allow", "*", "--when", r#"{"command": {"program": "git log"}}"#]);
    assert_eq!(wrong.code, Some(2));
    assert_eq!(
        wrong.stderr,
        "error: the rule cannot be used: `when.command.program` `git log` is not a program alone, such as `git`; its arguments are not part of a rule\n"
    );
    assert_eq!(place.run(&["approvals", "explain", "no__tool"]).code, Some(2));
    let refused = place.run(&["approvals", "explain", "command__run", "--arguments", "{}"]).stdout;
    assert!(refused.starts_with("refuse: nobody is asked about it, because the arguments do not fit"), "{refused}");
}

#[test]
fn deciding_starts_no_server_that_the_call_does_not_need() {
    let place = Place::with("[mcp.servers.s]\ncommand = \"python3\"\nargs = [\"server.py\", \"s\"]\nstart = \"eager\"\n");
    place.write("server.py", SERVER);
    place.park("c");
    let pid = place.path("s.pid");
    std::fs::remove_file(&pid).expect("a chat starts what is to be started early");
    let ran = place.run(&["approvals", "decide", "call_4_0", "allow"]);
    assert_eq!((ran.code, pid.exists()), (Some(0), false), "{ran:?}");

    let parked = place.run(&["chat", "greet me with s__greet", "--conversation", "d"]);
    assert_eq!(parked.code, Some(3), "{parked:?}");
    // A chat that waits for nothing may be over before it is started.
    drop(std::fs::remove_file(&pid));
    // What it offers is forgotten: it must be started to be called, and is.
    std::fs::remove_dir_all(place.path("data/mcp/definitions")).unwrap();
    let ran = place.run(&["approvals", "decide", "call_4_0", "allow", "--conversation", "d"]);
    assert_eq!((ran.code, pid.exists()), (Some(0), true), "{ran:?}");
    assert!(ran.stdout.contains("hello you"), "{ran:?}");
}
