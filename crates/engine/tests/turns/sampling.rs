//! Calls that want a model to be asked: allowed like a call, carried out once, counted.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Semaphore;
use turnwright_core::policy::{Action, RuleText, Scope};
use turnwright_core::{
    AnswerAction, ApproveMode, ContentBlock, Elicitation, Entry, ModelRef, Sampling, SamplingBudget, SamplingMessage,
    SamplingOutcome, SamplingRole, Usage, Wants,
};
use turnwright_engine::{
    Engine, EngineError, Event, NewMessage, NewRule, Reply, ToolOutput, ToolReply, TurnState, WaitingQuestion, WatchFrom,
};
use turnwright_testkit::{Answer, MemoryStore, ScriptedProvider, ScriptedSource, ScriptedTool, call, text};

use crate::support::{Setup, completed, engine, id, results, world};

const BUDGET: SamplingBudget = SamplingBudget { max_requests: 2, max_output_tokens: 12 };

fn sampling() -> Elicitation {
    let request = Sampling {
        model: None,
        system_prompt: Some("Be short.".to_owned()),
        messages: vec![SamplingMessage::saying(SamplingRole::User, vec![ContentBlock::text("2+2?")])],
        max_tokens: 100,
        temperature: None,
        stop_sequences: Vec::new(),
        hints: Vec::new(),
        tools: Vec::new(),
        tool_choice: None,
        budget: BUDGET,
    };
    Elicitation {
        key: "m".to_owned(),
        message: "asks a model".to_owned(),
        wants: Wants::Sampling { request: Box::new(request) },
    }
}

fn said(reply: &Reply) -> String {
    let model = match reply.sampled.as_ref().map(|sampled| &sampled.outcome) {
        Some(SamplingOutcome::Answered(message)) => message.text(),
        Some(SamplingOutcome::Failed { failure, .. }) => format!("failed: {failure}"),
        None => "nothing".to_owned(),
    };
    let reason = reply.reason.as_deref().unwrap_or("-");
    format!("{} {model} ({reason})", reply.action.as_str())
}

/// Asks while it runs.
fn holding() -> ScriptedTool {
    ScriptedTool::new("hold", |_, context| async move {
        let _held = context.standstill.hold();
        Ok(ToolOutput::text(said(&context.asks.ask(sampling()).await.unwrap())))
    })
}

/// Ends to ask, and says when it is made again what it got.
fn parking() -> ScriptedTool {
    ScriptedTool::asking("park", |_, context| async move {
        let Some(resume) = context.resume else {
            return Ok(ToolReply::Asks { asks: vec![sampling()], resume: json!(null) });
        };
        let said = resume.answers.into_iter().map(|settled| {
            let reason = settled.answer.reason.clone();
            said(&Reply { sampled: settled.sampled, reason, ..Reply::of(settled.answer.action) })
        });
        Ok(ToolReply::Done(ToolOutput::text(said.collect::<String>())))
    })
}

fn source() -> ScriptedSource {
    ScriptedSource::new("tools", [holding(), parking()])
}

/// A model that calls these tools, answers a tool, and answers the person.
fn provider(tools: &[&str]) -> Arc<ScriptedProvider> {
    let calls = tools.iter().zip(0..).map(|(name, key)| call(key, &format!("tools__{name}"), "{}")).collect::<Vec<_>>();
    ScriptedProvider::new([Answer::whole(calls), Answer::whole([text("4")]), Answer::whole([text("Done.")])])
}

fn rule(tool: &str, action: Action) -> RuleText {
    RuleText { tool: tool.to_owned(), when: std::collections::BTreeMap::new(), action }
}

async fn question(engine: &Engine) -> WaitingQuestion {
    loop {
        if let Some(question) = engine.questions(&id()).await.unwrap().pop() {
            return question;
        }
        tokio::task::yield_now().await;
    }
}

/// The rules that allow the tools and not what they ask of models.
fn tools_alone() -> Vec<RuleText> {
    vec![rule("*", Action::Allow)]
}

#[tokio::test(start_paused = true)]
async fn a_model_is_asked_for_a_tool_only_once_a_person_has_allowed_it() {
    for tool in ["park", "hold"] {
        let setup = Setup { approve: ApproveMode::Ask, rules: tools_alone(), ..Setup::default() };
        let provider = provider(&[tool]);
        let world = world(provider.clone(), source(), setup).await;
        let sent = world.send("go").await;
        let asked = question(&world.engine).await;
        let Wants::Sampling { request } = &asked.ask.wants else { panic!("{asked:?}") };
        assert_eq!((request.model.clone(), request.max_tokens), (Some(ModelRef::new("test", "scripted")), 12), "what is left");
        assert_eq!(provider.asked().len(), 1, "nobody has allowed it");
        world.engine.answer(&world.id, asked.id, Reply::of(AnswerAction::Accept)).await.unwrap();
        assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), completed());
        assert_eq!(results(&world.journal().await), ["call_4_0 Success accept 4 (-)"]);
        assert_eq!(provider.asked()[1], "user: 2+2?\nno calls", "apart from the conversation, and without tools");
    }
}

#[tokio::test(start_paused = true)]
async fn what_it_cost_is_part_of_what_the_turn_cost() {
    let world = world(provider(&["park"]), source(), Setup { approve: ApproveMode::All, ..Setup::default() }).await;
    assert_eq!(world.turn("go").await, completed());
    let told = world.engine.watch(&world.id, WatchFrom::After(None)).await.unwrap().next().await.unwrap();
    let usage = told.events.iter().find_map(|event| match event {
        Event::Usage { usage } => Some(*usage),
        _ => None,
    });
    assert_eq!(usage, Some(Usage { input_tokens: Some(30), output_tokens: Some(15), ..Usage::default() }));
    assert_eq!(results(&world.journal().await), ["call_4_0 Success accept 4 (approve mode all)"]);
}

#[tokio::test(start_paused = true)]
async fn the_policy_answers_where_it_can_and_names_the_rule() {
    let ask =
        |rules: Vec<RuleText>| Setup { approve: ApproveMode::Ask, rules: [tools_alone(), rules].concat(), ..Setup::default() };
    let mode = |approve| Setup { approve, ..ask(Vec::new()) };
    let allowed = rule("tools__sampling/createMessage", Action::Allow);
    let cases = [
        (ask(vec![allowed]), "accept 4 (rule 2 (allow tools__sampling/createMessage))"),
        (ask(vec![rule("tools__sampling/*", Action::Deny)]), "decline nothing (rule 2 (deny tools__sampling/*))"),
        (ask(vec![rule("tools__s*", Action::Deny)]), "decline nothing (rule 2 (deny tools__s*))"),
        (mode(ApproveMode::None), "decline nothing (approve mode none)"),
        (mode(ApproveMode::ReadOnly), "decline nothing (approve mode read-only: not declared read-only)"),
        (mode(ApproveMode::All), "accept 4 (approve mode all)"),
    ];
    for (setup, said) in cases {
        for tool in ["park", "hold"] {
            let world = world(provider(&[tool]), source(), Setup { rules: setup.rules.clone(), ..setup }).await;
            world.turn("go").await;
            assert_eq!(results(&world.journal().await), [format!("call_4_0 Success {said}")]);
        }
    }
    let world = world(provider(&["hold"]), source(), ask(Vec::new())).await;
    world.engine.leave_unattended();
    assert_eq!(world.turn("go").await, completed());
    assert_eq!(results(&world.journal().await), ["call_4_0 Success decline nothing (-)"]);
}

#[tokio::test(start_paused = true)]
async fn a_source_has_no_more_of_models_in_a_turn_than_its_budget() {
    let asks = |count: usize| {
        ScriptedTool::asking("park", move |_, context| async move {
            let Some(resume) = context.resume else {
                return Ok(ToolReply::Asks { asks: vec![sampling(); count], resume: json!(null) });
            };
            let said = resume.answers.into_iter().map(|settled| {
                let reason = settled.answer.reason.clone();
                said(&Reply { sampled: settled.sampled, reason, ..Reply::of(settled.answer.action) })
            });
            Ok(ToolReply::Done(ToolOutput::text(said.collect::<Vec<_>>().join("; "))))
        })
    };
    let setup = || Setup { approve: ApproveMode::All, ..Setup::default() };
    let both = world(provider(&["park"]), ScriptedSource::new("tools", [asks(2)]), setup()).await;
    assert_eq!(both.turn("go").await, completed());
    let said = "accept 4 (approve mode all); decline nothing (its 12 tokens of answers of this turn are used up)";
    assert_eq!(results(&both.journal().await), [format!("call_4_0 Success {said}")], "the first may take all that is left");
    let steps = |count: usize| {
        let one = || [Answer::whole([call(0, "tools__park", "{}")]), Answer::whole([text("4")])];
        ScriptedProvider::new((0..count).flat_map(|_| one()).take(count * 2 - 1).chain([Answer::whole([text("Done.")])]))
    };
    let turn = world(steps(3), ScriptedSource::new("tools", [asks(1)]), setup()).await;
    assert_eq!(turn.turn("go").await, completed());
    let said: Vec<String> =
        results(&turn.journal().await).into_iter().map(|said| said.split_once(' ').unwrap().1.to_owned()).collect();
    let all = "Success accept 4 (approve mode all)";
    let over = "Success decline nothing (its 2 requests to a model of this turn are used up)";
    assert_eq!(said, [all, all, over]);
}

#[tokio::test(start_paused = true)]
async fn a_person_cannot_allow_more_than_the_budget() {
    let two = ScriptedTool::asking("park", |_, _| async {
        Ok(ToolReply::Asks { asks: vec![sampling(), sampling()], resume: json!(null) })
    });
    let setup = Setup { approve: ApproveMode::Ask, rules: tools_alone(), ..Setup::default() };
    let world = world(provider(&["park"]), ScriptedSource::new("tools", [two]), setup).await;
    assert_eq!(world.turn("go").await, TurnState::Parked);
    let [first, second] = world.engine.questions(&id()).await.unwrap().try_into().unwrap();
    world.engine.answer(&id(), first.id, Reply::of(AnswerAction::Accept)).await.unwrap();
    let refused = world.engine.answer(&id(), second.id, Reply::of(AnswerAction::Accept)).await.unwrap_err();
    assert!(matches!(refused, EngineError::Invalid { .. }), "{refused}");
    let mut filled = Reply::accept(Some(serde_json::Map::from_iter([("a".to_owned(), json!(1))])));
    let refused = world.engine.answer(&id(), second.id, filled.clone()).await.unwrap_err();
    assert_eq!(refused.to_string(), "asking a model is allowed or not; there is nothing to fill in");
    filled = Reply::of(AnswerAction::Decline);
    world.engine.answer(&id(), second.id, filled).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_a_model_said_to_a_tool_is_not_asked_again_by_the_next_process() {
    let gate = Arc::new(Semaphore::new(0));
    let slow = gate.clone();
    let tool = ScriptedTool::asking("park", move |_, context| {
        let gate = slow.clone();
        async move {
            let Some(resume) = context.resume else {
                return Ok(ToolReply::Asks { asks: vec![sampling()], resume: json!(null) });
            };
            gate.acquire().await.unwrap().forget();
            let settled = resume.answers.into_iter().next().unwrap();
            Ok(ToolReply::Done(ToolOutput::text(said(&Reply { sampled: settled.sampled, ..Reply::of(AnswerAction::Accept) }))))
        }
    })
    .declared(turnwright_core::Declared { replayable: true, ..Default::default() });
    let source = Arc::new(ScriptedSource::new("tools", [tool]));
    let disk = MemoryStore::default();
    let setup = || Setup { approve: ApproveMode::All, ..Setup::default() };
    let store = Arc::new(disk.another_process());
    let first = engine(store.clone(), provider(&["park"]), source.clone(), setup());
    let sent = first.send(&id(), NewMessage { create: true, ..NewMessage::text("go") }).await.unwrap();
    let is_sampled =
        |entries: &turnwright_core::Journal| entries.entries().iter().any(|stored| matches!(*stored.entry, Entry::Sampled(_)));
    while !is_sampled(&first.journal(&id()).await.unwrap()) {
        tokio::task::yield_now().await;
    }
    store.die();
    gate.add_permits(2);
    let goes_on = ScriptedProvider::new([Answer::whole([text("Done.")])]);
    let second = engine(disk, goes_on.clone(), source, setup());
    second.resume_open_turns().await.unwrap();
    assert_eq!(second.wait(&id(), sent.turn_id).await.unwrap(), completed());
    assert_eq!(results(&second.journal(&id()).await.unwrap()), ["call_4_0 Success accept 4 (-)"]);
    assert_eq!(goes_on.asked().len(), 1, "the answer to the person alone");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_fails_is_told_to_the_tool() {
    let calls = [call(0, "tools__park", "{}")];
    let failure = turnwright_core::ProviderFailure::new(turnwright_core::ProviderFailureKind::Server, "out of order");
    let provider =
        ScriptedProvider::new([Answer::whole(calls), Answer::of([]).failing(failure), Answer::whole([text("Done.")])]);
    let world = world(provider, source(), Setup { approve: ApproveMode::All, ..Setup::default() }).await;
    assert_eq!(world.turn("go").await, completed());
    let said = results(&world.journal().await);
    assert!(said[0].starts_with("call_4_0 Success accept failed: ") && said[0].contains("out of order"), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn a_tool_may_bring_tools_of_its_own_which_it_runs_itself() {
    let asks = |messages: Vec<serde_json::Value>| {
        let tool = json!({"name": "dice", "source": "", "tool": "dice", "input_schema": {"type": "object"}});
        let request = json!({
            "messages": messages, "max_tokens": 5, "tools": [tool], "budget": {"max_requests": 2, "max_output_tokens": 12},
        });
        let request = Box::new(serde_json::from_value(request).unwrap());
        vec![Elicitation { key: "m".to_owned(), message: "asks a model".to_owned(), wants: Wants::Sampling { request } }]
    };
    let park = ScriptedTool::asking("park", move |_, context| async move {
        let says = |text: &str| json!({"role": "user", "content": [{"type": "text", "text": text}]});
        let Some(resume) = context.resume else {
            return Ok(ToolReply::Asks { asks: asks(vec![says("Throw.")]), resume: json!("first") });
        };
        let SamplingOutcome::Answered(message) = &resume.answers[0].sampled.as_ref().unwrap().outcome else {
            return Ok(ToolReply::Done(ToolOutput::text("no answer")));
        };
        if *resume.resume == json!("first") {
            let call = message.calls().next().unwrap();
            let used = json!({"role": "assistant", "content": [], "calls": [{"id": "x", "name": call.name, "arguments": {}}]});
            let gave = json!([{"call": "x", "content": [{"type": "text", "text": "six"}]}]);
            let gave = json!({"role": "user", "content": [], "results": gave});
            return Ok(ToolReply::Asks { asks: asks(vec![says("Throw."), used, gave]), resume: json!("second") });
        }
        Ok(ToolReply::Done(ToolOutput::text(message.text())))
    });
    let provider = ScriptedProvider::new([
        Answer::whole([call(0, "tools__park", "{}")]),
        Answer::whole([call(0, "dice", "{}")]),
        Answer::whole([text("It is six.")]),
        Answer::whole([text("Done.")]),
    ]);
    let world = world(provider.clone(), ScriptedSource::new("tools", [park]), Setup::default()).await;
    assert_eq!(world.turn("go").await, completed());
    assert_eq!(results(&world.journal().await), ["call_4_0 Success It is six."]);
    let asked = provider.asked();
    assert_eq!((asked[1].as_str(), asked[2].as_str()), ("user: Throw.", "user: Throw.\nassistant:  [dice]\nresult: six"));
    assert_eq!(world.source.effects().len(), 3, "nobody ran `dice` here");
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_a_person_had_remembered_holds_for_it_as_for_a_call() {
    for (action, said) in [(Action::Allow, "accept 4"), (Action::Deny, "decline nothing")] {
        for tool in ["park", "hold"] {
            let setup = Setup { approve: ApproveMode::Ask, rules: tools_alone(), ..Setup::default() };
            let world = world(provider(&[tool]), source(), setup).await;
            let rule = rule("tools__sampling/*", action);
            let new = NewRule { scope: Scope::User, conversation: None, rule, idempotency: None };
            let stored = world.engine.add_rule(new).await.unwrap();
            world.turn("go").await;
            let told = results(&world.journal().await);
            assert!(told[0].starts_with(&format!("call_4_0 Success {said} (")), "{told:?}");
            assert!(told[0].contains(&stored.id), "it names the rule: {told:?}");
        }
    }
}
