// SPDX-License-Identifier: GPL-2.0

//! Namespaces: scanning them, and the disks of those that can be disks.
//!
//! - [`id_registry`]: the identifiers of the disks of all controllers.
//! - [`ns`]: a namespace with its disk.
//! - [`change`]: what happens to the disks, for whoever has to tell it.
//! - [`set`]: the disks of a controller.
//! - [`context`]: what a scan, and a disk, need to know of the controller.
//! - [`rejections`]: namespaces that get no disk, and why.
//! - [`error`]: why a scan does not take effect.
//! - [`identify`]: what a namespace is.
//! - [`result`]: what a scan found.
//! - [`mod@scan`]: a scan.
//! - [`update`]: how the disks follow what a scan found.
//!
//! Nothing here knows the controller: a scan gets its admin queue, and the disks a
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
pub(crate) use context::NsContext;
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
    DiskGeneration,
    NamespaceSet, //
};
pub(crate) use update::DiskUpdate;
