// SPDX-License-Identifier: GPL-2.0

//! The generic netlink family `rnvme`, as a client sees it.

pub(crate) mod attributes;
mod client;
mod family;
mod listener;
mod message;
mod refusal;
mod request;
mod socket;

pub(crate) use client::Client;
