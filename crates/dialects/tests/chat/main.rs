//! The Chat Completions dialect through its public door.

#[cfg(test)]
mod golden;
#[cfg(test)]
mod quirks;
#[cfg(test)]
mod recordings;
#[cfg(test)]
mod request;
#[cfg(test)]
mod support;
