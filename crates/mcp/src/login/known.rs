//! Tokens that are known as secrets from when they are kept or read: a server that repeats one says `[secret]`.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use turnwright_engine::KnownSecrets;

use super::TokenStore;

/// The members of what is kept that are secrets.
const NAMES: [&str; 4] = ["access_token", "refresh_token", "id_token", "client_secret"];

/// A store whose secrets become known.
#[derive(Debug, Clone)]
pub(crate) struct KnownTokens {
    store: Arc<dyn TokenStore>,
    known: KnownSecrets,
}

impl KnownTokens {
    /// What `store` keeps is hidden by whoever looks into `known`.
    pub(crate) fn new(store: Arc<dyn TokenStore>, known: KnownSecrets) -> Self {
        Self { store, known }
    }

    fn learn(&self, text: &str) {
        if let Ok(kept) = serde_json::from_str::<Value>(text) {
            let mut found = Vec::new();
            collect(&kept, &mut found);
            self.known.learn(found);
        }
    }
}

fn collect<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if NAMES.contains(&name.as_str()) => found.push(text),
                    other => collect(other, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[async_trait]
impl TokenStore for KnownTokens {
    async fn load(&self, name: &str) -> io::Result<Option<String>> {
        let text = self.store.load(name).await?;
        if let Some(text) = &text {
            self.learn(text);
        }
        Ok(text)
    }

    async fn save(&self, name: &str, text: &str) -> io::Result<()> {
        self.learn(text);
        self.store.save(name, text).await
    }

    async fn remove(&self, name: &str) -> io::Result<bool> {
        self.store.remove(name).await
    }

    async fn lock(&self, name: &str) -> io::Result<Box<dyn Send + Sync>> {
        self.store.lock(name).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileTokens;

    #[tokio::test]
    async fn what_is_kept_and_what_is_read_is_hidden_from_then_on() {
        let folder = tempfile::tempdir().unwrap();
        let kept = r#"{"credentials":{"token_response":{"access_token":"at-0123456789","refresh_token":"rt-0123456789","scope":"everything-there-is"}}}"#;
        let said = "at-0123456789 rt-0123456789 everything-there-is";
        let hidden = "[secret] [secret] everything-there-is";
        let first = KnownSecrets::default();
        let store: Arc<dyn TokenStore> = Arc::new(FileTokens::new(folder.path().join("tokens")));
        KnownTokens::new(store.clone(), first.clone()).save("one", kept).await.unwrap();
        assert_eq!(first.now().hide(said), hidden);
        let second = KnownSecrets::default();
        assert_eq!(second.now().hide(said), said);
        assert_eq!(KnownTokens::new(store, second.clone()).load("one").await.unwrap().as_deref(), Some(kept));
        assert_eq!(second.now().hide(said), hidden);
    }
}
