//! Any bytes as a log.
#![no_main]

#[path = "../../tests/log/property.rs"]
mod property;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| property::holds_for(bytes));
