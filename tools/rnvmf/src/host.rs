// SPDX-License-Identifier: GPL-2.0

//! The identity of this host: its NVMe Qualified Name and its identifier.
//!
//! nvme-cli reads the same files, so a host has one identity for both programs.

use crate::address::{lookup, resolve, Address};
use crate::error::Error;
use crate::uapi::NQN_MAX_LEN;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use uuid::Uuid;

/// Prefix of an NQN that is made of a UUID, from NVMe Base, NVMe Qualified Names.
const NQN_OF_UUID: &str = "nqn.2014-08.org.nvmexpress:uuid:";

/// NQN of the well-known discovery subsystem.
pub(crate) const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";

/// The file with the host NQN.
pub(crate) const HOSTNQN_FILE: &str = "/etc/nvme/hostnqn";

/// The file with the host identifier.
pub(crate) const HOSTID_FILE: &str = "/etc/nvme/hostid";

/// The machine's UUID from the firmware.
pub(crate) const PRODUCT_UUID_FILE: &str = "/sys/class/dmi/id/product_uuid";

/// Name for the UUID that is made of the machine ID, which must not be sent over the network itself
/// (machine-id(5)).
const MACHINE_ID_USE: &[u8] = b"rnvmf host identifier";

/// The name and the identifier of a host.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HostIdentity {
    /// Host NQN.
    pub(crate) nqn: String,
    /// Host identifier.
    pub(crate) id: Uuid,
}

/// Returns the addresses of a host name.
pub(crate) type Resolver = dyn Fn(&str) -> io::Result<Vec<Address>> + Send + Sync;

/// The system's files and resolver. Tests replace them.
pub(crate) struct SystemEnv {
    root: PathBuf,
    resolver: Arc<Resolver>,
}

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
    /// Returns this system with another resolver.
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
    /// Returns the address of a target, as [`resolve`] does.
    pub(crate) fn resolve(
        &self,
        host: &str,
        from: Option<&Address>,
        seconds: u32,
    ) -> Result<Address, Error> {
        let resolver = self.resolver.clone();
        resolve(move |host| resolver(host), host, from, seconds)
    }

    /// Returns the identity of this host. The user's choice takes precedence.
    pub(crate) fn identify(
        &self,
        nqn: Option<&str>,
        id: Option<Uuid>,
    ) -> Result<HostIdentity, Error> {
        let own = self.own_nqn();
        let nqn = nqn.map_or_else(|| own.clone(), |nqn| Ok(nqn.to_owned()))?;
        let id = match id {
            Some(id) => id,
            None if own.is_ok_and(|own| own == nqn) => self.own_id(&nqn)?,
            // The kernel rejects two host NQNs with one identifier.
            None => uuid_in(&nqn).unwrap_or_else(|| uuid_of(&nqn)),
        };
        Ok(HostIdentity { nqn, id })
    }

    /// Returns the NQN of this machine.
    fn own_nqn(&self) -> Result<String, Error> {
        match self.read(HOSTNQN_FILE)? {
            Some(text) => {
                check_nqn(&text).map_err(|why| Error::failed(format!("{HOSTNQN_FILE}: {why}")))
            }
            None => Ok(format!("{NQN_OF_UUID}{}", self.machine_uuid()?)),
        }
    }

    /// Returns the identifier of this machine, whose NQN is `nqn`.
    fn own_id(&self, nqn: &str) -> Result<Uuid, Error> {
        match self.read(HOSTID_FILE)? {
            Some(text) => text
                .parse()
                .map_err(|why| Error::failed(format!("{HOSTID_FILE}: {why}"))),
            None => uuid_in(nqn).map_or_else(|| self.machine_uuid(), Ok),
        }
    }

    /// Returns a UUID that this machine keeps.
    fn machine_uuid(&self) -> Result<Uuid, Error> {
        let parse = |text: String| text.parse::<Uuid>().ok();
        // Firmware without a UUID reports all zeros or all ones.
        let product = self.read(PRODUCT_UUID_FILE)?.and_then(parse);
        if let Some(uuid) = product.filter(|uuid| !uuid.is_nil() && !uuid.is_max()) {
            return Ok(uuid);
        }
        match self.read("/etc/machine-id")?.and_then(parse) {
            Some(id) => Ok(Uuid::new_v5(&id, MACHINE_ID_USE)),
            None => Err(Error::failed(
                "this host has no identity: give --hostnqn and --hostid, \
                 or write /etc/nvme/hostnqn and /etc/nvme/hostid",
            )),
        }
    }

    /// Reads a file of one line and trims white space; `None` if the file does not exist or is
    /// empty.
    fn read(&self, file: &str) -> Result<Option<String>, Error> {
        let path = self.root.join(file.trim_start_matches('/'));
        match std::fs::read_to_string(&path) {
            Ok(text) => match text.trim() {
                "" => Ok(None),
                line if line.contains('\n') => {
                    Err(Error::failed(format!("{file}: more than one line")))
                }
                line => Ok(Some(line.to_owned())),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            // Only root may read the UUID, and only root may connect: the kernel reports the lack
            // of privilege. An unreadable file of the administrator is an error, because without it
            // this host would have another identity than it has for root.
            Err(error)
                if error.kind() == ErrorKind::PermissionDenied && file == PRODUCT_UUID_FILE =>
            {
                Ok(None)
            }
            Err(error) => Err(Error::from(error).context(path.display())),
        }
    }
}

/// Checks an NVMe Qualified Name as the kernel does, and that all of it can be seen. An editor or a web page
/// may have added what nobody typed, and the target would only say that there is no such subsystem.
pub(crate) fn check_nqn(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("an NQN cannot be empty".into());
    }
    if text.len() > NQN_MAX_LEN {
        return Err(format!("an NQN has at most {NQN_MAX_LEN} bytes"));
    }
    if text.contains(char::is_control) {
        return Err("an NQN has no control characters".into());
    }
    if let Some(found) = text.chars().find(|&each| is_invisible(each)) {
        let name = match found {
            BYTE_ORDER_MARK => "byte-order mark",
            _ => "invisible character",
        };
        let code = u32::from(found);
        return Err(format!("it has a {name} (U+{code:04X}): type the NQN anew"));
    }
    Ok(text.to_owned())
}

/// The mark with which some editors begin a text.
pub(crate) const BYTE_ORDER_MARK: char = '\u{feff}';

/// Whether a character shows nothing, or another kind of space.
fn is_invisible(each: char) -> bool {
    let is_space = each.is_whitespace() && each != ' ';
    let is_format = matches!(each, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}');
    is_space || is_format || each == BYTE_ORDER_MARK
}

/// Returns a UUID that depends on the NQN only, so that a host keeps its identifier.
fn uuid_of(nqn: &str) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_URL, nqn.as_bytes())
}

/// Returns the UUID at the end of an NQN.
fn uuid_in(nqn: &str) -> Option<Uuid> {
    nqn.rsplit_once("uuid:")?.1.parse().ok()
}

#[cfg(test)]
mod tests;
