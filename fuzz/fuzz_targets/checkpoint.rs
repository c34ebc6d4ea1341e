//! Any bytes as a checkpoint.
#![no_main]

#[path = "../../tests/format/model.rs"]
mod model;
#[path = "../../tests/format/property.rs"]
mod property;
#[path = "../../tests/format/strict.rs"]
mod strict;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| property::holds_for(bytes));
