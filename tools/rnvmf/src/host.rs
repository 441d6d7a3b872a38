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
mod tests {
    use super::*;

    const ID: &str = "00112233-4455-6677-8899-aabbccddeeff";
    const OTHER: &str = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6";

    /// A directory that stands for the root, removed with the value.
    struct Root(SystemEnv);

    impl Root {
        fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let top = std::env::temp_dir().join(format!("rnvmf-{}-{name}", std::process::id()));
            for (path, text) in files {
                let path = top.join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            Self(SystemEnv {
                root: top,
                ..SystemEnv::default()
            })
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            // A test without files made no directory.
            let _ = std::fs::remove_dir_all(&self.0.root);
        }
    }

    #[test]
    fn options_come_first() {
        let root = Root::new(
            "options",
            &[("etc/nvme/hostnqn", "nqn.file\n"), ("etc/nvme/hostid", ID)],
        );
        let host = root.0.identify(Some("nqn.x"), OTHER.parse().ok()).unwrap();
        assert_eq!(host.nqn, "nqn.x");
        assert_eq!(host.id.to_string(), OTHER);
    }

    #[test]
    fn then_the_files_of_nvme_cli() {
        let root = Root::new(
            "files",
            &[("etc/nvme/hostnqn", "nqn.file\n"), ("etc/nvme/hostid", ID)],
        );
        let host = root.0.identify(None, None).unwrap();
        assert_eq!(host.nqn, "nqn.file");
        assert_eq!(host.id.to_string(), ID);
    }

    #[test]
    fn an_identifier_may_come_from_the_name() {
        let root = Root::new("name", &[]);
        let nqn = format!("{NQN_OF_UUID}{OTHER}");
        let host = root.0.identify(Some(&nqn), None).unwrap();
        assert_eq!(host.id.to_string(), OTHER);
    }

    #[test]
    fn the_identifier_in_a_file_is_of_the_name_of_the_machine() {
        let files = [
            ("etc/nvme/hostid", ID),
            ("sys/class/dmi/id/product_uuid", OTHER),
        ];
        let root = Root::new("own", &files);
        let own = format!("{NQN_OF_UUID}{OTHER}");
        for nqn in [None, Some(own.as_str())] {
            let host = root.0.identify(nqn, None).unwrap();
            assert_eq!((host.nqn, host.id.to_string()), (own.clone(), ID.into()));
        }
        let other = format!("{NQN_OF_UUID}fbd3831b-8da6-59a6-a4e4-8ba822c494fb");
        let host = root.0.identify(Some(&other), None).unwrap();
        assert_eq!(host.id.to_string(), "fbd3831b-8da6-59a6-a4e4-8ba822c494fb");
    }

    #[test]
    fn another_name_has_an_identifier_of_its_own() {
        for files in [&[("etc/nvme/hostid", ID)][..], &[]] {
            let root = Root::new("another", files);
            let id = |nqn| root.0.identify(Some(nqn), None).unwrap().id.to_string();
            // Fixed, likewise.
            assert_eq!(id("nqn.x"), "c55f5398-9b3c-54b0-853a-29cd61286956");
            assert_ne!(id("nqn.y"), id("nqn.x"));
        }
    }

    #[test]
    fn then_the_firmware() {
        let root = Root::new(
            "firmware",
            &[("sys/class/dmi/id/product_uuid", &ID.to_uppercase())],
        );
        let host = root.0.identify(None, None).unwrap();
        assert_eq!(host.nqn, format!("{NQN_OF_UUID}{ID}"));
        assert_eq!(host.id.to_string(), ID);
    }

    #[test]
    fn then_the_machine_id_which_stays_private() {
        let nil = Uuid::nil().to_string();
        let files = [
            ("sys/class/dmi/id/product_uuid", nil.as_str()),
            ("etc/machine-id", "00112233445566778899aabbccddeeff\n"),
        ];
        let host = Root::new("machine", &files).0.identify(None, None).unwrap();
        assert_eq!(host.nqn, format!("{NQN_OF_UUID}{}", host.id));
        assert_eq!(host.id.get_version_num(), 5);
        // Fixed: a later version of this program must give a host the same name.
        assert_eq!(host.id.to_string(), "5240fabf-b3b8-55af-a71b-633ba37bab57");
    }

    #[test]
    fn an_empty_file_is_no_identity() {
        let root = Root::new(
            "empty",
            &[("etc/machine-id", "\n"), ("etc/nvme/hostid", "")],
        );
        let error = root.0.identify(None, None).unwrap_err();
        assert!(error.message.starts_with("this host has no identity"));
    }

    #[test]
    fn a_broken_file_is_named() {
        let root = Root::new(
            "broken",
            &[("etc/nvme/hostnqn", "nqn.x"), ("etc/nvme/hostid", "12")],
        );
        let error = root.0.identify(Some("nqn.x"), None).unwrap_err();
        assert!(error.message.starts_with("/etc/nvme/hostid: "));
        let long = "x".repeat(NQN_MAX_LEN + 1);
        let root = Root::new("long", &[("etc/nvme/hostnqn", &long)]);
        let error = root.0.identify(None, None).unwrap_err();
        assert_eq!(
            error.message,
            "/etc/nvme/hostnqn: an NQN has at most 223 characters"
        );
    }

    #[test]
    fn names_are_checked() {
        assert!(check_nqn(&"x".repeat(NQN_MAX_LEN)).is_ok());
        for bad in ["", "nqn.\n", "nqn.\u{e9}"] {
            assert!(check_nqn(bad).is_err(), "{bad:?}");
        }
    }
}
