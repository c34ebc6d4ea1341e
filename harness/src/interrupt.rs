//! A person's wish to stop: every run of this process ends, and what is known is reported.

use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// From now on every traced run ends at once, and no other begins. There is no way back.
pub fn request() {
    REQUESTED.store(true, Ordering::SeqCst);
}

/// Somebody wished so.
pub fn is_requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}
