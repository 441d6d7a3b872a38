// SPDX-License-Identifier: GPL-2.0

//! Ranges of the Dataset Management command.
//!
//! Source: NVM Command Set, Dataset Management command. C structure: `struct nvme_dsm_range`.

use crate::format::layout::Writer;

/// A range of blocks to deallocate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DsmRange {
    /// First block.
    pub start: u64,
    /// Number of blocks.
    pub count: u32,
}

impl DsmRange {
    /// Size in bytes.
    pub const SIZE: usize = 16;

    fn to_bytes(self) -> [u8; Self::SIZE] {
        // The first four bytes are context attributes; deallocation has none.
        let mut bytes = [0; Self::SIZE];
        let mut block = Writer::over(&mut bytes);
        block.put::<4, 4>(self.count.to_le_bytes());
        block.put::<8, 8>(self.start.to_le_bytes());
        bytes
    }
}

/// Number of ranges of a command: 1 to 256.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RangeCount(u8);

impl RangeCount {
    /// Largest number of ranges of a command.
    pub const MAX: usize = 256;

    /// Returns the count; `None` if a command cannot have it.
    pub fn new(ranges: usize) -> Option<Self> {
        u8::try_from(ranges.checked_sub(1)?).ok().map(Self)
    }

    /// Returns the NR field, which is zero-based.
    #[inline]
    pub(crate) const fn zero_based(self) -> u8 {
        self.0
    }
}

/// Size of the data in bytes, for any number of ranges: some controllers always read 256.
pub const PAYLOAD_SIZE: usize = DsmRange::SIZE * RangeCount::MAX;

/// Writes `ranges` to `payload`, fills the rest with zeroes, and returns their number; `None` if
/// there is no range or more than [`RangeCount::MAX`].
pub fn encode(
    payload: &mut [u8; PAYLOAD_SIZE],
    ranges: impl IntoIterator<Item = DsmRange>,
) -> Option<RangeCount> {
    *payload = [0; PAYLOAD_SIZE];
    let mut places = payload.chunks_exact_mut(DsmRange::SIZE);
    let mut count = 0usize;
    for range in ranges {
        let place = places.next()?;
        place.copy_from_slice(&range.to_bytes());
        count = count.saturating_add(1);
    }
    RangeCount::new(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(count: u32) -> impl Iterator<Item = DsmRange> {
        (0..count).map(|index| DsmRange {
            start: u64::from(index) << 40,
            count: index + 1,
        })
    }

    #[test]
    fn layout() {
        // struct nvme_dsm_range: cattr, nlb, slba.
        let range = DsmRange {
            start: 0x1122_3344_5566_7788,
            count: 0xaabb_ccdd,
        };
        assert_eq!(
            range.to_bytes(),
            [0, 0, 0, 0, 0xdd, 0xcc, 0xbb, 0xaa, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]
        );
        assert_eq!(PAYLOAD_SIZE, 4096);
    }

    #[test]
    fn every_count() {
        let mut payload = [0xff; PAYLOAD_SIZE];
        assert_eq!(encode(&mut payload, ranges(0)), None);
        for count in 1..=256 {
            payload.fill(0xff);
            let encoded = encode(&mut payload, ranges(count)).unwrap();
            assert_eq!(u32::from(encoded.zero_based()) + 1, count);
            let (used, rest) = payload.split_at(16 * count as usize);
            for (bytes, range) in used.chunks(16).zip(ranges(count)) {
                assert_eq!(bytes, range.to_bytes());
            }
            assert!(rest.iter().all(|byte| *byte == 0));
        }
        assert_eq!(encode(&mut payload, ranges(257)), None);
    }

    #[test]
    fn counts() {
        assert_eq!(RangeCount::new(0), None);
        assert_eq!(RangeCount::new(257), None);
        assert_eq!(RangeCount::new(usize::MAX), None);
        assert_eq!(RangeCount::new(256), Some(RangeCount(255)));
    }
}
