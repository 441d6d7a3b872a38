// SPDX-License-Identifier: GPL-2.0

//! The numbers that queue pairs are configured with, each with as many bits as it
//! has on the wire.
//!
//! Source: InfiniBand Architecture Specification, volume 1, sections 9.2 and 9.7.

use crate::{
    random,
    rdma::path::number_of_bits, //
    text::kernel_display,
};
use core::fmt;

number_of_bits! {
    /// The number of a queue pair, 24 bits.
    Qpn(u32), 24
}

number_of_bits! {
    /// The sequence number of a packet, 24 bits, after which they begin again.
    ///
    /// Each direction of a connection begins with one that its sender chooses; at
    /// random, so that packets of an earlier connection are told from its own.
    Psn(u32), 24
}

number_of_bits! {
    /// How long to wait for an acknowledgement before sending again, 5 bits: 4.096 µs
    /// × 2^this; 0 is for ever.
    AckTimeout(u8), 5
}

number_of_bits! {
    /// How often to try again, 3 bits.
    RetryCount(u8), 3
}

number_of_bits! {
    /// How long the peer is to wait when it has sent to a queue pair without a
    /// receive posted, 5 bits.
    ///
    /// An index into a table: 0 is 655.36 ms, 1 is 10 µs, 2 is 20 µs, and the others grow
    /// by 3/2 and 4/3 in turn, by way of 12, 640 µs, to 31, 491.52 ms.
    RnrTimer(u8), 5
}

impl Qpn {
    /// The lower 24 bits, which is where the verbs keep the number.
    #[inline]
    pub(crate) const fn from_raw(raw: u32) -> Self {
        match Self::new(raw & Self::MAX.get()) {
            Some(number) => number,
            None => Self::MAX,
        }
    }
}

impl Psn {
    /// A random one, for a direction of a connection to begin with. Any context.
    pub fn random() -> Self {
        Self::truncate(random::number())
    }

    /// The lower 24 bits, as for a random number.
    #[inline]
    pub const fn truncate(value: u32) -> Self {
        match Self::new(value & Self::MAX.get()) {
            Some(number) => number,
            None => Self::MAX,
        }
    }
}

impl RetryCount {
    /// For retries after "receiver not ready": there is no end of them.
    pub const FOR_EVER: Self = Self::MAX;
}

impl fmt::Display for Qpn {
    /// As the programs of rdma-core print it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:06x}", self.get())
    }
}

impl fmt::Display for Psn {
    /// As the programs of rdma-core print it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:06x}", self.get())
    }
}

kernel_display!(Qpn, Psn);
