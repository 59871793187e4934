//! AG-UI 1.0: a pure fold from engine events to the events of one run, and what its requests mean.
//!
//! A run is the part of a turn that one request is about, as an answer of OpenAI's APIs is. It ends to ask: with interrupts where
//! the turn waits for people, with pending calls where it waits for tools of the page. Not here: routes, and turns.

pub(crate) mod answers;
pub(crate) mod back;
pub(crate) mod fold;
pub(crate) mod input;
pub(crate) mod interrupt;
pub(crate) mod names;
