//! Target `import_tsv`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| terrane_fuzz::run("import_tsv", bytes));
