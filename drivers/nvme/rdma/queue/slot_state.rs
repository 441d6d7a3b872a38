// SPDX-License-Identifier: GPL-2.0

//! State of a slot's command, and its preparation.

use super::{
    capsule::{
        Capsule,
        CommandKind,
        InFlightWr,
        UlpOf, //
    },
    queue_core::QueueCore,
};
use crate::{
    stats::{
        Counters,
        DataMode,
        PostPosition, //
    },
    ulp::{
        Entry,
        Ulp, //
    },
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
use rrdma::{
    rdma::{
        cq::Invalidation,
        dma::Direction,
        mr::Region,
        wr::Operation, //
    },
    scatter::Scatter,
};

/// State of a slot's command.
pub(super) struct SlotState<K: CommandKind> {
    pub(super) id: CommandId,
    pub(super) state: RequestState,
    /// The capsule, while no work request owns it.
    pub(super) capsule: Option<Operation<Capsule<K>>>,
    /// Key that the target was given; 0 if the command has no region.
    pub(super) rkey: u32,
    /// The response, if the command waits for other events.
    pub(super) response: Option<SlotResponse>,
    pub(super) stats: CommandStats<K>,
}

/// Numbers of a command, for the counters of its ULP.
pub(super) type CommandStats<K> = <<UlpOf<K> as Ulp>::Stats as Counters>::Command;

/// A response, with the key that the target invalidated.
pub(super) struct SlotResponse {
    pub(super) completion: Completion,
    pub(super) invalidation: Option<Invalidation>,
}

/// A command that was not sent.
pub(super) struct Unsent<P> {
    pub(super) error: Error,
    /// Payload of the command; `None` if the region holds it until the drain.
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
        command: K::Command,
        payload: K::Payload,
    ) -> Result<DataMode, Unsent<K::Payload>> {
        self.id = CommandId::new(self.id.tag(), self.id.generation().next());
        let length = command.length(&payload);
        self.stats = core.stats.begin(command.io_op(core.qid()), length);
        capsule.in_flight = InFlightWr::Command;
        capsule.position = PostPosition::First;
        let Capsule {
            command: buffer,
            region,
            ..
        } = capsule;
        let mut buffer = buffer.write();
        command.write(&payload, self.id, &mut buffer);
        // Read where they are used, so that they are not kept meanwhile.
        let direction = command.direction(&payload);
        let inline_length = match direction {
            Direction::ToDevice => command.length(&payload),
            _ => 0,
        };
        let mapped = region.dma_map(payload, direction);
        mapped.map_err(|(error, payload)| Unsent {
            error,
            payload: Some(payload),
        })?;
        let data_mode = core.data_mode(inline_length, region.segments());
        match self.expose(region, data_mode, inline_length) {
            Ok(sgl) => Command::set_sgl_of(&mut buffer, sgl),
            Err(error) => {
                let payload = take_back(region);
                return Err(Unsent { error, payload });
            }
        }
        <UlpOf<K> as Ulp>::Stats::set_data_mode(&mut self.stats, data_mode);
        Ok(data_mode)
    }

    /// Gives the target access to the data, and returns the SGL descriptor of the data.
    #[inline(always)]
    fn expose(
        &mut self,
        region: &mut Region<K::Payload>,
        data_mode: DataMode,
        inline_length: u32,
    ) -> Result<Sgl> {
        let (rkey, sgl) = match data_mode {
            DataMode::Nothing => (0, Sgl::null()),
            DataMode::InCapsule => (0, Sgl::in_capsule(0, inline_length)),
            DataMode::ByKey => {
                let key = region.map_sg()?;
                let sgl = Sgl::keyed(key.address, key.length, key.rkey, Invalidate::ByTarget);
                (key.rkey, sgl.ok_or(EINVAL)?)
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

/// Takes the data back that the target got no access to.
// Not inlined: `prepare` would keep an address within the region for it.
#[cold]
#[inline(never)]
fn take_back<P: Scatter>(region: &mut Region<P>) -> Option<P> {
    region.release()
}
