//! Answers in the format of `openai-chat`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| turnwright_fuzz::answer("openai-chat", data));
