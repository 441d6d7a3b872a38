// SPDX-License-Identifier: GPL-2.0

//! A driver whose objects do nothing, for tests of their ends. The module that includes this file has a constant `NAME`.

use super::NAME;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use rrdma::{
    block::{
        Disk,
        DiskConfig,
        Limits,
        Openers,
        Operations,
        QueueCounts,
        QueueKinds,
        Refused,
        Request,
        RequestRef,
        Status,
        TagSet,
        TagSetConfig,
        TimeoutAction, //
    },
    chrdev::{
        self,
        Node,
        Numbers, //
    },
    ioctl::Call,
    netlink,
    rdma::{
        client::Client,
        cm::{
            Endpoint,
            Lost, //
        },
        cq::WcError,
        qp::{
            Fault,
            QpContext,
            QueuePair,
            Rc, //
        },
    },
    sync::{
        Msecs,
        RcuSection, //
    },
};

/// Data, operations and context of the objects.
pub(crate) struct Driver;

impl chrdev::Operations for Driver {
    fn ioctl(&self, _call: &Call) -> Result<c_int> {
        Err(ENOTTY)
    }
}

impl netlink::Family for Driver {
    const NAME: &'static CStr = NAME;
    const VERSION: u8 = 1;
    const OPERATIONS: &'static [netlink::Operation<Self>] = &[netlink::Operation {
        command: 1,
        admin: false,
        attributes: &[],
        doit: Some(|(), _| Ok(())),
        dumpit: None,
    }];
    const GROUPS: &'static [&'static CStr] = &[];

    type Context = ();
}

impl Client for Driver {
    const NAME: &'static CStr = NAME;

    type Context = ();
}

impl QpContext for Driver {
    type QpType = Rc;

    fn failed(_queue: &QueuePair<Self>, _failure: WcError) {}

    fn faulted(_queue: &QueuePair<Self>, _fault: Fault) {}
}

impl Endpoint for Driver {
    fn lost(_queue: &QueuePair<Self>, _cause: Lost) {}
}

impl Operations for Driver {
    type SetData = ();
    type QueueData = ();
    type DiskData = ();
    type RequestData = ();

    fn new_queue(_set: &(), _index: u32) -> Result {
        Ok(())
    }

    fn new_request_data(_set: &(), _queue: u32) -> impl PinInit<()> {}

    fn queue_rq(
        _queue: &(),
        _disk: &(),
        request: Request<Self>,
        _last: bool,
        _section: &RcuSection,
    ) -> Result<(), Refused<Self>> {
        request.complete(Status::Ok);
        Ok(())
    }

    fn timeout(_queue: &(), _request: &RequestRef<Self>) -> TimeoutAction {
        TimeoutAction::ResetTimer
    }
}

/// Creates a character device. `EBUSY` while the module is being loaded.
pub(crate) fn node(module: &'static ThisModule) -> Result<Node> {
    let operations = Arc::new(Driver, GFP_KERNEL)?;
    Node::new(Numbers::new(NAME, 1)?, 0, module, operations)
}

/// Creates a tag set with one tag.
pub(crate) fn tag_set() -> Result<Arc<TagSet<Driver>>> {
    let queues = QueueCounts {
        default: 1,
        ..QueueCounts::default()
    };
    let config = TagSetConfig {
        queues,
        kinds: QueueKinds::Default,
        depth: 1,
        reserved_tags: 0,
        numa_node: TagSetConfig::NO_NODE,
        timeout: Msecs::from_secs(30),
    };
    TagSet::new(config, ())
}

/// Creates a disk. `EBUSY` while the module is being loaded.
pub(crate) fn disk(module: &'static ThisModule) -> Result<Disk<Driver>> {
    let config = DiskConfig {
        name: NAME,
        limits: Limits::default(),
        capacity_sectors: 8,
        read_only: false,
        module,
        parent: None,
        openers: &Openers::new()?,
    };
    Disk::new(config, tag_set()?, ())
}
