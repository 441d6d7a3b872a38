// SPDX-License-Identifier: GPL-2.0

//! The output of verbs as functions of the model: text or JSON.

pub(crate) mod discovery;
pub(crate) mod event;
pub(crate) mod list;
pub(crate) mod show;
pub(crate) mod stats;
mod text;
