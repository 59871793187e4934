//! Answers in the format of `openai-responses`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| turnwright_fuzz::answer("openai-responses", data));
