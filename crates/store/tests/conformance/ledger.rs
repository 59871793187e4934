//! What was spent on models, and is reserved for it.

use std::sync::Arc;

use turnwright_core::budgets::{Amount, Most, Period};
use turnwright_core::{ConversationId, Seq, UserId};
use turnwright_engine::{Append, Balance, Ceiling, ConversationRecord, Reservation, SideRecord, Store, StoreError};

use super::Backend;
use super::fixtures;

const DAY: u64 = 20_000;

fn id(id: &str) -> ConversationId {
    id.parse().unwrap()
}

/// A conversation without a title.
fn record(id: &str) -> ConversationRecord {
    ConversationRecord { title: None, ..fixtures::record(id, 1) }
}

fn tokens(tokens: u64) -> Amount {
    Amount { tokens, nano_usd: tokens * 10 }
}

fn days(from_day: u64, until_day: u64) -> Period {
    Period { from_day, until_day }
}

fn user(name: &str) -> UserId {
    name.parse().unwrap()
}

/// Of a user on a day, within so many tokens of the user's.
fn reservation(owner: &str, day: u64, amount: u64, most: u64) -> Reservation {
    let most = Most { tokens: Some(most), nano_usd: None };
    let ceiling = Ceiling { owner: Some(user(owner)), period: days(day, day + 1), most };
    Reservation { purpose: "answer".to_owned(), owner: user(owner), day, amount: tokens(amount), within: vec![ceiling] }
}

async fn beside(store: &dyn Store, conversation: &ConversationId, side: Vec<SideRecord>) -> Result<(), StoreError> {
    let append = Append { conversation: conversation.clone(), at: Seq::FIRST, entries: Vec::new(), at_ms: 1, side };
    store.append(append).await.map(drop)
}

async fn reserve(store: &dyn Store, conversation: &ConversationId, reservation: Reservation) -> Result<(), StoreError> {
    beside(store, conversation, vec![SideRecord::Reserve(reservation)]).await
}

async fn settle(store: &dyn Store, conversation: &ConversationId, amount: u64) {
    let settle = SideRecord::Settle { purpose: "answer".to_owned(), amount: tokens(amount) };
    beside(store, conversation, vec![settle]).await.unwrap();
}

/// What a user spent in a time, and has reserved, in tokens; of everybody where `None`.
async fn balance(store: &dyn Store, owner: Option<&str>, period: Period) -> (u64, u64) {
    let owner = owner.map(user);
    let Balance { spent, reserved } = store.balance(owner.as_ref(), period).await.unwrap();
    assert_eq!((spent, reserved), (tokens(spent.tokens), tokens(reserved.tokens)), "money goes with tokens");
    (spent.tokens, reserved.tokens)
}

pub(crate) async fn what_a_call_came_to_is_spent_on_the_day_it_was_reserved(backend: &dyn Backend) {
    let store = backend.open().await;
    let [a, b] = [id("a"), id("b")];
    store.create(record("a")).await.unwrap();
    store.create(record("b")).await.unwrap();
    assert_eq!(balance(&*store, None, days(0, DAY * 2)).await, (0, 0));
    reserve(&*store, &a, reservation("ann", DAY, 100, 1_000)).await.unwrap();
    reserve(&*store, &b, reservation("bob", DAY + 1, 50, 1_000)).await.unwrap();
    assert_eq!(balance(&*store, Some("ann"), days(DAY, DAY + 1)).await, (0, 100));
    settle(&*store, &a, 30).await;
    settle(&*store, &a, 999).await;
    assert_eq!(balance(&*store, Some("ann"), days(DAY, DAY + 1)).await, (30, 0), "it is settled once");
    reserve(&*store, &a, reservation("ann", DAY, 10, 1_000)).await.unwrap();
    settle(&*store, &a, 12).await;
    assert_eq!(balance(&*store, Some("ann"), days(DAY, DAY + 1)).await, (42, 0));
    assert_eq!(balance(&*store, Some("ann"), days(DAY + 1, DAY + 9)).await, (0, 0));
    assert_eq!(balance(&*store, Some("ann"), days(0, DAY)).await, (0, 0));
    assert_eq!(balance(&*store, None, days(DAY, DAY + 2)).await, (42, 50), "of everybody");
    assert_eq!(balance(&*store, Some("bob"), days(DAY, DAY + 2)).await, (0, 50));
}

pub(crate) async fn a_reservation_beyond_a_ceiling_is_refused_and_nothing_is_written(backend: &dyn Backend) {
    let store = backend.open().await;
    let a = id("a");
    store.create(record("a")).await.unwrap();
    reserve(&*store, &a, reservation("ann", DAY, 100, 100)).await.unwrap();
    settle(&*store, &a, 60).await;
    let too_much = [SideRecord::Title(Some("no".to_owned())), SideRecord::Reserve(reservation("ann", DAY, 41, 100))];
    assert_eq!(beside(&*store, &a, too_much.to_vec()).await, Err(StoreError::OverBudget));
    assert_eq!(store.conversation(&a).await.unwrap().unwrap().title, None);
    // In money, of everybody, and over more than a day, it is the same.
    let beyond = |most, owner: Option<&str>, period| Reservation {
        within: vec![Ceiling { owner: owner.map(user), period, most }],
        ..reservation("bob", DAY + 1, 41, 0)
    };
    let usd = |nano_usd| Most { tokens: None, nano_usd: Some(nano_usd) };
    let month = days(DAY - 5, DAY + 5);
    assert_eq!(reserve(&*store, &a, beyond(usd(1_009), None, month)).await, Err(StoreError::OverBudget));
    reserve(&*store, &a, beyond(usd(1_010), None, month)).await.unwrap();
    reserve(&*store, &a, beyond(usd(410), Some("bob"), month)).await.unwrap();
    assert_eq!(balance(&*store, None, month).await, (60, 41));
}

pub(crate) async fn many_who_reserve_at_once_in_two_processes_stay_within_the_ceiling(backend: &dyn Backend) {
    const RESERVERS: usize = 64;
    const MOST: u64 = 1_000;
    let stores = [backend.open().await, backend.open().await];
    for number in 0..RESERVERS {
        stores[0].create(record(&format!("c{number}"))).await.unwrap();
    }
    let tasks: Vec<_> = (0..RESERVERS)
        .map(|number| {
            let store: Arc<dyn Store> = stores[number % 2].clone();
            #[expect(clippy::disallowed_methods, reason = "it is awaited below")]
            // Each asks again and again, and its calls come to less than was reserved, or a little more.
            tokio::spawn(async move {
                let conversation = id(&format!("c{number}"));
                let (mut came_to, mut refused) = (0, 0);
                for round in 0..6 {
                    match reserve(&*store, &conversation, reservation("ann", DAY, 40, MOST)).await {
                        Ok(()) => {
                            let (spent, reserved) = balance(&*store, Some("ann"), days(DAY, DAY + 1)).await;
                            assert!(spent + reserved <= MOST, "{spent} spent and {reserved} reserved");
                            let amount = 5 + (number as u64 + round) % 30;
                            settle(&*store, &conversation, amount).await;
                            came_to += amount;
                        }
                        Err(StoreError::OverBudget) => refused += 1,
                        Err(error) => panic!("{error}"),
                    }
                }
                (came_to, refused)
            })
        })
        .collect();
    let (mut all, mut refused) = (0, 0);
    for task in tasks {
        let (came_to, refusals) = task.await.unwrap();
        all += came_to;
        refused += refusals;
    }
    for store in stores {
        assert_eq!(balance(&*store, Some("ann"), days(DAY, DAY + 1)).await, (all, 0), "nothing is lost and nothing stays");
    }
    // How much is spent is a matter of who comes when: what is reserved at the time is refused to others.
    assert!(refused > 0 && all > 0 && all <= MOST, "{all} of {MOST} are spent, {refused} were refused");
}

pub(crate) async fn a_reservation_whose_process_is_gone_counts_until_another_settles_it(backend: &dyn Backend) {
    let dying = backend.open().await;
    let a = id("a");
    dying.create(record("a")).await.unwrap();
    reserve(&*dying, &a, reservation("ann", DAY, 80, 100)).await.unwrap();
    dying.close().await;
    drop(dying);
    let store = backend.open().await;
    store.create(record("b")).await.unwrap();
    assert_eq!(balance(&*store, Some("ann"), days(DAY, DAY + 1)).await, (0, 80));
    let b = id("b");
    assert_eq!(reserve(&*store, &b, reservation("ann", DAY, 30, 100)).await, Err(StoreError::OverBudget));
    settle(&*store, &a, 70).await;
    reserve(&*store, &b, reservation("ann", DAY, 30, 100)).await.unwrap();
    assert_eq!(balance(&*store, Some("ann"), days(DAY, DAY + 1)).await, (70, 30));
    // On another day it takes nothing from anybody.
    reserve(&*store, &a, reservation("ann", DAY + 1, 100, 100)).await.unwrap();
}

pub(crate) async fn a_reservation_takes_the_place_of_that_for_the_same_purpose(backend: &dyn Backend) {
    let store = backend.open().await;
    let a = id("a");
    store.create(record("a")).await.unwrap();
    reserve(&*store, &a, reservation("ann", DAY, 80, 100)).await.unwrap();
    reserve(&*store, &a, reservation("ann", DAY + 1, 90, 100)).await.unwrap();
    assert_eq!(balance(&*store, None, days(DAY, DAY + 2)).await, (0, 90));
    let other = Reservation { purpose: "summary".to_owned(), ..reservation("ann", DAY + 1, 11, 100) };
    assert_eq!(reserve(&*store, &a, other).await, Err(StoreError::OverBudget));
    let settle = SideRecord::Settle { purpose: "answer".to_owned(), amount: tokens(20) };
    let both = vec![settle, SideRecord::Reserve(reservation("ann", DAY + 1, 80, 100))];
    beside(&*store, &a, both).await.unwrap();
    assert_eq!(balance(&*store, None, days(DAY, DAY + 2)).await, (20, 80), "settled first, then reserved");
}

pub(crate) async fn what_was_spent_outlives_its_conversation(backend: &dyn Backend) {
    let store = backend.open().await;
    let a = id("a");
    store.create(record("a")).await.unwrap();
    reserve(&*store, &a, reservation("ann", DAY, 80, 1_000)).await.unwrap();
    settle(&*store, &a, 20).await;
    reserve(&*store, &a, reservation("ann", DAY, 30, 1_000)).await.unwrap();
    store.delete(&a).await.unwrap();
    assert_eq!(balance(&*store, None, days(DAY, DAY + 1)).await, (50, 0), "what nobody will know counts as reserved");
    store.create(record("a")).await.unwrap();
    settle(&*store, &a, 7).await;
    assert_eq!(balance(&*store, None, days(DAY, DAY + 1)).await, (50, 0));
}
