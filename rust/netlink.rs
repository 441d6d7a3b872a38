// SPDX-License-Identifier: GPL-2.0

//! Generic netlink families.
//!
//! A family is a type that implements [`Family`]: its name, its operations with
//! the attributes that each takes, its multicast groups. A [`Registration`] of it
//! makes it known, in every network namespace, and keeps it so until dropped.
//!
//! Every operation is validated strictly before its handler runs: attributes that
//! it does not take, that are malformed or out of range are refused with an
//! extended ack that names the attribute, and `ynl --policy` shows the same rules.
//! Operations of a family run in parallel, dumps one at a time; handlers may sleep,
//! but hold up the registration of other families for as long.
//!
//! C header: [`include/net/genetlink.h`](srctree/include/net/genetlink.h)

mod attributes;
mod callbacks;
mod dump;
mod extack;
mod family;
mod message;
mod policy;
mod registration;
mod request;
mod shared;
mod sockets;

pub use attributes::Attributes;
pub use dump::Dump;
pub use family::{Family, Operation};
pub use message::Message;
pub use policy::{Attribute, Kind};
pub use registration::Registration;
pub use request::Request;
