// SPDX-License-Identifier: GPL-2.0

//! A namespace with a disk, as the kernel describes it.

use crate::uapi::DiskUse;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A namespace.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Namespace {
    /// Name of the disk, such as rnvmf0n1.
    pub(crate) name: String,
    /// Number of its controller.
    #[serde(rename(deserialize = "ctrl_id"))]
    pub(crate) controller_id: u32,
    /// Namespace identifier.
    pub(crate) nsid: u32,
    /// Capacity in bytes.
    pub(crate) size: u64,
    /// Logical block size in bytes.
    pub(crate) block_size: u32,
    /// Physical block size in bytes.
    pub(crate) physical_block_size: Option<u32>,
    /// Namespace globally unique identifier, in hexadecimal.
    pub(crate) nguid: Option<String>,
    /// IEEE extended unique identifier, in hexadecimal.
    pub(crate) eui64: Option<String>,
    /// Universally unique identifier.
    pub(crate) uuid: Option<Uuid>,
    /// Whether the target rejects writes.
    #[serde(default)]
    pub(crate) read_only: bool,
    /// Whether the target has a volatile write cache.
    #[serde(default)]
    pub(crate) write_cache: bool,
    /// How the disk or its partitions are open; `None` from a module that does not report it.
    #[serde(rename(deserialize = "use"), skip_serializing)]
    pub(crate) usage: Option<u32>,
}

impl Namespace {
    /// Whether anybody has the disk or a partition of it open. What is unknown is open.
    pub(crate) fn is_open(&self) -> bool {
        self.usage != Some(DiskUse::Closed as u32)
    }

    /// Whether a file system, swap, the device mapper or RAID, for example, holds the disk or a
    /// partition exclusively. What is unknown is held.
    pub(crate) fn is_claimed(&self) -> bool {
        self.is_open() && self.usage != Some(DiskUse::Open as u32)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::json;

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
            uuid: "00010203-0405-0607-0809-0a0b0c0d0e0f".parse().ok(),
            read_only: false,
            write_cache: true,
            usage: Some(DiskUse::Closed as u32),
        }
    }

    #[test]
    fn reads_everything() {
        let message = json!({
            "ctrl_id": 0,
            "nsid": 1,
            "name": "rnvmf0n1",
            "size": 1 << 30,
            "block_size": 512,
            "physical_block_size": 4096,
            "nguid": "000102030405060708090a0b0c0d0e0f",
            "eui64": "0001020304050607",
            "uuid": "000102030405060708090a0b0c0d0e0f",
            "write_cache": true,
            "use": 0,
        });
        assert_eq!(
            serde_json::from_value::<Namespace>(message).unwrap(),
            disk()
        );
    }

    #[test]
    fn a_use_that_is_unknown_is_one() {
        for (usage, is_open, is_claimed) in [
            (Some(DiskUse::Closed as u32), false, false),
            (Some(DiskUse::Open as u32), true, false),
            (Some(DiskUse::Claimed as u32), true, true),
            (Some(99), true, true),
            (None, true, true),
        ] {
            let disk = Namespace { usage, ..disk() };
            assert_eq!((disk.is_open(), disk.is_claimed()), (is_open, is_claimed));
        }
    }
}
