//! The arguments of calls, as they are told. Pure.

/// What a call was given, as clients can read it: JSON, also where its model wrote nothing, as some do for a tool that takes none.
/// What is stored stays as it came.
pub(crate) fn told(arguments: &str) -> &str {
    if arguments.trim().is_empty() { "{}" } else { arguments }
}
