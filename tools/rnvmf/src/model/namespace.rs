// SPDX-License-Identifier: GPL-2.0

//! A namespace with a disk, as the kernel describes it.

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
        });
        assert_eq!(
            serde_json::from_value::<Namespace>(message).unwrap(),
            disk()
        );
    }
}
