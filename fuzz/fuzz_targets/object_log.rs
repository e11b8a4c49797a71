//! Target `object_log`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| terrane_fuzz::run("object_log", bytes));
