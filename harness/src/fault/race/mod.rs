//! Races: the order in which programs make their steps, chosen by the lab.

pub mod access;
pub mod explore;
