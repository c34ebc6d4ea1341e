//! Ctrl-C: the run ends, and what is known is printed.

use std::sync::Once;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

static WATCHED: Once = Once::new();

/// From now on SIGINT, SIGTERM and SIGHUP end the run in good order; a second one ends the lab at once, and the kernel ends
/// what it traces.
pub(super) fn watch() {
    WATCHED.call_once(|| {
        // Without the handler a signal ends the lab, as it would any program: nothing to complain of.
        let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGHUP]) else {
            return;
        };
        std::thread::spawn(move || {
            for (count, signal) in signals.forever().enumerate() {
                crate::interrupt::request();
                if count > 0 {
                    std::process::exit(128 + signal);
                }
            }
        });
    });
}
