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

pub(crate) async fn documents_are_kept_over_a_restart(full: &dyn Full) {
    let store = full.open_all().await;
    are_kept_by_kind_and_key_replaced_and_removed(&*store).await;
    store.close().await;
    assert_eq!(full.open_all().await.documents("server").await.unwrap(), [document("b", "4")]);
}
