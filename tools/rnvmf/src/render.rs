// SPDX-License-Identifier: GPL-2.0

//! What is printed, as functions of what is known.

pub(crate) mod discovery;
pub(crate) mod doctor;
pub(crate) mod event;
pub(crate) mod json;
pub(crate) mod list;
pub(crate) mod show;
mod size;
pub(crate) mod stats;
mod table;
