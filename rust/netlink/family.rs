// SPDX-License-Identifier: GPL-2.0

//! Generic netlink families and their operations.

use super::{policy, Attribute, Dump, Request};
use crate::{bindings, net::Namespace};
use core::ffi::CStr;
use kernel::prelude::*;

/// A generic netlink family. C: `struct genl_family`.
///
/// The constants are checked at compile time, against the rules of [`Operation`] and [`Attribute`].
pub trait Family: Sized + 'static {
    /// Name of the family: at most 15 bytes.
    ///
    /// For loading on demand, a module has the alias `net-pf-16-proto-16-family-NAME`.
    const NAME: &'static CStr;

    /// Version, sent in the header of every message.
    const VERSION: u8;

    /// Data of the handlers.
    type Context: Send + Sync + 'static;

    /// Operations, in ascending order of their commands.
    const OPERATIONS: &'static [Operation<Self>];

    /// Names of the multicast groups: at most 15 bytes each.
    const GROUPS: &'static [&'static CStr];

    /// Called when a generic netlink socket is closed, with its namespace and [port
    /// ID](Request::portid), to release what the family keeps for the socket.
    ///
    /// It is called for every socket, also one without any request to this family. No request of
    /// the socket is being handled any more. A later socket may get the same port ID. Process
    /// context, may sleep. C: `NETLINK_URELEASE`.
    const CLOSED: Option<fn(&Self::Context, &Namespace, u32)> = None;
}

/// An operation of a family.
///
/// It has one or both handlers, which take the same attributes. If do and dump of a command take
/// different attributes, the command has two operations: do first, then dump. Both need the same
/// privilege.
pub struct Operation<F: Family> {
    /// Number of the command.
    pub command: u8,

    /// Whether the operation needs privileges: `CAP_NET_ADMIN`, and also `CAP_SYS_ADMIN` because a
    /// device is more than a part of the network. Both are required in the initial user namespace,
    /// of the caller and of the opener of the socket. A privileged operation has no dump.
    pub admin: bool,

    /// Attributes of the operation. Requests with other attributes are refused.
    pub attributes: &'static [Attribute],

    /// Handles a request. Process context, may sleep.
    pub doit: Option<fn(&F::Context, &mut Request<'_>) -> Result>,

    /// Fills one part of a dump; see [`Dump`]. Process context, may sleep.
    pub dumpit: Option<fn(&F::Context, &mut Dump<'_>) -> Result>,
}

/// Checks at compile time what C would refuse, or warn about, at run time.
pub(super) const fn check<F: Family>() {
    check_name(F::NAME);
    assert!(F::GROUPS.len() <= u8::MAX as usize, "too many groups");
    let mut i = 0;
    while i < F::GROUPS.len() {
        check_name(F::GROUPS[i]);
        i += 1;
    }
    // An operation has at most two entries, and their number is a `u8`.
    assert!(F::OPERATIONS.len() <= 127, "too many operations");
    let mut i = 0;
    while i < F::OPERATIONS.len() {
        let operation = &F::OPERATIONS[i];
        assert!(
            operation.doit.is_some() || operation.dumpit.is_some(),
            "an operation needs a handler"
        );
        assert!(
            !operation.admin || operation.dumpit.is_none(),
            "a privileged operation must not have a dump"
        );
        if i > 0 {
            check_order(&F::OPERATIONS[i - 1], operation);
        }
        policy::check(operation.attributes);
        i += 1;
    }
}

#[inline]
const fn check_name(name: &CStr) {
    let len = name.to_bytes().len();
    assert!(
        len > 0 && len < bindings::GENL_NAMSIZ as usize,
        "a name must have 1 to 15 bytes"
    );
}

const fn check_order<F: Family>(before: &Operation<F>, after: &Operation<F>) {
    assert!(
        before.command <= after.command,
        "operations must be in ascending order of their commands"
    );
    if before.command == after.command {
        assert!(
            before.dumpit.is_none() && after.doit.is_none(),
            "two operations of one command must be do, then dump"
        );
        assert!(
            before.admin == after.admin,
            "two operations of one command must need the same privilege"
        );
    }
}
