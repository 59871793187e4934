//! Decisions that leave a rule behind.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use turnwright_core::policy::{Action, PredicateText, Reach, RuleText, Scope, Tests};
use turnwright_core::{ApproveMode, CallId, Control, ConversationId, DecidedBy, Declared, Entry, Seq, TurnId, Verdict};
use turnwright_engine::{
    Answers, Append, CONVERSATION_DOCUMENTS, Choice, ConversationRecord, Document, Documents, EngineError, KeptBy, Limits,
    NewConversation, NewMessage, NewRule, OverLimit, Remember, SettingsOverlay, SideRecord, Store, StoreError, ToolOutput,
    TurnState,
};
use turnwright_testkit::{
    Answer, ManualClock, MemoryStore, ScriptedProvider, ScriptedSource, ScriptedTool, call, record, text,
};

use crate::support::{Setup, World, completed, engine, engine_at, id, results, world};

fn choice(verdict: Verdict) -> Choice {
    Choice { verdict, arguments: None, reason: None }
}

fn asks() -> Setup {
    Setup { approve: ApproveMode::Ask, ..Setup::default() }
}

fn source() -> ScriptedSource {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    ScriptedSource::new("tools", [ScriptedTool::echo("write").schema(schema)])
}

fn write(index: usize, path: &str) -> Vec<turnwright_core::StreamDelta> {
    call(u32::try_from(index).unwrap(), "tools__write", &json!({"path": path}).to_string())
}

/// A turn that waits with calls that write these, and answers that follow.
async fn waits(paths: &[&str], then: impl IntoIterator<Item = Answer>) -> World {
    let calls = paths.iter().enumerate().map(|(index, path)| write(index, path));
    let provider = ScriptedProvider::new(std::iter::once(Answer::whole(calls)).chain(then));
    let world = world(provider, source(), asks()).await;
    assert_eq!(world.turn("go").await, TurnState::Parked);
    world
}

fn first_call() -> CallId {
    CallId { message: Seq::new(4).unwrap(), index: 0 }
}

fn below(path: &str) -> RuleText {
    let below = PredicateText::from(Tests { below: Some(vec![path.to_owned()]), ..Tests::default() });
    RuleText { tool: "tools__write".to_owned(), when: BTreeMap::from([("path".to_owned(), below)]), action: Action::Allow }
}

#[tokio::test]
async fn a_remembered_decision_stores_its_rule_with_it_and_answers_the_like_at_once_and_later() {
    let then = [Answer::whole([write(0, "/a/c")]), Answer::whole([text("Done.")])];
    let world = waits(&["/a", "/b", "/a/b"], then).await;
    let waiting = world.engine.waiting(&world.id).await.unwrap();
    assert_eq!(waiting[0].always, Some(below("/a")));

    let remember = Some(Remember::proposed(Scope::Conversation));
    let decided = world.engine.decide_and_remember(&world.id, first_call(), choice(Verdict::Allow), remember).await.unwrap();
    let rule = decided.remembered.unwrap();
    assert_eq!((&rule.reach, &rule.rule), (&Reach::Conversation(id()), &below("/a")));
    let third = CallId { index: 2, ..first_call() };
    assert_eq!(decided.also, [(third, Verdict::Allow)]);

    let second = CallId { index: 1, ..first_call() };
    let waiting = world.engine.waiting(&world.id).await.unwrap();
    assert_eq!(waiting.iter().map(|waiting| waiting.call).collect::<Vec<_>>(), [second]);
    world.engine.decide(&world.id, second, choice(Verdict::Allow)).await.unwrap();
    assert_eq!(world.engine.wait(&world.id, TurnId(Seq::FIRST)).await.unwrap(), completed());

    let said = format!("{}, remembered for this conversation (allow tools__write when path below /a)", rule.id);
    let by_rule = DecidedBy::Policy { rule: said };
    let decisions: Vec<_> = world
        .journal()
        .await
        .entries()
        .iter()
        .filter_map(|stored| match &*stored.entry {
            Entry::Decision(decision) => Some((decision.call, decision.by.clone(), decision.remembered.clone())),
            _ => None,
        })
        .collect();
    let later = decisions.last().unwrap().0;
    let expected = [
        (first_call(), DecidedBy::Person, Some(Box::new(rule.clone()))),
        (third, by_rule.clone(), None),
        (second, DecidedBy::Person, None),
        (later, by_rule, None),
    ];
    assert_eq!(decisions, expected);
    assert_eq!(world.engine.rules().await, [rule]);
}

#[tokio::test]
async fn a_remembered_refusal_refuses_the_like() {
    let then = [Answer::whole([write(0, "/a")]), Answer::whole([text("Done.")])];
    let world = waits(&["/a", "/a"], then).await;
    let remember = Some(Remember::proposed(Scope::User));
    let decided = world.engine.decide_and_remember(&world.id, first_call(), choice(Verdict::Deny), remember).await.unwrap();
    assert_eq!(decided.also, [(CallId { index: 1, ..first_call() }, Verdict::Deny)]);
    assert_eq!(world.engine.wait(&world.id, TurnId(Seq::FIRST)).await.unwrap(), completed());
    let told = results(&world.journal().await);
    assert!(told.iter().all(|result| result.contains("denied")), "{told:?}");
    assert_eq!(told.len(), 3);
}

#[tokio::test]
async fn a_rule_of_a_turn_is_told_for_as_long_as_that_is_open() {
    let world = waits(&["/a", "/b"], [Answer::whole([text("Done.")])]).await;
    let remember = Some(Remember::proposed(Scope::Turn));
    world.engine.decide_and_remember(&world.id, first_call(), choice(Verdict::Allow), remember).await.unwrap();
    assert_eq!(world.engine.rules().await.len(), 1);
    let other = CallId { index: 1, ..first_call() };
    world.engine.decide(&world.id, other, choice(Verdict::Allow)).await.unwrap();
    assert_eq!(world.engine.wait(&world.id, TurnId(Seq::FIRST)).await.unwrap(), completed());
    assert_eq!(world.engine.rules().await, []);
}

#[tokio::test]
async fn a_rule_of_a_turn_that_can_be_tried_again_is_told_and_can_be_taken_away_before() {
    for is_removed in [false, true] {
        let again = [Answer::whole([write(0, "/a/b")]), Answer::whole([text("Done.")])];
        let world = waits(&["/a", "/b"], again).await;
        let remember = Some(Remember::proposed(Scope::Turn));
        let decided =
            world.engine.decide_and_remember(&world.id, first_call(), choice(Verdict::Allow), remember).await.unwrap();
        let rule = decided.remembered.unwrap();
        world.engine.cancel(&world.id, None).await.unwrap();
        let TurnState::Ended(_) = world.engine.wait(&world.id, TurnId(Seq::FIRST)).await.unwrap() else {
            panic!("it was stopped")
        };
        let listed = world.engine.rules().await;
        assert_eq!(listed, [rule]);
        if is_removed {
            world.engine.remove_rule(&listed[0].id).await.unwrap();
        }
        let turn = world.engine.retry(&world.id, SettingsOverlay::default()).await.unwrap();
        let expected = if is_removed { TurnState::Parked } else { completed() };
        assert_eq!(world.engine.wait(&world.id, turn).await.unwrap(), expected);
        if !is_removed {
            assert_eq!(world.engine.rules().await, []);
        }
    }
}

#[tokio::test]
async fn a_rule_reaches_as_far_as_its_scope_and_goes_with_its_conversation() {
    for (scope, in_next_turn, in_another) in [
        (Scope::Turn, TurnState::Parked, TurnState::Parked),
        (Scope::Conversation, completed(), TurnState::Parked),
        (Scope::User, completed(), completed()),
        (Scope::Everyone, completed(), completed()),
    ] {
        let again = || [Answer::whole([write(0, "/a")]), Answer::whole([text("Done.")])];
        let then = std::iter::once(Answer::whole([text("Done.")])).chain(again()).chain(again());
        let world = waits(&["/a"], then).await;
        let remember = Some(Remember::proposed(scope));
        world.engine.decide_and_remember(&world.id, first_call(), choice(Verdict::Allow), remember).await.unwrap();
        assert_eq!(world.engine.wait(&world.id, TurnId(Seq::FIRST)).await.unwrap(), completed());
        let listed = world.engine.rules().await.len();
        assert_eq!(listed, usize::from(scope != Scope::Turn), "{scope}: it holds no more once its turn is over");

        let explained = world.engine.explain(Some(&id()), None, "tools__write", r#"{"path":"/a"}"#).await.unwrap();
        let is_allowed = explained.explanation.unwrap().verdict.action == Action::Allow;
        assert_eq!(is_allowed, in_next_turn == completed(), "{scope}");
        let next = world.turn("again").await;
        assert_eq!(next, in_next_turn, "{scope}");
        if next == TurnState::Parked {
            let waiting = world.engine.waiting(&world.id).await.unwrap();
            world.engine.decide(&world.id, waiting[0].call, choice(Verdict::Allow)).await.unwrap();
        }
        let other = "c2".parse().unwrap();
        let new = NewConversation { id: Some("c2".parse().unwrap()), ..NewConversation::default() };
        world.engine.create(new).await.unwrap();
        let sent = world.engine.send(&other, NewMessage::text("go")).await.unwrap();
        assert_eq!(world.engine.wait(&other, sent.turn_id).await.unwrap(), in_another, "{scope}");

        world.engine.delete(&world.id).await.unwrap();
        let left = world.engine.rules().await.len();
        assert_eq!(left, usize::from(matches!(scope, Scope::User | Scope::Everyone)), "{scope}");
    }
}

#[tokio::test]
async fn a_rule_that_another_process_stored_holds_for_the_next_call() {
    let store = Arc::new(MemoryStore::default());
    let other_store = Arc::new(store.another_process());
    let provider = ScriptedProvider::new([Answer::whole([write(0, "/a")]), Answer::whole([text("Done.")])]);
    let first = engine(store.clone(), provider.clone(), Arc::new(source()), asks());
    first.keep_rules(store).await;
    let second = engine(other_store.clone(), provider, Arc::new(source()), asks());
    second.keep_rules(other_store).await;
    let rule = NewRule { scope: Scope::Everyone, conversation: None, rule: below("/a"), idempotency: None };
    second.add_rule(rule).await.unwrap();
    first.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
    let sent = first.send(&id(), NewMessage::text("go")).await.unwrap();
    assert_eq!(first.wait(&id(), sent.turn_id).await.unwrap(), completed());
}

/// What happens with the first document that is put.
#[derive(Debug)]
enum Mishap {
    /// The answer is lost.
    Lost,
    /// Its conversation is deleted before.
    Deleted,
}

#[derive(Debug)]
struct Unlucky(Arc<MemoryStore>, Mishap, AtomicBool);

#[async_trait]
impl Documents for Unlucky {
    async fn document(&self, kind: &str, key: &str) -> Result<Option<Document>, StoreError> {
        self.0.document(kind, key).await
    }

    async fn documents(&self, kind: &str) -> Result<Vec<Document>, StoreError> {
        self.0.documents(kind).await
    }

    async fn put_document(&self, kind: &str, document: Document) -> Result<(), StoreError> {
        let is_first = !self.2.swap(true, Ordering::SeqCst);
        match self.1 {
            Mishap::Deleted if is_first => {
                self.0.delete(&id()).await?;
                self.0.put_document(kind, document).await
            }
            Mishap::Lost if is_first => {
                self.0.put_document(kind, document).await?;
                Err(StoreError::Unusable { reason: "gone".to_owned() })
            }
            Mishap::Deleted | Mishap::Lost => self.0.put_document(kind, document).await,
        }
    }

    async fn add_document(&self, kind: &str, document: Document) -> Result<(), StoreError> {
        self.0.add_document(kind, document).await
    }

    async fn change_document(&self, kind: &str, of: &Document, body: Option<String>) -> Result<(), StoreError> {
        self.0.change_document(kind, of, body).await
    }

    async fn remove_document(&self, kind: &str, key: &str) -> Result<(), StoreError> {
        self.0.remove_document(kind, key).await
    }
}

#[tokio::test]
async fn a_rule_whose_answer_was_lost_is_there_once_for_the_same_request() {
    let store = Arc::new(MemoryStore::default());
    let own = engine(store.clone(), ScriptedProvider::new([]), Arc::new(source()), asks());
    own.keep_rules(Arc::new(Unlucky(store, Mishap::Lost, AtomicBool::new(false)))).await;
    let rule = |key: Option<&str>, rule: RuleText| NewRule {
        scope: Scope::Everyone,
        conversation: None,
        idempotency: key.map(|key| (key.to_owned(), rule.tool.clone())),
        rule,
    };
    let lost = own.add_rule(rule(Some("k"), below("/a"))).await.unwrap_err();
    assert!(matches!(lost, EngineError::Store(StoreError::Unusable { .. })), "{lost}");
    let added = own.add_rule(rule(Some("k"), below("/a"))).await.unwrap();
    // Whoever chooses the key finds none with which it is another's.
    assert_eq!(added.id.len(), "rule_".len() + 32);
    assert_eq!(own.rules().await, [added]);
    // Another key, another request or another user's is another rule, and so is each without a key.
    own.add_rule(rule(Some("l"), below("/a"))).await.unwrap();
    own.add_rule(rule(Some("k"), RuleText { tool: "other__*".to_owned(), ..below("/a") })).await.unwrap();
    own.acting_for("anna".parse().unwrap()).add_rule(rule(Some("k"), below("/a"))).await.unwrap();
    own.add_rule(rule(None, below("/a"))).await.unwrap();
    own.add_rule(rule(None, below("/a"))).await.unwrap();
    assert_eq!(own.rules().await.len(), 6);
}

#[tokio::test]
async fn a_user_has_so_many_rules_remembered_and_everyone_as_many() {
    let world = waits(&["/a"], [Answer::whole([text("Done.")])]).await;
    let own = &world.engine;
    own.limit(Limits { rules_per_user: 2, ..Limits::default() });
    let rule = |scope, conversation, key: Option<&str>| NewRule {
        scope,
        conversation,
        rule: below("/a"),
        idempotency: key.map(|key| (key.to_owned(), "print".to_owned())),
    };
    let full = EngineError::OverLimit(OverLimit::Rules { most: 2 });
    // What others keep is theirs, of their own conversations too.
    let anna = own.acting_for("anna".parse().unwrap());
    let annas: ConversationId = "annas".parse().unwrap();
    anna.create(NewConversation { id: Some(annas.clone()), ..NewConversation::default() }).await.unwrap();
    anna.add_rule(rule(Scope::Conversation, Some(annas.clone()), None)).await.unwrap();
    anna.add_rule(rule(Scope::User, None, None)).await.unwrap();
    assert_eq!(anna.add_rule(rule(Scope::Conversation, Some(annas), None)).await.unwrap_err(), full);
    let first = own.add_rule(rule(Scope::Conversation, Some(id()), None)).await.unwrap();
    own.add_rule(rule(Scope::User, None, Some("k"))).await.unwrap();
    assert_eq!(own.add_rule(rule(Scope::User, None, None)).await.unwrap_err(), full);
    // The same request once more adds none, and those for everyone are counted by themselves.
    own.add_rule(rule(Scope::User, None, Some("k"))).await.unwrap();
    for _ in 0..2 {
        own.add_rule(rule(Scope::Everyone, None, None)).await.unwrap();
    }
    assert_eq!(own.add_rule(rule(Scope::Everyone, None, None)).await.unwrap_err(), full);
    // A decision that would leave one behind decides nothing, until there is room.
    let decide =
        || own.decide_and_remember(&world.id, first_call(), choice(Verdict::Allow), Some(Remember::proposed(Scope::User)));
    assert_eq!(decide().await.unwrap_err(), full);
    assert_eq!(own.waiting(&world.id).await.unwrap().len(), 1);
    own.remove_rule(&first.id).await.unwrap();
    assert!(decide().await.unwrap().remembered.is_some());
    assert_eq!(own.wait(&world.id, TurnId(Seq::FIRST)).await.unwrap(), completed());
}

#[tokio::test]
async fn a_rule_whose_conversation_is_deleted_meanwhile_is_not_for_the_next_of_its_name() {
    let store = Arc::new(MemoryStore::default());
    let own = engine(store.clone(), ScriptedProvider::new([]), Arc::new(source()), asks());
    own.keep_rules(Arc::new(Unlucky(store.clone(), Mishap::Deleted, AtomicBool::new(false)))).await;
    own.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
    let rule = NewRule { scope: Scope::Conversation, conversation: Some(id()), rule: below("/a"), idempotency: None };
    let gone = own.add_rule(rule.clone()).await.unwrap_err();
    assert!(matches!(gone, EngineError::NotFound { .. }), "{gone}");
    own.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
    assert_eq!(own.rules().await, []);
    assert_eq!(store.upper_documents(CONVERSATION_DOCUMENTS).await.unwrap(), []);
    let added = own.add_rule(rule).await.unwrap();
    assert_eq!(own.rules().await, [added]);
}

#[tokio::test]
async fn what_cannot_be_remembered_decides_nothing() {
    let world = waits(&["/a"], []).await;
    let attempt = |remember: Remember| {
        let (engine, id) = (world.engine.clone(), world.id.clone());
        async move { engine.decide_and_remember(&id, first_call(), choice(Verdict::Allow), Some(remember)).await.unwrap_err() }
    };
    let other = Remember { tool: Some("other__*".to_owned()), ..Remember::proposed(Scope::User) };
    let said = "the rule to remember (allow other__*) does not match this call, so it was not what was asked";
    assert_eq!(attempt(other).await, EngineError::Invalid { what: said.to_owned() });
    let wrong = Remember { tool: Some("[".to_owned()), ..Remember::proposed(Scope::User) };
    let said = "the rule cannot be used: `tool` is `[`, which is not a glob; `filesystem__write*` would be one";
    assert_eq!(attempt(wrong).await, EngineError::Invalid { what: said.to_owned() });
    let large = Remember { tool: Some("*".repeat(5_000)), ..Remember::proposed(Scope::User) };
    let said = "the rule cannot be used: `tool` has 5000 bytes, limit 4096";
    assert_eq!(attempt(large).await, EngineError::Invalid { what: said.to_owned() });
    assert_eq!(world.engine.waiting(&world.id).await.unwrap().len(), 1);
    assert_eq!(world.engine.rules().await, []);
}

#[tokio::test]
async fn of_two_answers_at_once_one_counts_and_the_other_is_told_which() {
    let world = waits(&["/a"], [Answer::whole([text("Done.")])]).await;
    let (allowed, denied) = tokio::join!(
        world.engine.decide(&world.id, first_call(), choice(Verdict::Allow)),
        world.engine.decide(&world.id, first_call(), choice(Verdict::Deny)),
    );
    let lost = match (allowed, denied) {
        (Ok(()), Err(lost)) => (lost, "allow"),
        (Err(lost), Ok(())) => (lost, "deny"),
        both => panic!("{both:?}"),
    };
    let why = format!("it was decided already: {}, by a person", lost.1);
    assert_eq!(lost.0, EngineError::NotWaiting { call: first_call(), why });
}

#[tokio::test]
async fn changed_arguments_are_held_against_remembered_rules_that_deny() {
    let world = waits(&["/a"], []).await;
    let rule = RuleText { action: Action::Deny, ..below("/secret") };
    let added =
        world.engine.add_rule(NewRule { scope: Scope::Everyone, conversation: None, rule, idempotency: None }).await.unwrap();
    let changed = Choice { arguments: Some(r#"{"path":"/secret/x"}"#.to_owned()), ..choice(Verdict::Allow) };
    let refused = world.engine.decide(&world.id, first_call(), changed).await.unwrap_err();
    let what = format!(
        "the changed arguments are denied by {}, remembered for everyone (deny tools__write when path below /secret)",
        added.id
    );
    assert_eq!(refused, EngineError::Invalid { what });
}

#[tokio::test]
async fn a_rule_that_denies_wins_over_who_allows_what_waited_before_it() {
    let world = waits(&["/a"], [Answer::whole([text("Done.")])]).await;
    let rule = RuleText { action: Action::Deny, ..below("/a") };
    let added =
        world.engine.add_rule(NewRule { scope: Scope::Everyone, conversation: None, rule, idempotency: None }).await.unwrap();
    let refused = world.engine.decide(&world.id, first_call(), choice(Verdict::Allow)).await.unwrap_err();
    let what = format!("it is denied by {}, remembered for everyone (deny tools__write when path below /a)", added.id);
    assert_eq!(refused, EngineError::Invalid { what });

    world.engine.decide(&world.id, first_call(), choice(Verdict::Deny)).await.unwrap();
    world.engine.wait(&world.id, TurnId(Seq::FIRST)).await.unwrap();
    assert!(world.source.effects().is_empty());
    // Whoever is late hears what was decided, also once the turn is over.
    let late = world.engine.decide(&world.id, first_call(), choice(Verdict::Allow)).await.unwrap_err();
    assert_eq!(
        late,
        EngineError::NotWaiting { call: first_call(), why: "it was decided already: deny, by a person".to_owned() }
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_is_denied_in_time_while_another_of_its_turn_runs() {
    let long = ScriptedTool::new("long", |_, _| async {
        tokio::time::sleep(Duration::from_hours(5)).await;
        Ok(ToolOutput::text("late"))
    });
    let source = ScriptedSource::new(
        "tools",
        [long.declared(Declared { read_only: true, ..Declared::default() }), ScriptedTool::echo("write")],
    );
    let calls = [call(0, "tools__long", "{}"), write(1, "/a")];
    let provider = ScriptedProvider::new([Answer::whole(calls), Answer::whole([text("Done.")])]);
    let clock = Arc::new(ManualClock::at(1_000));
    let engine = engine_at(Arc::new(MemoryStore::default()), provider, Arc::new(source), asks(), clock.clone());
    engine.limit_approvals(Duration::from_hours(1));
    engine.keep_resuming();
    engine.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
    engine.send(&id(), NewMessage::text("go")).await.unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(engine.waiting(&id()).await.unwrap().len(), 1);

    clock.advance(3_600_000);
    tokio::time::sleep(Duration::from_mins(1)).await;

    assert_eq!(engine.waiting(&id()).await.unwrap().len(), 0);
    let told = results(&engine.journal(&id()).await.unwrap());
    assert_eq!(
        told,
        ["call_4_1 Denied This call was denied by the approval timeout: nobody decided within 1 hour. It did not run."]
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_decides_about_is_denied_in_time_by_a_process_that_never_drove_it() {
    let store = Arc::new(MemoryStore::default());
    let clock = Arc::new(ManualClock::at(1_000));
    let provider = ScriptedProvider::new([Answer::whole([write(0, "/a")]), Answer::whole([text("Done.")])]);
    let first = engine_at(store.clone(), provider.clone(), Arc::new(source()), asks(), clock.clone());
    first.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
    let sent = first.send(&id(), NewMessage::text("go")).await.unwrap();
    assert_eq!(first.wait(&id(), sent.turn_id).await.unwrap(), TurnState::Parked);
    first.shutdown().await;

    let store = Arc::new(store.another_process());
    let server = engine_at(store, provider, Arc::new(source()), asks(), clock.clone());
    server.limit_approvals(Duration::from_hours(1));
    server.keep_resuming();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(server.waiting(&id()).await.unwrap().len(), 1, "it is not late yet");
    clock.advance(3_600_000);
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(server.wait(&id(), sent.turn_id).await.unwrap(), completed());
    let told = results(&server.journal(&id()).await.unwrap());
    let expected =
        "call_4_0 Denied This call was denied by the approval timeout: nobody decided within 1 hour. It did not run.";
    assert_eq!(told, [expected]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_decides_about_is_denied_in_the_instant_in_which_its_time_is_over() {
    let clock = Arc::new(ManualClock::at(1_000));
    let provider = ScriptedProvider::new([Answer::whole([write(0, "/a")]), Answer::whole([text("Done.")])]);
    let server = engine_at(Arc::new(MemoryStore::default()), provider, Arc::new(source()), asks(), clock.clone());
    server.limit_approvals(Duration::from_secs(2));
    server.keep_resuming();
    server.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
    let sent = server.send(&id(), NewMessage::text("go")).await.unwrap();
    assert_eq!(server.wait(&id(), sent.turn_id).await.unwrap(), TurnState::Parked);

    clock.advance(1_900);
    tokio::time::sleep(Duration::from_millis(1_900)).await;
    assert_eq!(server.waiting(&id()).await.unwrap().len(), 1, "there is time left");
    clock.advance(100);
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert_eq!(server.wait(&id(), sent.turn_id).await.unwrap(), completed());
    let told = results(&server.journal(&id()).await.unwrap());
    let expected =
        "call_4_0 Denied This call was denied by the approval timeout: nobody decided within 2 seconds. It did not run.";
    assert_eq!(told, [expected]);
}

#[tokio::test(start_paused = true)]
async fn a_decision_that_comes_too_late_does_not_count_also_where_no_server_runs() {
    let late = "it was decided already: deny, by the approval timeout";
    for many in [false, true] {
        let clock = Arc::new(ManualClock::at(1_000));
        let provider = ScriptedProvider::new([Answer::whole([write(0, "/a")]), Answer::whole([text("Done.")])]);
        let engine = engine_at(Arc::new(MemoryStore::default()), provider, Arc::new(source()), asks(), clock.clone());
        engine.limit_approvals(Duration::from_hours(1));
        engine.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
        let sent = engine.send(&id(), NewMessage::text("go")).await.unwrap();
        assert_eq!(engine.wait(&id(), sent.turn_id).await.unwrap(), TurnState::Parked);
        let call = engine.waiting(&id()).await.unwrap()[0].call;
        clock.advance(3_600_000);

        let decided = if many {
            let decisions = vec![(call.into(), choice(Verdict::Allow))];
            engine.answer_all(&id(), Answers { decisions, ..Answers::default() }, None).await
        } else {
            engine.decide(&id(), call, choice(Verdict::Allow)).await
        };

        let refused = decided.unwrap_err().to_string();
        assert!(refused.contains(late), "{refused}");
        assert_eq!(engine.wait(&id(), sent.turn_id).await.unwrap(), completed());
        assert!(results(&engine.journal(&id()).await.unwrap())[0].starts_with("call_4_0 Denied"));
    }
}

/// A conversation with an open turn, of which what it was given cannot be read.
async fn damage(store: &MemoryStore) {
    let id: ConversationId = "a".parse().unwrap();
    let side = vec![SideRecord::TurnOpen { turn: TurnId(Seq::FIRST), parked: true, kept_by: KeptBy::Servers }];
    let record = ConversationRecord { id: id.clone(), settings: "unreadable".to_owned(), ..record("a") };
    store.create(record).await.unwrap();
    let entries = vec![Entry::Control(Control::CancelRequested { turn: TurnId(Seq::FIRST) })];
    store.append(Append { conversation: id, at: Seq::FIRST, entries, at_ms: 1, side }).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_listed_and_denied_in_time_also_behind_a_conversation_that_cannot_be_read() {
    let store = Arc::new(MemoryStore::default());
    damage(&store).await;
    let clock = Arc::new(ManualClock::at(1_000));
    let provider = ScriptedProvider::new([Answer::whole([write(0, "/a")]), Answer::whole([text("Done.")])]);
    let server = engine_at(store, provider, Arc::new(source()), asks(), clock.clone());
    server.limit_approvals(Duration::from_hours(1));
    server.keep_resuming();
    server.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
    let sent = server.send(&id(), NewMessage::text("go")).await.unwrap();
    assert_eq!(server.wait(&id(), sent.turn_id).await.unwrap(), TurnState::Parked);

    assert_eq!(server.all_waiting().await.unwrap().len(), 1);
    assert_eq!(server.all_questions().await.unwrap(), []);
    clock.advance(3_600_000);
    tokio::time::sleep(Duration::from_mins(1)).await;

    assert_eq!(server.wait(&id(), sent.turn_id).await.unwrap(), completed());
}
