//! Calls that come again after the process that had them was killed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, json};
use tokio::sync::Semaphore;
use turnwright_core::budgets::{BudgetKind, Most};
use turnwright_core::policy::{Action, Policy, RuleText};
use turnwright_core::{ContentBlock, EmbeddedResource, ModelRef, ProviderFailure, TurnSettings, Verdict, text_of};
use turnwright_engine::{
    Budgets, CallContext, Choice, ConversationChange, Engine, EngineParts, Fact, KeptBy, LargeResults, Observer, Provider,
    Providers, Telemetry, ToolOutput,
};
use turnwright_mcp::serve::{Backing, Happened, Leave, OfferedCall, Question, RunningCall};
use turnwright_testkit::{Fuse, ManualClock, MemoryArtifacts, MemoryStore, ScriptedSource, ScriptedTool};

use super::McpServing;
use super::backing::EngineBacking;
use super::caller::Caller;

#[derive(Debug)]
struct Clients;

impl Providers for Clients {
    fn get(&self, _: &str) -> Result<Arc<dyn Provider>, ProviderFailure> {
        Ok(Arc::new(Caller))
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A process over the data of others.
struct Process {
    store: Arc<MemoryStore>,
    engine: Engine,
    backing: EngineBacking,
}

/// What all processes share.
struct World {
    disk: MemoryStore,
    source: Arc<ScriptedSource>,
    /// One permit lets one call come to its end.
    gate: Arc<Semaphore>,
    /// What the rule says about the tool.
    action: Action,
}

impl World {
    fn new(action: Action, permits: usize) -> Self {
        let gate = Arc::new(Semaphore::new(permits));
        let waits = gate.clone();
        let work = move |_, context: CallContext| {
            let waits = waits.clone();
            async move {
                tokio::select! {
                    permit = waits.acquire() => permit.unwrap().forget(),
                    () = context.cancel.cancelled() => {}
                }
                Ok(ToolOutput::text("done"))
            }
        };
        let large = ScriptedTool::new("large", |_, _| async { Ok(large()) });
        let source = Arc::new(ScriptedSource::new("t", [ScriptedTool::new("do", work), large]));
        Self { disk: MemoryStore::default(), source, gate, action }
    }

    fn process(&self, store: MemoryStore) -> Process {
        let store = Arc::new(store);
        let rule = RuleText { tool: "t__*".to_owned(), when: BTreeMap::new(), action: self.action };
        let engine = Engine::new(EngineParts {
            providers: Arc::new(Clients),
            sources: vec![self.source.clone()],
            store: store.clone(),
            clock: Arc::new(ManualClock::at(1_000)),
            policy: Policy::new(vec![rule]).unwrap(),
            defaults: TurnSettings::new(ModelRef::new("test", "none")),
        });
        let backing = EngineBacking::new(engine.clone(), KeptBy::Servers, McpServing::default(), store.clone());
        Process { store, engine, backing }
    }

    /// The process after the one that was killed, which has taken up what that left.
    async fn next_process(&self) -> Process {
        let process = self.process(self.disk.another_process());
        process.engine.resume_open_turns().await.unwrap();
        process
    }

    fn effects(&self) -> usize {
        self.source.effects().len()
    }

    async fn has_begun(&self, effects: usize) {
        while self.effects() < effects {
            tokio::task::yield_now().await;
        }
    }
}

impl Process {
    async fn call_of(&self, client: &str) -> Box<dyn RunningCall> {
        self.backing.begin(call_of(client)).await.unwrap()
    }

    async fn call(&self) -> Box<dyn RunningCall> {
        self.call_of("agent").await
    }

    /// As `kill -9` does it.
    async fn killed(self) {
        self.store.die();
        self.engine.shutdown().await;
    }
}

fn call_of(client: &str) -> OfferedCall {
    let arguments = json!({"text": "hi"}).as_object().unwrap().clone();
    OfferedCall { client: client.to_owned(), tool: "t__do".to_owned(), arguments }
}

/// What no model is shown as it is.
fn large() -> ToolOutput {
    let file = ContentBlock::Resource {
        resource: EmbeddedResource {
            uri: "file:///a.pdf".to_owned(),
            mime_type: Some("application/pdf".to_owned()),
            text: None,
            blob: Some("AAAA".to_owned()),
        },
    };
    let structured_content = Some(json!({"rows": vec!["a row"; 100]}));
    ToolOutput { content: vec![ContentBlock::text("b".repeat(500)), file], structured_content, ..ToolOutput::default() }
}

async fn asked(running: &mut dyn RunningCall) -> Question {
    loop {
        match running.next().await {
            Happened::Asked(question) => return question,
            Happened::Decided => {}
            other => panic!("{other:?}"),
        }
    }
}

async fn ended(running: &mut dyn RunningCall) -> String {
    loop {
        match running.next().await {
            Happened::Ended(output) => return text_of(&output.content),
            Happened::Decided => {}
            other => panic!("{other:?}"),
        }
    }
}

/// The models of which an engine says that it called them.
#[derive(Debug, Default)]
struct Called(Mutex<Vec<String>>);

impl Observer for Called {
    fn observe(&self, fact: &Fact<'_>) {
        if let Fact::ModelCalled { model, .. } = fact {
            self.0.lock().unwrap().push((*model).to_owned());
        }
    }
}

#[tokio::test]
async fn a_call_of_a_client_is_no_call_of_a_model() {
    let world = World::new(Action::Allow, 1);
    let process = world.process(world.disk.another_process());
    let called = Arc::new(Called::default());
    process.engine.tell(Telemetry { observer: Some(called.clone()), ..Telemetry::default() });
    assert_eq!(ended(&mut *process.call().await).await, "done");
    process.engine.shutdown().await;
    assert_eq!(*called.0.lock().unwrap(), [""; 0]);
}

#[tokio::test]
async fn a_call_that_may_have_happened_is_asked_about_when_it_comes_again_and_not_run() {
    let world = World::new(Action::Allow, 0);
    let first = world.process(world.disk.another_process());
    let running = first.call().await;
    world.has_begun(1).await;
    drop(running);
    first.killed().await;

    let second = world.next_process().await;
    for _ in 0..2 {
        let mut running = second.call().await;
        let question = asked(&mut *running).await;
        let text = "May `t__do` run again with {\"text\":\"hi\"}? it was begun before and may have happened.";
        assert_eq!((question.leave, question.text.as_str()), (Leave::ToRunAgain, text));
        assert!(question.elsewhere.starts_with("`t__do` was not run again: it was begun before and may have happened"));
        // Its client gives up, which is no answer.
        running.cancel().await;
        assert_eq!(world.effects(), 1);
    }
    let mut running = second.call().await;
    asked(&mut *running).await;
    running.decide(true).await.unwrap();
    world.gate.add_permits(1);
    assert_eq!((ended(&mut *running).await.as_str(), world.effects()), ("done", 2));

    // Its result is told: what comes now is the next call.
    drop(running);
    world.gate.add_permits(1);
    assert_eq!((ended(&mut *second.call().await).await.as_str(), world.effects()), ("done", 3));
}

#[tokio::test]
async fn what_a_person_said_once_is_no_answer_to_whether_it_may_run_again() {
    let world = World::new(Action::Ask, 0);
    let first = world.process(world.disk.another_process());
    let mut running = first.call().await;
    let question = asked(&mut *running).await;
    assert_eq!((question.key.as_str(), question.leave), ("approval", Leave::ToRun));
    running.decide(true).await.unwrap();
    world.has_begun(1).await;
    drop(running);
    first.killed().await;

    let second = world.next_process().await;
    let question = asked(&mut *second.call().await).await;
    assert_eq!((question.key.as_str(), question.leave), ("approval_2", Leave::ToRunAgain));
}

#[tokio::test]
async fn a_yes_that_comes_late_is_none_to_what_is_asked_about_the_call_since() {
    let world = World::new(Action::Ask, 1);
    let process = world.process(world.disk.another_process());
    let mut running = process.call().await;
    asked(&mut *running).await;
    // The tool becomes another, and somebody else allows what it was.
    let waiting = process.engine.all_waiting().await.unwrap().remove(0);
    world.source.set_tools([ScriptedTool::echo("do").schema(json!({"type": "object", "description": "another"}))]);
    let allow = Choice { verdict: Verdict::Allow, arguments: None, reason: None };
    process.engine.decide(&waiting.conversation, waiting.call, allow).await.unwrap();
    process.engine.resume(&waiting.conversation).await.unwrap();
    while !process.engine.all_waiting().await.unwrap().iter().any(|asked| asked.approval != waiting.approval) {
        tokio::task::yield_now().await;
    }
    running.decide(true).await.unwrap();
    let question = asked(&mut *running).await;
    assert_eq!((question.key.as_str(), question.leave, world.effects()), ("approval_2", Leave::ToRun, 0));
    running.decide(true).await.unwrap();
    assert_eq!((ended(&mut *running).await.is_empty(), world.effects()), (false, 1));
}

#[tokio::test]
async fn what_a_person_allowed_while_nobody_waited_is_told_once_also_by_the_next_process() {
    let world = World::new(Action::Ask, 2);
    let first = world.process(world.disk.another_process());
    let mut running = first.call().await;
    asked(&mut *running).await;
    running.leave().await;
    first.killed().await;

    let second = world.next_process().await;
    let waiting = second.engine.all_waiting().await.unwrap().remove(0);
    let allow = Choice { verdict: Verdict::Allow, arguments: None, reason: None };
    second.engine.decide(&waiting.conversation, waiting.call, allow).await.unwrap();
    second.engine.resume(&waiting.conversation).await.unwrap();
    world.has_begun(1).await;
    // Another client's call is another's.
    asked(&mut *second.call_of("other").await).await;
    assert_eq!((ended(&mut *second.call().await).await.as_str(), world.effects()), ("done", 1));
    let question = asked(&mut *second.call().await).await;
    assert_eq!((question.leave, world.effects()), (Leave::ToRun, 1));
}

#[tokio::test]
async fn what_waits_for_a_person_is_joined_by_the_same_call_unless_somebody_waits_for_it() {
    let world = World::new(Action::Ask, 0);
    let process = world.process(world.disk.another_process());
    let (mut one, mut two) = (process.call().await, process.call().await);
    asked(&mut *one).await;
    asked(&mut *two).await;
    assert_ne!(one.handle(), two.handle());
    let left = one.handle().to_owned();
    one.leave().await;
    let three = process.call().await;
    assert_eq!(three.handle(), left);
}

#[tokio::test(start_paused = true)]
async fn what_another_node_left_waiting_is_joined_there_and_asked_about_once() {
    let world = World::new(Action::Ask, 9);
    let (here, there) =
        (world.process(world.disk.another_process().by_leases()), world.process(world.disk.another_process().by_leases()));
    let mut running = here.call().await;
    asked(&mut *running).await;
    let handle = running.handle().to_owned();
    // While somebody waits for it, the same call is another one.
    let mut other = there.call().await;
    assert_ne!(other.handle(), handle);
    asked(&mut *other).await;
    other.cancel().await;
    running.leave().await;
    let mut again = there.call().await;
    assert_eq!(again.handle(), handle);
    asked(&mut *again).await;
    assert_eq!(there.engine.all_waiting().await.unwrap().len(), 1);
    // Somebody waits for it now, there.
    let mut third = there.call().await;
    assert_ne!(third.handle(), handle);
    asked(&mut *third).await;
    third.cancel().await;
    let mut fourth = here.call().await;
    assert_ne!(fourth.handle(), handle, "also where it is driven");
    asked(&mut *fourth).await;
    fourth.cancel().await;
    again.decide(true).await.unwrap();
    assert_eq!((ended(&mut *again).await.as_str(), world.effects()), ("done", 1));
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_node_was_killed_just_now_is_not_begun_anew_while_that_looks_alive() {
    for action in [Action::Allow, Action::Ask] {
        let world = World::new(action, 0);
        let here = world.process(world.disk.another_process().by_leases());
        let there = world.process(world.disk.another_process().by_leases());
        let mut running = here.call().await;
        match action {
            Action::Ask => drop(asked(&mut *running).await),
            Action::Allow | Action::Deny => world.has_begun(1).await,
        }
        let handle = running.handle().to_owned();
        // The database says for up to four seconds that it lives.
        let lease_over = async {
            tokio::time::sleep(Duration::from_secs(4)).await;
            here.store.die();
        };
        let (again, ()) = tokio::join!(there.call(), lease_over);
        assert_eq!(again.handle(), handle, "{action:?}");
        assert_eq!(world.effects(), usize::from(action == Action::Allow), "{action:?}");
        assert!(there.engine.all_waiting().await.unwrap().len() <= 1, "{action:?}: it is asked about once");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_second_node_went_on_with_is_joined_again_once_that_is_killed() {
    let world = World::new(Action::Ask, 9);
    let node = || world.process(world.disk.another_process().by_leases());
    let (first, second, third) = (node(), node(), node());
    let mut running = first.call().await;
    asked(&mut *running).await;
    let handle = running.handle().to_owned();
    running.leave().await;
    let mut joined = second.call().await;
    asked(&mut *joined).await;
    assert_eq!(joined.handle(), handle);
    let killed = async {
        tokio::time::sleep(Duration::from_secs(4)).await;
        second.store.die();
    };
    let (mut again, ()) = tokio::join!(third.call(), killed);
    assert_eq!(again.handle(), handle);
    asked(&mut *again).await;
    assert_eq!(third.engine.all_waiting().await.unwrap().len(), 1);
    again.decide(true).await.unwrap();
    assert_eq!((ended(&mut *again).await.as_str(), world.effects()), ("done", 1));
}

#[tokio::test]
async fn a_conversation_that_a_person_renamed_is_found_again_by_the_same_client_alone() {
    let world = World::new(Action::Ask, 9);
    let process = world.process(world.disk.another_process());
    let mut running = process.call().await;
    asked(&mut *running).await;
    let handle = running.handle().to_owned();
    let (conversation, _) = handle.split_once('/').unwrap();
    let renamed = ConversationChange { title: Some(Some("Mine".to_owned())), ..ConversationChange::default() };
    process.engine.update(&conversation.parse().unwrap(), renamed).await.unwrap();
    running.leave().await;
    let mut other = process.call_of("other").await;
    assert_ne!(other.handle(), handle);
    asked(&mut *other).await;
    assert_eq!(process.call().await.handle(), handle);
}

#[tokio::test]
async fn calls_that_have_their_results_are_run_again() {
    let world = World::new(Action::Allow, 3);
    let process = world.process(world.disk.another_process());
    for effects in 1..=2 {
        assert_eq!((ended(&mut *process.call().await).await.as_str(), world.effects()), ("done", effects));
    }
    // What was told is noted a moment later.
    process.backing.end().await;
    process.killed().await;
    let next = world.next_process().await;
    assert_eq!((ended(&mut *next.call().await).await.as_str(), world.effects()), ("done", 3));
}

#[tokio::test(start_paused = true)]
async fn a_result_whose_process_is_killed_while_it_goes_out_is_told_once_more_and_is_no_second_call() {
    for action in [Action::Allow, Action::Ask] {
        let world = World::new(action, 9);
        let result = async |process: &Process| {
            let mut running = process.call().await;
            if action == Action::Ask && world.effects() == 0 {
                asked(&mut *running).await;
                running.decide(true).await.unwrap();
            }
            ended(&mut *running).await
        };
        let first = world.process(world.disk.another_process());
        assert_eq!((result(&first).await.as_str(), world.effects()), ("done", 1), "{action:?}");
        first.killed().await;
        let second = world.next_process().await;
        assert_eq!((result(&second).await.as_str(), world.effects()), ("done", 1), "{action:?}");
        // It has had the time to come to its client.
        tokio::time::sleep(Duration::from_secs(2)).await;
        second.killed().await;
        let mut running = world.next_process().await.call().await;
        match action {
            Action::Ask => drop(asked(&mut *running).await),
            Action::Allow | Action::Deny => assert_eq!((ended(&mut *running).await.as_str(), world.effects()), ("done", 2)),
        }
    }
}

#[tokio::test]
async fn what_a_client_comes_back_for_is_found_where_its_process_is_gone() {
    let world = World::new(Action::Allow, 0);
    let first = world.process(world.disk.another_process());
    let running = first.call().await;
    world.has_begun(1).await;
    let handle = running.handle().to_owned();
    drop(running);
    first.killed().await;

    let second = world.next_process().await;
    let call = call_of("agent");
    // It came after the client asked for it; also one that did not is found while it is not told.
    for since_ms in [1_000, 2_000] {
        let found = second.backing.lost("agent", &call.digest(), since_ms).await;
        assert_eq!(found, Some((handle.clone(), call.clone())));
    }
    let others = OfferedCall { arguments: Map::new(), ..call.clone() };
    assert_eq!(second.backing.lost("agent", &others.digest(), 1_000).await, None);
    assert_eq!(second.backing.lost("other", &call.digest(), 1_000).await, None);
    asked(&mut *second.backing.find(&handle, call).await.unwrap()).await;
}

#[tokio::test]
async fn a_call_takes_nothing_of_a_budget_and_counts_for_no_model_since_none_is_asked() {
    let world = World::new(Action::Allow, 9);
    for most in [Most { nano_usd: Some(0), tokens: None }, Most { nano_usd: None, tokens: Some(1) }] {
        let process = world.process(world.disk.another_process());
        let limits = [(BudgetKind::Day, most), (BudgetKind::Turn, most)].into();
        process.engine.keep_budgets(Budgets { limits, users: BTreeMap::new(), output_tokens: 100 });
        assert_eq!(ended(&mut *process.call().await).await, "done", "{most:?}");
        let spending = process.engine.spent(0, u64::MAX).await.unwrap();
        assert!(spending.models.is_empty(), "{spending:?}");
        assert!(!spending.tools.is_empty(), "{spending:?}");
    }
}

#[tokio::test]
async fn a_result_comes_whole_however_large_it_is() {
    let world = World::new(Action::Allow, 0);
    let process = world.process(world.disk.another_process());
    let how = LargeResults { shown_bytes: 100, ..LargeResults::default() };
    process.engine.keep_large_results(Arc::new(MemoryArtifacts::default()), how);
    let call = OfferedCall { client: "agent".to_owned(), tool: "t__large".to_owned(), arguments: Map::new() };
    let mut running = process.backing.begin(call).await.unwrap();
    assert_eq!(running.next().await, Happened::Ended(large()));
}

/// The effects of a call whose process dies at `fuse` and that comes again, and whether a person heard that it may be the second.
async fn with_death_at(fuse: Fuse, action: Action) -> Option<(usize, bool)> {
    let world = World::new(action, 9);
    let first = world.process(world.disk.doomed_process(fuse));
    if let Ok(mut running) = first.backing.begin(call_of("agent")).await {
        let answered = async {
            loop {
                match running.next().await {
                    Happened::Ended(_) => return,
                    Happened::Asked(_) => drop(running.decide(true).await),
                    _ => {}
                }
            }
        };
        let died = async {
            while first.store.lives() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            // It has its answer.
            () = answered => return None,
            () = died => {}
        }
    }
    first.killed().await;
    let (second, mut was_told) = (world.next_process().await, false);
    let mut running = second.call().await;
    loop {
        match running.next().await {
            Happened::Ended(_) => return Some((world.effects(), was_told)),
            Happened::Asked(question) => {
                was_told |= question.leave == Leave::ToRunAgain;
                running.decide(true).await.unwrap();
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn wherever_a_process_dies_a_call_that_comes_again_has_no_second_effect_that_nobody_wanted() {
    let mut worlds = 0;
    for action in [Action::Allow, Action::Ask] {
        for fuse in (1..=12).flat_map(|append| [Fuse::Before(append), Fuse::After(append)]) {
            let Some((effects, was_told)) = with_death_at(fuse, action).await else { continue };
            assert!(effects <= 1 || was_told, "{fuse:?} {action:?}: {effects} effects");
            worlds += 1;
        }
    }
    assert!(worlds >= 12, "{worlds}");
}
