// SPDX-License-Identifier: GPL-2.0

//! Signals that ask the program to stop.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::pipe;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

/// The last signal that was caught; 0 before the first one.
static LAST: AtomicUsize = AtomicUsize::new(0);

/// Returns the last SIGINT or SIGTERM that was caught, also if no verb waits for it.
pub(crate) fn last() -> Option<i32> {
    Some(LAST.load(Ordering::SeqCst) as i32).filter(|&signal| signal != 0)
}

/// Catches stop signals. `wakeup` ends a poll when one arrives.
pub(crate) struct StopSignals {
    /// A signal arrived that `take` has not reported.
    pending: Arc<AtomicBool>,
    /// Readable if a signal arrived.
    pub(crate) wakeup: UnixStream,
}

impl StopSignals {
    /// Catches SIGINT and SIGTERM.
    pub(crate) fn catch() -> io::Result<Self> {
        Self::catch_these(&[SIGINT, SIGTERM], &LAST)
    }

    /// Catches signals, and stores the last one in `last`. A second SIGINT terminates the program if
    /// `take` has not reported the first: the program does not wait for events then. A second SIGTERM
    /// does not, as timeout(1) sends it to the program and to the process group of the program.
    fn catch_these(signals: &[i32], last: &'static AtomicUsize) -> io::Result<Self> {
        let (wakeup, sender) = UnixStream::pair()?;
        wakeup.set_nonblocking(true)?;
        let pending = Arc::new(AtomicBool::new(false));
        for &signal in signals {
            // The handlers run in this order: `last` is valid when `pending` is true.
            flag::register_usize(signal, last, signal as usize)?;
            if signal == SIGINT {
                flag::register_conditional_default(signal, pending.clone())?;
            }
            flag::register(signal, pending.clone())?;
            pipe::register(signal, sender.try_clone()?)?;
        }
        Ok(Self { pending, wakeup })
    }

    /// Returns whether a signal arrived since the last call.
    pub(crate) fn take(&self) -> bool {
        // An error means that there is nothing to read.
        let _ = (&self.wakeup).read(&mut [0; 16]);
        self.pending.swap(false, Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signal_hook::consts::SIGUSR1;
    use signal_hook::low_level::raise;

    #[test]
    fn a_signal_is_taken_once() {
        static CAUGHT: AtomicUsize = AtomicUsize::new(0);
        let signals = StopSignals::catch_these(&[SIGUSR1], &CAUGHT).unwrap();
        assert!(!signals.take());
        // Twice, as timeout(1) does.
        raise(SIGUSR1).unwrap();
        raise(SIGUSR1).unwrap();
        assert!(signals.take());
        assert!(!signals.take());
        assert_eq!(CAUGHT.load(Ordering::SeqCst), SIGUSR1 as usize);
    }
}
