// SPDX-License-Identifier: GPL-2.0

//! Stand-ins for functions of C.

use crate::{
    planted::{has, Bug},
    sync::rcu,
};

/// Returns no state: `cond_synchronize_rcu_expedited` waits for each, as C need not.
pub(crate) fn get_state_synchronize_rcu() -> usize {
    0
}

pub(crate) fn cond_synchronize_rcu_expedited(_since: usize) {
    if !has(Bug::NoGracePeriod) {
        rcu::synchronize();
    }
}
