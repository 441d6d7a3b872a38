// SPDX-License-Identifier: GPL-2.0

//! The identity of this host: its NVMe Qualified Name and its identifier.
//!
//! The files are nvme-cli's, so a host has the same identity whichever program connects.

use crate::address::{lookup, resolve_with, Address};
use crate::error::Error;
use crate::uapi::NQN_MAX_LEN;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use uuid::Uuid;

/// Prefix of a name that is made from a UUID.
const NQN_OF_UUID: &str = "nqn.2014-08.org.nvmexpress:uuid:";

/// Name of the subsystem of every discovery controller.
pub(crate) const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";

/// The machine's UUID from the firmware.
const PRODUCT_UUID: &str = "sys/class/dmi/id/product_uuid";

/// Keeps the machine-id itself off the network, as machine-id(5) asks.
const MACHINE_ID_USE: &[u8] = b"rnvmf host identifier";

/// The name and the identifier of a host.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HostIdentity {
    /// NVMe Qualified Name.
    pub(crate) nqn: String,
    /// Identifier.
    pub(crate) id: Uuid,
}

/// The system's files and resolver; tests have others.
pub(crate) struct SystemEnv {
    root: PathBuf,
    resolver: Arc<Resolver>,
}

/// Looks up host names.
pub(crate) type Resolver = dyn Fn(&str) -> io::Result<Vec<Address>> + Send + Sync;

impl Default for SystemEnv {
    fn default() -> Self {
        Self {
            root: "/".into(),
            resolver: Arc::new(lookup),
        }
    }
}

#[cfg(test)]
impl SystemEnv {
    /// This system with another resolver.
    pub(crate) fn with_resolver(
        resolver: impl Fn(&str) -> io::Result<Vec<Address>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            resolver: Arc::new(resolver),
            ..Self::default()
        }
    }
}

impl SystemEnv {
    /// Returns the address of a target, as [`address::resolve`](crate::address::resolve) finds it.
    pub(crate) fn resolve(
        &self,
        host: &str,
        from: Option<&Address>,
        seconds: u32,
    ) -> Result<Address, Error> {
        let resolver = self.resolver.clone();
        resolve_with(move |host| resolver(host), host, from, seconds)
    }

    /// Works out the identity of this host; the user's choice comes first.
    pub(crate) fn identify(
        &self,
        nqn: Option<&str>,
        id: Option<Uuid>,
    ) -> Result<HostIdentity, Error> {
        let (nqn, id) = match (nqn, id) {
            (Some(nqn), Some(id)) => (nqn.to_owned(), id),
            // The kernel rejects two hosts with one identifier.
            (Some(nqn), None) if self.name().map_or(true, |own| own != nqn) => {
                (nqn.to_owned(), uuid_in(nqn).unwrap_or_else(|| uuid_of(nqn)))
            }
            (Some(nqn), None) => (nqn.to_owned(), self.id(nqn)?),
            (None, Some(id)) => (self.name()?, id),
            (None, None) => {
                let nqn = self.name()?;
                let id = self.id(&nqn)?;
                (nqn, id)
            }
        };
        Ok(HostIdentity { nqn, id })
    }

    /// Returns the name of this machine.
    fn name(&self) -> Result<String, Error> {
        match self.read("etc/nvme/hostnqn")? {
            Some(text) => {
                check_nqn(&text).map_err(|why| Error::failed(format!("/etc/nvme/hostnqn: {why}")))
            }
            None => Ok(format!("{NQN_OF_UUID}{}", self.machine()?)),
        }
    }

    /// Returns the identifier of this machine, whose name is `nqn`.
    fn id(&self, nqn: &str) -> Result<Uuid, Error> {
        match self.read("etc/nvme/hostid")? {
            Some(text) => text
                .parse()
                .map_err(|why| Error::failed(format!("/etc/nvme/hostid: {why}"))),
            None => uuid_in(nqn).map_or_else(|| self.machine(), Ok),
        }
    }

    /// Returns a UUID that stays the same on this machine.
    fn machine(&self) -> Result<Uuid, Error> {
        let product = self.read(PRODUCT_UUID)?;
        if let Some(uuid) = product.and_then(|text| text.parse::<Uuid>().ok()) {
            // Some firmware has no UUID and says so with all zeros or all ones.
            if !uuid.is_nil() && !uuid.is_max() {
                return Ok(uuid);
            }
        }
        let machine = self.read("etc/machine-id")?;
        match machine.and_then(|text| text.parse::<Uuid>().ok()) {
            Some(id) => Ok(Uuid::new_v5(&id, MACHINE_ID_USE)),
            None => Err(Error::failed(
                "this host has no identity: give --hostnqn and --hostid, \
                 or write /etc/nvme/hostnqn and /etc/nvme/hostid",
            )),
        }
    }

    /// Reads a file, without surrounding white space; `None` if there is no file or no text.
    fn read(&self, file: &str) -> Result<Option<String>, Error> {
        let path: &Path = &self.root.join(file);
        match std::fs::read_to_string(path) {
            Ok(text) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            // Only root may read that, and only root may connect: let the kernel be the one that
            // says so. A file of an administrator is not passed over: this host would be another
            // one than it is to root.
            Err(error) if error.kind() == ErrorKind::PermissionDenied && file == PRODUCT_UUID => {
                Ok(None)
            }
            Err(error) => Err(Error::from(error).context(path.display())),
        }
    }
}

/// Checks that the kernel can take an NVMe Qualified Name.
pub(crate) fn check_nqn(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("an NQN cannot be empty".into());
    }
    if text.len() > NQN_MAX_LEN {
        return Err(format!("an NQN has at most {NQN_MAX_LEN} characters"));
    }
    if text.chars().any(|c| c.is_control() || !c.is_ascii()) {
        return Err("an NQN has only printable ASCII characters".into());
    }
    Ok(text.to_owned())
}

/// Returns a UUID that depends on the name only, so a host keeps its identifier.
fn uuid_of(nqn: &str) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_URL, nqn.as_bytes())
}

fn uuid_in(nqn: &str) -> Option<Uuid> {
    nqn.rsplit_once("uuid:")?.1.parse().ok()
}

#[cfg(test)]
mod tests;
