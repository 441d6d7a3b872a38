// SPDX-License-Identifier: GPL-2.0

//! What the kernel module reports and what it is asked for, as data.

pub(crate) mod controller;
pub(crate) mod discovery;
pub(crate) mod event;
pub(crate) mod namespace;
pub(crate) mod options;
pub(crate) mod stats;
