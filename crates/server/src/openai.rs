//! OpenAI's APIs as served: pure folds from engine events to Chat Completions and Responses, and what their requests mean.
//!
//! An answer tells the part of a turn that one request is about: from what the client said, or gave, to where the turn ends or
//! waits. [`track`] knows that part, [`telling`] goes through it, [`chat`] and [`responses`] write it. Not here: routes, and turns.

pub(crate) mod activity;
pub(crate) mod again;
mod answering;
pub(crate) mod apart;
pub(crate) mod begin;
mod buried;
pub(crate) mod chat;
pub(crate) mod chunk;
pub(crate) mod clients;
mod decided;
mod deciding;
pub(crate) mod error;
mod files;
mod foreign;
pub(crate) mod given;
pub(crate) mod history;
pub(crate) mod ids;
pub(crate) mod items;
pub(crate) mod known;
pub(crate) mod messages;
pub(crate) mod models;
mod parts;
pub(crate) mod recalled;
pub(crate) mod referred;
pub(crate) mod responses;
mod retold;
mod saying;
pub(crate) mod seen;
pub(crate) mod settings;
pub(crate) mod stops;
mod taking_over;
pub(crate) mod telling;
pub(crate) mod track;
mod waiting;
mod written;
