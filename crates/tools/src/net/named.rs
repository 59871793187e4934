//! A service that the operator named.

use std::fmt;

use reqwest::{Client, RequestBuilder, redirect};
use tokio::sync::OnceCell;

use super::answer::{Answer, AnswerLimits};
use super::clients::Clients;
use super::reach::{Failure, built, within};
use super::target::Target;

/// Reaches the services that an operator wrote into the configuration, wherever they are. Redirects are not followed: they
/// would lead to where nobody wanted to go.
pub(crate) struct Named {
    clients: Clients,
    client: OnceCell<Client>,
}

impl Named {
    pub(crate) fn new(clients: Clients) -> Self {
        Self { clients, client: OnceCell::new() }
    }

    /// Sends one request; a redirect is an answer like others.
    pub(crate) async fn send(
        &self,
        target: &Target,
        limits: AnswerLimits,
        request: impl FnOnce(&Client, &Target) -> RequestBuilder,
    ) -> Result<Answer, Failure> {
        let asking = async {
            let make = || built(self.clients.begin().redirect(redirect::Policy::none()), &self.clients);
            let client = self.client.get_or_try_init(make).await?;
            let response = request(client, target).send().await.map_err(|error| Failure::of(&error, &self.clients))?;
            Answer::read(target.clone(), response, limits.max_bytes, &self.clients).await
        };
        within(limits.total, asking).await
    }
}

impl fmt::Debug for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Named").finish_non_exhaustive()
    }
}
