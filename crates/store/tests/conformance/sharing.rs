//! Several stores on the same data.

use std::time::Duration;

use turnwright_core::DriverId;
use turnwright_engine::StoreError;

use super::Backend;
use super::fixtures::{all, append, record, said, stored};

/// Longer than anything here takes, on any machine.
const LONG: Duration = Duration::from_secs(30);

pub(super) async fn a_store_sees_what_another_wrote(backend: &dyn Backend) {
    let (one, other) = (backend.open().await, backend.open().await);
    let first = append("a", 1, vec![said("from one")]);
    let second = append("a", 2, vec![said("from the other")]);

    one.create(record("a", 1)).await.unwrap();
    one.append(first.clone()).await.unwrap();
    assert_eq!(all(&*other, "a").await, stored(&first));
    other.append(second.clone()).await.unwrap();

    let both: Vec<_> = [&first, &second].into_iter().flat_map(stored).collect();
    assert_eq!(all(&*one, "a").await, both);
}

pub(super) async fn a_write_of_another_store_is_noticed(backend: &dyn Backend) {
    let (one, other) = (backend.open().await, backend.open().await);
    one.create(record("a", 1)).await.unwrap();
    let mut writes = one.foreign_writes();

    for at in 1..=3 {
        writes.mark_unchanged();
        other.append(append("a", at, vec![said("x")])).await.unwrap();
        // It may also rise for an earlier write; what counts is that a rise is seen after each.
        tokio::time::timeout(LONG, writes.changed()).await.expect("a rise within the time").unwrap();
    }
}

pub(super) async fn a_driver_is_alive_while_its_store_is_open(backend: &dyn Backend) {
    let (one, other) = (backend.open().await, backend.open().await);
    let names = (one.driver().clone(), other.driver().clone());
    assert_ne!(names.0, names.1);
    for store in [&one, &other] {
        assert_eq!(store.is_alive(&names.0).await, Ok(true));
        assert_eq!(store.is_alive(&names.1).await, Ok(true));
    }

    other.close().await;

    assert_eq!(one.is_alive(&names.0).await, Ok(true));
    assert_eq!(one.is_alive(&names.1).await, Ok(false));
    assert_eq!(other.is_alive(&names.1).await, Ok(false));
}

pub(super) async fn strange_names_are_not_alive(backend: &dyn Backend) {
    let store = backend.open().await;
    let own = store.driver().to_string();
    let names = ["", ".", "../x", "a/b", "\u{0}", "somebody", "00000000000000000000000000000000"];

    for name in names.into_iter().map(str::to_owned).chain([own.to_uppercase() + "x", format!("./{own}")]) {
        assert_eq!(store.is_alive(&DriverId(name.clone())).await, Ok(false), "{name:?}");
    }
}

pub(super) async fn a_closed_store_says_so(backend: &dyn Backend) {
    let store = backend.open().await;
    store.create(record("a", 1)).await.unwrap();
    let (first, second) = tokio::join!(store.close(), store.close());
    assert_eq!((first, second), ((), ()));
    store.close().await;

    let written = store.append(append("a", 1, vec![said("x")])).await;
    let read = store.conversation(&"a".parse().unwrap()).await;

    assert!(matches!(&written, Err(StoreError::Closed)), "{written:?}");
    assert!(matches!(&read, Err(StoreError::Closed)), "{read:?}");
    assert_eq!(backend.open().await.conversation(&"a".parse().unwrap()).await, Ok(Some(record("a", 1))));
}
