// SPDX-License-Identifier: GPL-2.0

//! Data and outcome of the Fabrics Connect command.

mod error;

use crate::format::layout::Writer;
use crate::format::nqn::Nqn;
use crate::format::uuid::Uuid;

pub use self::error::{ConnectError, Parameter};

/// The data that goes with a Connect command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectData<'a> {
    /// Which host this is.
    pub host_id: Uuid,
    /// The controller; [`ConnectData::ANY_CONTROLLER`] for the admin queue.
    pub controller_id: u16,
    /// The subsystem to connect to.
    pub subsystem: Nqn<'a>,
    /// What the host is called.
    pub host: Nqn<'a>,
}

const HOST_ID_AT: usize = 0;
const CONTROLLER_ID_AT: usize = 16;
const SUBSYSTEM_AT: usize = 256;
const HOST_AT: usize = 512;

impl ConnectData<'_> {
    /// Size of the data in bytes.
    pub const SIZE: usize = 1024;

    /// Lets the target choose the controller.
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

/// A name in a field of 256 bytes, which no name fills.
fn padded(name: Nqn<'_>) -> [u8; 256] {
    let mut field = [0; 256];
    for (place, byte) in field.iter_mut().zip(name.as_str().bytes()) {
        *place = byte;
    }
    field
}

/// What a successful Connect returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectResponse {
    /// The controller that the queue belongs to.
    pub controller_id: u16,
    /// Whether the host has to authenticate before anything else.
    pub authentication_required: bool,
}

impl ConnectResponse {
    /// Authentication, alone or with a secure channel after it.
    const AUTHENTICATION: u32 = (1 << 17) | (1 << 18);

    /// Reads the 32-bit result of a successful Connect.
    #[must_use]
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
