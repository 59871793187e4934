//! Locks by name.

use std::time::Duration;

use super::Full;

pub(crate) async fn one_at_a_time_holds_a_lock_whatever_store_it_asked(full: &dyn Full) {
    let (one, other) = (full.open_all().await, full.open_all().await);
    let held = one.lock("a name / with \"signs\"").await.unwrap();
    let _another = other.lock("another name").await.unwrap();
    let mut waiting = std::pin::pin!(other.lock("a name / with \"signs\""));
    // It asks in this time, and would have it.
    let early = tokio::time::timeout(Duration::from_millis(300), &mut waiting).await;
    assert!(early.is_err(), "two have it");
    drop(held);
    assert!(tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("it is let go").is_ok());
}
