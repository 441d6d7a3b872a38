// SPDX-License-Identifier: GPL-2.0

//! Types and limits of a transport.

use crate::capsule::COMMAND_SIZE;
use kernel::prelude::*;
use rrdma::rdma::qp::{
    QpContext,
    Reliable, //
};

/// A limit of a port that the user may set.
#[derive(Clone, Copy)]
pub struct PortLimit {
    /// The value if the user set none.
    pub default: u32,
    /// The largest value.
    pub max: u32,
}

impl PortLimit {
    /// Sets `value` to the default if it is negative, and to the maximum if it is larger.
    pub(crate) fn apply(self, value: &mut c_int, attribute: &str) {
        match u32::try_from(*value) {
            Err(_) => *value = self.default as c_int,
            Ok(asked) if asked > self.max => {
                let max = self.max;
                pr_warn!("{attribute}: {asked} is too large, reduced to {max}\n");
                *value = max as c_int;
            }
            Ok(_) => {}
        }
    }
}

/// Limits of the ports of a transport.
pub struct PortLimits {
    /// In-capsule data in bytes.
    pub in_capsule: PortLimit,
    /// Entries of an I/O queue.
    pub queue_size: PortLimit,
    /// Maximum data of a command (MDTS): pages of 4 KiB, as a power of two.
    pub mdts: u8,
}

/// Types and limits of a [`Transport`](crate::Transport).
pub trait TransportTypes: Sized + Send + Sync + 'static {
    /// The context of the queue pairs.
    type Endpoint: QpContext<QpType: Reliable>;

    /// The transport's data of a request.
    type Command: Send;

    /// Limits of the ports.
    const LIMITS: PortLimits;

    /// Checks a command that nvmet is to pass to a controller of this machine. Process context.
    ///
    /// The controller takes the length of the data from the command. If that is not the length of the data that there
    /// is, the controller accesses other memory of this machine.
    ///
    /// # Errors
    ///
    /// The status of a command that is refused, in the form of `include/linux/nvme.h`.
    fn check_passthrough(command: &PassthroughCommand) -> Result<(), u16>;
}

/// A command for a controller of this machine.
pub struct PassthroughCommand {
    /// The command.
    pub command: [u8; COMMAND_SIZE],
    /// The queue of the command.
    pub queue: PassthroughQueue,
    /// Bytes of data.
    pub length: u32,
}

/// The queue of a [`PassthroughCommand`].
pub enum PassthroughQueue {
    /// The admin queue.
    Admin,
    /// An I/O queue, with the format of the namespace; `None` if the controller has no such namespace.
    Io(Option<NamespaceFormat>),
}

/// Format of the blocks of a namespace.
pub struct NamespaceFormat {
    /// Bytes of a block, without metadata.
    pub block_size: u32,
    /// Bytes of metadata of a block.
    pub metadata: u32,
}
