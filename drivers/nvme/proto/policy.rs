// SPDX-License-Identifier: GPL-2.0

//! Policies: decisions of a host or a target that need no more than decoded structures and numbers.
//!
//! They are pure: a driver gathers the input, calls the policy, and does what it returns. Times are
//! parameters, so tests need no clock.
//!
//! Requests and queues:
//!
//! - [`request_state`]: events from the posting of a request to its completion.
//! - [`retry`], [`block_status`]: what to do with a command that ended.
//! - [`limits`]: sizes that host, RDMA device and target agree on.
//! - [`latency`]: buckets of a latency histogram.
//!
//! Controllers:
//!
//! - [`ctrl_state`], [`live_step`]: states of a controller, and the next step of its thread.
//! - [`reconnect_policy`], [`reconnect_progress`], [`backoff`]: reconnects after a connection loss.
//! - [`connect_time`]: how long queues may take to connect.
//! - [`device_usage`]: how long a controller uses a device.
//! - [`keep_alive`]: when to send Keep Alive.
//! - [`unanswered_commands`]: whether the target answers while its controller is removed.
//! - [`aen_rate_limit`]: how soon to request the next asynchronous event.
//!
//! Namespaces and disks:
//!
//! - [`ns_scan`], [`ns_table`], [`revalidate`]: what a scan means for the disks.
//! - [`scan_owner`], [`scan_requests`], [`rescan_backoff`]: which scan runs, and when.
//! - [`duplicate_ids`]: namespaces with the same identifier.
//!
//! Commands from user space:
//!
//! - [`passthru`], [`permission`], [`effects`]: what is sent, by whom, and with which effects.
//!
//! Targets:
//!
//! - [`accept`]: whether a connection request is accepted, and the sizes of its queue.
//! - [`connection_table`]: the connections, and which of them make room for a newcomer.
//! - [`command_data`]: where the data of a command is, and whether the command may have it.
//! - [`probe`]: when to probe a queue without keep-alive.
//! - [`passthru_length`]: how many bytes a controller transfers for a command that a target passes to it.
//!
//! # Example
//!
//! Retry a command that failed, until the limit of retries is reached:
//!
//! ```
//! use nvme_proto::format::status::{Code, Status};
//! use nvme_proto::policy::retry::{Disposition, FailedCommand, PathErrorTime, RetryPolicy};
//!
//! let policy = RetryPolicy {
//!     max_retries: 5,
//!     delays: [0; 3],
//! };
//! let mut failed = FailedCommand {
//!     status: Status::from_code(Code::INTERNAL_ERROR),
//!     retries: 0,
//!     no_retry: false,
//!     path: PathErrorTime::default(),
//! };
//! assert_eq!(policy.decide(failed), Disposition::Retry { delay_ms: 0 });
//! failed.retries = 5;
//! assert_eq!(policy.decide(failed), Disposition::Complete);
//! ```

pub mod accept;
pub mod aen_rate_limit;
pub mod backoff;
pub mod block_status;
pub mod command_data;
pub mod connect_time;
pub mod connection_table;
pub mod ctrl_state;
pub mod device_usage;
pub mod duplicate_ids;
pub mod effects;
pub mod keep_alive;
pub mod latency;
pub mod limits;
pub mod live_step;
pub mod ns_scan;
pub mod ns_table;
pub mod passthru;
pub mod passthru_length;
pub mod permission;
pub mod probe;
pub mod reconnect_policy;
pub mod reconnect_progress;
pub mod request_state;
pub mod rescan_backoff;
pub mod retry;
pub mod revalidate;
pub mod scan_owner;
pub mod scan_requests;
pub mod unanswered_commands;
