//! Ollama's own format.

mod answers;
mod backward;
mod request;
