// SPDX-License-Identifier: GPL-2.0

//! The NVMe/RDMA transport: NVMe commands over RDMA connections.
//!
//! A [`Queue`](queue::Queue) is one RDMA connection with its commands in flight. The crate knows
//! neither controllers nor namespaces. A module that links it is its upper-layer protocol (ULP).
//! Documentation/transport.rst describes how both work together.
//!
//! - [`ulp`]: traits that a ULP implements.
//! - [`connect`]: connects a queue.
//! - [`queue`]: sends commands, and completes them.
//! - [`admin_channel`]: admin commands of other threads than the ULP's.
//! - [`params`]: sizes of queues, and their negotiation.
//! - [`conn_error`]: why a connection is lost, and how the ULP is notified.
//! - [`stats`]: counters of one queue.
//! - [`trace`]: records for the ULP's tracepoints.
//!
//! # Example
//!
//! The host `rnvmf` is a ULP. It says what a request is, and how one completes:
//!
//! ```ignore
//! // drivers/nvme/disk/ulp.rs
//! impl Ulp for Io {
//!     type Payload = RequestPayload<Io>;
//!     type Rejected = Refused<Io>;
//! // ...
//!     fn complete(
//!         queue: &QueueData,
//!         stats: &Arc<QueueStats>,
//!         completion: Completion,
//!         payload: RequestPayload<Io>,
//!     ) {
//!         let request = payload.into_request();
//! // ...
//!         if completion.status().is_success() {
//!             end(request, Status::Ok);
//!         } else {
//!             end_or_retry(queue, stats, completion.status(), request);
//!         }
//!     }
//! // ...
//! }
//! ```
//!
//! Its `queue_rq` sends a request:
//!
//! ```ignore
//! // drivers/nvme/disk/operations.rs
//! match read_or_write(disk, request) {
//!     Ok(submission) => Queue::submit(&queue, section, submission, doorbell),
//!     Err(request) => queue_other(section, &queue, disk, request, doorbell),
//! }
//! // ...
//! Ok(Submission {
//!     tag: request.tag(),
//!     command: DataCommand {
//!         command: Command::transfer(transfer, disk.wwid.nsid, range, flags),
//!         direction,
//!         length: request.bytes(),
//!     },
//!     payload: RequestPayload::new(request, None),
//! })
//! ```
//!
//! At the end of a connection, it gets back the requests in flight:
//!
//! ```ignore
//! // drivers/nvme/host/controller/association.rs
//! let keeps = Queue::end(connection, |payload| {
//!     end_inflight(payload.into_request(), inflight, stats, held);
//! });
//! ```

pub mod admin_channel;
pub mod conn_error;
pub mod connect;
pub mod params;
pub mod queue;
pub mod stats;
pub mod trace;
pub mod ulp;
