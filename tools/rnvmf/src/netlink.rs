// SPDX-License-Identifier: GPL-2.0

//! Netlink: sockets, requests and messages, and the client of the generic netlink family `rnvmf`.

mod client;
mod family;
mod listener;
mod message;
mod nl_error;
mod request;
mod socket;

pub(crate) use client::Client;
