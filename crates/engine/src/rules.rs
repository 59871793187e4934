//! The rules that people had remembered, as they were read the last time. They are stored with the decision that they came
//! with; those of a conversation go with it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use turnwright_core::ConversationId;
use turnwright_core::policy::{Policy, Reach, ReadyRule, Remembered, Whose};

use crate::{CONVERSATION_DOCUMENTS, Document, Documents, SideRecord, StoreError};

/// The kind of the documents of rules that belong to no conversation; the key is the rule's name.
const KIND: &str = "approval_rule";

/// The rules. Without documents there are none.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    documents: OnceLock<Arc<dyn Documents>>,
    newest: Mutex<Newest>,
}

#[derive(Debug, Default)]
struct Newest {
    known: Arc<[ReadyRule]>,
    /// What [`crate::Store::foreign_writes`] said when they were read.
    writes: Option<u64>,
    /// How often they became others.
    changes: u64,
}

impl Rules {
    pub(crate) fn keep(&self, documents: Arc<dyn Documents>) {
        if self.documents.set(documents).is_err() {
            tracing::error!("the remembered rules of an engine can be kept in one place");
        }
    }

    pub(crate) fn are_kept(&self) -> bool {
        self.documents.get().is_some()
    }

    /// All of them, the oldest first.
    pub(crate) fn known(&self) -> Arc<[ReadyRule]> {
        self.lock().known.clone()
    }

    /// `configured` with those that hold for a call that is made there.
    pub(crate) fn over(&self, configured: &Policy, whose: Whose<'_>) -> Policy {
        let known = self.known();
        if known.is_empty() { configured.clone() } else { configured.with(known.iter(), whose) }
    }

    /// Reads them again where another process may have written; `writes` is what [`crate::Store::foreign_writes`] said before.
    /// Where they cannot be read, what is known stays.
    pub(crate) async fn refresh_if_written(&self, writes: u64) {
        let Some(documents) = self.documents.get() else { return };
        loop {
            let changes = {
                let newest = self.lock();
                if newest.writes == Some(writes) {
                    return;
                }
                newest.changes
            };
            match read_all(&**documents).await {
                Ok(known) => {
                    if self.replace(changes, known, writes) {
                        return;
                    }
                    // What was taken over while they were read may not be among them.
                }
                Err(error) => {
                    tracing::warn!(%error, "remembered rules cannot be read; what is known stays");
                    return;
                }
            }
        }
    }

    /// Takes over what was read after so many changes; whether there was no other since.
    fn replace(&self, changes: u64, known: Vec<ReadyRule>, writes: u64) -> bool {
        let mut newest = self.lock();
        let is_newest = newest.changes == changes;
        if is_newest {
            *newest = Newest { known: known.into(), writes: Some(writes), changes: changes.wrapping_add(1) };
        }
        is_newest
    }

    /// Takes over what was just stored beside entries.
    pub(crate) fn take(&self, stored: &[(String, Option<String>)]) {
        let mut newest = self.lock();
        let mut known: Vec<ReadyRule> = newest.known.to_vec();
        for (key, body) in stored {
            known.retain(|rule| key_of(&rule.remembered) != *key);
            known.extend(body.as_deref().and_then(|body| read(key, body)));
        }
        newest.known = known.into();
        newest.changes = newest.changes.wrapping_add(1);
    }

    /// Those of a conversation that is gone.
    pub(crate) fn forget(&self, conversation: &ConversationId) {
        let mut newest = self.lock();
        newest.changes = newest.changes.wrapping_add(1);
        if newest.known.iter().any(|rule| rule.remembered.reach.conversation() == Some(conversation)) {
            newest.known = newest
                .known
                .iter()
                .filter(|rule| rule.remembered.reach.conversation() != Some(conversation))
                .cloned()
                .collect();
        }
    }

    /// Stores a rule that comes with no decision.
    pub(crate) async fn put(&self, rule: &ReadyRule) -> Result<(), StoreError> {
        let Some(documents) = self.documents.get() else { return Err(nowhere()) };
        let (kind, key, body) = written(&rule.remembered)?;
        documents.put_document(kind, Document { key: key.clone(), body: body.clone() }).await?;
        self.take(&[(key, Some(body))]);
        Ok(())
    }

    pub(crate) async fn remove(&self, rule: &Remembered) -> Result<(), StoreError> {
        let Some(documents) = self.documents.get() else { return Err(nowhere()) };
        let key = key_of(rule);
        documents.remove_document(kind_of(rule), &key).await?;
        self.take(&[(key, None)]);
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Newest> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The record that stores a rule together with entries.
pub(crate) fn beside(rule: &Remembered) -> Result<SideRecord, StoreError> {
    let (kind, key, body) = written(rule)?;
    Ok(SideRecord::Document { kind: kind.to_owned(), key, body: Some(body) })
}

/// The record that removes one.
pub(crate) fn without(rule: &Remembered) -> SideRecord {
    SideRecord::Document { kind: kind_of(rule).to_owned(), key: key_of(rule), body: None }
}

/// Whether documents of this kind are rules.
pub(crate) fn is_rule(kind: &str) -> bool {
    kind == KIND || kind == CONVERSATION_DOCUMENTS
}

fn written(rule: &Remembered) -> Result<(&'static str, String, String), StoreError> {
    let body = serde_json::to_string(rule)
        .map_err(|error| StoreError::Damaged { what: format!("the rule `{}`", rule.id), reason: error.to_string() })?;
    Ok((kind_of(rule), key_of(rule), body))
}

fn kind_of(rule: &Remembered) -> &'static str {
    match rule.reach {
        Reach::Turn(..) | Reach::Conversation(_) => CONVERSATION_DOCUMENTS,
        Reach::User(_) | Reach::Everyone => KIND,
    }
}

fn key_of(rule: &Remembered) -> String {
    match rule.reach.conversation() {
        Some(conversation) => format!("{conversation}/{}", rule.id),
        None => rule.id.clone(),
    }
}

async fn read_all(documents: &dyn Documents) -> Result<Vec<ReadyRule>, StoreError> {
    let mut all = documents.documents(KIND).await?;
    // Others are kept beside conversations too, under longer names, and may be large.
    all.extend(documents.upper_documents(CONVERSATION_DOCUMENTS).await?);
    let mut rules: Vec<ReadyRule> = all.iter().filter_map(|document| read(&document.key, &document.body)).collect();
    rules.sort_by(|a, b| (a.remembered.at_ms, &a.remembered.id).cmp(&(b.remembered.at_ms, &b.remembered.id)));
    Ok(rules)
}

fn read(key: &str, body: &str) -> Option<ReadyRule> {
    let read = serde_json::from_str::<Remembered>(body).map_err(|error| error.to_string());
    match read.and_then(|rule| ReadyRule::new(rule).map_err(|error| error.to_string())) {
        Ok(rule) => Some(rule),
        Err(error) => {
            tracing::warn!(key, error, "a remembered rule cannot be read and does not hold");
            None
        }
    }
}

fn nowhere() -> StoreError {
    StoreError::Unusable { reason: "nothing is remembered here".to_owned() }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use tokio::sync::Notify;

    use super::*;

    /// Documents whose first list is what it was before anything was stored, and comes once it is let go.
    #[derive(Debug, Default)]
    struct Late {
        stored: Mutex<Vec<Document>>,
        lists: Mutex<u32>,
        is_asked: Notify,
        goes_on: Notify,
    }

    #[async_trait]
    impl Documents for Late {
        async fn document(&self, _kind: &str, _key: &str) -> Result<Option<Document>, StoreError> {
            Ok(None)
        }

        async fn documents(&self, kind: &str) -> Result<Vec<Document>, StoreError> {
            if kind != CONVERSATION_DOCUMENTS {
                return Ok(Vec::new());
            }
            let found = self.stored.lock().unwrap().clone();
            let is_first = std::mem::replace(&mut *self.lists.lock().unwrap(), 1) == 0;
            if is_first {
                self.is_asked.notify_one();
                self.goes_on.notified().await;
            }
            Ok(found)
        }

        async fn put_document(&self, _kind: &str, document: Document) -> Result<(), StoreError> {
            self.stored.lock().unwrap().push(document);
            Ok(())
        }

        async fn add_document(&self, kind: &str, document: Document) -> Result<(), StoreError> {
            self.put_document(kind, document).await
        }

        async fn change_document(&self, _kind: &str, of: &Document, _body: Option<String>) -> Result<(), StoreError> {
            Err(of.altered())
        }

        async fn remove_document(&self, _kind: &str, _key: &str) -> Result<(), StoreError> {
            self.stored.lock().unwrap().clear();
            Ok(())
        }
    }

    fn remembered() -> Remembered {
        let rule = serde_json::from_value(serde_json::json!({"tool": "shell__*", "action": "deny"})).unwrap();
        Remembered { id: "rule_1".into(), reach: Reach::Conversation("c".parse().unwrap()), rule, at_ms: 1 }
    }

    fn rule() -> ReadyRule {
        ReadyRule::new(remembered()).unwrap()
    }

    #[tokio::test]
    async fn a_rule_that_is_remembered_while_all_are_read_stays_known() {
        let documents = Arc::new(Late::default());
        let rules = Rules::default();
        rules.keep(documents.clone());
        let remember = async {
            documents.is_asked.notified().await;
            rules.put(&rule()).await.unwrap();
            documents.goes_on.notify_one();
        };
        tokio::join!(rules.refresh_if_written(1), remember);
        assert_eq!(rules.known().iter().map(|rule| &rule.remembered).collect::<Vec<_>>(), [&remembered()]);
    }

    #[tokio::test]
    async fn a_rule_that_is_removed_while_all_are_read_stays_gone() {
        let documents = Arc::new(Late::default());
        let rules = Rules::default();
        rules.keep(documents.clone());
        rules.put(&rule()).await.unwrap();
        let remove = async {
            documents.is_asked.notified().await;
            rules.remove(&remembered()).await.unwrap();
            documents.goes_on.notify_one();
        };
        tokio::join!(rules.refresh_if_written(1), remove);
        assert_eq!(rules.known().len(), 0);
    }
}
