// SPDX-License-Identifier: GPL-2.0

//! Stand-ins for functions of C.

use crate::{
    planted::{has, Bug},
    sync::rcu,
};

pub(crate) fn synchronize_rcu_expedited() {
    if !has(Bug::NoGracePeriod) {
        rcu::synchronize();
    }
}
