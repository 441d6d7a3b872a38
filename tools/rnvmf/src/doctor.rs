// SPDX-License-Identifier: GPL-2.0

//! `rnvmf doctor`: `probe` takes a `snapshot` of the system, and `diagnose` turns it into findings
//! without asking the system again.

pub(crate) mod diagnose;
pub(crate) mod finding;
pub(crate) mod probe;
pub(crate) mod snapshot;
