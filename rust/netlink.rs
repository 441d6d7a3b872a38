// SPDX-License-Identifier: GPL-2.0

//! Generic netlink families.
//!
//! A family is a type that implements [`Family`]: its name, its operations with the attributes of
//! each, and its multicast groups. A [`Registration`] registers it in all network namespaces until
//! it is dropped.
//!
//! C validates every request strictly before its handler runs. Unknown, malformed or out-of-range
//! attributes fail the request with an extended ack that names the attribute. `ynl --policy` prints
//! the same rules.
//!
//! Requests to a family are handled in parallel, and the parts of dumps one at a time. Handlers may
//! sleep, but the registration of any family waits for them.
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
