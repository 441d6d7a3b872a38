// SPDX-License-Identifier: GPL-2.0

//! NVMe qualified names: of hosts and of subsystems.

use crate::format::uuid::Uuid;
use core::fmt;

/// Name of the subsystem of every discovery controller.
pub const DISCOVERY: &str = "nqn.2014-08.org.nvmexpress.discovery";

/// A name that may go on the wire.
///
/// Names should begin with `nqn.` and a date, but targets are configured with
/// others, and other hosts connect to those: the beginning is not checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nqn<'a>(&'a str);

impl<'a> Nqn<'a> {
    /// Most bytes of a name.
    pub const MAX_LEN: usize = 223;

    /// Takes a name. NUL ends names on the wire, and no name holds a newline,
    /// which would end a line of whatever lists it.
    pub fn new(name: &'a [u8]) -> Result<Self, InvalidNqn> {
        if name.is_empty() {
            return Err(InvalidNqn::Empty);
        }
        if name.len() > Self::MAX_LEN {
            return Err(InvalidNqn::TooLong(name.len()));
        }
        if name.iter().any(|byte| matches!(byte, b'\0' | b'\n')) {
            return Err(InvalidNqn::Character);
        }
        core::str::from_utf8(name)
            .map(Self)
            .map_err(|_| InvalidNqn::NotUtf8)
    }

    /// The name.
    #[must_use]
    pub const fn as_str(self) -> &'a str {
        self.0
    }

    /// Whether this is the name of discovery controllers.
    #[must_use]
    pub fn is_discovery(self) -> bool {
        self.0 == DISCOVERY
    }
}

impl fmt::Display for Nqn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Why a name cannot go on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InvalidNqn {
    /// It is empty.
    Empty,
    /// It has so many bytes.
    TooLong(usize),
    /// It holds a NUL or a newline.
    Character,
    /// It is not UTF-8.
    NotUtf8,
}

impl fmt::Display for InvalidNqn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the name is empty"),
            Self::TooLong(len) => write!(f, "{len} bytes are more than {}", Nqn::MAX_LEN),
            Self::Character => f.write_str("the name holds a NUL or a newline"),
            Self::NotUtf8 => f.write_str("the name is not UTF-8"),
        }
    }
}

/// The name of a host that was given none, made from its identifier. Its text
/// is an [`Nqn`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostNqn(pub Uuid);

impl fmt::Display for HostNqn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nqn.2014-08.org.nvmexpress:uuid:{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let longest = [b'n'; Nqn::MAX_LEN];
        let names: [&[u8]; 6] = [
            b"nqn.2014-08.org.nvmexpress.discovery",
            b"nqn.2016-06.io.spdk:cnode1",
            b"testnqn",
            b"n",
            "nqn.2024-01.example:\u{e4}\u{6f22}".as_bytes(),
            &longest,
        ];
        for name in names {
            assert_eq!(Nqn::new(name).unwrap().as_str().as_bytes(), name);
        }
        assert!(Nqn::new(names[0]).unwrap().is_discovery());
        assert!(!Nqn::new(names[1]).unwrap().is_discovery());
    }

    #[test]
    fn refusals() {
        let cases = [
            (vec![], InvalidNqn::Empty),
            (vec![b'n'; 224], InvalidNqn::TooLong(224)),
            (b"nqn.\0".to_vec(), InvalidNqn::Character),
            (b"nqn.\n".to_vec(), InvalidNqn::Character),
            (vec![b'n', 0xff], InvalidNqn::NotUtf8),
        ];
        for (name, reason) in cases {
            assert_eq!(Nqn::new(&name), Err(reason));
            assert!(!reason.to_string().is_empty());
        }
    }

    #[test]
    fn host_name_of_an_identifier() {
        let id = Uuid::parse(b"2cd2c43b-a90a-45c1-a8cd-86b33ab273b5").unwrap();
        let text = HostNqn(id).to_string();
        assert_eq!(
            text,
            "nqn.2014-08.org.nvmexpress:uuid:2cd2c43b-a90a-45c1-a8cd-86b33ab273b5"
        );
        assert!(Nqn::new(text.as_bytes()).is_ok());
    }
}
