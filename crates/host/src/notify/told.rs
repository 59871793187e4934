//! Up to which entry of a conversation a channel was told; kept beside the conversation, and gone with it.

use serde::{Deserialize, Serialize};
use turnwright_core::{ConversationId, UserId};
use turnwright_engine::{CONVERSATION_DOCUMENTS, Document, Documents, Engine, EngineError, StoreError};

#[derive(Debug, Serialize, Deserialize)]
struct Told {
    until: u64,
}

fn key(conversation: &ConversationId, channel: &str) -> String {
    format!("{conversation}/told/{channel}")
}

/// The last entry of which the channel was told; 0 where it was told of none.
pub(super) async fn told(documents: &dyn Documents, conversation: &ConversationId, channel: &str) -> Result<u64, StoreError> {
    let document = documents.document(CONVERSATION_DOCUMENTS, &key(conversation, channel)).await?;
    // What cannot be read is told again.
    let told = document.and_then(|document| serde_json::from_str::<Told>(&document.body).ok());
    Ok(told.map_or(0, |told| told.until))
}

/// Keeps that the channel was told.
pub(super) async fn keep(
    (documents, engine): (&dyn Documents, &Engine),
    (conversation, owner): (&ConversationId, &UserId),
    channel: &str,
    until: u64,
) -> Result<(), StoreError> {
    let key = key(conversation, channel);
    let body = serde_json::json!({ "until": until }).to_string();
    documents.put_document(CONVERSATION_DOCUMENTS, Document { key: key.clone(), body }).await?;
    // Deleted meanwhile: another one of its name begins anew.
    match engine.acting_for(owner.clone()).conversation(conversation).await {
        Err(EngineError::NotFound { .. }) => documents.remove_document(CONVERSATION_DOCUMENTS, &key).await,
        Ok(_) | Err(_) => Ok(()),
    }
}
