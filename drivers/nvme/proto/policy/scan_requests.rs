// SPDX-License-Identifier: GPL-2.0

//! Requests to scan the namespaces, by serial number.

/// Numbers of the last request, and of the last request that a scan completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScanRequests {
    requested: u32,
    done: u32,
}

impl ScanRequests {
    /// Makes a request, and returns its number.
    pub fn request(&mut self) -> u32 {
        self.requested = self.requested.wrapping_add(1);
        self.requested
    }

    /// Returns the number of the last completed request.
    pub const fn done(self) -> u32 {
        self.done
    }

    /// Returns whether request `number` is completed.
    pub const fn is_done(self, number: u32) -> bool {
        // Serial-number comparison; valid within 2^31.
        self.done.wrapping_sub(number) <= u32::MAX / 2
    }

    /// Returns whether a request waits for a scan.
    pub const fn is_due(self) -> bool {
        self.requested != self.done
    }

    /// Ends a scan. `begun` is a copy of the requests from before it began. Returns whether the
    /// requests that were made before it began are completed.
    ///
    /// They are not if the scan failed and a later request causes another scan, whose end counts.
    #[must_use]
    pub fn end(&mut self, begun: Self, succeeded: bool) -> bool {
        if !succeeded && self.requested != begun.requested {
            return false;
        }
        self.done = begun.requested;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_completes_what_was_requested_before_it() {
        let mut requests = ScanRequests::default();
        assert!(!requests.is_due());
        let first = requests.request();
        let begun = requests;
        let second = requests.request();
        assert!(requests.is_due() && !requests.is_done(first));
        assert!(requests.end(begun, true));
        assert!(requests.is_done(first) && !requests.is_done(second));
        assert_eq!(requests.done(), first);
        assert!(requests.is_due());
    }

    #[test]
    fn numbers_wrap_around() {
        let done = |done| ScanRequests {
            done,
            ..ScanRequests::default()
        };
        assert!(done(0).is_done(u32::MAX) && done(5).is_done(u32::MAX - 100));
        assert!(!done(u32::MAX).is_done(0) && !done(u32::MAX - 100).is_done(5));
    }

    #[test]
    fn a_failure_counts_unless_another_scan_follows() {
        let mut requests = ScanRequests::default();
        let first = requests.request();
        let begun = requests;
        let mut alone = requests;
        assert!(alone.end(begun, false));
        assert!(alone.is_done(first) && !alone.is_due());
        let _ = requests.request();
        assert!(!requests.end(begun, false));
        assert!(!requests.is_done(first) && requests.is_due());
    }

    #[test]
    fn a_scan_without_a_request_completes_none() {
        let mut requests = ScanRequests::default();
        let begun = requests;
        assert!(requests.end(begun, true));
        assert_eq!(requests, begun);
    }

    #[test]
    fn numbers_wrap() {
        let mut requests = ScanRequests {
            requested: u32::MAX - 1,
            done: u32::MAX - 1,
        };
        for _ in 0..4 {
            let number = requests.request();
            assert!(!requests.is_done(number) && requests.is_done(number.wrapping_sub(1)));
            let begun = requests;
            let _ = requests.end(begun, true);
            assert!(requests.is_done(number) && !requests.is_due());
        }
        assert_eq!(requests.done(), 2);
    }
}
