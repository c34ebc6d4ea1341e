//! Faults: what is done to a subject. Pure functions from a recording, or from bytes, to cases.

pub mod damage;
pub mod kill;
pub mod overlap;
