//! Responses.

mod ask;
mod golden;
mod items;
mod quirks;
mod request;
