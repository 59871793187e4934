//! Documents.

use turnwright_engine::{Document, Documents};

use super::Full;

pub(crate) fn document(key: &str, body: &str) -> Document {
    Document { key: key.into(), body: body.into() }
}

pub(crate) async fn are_kept_by_kind_and_key_replaced_and_removed(documents: &dyn Documents) {
    for (kind, key, body) in [("server", "b", "1"), ("server", "a", "2"), ("pin", "a", "3"), ("server", "b", "4")] {
        documents.put_document(kind, document(key, body)).await.unwrap();
    }
    assert_eq!(documents.document("server", "b").await.unwrap(), Some(document("b", "4")));
    assert_eq!(documents.documents("server").await.unwrap(), [document("a", "2"), document("b", "4")]);
    documents.remove_document("server", "a").await.unwrap();
    documents.remove_document("server", "nobody").await.unwrap();
    assert_eq!(documents.documents("server").await.unwrap(), [document("b", "4")]);
    assert_eq!(documents.documents("pin").await.unwrap(), [document("a", "3")]);
    assert_eq!(documents.document("other", "a").await.unwrap(), None);
}

pub(crate) async fn those_whose_names_lie_deeper_are_not_among_the_upper(documents: &dyn Documents) {
    for key in ["a", "a/b", "a/b/c", "a/once/b/c", "b/a"] {
        documents.put_document("deep", document(key, "1")).await.unwrap();
    }
    let upper = documents.upper_documents("deep").await.unwrap();
    assert_eq!(upper, [document("a", "1"), document("a/b", "1"), document("b/a", "1")]);
    assert_eq!(documents.documents("deep").await.unwrap().len(), 5);
}

pub(crate) async fn the_first_of_many_who_add_a_document_is_first_for_all(documents: &dyn Documents) {
    let bodies = ["1", "2", "3", "4"];
    let add = |body| async move {
        documents.add_document("first", document("a", body)).await.unwrap();
        documents.document("first", "a").await.unwrap().unwrap().body
    };
    let read = futures_util::future::join_all(bodies.map(add)).await;
    assert!(bodies.contains(&read[0].as_str()) && read.iter().all(|body| *body == read[0]), "{read:?}");
    documents.add_document("first", document("b", "5")).await.unwrap();
    assert_eq!(documents.documents("first").await.unwrap(), [document("a", &read[0]), document("b", "5")]);
}

pub(crate) async fn the_first_of_many_who_add_a_document_is_first_in_a_store(full: &dyn Full) {
    let store = full.open_all().await;
    the_first_of_many_who_add_a_document_is_first_for_all(&*store).await;
}

pub(crate) async fn upper_documents_are_told_from_the_rest_in_a_store(full: &dyn Full) {
    let store = full.open_all().await;
    those_whose_names_lie_deeper_are_not_among_the_upper(&*store).await;
}

pub(crate) async fn of_several_processes_that_add_a_document_at_once_one_is_first_for_all(full: &dyn Full) {
    let stores = [full.open_all().await, full.open_all().await];
    for round in 0..20 {
        let key = format!("round{round}");
        let take = |at: usize| {
            let (store, key, body) = (stores[at % 2].clone(), key.clone(), at.to_string());
            async move {
                store.add_document("taken", document(&key, &body)).await.unwrap();
                store.document("taken", &key).await.unwrap().unwrap().body == body
            }
        };
        let first = futures_util::future::join_all((0..6).map(take)).await;
        assert_eq!(first.iter().filter(|is_first| **is_first).count(), 1, "{first:?}");
    }
}

pub(crate) async fn a_document_is_changed_by_whoever_saw_what_it_is(full: &dyn Full) {
    let stores = [full.open_all().await, full.open_all().await];
    let (seen, altered) = (document("a", "1"), Err(document("a", "1").altered()));
    assert_eq!(stores[0].change_document("seen", &seen, Some("2".to_owned())).await, altered, "there is none");
    for round in 0..20 {
        stores[0].put_document("seen", seen.clone()).await.unwrap();
        let to = |body: &str| (round % 2 == 0).then(|| body.to_owned());
        let done =
            tokio::join!(stores[0].change_document("seen", &seen, to("2")), stores[1].change_document("seen", &seen, to("3")));
        // Who does not hear whether it removed it, and finds it gone, takes it for its own.
        let done_by = [&done.0, &done.1].into_iter().filter(|done| done.is_ok()).count();
        assert!(done_by == 1 || (done_by == 2 && round % 2 == 1), "round {round}: {done:?}");
        assert!(done_by == 2 || done.0 == altered || done.1 == altered, "round {round}: {done:?}");
        let found = stores[1].document("seen", "a").await.unwrap().map(|found| found.body);
        assert_eq!(found, to(if done.0.is_ok() { "2" } else { "3" }), "round {round}");
    }
}

pub(crate) async fn documents_are_kept_over_a_restart(full: &dyn Full) {
    let store = full.open_all().await;
    are_kept_by_kind_and_key_replaced_and_removed(&*store).await;
    store.close().await;
    assert_eq!(full.open_all().await.documents("server").await.unwrap(), [document("b", "4")]);
}
