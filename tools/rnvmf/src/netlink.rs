// SPDX-License-Identifier: GPL-2.0

//! The client of the generic netlink family `rnvmf`.
//!
//! The crates `netlink-sys` and `netlink-packet-core` provide sockets and the format of messages.

mod client;
mod codec;
mod family;
mod listener;
mod message;
mod rejection;
mod socket;

pub(crate) use client::Client;
