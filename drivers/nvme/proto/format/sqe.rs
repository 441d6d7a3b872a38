// SPDX-License-Identifier: GPL-2.0

//! Submission queue entries (SQE): the commands of a host.
//!
//! Source: NVMe Base 2.3, section 4.1 (Submission Queue Entry).

mod admin;
mod fabrics;
mod io;

use crate::format::cid::CommandId;
use crate::format::layout::{Reader, Writer};
use crate::format::sgl::Sgl;

pub use self::admin::{Feature, HostBehavior, Identify, LogPage};
pub use self::fabrics::Connect;
pub use self::io::{BlockCount, BlockRange, Deallocate, IoOp, Protection, RwFlags};

/// Namespace identifier that stands for all namespaces of a controller.
pub const ALL_NAMESPACES: u32 = 0xffff_ffff;

/// A submission queue entry.
///
/// A new entry has a null SGL and command identifier 0; the transport sets both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Command([u8; Command::SIZE]);

/// Direction of a command's data. Without data, either is returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the host to the target.
    ToTarget,
    /// From the target to the host.
    FromTarget,
}

impl Command {
    /// Size in bytes.
    pub const SIZE: usize = 64;

    /// PSDT 01b: an SGL descriptor in the command describes the data, as NVMe over Fabrics
    /// requires, and there is no metadata SGL.
    const FLAG_SGL: u8 = 0x40;

    /// Opcode of all Fabrics commands.
    pub const FABRICS: u8 = 0x7f;

    /// Returns an entry with an opcode and no parameters.
    #[inline]
    fn with_opcode(opcode: u8) -> Self {
        let mut command = Self([0; Self::SIZE]);
        command.put::<0, 1>([opcode]);
        command.put::<1, 1>([Self::FLAG_SGL]);
        // These bytes are zero already. Writing them as words lets the compiler keep the entry in
        // registers.
        command.put::<8, 8>([0; 8]);
        command.put::<16, 8>([0; 8]);
        command.set_sgl(Sgl::null());
        command
    }

    /// Returns an entry with an opcode and a namespace.
    #[inline]
    fn with_namespace(opcode: u8, nsid: u32) -> Self {
        let mut command = Self::with_opcode(opcode);
        command.put::<4, 4>(nsid.to_le_bytes());
        command
    }

    /// Returns an entry of a Fabrics command, whose type (FCTYPE) takes the place of the namespace.
    #[inline]
    fn with_fabrics_type(kind: u8) -> Self {
        let mut command = Self::with_opcode(Self::FABRICS);
        command.put::<4, 1>([kind]);
        command
    }

    /// Returns the entry of a passthrough command: the user sets all fields but the pointers.
    pub(crate) fn of_user(
        opcode: u8,
        nsid: u32,
        dwords_2_3: [u8; 8],
        dwords_10_15: [u8; 24],
    ) -> Self {
        let mut command = Self::with_namespace(opcode, nsid);
        command.put::<8, 8>(dwords_2_3);
        command.put::<40, 24>(dwords_10_15);
        command
    }

    #[inline]
    fn put<const AT: usize, const LEN: usize>(&mut self, field: [u8; LEN]) {
        Writer::over(&mut self.0).put::<AT, LEN>(field);
    }

    #[inline]
    fn fields(&self) -> Reader<'_, { Self::SIZE }> {
        Reader::over(&self.0)
    }

    /// Sets the command identifier (CID).
    #[inline]
    pub fn set_command_id(&mut self, id: CommandId) {
        self.put::<2, 2>(id.get().to_le_bytes());
    }

    /// Sets the SGL descriptor.
    #[inline]
    pub fn set_sgl(&mut self, sgl: Sgl) {
        Self::set_sgl_of(&mut self.0, sgl);
    }

    /// Copies the entry without its SGL to the buffer that is sent.
    #[inline(always)]
    pub fn write_to(&self, entry: &mut [u8; Self::SIZE]) {
        Self::copy(&self.0, entry);
    }

    /// Copies an entry that nvme-core has set up, with another identifier and without its SGL, to
    /// the buffer that is sent.
    #[inline(always)]
    pub fn copy_of_core(from: &[u8; Self::SIZE], id: CommandId, entry: &mut [u8; Self::SIZE]) {
        Self::copy(from, entry);
        let flags = Reader::over(entry).u8::<1>();
        let mut to = Writer::over(entry);
        to.put::<1, 1>([flags | Self::FLAG_SGL]);
        to.put::<2, 2>(id.get().to_le_bytes());
    }

    /// Copies all but the SGL. Copying by words lets the compiler store constant words directly.
    #[inline(always)]
    fn copy(from: &[u8; Self::SIZE], to: &mut [u8; Self::SIZE]) {
        let (from, mut to) = (Reader::over(from), Writer::over(to));
        to.put::<0, 8>(from.u64::<0>().to_le_bytes());
        to.put::<8, 8>(from.u64::<8>().to_le_bytes());
        to.put::<16, 8>(from.u64::<16>().to_le_bytes());
        to.put::<40, 8>(from.u64::<40>().to_le_bytes());
        to.put::<48, 8>(from.u64::<48>().to_le_bytes());
        to.put::<56, 8>(from.u64::<56>().to_le_bytes());
    }

    /// Sets the SGL descriptor of an entry in the buffer that is sent.
    #[inline(always)]
    pub fn set_sgl_of(entry: &mut [u8; Self::SIZE], sgl: Sgl) {
        Writer::over(entry).put::<24, { Sgl::SIZE }>(sgl.to_bytes());
    }

    /// Returns the opcode; all Fabrics commands have the same.
    #[inline]
    pub fn opcode(&self) -> u8 {
        self.fields().u8::<0>()
    }

    /// Returns the command identifier (CID).
    #[inline]
    pub fn command_id(&self) -> CommandId {
        CommandId::from_wire(self.fields().u16::<2>())
    }

    /// Returns byte 1: how the data is described (PSDT), and whether the command is fused (FUSE).
    #[inline]
    pub fn flags(&self) -> u8 {
        self.fields().u8::<1>()
    }

    /// Returns the namespace; `None` for a Fabrics command, which has none.
    #[inline]
    pub fn namespace(&self) -> Option<u32> {
        (self.opcode() != Self::FABRICS).then(|| self.fields().u32::<4>())
    }

    /// Returns command dwords 10 to 15, whose meaning depends on the opcode.
    #[inline]
    pub fn dwords_10_15(&self) -> [u8; 24] {
        self.fields().bytes::<40, 24>()
    }

    /// Returns the type (FCTYPE) of a Fabrics command; `None` for any other command.
    #[inline]
    pub fn fabrics_type(&self) -> Option<u8> {
        (self.opcode() == Self::FABRICS).then(|| self.fields().u8::<4>())
    }

    /// Returns the direction of the data, if there is any: bit 0 of the opcode or Fabrics type.
    #[inline]
    pub fn direction(&self) -> Direction {
        let code = self.fabrics_type().unwrap_or(self.opcode());
        if code & 1 == 0 {
            Direction::FromTarget
        } else {
            Direction::ToTarget
        }
    }

    /// Returns whether the opcode or Fabrics type has data at all: bits 1:0 are not 0.
    #[inline]
    pub fn transfers_data(&self) -> bool {
        self.fabrics_type().unwrap_or(self.opcode()) & 3 != 0
    }

    /// Returns the SGL descriptor.
    #[inline]
    pub fn sgl(&self) -> [u8; Sgl::SIZE] {
        self.fields().bytes::<24, { Sgl::SIZE }>()
    }

    /// Returns the entry with these bytes, which are those of [`Command::as_bytes`].
    #[inline]
    pub const fn from_bytes(bytes: [u8; Self::SIZE]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the entry.
    #[inline]
    pub const fn as_bytes(&self) -> &[u8; Self::SIZE] {
        &self.0
    }
}

#[cfg(test)]
mod testing {
    /// Returns the bytes of an entry with the null SGL, dword 1, and dwords 10 to 15.
    pub(super) fn entry(opcode: u8, dword1: u32, dwords: [u32; 6]) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes[0] = opcode;
        bytes[1] = 0x40;
        bytes[4..8].copy_from_slice(&dword1.to_le_bytes());
        bytes[39] = 0x40;
        for (place, dword) in bytes[40..].chunks_mut(4).zip(dwords) {
            place.copy_from_slice(&dword.to_le_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::sgl::Invalidate;

    #[test]
    fn common_fields() {
        let mut command = Command::flush(0x0102_0304);
        let id = CommandId::from_wire(0xb123);
        let sgl = Sgl::keyed(0x1000, 0x2000, 0x3000, Invalidate::ByTarget).unwrap();
        command.set_command_id(id);
        command.set_sgl(sgl);
        assert_eq!(command.command_id(), id);
        let mut expected = [0; 64];
        expected[..8].copy_from_slice(&[0x00, 0x40, 0x23, 0xb1, 4, 3, 2, 1]);
        expected[24..40].copy_from_slice(&sgl.to_bytes());
        assert_eq!(*command.as_bytes(), expected);
        assert_eq!(Command::from_bytes(expected), command);
        let mut written = [0xaa; 64];
        command.write_to(&mut written);
        assert_eq!(written[24..40], [0xaa; 16]);
        Command::set_sgl_of(&mut written, sgl);
        assert_eq!(written, expected);
    }

    #[test]
    fn fields_of_an_entry() {
        let dwords = core::array::from_fn(|at| at as u8);
        let command = Command::of_user(0x02, 7, [0; 8], dwords);
        assert_eq!(command.flags(), 0x40);
        assert_eq!(command.namespace(), Some(7));
        assert_eq!(command.dwords_10_15(), dwords);
        assert_eq!(Command::with_fabrics_type(1).namespace(), None);
    }

    #[test]
    fn an_entry_of_the_core_gets_an_identifier_and_keeps_the_rest() {
        for flags in [0x01, 0x41] {
            let mut bytes = core::array::from_fn(|at| at as u8);
            bytes[1] = flags;
            let mut copy = [0xaa; 64];
            Command::copy_of_core(&bytes, CommandId::from_wire(0xb123), &mut copy);
            bytes[1..4].copy_from_slice(&[0x41, 0x23, 0xb1]);
            bytes[24..40].fill(0xaa);
            assert_eq!(copy, bytes, "{flags:#x}");
        }
    }

    #[test]
    fn direction_is_the_lowest_bit_of_the_opcode_or_fabrics_type() {
        for opcode in 0..=u8::MAX {
            let command = Command::with_namespace(opcode, 1);
            let write = if opcode == 0x7f { 1 } else { opcode & 1 };
            assert_eq!(command.direction() == Direction::ToTarget, write == 1);
            assert_eq!(command.fabrics_type(), (opcode == 0x7f).then_some(1));

            let fabrics = Command::with_fabrics_type(opcode);
            assert_eq!(fabrics.direction() == Direction::ToTarget, opcode & 1 == 1);
            assert_eq!(fabrics.fabrics_type(), Some(opcode));
        }
    }
}
