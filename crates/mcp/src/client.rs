//! The client's side of the protocol: what is declared to servers, and what they may ask.

mod elicitation;
mod sampling;

use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ClientConfig, CustomRequest, CustomResult, ElicitationCapability, ErrorCode, ErrorData,
    FormElicitationCapability, Implementation, JsonObject, ProtocolVersion, RootsCapabilities, SamplingCapability,
    UrlElicitationCapability,
};
use rmcp::service::RequestContext;
use rmcp::{ClientHandler, RoleClient};

pub(crate) use elicitation::{question, result as answer_of};
pub(crate) use sampling::{METHOD as SAMPLING, question as sampling_question, result as sampled_of};

use crate::log::{LogOrigin, ServerLog};
use crate::transport::Wire;
use crate::{Granted, app, task};

/// Who we are to servers.
pub(crate) fn me() -> Implementation {
    Implementation::new("turnwright", env!("CARGO_PKG_VERSION"))
}

/// The method by which servers ask for their roots.
pub(crate) const ROOTS: &str = "roots/list";

/// The notice by which a server of the handshake hears that they are others.
pub(crate) const ROOTS_CHANGED: &str = "notifications/roots/list_changed";

/// Answers a server's requests. Pings are answered by `rmcp`; the rest comes here as it was written, see
/// [`is_read_here`].
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) wire: Arc<Wire>,
    pub(crate) log: Arc<ServerLog>,
    pub(crate) granted: Arc<Granted>,
    pub(crate) shows_apps: bool,
    /// What is asked for in a handshake.
    pub(crate) version: ProtocolVersion,
}

/// Whether a request of a server is read here: `rmcp` would give its parts another order, or lose some.
pub(crate) fn is_read_here(method: &str) -> bool {
    matches!(method, elicitation::METHOD | sampling::METHOD | ROOTS)
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let mut elicitation = ElicitationCapability::new();
        elicitation = elicitation.with_form(FormElicitationCapability::default()).with_url(UrlElicitationCapability::default());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(elicitation);
        // The server alone decides whether a call is one (2026-07-28).
        let mut extensions = vec![(task::EXTENSION.to_owned(), JsonObject::new())];
        if self.shows_apps {
            extensions.push((app::EXTENSION.to_owned(), app::declared()));
        }
        capabilities.extensions = Some(extensions.into_iter().collect());
        capabilities.roots = (!self.granted.roots.is_empty()).then(|| {
            let mut roots = RootsCapabilities::default();
            roots.list_changed = Some(true);
            roots
        });
        capabilities.sampling = self.granted.sampling.map(|_| {
            let mut sampling = SamplingCapability::default();
            sampling.tools = Some(JsonObject::new());
            sampling
        });
        ClientConfig::new(capabilities, me()).with_protocol_version(self.version.clone())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, params, .. } = request;
        let answered = match method.as_str() {
            elicitation::METHOD => elicitation::answer(&self.wire, params, &context.ct).await,
            sampling::METHOD => match self.granted.sampling {
                Some(budget) => sampling::answer(&self.wire, budget, params, &context.ct).await,
                None => Err(unknown(&method)),
            },
            ROOTS => self.granted.roots_listed().ok_or_else(|| unknown(&method)),
            _ => Err(unknown(&method)),
        };
        if let Err(error) = &answered {
            self.log.push(LogOrigin::Host, &format!("its request `{method}` was refused: {}", error.message));
        }
        answered.map(CustomResult::new)
    }
}

fn unknown(method: &str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method.to_owned(), None)
}
