// SPDX-License-Identifier: GPL-2.0

//! Namespaces: scans, and the disks of a controller.
//!
//! - [`id_registry`]: identifiers of the namespaces that have disks, of all controllers.
//! - [`set`]: namespaces with their disks, and the observer of changes.
//! - [`context`]: parameters of scans and disks.
//! - [`partitions`]: partition scans of disks.
//! - [`rejections`]: namespaces without a disk, with the reason.
//! - [`error`]: errors of a scan.
//! - [`identify`]: Identify data of namespaces, and the limits of their disks.
//! - [`mod@scan`]: a scan, and its result.
//! - [`update`]: updating the disks to the result of a scan.
//!
//! Nothing here knows the controller: a scan gets an admin queue, and the disks get a
//! [`DiskController`](rnvmf_disk::DiskController). Decisions are in [`nvme_proto::policy`].

mod context;
mod error;
mod id_registry;
mod identify;
mod partitions;
mod rejections;
mod scan;
mod set;
mod update;

pub(crate) use context::ScanContext;
pub(crate) use error::ScanError;
pub(crate) use id_registry::{
    IdOwner,
    IdRegistry, //
};
pub(crate) use rejections::{
    NsRejection,
    NsRejections, //
};
pub(crate) use scan::{
    scan,
    ScanResult, //
};
pub(crate) use set::{
    ChangeCount,
    NamespaceSet,
    NsChange,
    NsObserver, //
};
pub(crate) use update::DiskUpdate;
