//! A file system in memory.
/// A model.
#[derive(Debug)]
pub struct Model;
