// SPDX-License-Identifier: GPL-2.0

//! A namespace that has a disk, as the kernel describes it.

use crate::nlattr::{Attributes, Malformed};
use crate::uapi::{ns as attribute, EUI64_LEN, NGUID_LEN};
use serde::Serialize;
use std::fmt::Write;
use uuid::Uuid;

/// A namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Namespace {
    /// Name of the disk, such as rnvmf0n1.
    pub(crate) name: String,
    /// Number of its controller.
    pub(crate) controller_id: u32,
    /// Namespace identifier.
    pub(crate) nsid: u32,
    /// Capacity in bytes.
    pub(crate) size: u64,
    /// Logical block size in bytes.
    pub(crate) block_size: u32,
    /// Physical block size in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) physical_block_size: Option<u32>,
    /// Namespace globally unique identifier, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nguid: Option<String>,
    /// Extended unique identifier, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) eui64: Option<String>,
    /// Universally unique identifier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) uuid: Option<String>,
    /// It refuses writes.
    pub(crate) read_only: bool,
    /// The target has a volatile write cache.
    pub(crate) write_cache: bool,
}

impl Namespace {
    /// Read the attributes of a reply or an event.
    pub(crate) fn read(from: &Attributes) -> Result<Self, Malformed> {
        Ok(Self {
            name: from.require("name", from.string(attribute::NAME)?)?,
            controller_id: from.require("ctrl-id", from.u32(attribute::CTRL_ID)?)?,
            nsid: from.require("nsid", from.u32(attribute::NSID)?)?,
            size: from.require("size", from.uint(attribute::SIZE)?)?,
            block_size: from.require("block-size", from.u32(attribute::BLOCK_SIZE)?)?,
            physical_block_size: from.u32(attribute::PHYSICAL_BLOCK_SIZE)?,
            nguid: from.array::<NGUID_LEN>(attribute::NGUID)?.map(hex),
            eui64: from.array::<EUI64_LEN>(attribute::EUI64)?.map(hex),
            uuid: from
                .array(attribute::UUID)?
                .map(|bytes| Uuid::from_bytes(bytes).to_string()),
            read_only: from.flag(attribute::READ_ONLY),
            write_cache: from.flag(attribute::WRITE_CACHE),
        })
    }
}

fn hex<const N: usize>(bytes: [u8; N]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nlattr::tests::{attributes, bytes, flag, number, text};

    /// A namespace of 1 GiB.
    pub(crate) fn disk() -> Namespace {
        Namespace {
            name: "rnvmf0n1".into(),
            controller_id: 0,
            nsid: 1,
            size: 1 << 30,
            block_size: 512,
            physical_block_size: Some(4096),
            nguid: Some("000102030405060708090a0b0c0d0e0f".into()),
            eui64: Some("0001020304050607".into()),
            uuid: Some("00010203-0405-0607-0809-0a0b0c0d0e0f".into()),
            read_only: false,
            write_cache: true,
        }
    }

    #[test]
    fn reads_everything() {
        let sixteen: [u8; 16] = std::array::from_fn(|i| i as u8);
        let message = attributes(vec![
            number(attribute::CTRL_ID, 0u32),
            number(attribute::NSID, 1u32),
            text(attribute::NAME, "rnvmf0n1"),
            number(attribute::SIZE, 1u32 << 30),
            number(attribute::BLOCK_SIZE, 512u32),
            number(attribute::PHYSICAL_BLOCK_SIZE, 4096u32),
            bytes(attribute::NGUID, &sixteen),
            bytes(attribute::EUI64, &sixteen[..8]),
            bytes(attribute::UUID, &sixteen),
            flag(attribute::WRITE_CACHE),
        ]);
        assert_eq!(Namespace::read(&message).unwrap(), disk());
    }

    #[test]
    fn a_size_may_take_eight_bytes() {
        let message = attributes(vec![
            number(attribute::CTRL_ID, 0u32),
            number(attribute::NSID, 1u32),
            text(attribute::NAME, "rnvmf0n1"),
            bytes(attribute::SIZE, &(1u64 << 40).to_ne_bytes()),
            number(attribute::BLOCK_SIZE, 512u32),
        ]);
        assert_eq!(Namespace::read(&message).unwrap().size, 1 << 40);
    }

    #[test]
    fn an_identifier_of_a_wrong_size_is_refused() {
        let message = attributes(vec![
            number(attribute::CTRL_ID, 0u32),
            number(attribute::NSID, 1u32),
            text(attribute::NAME, "rnvmf0n1"),
            number(attribute::SIZE, 0u32),
            number(attribute::BLOCK_SIZE, 512u32),
            bytes(attribute::NGUID, &[0; 15]),
        ]);
        assert!(Namespace::read(&message).is_err());
    }
}
