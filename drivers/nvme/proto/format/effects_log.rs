// SPDX-License-Identifier: GPL-2.0

//! Commands Supported and Effects log page.
//!
//! Source: NVMe Base 2.3, section 5.2.12.1.6. C structure: `struct nvme_effects_log`.

/// The log page in a buffer; by default one without entries.
#[derive(Clone, Copy, Default, Debug)]
pub struct EffectsLog<'a>(&'a [u8]);

/// An entry of the log page: effects of the commands with one opcode.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EffectsEntry(u32);

impl<'a> EffectsLog<'a> {
    /// Index of the entry of I/O opcode 0, after the entries of 256 admin opcodes.
    const FIRST_IO_ENTRY: usize = 256;

    /// Returns the log in `page`, of any length. An entry beyond the end reads as not supported.
    pub const fn new(page: &'a [u8]) -> Self {
        Self(page)
    }

    /// Returns the entry of an admin command.
    pub fn admin(self, opcode: u8) -> EffectsEntry {
        self.entry(opcode.into())
    }

    /// Returns the entry of an I/O command.
    pub fn io(self, opcode: u8) -> EffectsEntry {
        self.entry(Self::FIRST_IO_ENTRY.saturating_add(opcode.into()))
    }

    fn entry(self, index: usize) -> EffectsEntry {
        let at = index.saturating_mul(EffectsEntry::SIZE);
        let entry = self.0.get(at..).and_then(|tail| tail.first_chunk());
        entry.map_or_else(EffectsEntry::default, |entry| {
            EffectsEntry(u32::from_le_bytes(*entry))
        })
    }
}

impl EffectsEntry {
    const SIZE: usize = 4;

    const SUPPORTED: u32 = 1;
    const CONTENT: u32 = 1 << 1;
    const NAMESPACE_CAPABILITY: u32 = 1 << 2;
    const NAMESPACE_INVENTORY: u32 = 1 << 3;
    const CONTROLLER_CAPABILITY: u32 = 1 << 4;
    const EXECUTION_RELAXED: u32 = 0b11 << 14;
    const EXECUTION: u32 = 0b111 << 16;
    /// All effects but [`Self::CONTENT`]. Execution restrictions (CSE) concern admin commands, and
    /// the bits above them are not effects.
    const BEYOND_CONTENT: u32 = 0xfffc;

    /// Returns whether the controller supports the command (CSUPP).
    pub const fn is_supported(self) -> bool {
        self.0 & Self::SUPPORTED != 0
    }

    /// Returns whether the command changes the content of logical blocks (LBCC).
    pub const fn changes_content(self) -> bool {
        self.0 & Self::CONTENT != 0
    }

    /// Returns whether the command has effects other than [`Self::changes_content`].
    pub const fn changes_more_than_content(self) -> bool {
        self.0 & Self::BEYOND_CONTENT != 0
    }

    /// Returns whether the command changes the capabilities of namespaces (NCC) or their inventory
    /// (NIC).
    pub const fn changes_namespaces(self) -> bool {
        self.0 & (Self::NAMESPACE_CAPABILITY | Self::NAMESPACE_INVENTORY) != 0
    }

    /// Returns whether the command changes capabilities of the controller (CCC).
    pub const fn changes_controller(self) -> bool {
        self.0 & Self::CONTROLLER_CAPABILITY != 0
    }

    /// Returns whether the controller requires that no other command is in flight with this one
    /// (CSE), and does not relax that (CSER).
    pub const fn restricts_execution(self) -> bool {
        self.0 & Self::EXECUTION != 0 && self.0 & Self::EXECUTION_RELAXED == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(index: usize, entry: u32) -> Vec<u8> {
        let mut page = vec![0; 4096];
        page[4 * index..][..4].copy_from_slice(&entry.to_le_bytes());
        page
    }

    #[test]
    fn layout() {
        // struct nvme_effects_log: acs[256], iocs[256].
        for opcode in 0..=u8::MAX {
            let (admin, io) = (page(opcode.into(), 7), page(256 + usize::from(opcode), 7));
            let (admin, io) = (EffectsLog::new(&admin), EffectsLog::new(&io));
            let (none, some) = (EffectsEntry(0), EffectsEntry(7));
            assert_eq!((admin.admin(opcode), admin.io(opcode)), (some, none));
            assert_eq!((io.admin(opcode), io.io(opcode)), (none, some));
            assert_eq!(admin.admin(opcode ^ 1), none);
        }
    }

    #[test]
    fn short_pages_end_with_entries_that_are_not_supported() {
        let page = page(256 + 2, !0);
        for len in [0, 4, 1024, 4 * (256 + 2) + 3] {
            let log = EffectsLog::new(&page[..len]);
            assert_eq!(log.io(2), EffectsEntry(0));
            assert_eq!(log.admin(255), EffectsEntry(0));
        }
        assert_eq!(
            EffectsLog::new(&page[..4 * (256 + 3)]).io(2),
            EffectsEntry(!0)
        );
        assert_eq!(EffectsLog::default().admin(0), EffectsEntry(0));
    }

    #[test]
    fn every_bit() {
        for bit in 0..32 {
            let entry = EffectsEntry(1 << bit);
            assert_eq!(entry.is_supported(), bit == 0);
            assert_eq!(entry.changes_content(), bit == 1);
            assert_eq!(entry.changes_more_than_content(), (2..16).contains(&bit));
            assert_eq!(entry.changes_namespaces(), [2, 3].contains(&bit));
            assert_eq!(entry.changes_controller(), bit == 4);
            assert_eq!(entry.restricts_execution(), (16..19).contains(&bit));
            for relaxed in [14, 15] {
                assert!(!EffectsEntry((1 << bit) | (1 << relaxed)).restricts_execution());
            }
        }
    }
}
