//! Types of the HTTP API: the only JSON that is promised to clients.
