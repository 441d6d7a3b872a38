// SPDX-License-Identifier: GPL-2.0

//! Creation of the queue pair, up to the state in which receives are posted.

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
    Transport, //
};
use crate::common::{
    failure::{
        Failure,
        Step, //
    },
    task::SampleTask, //
};
use kernel::{
    prelude::*,
    str::CStr,
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
        QpCap,
        QpInitAttr, //
    },
};

/// Owner that `rdma resource` shows.
const OWNER: &CStr = c"rrdma_pingpong";

/// A queue pair with posted receives, and its completion queue.
pub(super) struct QpSetup<T: Transport> {
    pub(super) pd: Arc<ProtectionDomain>,
    pub(super) engine: Arc<PingPong>,
    pub(super) init: Init<QpCtx<T>>,
    pub(super) queue: PolledQueue,
}

impl<T: Transport> QpSetup<T> {
    /// Creates all objects and posts the receives.
    pub(super) fn new(
        task: &Arc<SampleTask>,
        settings: &Settings,
        device: &DeviceRef,
        port: Port<'_>,
    ) -> Result<Self, Failure> {
        let pd = ProtectionDomain::new(device.clone(), OWNER).step("protection domain")?;
        let capacity = QpCap {
            sends: 1,
            receives: settings.rx_depth,
            send_sges: 1,
        };
        let config = PingPongConfig {
            iters: settings.iters,
            begins: settings.is_client(),
            check: settings.check,
            queue_pairs: 1,
            shared_receives: 0,
        };
        let engine = PingPong::new(task, config)?;
        let entries = capacity.completions();
        let queue = PolledQueue::new(task, device, entries, settings.poller, OWNER)
            .step("completion queue")?;
        let ctx = QpCtx::new(&engine, device, settings.size, None)?;
        let parts = QpInitAttr::new(pd.clone(), queue.completion_queue().clone(), capacity);
        let reset = qp::create(parts, ctx, OWNER).step("queue pair")?;
        let init = T::initialise(reset, port).step("queue pair")?;
        for _ in 0..settings.rx_depth {
            let receive = RecvBuf::new::<T>(device, settings.size).step("receive")?;
            init.post_receive(receive).step("receive")?;
        }
        Ok(Self {
            pd,
            engine,
            init,
            queue,
        })
    }
}
