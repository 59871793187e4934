//! Calls that the pages of a source ask for (MCP Apps).

use std::collections::BTreeMap;

use serde_json::json;
use turnwright_core::policy::{Action, RuleText};
use turnwright_core::{ApproveMode, Outcome, ToolErrorKind};
use turnwright_engine::{EngineError, PageCall, PageCalled, ToolFace, Visibility};
use turnwright_testkit::{ScriptedProvider, ScriptedSource, ScriptedTool};

use crate::support::{Setup, World, world};

fn of(visibility: Visibility, name: &str) -> ScriptedTool {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    ScriptedTool::echo(name).schema(schema).face(ToolFace { visibility, ..ToolFace::default() })
}

async fn with_pages(approve: ApproveMode) -> World {
    let rule = RuleText {
        tool: "tools__*".to_owned(),
        when: BTreeMap::from([("path".to_owned(), "/secret/**".into())]),
        action: Action::Deny,
    };
    let tools = [of(Visibility::Everyone, "both"), of(Visibility::Pages, "page"), of(Visibility::Models, "model")];
    let source = ScriptedSource::new("tools", tools);
    world(ScriptedProvider::new([]), source, Setup { approve, rules: vec![rule], ..Setup::default() }).await
}

const CALL: PageCall<'static> =
    PageCall { source: "tools", tool: "page", arguments: "{}", conversation: None, is_allowed: false, key: None };

#[tokio::test]
async fn a_page_calls_what_its_own_source_means_for_pages_and_nothing_else() {
    let world = with_pages(ApproveMode::All).await;
    let names: Vec<String> = world.engine.tools().await.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(names, ["tools__both", "tools__model"], "what is for pages alone is offered to no model");
    for tool in ["page", "both"] {
        let PageCalled::Came(result) = world.engine.call_for_page(PageCall { tool, ..CALL }).await.unwrap() else {
            panic!("{tool}")
        };
        assert_eq!((result.outcome, result.content[0].as_text().as_ref()), (Outcome::Success, "{}"));
    }
    for (source, tool) in [("tools", "model"), ("tools", "none"), ("tools", "tools__page"), ("other", "page")] {
        let refused = world.engine.call_for_page(PageCall { source, tool, ..CALL }).await.unwrap_err();
        assert!(matches!(refused, EngineError::NoTool { .. }), "{source} {tool}: {refused:?}");
    }
    assert_eq!(world.source.effects().len(), 2);
}

#[tokio::test]
async fn a_call_of_a_page_asks_first_and_a_rule_that_denies_holds_whatever_a_person_allowed() {
    let world = with_pages(ApproveMode::Ask).await;
    let asks = PageCalled::Asks { rule: "approve mode ask".to_owned() };
    assert_eq!(world.engine.call_for_page(CALL).await.unwrap(), asks);
    assert!(world.source.effects().is_empty(), "nothing runs before a person allows it");
    let allowed = PageCall { is_allowed: true, ..CALL };
    assert_eq!(
        world.engine.without_decisions().call_for_page(allowed).await.unwrap(),
        asks,
        "it cannot be allowed by whoever decides nothing"
    );
    let outcome = async |call| match world.engine.call_for_page(call).await.unwrap() {
        PageCalled::Came(result) => result.outcome,
        PageCalled::Asks { rule } => panic!("{rule}"),
    };
    assert_eq!(outcome(allowed).await, Outcome::Success);
    let secret = PageCall { arguments: r#"{"path": "/secret/a"}"#, ..allowed };
    assert_eq!(outcome(secret).await, Outcome::Denied);
    let wrong = PageCall { arguments: r#"{"path": 7}"#, ..allowed };
    assert_eq!(outcome(wrong).await, Outcome::Error(ToolErrorKind::InvalidArguments));
    assert_eq!(world.source.effects().len(), 1);
}
