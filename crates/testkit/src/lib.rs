//! Test doubles: scripted provider, scripted tools, a memory store with a crash fuse, a manual clock, a replay HTTP server.
