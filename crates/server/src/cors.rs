//! Pages of other sites, where the configuration lets them ask in a browser (the Fetch standard, "HTTP CORS protocol").
//!
//! They are never lent the cookie of somebody who signed in at our page: where people sign in, theirs say who they are with a token.

use std::time::Duration;

use http::HeaderValue;
use http::request::Parts;
use tower_http::cors::{AllowHeaders, AllowMethods, AllowOrigin, AllowPrivateNetwork, Any, CorsLayer};

use crate::guard::is_allowed;

/// How long a browser may remember what it may ask, so that it asks twice no more than now and then.
const REMEMBERED: Duration = Duration::from_secs(600);

/// What browsers are told about pages of these origins; nothing where there are none.
pub(crate) fn layer(allowed: &[String]) -> Option<CorsLayer> {
    let origins = Some(allowed.to_vec()).filter(|allowed| !allowed.is_empty())?;
    let is_one = move |origin: &HeaderValue, _: &Parts| origin.to_str().is_ok_and(|origin| is_allowed(origin, &origins));
    let layer = CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(is_one))
        .allow_methods(AllowMethods::mirror_request())
        .allow_headers(AllowHeaders::mirror_request())
        .allow_private_network(AllowPrivateNetwork::yes())
        .expose_headers(Any)
        .max_age(REMEMBERED);
    Some(layer)
}
