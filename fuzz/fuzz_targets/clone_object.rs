//! Target `clone_object`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| terrane_fuzz::run("clone_object", bytes));
