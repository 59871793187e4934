//! Answers in the format of `gemini`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| turnwright_fuzz::answer("gemini", data));
