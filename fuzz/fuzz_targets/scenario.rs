//! Any text as a scenario file.
#![no_main]

#[path = "../../harness/tests/scenario/property.rs"]
mod property;
#[path = "../../harness/tests/scenario/validator.rs"]
mod validator;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| property::holds_for(bytes));
