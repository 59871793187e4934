//! Answers in the format of `anthropic`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| turnwright_fuzz::answer("anthropic", data));
