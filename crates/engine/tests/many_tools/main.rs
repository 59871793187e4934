//! A thousand tools of forty servers: what they cost at the start, and whether the right one is found.

#![expect(clippy::expect_used, reason = "a test fails by panicking, also in the helpers that clippy does not know as tests")]

mod servers;

use std::sync::Arc;

use servers::{Question, held_out, questions, tools};
use turnwright_core::policy::Policy;
use turnwright_core::{ModelRef, SEARCH_TOOL, TurnSettings, TurnStatus};
use turnwright_engine::tool_search::ToolIndex;
use turnwright_engine::{Engine, EngineParts, HoldBack, NewMessage, ToolSource, TurnState};
use turnwright_testkit::{
    Answer, ManualClock, MemoryStore, ScriptedProvider, ScriptedProviders, ScriptedSource, ScriptedTool, call, text,
};

#[test]
fn there_are_a_thousand_tools_of_forty_servers_and_each_question_names_one_of_them() {
    let tools = tools();
    assert_eq!(tools.len(), 1_000);
    let mut sources: Vec<&str> = tools.iter().map(|tool| tool.source.as_str()).collect();
    sources.dedup();
    assert_eq!(sources.len(), 40);
    let mut names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 1_000, "a name is there twice");
    for question in questions() {
        let is_there = question.right.iter().any(|right| names.binary_search(&right.as_str()).is_ok());
        assert!(is_there, "{}: none of {:?} is there", question.words, question.right);
    }
    assert_eq!(questions().len(), 100);
}

/// The questions of which the right tool is not among the first five, and what is.
fn missed(questions: &[Question]) -> Vec<String> {
    let tools = tools();
    let index = ToolIndex::new(&tools);
    let mut missed = Vec::new();
    for question in questions {
        let found = index.search(&question.words, 5, |_| true);
        let found: Vec<&str> = found.into_iter().filter_map(|at| tools.get(at)).map(|tool| tool.name.as_str()).collect();
        if !question.right.iter().any(|right| found.contains(&right.as_str())) {
            missed.push(format!("{} = {} but {}", question.words, question.right.join("|"), found.join(", ")));
        }
    }
    missed
}

#[test]
fn the_right_tool_is_among_the_first_five_for_ninety_five_of_a_hundred_questions() {
    let missed = missed(&questions());
    assert!(missed.len() <= 5, "{} are missed:\n{}", missed.len(), missed.join("\n"));
}

#[test]
fn of_forty_questions_by_which_nothing_was_chosen_nine_in_ten_find_their_tool() {
    let questions = held_out();
    assert_eq!(questions.len(), 40);
    let missed = missed(&questions);
    assert!(missed.len() <= 4, "{} are missed:\n{}", missed.len(), missed.join("\n"));
}

/// An engine over the forty servers.
fn engine(answers: impl IntoIterator<Item = Answer>) -> Engine {
    let all = tools();
    let sources = all.chunk_by(|a, b| a.source == b.source).map(|tools| {
        let scripted = tools.iter().map(|tool| ScriptedTool::echo(&tool.tool).schema(tool.input_schema.clone()));
        let name = tools.first().map(|tool| tool.source.as_str()).unwrap_or_default();
        Arc::new(ScriptedSource::new(name, scripted)) as Arc<dyn ToolSource>
    });
    let engine = Engine::new(EngineParts {
        providers: Arc::new(ScriptedProviders(ScriptedProvider::new(answers))),
        sources: sources.collect(),
        store: Arc::new(MemoryStore::default()),
        clock: Arc::new(ManualClock::at(1_000)),
        policy: Policy::new(Vec::new()).expect("no rule is a wrong one"),
        defaults: TurnSettings::new(ModelRef::new("test", "scripted")),
    });
    engine.hold_back(HoldBack::default());
    engine
}

#[tokio::test]
async fn a_thousand_tools_cost_less_than_three_thousand_tokens_at_the_start_and_one_of_them_is_found() {
    let asks = call(0, SEARCH_TOOL, r#"{"query":"create an issue in github"}"#);
    let engine = engine([Answer::whole([asks]), Answer::whole([text("Done.")])]);
    let id = "c1".parse().expect("an id");
    let sent = engine.send(&id, NewMessage { create: true, ..NewMessage::text("report it") }).await.expect("it is stored");
    assert_eq!(engine.wait(&id, sent.turn_id).await, Ok(TurnState::Ended(TurnStatus::Completed)));
    let journal = engine.journal(&id).await.expect("it is there");
    let (first, found) = journal.offered().split_first().expect("something is offered");
    assert_eq!(first.name, SEARCH_TOOL);
    // No token is shorter than a byte.
    let bytes = first.name.len() + first.description.len() + first.input_schema.to_string().len();
    assert!(bytes < 3_000, "{bytes}: {}", first.description);
    assert_eq!(found.len(), 5);
    assert!(found.iter().any(|tool| tool.name == "github__create_issue"));
    assert_eq!(engine.tools().await.len(), 1_000);
}
