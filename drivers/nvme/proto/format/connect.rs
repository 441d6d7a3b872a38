// SPDX-License-Identifier: GPL-2.0

//! Data, response and errors of the Fabrics Connect command.
//!
//! Source: NVMe Base 2.3, section 6.3 (Connect Command and Response).
//!
//! # Example
//!
//! The command for an admin queue of 32 entries, with its data:
//!
//! ```
//! use nvme_proto::format::{
//!     connect::ConnectData,
//!     nqn::Nqn,
//!     sqe::{Command, Connect},
//!     uuid::Uuid,
//! };
//!
//! let command = Command::connect(Connect {
//!     queue_id: 0,
//!     sq_size: 31,
//!     keep_alive_ms: 5_000,
//!     disable_sq_flow: false,
//! });
//! assert_eq!(command.fabrics_type(), Some(0x01));
//!
//! let mut data = [0; ConnectData::SIZE];
//! ConnectData {
//!     host_id: Uuid::from_bytes([0x2c; Uuid::SIZE]),
//!     controller_id: ConnectData::ANY_CONTROLLER,
//!     subsystem: Nqn::new(b"nqn.2024-01.example:disk").unwrap(),
//!     host: Nqn::new(b"nqn.2024-01.example:host").unwrap(),
//! }
//! .encode(&mut data);
//! assert!(data[256..].starts_with(b"nqn.2024-01.example:disk\0"));
//! ```

mod error;

use crate::format::layout::Writer;
use crate::format::nqn::Nqn;
use crate::format::uuid::Uuid;

pub use self::error::{ConnectError, Parameter};

/// Data of a Connect command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectData<'a> {
    /// Host identifier (HOSTID).
    pub host_id: Uuid,
    /// Controller identifier (CNTLID); [`ConnectData::ANY_CONTROLLER`] for the admin queue.
    pub controller_id: u16,
    /// NQN of the subsystem (SUBNQN).
    pub subsystem: Nqn<'a>,
    /// NQN of the host (HOSTNQN).
    pub host: Nqn<'a>,
}

const HOST_ID_AT: usize = 0;
const CONTROLLER_ID_AT: usize = 16;
const SUBSYSTEM_AT: usize = 256;
const HOST_AT: usize = 512;

impl ConnectData<'_> {
    /// Size in bytes.
    pub const SIZE: usize = 1024;

    /// Dynamic controller model: the target chooses the controller.
    pub const ANY_CONTROLLER: u16 = 0xffff;

    /// Writes the data to `block`.
    pub fn encode(&self, block: &mut [u8; ConnectData::SIZE]) {
        *block = [0; ConnectData::SIZE];
        let mut block = Writer::over(block);
        block.put::<HOST_ID_AT, 16>(self.host_id.to_bytes());
        block.put::<CONTROLLER_ID_AT, 2>(self.controller_id.to_le_bytes());
        block.put::<SUBSYSTEM_AT, 256>(padded(self.subsystem));
        block.put::<HOST_AT, 256>(padded(self.host));
    }
}

/// Returns the 256-byte field of a name. A NUL always ends the name, which has at most 223 bytes.
fn padded(name: Nqn<'_>) -> [u8; 256] {
    let mut field = [0; 256];
    for (place, byte) in field.iter_mut().zip(name.as_str().bytes()) {
        *place = byte;
    }
    field
}

/// Response to a successful Connect command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectResponse {
    /// Controller identifier (CNTLID).
    pub controller_id: u16,
    /// Whether the host must authenticate before it sends other commands (AUTHREQ).
    pub authentication_required: bool,
}

impl ConnectResponse {
    /// `NVME_CONNECT_AUTHREQ_ATR` and `NVME_CONNECT_AUTHREQ_ASCR`: authentication, alone or with a
    /// secure channel after it.
    const AUTHENTICATION: u32 = (1 << 17) | (1 << 18);

    /// Decodes the 32-bit result of a successful Connect command.
    pub const fn from_result(result: u32) -> Self {
        Self {
            controller_id: (result & 0xffff) as u16,
            authentication_required: result & Self::AUTHENTICATION != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout() {
        let data = ConnectData {
            host_id: Uuid::from_bytes([0xa5; 16]),
            controller_id: 0x1234,
            subsystem: Nqn::new(b"nqn.subsystem").unwrap(),
            host: Nqn::new(&[b'h'; Nqn::MAX_LEN]).unwrap(),
        };
        let mut block = [0xff; 1024];
        data.encode(&mut block);
        let mut expected = [0; 1024];
        expected[..16].fill(0xa5);
        expected[16..18].copy_from_slice(&[0x34, 0x12]);
        expected[256..269].copy_from_slice(b"nqn.subsystem");
        expected[512..735].fill(b'h');
        assert_eq!(block, expected);
    }

    #[test]
    fn results() {
        let cases = [
            (0x0000_0001, 1, false),
            (0x0000_ffef, 0xffef, false),
            (0x0002_0007, 7, true),
            (0x0004_0007, 7, true),
            (0xfff9_0007, 7, false),
        ];
        for (result, controller_id, authentication_required) in cases {
            let connected = ConnectResponse {
                controller_id,
                authentication_required,
            };
            assert_eq!(
                ConnectResponse::from_result(result),
                connected,
                "{result:#x}"
            );
        }
    }
}
