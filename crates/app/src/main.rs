//! The `turnwright` binary.
fn main() {}
