//! The client's side of the protocol: what is declared to servers, and what they may ask.

mod elicitation;

use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ClientConfig, CustomRequest, CustomResult, ElicitationCapability, ErrorCode, ErrorData,
    FormElicitationCapability, Implementation, ProtocolVersion, UrlElicitationCapability,
};
use rmcp::service::RequestContext;
use rmcp::{ClientHandler, RoleClient};

pub(crate) use elicitation::{question, result as answer_of};

use crate::log::{LogOrigin, ServerLog};
use crate::transport::Wire;

/// Who we are to servers.
pub(crate) fn me() -> Implementation {
    Implementation::new("turnwright", env!("CARGO_PKG_VERSION"))
}

/// Answers a server's requests. Pings are answered by `rmcp`; the rest comes here as it was written, see
/// [`is_read_here`].
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) wire: Arc<Wire>,
    pub(crate) log: Arc<ServerLog>,
}

/// Whether a request of a server is read here: `rmcp` would give its parts another order, or lose some.
pub(crate) fn is_read_here(method: &str) -> bool {
    matches!(method, elicitation::METHOD)
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let mut elicitation = ElicitationCapability::new();
        elicitation = elicitation.with_form(FormElicitationCapability::default()).with_url(UrlElicitationCapability::default());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(elicitation);
        ClientConfig::new(capabilities, me()).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, params, .. } = request;
        let answered = match method.as_str() {
            elicitation::METHOD => elicitation::answer(&self.wire, params, &context.ct).await,
            _ => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method.clone(), None)),
        };
        if let Err(error) = &answered {
            self.log.push(LogOrigin::Host, &format!("its request `{method}` was refused: {}", error.message));
        }
        answered.map(CustomResult::new)
    }
}
