// SPDX-License-Identifier: GPL-2.0

//! `SendBatch`, and stand-ins for the rest of a queue.

#[path = "../../../drivers/nvme/rdma/queue/send_batch.rs"]
#[expect(dead_code, reason = "blk-mq is not part of the model")]
mod send_batch;
mod tests;

pub(crate) mod params {
    pub(crate) struct QueueConfig {
        pub(crate) requests: u16,
    }
}

pub(crate) mod stats {
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(crate) enum PostPosition {
        First,
        Follows,
    }
}

pub(crate) mod ulp {
    pub(crate) trait Ulp {
        type Payload;
        type Rejected;

        fn reject(error: crate::prelude::Error, payload: Self::Payload) -> Self::Rejected;
        fn finish(rejected: Self::Rejected);
    }
}

pub(crate) mod capsule {
    use crate::{stats::PostPosition, ulp::Ulp};
    use std::marker::PhantomData;

    pub(crate) trait CommandKind: 'static {
        type Queue;
        type Payload;
        type Ulp: Ulp;
    }

    pub(crate) type UlpOf<K> = <K as CommandKind>::Ulp;

    pub(crate) struct Capsule<K> {
        pub(crate) tag: u16,
        pub(crate) position: PostPosition,
        pub(crate) kind: PhantomData<fn(K)>,
    }
}

pub(crate) mod slot {
    use super::{
        capsule::{Capsule, CommandKind},
        slot_state::Unsent,
    };
    use crate::rdma::{
        qp::QueuePair,
        wr::{Operation, Unposted},
    };

    pub(crate) trait SlotLookup: CommandKind + Sized {
        fn slot(queue: &Self::Queue, tag: u16) -> Option<&dyn Slot<Self>>;
    }

    pub(crate) trait Slot<K: SlotLookup> {
        fn set_aside(&self, capsule: Operation<Capsule<K>>);

        fn undo(
            &self,
            queue: &QueuePair<K::Queue>,
            unposted: Unposted<Capsule<K>>,
        ) -> Unsent<K::Payload>;
    }
}

pub(crate) mod slot_state {
    pub(crate) struct Unsent<P> {
        pub(crate) error: crate::prelude::Error,
        pub(crate) payload: Option<P>,
    }
}
