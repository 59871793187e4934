//! Calls that ask people for something.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use turnwright_core::{
    AnswerAction, ApproveMode, Declared, Elicitation, ElicitationId, ToolErrorKind, TurnId, TurnStatus, Wants,
};
use turnwright_engine::{
    Answers, CallLimits, Completed, Engine, EngineError, Event, NewConversation, NewMessage, OnWaiting, Reply, ToolError,
    ToolOutput, ToolReply, TurnState, WatchFrom,
};
use turnwright_testkit::{Answer, ManualClock, MemoryStore, ScriptedProvider, ScriptedSource, ScriptedTool, call, text};

use crate::support::{Setup, World, completed, engine, engine_at, id, kinds, results, world};

fn form() -> Elicitation {
    let schema = json!({"type": "object", "properties": {
        "name": {"type": "string"}, "age": {"type": "integer", "minimum": 0, "default": 30},
    }, "required": ["name"]});
    Elicitation { key: "who".to_owned(), message: "Who?".to_owned(), wants: Wants::Form { schema } }
}

fn said(reply: &Reply) -> String {
    format!("{} {}", reply.action.as_str(), Value::from(reply.content.clone()))
}

/// Asks while its connection is held.
fn holding() -> ScriptedTool {
    ScriptedTool::new("hold", |_, context| async move {
        let Some(reply) = context.asks.ask(form()).await else {
            return Err(ToolError::new(ToolErrorKind::ExecutionFailed, "it acts on that"));
        };
        Ok(ToolOutput::text(said(&reply)))
    })
}

/// Ends to ask, and says when it is made again what it got.
fn parking() -> ScriptedTool {
    ScriptedTool::asking("park", |_, context| async move {
        let Some(resume) = context.resume else {
            return Ok(ToolReply::Asks { asks: vec![form()], resume: json!({"state": "opaque"}) });
        };
        let answers: Vec<String> = resume
            .answers
            .iter()
            .map(|settled| {
                let reply = Reply { content: settled.answer.content.clone(), ..Reply::of(settled.answer.action) };
                format!("{} {}", settled.ask.key, said(&reply))
            })
            .collect();
        Ok(ToolReply::Done(ToolOutput::text(format!("{} {}", resume.resume, answers.join("; ")))))
    })
}

fn provider(tools: &[&str]) -> Arc<ScriptedProvider> {
    let calls = tools.iter().zip(0..).map(|(name, key)| call(key, &format!("tools__{name}"), "{}")).collect::<Vec<_>>();
    ScriptedProvider::new([Answer::whole(calls), Answer::whole([text("Done.")])])
}

fn source() -> ScriptedSource {
    ScriptedSource::new("tools", [holding(), parking(), ScriptedTool::echo("echo")])
}

fn accept(content: Value) -> Reply {
    let content = match content {
        Value::Object(content) => Some(content),
        _ => None,
    };
    Reply::accept(content)
}

async fn asked(engine: &Engine) -> ElicitationId {
    let mut watch = engine.watch(&id(), WatchFrom::After(None)).await.unwrap();
    loop {
        let frame = watch.next().await.unwrap();
        let question = frame.events.iter().find_map(|event| match event {
            Event::ElicitationRequested { question_id, .. } => Some(*question_id),
            _ => None,
        });
        if let Some(question) = question {
            return question;
        }
    }
}

async fn open_turn(world: &World) -> TurnId {
    world.journal().await.turn().unwrap().id()
}

#[tokio::test(start_paused = true)]
async fn a_question_of_a_call_that_is_over_waits_no_longer_although_another_runs() {
    let (leave, over) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let tasks = TaskTracker::new();
    let (may_leave, is_over, spawner) = (leave.clone(), over.clone(), tasks.clone());
    // As where its server took it for the call that asked, or does not wait for what it asked.
    let leaves = ScriptedTool::new("leave", move |_, context| {
        let (may_leave, is_over) = (may_leave.clone(), is_over.clone());
        spawner.spawn(async move {
            assert_eq!(context.asks.ask(form()).await, None, "nothing is said in anybody's name");
            is_over.add_permits(1);
        });
        async move {
            may_leave.acquire().await.unwrap().forget();
            Ok(ToolOutput::text("left"))
        }
    });
    let waits = ScriptedTool::new("wait", move |_, _| {
        let over = over.clone();
        async move {
            over.acquire().await.unwrap().forget();
            Ok(ToolOutput::text("heard"))
        }
    });
    let world = world(provider(&["wait", "leave"]), ScriptedSource::new("tools", [leaves, waits]), Setup::default()).await;
    let sent = world.send("go").await;
    asked(&world.engine).await;
    leave.add_permits(1);
    assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), completed());
    assert_eq!(results(&world.journal().await), ["call_4_1 Success left", "call_4_0 Success heard"]);
    tasks.close();
    tasks.wait().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_to_ask_parks_the_turn_and_is_made_again_with_the_answer() {
    let world = world(provider(&["park"]), source(), Setup::default()).await;
    assert_eq!(world.turn("go").await, TurnState::Parked);
    assert_eq!(world.kinds().await[3..], ["assistant", "decision", "started", "elicited", "suspended"]);
    let questions = world.engine.questions(&world.id).await.unwrap();
    assert_eq!((questions.len(), questions[0].source.as_str(), &questions[0].ask), (1, "tools", &form()));
    assert_eq!(world.engine.all_questions().await.unwrap(), questions);
    // As long as an approval: for ever.
    tokio::time::sleep(Duration::from_hours(100)).await;
    let sent = world.engine.answer(&world.id, questions[0].id, accept(json!({"name": "Ann"}))).await.unwrap();
    assert_eq!(sent.map(Value::Object), Some(json!({"name": "Ann", "age": 30})));
    assert_eq!(world.engine.wait(&world.id, open_turn(&world).await).await.unwrap(), completed());
    let expected = r#"call_4_0 Success {"state":"opaque"} who accept {"name":"Ann","age":30}"#;
    assert_eq!(results(&world.journal().await), [expected]);
    assert_eq!(world.kinds().await[8..], ["answered", "claimed", "started", "result", "assistant", "ended"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_holds_its_connection_is_answered_while_it_runs() {
    let world = world(provider(&["hold"]), source(), Setup::default()).await;
    let sent = world.send("go").await;
    let question = asked(&world.engine).await;
    assert!(!world.journal().await.turn().unwrap().is_parked());
    let reply = Reply::of(AnswerAction::Decline);
    assert_eq!(world.engine.answer(&world.id, question, reply.clone()).await, Ok(None));
    assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), completed());
    assert_eq!(results(&world.journal().await), ["call_4_0 Success decline null"]);
    assert_eq!(world.kinds().await[5..], ["started", "elicited", "answered", "result", "assistant", "ended"]);
    let again = world.engine.answer(&world.id, question, reply).await.unwrap_err();
    assert_eq!(again, EngineError::NotAsked { question, why: "it has its answer already".to_owned() });
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_fit_the_form_says_which_field_and_the_question_stays_open() {
    let world = world(provider(&["park"]), source(), Setup::default()).await;
    assert_eq!(world.turn("go").await, TurnState::Parked);
    let question = world.engine.questions(&world.id).await.unwrap()[0].id;
    let refused = world.engine.answer(&world.id, question, accept(json!({"age": -1}))).await.unwrap_err();
    let expected = "the answer does not fit the form: `name` is required; `age` must be at least 0, not -1";
    assert_eq!(refused.to_string(), expected);
    let mut with_content = accept(json!({}));
    with_content.action = AnswerAction::Cancel;
    let refused = world.engine.answer(&world.id, question, with_content).await.unwrap_err();
    assert_eq!(refused.to_string(), "`cancel` takes no content; only `accept` does");
    assert_eq!(world.engine.questions(&world.id).await.unwrap().len(), 1);
    let unknown = ElicitationId { index: 7, ..question };
    let refused = world.engine.answer(&world.id, unknown, accept(json!({}))).await.unwrap_err();
    assert!(matches!(refused, EngineError::NotFound { .. }), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_question_over_a_held_connection_is_cancelled_when_its_time_is_over() {
    let world = world(provider(&["hold"]), source(), Setup::default()).await;
    world.engine.limit_questions(Duration::from_mins(7));
    let begun = tokio::time::Instant::now();
    let sent = world.send("go").await;
    let question = asked(&world.engine).await;
    assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), completed());
    assert_eq!(begun.elapsed().as_secs(), 7 * 60);
    assert_eq!(results(&world.journal().await), ["call_4_0 Success cancel null"]);
    let late = world.engine.answer(&world.id, question, Reply::of(AnswerAction::Decline)).await.unwrap_err();
    assert_eq!(late, EngineError::NotAsked { question, why: "it has its answer already".to_owned() });
}

#[tokio::test(start_paused = true)]
async fn where_nobody_can_be_asked_questions_are_declined_at_once() {
    for approve in [ApproveMode::None, ApproveMode::ReadOnly] {
        let rule = turnwright_core::policy::RuleText {
            tool: "*".to_owned(),
            when: std::collections::BTreeMap::new(),
            action: turnwright_core::policy::Action::Allow,
        };
        let setup = Setup { approve, rules: vec![rule], ..Setup::default() };
        let world = world(provider(&["hold", "park"]), source(), setup).await;
        assert_eq!(world.turn("go").await, completed());
        let mut given = results(&world.journal().await);
        given.sort();
        assert_eq!(given, ["call_4_0 Success decline null", r#"call_4_1 Success {"state":"opaque"} who decline null"#,]);
    }
    let world = world(provider(&["hold"]), source(), Setup::default()).await;
    world.engine.leave_unattended();
    assert_eq!(world.turn("go").await, completed());
    assert_eq!(results(&world.journal().await), ["call_4_0 Success decline null"]);
}

#[tokio::test(start_paused = true)]
async fn the_limits_of_a_call_stand_still_while_people_are_asked() {
    let limits = CallLimits { idle: Duration::from_secs(20), total: Duration::from_secs(30) };
    let slow = ScriptedTool::new("hold", |_, context| async move {
        let ask = async |nap| {
            tokio::time::sleep(Duration::from_secs(nap)).await;
            let _held = context.standstill.hold();
            context.asks.ask(form()).await.unwrap()
        };
        let (first, second) = (ask(10).await, ask(9).await);
        tokio::time::sleep(Duration::from_secs(15)).await;
        Ok(ToolOutput::text(format!("{} {}", said(&first), said(&second))))
    });
    let world = world(provider(&["hold"]), ScriptedSource::new("tools", [slow]).limits(limits), Setup::default()).await;
    world.engine.limit_questions(Duration::from_hours(1));
    let begun = tokio::time::Instant::now();
    assert_eq!(world.turn("go").await, completed());
    assert_eq!(
        begun.elapsed().as_secs(),
        2 * 3600 + 25,
        "20 s of its own time and 5 s to end, beside two questions that nobody answers"
    );
    let expected =
        "call_4_0 Error(Timeout) `tools__hold` gave no sign of life for 20 s and was stopped. It may or may not have happened.";
    assert_eq!(results(&world.journal().await), [expected]);
}

#[tokio::test(start_paused = true)]
async fn other_calls_of_the_step_run_while_one_is_asked_about() {
    let world = world(provider(&["park", "echo", "hold"]), source(), Setup::default()).await;
    let sent = world.send("go").await;
    asked(&world.engine).await;
    let questions = world.engine.questions(&world.id).await.unwrap();
    assert_eq!(questions.len(), 2, "{questions:?}");
    for question in questions {
        world.engine.answer(&world.id, question.id, accept(json!({"name": "Bo"}))).await.unwrap();
    }
    assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), completed());
    assert_eq!(results(&world.journal().await).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn an_address_whose_source_says_that_it_is_done_needs_no_answer_any_more() {
    let address = |key: &str| Elicitation {
        key: key.to_owned(),
        message: "Pay".to_owned(),
        wants: Wants::Url { url: "https://pay.example.org/".to_owned() },
    };
    let (over_connection, parked) = (address("e1"), address("e2"));
    let hold = ScriptedTool::new("hold", move |_, context| {
        let ask = over_connection.clone();
        async move {
            let _held = context.standstill.hold();
            Ok(ToolOutput::text(said(&context.asks.ask(ask).await.unwrap())))
        }
    });
    let park = ScriptedTool::asking("park", move |_, context| {
        let ask = parked.clone();
        async move {
            Ok(match context.resume {
                None => ToolReply::Asks { asks: vec![ask], resume: Value::Null },
                Some(resume) => ToolReply::Done(ToolOutput::text(resume.answers[0].answer.action.as_str())),
            })
        }
    });
    let world = world(provider(&["hold", "park"]), ScriptedSource::new("tools", [hold, park]), Setup::default()).await;
    let (says, completed_there) = tokio::sync::mpsc::channel(8);
    world.engine.hear_completed(completed_there);
    let sent = world.send("go").await;
    while world.engine.questions(&world.id).await.unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    for (source, key) in [("tools", "e3"), ("others", "e1"), ("tools", "e1"), ("tools", "e2"), ("tools", "e2")] {
        says.send(Completed { source: source.to_owned(), key: key.to_owned() }).await.unwrap();
    }
    assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), completed());
    let mut given = results(&world.journal().await);
    given.sort();
    assert_eq!(given, ["call_4_0 Success accept null", "call_4_1 Success accept"]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_takes_open_questions_back() {
    for tool in ["park", "hold"] {
        let world = world(provider(&[tool]), source(), Setup::default()).await;
        let sent = world.send("go").await;
        let question = asked(&world.engine).await;
        world.engine.cancel(&world.id, None).await.unwrap();
        let ended = world.engine.wait(&world.id, sent.turn_id).await.unwrap();
        assert_eq!(ended, TurnState::Ended(TurnStatus::Cancelled));
        assert!(world.engine.all_questions().await.unwrap().is_empty());
        let late = world.engine.answer(&world.id, question, accept(json!({"name": "Bo"}))).await.unwrap_err();
        assert_eq!(late, EngineError::NotAsked { question, why: "it is closed: the call that asked is over".to_owned() });
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_instead_of_an_answer_declines_or_is_held() {
    let world = world(provider(&["park"]), source(), Setup::default()).await;
    assert_eq!(world.turn("go").await, TurnState::Parked);
    world.send("hello?").await;
    assert_eq!(world.engine.questions(&world.id).await.unwrap().len(), 1);
    let deny = NewMessage { on_waiting: OnWaiting::Deny, ..NewMessage::text("never mind") };
    let sent = world.engine.send(&world.id, deny).await.unwrap();
    assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), completed());
    assert_eq!(results(&world.journal().await), [r#"call_4_0 Success {"state":"opaque"} who decline null"#]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_held_says_so_and_a_message_instead_of_the_answer_declines() {
    let world = world(provider(&["hold"]), source(), Setup::default()).await;
    let sent = world.send("go").await;
    assert_eq!(world.engine.wait_or_held(&world.id, sent.turn_id).await.unwrap(), TurnState::Parked);
    let held = Event::TurnHeld { turn_id: sent.turn_id, waiting: vec!["call_4_0".parse().unwrap()] };
    let told = async || {
        let mut watch = world.engine.watch(&id(), WatchFrom::After(None)).await.unwrap();
        watch.next().await.unwrap().events.iter().filter(|event| **event == held).count()
    };
    assert_eq!(told().await, 1);
    world.send("hello?").await;
    assert_eq!(world.engine.questions(&world.id).await.unwrap().len(), 1);
    let deny = NewMessage { on_waiting: OnWaiting::Deny, ..NewMessage::text("never mind") };
    world.engine.send(&world.id, deny).await.unwrap();
    assert_eq!(world.engine.wait_or_held(&world.id, sent.turn_id).await.unwrap(), completed());
    assert_eq!(results(&world.journal().await), ["call_4_0 Success decline null"]);
    assert_eq!(told().await, 1);
}

#[tokio::test(start_paused = true)]
async fn who_watches_is_not_told_that_a_turn_is_held_where_nobody_is_asked() {
    let world = world(provider(&["hold"]), source(), Setup::default()).await;
    world.engine.leave_unattended();
    let mut live = world.engine.watch(&id(), WatchFrom::Now).await.unwrap();
    assert_eq!(world.turn("go").await, completed());
    let mut again = world.engine.watch(&id(), WatchFrom::After(None)).await.unwrap();
    for watch in [&mut live, &mut again] {
        let mut is_over = false;
        while !is_over {
            let frame = watch.next().await.unwrap();
            assert!(!frame.events.iter().any(|event| matches!(event, Event::TurnHeld { .. })), "{frame:?}");
            is_over = frame.events.iter().any(|event| matches!(event, Event::TurnFinished { .. }));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_asks_without_end_is_given_up() {
    let insatiable =
        ScriptedTool::asking("park", |_, _| async { Ok(ToolReply::Asks { asks: vec![form()], resume: Value::Null }) });
    let world = world(provider(&["park"]), ScriptedSource::new("tools", [insatiable]), Setup::default()).await;
    let sent = world.send("go").await;
    let mut rounds = 0;
    while world.engine.wait(&world.id, sent.turn_id).await.unwrap() == TurnState::Parked {
        let question = world.engine.questions(&world.id).await.unwrap()[0].id;
        world.engine.answer(&world.id, question, Reply::of(AnswerAction::Decline)).await.unwrap();
        rounds += 1;
    }
    assert_eq!(rounds, 10);
    let expected = "call_4_0 Error(ExecutionFailed) The tool asked the user for something 10 times and still wants more. It did \
                    not finish.";
    assert_eq!(results(&world.journal().await), [expected]);
}

#[tokio::test(start_paused = true)]
async fn a_parked_question_survives_its_process_and_is_answered_in_another() {
    let disk = MemoryStore::default();
    let (begins, goes_on) = (provider(&["park"]), ScriptedProvider::new([Answer::whole([text("Done.")])]));
    let store = Arc::new(disk.another_process());
    let first = engine(store.clone(), begins, Arc::new(source()), Setup::default());
    let sent = first.send(&id(), NewMessage { create: true, ..NewMessage::text("go") }).await.unwrap();
    assert_eq!(first.wait(&id(), sent.turn_id).await.unwrap(), TurnState::Parked);
    store.die();
    let second = engine(disk, goes_on, Arc::new(source()), Setup::default());
    let question = second.all_questions().await.unwrap()[0].id;
    second.answer(&id(), question, accept(json!({"name": "Ann"}))).await.unwrap();
    assert_eq!(second.wait(&id(), sent.turn_id).await.unwrap(), completed());
    let expected = r#"call_4_0 Success {"state":"opaque"} who accept {"name":"Ann","age":30}"#;
    assert_eq!(results(&second.journal(&id()).await.unwrap()), [expected]);
}

#[tokio::test(start_paused = true)]
async fn a_question_over_a_connection_is_closed_when_its_process_is_gone() {
    let disk = MemoryStore::default();
    let (begins, goes_on) = (provider(&["hold"]), ScriptedProvider::new([Answer::whole([text("Done.")])]));
    let store = Arc::new(disk.another_process());
    let first = engine(store.clone(), begins, Arc::new(source()), Setup::default());
    let sent = first.send(&id(), NewMessage { create: true, ..NewMessage::text("go") }).await.unwrap();
    let question = asked(&first).await;
    store.die();
    let second = engine(disk, goes_on, Arc::new(source()), Setup::default());
    let refused = second.answer(&id(), question, accept(json!({"name": "Ann"}))).await.unwrap_err();
    assert_eq!(refused, EngineError::NotAsked { question, why: "the process whose call asked is gone".to_owned() });
    assert_eq!(second.wait(&id(), sent.turn_id).await.unwrap(), completed());
    let expected =
        "call_4_0 Error(Interrupted) This was interrupted: it may or may not have happened. Check before you repeat it.";
    assert_eq!(results(&second.journal(&id()).await.unwrap()), [expected]);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_ends_answers_no_question_for_those_who_were_asked() {
    let disk = MemoryStore::default();
    let (begins, goes_on) = (provider(&["hold"]), ScriptedProvider::new([Answer::whole([text("Done.")])]));
    let first = engine(Arc::new(disk.another_process()), begins, Arc::new(source()), Setup::default());
    let sent = first.send(&id(), NewMessage { create: true, ..NewMessage::text("go") }).await.unwrap();
    let question = asked(&first).await;
    assert!(!first.drain(Duration::from_secs(1)).await);
    first.shutdown().await;
    let second = engine(disk, goes_on, Arc::new(source()), Setup::default());
    // Neither an answer nor what the tool would have made of one.
    let left = second.journal(&id()).await.unwrap();
    assert_eq!(kinds(&left).last(), Some(&"elicited"));
    assert!(left.turn().unwrap().answer(question).is_none());
    second.resume(&id()).await.unwrap();
    assert_eq!(second.wait(&id(), sent.turn_id).await.unwrap(), completed());
    let expected =
        "call_4_0 Error(Interrupted) This was interrupted: it may or may not have happened. Check before you repeat it.";
    assert_eq!(results(&second.journal(&id()).await.unwrap()), [expected]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_with_a_question_as_its_process_ends_is_declined_where_nobody_can_be_asked() {
    let late = ScriptedTool::asking("late", |_, context| async move {
        if context.resume.is_some() {
            return Ok(ToolReply::Done(ToolOutput::text("nobody said")));
        }
        context.cancel.cancelled().await;
        Ok(ToolReply::Asks { asks: vec![form()], resume: json!(null) })
    });
    let source = Arc::new(ScriptedSource::new("tools", [late]));
    let rule = turnwright_core::policy::RuleText {
        tool: "*".to_owned(),
        when: std::collections::BTreeMap::new(),
        action: turnwright_core::policy::Action::Allow,
    };
    let setup = || Setup { approve: ApproveMode::None, rules: vec![rule.clone()], ..Setup::default() };
    let disk = MemoryStore::default();
    let (begins, goes_on) = (provider(&["late"]), ScriptedProvider::new([Answer::whole([text("Done.")])]));
    let first = engine(Arc::new(disk.another_process()), begins, source.clone(), setup());
    let sent = first.send(&id(), NewMessage { create: true, ..NewMessage::text("go") }).await.unwrap();
    assert!(!first.drain(Duration::from_secs(1)).await);
    first.shutdown().await;
    let second = engine(disk, goes_on, source, setup());
    assert_eq!(kinds(&second.journal(&id()).await.unwrap())[4..], ["decision", "started", "elicited", "answered"]);
    second.resume(&id()).await.unwrap();
    assert_eq!(second.wait(&id(), sent.turn_id).await.unwrap(), completed());
    assert_eq!(results(&second.journal(&id()).await.unwrap()), ["call_4_0 Success nobody said"]);
}

#[tokio::test(start_paused = true)]
async fn another_process_answers_while_the_call_holds_its_connection() {
    let disk = MemoryStore::default();
    let first = engine(Arc::new(disk.another_process()), provider(&["hold"]), Arc::new(source()), Setup::default());
    let sent = first.send(&id(), NewMessage { create: true, ..NewMessage::text("go") }).await.unwrap();
    let question = asked(&first).await;
    let second = engine(disk, provider(&[]), Arc::new(source()), Setup::default());
    second.answer(&id(), question, accept(json!({"name": "Ann"}))).await.unwrap();
    assert_eq!(first.wait(&id(), sent.turn_id).await.unwrap(), completed());
    assert_eq!(results(&first.journal(&id()).await.unwrap()), [r#"call_4_0 Success accept {"name":"Ann","age":30}"#]);
}

#[tokio::test(start_paused = true)]
async fn who_gives_its_question_up_closes_it() {
    let gate = Arc::new(Semaphore::new(0));
    let goes_on = gate.clone();
    let fickle = ScriptedTool::new("hold", move |_, context| {
        let goes_on = goes_on.clone();
        async move {
            tokio::select! {
                reply = context.asks.ask(form()) => return Ok(ToolOutput::text(said(&reply.unwrap()))),
                permit = goes_on.acquire() => permit.unwrap().forget(),
            }
            goes_on.acquire().await.unwrap().forget();
            Ok(ToolOutput::text("never mind"))
        }
    });
    let world = world(provider(&["hold"]), ScriptedSource::new("tools", [fickle]), Setup::default()).await;
    let sent = world.send("go").await;
    let question = asked(&world.engine).await;
    gate.add_permits(1);
    while world.engine.journal(&id()).await.unwrap().turn().unwrap().answer(question).is_none() {
        tokio::task::yield_now().await;
    }
    gate.add_permits(1);
    assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), completed());
    assert_eq!(kinds(&world.journal().await)[6..], ["elicited", "answered", "result", "assistant", "ended"]);
}

#[tokio::test(start_paused = true)]
async fn read_only_tools_that_begin_early_ask_like_others() {
    let read_only = Declared { read_only: true, ..Default::default() };
    let tools = || [holding().declared(read_only), parking().declared(read_only)];
    let world = world(provider(&["hold", "park"]), ScriptedSource::new("tools", tools()), Setup::default()).await;
    let sent = world.send("go").await;
    while world.engine.questions(&world.id).await.unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    for question in world.engine.questions(&world.id).await.unwrap() {
        world.engine.answer(&world.id, question.id, accept(json!({"name": "Bo"}))).await.unwrap();
    }
    assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), completed());
    let setup = Setup { approve: ApproveMode::ReadOnly, ..Setup::default() };
    let world = crate::support::world(provider(&["park"]), ScriptedSource::new("tools", tools()), setup).await;
    assert_eq!(world.turn("go").await, completed());
    assert_eq!(results(&world.journal().await), [r#"call_4_0 Success {"state":"opaque"} who decline null"#]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_parks_again_is_judged_by_what_it_waits_for_then() {
    let calls = [call(0, "tools__park", "{}")];
    let then = [call(0, "tools__echo", "{}")];
    let answers = [Answer::whole(calls), Answer::whole(then), Answer::whole([text("Done.")])];
    let read_only = Declared { read_only: true, ..Declared::default() };
    let source = ScriptedSource::new("tools", [parking().declared(read_only), ScriptedTool::echo("echo")]);
    let store = Arc::new(MemoryStore::default());
    let clock = Arc::new(ManualClock::at(1_000));
    let setup = Setup { approve: ApproveMode::Ask, ..Setup::default() };
    let engine = engine_at(store, ScriptedProvider::new(answers), Arc::new(source), setup, clock.clone());
    engine.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
    engine.limit_approvals(Duration::from_hours(1));
    engine.keep_resuming();
    let sent = engine.send(&id(), NewMessage::text("go")).await.unwrap();
    assert_eq!(engine.wait(&id(), sent.turn_id).await.unwrap(), TurnState::Parked);
    // A question of a tool has no such limit: the engine looks, and has nothing to wait for.
    clock.advance(7_200_000);
    tokio::time::sleep(Duration::from_mins(1)).await;
    let question = engine.questions(&id()).await.unwrap()[0].id;
    engine.answer(&id(), question, accept(json!({"name": "Ann"}))).await.unwrap();
    assert_eq!(engine.wait(&id(), sent.turn_id).await.unwrap(), TurnState::Parked);

    clock.advance(3_500_000);
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(engine.waiting(&id()).await.unwrap().len(), 1, "it waits for less than an hour");
    clock.advance(100_000);
    tokio::time::sleep(Duration::from_mins(1)).await;

    assert_eq!(engine.wait(&id(), sent.turn_id).await.unwrap(), completed());
    let denied = "Denied This call was denied by the approval timeout: nobody decided within 1 hour. It did not run.";
    assert!(results(&engine.journal(&id()).await.unwrap())[1].ends_with(denied));
}

#[tokio::test(start_paused = true)]
async fn answers_that_come_at_once_are_stored_all_or_none_and_with_what_is_said_beside_them() {
    let world = world(provider(&["park", "park"]), source(), Setup::default()).await;
    assert_eq!(world.turn("go").await, TurnState::Parked);
    let questions: Vec<ElicitationId> =
        world.engine.questions(&world.id).await.unwrap().iter().map(|question| question.id).collect();
    let answers = |second: Value| {
        let replies = questions.iter().copied().zip([accept(json!({"name": "Ann"})), accept(second)]).collect();
        Answers { replies, ..Answers::default() }
    };
    let before = world.kinds().await;
    let message = |answers| NewMessage { answers, on_waiting: OnWaiting::Deny, ..NewMessage::text("and window seats") };
    let misfit = answers(json!({"age": -1}));
    for refused in [
        world.engine.answer_all(&world.id, misfit.clone(), None).await,
        world.engine.send(&world.id, message(misfit)).await.map(drop),
    ] {
        assert!(matches!(refused, Err(EngineError::Misfilled { .. })), "{refused:?}");
        assert_eq!(world.kinds().await, before);
    }
    let sent = world.engine.send(&world.id, message(answers(json!({"name": "Bob"})))).await.unwrap();
    assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), completed());
    assert_eq!(world.kinds().await[before.len()..][..3], ["user", "answered", "answered"]);
    let told = ["Ann", "Bob"].map(|name| format!(r#"{{"state":"opaque"}} who accept {{"name":"{name}","age":30}}"#));
    assert_eq!(
        results(&world.journal().await),
        [format!("call_4_0 Success {}", told[0]), format!("call_4_1 Success {}", told[1])]
    );
}
