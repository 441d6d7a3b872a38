// SPDX-License-Identifier: GPL-2.0

//! What verbs print, as functions of the model.

pub(crate) mod discovery;
pub(crate) mod doctor;
pub(crate) mod event;
pub(crate) mod list;
pub(crate) mod show;
pub(crate) mod stats;
mod text;
