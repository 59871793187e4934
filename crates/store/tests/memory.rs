//! The store in memory that other crates' tests use does what every store must.

use std::sync::Arc;

use async_trait::async_trait;
use turnwright_engine::Store;
use turnwright_testkit::MemoryStore;

#[async_trait]
impl crate::conformance::Backend for MemoryStore {
    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(self.another_process())
    }
}

conformance!(Some(MemoryStore::default()));

#[tokio::test]
async fn documents_are_kept_in_memory() {
    let documents = turnwright_testkit::MemoryDocuments::default();
    crate::conformance::documents::are_kept_by_kind_and_key_replaced_and_removed(&documents).await;
    crate::conformance::documents::those_whose_names_lie_deeper_are_not_among_the_upper(&documents).await;
    crate::conformance::documents::the_first_of_many_who_add_a_document_is_first_for_all(&documents).await;
}
