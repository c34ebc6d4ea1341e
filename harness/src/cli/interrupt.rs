//! Ctrl-C: the run ends, and what is known is printed.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

static WATCHED: Once = Once::new();
static IN_SHELL: AtomicBool = AtomicBool::new(false);

/// While a shell of the user's runs in the foreground, signals from the terminal are for it.
pub(super) fn for_shell<T>(shell: impl FnOnce() -> T) -> T {
    watch();
    IN_SHELL.store(true, Ordering::SeqCst);
    let result = shell();
    IN_SHELL.store(false, Ordering::SeqCst);
    result
}

/// From now on SIGINT, SIGTERM and SIGHUP end the run in good order; a second one ends the lab at once, and the kernel ends
/// what it traces.
pub(super) fn watch() {
    WATCHED.call_once(|| {
        // Without the handler a signal ends the lab, as it would any program: nothing to complain of.
        let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGHUP]) else {
            return;
        };
        std::thread::spawn(move || {
            let waiting = signals.forever().filter(|_| !IN_SHELL.load(Ordering::SeqCst));
            for (count, signal) in waiting.enumerate() {
                crate::interrupt::request();
                if count > 0 {
                    std::process::exit(128 + signal);
                }
            }
        });
    });
}
