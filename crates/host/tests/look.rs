//! What a host says about itself.

use tempfile::TempDir;
use turnwright_engine::SourceState;
use turnwright_host::{Environment, Finding, Host, Level, Needs, Overrides, config};

/// A host with this configuration, in a folder of its own.
async fn host(text: &str) -> (TempDir, Host) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("turnwright.toml"), text).unwrap();
    let environment = Environment::new(folder.path()).with("PATH", "/usr/bin:/bin");
    let overrides = Overrides { data_dir: Some(folder.path().join("data")), ..Overrides::default() };
    let loaded = config::open(&environment, &overrides).unwrap();
    let host = Host::start(loaded, &environment, Needs::Everything).await.unwrap();
    (folder, host)
}

/// What `doctor` finds about this, with how bad it is.
async fn found(text: &str, subject: &str) -> Vec<(Level, String)> {
    let (_folder, host) = host(text).await;
    let findings = host.doctor().await;
    host.shutdown().await;
    let of_it = findings.into_iter().filter(|finding| finding.subject == subject);
    of_it.map(|Finding { level, text, .. }| (level, text)).collect()
}

#[tokio::test]
async fn an_api_and_a_program_that_cannot_be_offered_are_problems() {
    let text = "model = \"practice/practice\"\n[tools.http.api]\ndescription = \"nope.json\"\n\
                [tools.executable.w]\ncommand = \"./nope\"\n";
    let of_api = found(text, "tools of api").await;
    assert!(matches!(of_api.as_slice(), [(Level::Problem, why)] if why.contains("nope.json")), "{of_api:?}");
    let of_tools = found(text, "tools").await;
    let is_set_aside = |(level, text): &(Level, String)| *level == Level::Problem && text.contains("/nope`");
    assert!(of_tools.iter().any(is_set_aside), "{of_tools:?}");
}

#[tokio::test]
async fn a_default_model_that_its_provider_does_not_list_is_told() {
    let found = async |text: &str| found(text, "model").await;
    let answers = |model: &str, more: &str| format!("{model} answers where nobody names a model{more}");
    assert_eq!(found("model = \"practice/practice\"\n").await, [(Level::Ok, answers("practice/practice", ""))]);
    assert_eq!(
        found("model = \"practice/x\"\n").await,
        [(Level::Problem, answers("practice/x", ", and there is no such model, only practice/practice"))]
    );
    let fake = "[providers.fake]\ndialect = \"openai-chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\nmodels = [\"m\"]\n";
    assert_eq!(
        found(&format!("model = \"fake/typo\"\n{fake}")).await,
        [(Level::Note, answers("fake/typo", "; `fake` does not list it"))]
    );
    assert_eq!(found(&format!("model = \"fake/m\"\n{fake}")).await, [(Level::Ok, answers("fake/m", ""))]);
}

#[tokio::test]
async fn a_server_that_does_not_start_in_time_is_told_with_the_reason() {
    let text = "model = \"practice/practice\"\n[mcp.servers.late]\ncommand = \"sleep\"\nargs = [\"1000\"]\nstart_ms = 100\n";
    let (_folder, host) = host(text).await;
    let status = host.check_mcp("late").await.unwrap();
    let reason = "it did not finish its start within 100 ms: no answer to server/discover or initialize came".to_owned();
    assert_eq!(status.state, SourceState::Failing { reason });
    host.shutdown().await;
}
