//! Asking a provider: one that fails inside has failed, and takes no turn with it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::StreamExt;
use turnwright_core::prompt::Prompt;
use turnwright_core::{ModelRef, ProviderFailure, ProviderFailureKind};

use crate::{ModelStream, Provider};

/// As [`Provider::call`], where a panic is a failure like any other, in the call and in what it streams.
pub(crate) fn ask(provider: &dyn Provider, model: &ModelRef, prompt: &Prompt<'_>) -> Result<ModelStream, ProviderFailure> {
    let fault = fault(model.provider());
    let called = catch_unwind(AssertUnwindSafe(|| provider.call(model.model(), prompt)));
    let stream = called.unwrap_or_else(|_| Err(fault.clone()))?;
    let caught = AssertUnwindSafe(stream).catch_unwind();
    Ok(Box::pin(caught.map(move |said| said.unwrap_or_else(|_| Err(fault.clone())))))
}

fn fault(provider: &str) -> ProviderFailure {
    let message = format!("the provider `{provider}` failed inside; this is a fault of the provider");
    ProviderFailure::new(ProviderFailureKind::Server, message)
}
