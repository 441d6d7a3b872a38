// SPDX-License-Identifier: GPL-2.0

//! Numbers in the attributes of queue pairs, limited to the bits that they have on the wire.
//!
//! Source: InfiniBand Architecture Specification, volume 1, sections 9.2 and 9.7.

use crate::{
    random,
    rdma::path::number_of_bits, //
    text::kernel_display,
};
use core::fmt;

number_of_bits! {
    /// Queue pair number, 24 bits.
    Qpn(u32), 24
}

number_of_bits! {
    /// Packet sequence number, 24 bits, wraps around.
    ///
    /// The sender of each direction of a connection chooses the first one. A random number makes
    /// packets of an earlier connection fall outside the expected range.
    Psn(u32), 24
}

number_of_bits! {
    /// Time to wait for an acknowledgement before sending again, 5 bits: 4.096 µs × 2^value. 0
    /// waits without limit.
    AckTimeout(u8), 5
}

number_of_bits! {
    /// Number of retries, 3 bits.
    RetryCount(u8), 3
}

number_of_bits! {
    /// Time that the peer must wait after a send to a queue pair with no receive posted, 5 bits.
    ///
    /// The value is an index into a table of times: 0 is 655.36 ms, 1 is 10 µs, 2 is 20 µs. From
    /// there on, a time is 3/2 and 4/3 of the one before in turn: 12 is 640 µs, 31 is 491.52 ms.
    RnrTimer(u8), 5
}

impl Qpn {
    /// Returns the number in the lower 24 bits, where the verbs have it.
    #[inline]
    pub(crate) const fn from_raw(raw: u32) -> Self {
        match Self::new(raw & Self::MAX.get()) {
            Some(number) => number,
            None => Self::MAX,
        }
    }
}

impl Psn {
    /// Returns a random number, for the first packet of a direction of a connection. Any context.
    pub fn random() -> Self {
        Self::truncate(random::number())
    }

    /// Returns the lower 24 bits of `value`.
    #[inline]
    pub const fn truncate(value: u32) -> Self {
        match Self::new(value & Self::MAX.get()) {
            Some(number) => number,
            None => Self::MAX,
        }
    }
}

impl RetryCount {
    /// Retries without limit; only valid for "receiver not ready" (RNR).
    pub const FOR_EVER: Self = Self::MAX;
}

impl fmt::Display for Qpn {
    /// Formats the number as the programs of rdma-core do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:06x}", self.get())
    }
}

impl fmt::Display for Psn {
    /// Formats the number as the programs of rdma-core do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:06x}", self.get())
    }
}

kernel_display!(Qpn, Psn);
