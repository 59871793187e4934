//! Pure translation between the conversation model and each provider's wire format.
