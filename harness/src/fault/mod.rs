//! Faults: what is done to a subject or to its files.

pub mod damage;
