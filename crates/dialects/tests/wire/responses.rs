//! Responses.

mod ask;
mod backward;
mod golden;
mod items;
mod quirks;
mod request;
