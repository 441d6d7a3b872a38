// SPDX-License-Identifier: GPL-2.0

//! Identify data of namespaces, and the limits of their disks.

use super::context::ScanContext;
use crate::{
    admin::Admin,
    ctrl_error::CtrlError,
    uapi::ErrorStage, //
};
use core::fmt;
use kernel::page::PAGE_SHIFT;
use nvme_proto::{
    format::{
        identify::{
            IndependentNamespace,
            Namespace,
            NamespaceIds,
            NvmController,
            NvmNamespace,
            Wwid, //
        },
        property::Version,
        sqe::Identify,
    },
    policy::{
        limits::block::{
            BlockLimits,
            ControllerInputs,
            NamespaceInputs,
            UnsupportedNamespace, //
        },
        revalidate::NsAttributes,
    },
};

/// Largest block size, as a power of two: a page of the page cache.
const MAX_BLOCK_SHIFT: u8 = PAGE_SHIFT as u8;

/// A namespace that can be a disk.
pub(super) struct ScannedNs {
    pub(super) wwid: Wwid,
    pub(super) limits: BlockLimits,
}

impl ScannedNs {
    pub(super) fn attributes(&self) -> NsAttributes<'_> {
        NsAttributes {
            wwid: &self.wwid,
            limits: &self.limits,
        }
    }
}

/// The result of identifying a namespace.
pub(super) enum IdentifiedNs {
    Usable(ScannedNs),
    Unsupported(UnsupportedNamespace),
}

/// Identifies the namespaces of a controller.
pub(super) struct NsIdentifier<'a> {
    admin: &'a Admin<'a>,
    context: &'a ScanContext,
    nvm: NvmController,
}

impl<'a> NsIdentifier<'a> {
    /// Reads the Identify data that is common to all namespaces. Sleeps.
    pub(super) fn new(admin: &'a Admin<'a>, context: &'a ScanContext) -> Result<Self, CtrlError> {
        // The structure is optional, and exists since version 1.4.
        let mut nvm = NvmController::default();
        if context.version >= Version::new(1, 4, 0) {
            if let Some(data) = admin.identify_optional(Identify::NvmController)? {
                let fail = CtrlError::unusable(ErrorStage::Identify, "identify NVM controller");
                nvm = NvmController::parse(data.bytes()).map_err(fail)?;
            }
        }
        Ok(Self {
            admin,
            context,
            nvm,
        })
    }

    /// Reads the Identify data of a namespace. Sleeps.
    pub(super) fn identify(&self, nsid: u32) -> Result<IdentifiedNs, CtrlError> {
        let (admin, version) = (self.admin, self.context.version);
        let malformed = |why: &dyn fmt::Display| {
            CtrlError::target(
                ErrorStage::Namespaces,
                format_args!("namespace {nsid}: {why}"),
            )
        };
        let data = admin.identify(Identify::Namespace(nsid), "identify namespace")?;
        let namespace = Namespace::parse(data.bytes()).map_err(|e| malformed(&e))?;
        let ids = match admin.identify_optional(Identify::NamespaceDescriptors(nsid))? {
            Some(data) => NamespaceIds::parse(data.bytes()).map_err(|e| malformed(&e))?,
            None => NamespaceIds::default(),
        };
        let ids = ids.or_from(&namespace, version);
        // These structures are optional, and exist since version 2.0.
        let (mut independent, mut nvm) = Default::default();
        if version >= Version::new(2, 0, 0) {
            if let Some(data) = admin.identify_optional(Identify::NamespaceIndependent(nsid))? {
                independent =
                    IndependentNamespace::parse(data.bytes()).map_err(|e| malformed(&e))?;
            }
            if let Some(data) = admin.identify_optional(Identify::NvmNamespace(nsid))? {
                nvm = NvmNamespace::parse(data.bytes()).map_err(|e| malformed(&e))?;
            }
        }
        let inputs = NamespaceInputs {
            namespace: &namespace,
            nvm,
            independent,
            command_set: ids.command_set,
        };
        let limits = BlockLimits::from_identify(&self.controller_inputs(), &inputs);
        Ok(match limits {
            Ok(limits) => IdentifiedNs::Usable(ScannedNs {
                wwid: self.wwid(nsid, ids),
                limits,
            }),
            Err(why) => IdentifiedNs::Unsupported(why),
        })
    }

    fn controller_inputs(&self) -> ControllerInputs<'_> {
        ControllerInputs {
            controller: &self.context.identity,
            nvm: self.nvm,
            version: self.context.version,
            min_page_shift: self.context.min_page_shift,
            max_sectors: self.context.params.max_sectors(),
            max_block_shift: MAX_BLOCK_SHIFT,
        }
    }

    fn wwid(&self, nsid: u32, ids: NamespaceIds) -> Wwid {
        let identity = &*self.context.identity;
        Wwid {
            nsid,
            ids,
            vendor_id: identity.vendor_id,
            serial: identity.serial,
            model: identity.model,
        }
    }
}
