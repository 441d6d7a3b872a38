// SPDX-License-Identifier: GPL-2.0

//! Fabrics commands.
//!
//! Source: NVMe Base 2.3, sections 6.3 (Connect), 6.5 (Property Get) and 6.6 (Property Set).

use super::Command;
use crate::format::property::Property;

/// Parameters of a Connect command, which creates a queue. Its data is
/// [`crate::format::connect::ConnectData`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connect {
    /// Queue identifier; 0 is the admin queue.
    pub queue_id: u16,
    /// Size of the submission queue, zero-based (SQSIZE).
    pub sq_size: u16,
    /// Keep alive timeout (KATO) in milliseconds, 0 for none. For the admin queue only.
    pub keep_alive_ms: u32,
    /// Disable SQ flow control.
    pub disable_sq_flow: bool,
}

impl Connect {
    pub(crate) const QUEUE_ID_AT: usize = 42;
    pub(crate) const SQ_SIZE_AT: usize = 44;
    pub(crate) const KEEP_ALIVE_AT: usize = 48;

    const DISABLE_SQ_FLOW: u8 = 1 << 2;
}

impl Command {
    const PROPERTY_SET: u8 = 0x00;
    const CONNECT: u8 = 0x01;
    pub(crate) const PROPERTY_GET: u8 = 0x04;

    /// Returns a Connect command.
    pub fn connect(connect: Connect) -> Self {
        let attributes = if connect.disable_sq_flow {
            Connect::DISABLE_SQ_FLOW
        } else {
            0
        };
        let mut command = Self::with_fabrics_type(Self::CONNECT);
        command.put::<{ Connect::QUEUE_ID_AT }, 2>(connect.queue_id.to_le_bytes());
        command.put::<{ Connect::SQ_SIZE_AT }, 2>(connect.sq_size.to_le_bytes());
        command.put::<46, 1>([attributes]);
        command.put::<{ Connect::KEEP_ALIVE_AT }, 4>(connect.keep_alive_ms.to_le_bytes());
        command
    }

    /// Returns the parameters of a Connect command; `None` for any other command.
    pub fn connect_params(&self) -> Option<Connect> {
        let fields = self.fields();
        (self.fabrics_type() == Some(Self::CONNECT)).then(|| Connect {
            queue_id: fields.u16::<{ Connect::QUEUE_ID_AT }>(),
            sq_size: fields.u16::<{ Connect::SQ_SIZE_AT }>(),
            keep_alive_ms: fields.u32::<{ Connect::KEEP_ALIVE_AT }>(),
            disable_sq_flow: fields.u8::<46>() & Connect::DISABLE_SQ_FLOW != 0,
        })
    }

    /// Returns a Property Get command.
    pub fn property_get(property: Property) -> Self {
        Self::property(Self::PROPERTY_GET, property)
    }

    /// Returns a Property Set command.
    pub fn property_set(property: Property, value: u64) -> Self {
        let mut command = Self::property(Self::PROPERTY_SET, property);
        command.put::<48, 8>(value.to_le_bytes());
        command
    }

    fn property(kind: u8, property: Property) -> Self {
        let mut command = Self::with_fabrics_type(kind);
        command.put::<40, 1>([property.size_attribute()]);
        command.put::<44, 4>(property.offset().to_le_bytes());
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::sqe::testing::entry;
    use crate::format::sqe::Direction;

    #[test]
    fn connect() {
        let admin = Connect {
            queue_id: 0,
            sq_size: 31,
            keep_alive_ms: 5_000,
            disable_sq_flow: false,
        };
        let io = Connect {
            queue_id: 0x0102,
            sq_size: 127,
            keep_alive_ms: 0,
            disable_sq_flow: true,
        };
        let command = Command::connect(admin);
        assert_eq!(*command.as_bytes(), entry(0x7f, 1, [0, 31, 5_000, 0, 0, 0]));
        assert_eq!(command.direction(), Direction::ToTarget);
        assert_eq!(
            *Command::connect(io).as_bytes(),
            entry(0x7f, 1, [0x0102_0000, 0x0004_007f, 0, 0, 0, 0])
        );
        for params in [admin, io] {
            assert_eq!(Command::connect(params).connect_params(), Some(params));
        }
        let other = Command::property_get(Property::Status);
        assert_eq!(other.connect_params(), None);
    }

    #[test]
    fn properties() {
        assert_eq!(
            *Command::property_get(Property::Capabilities).as_bytes(),
            entry(0x7f, 4, [1, 0, 0, 0, 0, 0])
        );
        assert_eq!(
            *Command::property_get(Property::Status).as_bytes(),
            entry(0x7f, 4, [0, 0x1c, 0, 0, 0, 0])
        );
        assert_eq!(
            *Command::property_set(Property::Configuration, 0x0046_0001).as_bytes(),
            entry(0x7f, 0, [0, 0x14, 0x0046_0001, 0, 0, 0])
        );
    }
}
