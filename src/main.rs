//! The `long-horizon` command.

fn main() {}
