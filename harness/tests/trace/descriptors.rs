//! Numbers of descriptors that come to stand for other files, after the lab has got to know them: each log must tell where
//! the bytes really went.

use crate::faithful::faithful;

macro_rules! ways {
    ($($name:ident)*) => {
        $(#[test] fn $name() { way(stringify!($name)); })*
    };
}

ways! { dup close range fork exec thread apart shared received append moved renamed locked program }

fn way(name: &str) {
    faithful("stale", &[name]);
}
