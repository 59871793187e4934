//! Model providers over HTTP, one implementation parameterised by dialect, and the practice model.

mod practice;

pub use practice::Practice;
