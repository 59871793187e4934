//! Files that a message names: what the model is given is in the message itself, so that it stays what it was whatever
//! becomes of the file.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use turnwright_core::{ContentBlock, ConversationId, EmbeddedResource, changes_direction};
use turnwright_engine::artifacts::{Artifact, Artifacts, is_artifact_id, linked_artifact};

use crate::error::ApiError;
use crate::state::ServerState;

/// Where an artifact is found.
const ROUTE: &str = "/api/v1/artifacts/";

/// The artifact that an address names: where it is found, or as results name it.
pub(crate) fn named(uri: &str) -> Option<&str> {
    let at_its_route = || uri.rsplit_once(ROUTE).map(|(_, id)| id).filter(|id| is_artifact_id(id));
    linked_artifact(uri).or_else(at_its_route)
}

/// The name of a file without what is not seen in it: control characters, and those by which it would look like another.
pub(crate) fn shown_name(name: &str) -> String {
    name.chars().filter(|letter| !letter.is_control() && !changes_direction(*letter)).collect()
}

/// The files of a message.
#[derive(Debug, Default)]
pub(crate) struct Attached(Vec<String>);

impl Attached {
    /// Puts what artifacts hold in the place of links to them.
    ///
    /// # Errors
    /// 422, where one of them is not there for the caller, or a link to one names none, about its number in the content; 413 for too many,
    /// and where they come to more than a request may bring.
    pub(crate) async fn resolve(state: &ServerState, content: &mut [ContentBlock]) -> Result<Self, ApiError> {
        // A link is small and what it names is large.
        state.engine().admits(content)?;
        let most = state.options().body_limit_bytes;
        let (mut ids, mut bytes) = (Vec::new(), 0_usize);
        for (at, block) in content.iter_mut().enumerate() {
            let ContentBlock::ResourceLink { uri, .. } = block else { continue };
            let Some(id) = named(uri) else {
                if uri.contains(ROUTE) {
                    let what = format!("`{uri}` names no file; the id of one is `art_` and 32 of the signs 0-9 and a-f");
                    return Err(ApiError::invalid(what).about(at.to_string()));
                }
                continue;
            };
            let id = id.to_owned();
            let owner = state.caller().user();
            let artifacts = state.artifacts().map_err(|error| error.about(at.to_string()))?;
            let found = artifacts.artifact(owner, &id).await?;
            let missing = || ApiError::invalid(format!("there is no file `{id}`; it may have expired")).about(at.to_string());
            let found = found.ok_or_else(missing)?;
            bytes = bytes.saturating_add(usize::try_from(found.bytes).unwrap_or(usize::MAX));
            if bytes > most {
                let what =
                    format!("the files of the message are more than {most} bytes together; send them in several messages");
                return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "attachment_too_large", what));
            }
            *block = held(&**artifacts, &found).await.map_err(|error| error.about(at.to_string()))?;
            ids.push(id);
        }
        Ok(Self(ids))
    }

    /// Notes that the conversation holds them, once the message is stored.
    pub(crate) async fn keep(self, state: &ServerState, conversation: &ConversationId) {
        for id in self.0 {
            let Ok(artifacts) = state.artifacts() else { return };
            if let Err(error) = artifacts.use_artifact(state.caller().user(), &id, conversation).await {
                // What it holds is in the message; only its address stops to work after a day.
                tracing::warn!(artifact = id, %conversation, %error, "an artifact is not kept with its conversation");
            }
        }
    }
}

/// A file as a block of a message.
async fn held(artifacts: &dyn Artifacts, artifact: &Artifact) -> Result<ContentBlock, ApiError> {
    let mut bytes = Vec::with_capacity(usize::try_from(artifact.bytes).unwrap_or_default());
    for index in 0.. {
        let Some(piece) = artifacts.piece(&artifact.owner, &artifact.id, index).await? else { break };
        bytes.extend_from_slice(&piece);
    }
    let mime_type = artifact.media_type.clone();
    if mime_type.starts_with("image/") {
        return Ok(ContentBlock::Image { data: STANDARD.encode(&bytes), mime_type });
    }
    let (text, blob) = if mime_type == "application/pdf" {
        (None, Some(STANDARD.encode(&bytes)))
    } else {
        let text = String::from_utf8(bytes).map_err(|_| ApiError::invalid(format!("`{}` is not text", artifact.name)))?;
        (Some(text), None)
    };
    let uri = format!("file:///{}", artifact.name);
    Ok(ContentBlock::Resource { resource: EmbeddedResource { uri, mime_type: Some(mime_type), text, blob } })
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn an_address_names_an_artifact_wherever_the_server_is() {
        let id = format!("art_{}", "0a".repeat(16));
        for before in ["", "https://example.org/turnwright", "http://localhost:8700"] {
            assert_eq!(named(&format!("{before}/api/v1/artifacts/{id}")), Some(&*id));
        }
        for other in ["file:///a", "/api/v1/artifacts/", "/api/v1/artifacts/art_1", &format!("/api/v1/artifacts/{id}/x")] {
            assert_eq!(named(other), None);
        }
    }
}
