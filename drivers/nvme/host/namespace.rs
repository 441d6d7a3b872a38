// SPDX-License-Identifier: GPL-2.0

//! Namespaces: scans, and the disks of a controller.
//!
//! - [`id_registry`]: identifiers of the namespaces that have disks, of all controllers.
//! - [`ns`]: a namespace with its disk.
//! - [`change`]: changes of the disks, and their observer.
//! - [`set`]: the disks of a controller.
//! - [`context`]: parameters of scans and disks.
//! - [`rejections`]: namespaces without a disk, with the reason.
//! - [`error`]: errors of a scan.
//! - [`identify`]: Identify data of namespaces, and the limits of their disks.
//! - [`result`]: the result of a scan.
//! - [`mod@scan`]: a scan.
//! - [`update`]: updating the disks to the result of a scan.
//!
//! Nothing here knows the controller: a scan gets an admin queue, and the disks get a
//! [`DiskController`](crate::disk::DiskController). Decisions are in [`nvme_proto::policy`].

mod change;
mod context;
mod error;
mod id_registry;
mod identify;
mod ns;
mod rejections;
mod result;
mod scan;
mod set;
mod update;

pub(crate) use change::{
    NsChange,
    NsObserver, //
};
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
pub(crate) use result::ScanResult;
pub(crate) use scan::scan;
pub(crate) use set::{
    ChangeCount,
    NamespaceSet, //
};
pub(crate) use update::DiskUpdate;
