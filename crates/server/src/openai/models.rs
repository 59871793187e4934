//! Models by the names that clients of OpenAI's APIs use.

use std::time::Duration;

use futures_util::future::join_all;
use http::StatusCode;
use turnwright_api::openai::OpenAiModel;
use turnwright_core::ModelRef;
use turnwright_engine::{Engine, ModelInfo};

use crate::error::ApiError;

/// How long a provider may take to list its models.
const MODELS_TIME: Duration = Duration::from_secs(10);

/// All providers, which are asked at once, each with its models or why they are not known.
pub(crate) async fn listed(engine: &Engine) -> Vec<(String, Result<Vec<ModelInfo>, String>)> {
    let providers = engine.providers();
    let names = providers.names();
    let asked = names.iter().map(|name| async move {
        let provider = providers.get(name).map_err(|failure| failure.to_string())?;
        match tokio::time::timeout(MODELS_TIME, provider.models()).await {
            Ok(models) => models.map_err(|failure| failure.to_string()),
            Err(_) => Err(format!("the provider did not list its models within {} s", MODELS_TIME.as_secs())),
        }
    });
    let answers = join_all(asked).await;
    names.into_iter().zip(answers).collect()
}

/// Every model that is known.
pub(crate) async fn all(engine: &Engine) -> Vec<OpenAiModel> {
    let listed = listed(engine).await;
    listed
        .into_iter()
        .flat_map(|(provider, models)| models.unwrap_or_default().into_iter().map(move |model| one(&provider, &model.id)))
        .collect()
}

/// A model as this API tells it.
pub(crate) fn one(provider: &str, model: &str) -> OpenAiModel {
    OpenAiModel { id: format!("{provider}/{model}"), object: "model".to_owned(), created: 0, owned_by: provider.to_owned() }
}

/// The model of this name: `PROVIDER/MODEL`; a model's own name, where a provider lists it; `default`, or nothing, for the
/// default model.
///
/// # Errors
/// 404, where there is none.
pub(crate) async fn named(engine: &Engine, name: Option<&str>) -> Result<ModelRef, ApiError> {
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(engine.defaults().model.clone()) };
    if let Ok(model) = name.parse::<ModelRef>()
        && engine.providers().names().iter().any(|known| known == model.provider())
    {
        return match engine.providers().get(model.provider()) {
            Ok(_) => Ok(model),
            Err(failure) => Err(none(name, Some(&failure.message))),
        };
    }
    if engine.defaults().model.model() == name {
        return Ok(engine.defaults().model.clone());
    }
    let found = listed(engine).await.into_iter().find_map(|(provider, models)| {
        models.ok()?.iter().any(|model| model.id == name).then(|| ModelRef::new(provider, name))
    });
    match found {
        Some(model) => Ok(model),
        None if name == "default" => Ok(engine.defaults().model.clone()),
        None => Err(none(name, None)),
    }
}

/// There is no such model.
pub(crate) fn none(name: &str, why: Option<&str>) -> ApiError {
    let name: String = name.chars().take(200).collect();
    let why = why.map_or_else(|| "GET /v1/models lists those that there are".to_owned(), str::to_owned);
    let detail = format!("the model `{name}` does not exist: {why}");
    ApiError::new(StatusCode::NOT_FOUND, "model_not_found", detail).about("model")
}
