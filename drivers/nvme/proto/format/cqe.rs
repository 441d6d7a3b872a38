// SPDX-License-Identifier: GPL-2.0

//! Completion queue entries (CQE): the responses of a target.
//!
//! Source: NVMe Base 2.3, section 4.2 (Completion Queue Entry).

use crate::format::cid::CommandId;
use crate::format::layout::Reader;
use crate::format::status::Status;
use core::fmt;

/// A completion queue entry, kept as two words so that it is passed in registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// Command specific result, dwords 0 and 1; see also [`Completion::result32`].
    pub result: u64,
    rest: u64,
}

impl Completion {
    /// Size in bytes.
    pub const SIZE: usize = 16;

    /// Decodes an entry from the start of a received message.
    ///
    /// # Errors
    ///
    /// [`ShortCompletion`] if the message is shorter than an entry.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, ShortCompletion> {
        let entry = Reader::<{ Self::SIZE }>::new(bytes).ok_or(ShortCompletion(bytes.len()))?;
        Ok(Self {
            result: entry.u64::<0>(),
            rest: entry.u64::<8>(),
        })
    }

    /// Returns the identifier of the completed command. The peer may send any value.
    #[inline]
    pub const fn command_id(&self) -> CommandId {
        CommandId::from_wire(((self.rest >> 32) & 0xffff) as u16)
    }

    /// Returns the status.
    #[inline]
    pub const fn status(&self) -> Status {
        Status::from_wire((self.rest >> 48) as u16)
    }

    /// Returns the result of a command whose result has 32 bits.
    #[inline]
    pub const fn result32(&self) -> u32 {
        (self.result & 0xffff_ffff) as u32
    }
}

/// A response that is shorter than a completion queue entry, with its length in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShortCompletion(pub usize);

impl fmt::Display for ShortCompletion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a response of {} bytes is shorter than {}",
            self.0,
            Completion::SIZE
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: [u8; 16] = [
        0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, // result
        0x34, 0x12, 0x02, 0x00, // head, queue
        0x1f, 0xa0, // identifier
        0x05, 0x43, // phase, then 0x2182
    ];

    #[test]
    fn layout() {
        let completion = Completion::parse(&ENTRY).unwrap();
        assert_eq!(completion.result, 0x8877_6655_4433_2211);
        assert_eq!(completion.result32(), 0x4433_2211);
        assert_eq!(completion.command_id().get(), 0xa01f);
        assert_eq!(completion.status().get(), 0x2182);
    }

    #[test]
    fn every_length() {
        for len in 0..ENTRY.len() {
            assert_eq!(Completion::parse(&ENTRY[..len]), Err(ShortCompletion(len)));
        }
        let mut longer = ENTRY.to_vec();
        longer.extend([0xff; 48]);
        assert_eq!(Completion::parse(&longer), Completion::parse(&ENTRY));
    }
}
