//! Locks by name.

use std::time::Duration;

use super::Full;

pub(crate) async fn one_at_a_time_holds_a_lock_whatever_store_it_asked(full: &dyn Full) {
    let (one, other) = (full.open_all().await, full.open_all().await);
    let held = one.lock("a name / with \"signs\"").await.unwrap();
    let _another = other.lock("another name").await.unwrap();
    let waiting = tokio::spawn(async move {
        let second = other.lock("a name / with \"signs\"").await;
        (second.is_ok(), other)
    });
    // It asks in this time, and would have it.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished(), "two have it");
    drop(held);
    let (is_held, _other) = tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("it is let go").unwrap();
    assert!(is_held);
}
