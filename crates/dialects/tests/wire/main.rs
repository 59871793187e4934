//! The dialects through their public door.

#[cfg(test)]
mod answered;
#[cfg(test)]
mod anthropic;
#[cfg(test)]
mod chat;
#[cfg(test)]
mod forms;
#[cfg(test)]
mod gemini;
#[cfg(test)]
mod mangled;
#[cfg(test)]
mod ollama;
#[cfg(test)]
mod recordings;
#[cfg(test)]
mod responses;
#[cfg(test)]
mod schemas;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tokens;
#[cfg(test)]
mod total;
#[cfg(test)]
mod transfer;
#[cfg(test)]
mod validate;
