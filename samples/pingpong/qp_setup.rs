// SPDX-License-Identifier: GPL-2.0

//! Creation of the queue pairs, up to the state in which receives are posted.

use super::{
    engine::{
        polled_queue::PolledQueue,
        qp_ctx::{
            QpCtx,
            RecvBuf, //
        },
        PingPong,
        PingPongConfig, //
    },
    settings::Settings,
    Receives,
    Transport, //
};
use crate::common::{
    step_error::{
        Step,
        StepError, //
    },
    task::{
        self,
        SampleTask, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use rrdma::rdma::{
    device::{
        DeviceRef,
        Port, //
    },
    pd::ProtectionDomain,
    qp::{
        self,
        Init,
        Psn,
        QpCap,
        QpInitAttr, //
    },
};

/// Queue pairs with posted receives, and their completion queue.
pub(super) struct QpSetup<T: Transport> {
    pub(super) pd: Arc<ProtectionDomain>,
    pub(super) engine: Arc<PingPong>,
    pub(super) receives: T::Receives,
    /// Each queue pair with the number of its first packet.
    pub(super) inits: KVec<(Init<QpCtx<T>>, Psn)>,
    pub(super) queue: PolledQueue,
}

impl<T: Transport> QpSetup<T> {
    /// Creates all objects and posts the receives. May sleep.
    pub(super) fn new(
        task: &SampleTask,
        settings: &Settings,
        device: &DeviceRef,
        port: Port<'_>,
    ) -> Result<Self, StepError> {
        let (queue_pairs, shared_receives) = T::Receives::counts(settings);
        let config = PingPongConfig {
            iters: settings.iters,
            begins: settings.is_client(),
            check: settings.check,
            queue_pairs,
            shared_receives,
        };
        let engine = PingPong::new(task, config)?;
        let pd = ProtectionDomain::new(device.clone(), task::NAME).step("protection domain")?;
        let receives = T::Receives::new(&engine, &pd, settings)?;
        let capacity = QpCap {
            sends: 1,
            receives: match shared_receives {
                0 => settings.rx_depth,
                _ => 0,
            },
            send_sges: 1,
        };
        let entries = capacity
            .completions()
            .saturating_mul(queue_pairs)
            .saturating_add(shared_receives);
        let queue = PolledQueue::new(task, device, entries, settings.events);
        let queue = queue.step("completion queue")?;
        let mut inits = KVec::new();
        for _ in 0..queue_pairs {
            let ctx = QpCtx::new(&engine, device, settings.size)?;
            let parts = QpInitAttr::new(pd.clone(), queue.completion_queue().clone(), capacity);
            let reset = qp::create(receives.attach(parts), ctx, task::NAME).step("queue pair")?;
            let init = T::initialise(reset, port).step("queue pair")?;
            for _ in 0..capacity.receives {
                let receive = RecvBuf::new::<T>(device, settings.size).step("receive")?;
                init.post_receive(receive).step("receive")?;
            }
            let init = (init, Psn::random());
            inits.push(init, GFP_KERNEL).step("queue pair")?;
        }
        Ok(Self {
            pd,
            engine,
            receives,
            inits,
            queue,
        })
    }
}
