//! Any bytes as a recording.
#![no_main]

#[path = "../../harness/tests/recording/property.rs"]
mod property;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| property::holds_for(bytes));
