//! Vectors of texts, as each API gives them. Pure.

use serde::Deserialize;
use serde_json::{Value, json};

/// The largest answer that is read, in bytes.
pub const MAX_EMBEDDINGS_BYTES: usize = 64 * 1024 * 1024;

/// What is posted to have texts turned into vectors.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddingsRequest {
    /// The path below the endpoint's base address.
    pub path: String,
    /// The body, JSON.
    pub body: Value,
}

/// An API's own form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    OpenAi,
    Ollama,
    Gemini,
}

impl Form {
    fn of(dialect: &str) -> Result<Self, String> {
        match dialect {
            "openai-chat" | "openai-responses" => Ok(Self::OpenAi),
            "ollama" => Ok(Self::Ollama),
            "gemini" => Ok(Self::Gemini),
            other => Err(format!("the API `{other}` makes no vectors; name a provider with another dialect")),
        }
    }
}

/// The request to an endpoint of this dialect.
///
/// # Errors
/// Where the API has nothing of the kind, in words for people.
pub fn request(dialect: &str, model: &str, texts: &[String]) -> Result<EmbeddingsRequest, String> {
    Ok(match Form::of(dialect)? {
        Form::OpenAi => EmbeddingsRequest { path: "/embeddings".to_owned(), body: json!({"model": model, "input": texts}) },
        Form::Ollama => EmbeddingsRequest { path: "/api/embed".to_owned(), body: json!({"model": model, "input": texts}) },
        Form::Gemini => {
            let name = format!("models/{}", model.strip_prefix("models/").unwrap_or(model));
            let each = |text: &String| json!({"model": name, "content": {"parts": [{"text": text}]}});
            let requests: Vec<Value> = texts.iter().map(each).collect();
            EmbeddingsRequest { path: format!("/{name}:batchEmbedContents"), body: json!({ "requests": requests }) }
        }
    })
}

#[derive(Deserialize)]
struct OpenAi {
    data: Vec<Indexed>,
}

#[derive(Deserialize)]
struct Indexed {
    index: Option<usize>,
    embedding: Vec<f32>,
}

#[derive(Deserialize)]
struct Ollama {
    embeddings: Vec<Vec<f32>>,
}

#[derive(Deserialize)]
struct Gemini {
    embeddings: Vec<Values>,
}

#[derive(Deserialize)]
struct Values {
    values: Vec<f32>,
}

/// The vectors of an answer, in the order of the texts, of which there were `count`.
///
/// # Errors
/// What is wrong with the answer, in words for people.
pub fn read(dialect: &str, body: &[u8], count: usize) -> Result<Vec<Vec<f32>>, String> {
    let wrong = |error: serde_json::Error| format!("its answer is not what the API promises: {error}");
    let vectors: Vec<Vec<f32>> = match Form::of(dialect)? {
        Form::OpenAi => {
            let mut data = serde_json::from_slice::<OpenAi>(body).map_err(wrong)?.data;
            // Where each says its place that counts, whatever order they come in.
            if data.iter().all(|one| one.index.is_some()) {
                data.sort_by_key(|one| one.index);
            }
            data.into_iter().map(|one| one.embedding).collect()
        }
        Form::Ollama => serde_json::from_slice::<Ollama>(body).map_err(wrong)?.embeddings,
        Form::Gemini => {
            let embeddings = serde_json::from_slice::<Gemini>(body).map_err(wrong)?.embeddings;
            embeddings.into_iter().map(|one| one.values).collect()
        }
    };
    let length = vectors.first().map_or(0, Vec::len);
    if vectors.len() != count {
        return Err(format!("it gave {} vectors for {count} texts", vectors.len()));
    }
    if count > 0 && (length == 0 || vectors.iter().any(|vector| vector.len() != length)) {
        return Err("its vectors are empty or of several lengths".to_owned());
    }
    if vectors.iter().flatten().any(|number| !number.is_finite()) {
        return Err("its vectors hold what is no number".to_owned());
    }
    Ok(vectors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_api_is_asked_in_its_own_form() {
        let texts = ["a".to_owned(), "b".to_owned()];
        let asked = |dialect| request(dialect, "m", &texts).map(|request| (request.path, request.body));
        let input = json!({"input": ["a", "b"], "model": "m"});
        assert_eq!(asked("openai-responses"), Ok(("/embeddings".to_owned(), input.clone())));
        assert_eq!(asked("ollama"), Ok(("/api/embed".to_owned(), input)));
        let gemini = asked("gemini").unwrap();
        assert_eq!(gemini.0, "/models/m:batchEmbedContents");
        assert_eq!(gemini.1["requests"][1], json!({"content": {"parts": [{"text": "b"}]}, "model": "models/m"}));
        assert!(asked("anthropic").is_err_and(|why| why.contains("`anthropic` makes no vectors")));
    }

    #[test]
    fn vectors_come_in_the_order_of_the_texts() {
        let body = br#"{"object":"list","data":[{"index":1,"embedding":[3,4]},{"index":0,"embedding":[1,2.5]}],"usage":{}}"#;
        assert_eq!(read("openai-chat", body, 2), Ok(vec![vec![1.0, 2.5], vec![3.0, 4.0]]));
        assert_eq!(read("ollama", br#"{"model":"m","embeddings":[[1]]}"#, 1), Ok(vec![vec![1.0]]));
        assert_eq!(read("gemini", br#"{"embeddings":[{"values":[1]}]}"#, 1), Ok(vec![vec![1.0]]));
    }

    #[test]
    fn an_answer_that_does_not_fit_is_told() {
        let told = |body: &str, count| read("ollama", body.as_bytes(), count).unwrap_err();
        assert_eq!(told(r#"{"embeddings":[[1]]}"#, 2), "it gave 1 vectors for 2 texts");
        assert_eq!(told(r#"{"embeddings":[[1],[1,2]]}"#, 2), "its vectors are empty or of several lengths");
        assert!(told("<html>", 1).starts_with("its answer is not what the API promises"));
    }
}
