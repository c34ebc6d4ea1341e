//! Numbers of descriptors that come to stand for other files, after the lab has got to know them: each log must tell where
//! the bytes really went.

use crate::faithful::assert_faithful;
use crate::support::{assert_success, log, nothing, subject, undisturbed, while_nothing_starts};

macro_rules! ways {
    ($($name:ident)*) => {
        $(#[test] fn $name() { way(stringify!($name)); })*
    };
}

ways! { dup close range fork exec thread apart shared received append moved renamed locked program }

fn way(name: &str) {
    let subject = subject("stale", &[name]);
    let (trace, sandbox) = while_nothing_starts(|| undisturbed(subject, nothing));
    assert_success(&trace);
    assert_faithful(&trace, &sandbox, nothing);
    assert!(trace.gaps.is_empty() && trace.ops().count() > 0, "{}", log(&trace));
}
