// SPDX-License-Identifier: GPL-2.0

//! The objects that the kernel reports, and the arguments of requests.

pub(crate) mod controller;
pub(crate) mod discovery;
pub(crate) mod event;
pub(crate) mod namespace;
pub(crate) mod options;
pub(crate) mod stats;
