//! The words of the built-ins' failures.

use turnwright_core::ToolErrorKind;
use turnwright_engine::source::ToolError;

/// The arguments are wrong in a way that their schema does not say.
pub(crate) fn invalid(text: impl Into<String>) -> ToolError {
    ToolError::new(ToolErrorKind::InvalidArguments, text)
}

/// There is no such thing.
pub(crate) fn not_found(text: impl Into<String>) -> ToolError {
    ToolError::new(ToolErrorKind::NotFound, text)
}

/// It is not allowed.
pub(crate) fn denied(text: impl Into<String>) -> ToolError {
    ToolError::new(ToolErrorKind::PermissionDenied, text)
}

/// It was tried and did not work.
pub(crate) fn failed(text: impl Into<String>) -> ToolError {
    ToolError::new(ToolErrorKind::ExecutionFailed, text)
}

/// A number with its thousands apart: `70,112`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn numbers_have_their_thousands_apart() {
        let cases = [(0, "0"), (999, "999"), (1_000, "1,000"), (70_112, "70,112"), (1_234_567, "1,234,567")];
        for (number, text) in cases {
            assert_eq!(grouped(number), text);
        }
    }
}
