//! Files that earlier messages of a history name: what they hold is put in their place before the history is taken over, as it is in
//! what is said now.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use turnwright_core::{ContentBlock, EmbeddedResource};

use super::history::{History, Item, Messages, Said};
use crate::attached::{Attached, named};
use crate::error::ApiError;
use crate::state::ServerState;

/// Brings the files in. They are to be kept with the conversation that has the history then.
///
/// # Errors
/// As for those of a message, about `messages`: one is not there, or they are more than a request may bring.
pub(super) async fn bring(state: &ServerState, history: &mut History) -> Result<Attached, ApiError> {
    let naming = history.before_users_mut().filter(|item| names_files(item));
    let mut naming: Vec<&mut Item> = naming.map(Arc::make_mut).collect();
    if naming.is_empty() {
        return Ok(Attached::default());
    }
    // All at once: together they are no more than one message may bring.
    let mut contents: Vec<ContentBlock> = naming.iter().flat_map(|item| content_of(item)).cloned().collect();
    let about_all = |error: ApiError| if error.param().is_some() { error.about("messages") } else { error };
    let attached = Attached::resolve(state, &mut contents).await.map_err(about_all)?;
    let mut contents = contents.into_iter();
    for item in &mut naming {
        let content: Vec<ContentBlock> = contents.by_ref().take(content_of(item).len()).collect();
        let parts: Vec<Value> = content.iter().map(part).collect();
        item.messages = Messages::Made(vec![json!({"role": "user", "content": parts})]);
        item.said = Said::User(content);
    }
    Ok(attached)
}

fn content_of(item: &Item) -> &[ContentBlock] {
    match &item.said {
        Said::User(content) => content,
        _ => &[],
    }
}

fn names_files(item: &Item) -> bool {
    content_of(item).iter().any(|block| matches!(block, ContentBlock::ResourceLink { uri, .. } if named(uri).is_some()))
}

/// A block as a part of a message of Chat Completions.
fn part(block: &ContentBlock) -> Value {
    match block {
        ContentBlock::Image { data, mime_type } => {
            json!({"type": "image_url", "image_url": {"url": format!("data:{mime_type};base64,{data}")}})
        }
        ContentBlock::Audio { data, mime_type } => {
            let format = mime_type.strip_prefix("audio/").unwrap_or(mime_type);
            json!({"type": "input_audio", "input_audio": {"data": data, "format": format}})
        }
        ContentBlock::Resource { resource: EmbeddedResource { uri, mime_type, text, blob } } => {
            let name = uri.strip_prefix("file:///").unwrap_or(uri);
            let kind = mime_type.as_deref().unwrap_or("text/plain");
            let data = blob.clone().unwrap_or_else(|| STANDARD.encode(text.as_deref().unwrap_or_default()));
            json!({"type": "file", "file": {"filename": name, "file_data": format!("data:{kind};base64,{data}")}})
        }
        ContentBlock::Text { .. } | ContentBlock::ResourceLink { .. } => json!({"type": "text", "text": block.as_text()}),
    }
}
