// SPDX-License-Identifier: GPL-2.0

//! Stand-in for sections without preemption: a model must hold for all preemptions.

pub(crate) struct NoPreempt;

impl NoPreempt {
    pub(crate) fn begin() -> Self {
        Self
    }
}

// As in the kernel, so that a test may drop it.
impl Drop for NoPreempt {
    fn drop(&mut self) {}
}
