// SPDX-License-Identifier: GPL-2.0

//! I/O Command Set Independent Identify Namespace (CNS 08h).
//!
//! Source: NVMe Base 2.3, section 5.2.13.2.8. C structure: `struct nvme_id_ns_cs_indep`.

use super::ShortData;
use crate::format::layout::Reader;
use crate::format::sqe::Identify;

/// Properties of a namespace of any command set.
///
/// The default applies if the controller does not support the structure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndependentNamespace {
    /// Whether the medium rotates (NSFEAT).
    pub rotational: bool,
    /// Whether the namespace has no volatile write cache, although its controller has one (NSFEAT).
    pub no_write_cache: bool,
    /// Whether the namespace is ready for I/O (NSTAT.NRDY).
    pub ready: bool,
}

impl Default for IndependentNamespace {
    fn default() -> Self {
        Self {
            rotational: false,
            no_write_cache: false,
            ready: true,
        }
    }
}

impl IndependentNamespace {
    /// Decodes the data of an Identify command.
    ///
    /// # Errors
    ///
    /// [`ShortData`] if it is shorter than [`Identify::DATA_SIZE`].
    pub fn parse(data: &[u8]) -> Result<Self, ShortData> {
        let fields = Reader::<{ Identify::DATA_SIZE }>::new(data).ok_or(ShortData(data.len()))?;
        let features = fields.u8::<0>();
        Ok(Self {
            rotational: features & (1 << 4) != 0,
            no_write_cache: features & (1 << 5) != 0,
            ready: fields.u8::<14>() & 1 != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout() {
        let mut data = [0; 4096];
        for (features, status) in [(0x00, 0), (0x10, 1), (0x20, 0xfe), (0xcf, 0xff), (0x30, 1)] {
            (data[0], data[14]) = (features, status);
            let expected = IndependentNamespace {
                rotational: features & 0x10 != 0,
                no_write_cache: features & 0x20 != 0,
                ready: status & 1 != 0,
            };
            assert_eq!(IndependentNamespace::parse(&data), Ok(expected));
        }
        assert_eq!(
            IndependentNamespace::parse(&data[..4095]),
            Err(ShortData(4095))
        );
    }
}
