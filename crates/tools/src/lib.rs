//! The built-in tool sources: filesystem and command.
