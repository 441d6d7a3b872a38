// SPDX-License-Identifier: GPL-2.0

//! Completion queue entries (CQE): the responses of a target.
//!
//! Source: NVMe Base 2.3, section 4.2 (Completion Queue Entry).

use crate::format::cid::CommandId;
use crate::format::layout::Reader;
use crate::format::status::Status;

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

    /// Decodes an entry from the start of a received message; `None` if the message is shorter.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        bytes.first_chunk().map(Self::from_bytes)
    }

    /// Decodes an entry.
    #[inline]
    pub fn from_bytes(bytes: &[u8; Self::SIZE]) -> Self {
        let entry = Reader::over(bytes);
        Self {
            result: entry.u64::<0>(),
            rest: entry.u64::<8>(),
        }
    }

    /// Returns the submission queue head (SQHD). It has no meaning if SQ flow control is disabled.
    #[inline]
    pub const fn sq_head(&self) -> u16 {
        (self.rest & 0xffff) as u16
    }

    /// Returns the identifier of the submission queue (SQID).
    #[inline]
    pub const fn sq_id(&self) -> u16 {
        ((self.rest >> 16) & 0xffff) as u16
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
        assert_eq!(completion.sq_head(), 0x1234);
        assert_eq!(completion.sq_id(), 2);
        assert_eq!(completion.command_id().get(), 0xa01f);
        assert_eq!(completion.status().get(), 0x2182);
    }

    #[test]
    fn every_length() {
        for len in 0..ENTRY.len() {
            assert_eq!(Completion::parse(&ENTRY[..len]), None);
        }
        let mut longer = ENTRY.to_vec();
        longer.extend([0xff; 48]);
        assert_eq!(Completion::parse(&longer), Completion::parse(&ENTRY));
    }
}
