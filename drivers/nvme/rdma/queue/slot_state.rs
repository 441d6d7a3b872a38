// SPDX-License-Identifier: GPL-2.0

//! State of a slot's command, and its preparation.

use super::{
    capsule::{
        Capsule,
        CommandKind,
        InFlightWr,
        Transfer,
        UlpOf, //
    },
    queue_core::QueueCore,
};
use crate::stats::{
    CommandStats,
    DataMode,
    PostPosition, //
};
use kernel::prelude::*;
use nvme_proto::{
    format::{
        cid::CommandId,
        cqe::Completion,
        sgl::{
            Invalidate,
            Sgl, //
        },
        sqe::Command,
    },
    policy::request_state::{
        RequestAction,
        RequestEvent,
        RequestState, //
    },
};
use rrdma::rdma::{
    cq::Invalidation,
    mr::Region,
    wr::Operation, //
};

/// State of a slot's command.
pub(super) struct SlotState<K: CommandKind> {
    pub(super) id: CommandId,
    pub(super) state: RequestState,
    /// The capsule, while no work request owns it.
    pub(super) capsule: Option<Operation<Capsule<K>>>,
    /// Key that the target was given.
    pub(super) rkey: Option<u32>,
    /// The response, if the command waits for other events.
    pub(super) response: Option<SlotResponse>,
    pub(super) stats: CommandStats,
}

/// A response, with the key that the target invalidated.
pub(super) struct SlotResponse {
    pub(super) completion: Completion,
    pub(super) invalidation: Option<Invalidation>,
}

/// A command that was not sent.
pub(super) struct Unsent<P> {
    pub(super) error: Error,
    /// Payload of the command; `None` if it was sent without one, or if the region holds it until
    /// the drain.
    pub(super) payload: Option<P>,
}

impl<K: CommandKind> SlotState<K> {
    /// Applies an event to the command, and returns what to do.
    #[inline(always)]
    pub(super) fn apply(&mut self, event: RequestEvent) -> RequestAction {
        let (state, action) = self.state.after(event);
        self.state = state;
        action
    }

    /// Writes the command, with its identifier and SGL, to its capsule.
    // The command is written before the data is mapped, so fewer registers are live across the
    // mapping.
    #[inline(always)]
    pub(super) fn prepare(
        &mut self,
        core: &QueueCore<UlpOf<K>>,
        capsule: &mut Capsule<K>,
        mut command: Command,
        transfer: Option<Transfer<K::Payload>>,
    ) -> Result<DataMode, Unsent<K::Payload>> {
        let length = transfer.as_ref().map_or(0, |transfer| transfer.length);
        self.id = CommandId::new(self.id.tag(), self.id.generation().next());
        self.stats = CommandStats::new(&core.stats, command.io_op(core.qid()), length);
        command.set_command_id(self.id);
        capsule.in_flight = InFlightWr::Command;
        capsule.position = PostPosition::First;
        let Capsule {
            command: buffer,
            region,
            ..
        } = capsule;
        let mut entry = buffer.write();
        match entry.first_chunk_mut() {
            Some(entry) => command.write_to(entry),
            None => {
                return Err(Unsent {
                    error: EINVAL,
                    payload: transfer.map(|transfer| transfer.payload),
                })
            }
        }
        let direction = transfer.as_ref().map(|transfer| transfer.direction);
        if let Some(transfer) = transfer {
            let mapped = region.dma_map(transfer.payload, transfer.direction);
            mapped.map_err(|(error, payload)| Unsent {
                error,
                payload: Some(payload),
            })?;
        }
        let data_mode = core.data_mode(direction, region.segments(), length);
        match self.expose(region, data_mode, length) {
            Ok(sgl) => {
                if let (Some(sgl), Some(entry)) = (sgl, entry.first_chunk_mut()) {
                    Command::set_sgl_of(entry, sgl);
                }
            }
            Err(error) => {
                let payload = region.release();
                return Err(Unsent { error, payload });
            }
        }
        self.stats.data_mode = data_mode;
        Ok(data_mode)
    }

    /// Gives the target access to the data, and returns the SGL descriptor of the data.
    #[inline(always)]
    fn expose(
        &mut self,
        region: &mut Region<K::Payload>,
        data_mode: DataMode,
        length: u32,
    ) -> Result<Option<Sgl>> {
        let (rkey, sgl) = match data_mode {
            DataMode::Nothing => (None, None),
            DataMode::InCapsule => (None, Some(Sgl::in_capsule(0, length))),
            DataMode::ByKey => {
                let key = region.map_sg()?;
                let sgl = Sgl::keyed(key.address, key.length, key.rkey, Invalidate::ByTarget);
                (Some(key.rkey), Some(sgl.ok_or(EINVAL)?))
            }
        };
        self.rkey = rkey;
        self.state = match self.state.after(RequestEvent::Post {
            region: data_mode == DataMode::ByKey,
        }) {
            (state, RequestAction::Wait) => state,
            _ => return Err(EBUSY),
        };
        Ok(sgl)
    }
}
