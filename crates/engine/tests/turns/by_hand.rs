//! What summaries by hand cost, which are made beside whatever turn is open.

use std::sync::Arc;

use tokio::sync::Semaphore;
use turnwright_core::budgets::{BudgetKind, Period};
use turnwright_core::{MessageId, Seq};
use turnwright_engine::{Balance, Compaction, EngineError, Store};
use turnwright_testkit::{Answer, Fuse, ScriptedProvider};

use crate::budgets::{Bank, NOW_MS, bank, bank_on, limits, metered, says, source, tokens};
use crate::support::{completed, id};

/// A conversation of two turns, whose next answer is a summary that waits for the gate.
async fn summing_up(gate: &Arc<Semaphore>, then: impl IntoIterator<Item = Answer>) -> Bank {
    let summary = says("They greeted.").gated(gate);
    let script = ScriptedProvider::new([says("hi"), says("then"), summary].into_iter().chain(then));
    let bank = bank(&metered(script, None), limits([(BudgetKind::UserDay, tokens(10_000))]));
    for words in ["hello", "and now"] {
        assert_eq!(bank.say("c1", words).await, completed());
    }
    bank
}

impl Bank {
    /// Asks for a summary by hand, and does something once the model is asked.
    async fn compact_beside(&self, meanwhile: impl Future<Output = ()>) -> Result<Compaction, EngineError> {
        let asked = self.metered.script.asked().len();
        let meanwhile = async {
            while self.metered.script.asked().len() == asked {
                tokio::task::yield_now().await;
            }
            meanwhile.await;
        };
        let id = id();
        tokio::join!(self.engine.compact(&id, None), meanwhile).0
    }
}

#[tokio::test]
async fn a_summary_by_hand_counts_as_what_its_provider_says_also_where_a_turn_begins_and_ends_meanwhile() {
    let gate = Arc::new(Semaphore::new(0));
    let bank = summing_up(&gate, [says("and then")]).await;
    let meanwhile = async {
        assert_eq!(bank.say("c1", "more").await, completed());
        assert_eq!(bank.balance(None).await, (45, 310));
        gate.add_permits(2);
    };
    Box::pin(bank.compact_beside(meanwhile)).await.unwrap();
    assert_eq!(bank.balance(None).await, (60, 0));
    let journal = bank.engine.journal(&id()).await.unwrap();
    assert_eq!((journal.books().conversation().tokens, journal.books().open()), (60, &[][..]));
}

#[tokio::test]
async fn a_summary_by_hand_that_is_not_stored_counts_all_the_same() {
    let gate = Arc::new(Semaphore::new(0));
    let bank = summing_up(&gate, []).await;
    let hides = async {
        bank.engine.hide(&id(), MessageId(Seq::FIRST)).await.unwrap();
        gate.add_permits(2);
    };
    assert!(matches!(bank.compact_beside(hides).await, Err(EngineError::Invalid { .. })));
    assert_eq!(bank.balance(None).await, (45, 0));
    // Where the engine ends, it was stopped before it said anything.
    let bank = summing_up(&gate, []).await;
    let disk = bank.store.another_process();
    let stopped = bank.compact_beside(bank.engine.shutdown()).await;
    assert_eq!(stopped.unwrap_err(), EngineError::ShuttingDown);
    let Balance { spent, reserved } = disk.balance(None, Period::day_of(NOW_MS)).await.unwrap();
    assert_eq!((spent.tokens, reserved.tokens), (40, 0));
}

#[tokio::test]
async fn a_summary_by_hand_whose_process_was_killed_counts_as_all_that_was_reserved() {
    let budgets = || limits([(BudgetKind::UserDay, tokens(10_000))]);
    for turn in [false, true] {
        let bank = summing_up(&Arc::new(Semaphore::new(2)), [says("and then")]).await;
        let doomed = Arc::new(bank.store.doomed_process(Fuse::After(1)));
        bank_on(doomed, &bank.metered, &Arc::new(source()), budgets()).engine.compact(&id(), None).await.unwrap_err();
        assert_eq!(bank.balance(None).await, (30, 310));
        if turn {
            assert_eq!(bank.say("c1", "more").await, completed());
        } else {
            bank.engine.compact(&id(), None).await.unwrap();
        }
        assert_eq!(bank.balance(None).await, (355, 0), "gone on with in a turn: {turn}");
    }
}
