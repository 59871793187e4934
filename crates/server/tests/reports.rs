//! Turn reports of turns that a real engine ran over doubles.

use std::sync::Arc;

use tokio::sync::{Notify, Semaphore};
use turnwright_api::{Message, Role, TurnReport};
use turnwright_core::policy::Policy;
use turnwright_core::{ApproveMode, ConversationId, Finish, FinishReason, ModelRef, NativeBlock, StreamDelta, TurnSettings};
use turnwright_engine::{Engine, EngineParts, NewMessage, ToolOutput, ToolSource};
use turnwright_server::{report, turn_report};
use turnwright_testkit::{
    Answer, ManualClock, MemoryStore, ScriptedProvider, ScriptedProviders, ScriptedSource, ScriptedTool, call, text,
};

fn engine(tools: Vec<ScriptedTool>, answers: Vec<Answer>, max_steps: u32) -> Engine {
    let settings = TurnSettings { approve: ApproveMode::All, max_steps, ..TurnSettings::new(ModelRef::new("test", "m")) };
    Engine::new(EngineParts {
        providers: Arc::new(ScriptedProviders(ScriptedProvider::new(answers))),
        sources: vec![Arc::new(ScriptedSource::new("lab", tools)) as Arc<dyn ToolSource>],
        store: Arc::new(MemoryStore::default()),
        clock: Arc::new(ManualClock::at(0)),
        policy: Policy::default(),
        defaults: settings,
    })
}

async fn report_of(tools: Vec<ScriptedTool>, answers: Vec<Answer>, max_steps: u32) -> TurnReport {
    let engine = engine(tools, answers, max_steps);
    let id: ConversationId = "c1".parse().unwrap();
    let sent = engine.send(&id, NewMessage { create: true, ..NewMessage::text("Go") }).await.unwrap();
    engine.wait(&id, sent.turn_id).await.unwrap();
    turn_report(&engine.journal(&id).await.unwrap(), &id, sent.turn_id, engine.configured_policy()).unwrap()
}

/// Role, content, tool and failure of a message.
type Shown<'a> = (Role, Option<&'a str>, Option<&'a str>, Option<bool>);

fn messages(report: &TurnReport) -> Vec<Shown<'_>> {
    report.messages.iter().map(shown).collect()
}

fn shown(message: &Message) -> Shown<'_> {
    (message.role, message.content.as_deref(), message.name.as_deref(), message.is_error)
}

#[tokio::test]
async fn results_stand_in_call_order_whatever_order_they_came_in() {
    let done = Arc::new(Notify::new());
    let (wait, tell) = (done.clone(), done);
    let slow = ScriptedTool::new("slow", move |_, _| {
        let wait = wait.clone();
        async move {
            wait.notified().await;
            Ok(ToolOutput::text("slow"))
        }
    });
    let fast = ScriptedTool::new("fast", move |_, _| {
        let tell = tell.clone();
        async move {
            tell.notify_one();
            Ok(ToolOutput::text("fast"))
        }
    });
    let calls = Answer::whole([call(0, "lab__slow", "{}"), call(1, "lab__fast", "{}")]);
    let report = report_of(vec![slow, fast], vec![calls, Answer::whole([text("Done")])], 25).await;
    let expected = [
        (Role::User, Some("Go"), None, None),
        (Role::Assistant, None, None, None),
        (Role::Tool, Some("slow"), Some("lab__slow"), Some(false)),
        (Role::Tool, Some("fast"), Some("lab__fast"), Some(false)),
        (Role::Assistant, Some("Done"), None, None),
    ];
    assert_eq!(messages(&report), expected);
}

#[tokio::test]
async fn calls_that_never_ran_stay_each_with_a_failed_result() {
    let calls = Answer::whole([call(0, "nobody__knows", "{\"a\":"), call(1, "lab__echo", "[1]")]);
    let last = Answer::whole([call(0, "lab__echo", "{}")]);
    let report = report_of(vec![ScriptedTool::echo("echo")], vec![calls, last], 2).await;
    assert_eq!((report.status.as_str(), report.steps), ("step_limit", 2));
    let shown: Vec<_> = messages(&report).into_iter().map(|(role, _, name, is_error)| (role, name, is_error)).collect();
    let expected = [
        (Role::User, None, None),
        (Role::Assistant, None, None),
        (Role::Tool, Some("nobody__knows"), Some(true)),
        (Role::Tool, Some("lab__echo"), Some(true)),
        (Role::Assistant, None, None),
        (Role::Tool, Some("lab__echo"), Some(true)),
    ];
    assert_eq!(shown, expected);
    let asked = report.messages[1].tool_calls.as_ref().unwrap();
    let arguments: Vec<&str> = asked.iter().map(|call| call.function.arguments.as_str()).collect();
    assert_eq!(arguments, ["{\"a\":", "[1]"], "arguments are the model's text as it came");
}

#[tokio::test]
async fn a_failed_result_says_of_what_kind_it_is() {
    let calls = Answer::whole([call(0, "nobody__knows", "{}"), call(1, "lab__echo", "{}")]);
    let report = report_of(vec![ScriptedTool::echo("echo")], vec![calls, Answer::whole([text("Done")])], 25).await;
    let kinds: Vec<_> = report.messages.iter().map(|message| message.error_type.as_deref()).collect();
    assert_eq!(kinds, [None, None, Some("not_found"), None, None]);
}

/// The answers to the first and to the second of two messages, of which the second comes while the model answers.
async fn answers(first: Vec<Answer>, gate: &Semaphore) -> [Option<String>; 2] {
    let engine = engine(vec![ScriptedTool::echo("echo")], first, 25);
    let id: ConversationId = "c1".parse().unwrap();
    let one = engine.send(&id, NewMessage { create: true, ..NewMessage::text("One?") }).await.unwrap();
    // The model is asked once its gate has been taken.
    while gate.available_permits() > 0 {
        tokio::task::yield_now().await;
    }
    let two = engine.send(&id, NewMessage::text("Two?")).await.unwrap();
    assert_eq!(one.turn_id, two.turn_id);
    let unseen = report::answer_to(&engine.journal(&id).await.unwrap(), one.turn_id, two.message_id);
    assert_eq!(unseen, None, "no answer has seen it");
    gate.add_permits(9);
    engine.wait(&id, one.turn_id).await.unwrap();
    let journal = engine.journal(&id).await.unwrap();
    [one, two].map(|sent| report::answer_to(&journal, sent.turn_id, sent.message_id)?.content)
}

#[tokio::test]
async fn a_message_is_paired_with_the_answer_that_saw_it_and_nothing_later() {
    let answer = |words: &str| Some(words.to_owned());
    let gate = Arc::new(Semaphore::new(1));
    let first = Answer::whole([text("one"), text(".")]).gated(&gate);
    assert_eq!(answers(vec![first, Answer::whole([text("two.")])], &gate).await, [answer("one."), answer("two.")]);
    // Its own answer only called a tool: what came of that, it was told together with the second.
    let gate = Arc::new(Semaphore::new(1));
    let first = Answer::whole([text("Let me look."), call(0, "lab__echo", "{}")]).gated(&gate);
    assert_eq!(answers(vec![first, Answer::whole([text("both.")])], &gate).await, [answer("both."), answer("both.")]);
}

#[tokio::test]
async fn a_message_tells_why_its_model_stopped() {
    let deltas = vec![
        StreamDelta::Text("1. stop".to_owned()),
        StreamDelta::Finished(Finish { reason: FinishReason::Length, raw: Some("max_tokens".to_owned()) }),
    ];
    let report = report_of(vec![], vec![Answer::of([deltas])], 25).await;
    let reasons: Vec<_> = report.messages.iter().map(|message| message.finish_reason.as_deref()).collect();
    assert_eq!((reasons, report.refusal), (vec![None, Some("length")], None));
}

#[tokio::test]
async fn a_picture_that_the_model_answers_with_is_told_in_words() {
    let native = NativeBlock(r#"{"inlineData":{"mimeType":"image/png","data":"AAAA"}}"#.to_owned());
    let report = report_of(vec![], vec![Answer::whole([text("Here:"), vec![StreamDelta::Opaque(native)]])], 25).await;
    let told = "Here:\n[image, image/png]";
    assert_eq!((report.messages[1].content.as_deref(), report.text.as_str()), (Some(told), told));
}

#[tokio::test]
async fn thinking_and_refusals_are_not_content() {
    let deltas = vec![
        StreamDelta::Reasoning("I should not".to_owned()),
        StreamDelta::Refusal("I will not".to_owned()),
        StreamDelta::Finished(Finish { reason: FinishReason::Refusal, raw: Some("refusal".to_owned()) }),
    ];
    let report = report_of(vec![], vec![Answer::of([deltas])], 25).await;
    let message = &report.messages[1];
    let told = (message.content.as_deref(), message.refusal.as_deref(), message.finish_reason.as_deref());
    assert_eq!(told, (None, Some("I will not"), Some("content_filter")));
    assert_eq!(report.refusal.as_deref(), Some("I will not"));
    assert_eq!((report.text.as_str(), report.status.as_str()), ("", "stopped"));
    let words = (report.stop.as_deref(), report.finish_reason.as_deref(), report.finish_reason_raw.as_deref());
    assert_eq!(words, (Some("refused"), Some("content_filter"), Some("refusal")));
    assert_eq!(report.usage, turnwright_api::Usage::default());
}

#[tokio::test]
async fn pages_of_any_size_after_any_message_are_parts_of_the_whole_history() {
    let look = || call(0, "lab__look", "{}");
    let answers = [
        Answer::whole([look(), call(1, "lab__look", "{}")]),
        Answer::whole([text("Once more"), look()]),
        Answer::whole([text("Done")]),
        Answer::whole([text("Again")]),
        Answer::whole([text("And again")]),
    ];
    let (engine, id) = (engine(vec![ScriptedTool::echo("look")], answers.into(), 9), "c1".parse().unwrap());
    for said in ["One", "Two", "Three"] {
        let sent = engine.send(&id, NewMessage { create: true, ..NewMessage::text(said) }).await.unwrap();
        engine.wait(&id, sent.turn_id).await.unwrap();
    }
    let shown = report::messages(&engine.journal(&id).await.unwrap());
    let second = shown.iter().find(|message| message.content.as_deref() == Some("Two")).unwrap();
    engine.hide(&id, second.id.parse().unwrap()).await.unwrap();
    let journal = engine.journal(&id).await.unwrap();
    let all = report::messages(&journal);
    assert_eq!(all.len(), 10);
    for limit in 0..=all.len() {
        let first = report::messages_after(&journal, None, limit).unwrap();
        assert_eq!(first, all.get(..limit).unwrap());
        for (at, message) in all.iter().enumerate() {
            let page = report::messages_after(&journal, Some(&message.id), limit).unwrap();
            let rest = all.get(at + 1..).unwrap();
            assert_eq!(page, rest.get(..limit.min(rest.len())).unwrap(), "{limit} after {}", message.id);
        }
    }
    // Behind what is hidden it goes on, as behind what was before it.
    let before = shown.iter().rev().skip_while(|message| message.id != second.id).nth(1).unwrap();
    assert_eq!(report::messages_after(&journal, Some(&second.id), 2), report::messages_after(&journal, Some(&before.id), 2));
    for unknown in ["msg_99999", "msg_2", "x", ""] {
        assert_eq!(report::messages_after(&journal, Some(unknown), 1), None, "{unknown}");
    }
}
