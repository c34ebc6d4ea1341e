//! Races: the order in which programs make their steps, chosen by the lab.

pub mod explore;
pub mod fewest;
pub mod random;
pub mod schedule;
pub mod steer;
