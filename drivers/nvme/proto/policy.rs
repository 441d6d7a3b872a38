// SPDX-License-Identifier: GPL-2.0

//! Policies: decisions that need no more than formats and numbers.

pub mod aen_rate_limit;
pub mod backoff;
pub mod block_status;
pub mod ctrl_state;
pub mod duplicate_ids;
pub mod effects;
pub mod keep_alive;
pub mod latency;
pub mod limits;
pub mod live_step;
pub mod ns_scan;
pub mod ns_table;
pub mod passthru;
pub mod permission;
pub mod reconnect_policy;
pub mod reconnect_progress;
pub mod request_state;
pub mod rescan_backoff;
pub mod retry;
pub mod revalidate;
pub mod scan_owner;
pub mod scan_requests;
