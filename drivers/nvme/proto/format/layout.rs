// SPDX-License-Identifier: GPL-2.0

//! Little-endian fields at fixed offsets of blocks of fixed size.
//!
//! Offsets and sizes are const parameters: a field outside its block does not compile. Reading and
//! writing a field therefore cannot fail.

/// Iterates over a list of 32-bit numbers; a partial number at the end is ignored.
pub(crate) fn numbers(list: &[u8]) -> impl Iterator<Item = u32> + '_ {
    list.chunks_exact(4)
        .filter_map(|entry| entry.first_chunk().copied())
        .map(u32::from_le_bytes)
}

/// A block of `N` bytes to read fields from.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a, const N: usize>(&'a [u8; N]);

impl<'a, const N: usize> Reader<'a, N> {
    /// Returns a reader of the first `N` bytes of `bytes`; `None` if `bytes` is shorter.
    #[inline]
    pub(crate) fn new(bytes: &'a [u8]) -> Option<Self> {
        bytes.first_chunk().map(Self)
    }

    /// Returns a reader of `block`.
    #[inline]
    pub(crate) fn over(block: &'a [u8; N]) -> Self {
        Self(block)
    }

    /// Reads `LEN` bytes at offset `AT`.
    #[inline]
    pub(crate) fn bytes<const AT: usize, const LEN: usize>(self) -> [u8; LEN] {
        const {
            assert!(
                AT <= N && LEN <= N - AT,
                "the field is outside of the block"
            )
        };
        match self.0.get(AT..).and_then(|tail| tail.first_chunk()) {
            Some(field) => *field,
            // Unreachable: the assertion above bounds the field.
            None => [0; LEN],
        }
    }

    /// Reads a byte at offset `AT`.
    #[inline]
    pub(crate) fn u8<const AT: usize>(self) -> u8 {
        u8::from_le_bytes(self.bytes::<AT, 1>())
    }

    /// Reads 16 bits at offset `AT`.
    #[inline]
    pub(crate) fn u16<const AT: usize>(self) -> u16 {
        u16::from_le_bytes(self.bytes::<AT, 2>())
    }

    /// Reads 32 bits at offset `AT`.
    #[inline]
    pub(crate) fn u32<const AT: usize>(self) -> u32 {
        u32::from_le_bytes(self.bytes::<AT, 4>())
    }

    /// Reads 64 bits at offset `AT`.
    #[inline]
    pub(crate) fn u64<const AT: usize>(self) -> u64 {
        u64::from_le_bytes(self.bytes::<AT, 8>())
    }
}

/// A block of `N` bytes to write fields to.
pub(crate) struct Writer<'a, const N: usize>(&'a mut [u8; N]);

impl<'a, const N: usize> Writer<'a, N> {
    /// Returns a writer to `block`.
    #[inline]
    pub(crate) fn over(block: &'a mut [u8; N]) -> Self {
        Self(block)
    }

    /// Writes `field` at offset `AT`.
    #[inline]
    pub(crate) fn put<const AT: usize, const LEN: usize>(&mut self, field: [u8; LEN]) {
        const {
            assert!(
                AT <= N && LEN <= N - AT,
                "the field is outside of the block"
            )
        };
        // Always true: the assertion above bounds the field.
        if let Some(place) = self.0.get_mut(AT..).and_then(|tail| tail.first_chunk_mut()) {
            *place = field;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_little_endian() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        let reader = Reader::<9>::new(&bytes).unwrap();
        assert_eq!(reader.u8::<8>(), 9);
        assert_eq!(reader.u16::<0>(), 0x0201);
        assert_eq!(reader.u32::<1>(), 0x0504_0302);
        assert_eq!(reader.u64::<1>(), 0x0908_0706_0504_0302);
        assert_eq!(reader.bytes::<3, 2>(), [4, 5]);
    }

    #[test]
    fn refuses_short_and_takes_long() {
        assert!(Reader::<4>::new(&[0; 3]).is_none());
        assert_eq!(Reader::<4>::new(&[1, 0, 0, 0, 9]).unwrap().u32::<0>(), 1);
    }

    #[test]
    fn writes_in_place() {
        let mut block = [0xaa; 6];
        Writer::over(&mut block).put::<1, 4>(0x0403_0201u32.to_le_bytes());
        assert_eq!(block, [0xaa, 1, 2, 3, 4, 0xaa]);
    }
}
