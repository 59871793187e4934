//! Answers in the format of `ollama`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| turnwright_fuzz::answer("ollama", data));
