//! What is told of an engine to whoever watches over it.

use std::sync::{Arc, Mutex};

use tokio::sync::Semaphore;
use turnwright_core::{ProviderFailure, ProviderFailureKind, ToolErrorKind};
use turnwright_engine::{Fact, ModelEnd, NewMessage, Observer, Telemetry, ToolError};
use turnwright_testkit::{Answer, ScriptedProvider, ScriptedSource, ScriptedTool, call, text};

use crate::support::{Setup, World, world};

#[derive(Debug, Default)]
struct Notes(Mutex<Vec<String>>);

impl Observer for Notes {
    fn observe(&self, fact: &Fact<'_>) {
        let line = match fact {
            Fact::TurnBegan => "turn began".to_owned(),
            Fact::TurnParked => "turn parked".to_owned(),
            Fact::TurnOver { status } => format!("turn {}", status.as_contract()),
            Fact::ModelCalled { provider, model, end, first_content, .. } => {
                let said = if first_content.is_some() { "said something" } else { "said nothing" };
                format!("{provider}/{model} {} {said}", end.as_str())
            }
            Fact::ToolCalled { source, tool, outcome, .. } => format!("{source} {tool} {outcome}"),
        };
        self.0.lock().unwrap().push(line);
    }
}

async fn noted(answers: impl IntoIterator<Item = Answer>) -> (World, Arc<Notes>) {
    let fails = |_, _| async { Err(ToolError::new(ToolErrorKind::ExecutionFailed, "broken")) };
    let broken = ScriptedTool::new("broken", fails);
    let tools = [ScriptedTool::echo("echo"), broken];
    let world = world(ScriptedProvider::new(answers), ScriptedSource::new("tools", tools), Setup::default()).await;
    let notes = Arc::new(Notes::default());
    world.engine.tell(Telemetry { observer: Some(notes.clone()), ..Telemetry::default() });
    (world, notes)
}

#[tokio::test(start_paused = true)]
async fn an_observer_hears_of_each_model_call_tool_call_and_turn_once() {
    let calls = Answer::whole([call(0, "tools__echo", r#"{"a":1}"#), call(1, "tools__broken", "{}")]);
    let (world, notes) = noted([calls, Answer::whole([text("Done.")])]).await;
    world.turn("go").await;
    let mut lines = notes.0.lock().unwrap().clone();
    lines[2..4].sort();
    assert_eq!(
        lines,
        [
            "turn began",
            "test/scripted complete said something",
            "tools tools__broken execution_failed",
            "tools tools__echo success",
            "test/scripted complete said something",
            "turn completed",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_model_call_that_fails_is_told_with_its_kind() {
    let failure = ProviderFailure::new(ProviderFailureKind::Auth, "the key is wrong");
    let (world, notes) = noted([Answer::of([]).failing(failure)]).await;
    world.turn("go").await;
    let failed = format!("test/scripted {} said nothing", ModelEnd::Failed(ProviderFailureKind::Auth).as_str());
    assert_eq!(*notes.0.lock().unwrap(), ["turn began", &failed, "turn failed"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_joins_a_turn_begins_none() {
    let gate = Arc::new(Semaphore::new(0));
    let one = Answer::whole([text("One.")]).gated(&gate);
    let (world, notes) = noted([one, Answer::whole([text("Two.")])]).await;
    let sent = world.send("one").await;
    world.engine.send(&world.id, NewMessage::text("two")).await.unwrap();
    gate.add_permits(1_000);
    world.engine.wait(&world.id, sent.turn_id).await.unwrap();
    let began = notes.0.lock().unwrap().iter().filter(|line| *line == "turn began").count();
    assert_eq!(began, 1);
}
