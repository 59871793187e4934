//! Ollama's own format.

mod answers;
mod request;
