//! Documents in memory.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use turnwright_engine::{Document, Documents, StoreError};

/// Remembers documents as long as it lives. The store's tests run over it too.
#[derive(Debug, Default)]
pub struct MemoryDocuments(Mutex<BTreeMap<(String, String), String>>);

impl MemoryDocuments {
    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<(String, String), String>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl Documents for MemoryDocuments {
    async fn document(&self, kind: &str, key: &str) -> Result<Option<Document>, StoreError> {
        let name = (kind.to_owned(), key.to_owned());
        Ok(self.with(|all| all.get(&name).map(|body| Document { key: name.1.clone(), body: body.clone() })))
    }

    async fn documents(&self, kind: &str) -> Result<Vec<Document>, StoreError> {
        let of_kind = |all: &mut BTreeMap<(String, String), String>| {
            let found = all.iter().filter(|((of, _), _)| of == kind);
            found.map(|((_, key), body)| Document { key: key.clone(), body: body.clone() }).collect()
        };
        Ok(self.with(of_kind))
    }

    async fn put_document(&self, kind: &str, document: Document) -> Result<(), StoreError> {
        self.with(|all| all.insert((kind.to_owned(), document.key), document.body));
        Ok(())
    }

    async fn add_document(&self, kind: &str, document: Document) -> Result<(), StoreError> {
        self.with(|all| {
            all.entry((kind.to_owned(), document.key)).or_insert(document.body);
        });
        Ok(())
    }

    async fn change_document(&self, kind: &str, of: &Document, body: Option<String>) -> Result<(), StoreError> {
        let name = (kind.to_owned(), of.key.clone());
        self.with(|all| {
            if all.get(&name) != Some(&of.body) {
                return Err(of.altered());
            }
            match body {
                Some(body) => all.insert(name, body),
                None => all.remove(&name),
            };
            Ok(())
        })
    }

    async fn remove_document(&self, kind: &str, key: &str) -> Result<(), StoreError> {
        self.with(|all| all.remove(&(kind.to_owned(), key.to_owned())));
        Ok(())
    }
}
