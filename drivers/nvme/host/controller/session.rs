// SPDX-License-Identifier: GPL-2.0

//! What a controller has while it is connected.

use super::{
    admin::{
        Admin,
        COMMAND, //
    },
    Controller,
};
use crate::{
    failure::Failure,
    io::Place,
    netlink::uapi::ErrorStage,
    queue::{
        CommandError,
        Queue, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use nvme_wire::property::Configuration;
use rrdma::{
    block::Status,
    rdma::cm::Connected,
    sync::{
        Deadline,
        Msecs, //
    },
};

/// The connections of a controller.
///
/// Their queue pairs hold the protection domain, completion queues and device:
/// all of it goes with [`Session::tear_down`]. What the disks need stays with
/// the disks, which find in their [`Place`]s that there is no queue any more.
pub(super) struct Session {
    pub(super) admin: Connected<Queue>,
    pub(super) io: KVec<Connected<Queue>>,
    pub(super) places: KVec<Arc<Place>>,
    pub(super) configuration: Configuration,
    pub(super) traffic_keeps_alive: bool,
    /// How long the controller may take to shut down.
    pub(super) shutdown: Msecs,
}

impl Session {
    /// The admin queue, for one command or what `limit` allows.
    pub(super) fn admin<'a>(&'a self, controller: &'a Controller, limit: Msecs) -> Admin<'a> {
        Admin {
            queue: &self.admin,
            controller,
            deadline: Deadline::after(limit),
        }
    }

    /// Whether any I/O command ended since this was asked last.
    pub(super) fn take_traffic(&self) -> bool {
        let mut any = false;
        for connection in &self.io {
            any |= connection.queue_pair().context().take_traffic();
        }
        any
    }

    /// Tells the target that we live; waits for its answer.
    pub(super) fn keep_alive(&self, controller: &Controller, limit: Msecs) -> Result<(), Failure> {
        match self.admin(controller, limit.min(COMMAND)).keep_alive() {
            // Removal has been asked for, which the caller will see.
            Ok(()) | Err(CommandError::Cancelled) => Ok(()),
            Err(CommandError::Trouble(trouble)) => Err(trouble.into()),
            Err(error) => {
                let what = "keep-alive";
                Err(Failure::from_command(ErrorStage::KeepAlive, error, what))
            }
        }
    }

    /// Tells the controller to shut down in good order. It is a courtesy: what
    /// goes wrong changes nothing, the connection ends in any case.
    pub(super) fn shut_down(&self, controller: &Controller) {
        let admin = self.admin(controller, self.shutdown);
        if let Err(failure) = admin.shut_down(self.configuration) {
            let message = failure.message;
            controller.log(format_args!("shutdown: {}", message.as_str()));
        }
    }

    /// Ends the connections, and with an error what is in flight on them. The
    /// order is that of [`crate::queue`]: nothing finds the queues any more, the
    /// queue pairs are drained, the requests end, everything is freed. Sleeps.
    pub(super) fn tear_down(self) {
        for place in &self.places {
            drop(place.queue.retract());
        }
        for connection in &self.io {
            end(connection);
        }
        end(&self.admin);
    }
}

fn end(connection: &Connected<Queue>) {
    connection.disconnect();
    connection.queue_pair().context().reclaim(Status::Transport);
}
