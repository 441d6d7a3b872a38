// SPDX-License-Identifier: GPL-2.0

//! Identify data of namespaces, and the limits of their disks.

use super::context::ScanContext;
use crate::{
    admin::Admin,
    ctrl_error::CtrlError,
    uapi::ErrorStage, //
};
use core::fmt;
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
use rrdma::scatter::Buffer;

/// Largest block size, as a power of two.
const MAX_BLOCK_SHIFT: u8 = rrdma::block::MAX_BLOCK_SIZE.ilog2() as u8;

/// A namespace that can be a disk.
pub(super) struct ScannedNs {
    pub(super) wwid: Wwid,
    pub(super) limits: BlockLimits,
    /// Blocks in use (NUSE).
    pub(super) used_blocks: u64,
    /// The namespace is ready for I/O (NSTAT.NRDY).
    pub(super) ready: bool,
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
    /// The capacity is 0, and the controller reports asymmetric access: the namespace may be inaccessible on
    /// this path (Base specification, Asymmetric Namespace Access).
    Inaccessible(Wwid),
    /// The data is malformed.
    Malformed(CtrlError),
}

/// The Identify data of a namespace.
struct NsData {
    namespace: Namespace,
    ids: NamespaceIds,
    nvm: NvmNamespace,
    independent: IndependentNamespace,
}

/// The sender of the Identify commands of a scan. Before each command it reports progress, and sends a
/// keep-alive if one is due.
#[derive(Clone, Copy)]
pub(super) struct ScanAdmin<'a> {
    pub(super) admin: &'a Admin<'a>,
    pub(super) tell_progress: &'a dyn Fn(),
}

impl ScanAdmin<'_> {
    /// Sends Identify, as [`Admin::identify`]. Sleeps.
    pub(super) fn identify(&self, what: Identify, of: &str) -> Result<Buffer, CtrlError> {
        self.prepare()?;
        self.admin.identify(what, of)
    }

    /// Sends an optional Identify, as [`Admin::identify_optional`]. Sleeps.
    fn identify_optional(&self, what: Identify) -> Result<Option<Buffer>, CtrlError> {
        self.prepare()?;
        self.admin.identify_optional(what)
    }

    fn prepare(&self) -> Result<(), CtrlError> {
        (self.tell_progress)();
        self.admin.keep_alive_if_due()
    }
}

/// Identifies the namespaces of a controller.
pub(super) struct NsIdentifier<'a> {
    admin: ScanAdmin<'a>,
    context: &'a ScanContext,
    nvm: NvmController,
}

impl<'a> NsIdentifier<'a> {
    /// Reads the Identify data that is common to all namespaces. Sleeps.
    pub(super) fn new(admin: ScanAdmin<'a>, context: &'a ScanContext) -> Result<Self, CtrlError> {
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
        let data = match self.read(nsid)? {
            Ok(data) => data,
            Err(error) => return Ok(IdentifiedNs::Malformed(error)),
        };
        let inputs = NamespaceInputs {
            namespace: &data.namespace,
            nvm: data.nvm,
            independent: data.independent,
            command_set: data.ids.command_set,
        };
        let limits = BlockLimits::from_identify(&self.controller_inputs(), &inputs);
        Ok(match limits {
            Ok(limits) => IdentifiedNs::Usable(ScannedNs {
                wwid: self.wwid(nsid, data.ids),
                limits,
                used_blocks: data.namespace.used,
                ready: data.independent.ready,
            }),
            Err(UnsupportedNamespace::NotAttached)
                if self.context.identity.ana_transition_time().is_some() =>
            {
                IdentifiedNs::Inaccessible(self.wwid(nsid, data.ids))
            }
            Err(why) => IdentifiedNs::Unsupported(why),
        })
    }

    /// Reads and parses the Identify data. The inner error is that of malformed data.
    fn read(&self, nsid: u32) -> Result<Result<NsData, CtrlError>, CtrlError> {
        let (admin, version) = (&self.admin, self.context.version);
        let namespace = admin.identify(Identify::Namespace(nsid), "identify namespace")?;
        let descriptors = admin.identify_optional(Identify::NamespaceDescriptors(nsid))?;
        // These structures are optional, and exist since version 2.0.
        let (mut independent, mut nvm) = (None, None);
        if version >= Version::new(2, 0, 0) {
            independent = admin.identify_optional(Identify::NamespaceIndependent(nsid))?;
            nvm = admin.identify_optional(Identify::NvmNamespace(nsid))?;
        }
        let stage = ErrorStage::Namespaces;
        let malformed = |why: &dyn fmt::Display| CtrlError::target(stage, format_args!("{why}"));
        let parsed = || {
            let namespace = Namespace::parse(namespace.bytes()).map_err(|e| malformed(&e))?;
            let ids = optional(descriptors, NamespaceIds::parse).map_err(|e| malformed(&e))?;
            Ok(NsData {
                namespace,
                ids: ids.or_from(&namespace, version),
                nvm: optional(nvm, |data| {
                    NvmNamespace::parse(data, namespace.format_index) //
                })
                .map_err(|e| malformed(&e))?,
                independent: optional(independent, IndependentNamespace::parse)
                    .map_err(|e| malformed(&e))?,
            })
        };
        Ok(parsed())
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

/// Parses data that the controller may lack.
fn optional<T: Default, E>(
    data: Option<Buffer>,
    parse: impl Fn(&[u8]) -> Result<T, E>,
) -> Result<T, E> {
    data.map_or_else(|| Ok(T::default()), |data| parse(data.bytes()))
}
