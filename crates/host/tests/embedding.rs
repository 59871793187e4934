//! The examples of programs that have a host in them do what they say.

#[path = "../../../examples/own_model.rs"]
mod own_model;
#[path = "../../../examples/own_tool.rs"]
mod own_tool;
#[path = "../../../examples/watched.rs"]
mod watched;

use std::path::Path;

use turnwright_host::{Environment, Host, HostBuilder, HostError, Overrides, config};
use turnwright_testkit::ScriptedProvider;

#[tokio::test]
async fn a_tool_of_ten_lines_is_called_and_answered_with() {
    let folder = tempfile::tempdir().unwrap();
    let said = own_tool::ask(folder.path(), "Reverse the text \"desserts\"").await.unwrap();
    assert_eq!(said.first().map(String::as_str), Some("stressed"), "{said:?}");
    assert!(said.len() == 2 && said[1].contains("stressed"), "{said:?}");
}

#[tokio::test]
async fn a_program_without_a_helper_has_no_commands_and_is_told_so_unless_it_wants_them_unconfined() {
    for (text, has_commands, problems) in
        [("", false, 1), ("[tools.command]\nsandbox = \"off\"\n", true, 0), ("[tools.command]\nenabled = false\n", false, 0)]
    {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("turnwright.toml"), text).unwrap();
        let host = started(folder.path(), &[]).await.unwrap();
        let tools = host.engine().tools().await;
        assert_eq!(tools.iter().any(|tool| tool.name == "command__run"), has_commands, "{text}");
        assert_eq!(host.problems().len(), problems, "{text}: {:?}", host.problems());
        assert!(host.problems().iter().all(|problem| problem.contains("Environment::with_command_helper")));
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_program_without_a_helper_has_no_tool_that_is_to_be_confined_and_is_told_which() {
    let folder = tempfile::tempdir().unwrap();
    let tool = |name: &str, more: &str| {
        format!(
            "[tools.executable.{name}]\ncommand = \"true\"\ndescription = \"d\"\nschema = {{ type = \"object\" }}\n{more}\n"
        )
    };
    let text = [
        "[tools.command]\nenabled = false\n".to_owned(),
        tool("confined", "sandbox = \"preferred\""),
        tool("plain", ""),
        tool("off", "sandbox = \"off\""),
        tool("unwanted", "sandbox = \"preferred\"\nenabled = false"),
    ];
    std::fs::write(folder.path().join("turnwright.toml"), text.concat()).unwrap();
    let host = started(folder.path(), &[]).await.unwrap();
    let tools = host.engine().tools().await;
    let offered = tools.iter().filter_map(|tool| tool.name.strip_prefix("executable__")).collect::<Vec<_>>();
    assert_eq!(offered, ["off", "plain"]);
    let why = "the tool `executable__confined` is left out: this program brings no helper that confines what is run \
        (`Environment::with_command_helper`); `tools.executable.confined.sandbox = \"off\"` runs it unconfined, \
        `tools.executable.confined.enabled = false` says that it is not wanted";
    assert_eq!(host.problems(), [why]);
    host.shutdown().await;
}

#[tokio::test]
async fn a_name_of_a_provider_that_no_model_could_be_named_by_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let form = "it must be a name without `/`, because a model is PROVIDER/MODEL, split at the first `/`";
    let twice = "another provider of the program has it; each needs a name of its own";
    for (names, name, reason) in
        [(&["a", ""][..], "", form), (&["mine/x"][..], "mine/x", form), (&["a", "b", "a"][..], "a", twice)]
    {
        let refused = started(folder.path(), names).await.unwrap_err();
        assert_eq!(refused.to_string(), format!("`{name}` cannot be the name of a model provider: {reason}"));
    }
}

#[tokio::test]
async fn a_host_that_is_begun_does_what_its_configuration_promises() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("turnwright.toml"), "[server.limits]\nmessage_bytes = 4\n").unwrap();
    let host = started(folder.path(), &[]).await.unwrap();
    let id = turnwright_engine::Engine::new_id().unwrap();
    host.begin("http://localhost").await.unwrap();
    let message = turnwright_engine::NewMessage { create: true, ..turnwright_engine::NewMessage::text("Hello") };
    let refused = host.engine().send(&id, message).await.unwrap_err();
    assert!(matches!(refused, turnwright_engine::EngineError::OverLimit(_)), "{refused:?}");
    host.shutdown().await;
}

/// A host whose data is in `folder`, with providers of these names.
async fn started(folder: &Path, names: &[&str]) -> Result<Host, HostError> {
    let environment = Environment::new(folder);
    let overrides = Overrides { data_dir: Some(folder.join("data")), ..Overrides::default() };
    let loaded = config::open(&environment, &overrides).unwrap();
    let builder = Host::builder(loaded, environment);
    let with = |builder: HostBuilder, name: &&str| builder.provider(*name, ScriptedProvider::new([]));
    names.iter().fold(builder, with).start().await
}

#[tokio::test]
async fn a_model_of_ones_own_is_the_default_and_its_answer_a_value() {
    let folder = tempfile::tempdir().unwrap();
    let counted = own_model::ask(folder.path(), "How many words are these?").await.unwrap();
    assert_eq!(counted, own_model::Counted { words: 5, is_question: true });
}

#[tokio::test]
async fn a_program_sees_what_happens_and_decides() {
    let folder = tempfile::tempdir().unwrap();
    for (allows, verdict) in [(true, "Allow"), (false, "Deny")] {
        let seen = watched::ask(folder.path(), "Publish the text \"Good news\"", allows).await.unwrap();
        let [call, decided, end, answer] = seen.as_slice() else { panic!("{seen:?}") };
        assert_eq!(
            (call.as_str(), decided.as_str(), end.as_str()),
            (r#"press__publish {"text":"Good news"}"#, verdict, "completed")
        );
        assert_eq!(answer.contains("published 9 letters"), allows, "{answer}");
    }
}
