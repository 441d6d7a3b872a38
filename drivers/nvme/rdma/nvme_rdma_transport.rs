// SPDX-License-Identifier: GPL-2.0

//! The NVMe/RDMA transport: NVMe commands over RDMA connections.
//!
//! It knows neither a controller nor a namespace. A module that links it is its upper-layer
//! protocol (ULP). Documentation/transport.rst describes both.
//!
//! - [`conn_error`]: why a connection is lost, and how its ULP learns of it.
//! - [`stats`]: counters of one queue.
//! - [`trace`]: records for the ULP's tracepoints.
//! - [`params`]: sizes of queues, and how they are negotiated.
//! - [`ulp`]: what a ULP implements.
//! - [`queue`]: one queue, with its commands in flight.
//! - [`admin_channel`]: commands on an admin queue from other threads than the ULP's.
//! - [`connect`]: connecting one queue.

pub mod admin_channel;
pub mod conn_error;
pub mod connect;
pub mod params;
pub mod queue;
pub mod stats;
pub mod trace;
pub mod ulp;
