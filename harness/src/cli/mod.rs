//! To come.

pub mod damage;
pub mod doctor;
