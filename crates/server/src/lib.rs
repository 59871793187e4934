//! The HTTP server: routes, event streams, problem documents.
