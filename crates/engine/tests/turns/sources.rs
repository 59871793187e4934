//! Tool sources that come and go while turns run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use turnwright_core::{
    ApproveMode, CallId, Control, ConversationId, Entry, Journal, ProviderFailure, ProviderFailureKind, Seq, ToolDefinition,
    TurnStatus, UserId, Verdict,
};
use turnwright_engine::{
    CallContext, CallLimits, Choice, Engine, EngineError, Event, NewMessage, SettingsOverlay, SourceCall, SourceSet,
    SourceState, SourceTool, ToolError, ToolOutput, ToolSource, TurnState, WatchFrom,
};
use turnwright_testkit::{Answer, MemoryDocuments, MemoryStore, ScriptedProvider, ScriptedSource, ScriptedTool, call, text};

use crate::support::{Setup, completed, engine, id, results, world};

#[derive(Debug)]
struct Changing(Mutex<Arc<[Arc<dyn ToolSource>]>>);

#[async_trait]
impl SourceSet for Changing {
    async fn sources(&self) -> Arc<[Arc<dyn ToolSource>]> {
        self.0.lock().unwrap().clone()
    }
}

fn source_of_go(name: &str) -> ScriptedSource {
    ScriptedSource::new(name, [ScriptedTool::echo("go")])
}

fn source(name: &str) -> Arc<dyn ToolSource> {
    Arc::new(source_of_go(name))
}

/// The tools of each entry that offers some.
fn offered(journal: &Journal) -> Vec<Vec<&str>> {
    let offered = journal.entries().iter().filter_map(|stored| match &*stored.entry {
        Entry::Control(Control::Offered { definitions }) => {
            Some(definitions.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>())
        }
        _ => None,
    });
    offered.collect()
}

#[tokio::test]
async fn a_turn_keeps_what_it_was_offered_and_a_call_to_a_source_that_went_fails_as_unavailable() {
    let provider = ScriptedProvider::new([
        Answer::whole([call(0, "tools__leave", "{}")]),
        Answer::whole([call(0, "gone__go", "{}"), call(1, "stays__go", "{}")]),
        Answer::whole([text("Done.")]),
        Answer::whole([text("Again.")]),
    ]);
    let set = Arc::new(Changing(Mutex::new(Arc::new([]))));
    let changing = Arc::clone(&set);
    let leave = ScriptedTool::new("leave", move |_, _| {
        let mut sources = changing.0.lock().unwrap();
        *sources = sources.iter().filter(|source| source.name() != "gone").cloned().chain([source("new")]).collect();
        async { Ok(ToolOutput::text("left")) }
    });
    let world = world(provider, ScriptedSource::new("tools", [leave]), Setup::default()).await;
    *set.0.lock().unwrap() = Arc::new([world.source.clone(), source("gone"), source("stays")]);
    world.engine.follow_sources(set.clone());
    world.engine.refresh_sources().await;
    assert_eq!(world.turn("go").await, completed());
    assert_eq!(world.turn("again").await, completed());
    let journal = world.journal().await;
    let expected = [["gone__go", "stays__go", "tools__leave"], ["new__go", "stays__go", "tools__leave"]];
    assert_eq!(offered(&journal), expected);
}

#[tokio::test]
async fn a_call_to_a_source_that_was_taken_out_fails_and_the_others_run() {
    let provider = ScriptedProvider::new([
        Answer::whole([call(0, "tools__leave", "{}")]),
        Answer::whole([call(0, "gone__go", "{}"), call(1, "stays__go", "{}")]),
        Answer::whole([text("Done.")]),
    ]);
    let set = Arc::new(Changing(Mutex::new(Arc::new([]))));
    let engine: Arc<Mutex<Option<Engine>>> = Arc::default();
    let (changing, handle) = (Arc::clone(&set), Arc::clone(&engine));
    let leave = ScriptedTool::new("leave", move |_, _| {
        let mut sources = changing.0.lock().unwrap();
        *sources = sources.iter().filter(|source| source.name() != "gone").cloned().collect();
        let engine = handle.lock().unwrap().clone().unwrap();
        async move {
            engine.refresh_sources().await;
            Ok(ToolOutput::text("left"))
        }
    });
    let world = world(provider, ScriptedSource::new("tools", [leave]), Setup::default()).await;
    *engine.lock().unwrap() = Some(world.engine.clone());
    *set.0.lock().unwrap() = Arc::new([world.source.clone(), source("gone"), source("stays")]);
    world.engine.follow_sources(set);
    world.engine.refresh_sources().await;
    assert_eq!(world.turn("go").await, completed());
    let expected = [
        "call_4_0 Success left",
        "call_8_0 Error(Unavailable) `gone__go` did not run: it is not there at the moment.",
        "call_8_1 Success {}",
    ];
    assert_eq!(results(&world.journal().await), expected);
}

#[tokio::test]
async fn a_foreign_tool_is_pinned_when_a_person_allows_it_and_set_aside_when_it_changes() {
    let provider = ScriptedProvider::new([
        Answer::whole([call(0, "tools__go", "{}")]),
        Answer::whole([text("Done.")]),
        Answer::whole([text("Without.")]),
        Answer::whole([text("With.")]),
    ]);
    let tools = |key: &str| {
        let schema = json!({"type": "object", "properties": {key: {"type": "string"}}});
        [ScriptedTool::echo("go").schema(schema), ScriptedTool::echo("other").schema(json!({"type": "object", "title": key}))]
    };
    let source = ScriptedSource::new("tools", tools("before")).foreign();
    let world = world(provider, source, Setup { approve: ApproveMode::Ask, ..Setup::default() }).await;
    world.engine.keep_pins(Arc::new(MemoryDocuments::default())).await;
    assert_eq!(world.turn("go").await, TurnState::Parked);
    let waiting = CallId { message: Seq::new(4).unwrap(), index: 0 };
    let allow = Choice { verdict: Verdict::Allow, arguments: None, reason: None };
    world.engine.decide(&world.id, waiting, allow).await.unwrap();
    let turn = world.journal().await.turn().unwrap().id();
    assert_eq!(world.engine.wait(&world.id, turn).await.unwrap(), completed());

    world.source.set_tools(tools("after"));
    assert_eq!(world.turn("again").await, completed());
    let aside: Vec<String> = world.engine.tools_set_aside().iter().map(ToString::to_string).collect();
    let difference = "go of tools: its definition changed since a person agreed to it; `mcp approve tools go` agrees to:\n  \
                      schema /properties/after + {\"type\":\"string\"}\n  schema /properties/before - {\"type\":\"string\"}";
    assert_eq!(aside, [difference]);
    let explained = world.engine.explain(Some(&world.id), Some(ApproveMode::All), "tools__go", "{}").await.unwrap();
    let why = difference.replace("go of tools: ", "nobody is asked about it, because it is set aside: ");
    assert_eq!(explained.explanation.unwrap_err(), why);
    // What a person looked at is not what it has become meanwhile.
    let looked_at = world.engine.tools_set_aside().remove(0).definition.unwrap();
    let third = json!({"type": "object", "properties": {"third": {"type": "string"}}});
    let [_, other] = tools("after");
    world.source.set_tools([ScriptedTool::echo("go").schema(third), other]);
    let refused = world.engine.agree("tools", Some("go"), Some(&looked_at)).await.unwrap_err();
    assert!(matches!(refused, EngineError::Invalid { .. }), "{refused}");
    let now = world.engine.tools_set_aside().remove(0).definition.unwrap();
    assert_eq!(world.engine.agree("tools", Some("go"), Some(&now)).await.unwrap(), ["tools__go"]);
    assert_eq!(world.turn("and again").await, completed());
    let both = || vec!["tools__go", "tools__other"];
    // Nobody agreed to the other one, so it may change.
    assert_eq!(offered(&world.journal().await), [both(), vec!["tools__other"], both()]);
}

#[tokio::test]
async fn a_call_that_was_allowed_before_its_pinned_tool_changed_asks_again_and_the_answer_pins_it() {
    let provider = ScriptedProvider::new([Answer::whole([call(0, "tools__go", "{}")]), Answer::whole([text("Done.")])]);
    let source = ScriptedSource::new("tools", [ScriptedTool::echo("go")]).foreign();
    let world = world(provider, source, Setup { approve: ApproveMode::Ask, ..Setup::default() }).await;
    world.engine.keep_pins(Arc::new(MemoryDocuments::default())).await;
    world.engine.agree("tools", None, None).await.unwrap();
    assert_eq!(world.turn("go").await, TurnState::Parked);
    world.source.set_tools([ScriptedTool::echo("go").schema(json!({"type": "object", "title": "new"}))]);
    let waiting = CallId { message: Seq::new(4).unwrap(), index: 0 };
    let allow = || Choice { verdict: Verdict::Allow, arguments: None, reason: None };
    let turn = world.journal().await.turn().unwrap().id();
    world.engine.decide(&world.id, waiting, allow()).await.unwrap();
    assert_eq!(world.engine.wait(&world.id, turn).await.unwrap(), TurnState::Parked);
    assert_eq!(world.engine.waiting(&world.id).await.unwrap()[0].reason.as_str(), "definition_changed");
    assert_eq!(world.source.effects(), []);
    world.engine.decide(&world.id, waiting, allow()).await.unwrap();
    assert_eq!(world.engine.wait(&world.id, turn).await.unwrap(), completed());
    assert_eq!((world.source.effects().len(), world.engine.tools_set_aside()), (1, Vec::new()));
}

/// The name of one that only waits for others.
const WAITS_FOR_OTHERS: &str = "waits";

/// A source that is being started: what it offers is known once it is up.
#[derive(Debug)]
struct Late {
    source: ScriptedSource,
    owner: Option<UserId>,
    is_up: AtomicBool,
    is_awaited: Semaphore,
    goes_up: Semaphore,
}

impl Late {
    fn new(name: &str) -> Arc<Self> {
        Self::of(None, name)
    }

    fn of(owner: Option<&str>, name: &str) -> Arc<Self> {
        let (source, owner) = (source_of_go(name), owner.map(|owner| owner.parse().unwrap()));
        let (is_awaited, goes_up) = (Semaphore::new(0), Semaphore::new(0));
        Arc::new(Self { source, owner, is_up: AtomicBool::new(false), is_awaited, goes_up })
    }
}

#[async_trait]
impl ToolSource for Late {
    fn name(&self) -> &str {
        self.source.name()
    }
    fn owner(&self) -> Option<&UserId> {
        self.owner.as_ref()
    }
    fn state(&self) -> SourceState {
        if self.is_up.load(Ordering::SeqCst) { SourceState::Ready } else { SourceState::Starting }
    }
    fn tools(&self) -> Arc<[SourceTool]> {
        if self.is_up.load(Ordering::SeqCst) { self.source.tools() } else { Arc::from([]) }
    }
    async fn settled(&self) {
        self.is_awaited.add_permits(1);
        // Where it is closed, the limit of the start is over.
        if let Ok(permit) = self.goes_up.acquire().await {
            permit.forget();
            self.is_up.store(true, Ordering::SeqCst);
        }
    }
    fn wait_in_words(&self) -> Option<String> {
        (self.name() != WAITS_FOR_OTHERS).then(|| self.name().to_owned())
    }
    async fn call(&self, call: SourceCall, context: CallContext) -> Result<ToolOutput, ToolError> {
        self.source.call(call, context).await
    }
    fn limits(&self, tool: &str) -> CallLimits {
        ToolSource::limits(&self.source, tool)
    }
    async fn stop(&self) {}
}

/// The turn was taken up between two steps. Its next answer calls a tool of a source that this process is still starting, and
/// another source, of which it was offered nothing, never gets ready.
#[tokio::test(start_paused = true)]
async fn a_resumed_turn_waits_for_the_sources_of_what_it_was_offered() {
    let disk = MemoryStore::default();
    let never = Arc::new(Semaphore::new(0));
    let calls = || Answer::whole([call(0, "tools__go", "{}")]);
    let provider = ScriptedProvider::new([calls(), Answer::whole([text("Lost.")]).gated(&never)]);
    let first = engine(disk.another_process(), provider.clone(), Arc::new(source_of_go("tools")), Setup::default());
    let sent = first.send(&id(), NewMessage { create: true, ..NewMessage::text("go") }).await.unwrap();
    while provider.asked().len() < 2 {
        tokio::task::yield_now().await;
    }
    first.shutdown().await;

    let (late, other) = (Late::new("tools"), Late::new("other"));
    let provider = ScriptedProvider::new([calls(), Answer::whole([text("Done.")])]);
    let second = engine(disk, provider.clone(), late.clone(), Setup::default());
    let both: Arc<[Arc<dyn ToolSource>]> = Arc::new([late.clone(), other.clone()]);
    second.follow_sources(Arc::new(Changing(Mutex::new(both))));
    assert_eq!(second.resume_open_turns().await.unwrap(), 1);
    let soon = Duration::from_mins(1);
    timeout(soon, late.is_awaited.acquire()).await.expect("it is waited for").unwrap().forget();
    assert_eq!(provider.asked(), Vec::<String>::new(), "and no model is asked before");
    late.goes_up.add_permits(1);
    let ended = timeout(soon, second.wait(&id(), sent.turn_id)).await.expect("nothing else is waited for").unwrap();
    assert_eq!(ended, completed());
    assert_eq!(results(&second.journal(&id()).await.unwrap()), ["call_4_0 Success {}", "call_10_0 Success {}"]);
    assert_eq!(other.is_awaited.available_permits(), 0);
}

/// It failed at its second step. Whoever takes it up chooses other tools, whose sources this process is still starting.
#[tokio::test(start_paused = true)]
async fn a_turn_that_is_taken_up_again_waits_for_the_sources_of_what_is_chosen_for_it() {
    let disk = MemoryStore::default();
    let fails = ProviderFailure::new(ProviderFailureKind::Auth, "no key");
    let provider = ScriptedProvider::new([Answer::whole([call(0, "tools__go", "{}")]), Answer::of([]).failing(fails)]);
    let first = engine(disk.another_process(), provider, Arc::new(source_of_go("tools")), Setup::default());
    let sent = first.send(&id(), NewMessage { create: true, ..NewMessage::text("go") }).await.unwrap();
    assert!(matches!(first.wait(&id(), sent.turn_id).await.unwrap(), TurnState::Ended(TurnStatus::Failed { .. })));
    first.shutdown().await;

    let (late, other) = (Late::new("tools"), Late::new("other"));
    let provider = ScriptedProvider::new([Answer::whole([call(0, "tools__go", "{}")]), Answer::whole([text("Done.")])]);
    let second = engine(disk, provider.clone(), late.clone(), Setup::default());
    let both: Arc<[Arc<dyn ToolSource>]> = Arc::new([late.clone(), other.clone()]);
    second.follow_sources(Arc::new(Changing(Mutex::new(both))));
    let chosen = SettingsOverlay { tools: Some(vec!["other__*".to_owned()]), ..SettingsOverlay::default() };
    let turn = second.retry(&id(), chosen).await.unwrap();
    timeout(Duration::from_mins(1), other.is_awaited.acquire()).await.expect("it is waited for").unwrap().forget();
    assert_eq!(provider.asked(), Vec::<String>::new(), "and no model is asked before");
    late.goes_up.add_permits(1);
    other.goes_up.add_permits(1);
    assert_eq!(second.wait(&id(), turn).await.unwrap(), completed());
    let journal = second.journal(&id()).await.unwrap();
    assert_eq!(offered(&journal), [["tools__go"], ["other__go"]]);
    assert!(late.source.effects().is_empty(), "{:?}", results(&journal));
}

/// The next notice in a conversation.
async fn notice(engine: &Engine, id: &ConversationId) -> String {
    let mut watch = engine.watch(id, WatchFrom::Now).await.unwrap();
    loop {
        let frame = watch.next().await.unwrap();
        let told = |event: &Event| if let Event::Notice { text, .. } = event { Some(text.clone()) } else { None };
        if let Some(text) = frame.events.iter().find_map(told) {
            return text;
        }
    }
}

/// Ann's own server is starting for as long as Ben works.
#[tokio::test(start_paused = true)]
async fn nobody_waits_for_the_source_of_another_and_nobody_is_told_of_it() {
    let provider = ScriptedProvider::new([Answer::whole([text("Done.")]), Answer::whole([text("Done.")])]);
    let ben = engine(MemoryStore::default(), provider, source("tools"), Setup::default()).acting_for("ben".parse().unwrap());
    let (anns, bens) = (Late::of(Some("ann"), "anns-secret"), Late::of(Some("ben"), "bens"));
    let all: Arc<[Arc<dyn ToolSource>]> = Arc::new([source("tools"), anns.clone(), bens.clone()]);
    ben.follow_sources(Arc::new(Changing(Mutex::new(all))));
    ben.refresh_sources().await;
    let soon = Duration::from_mins(1);
    let sent = ben.send(&id(), NewMessage { create: true, ..NewMessage::text("go") }).await.unwrap();
    timeout(soon, bens.is_awaited.acquire()).await.expect("the own one is waited for").unwrap().forget();
    let told = timeout(soon, notice(&ben, &id())).await.unwrap();
    assert_eq!(told, "waiting for what is starting and was never seen before: bens");
    bens.goes_up.add_permits(1);
    let ended = timeout(soon, ben.wait(&id(), sent.turn_id)).await.expect("nothing else is waited for").unwrap();
    assert_eq!(ended, completed());
    assert_eq!(offered(&ben.journal(&id()).await.unwrap()), [["bens__go", "tools__go"]]);
    // All is known of what is theirs: tools are listed, and globs are judged.
    assert_eq!(timeout(soon, ben.tools()).await.expect("what is there").len(), 2);
    assert_eq!(ben.globs_without_tools(&["anns*".to_owned()]), Some(vec!["anns*".to_owned()]));
    assert_eq!(anns.is_awaited.available_permits(), 0);
}

/// One is ready, the other is starting and stays so.
#[tokio::test(start_paused = true)]
async fn the_tools_of_one_source_are_told_without_waiting_for_another() {
    let late = Late::new("late");
    let engine = engine(MemoryStore::default(), ScriptedProvider::new([]), source("tools"), Setup::default());
    let both: Arc<[Arc<dyn ToolSource>]> = Arc::new([Arc::new(source_of_go("tools").foreign()), late.clone()]);
    engine.follow_sources(Arc::new(Changing(Mutex::new(both))));
    engine.keep_pins(Arc::new(MemoryDocuments::default())).await;
    let soon = Duration::from_mins(1);
    let names = |tools: Vec<Arc<ToolDefinition>>| tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(timeout(soon, engine.tools_of("tools")).await.expect("it is ready")), ["tools__go"]);
    assert_eq!(timeout(soon, engine.agree("tools", None, None)).await.expect("it is ready").unwrap(), ["tools__go"]);
    // What is chosen is judged without it too, where it cannot have it.
    let idle = |glob: &str| engine.globs_without_tools(&[glob.to_owned()]);
    assert_eq!(["zzz__*", "tools__*", "late__*"].map(idle), [Some(vec!["zzz__*".to_owned()]), Some(Vec::new()), None]);
    assert_eq!(late.is_awaited.available_permits(), 0);
    late.goes_up.add_permits(1);
    assert_eq!(names(timeout(soon, engine.tools_of("late")).await.expect("it got ready")), ["late__go"]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_waits_for_those_sources_alone_that_can_have_what_is_chosen_for_it() {
    let (late, waits) = (Late::new("late"), Late::new(WAITS_FOR_OTHERS));
    let provider = ScriptedProvider::new([Answer::whole([text("Done.")]), Answer::whole([text("Done.")])]);
    let engine = engine(MemoryStore::default(), provider, source("tools"), Setup::default());
    let all: Arc<[Arc<dyn ToolSource>]> = Arc::new([source("tools"), late.clone(), waits.clone()]);
    engine.follow_sources(Arc::new(Changing(Mutex::new(all))));
    let soon = Duration::from_mins(1);
    let chosen = |glob: &str| SettingsOverlay { tools: Some(vec![glob.to_owned()]), ..SettingsOverlay::default() };
    let message = |glob| NewMessage { create: true, overlay: chosen(glob), ..NewMessage::text("go") };
    let sent = engine.send(&id(), message("tools__*")).await.unwrap();
    let ended = timeout(soon, engine.wait(&id(), sent.turn_id)).await.expect("nothing is waited for").unwrap();
    assert_eq!(ended, completed());
    assert_eq!((late.is_awaited.available_permits(), waits.is_awaited.available_permits()), (0, 0));
    // All may have a tool that ends so. Those that only wait for others are not told of.
    let sent = engine.send(&id(), message("*__go")).await.unwrap();
    timeout(soon, late.is_awaited.acquire()).await.expect("it is waited for").unwrap().forget();
    assert_eq!(
        timeout(soon, notice(&engine, &id())).await.unwrap(),
        "waiting for what is starting and was never seen before: late"
    );
    late.goes_up.close();
    waits.goes_up.close();
    assert_eq!(timeout(soon, notice(&engine, &id())).await.unwrap(), "not ready in time, left out of this turn: late");
    assert_eq!(engine.wait(&id(), sent.turn_id).await.unwrap(), completed());
}

#[tokio::test]
async fn a_second_source_of_a_name_is_told_of_what_it_lost() {
    let source =
        |tools: [&str; 2]| -> Arc<dyn ToolSource> { Arc::new(ScriptedSource::new("tools", tools.map(ScriptedTool::echo))) };
    let both = Changing(Mutex::new([source(["a", "b"]), source(["b", "c"])].into()));
    let engine = engine(Arc::new(MemoryStore::default()), ScriptedProvider::new([]), source(["a", "b"]), Setup::default());
    engine.follow_sources(Arc::new(both));
    let names: Vec<String> = engine.tools().await.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(names, ["tools__a", "tools__b", "tools__c"]);
    let aside: Vec<String> = engine.tools_set_aside().iter().map(ToString::to_string).collect();
    assert_eq!(aside, ["b of tools: another tool is called `tools__b` too"]);
}
