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

    #[derive(Clone, Copy)]
    #[expect(dead_code, reason = "the models send commands without data")]
    pub(crate) enum DataMode {
        Nothing,
        InCapsule,
        ByKey,
    }
}

pub(crate) mod capsule {
    use crate::{
        prelude::Result,
        rdma::wr::Chain,
        stats::{DataMode, PostPosition},
    };
    use std::marker::PhantomData;

    pub(crate) trait CommandKind: 'static {
        type Queue;
        type Payload;
    }

    pub(crate) struct Capsule<K> {
        pub(crate) tag: u16,
        pub(crate) position: PostPosition,
        pub(crate) kind: PhantomData<fn(K)>,
    }

    impl<K: CommandKind> Capsule<K> {
        #[expect(
            clippy::unused_self,
            reason = "the work requests are not part of the model"
        )]
        pub(crate) fn chain<'a>(&'a self, _: DataMode, _: &mut Chain<'a, '_, K::Queue>) -> Result {
            Ok(())
        }
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
        fn finish(queue: &Self::Queue, unsent: Unsent<Self::Payload>);
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
    #[expect(dead_code, reason = "the models only count what is not sent")]
    pub(crate) struct Unsent<P> {
        pub(crate) error: crate::prelude::Error,
        pub(crate) payload: Option<P>,
    }
}
