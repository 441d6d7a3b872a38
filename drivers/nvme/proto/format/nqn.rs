// SPDX-License-Identifier: GPL-2.0

//! NVMe Qualified Names (NQN) of hosts and subsystems.
//!
//! Source: NVMe Base 2.3, section 4.7 (NVMe Qualified Names).

use core::fmt;

/// NQN of the discovery subsystem that every discovery controller has.
pub const DISCOVERY: &str = "nqn.2014-08.org.nvmexpress.discovery";

/// An NQN.
///
/// It need not begin with `nqn.` and a date: there are targets with other names, and other hosts
/// connect to them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nqn<'a>(&'a str);

impl<'a> Nqn<'a> {
    /// Largest length in bytes.
    pub const MAX_LEN: usize = 223;

    /// Checks a name and returns it as an NQN. A NUL would end the name in its field, and a newline
    /// would end the line of a list of names.
    ///
    /// # Errors
    ///
    /// [`InvalidNqn`].
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

    /// Returns the name.
    pub const fn as_str(self) -> &'a str {
        self.0
    }
}

impl fmt::Display for Nqn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Reason why a name is not a valid NQN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InvalidNqn {
    /// The name is empty.
    Empty,
    /// The name is too long; its length in bytes.
    TooLong(usize),
    /// The name contains a NUL or a newline.
    Character,
    /// The name is not UTF-8.
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
            let nqn = Nqn::new(name).unwrap();
            assert_eq!(nqn.as_str().as_bytes(), name);
            assert_eq!(nqn.to_string(), nqn.as_str());
        }
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
}
