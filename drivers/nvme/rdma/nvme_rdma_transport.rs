// SPDX-License-Identifier: GPL-2.0

//! The NVMe/RDMA transport: NVMe commands over RDMA connections.
//!
//! It knows neither a controller nor a namespace. A module that links it is its upper-layer
//! protocol (ULP). Documentation/transport.rst describes both.
//!
//! - [`conn_error`]: why a connection is lost, and how its ULP learns of it.
//! - [`stats`]: counters of one queue.
//! - [`trace`]: records for the ULP's tracepoints.

pub mod conn_error;
pub mod stats;
pub mod trace;
