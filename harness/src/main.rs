//! The `crashlab` command.

fn main() {}
