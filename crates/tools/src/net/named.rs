//! A service that the operator named.

use std::fmt;

use reqwest::{Client, RequestBuilder, redirect};
use tokio::sync::OnceCell;

use super::answer::{Answer, AnswerLimits};
use super::reach::{Failure, MakeClient, built, within};
use super::target::Target;

/// Reaches the services that an operator wrote into the configuration, wherever they are. Redirects are not followed: they
/// would lead to where nobody wanted to go.
pub(crate) struct Named {
    make: MakeClient,
    client: OnceCell<Client>,
}

impl Named {
    pub(crate) fn new(make: MakeClient) -> Self {
        Self { make, client: OnceCell::new() }
    }

    /// Sends one request; a redirect is an answer like others.
    pub(crate) async fn send(
        &self,
        target: &Target,
        limits: AnswerLimits,
        request: impl FnOnce(&Client, &Target) -> RequestBuilder,
    ) -> Result<Answer, Failure> {
        let asking = async {
            let client = self.client.get_or_try_init(|| built((self.make)().redirect(redirect::Policy::none()))).await?;
            let response = request(client, target).send().await.map_err(|error| Failure::of(&error))?;
            Answer::read(target.clone(), response, limits.max_bytes).await
        };
        within(limits.total, asking).await
    }
}

impl fmt::Debug for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Named").finish_non_exhaustive()
    }
}
