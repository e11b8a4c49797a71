//! Target `job_object`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| terrane_fuzz::run("job_object", bytes));
