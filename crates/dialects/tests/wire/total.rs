//! Every journal becomes a request that every API takes (laws 3, 4 and 7).
//!
//! [`story`] tells journals: it drives the real turn machine with models, tools and people that do whatever may happen, and
//! [`speech`] lets those models answer in their vendor's own stream, so that what is kept of it is real. A journal is left
//! where its model is to be asked, and every endpoint of [`endpoint`] is asked.

mod accepted;
mod content;
mod endpoint;
mod features;
mod names;
mod natives;
mod people;
mod prefix;
mod random;
mod speech;
mod story;
