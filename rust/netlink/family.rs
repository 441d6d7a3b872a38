// SPDX-License-Identifier: GPL-2.0

//! What a family consists of.

use super::{policy, Attribute, Dump, Request};
use crate::{bindings, net::Namespace};
use core::ffi::CStr;
use kernel::prelude::*;

/// A generic netlink family.
///
/// The constants are checked when the family is compiled: see [`Operation`] and
/// [`Attribute`] for what they have to obey.
pub trait Family: Sized + 'static {
    /// Name by which user space finds the family, at most 15 bytes.
    ///
    /// To be loaded on demand, a module has the alias
    /// `net-pf-16-proto-16-family-` and the name.
    const NAME: &'static CStr;

    /// Version, which goes into every message.
    const VERSION: u8;

    /// What the handlers work on.
    type Context: Send + Sync + 'static;

    /// The operations, in ascending order of their commands.
    const OPERATIONS: &'static [Operation<Self>];

    /// Names of the multicast groups, at most 15 bytes each.
    const GROUPS: &'static [&'static CStr];

    /// Hears of a generic netlink socket that is being closed, by its namespace and
    /// [port](Request::portid), so that what was kept for it can go. It need not have sent
    /// a request to this family; if it has, none is being handled any more. The next
    /// socket may have the same port. Process context, may sleep.
    const CLOSED: Option<fn(&Self::Context, &Namespace, u32)> = None;
}

/// An operation of a family.
///
/// It has at least one of the two handlers, which take the same attributes. Where
/// they take different ones, the command has two operations, the one to do it
/// before the one to dump it, of the same privilege.
pub struct Operation<F: Family> {
    /// Number of the command.
    pub command: u8,

    /// Whether it needs `CAP_NET_ADMIN` and, as a device is more than the network's, `CAP_SYS_ADMIN`
    /// in the initial user namespace, of the caller and of who opened the socket. One that does has
    /// no dump.
    pub admin: bool,

    /// The attributes that it takes; all others are refused.
    pub attributes: &'static [Attribute],

    /// Handles a request. Process context, may sleep.
    pub doit: Option<fn(&F::Context, &mut Request<'_>) -> Result>,

    /// Fills a part of a dump, see [`Dump`]. Process context, may sleep.
    pub dumpit: Option<fn(&F::Context, &mut Dump<'_>) -> Result>,
}

/// Refuses at compile time what C would refuse, or warn of, at run time.
pub(super) const fn check<F: Family>() {
    check_name(F::NAME);
    assert!(F::GROUPS.len() <= u8::MAX as usize, "too many groups");
    let mut i = 0;
    while i < F::GROUPS.len() {
        check_name(F::GROUPS[i]);
        i += 1;
    }
    // Each is at most two entries, which are counted in a u8.
    assert!(F::OPERATIONS.len() <= 127, "too many operations");
    let mut i = 0;
    while i < F::OPERATIONS.len() {
        let operation = &F::OPERATIONS[i];
        assert!(
            operation.doit.is_some() || operation.dumpit.is_some(),
            "an operation without a handler"
        );
        assert!(
            !operation.admin || operation.dumpit.is_none(),
            "a dump that needs a privilege"
        );
        if i > 0 {
            check_order(&F::OPERATIONS[i - 1], operation);
        }
        policy::check(operation.attributes, 0);
        i += 1;
    }
}

#[inline]
const fn check_name(name: &CStr) {
    let len = name.to_bytes().len();
    assert!(
        len > 0 && len < bindings::GENL_NAMSIZ as usize,
        "a name that is empty or too long"
    );
}

const fn check_order<F: Family>(before: &Operation<F>, after: &Operation<F>) {
    assert!(
        before.command <= after.command,
        "operations have to be in ascending order of their commands"
    );
    if before.command == after.command {
        assert!(
            before.dumpit.is_none() && after.doit.is_none(),
            "two operations of one command are one to do it, and then one to dump it"
        );
        assert!(
            before.admin == after.admin,
            "two operations of one command need the same privilege"
        );
    }
}
