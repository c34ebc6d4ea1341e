//! The checkpoint's format, byte for byte: against a second writer that shares no code with the first, against fixed
//! bytes, and against Python itself; and everything that must not load, with its place.

#[path = "../command/mod.rs"]
mod command;
mod model;
mod property;
mod python;
mod refused;
mod refused_strings;
#[path = "../../fuzz/replay.rs"]
mod replay;
mod round_trip;
mod strategy;
mod strict;
mod vectors;
