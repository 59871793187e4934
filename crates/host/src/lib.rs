//! Composition: from a configuration to a running engine; what an embedder or a binary calls.
