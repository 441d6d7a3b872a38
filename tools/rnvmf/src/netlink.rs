// SPDX-License-Identifier: GPL-2.0

//! The generic netlink family `rnvmf`, as a client sees it, and what the kernel says of its networks
//! and RDMA devices.

pub(crate) mod attributes;
mod client;
mod family;
mod listener;
mod message;
mod nl_error;
pub(crate) mod rdma;
mod request;
pub(crate) mod route;
mod socket;

pub(crate) use client::Client;
pub(crate) use listener::stop_signal;
