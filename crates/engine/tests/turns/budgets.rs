//! What may be spent: reserved before a model is asked, settled after, and a turn that is stopped where it does not suffice.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use turnwright_core::budgets::{Amount, BudgetKind, BudgetUnit, Budgeted, Most, NANO_USD, Period};
use turnwright_core::policy::Policy;
use turnwright_core::prompt::Prompt;
use turnwright_core::{
    ApproveMode, BudgetStop, ContentBlock, ConversationId, Elicitation, Finish, FinishReason, ModelFacts, ModelRef, Prices,
    ProviderFailure, ProviderFailureKind, Sampling, SamplingBudget, SamplingMessage, SamplingOutcome, SamplingRole, StopReason,
    StreamDelta, TurnSettings, TurnStatus, UserId, Wants,
};
use turnwright_engine::{
    Balance, Budgets, Engine, EngineError, EngineParts, ModelInfo, ModelStream, NewConversation, NewMessage, Provider,
    Providers, SettingsOverlay, Store, ToolOutput, ToolReply, TurnState,
};
use turnwright_testkit::{
    Answer, Fuse, ManualClock, MemoryStore, ScriptedProvider, ScriptedProviders, ScriptedSource, ScriptedTool, call, text,
};

use crate::support::{completed, id, kinds, results};

const DAY_MS: u64 = 86_400_000;
/// The 23rd of November 2026, in the afternoon.
pub(crate) const NOW_MS: u64 = 20_780 * DAY_MS + 50_000_000;

/// A scripted model whose prompts are all as long, and whose price is known or not. It remembers how long its answers might be.
#[derive(Debug)]
pub(crate) struct Metered {
    pub(crate) script: Arc<ScriptedProvider>,
    prices: Option<Prices>,
    prompt_tokens: u64,
    limits: Mutex<Vec<Option<u32>>>,
}

#[async_trait]
impl Provider for Metered {
    fn dialect(&self) -> &'static str {
        "scripted"
    }

    fn call(&self, model: &str, prompt: &Prompt<'_>) -> Result<ModelStream, ProviderFailure> {
        self.limits.lock().unwrap().push(prompt.settings.max_output_tokens);
        self.script.call(model, prompt)
    }

    fn facts(&self, _model: &str) -> ModelFacts {
        ModelFacts { max_output_tokens: Some(300), prices: self.prices, ..ModelFacts::default() }
    }

    fn measure(&self, _model: &str, _prompt: &Prompt<'_>) -> Option<u64> {
        Some(self.prompt_tokens)
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, ProviderFailure> {
        self.script.models().await
    }
}

/// An engine over a store, with a model and budgets.
pub(crate) struct Bank {
    pub(crate) engine: Engine,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) metered: Arc<Metered>,
    clock: Arc<ManualClock>,
}

pub(crate) fn tokens(most: u64) -> Most {
    Most { tokens: Some(most), nano_usd: None }
}

pub(crate) fn limits(of: impl IntoIterator<Item = (BudgetKind, Most)>) -> Budgets {
    Budgets { limits: of.into_iter().collect(), users: BTreeMap::new(), output_tokens: 1_000 }
}

pub(crate) fn metered(script: Arc<ScriptedProvider>, prices: Option<Prices>) -> Arc<Metered> {
    Arc::new(Metered { script, prices, prompt_tokens: 10, limits: Mutex::default() })
}

pub(crate) fn source() -> ScriptedSource {
    ScriptedSource::new("tools", [ScriptedTool::echo("echo"), thinking()])
}

pub(crate) fn bank_on(store: Arc<MemoryStore>, metered: &Arc<Metered>, source: &Arc<ScriptedSource>, budgets: Budgets) -> Bank {
    let clock = Arc::new(ManualClock::at(NOW_MS));
    let engine = Engine::new(EngineParts {
        providers: Arc::new(ScriptedProviders(metered.clone())),
        sources: vec![source.clone()],
        store: store.clone() as Arc<dyn Store>,
        clock: clock.clone(),
        policy: Policy::new(Vec::new()).unwrap(),
        defaults: TurnSettings { approve: ApproveMode::All, ..TurnSettings::new(ModelRef::new("test", "scripted")) },
    });
    engine.keep_budgets(budgets);
    Bank { engine, store, metered: metered.clone(), clock }
}

pub(crate) fn bank(metered: &Arc<Metered>, budgets: Budgets) -> Bank {
    bank_on(Arc::new(MemoryStore::default()), metered, &Arc::new(source()), budgets)
}

impl Bank {
    pub(crate) async fn say(&self, conversation: &str, words: &str) -> TurnState {
        say(&self.engine, conversation, words).await
    }

    pub(crate) async fn balance(&self, owner: Option<&str>) -> (u64, u64) {
        let owner: Option<UserId> = owner.map(|owner| owner.parse().unwrap());
        let Balance { spent, reserved } = self.store.balance(owner.as_ref(), Period::day_of(NOW_MS)).await.unwrap();
        (spent.tokens, reserved.tokens)
    }
}

async fn say(engine: &Engine, conversation: &str, words: &str) -> TurnState {
    let conversation: ConversationId = conversation.parse().unwrap();
    let sent = engine.send(&conversation, NewMessage { create: true, ..NewMessage::text(words) }).await.unwrap();
    engine.wait(&conversation, sent.turn_id).await.unwrap()
}

fn stop_of(state: &TurnState) -> (BudgetStop, String) {
    match state {
        TurnState::Ended(TurnStatus::Stopped { reason: StopReason::Budget(stop), summary }) => {
            (*stop, summary.clone().unwrap_or_default())
        }
        other => unreachable!("{other:?}"),
    }
}

/// A model that asks for more again and again; each answer takes 15 tokens, of which 10 are the prompt.
fn greedy() -> Arc<ScriptedProvider> {
    ScriptedProvider::by(|asked| {
        let shown = asked.matches("result: ").count();
        Answer::whole([call(0, "tools__echo", &format!(r#"{{"n":{shown}}}"#))])
    })
}

pub(crate) fn says(what: &str) -> Answer {
    Answer::whole([text(what)])
}

#[tokio::test]
async fn a_turn_is_stopped_by_each_budget_with_what_was_done() {
    let month_ends = 20_788 * DAY_MS;
    let rows = [
        (BudgetKind::Turn, None),
        (BudgetKind::Conversation, None),
        (BudgetKind::UserDay, Some(20_781 * DAY_MS)),
        (BudgetKind::UserMonth, Some(month_ends)),
        (BudgetKind::Day, Some(20_781 * DAY_MS)),
    ];
    for (kind, resets_at_ms) in rows {
        let bank = bank(&metered(greedy(), None), limits([(kind, tokens(300))]));
        let (stop, summary) = stop_of(&bank.say("c1", "go on").await);
        // Two answers came to 30; the third might have 256 tokens at least, and its prompt is what the second one told and 5 more.
        let expected = BudgetStop {
            budget: kind,
            unit: BudgetUnit::Tokens,
            limit: 300,
            spent: 30,
            reserved: 0,
            needed: stop.needed,
            resets_at_ms,
        };
        assert_eq!(stop, expected);
        assert!(stop.needed.is_some_and(|needed| needed > 270), "{stop:?}");
        assert_eq!(bank.metered.script.asked().len(), 2);
        let calls = r#"- tools__echo {"n":0}: success: {"n":0}"#;
        assert!(summary.contains(calls) && summary.contains(&format!("`budgets.{}`", kind.as_str())), "{summary}");
        assert_eq!(bank.balance(None).await, (30, 0), "{kind:?}");
        let journal = bank.engine.journal(&id()).await.unwrap();
        assert_eq!(journal.books().conversation().tokens, 30);
    }
}

#[tokio::test]
async fn each_call_is_reserved_before_it_is_made_and_settled_with_its_answer() {
    let gate = Arc::new(Semaphore::new(0));
    let script = ScriptedProvider::new([says("Hello.").gated(&gate)]);
    let bank = bank(&metered(script, None), limits([(BudgetKind::UserDay, tokens(10_000))]));
    let sent = bank.engine.send(&id(), NewMessage { create: true, ..NewMessage::text("hi") }).await.unwrap();
    while bank.metered.script.asked().is_empty() {
        tokio::task::yield_now().await;
    }
    // The prompt and the longest answer that the model gives.
    assert_eq!(bank.balance(Some("local")).await, (0, 310));
    gate.add_permits(2);
    assert_eq!(bank.engine.wait(&id(), sent.turn_id).await.unwrap(), completed());
    assert_eq!(bank.balance(Some("local")).await, (15, 0));
    assert_eq!(*bank.metered.limits.lock().unwrap(), [Some(300)]);
    let journal = bank.engine.journal(&id()).await.unwrap();
    assert_eq!(kinds(&journal), ["user", "claimed", "offered", "reserved", "assistant", "ended"]);
}

#[tokio::test]
async fn without_budgets_nothing_is_stored_besides() {
    let bank = bank(&metered(ScriptedProvider::new([says("Hello.")]), None), limits([]));
    assert_eq!(bank.say("c1", "hi").await, completed());
    assert_eq!(kinds(&bank.engine.journal(&id()).await.unwrap()), ["user", "claimed", "offered", "assistant", "ended"]);
    assert_eq!(*bank.metered.limits.lock().unwrap(), [None]);
    assert_eq!(bank.engine.budgets(None).await.unwrap(), []);
}

#[tokio::test]
async fn a_message_that_no_budget_allows_is_kept_and_answered_once_one_does() {
    let script = ScriptedProvider::new([says("one"), says("two")]);
    let bank = bank(&metered(script, None), limits([(BudgetKind::UserDay, tokens(280))]));
    assert_eq!(bank.say("c1", "first").await, completed());
    let (stop, summary) = stop_of(&bank.say("c1", "second").await);
    assert_eq!((stop.spent, stop.resets_at_ms), (15, Some(20_781 * DAY_MS)));
    assert!(summary.contains("It begins anew on 2026-11-24 at 00:00 UTC"), "{summary}");
    assert!(summary.contains("What you wrote is kept"), "{summary}");
    assert_eq!(bank.metered.script.asked().len(), 1, "no model was asked");
    // The same for other conversations of that user, and for nobody else.
    stop_of(&bank.say("c2", "third").await);
    let other = bank.engine.acting_for("ann".parse().unwrap());
    assert_eq!(other.budgets(None).await.unwrap()[0].spent, Amount::default());
    // The next day.
    bank.clock.advance(DAY_MS);
    let turn = bank.engine.retry(&id(), SettingsOverlay::default()).await.unwrap();
    assert_eq!(bank.engine.wait(&id(), turn).await.unwrap(), completed());
    let asked = bank.metered.script.asked();
    assert!(asked[1].contains("user: first") && asked[1].contains("user: second"), "{}", asked[1]);
    assert_eq!(bank.balance(None).await, (15, 0), "that was another day");
}

#[tokio::test]
async fn another_turn_has_a_budget_of_its_own_and_the_conversation_has_one_for_all() {
    let both = limits([(BudgetKind::Turn, tokens(300)), (BudgetKind::Conversation, tokens(320))]);
    let bank = bank(&metered(greedy(), None), both);
    assert_eq!(stop_of(&bank.say("c1", "go on").await).0.budget, BudgetKind::Turn);
    // Taken up again it has its own again; the conversation has enough for one more answer.
    let turn = bank.engine.retry(&id(), SettingsOverlay::default()).await.unwrap();
    let state = bank.engine.wait(&id(), turn).await.unwrap();
    let (stop, _) = stop_of(&state);
    assert_eq!((stop.budget, stop.resets_at_ms), (BudgetKind::Conversation, None));
    assert!(stop.spent > 30, "{stop:?}");
    assert_eq!(stop_of(&bank.say("c1", "and on").await).0.budget, BudgetKind::Conversation);
    assert_eq!(stop_of(&bank.say("c2", "and on").await).0.budget, BudgetKind::Turn);
    let standing = bank.engine.budgets(Some(&id())).await.unwrap();
    let told: Vec<(BudgetKind, u64)> = standing.iter().map(|budget| (budget.kind, budget.spent.tokens)).collect();
    assert_eq!(told, [(BudgetKind::Turn, 0), (BudgetKind::Conversation, stop.spent)]);
}

const PRICES: Prices = Prices { input: 1.0, cached_input: None, cache_write: None, output: 10.0, long_prompts: None };

#[tokio::test]
async fn money_is_counted_by_the_prices_of_the_model_and_a_model_without_one_is_not_asked() {
    // A prompt is 10,000 billionths, an answer of 256 tokens 2,560,000.
    let usd = |nano_usd| limits([(BudgetKind::Turn, Most { tokens: None, nano_usd: Some(nano_usd) })]);
    let priced = bank(&metered(greedy(), Some(PRICES)), usd(2_700_000));
    let (stop, summary) = stop_of(&priced.say("c1", "go on").await);
    assert_eq!((stop.unit, stop.limit, stop.spent), (BudgetUnit::NanoUsd, 2_700_000, 120_000));
    assert!(summary.contains("0.0027 USD, of which 0.00012 USD are spent"), "{summary}");
    let balance = priced.store.balance(None, Period::day_of(NOW_MS)).await.unwrap();
    assert_eq!(balance.spent, Amount { tokens: 30, nano_usd: 120_000 });
    let unpriced = bank(&metered(greedy(), None), usd(NANO_USD));
    let (stop, summary) = stop_of(&unpriced.say("c1", "go on").await);
    assert_eq!((stop.needed, stop.spent), (None, 0));
    assert!(summary.contains("the price of the model `test/scripted` is not known"), "{summary}");
    assert!(unpriced.metered.script.asked().is_empty());
}

/// A model that is down, and two in its place of which the first has no price.
#[derive(Debug)]
struct Chain {
    down: Arc<Metered>,
    unpriced: Arc<Metered>,
    priced: Arc<Metered>,
    fallback: Vec<ModelRef>,
}

impl Providers for Chain {
    fn get(&self, name: &str) -> Result<Arc<dyn Provider>, ProviderFailure> {
        Ok(match name {
            "down" => self.down.clone(),
            "unpriced" => self.unpriced.clone(),
            _ => self.priced.clone(),
        })
    }

    fn fallback(&self, _model: &ModelRef) -> Vec<ModelRef> {
        self.fallback.clone()
    }

    fn names(&self) -> Vec<String> {
        ["down", "unpriced", "priced"].map(str::to_owned).to_vec()
    }
}

#[tokio::test]
async fn a_model_without_a_price_is_passed_over_where_another_of_the_chain_can_be_asked() {
    let down = || ScriptedProvider::by(|_| Answer::of([]).failing(ProviderFailure::new(ProviderFailureKind::Server, "no")));
    let budgets = limits([(BudgetKind::Turn, Most { tokens: None, nano_usd: Some(NANO_USD) })]);
    let told = |fallback: &[&str]| {
        let fallback = fallback.iter().map(|name| ModelRef::new(*name, "m")).collect();
        let unpriced = metered(ScriptedProvider::by(|_| says("never")), None);
        let priced = metered(ScriptedProvider::by(|_| says("here")), Some(PRICES));
        let chain = Chain { down: metered(down(), Some(PRICES)), unpriced: unpriced.clone(), priced, fallback };
        let engine = Engine::new(EngineParts {
            providers: Arc::new(chain),
            sources: Vec::new(),
            store: Arc::new(MemoryStore::default()),
            clock: Arc::new(ManualClock::at(NOW_MS)),
            policy: Policy::new(Vec::new()).unwrap(),
            defaults: TurnSettings::new(ModelRef::new("down", "m")),
        });
        engine.keep_budgets(budgets.clone());
        async move {
            let state = say(&engine, "c1", "go on").await;
            let journal = engine.journal(&id()).await.unwrap();
            assert!(unpriced.script.asked().is_empty());
            (state, kinds(&journal))
        }
    };
    let (state, stored) = told(&["unpriced", "priced"]).await;
    assert_eq!((&state, stored.iter().filter(|kind| **kind == "failed").count()), (&completed(), 2), "{stored:?}");
    // The last of a chain is not passed over, and whoever reads it learns which model is meant.
    let (state, _) = told(&["unpriced"]).await;
    let (stop, summary) = stop_of(&state);
    assert_eq!(stop.needed, None);
    assert!(summary.contains("the price of the model `unpriced/m` is not known"), "{summary}");
    assert!(summary.contains("in the place of `down/m`, of which no answer came"), "{summary}");
}

#[tokio::test]
async fn an_answer_is_asked_for_as_long_as_the_budget_allows_and_stops_the_turn_where_that_was_too_short() {
    let cut = Answer::of([vec![
        StreamDelta::Text("So far".to_owned()),
        StreamDelta::Finished(Finish { reason: FinishReason::Length, raw: None }),
    ]]);
    let short = bank(&metered(ScriptedProvider::new([cut.clone()]), None), limits([(BudgetKind::Turn, tokens(280))]));
    let (stop, summary) = stop_of(&short.say("c1", "tell me all").await);
    assert_eq!(*short.metered.limits.lock().unwrap(), [Some(270)]);
    assert_eq!((stop.limit, stop.needed), (280, Some(310)));
    assert!(summary.contains("What the model said last: So far"), "{summary}");
    // Where the budget was not the reason, it is not told to be.
    let long = bank(&metered(ScriptedProvider::new([cut]), None), limits([(BudgetKind::Turn, tokens(2_800))]));
    assert_eq!(long.say("c1", "tell me all").await, completed());
}

#[tokio::test]
async fn what_a_provider_does_not_tell_counts_as_it_was_estimated() {
    let untold = || {
        let finish = StreamDelta::Finished(Finish { reason: FinishReason::Stop, raw: None });
        Answer::of([vec![StreamDelta::Text("x".repeat(90)), finish]])
    };
    let overloaded = Answer::of([]).failing(ProviderFailure::new(ProviderFailureKind::Server, "down"));
    let script = ScriptedProvider::new([untold(), overloaded]);
    let bank = bank(&metered(script, None), limits([(BudgetKind::Day, tokens(10_000))]));
    assert_eq!(bank.say("c1", "hi").await, completed());
    assert_eq!(bank.balance(None).await, (10 + 30, 0), "the prompt as it was reserved, the answer by its length");
    assert!(matches!(bank.say("c2", "hi").await, TurnState::Ended(TurnStatus::Failed { .. })));
    assert_eq!(bank.balance(None).await, (40, 0), "a call that failed before it said anything counts nothing");
}

#[tokio::test]
async fn a_call_that_a_person_stops_counts_its_prompt_and_the_next_is_reserved_anew() {
    let gate = Arc::new(Semaphore::new(0));
    let script = ScriptedProvider::new([says("never").gated(&gate), says("two")]);
    let bank = bank(&metered(script, None), limits([(BudgetKind::UserDay, tokens(10_000))]));
    let sent = bank.engine.send(&id(), NewMessage { create: true, ..NewMessage::text("hi") }).await.unwrap();
    while bank.metered.script.asked().is_empty() {
        tokio::task::yield_now().await;
    }
    bank.engine.cancel(&id(), None).await.unwrap();
    assert_eq!(bank.engine.wait(&id(), sent.turn_id).await.unwrap(), TurnState::Ended(TurnStatus::Cancelled));
    assert_eq!(bank.balance(None).await, (10, 0));
    assert_eq!(bank.say("c1", "again").await, completed());
    assert_eq!(bank.balance(None).await, (25, 0));
}

/// Wants a model to be asked, and says what that came to.
fn thinking() -> ScriptedTool {
    ScriptedTool::asking("think", |_, context| async move {
        let Some(resume) = context.resume else {
            return Ok(ToolReply::Asks { asks: vec![sampling()], resume: json!(null) });
        };
        let said = resume.answers.into_iter().map(|settled| match settled.sampled.as_ref().map(|sampled| &sampled.outcome) {
            Some(SamplingOutcome::Answered(message)) => message.text(),
            Some(SamplingOutcome::Failed { failure, .. }) => format!("failed: {failure}"),
            None => "nothing".to_owned(),
        });
        Ok(ToolReply::Done(ToolOutput::text(said.collect::<String>())))
    })
}

fn sampling() -> Elicitation {
    let request = Sampling {
        model: None,
        system_prompt: None,
        messages: vec![SamplingMessage::saying(SamplingRole::User, vec![ContentBlock::text("2+2?")])],
        max_tokens: 100,
        temperature: None,
        stop_sequences: Vec::new(),
        hints: Vec::new(),
        tools: Vec::new(),
        tool_choice: None,
        budget: SamplingBudget { max_requests: 5, max_output_tokens: 1_000 },
    };
    let wants = Wants::Sampling { request: Box::new(request) };
    Elicitation { key: "m".to_owned(), message: "asks a model".to_owned(), wants }
}

#[tokio::test]
async fn what_tools_want_models_to_be_asked_is_within_the_budgets_too() {
    let script = || {
        ScriptedProvider::by(|asked| match asked {
            asked if asked.contains("2+2?") => says("4"),
            asked if asked.contains("result: ") => says("Done."),
            _ => Answer::whole([call(0, "tools__think", "{}")]),
        })
    };
    let enough = bank(&metered(script(), None), limits([(BudgetKind::Turn, tokens(1_000))]));
    assert_eq!(enough.say("c1", "think").await, completed());
    assert_eq!(*enough.metered.limits.lock().unwrap(), [Some(300), Some(100), Some(300)]);
    assert_eq!(enough.balance(None).await, (45, 0));
    // There is enough for the model's first answer, and then not for the tool.
    let tight = bank(&metered(script(), None), limits([(BudgetKind::Turn, tokens(120))]));
    let overlay = SettingsOverlay { max_output_tokens: Some(50), ..SettingsOverlay::default() };
    let sent = tight.engine.send(&id(), NewMessage { create: true, overlay, ..NewMessage::text("think") }).await.unwrap();
    assert_eq!(tight.engine.wait(&id(), sent.turn_id).await.unwrap(), completed());
    let journal = tight.engine.journal(&id()).await.unwrap();
    assert!(results(&journal)[0].contains("the model was not asked: this turn's budget"), "{:?}", results(&journal));
    assert_eq!(tight.balance(None).await, (30, 0));
}

#[tokio::test]
async fn a_summary_is_within_the_budgets_too() {
    let script = ScriptedProvider::new([says("hi"), says("then"), says("They greeted.")]);
    let bank = bank(&metered(script, None), limits([(BudgetKind::Conversation, tokens(360))]));
    for words in ["hello", "and now"] {
        assert_eq!(bank.say("c1", words).await, completed());
    }
    bank.engine.compact(&id(), None).await.unwrap();
    assert_eq!(bank.balance(None).await, (45, 0));
    let limits = bank.metered.limits.lock().unwrap().clone();
    assert!(limits[2].is_some_and(|limit| limit <= 300), "{limits:?}");
    let journal = bank.engine.journal(&id()).await.unwrap();
    assert_eq!(journal.books().conversation().tokens, 45);
    assert!(journal.books().open().is_empty());
}

#[tokio::test]
async fn a_summary_that_no_budget_allows_is_refused_to_whoever_asks_for_it() {
    let script = ScriptedProvider::new([says("hi"), says("then")]);
    let bank = bank(&metered(script, None), limits([(BudgetKind::Conversation, tokens(280))]));
    assert_eq!(bank.say("c1", "hello").await, completed());
    // A short answer needs less than a summary.
    let overlay = SettingsOverlay { max_output_tokens: Some(50), ..SettingsOverlay::default() };
    let sent = bank.engine.send(&id(), NewMessage { overlay, ..NewMessage::text("and now") }).await.unwrap();
    assert_eq!(bank.engine.wait(&id(), sent.turn_id).await.unwrap(), completed());
    let refused = bank.engine.compact(&id(), None).await.unwrap_err();
    assert!(matches!(refused, EngineError::OverBudget(stop) if stop.budget == BudgetKind::Conversation), "{refused}");
    assert_eq!(bank.metered.script.asked().len(), 2);
}

#[tokio::test]
async fn a_user_may_have_limits_of_their_own() {
    let own = BTreeMap::from([("ann".to_owned(), BTreeMap::from([(BudgetKind::UserDay, tokens(20))]))]);
    let budgets = Budgets { users: own, ..limits([(BudgetKind::UserDay, tokens(10_000)), (BudgetKind::Day, tokens(20_000))]) };
    let bank = bank(&metered(ScriptedProvider::new([says("hi")]), None), budgets);
    let ann = bank.engine.acting_for("ann".parse().unwrap());
    stop_of(&say(&ann, "of-ann", "hi").await);
    assert_eq!(bank.say("c1", "hi").await, completed());
    let told = |standing: Vec<Budgeted>| -> Vec<_> {
        standing.iter().map(|budget| (budget.kind, budget.most.tokens.unwrap(), budget.spent.tokens)).collect()
    };
    assert_eq!(told(ann.budgets(None).await.unwrap()), [(BudgetKind::UserDay, 20, 0), (BudgetKind::Day, 20_000, 15)]);
    let expected = [(BudgetKind::UserDay, 10_000, 15), (BudgetKind::Day, 20_000, 15)];
    assert_eq!(told(bank.engine.budgets(None).await.unwrap()), expected);
}

#[tokio::test]
async fn many_turns_at_once_never_take_more_than_there_is() {
    let bank = bank(&metered(ScriptedProvider::by(|_| says("hi")), None), limits([(BudgetKind::UserDay, tokens(1_000))]));
    let turns = (0..64).map(|number| {
        let engine = bank.engine.clone();
        async move { say(&engine, &format!("c{number}"), "hi").await }
    });
    let states = futures_util::future::join_all(turns).await;
    let answered = states.iter().filter(|state| **state == completed()).count() as u64;
    let (spent, reserved) = bank.balance(None).await;
    assert_eq!((spent, reserved), (answered * 15, 0));
    assert!(spent <= 1_000 && answered >= 3, "{answered} were answered");
    for state in states.iter().filter(|state| **state != completed()) {
        stop_of(state);
    }
}

/// Runs the greedy turn in a process that dies at `fuse`, then in one that takes it up; what was spent, and how it ended.
async fn killed(fuse: Fuse) -> Option<((u64, u64), u64, BudgetStop)> {
    let disk = MemoryStore::default();
    let (metered, source) = (metered(greedy(), None), Arc::new(source()));
    let budgets = || limits([(BudgetKind::Turn, tokens(600)), (BudgetKind::UserDay, tokens(600))]);
    let first = bank_on(Arc::new(disk.doomed_process(fuse)), &metered, &source, budgets());
    first.engine.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
    let turn = match first.engine.send(&id(), NewMessage::text("go")).await {
        Ok(sent) => sent.turn_id,
        Err(_) if fuse == Fuse::Before(1) => return None,
        Err(_) => turnwright_core::TurnId(turnwright_core::Seq::FIRST),
    };
    let _died = timeout(Duration::from_mins(5), first.engine.wait(&id(), turn)).await;
    first.engine.shutdown().await;
    let second = bank_on(Arc::new(disk.another_process()), &metered, &source, budgets());
    second.engine.resume_open_turns().await.unwrap();
    let ended = second.engine.wait(&id(), turn).await.unwrap();
    let journal = second.engine.journal(&id()).await.unwrap();
    let balance = second.balance(None).await;
    second.engine.shutdown().await;
    Some((balance, journal.books().conversation().tokens, stop_of(&ended).0))
}

#[tokio::test(start_paused = true)]
async fn wherever_a_process_dies_nothing_is_forgotten_or_counted_twice() {
    let mut lost = 0;
    for fuse in (1..=9).flat_map(|append| [Fuse::Before(append), Fuse::After(append)]) {
        let Some(((spent, reserved), books, stop)) = killed(fuse).await else { continue };
        assert_eq!(reserved, 0, "{fuse:?}");
        assert_eq!(spent, books, "the ledger and the journal say the same, {fuse:?}");
        assert_eq!(stop.spent, books, "{fuse:?}");
        assert!(spent <= 600, "{fuse:?}: {spent}");
        // What was reserved for a call of which nobody heard again is no multiple of what an answer takes.
        lost += u64::from(!spent.is_multiple_of(15));
    }
    assert!(lost >= 3, "{lost}");
}
