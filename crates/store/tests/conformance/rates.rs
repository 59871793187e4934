//! What may happen only so often.

use std::time::Duration;

use turnwright_engine::{Admission, Rate};

use super::Full;

pub(crate) async fn what_may_happen_only_so_often_is_counted_over_all_stores_and_a_restart(full: &dyn Full) {
    let stores = [full.open_all().await, full.open_all().await];
    let rate = Rate { most: 5, within: Duration::from_hours(1) };
    let ask = |at: usize| {
        let store = stores[at % 2].clone();
        async move { store.admit("a name / with \"signs\"", rate).await.unwrap() }
    };
    let told = futures_util::future::join_all((0..12).map(ask)).await;
    let count = told.iter().filter(|told| **told == Admission::Counted).count();
    // What was counted, and whose answer was lost, is counted once more.
    assert!(count == 5 || (full.loses_answers() && count < 5), "{told:?}");
    let is_refused = |told: Admission| matches!(told, Admission::NotFor { wait } if !wait.is_zero() && wait <= rate.within);
    for store in stores {
        assert!(is_refused(store.admit("a name / with \"signs\"", rate).await.unwrap()));
        assert_eq!(store.admit("another", Rate { most: 20, ..rate }).await.unwrap(), Admission::Counted);
        store.close().await;
    }
    let again = full.open_all().await;
    assert!(is_refused(again.admit("a name / with \"signs\"", rate).await.unwrap()));
    // What is over counts no more.
    let moment = Rate { within: Duration::from_millis(1), ..rate };
    while again.admit("a name / with \"signs\"", moment).await.unwrap() != Admission::Counted {}
}
