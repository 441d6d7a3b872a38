// SPDX-License-Identifier: GPL-2.0

//! Formats: the bytes that NVMe, NVMe over Fabrics and its RDMA transport put on the wire.

pub mod async_event;
pub mod changed_namespaces;
pub mod cid;
pub mod connect;
pub mod cqe;
pub mod discovery;
pub mod dsm;
pub mod effects_log;
pub mod identify;
pub mod nqn;
pub mod passthru;
pub mod private_data;
pub mod property;
pub mod sgl;
pub mod sqe;
pub mod status;
pub mod uuid;

pub(crate) mod layout;
