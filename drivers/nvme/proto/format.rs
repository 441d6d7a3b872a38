// SPDX-License-Identifier: GPL-2.0

//! Formats: structures that NVMe, NVMe over Fabrics and NVMe/RDMA exchange, as bytes.
//!
//! Section numbers in this crate are those of the NVM Express Base Specification, revision 2.3
//! (NVMe Base 2.3). Other specifications are cited by the name of the command or structure.
//!
//! - [`sqe`]: commands, as submission queue entries.
//! - [`sgl`]: SGL descriptors of a command's data.
//! - [`cid`]: command identifiers.
//! - [`cqe`]: responses, as completion queue entries.
//! - [`status`]: status of a response, and its text.
//! - [`connect`]: data and errors of the Fabrics Connect command.
//! - [`property`]: properties (registers) of a controller.
//! - [`private_data`]: private data of the RDMA connection manager's messages.
//! - [`identify`]: structures that Identify returns.
//! - [`dsm`]: ranges of Dataset Management.
//! - [`async_event`]: asynchronous events.
//! - [`changed_namespaces`], [`effects_log`], [`discovery`]: log pages.
//! - [`nqn`], [`uuid`]: names and identifiers.
//! - [`passthru`]: ioctls that carry commands from user space.
//!
//! # Examples
//!
//! A read command with a keyed SGL:
//!
//! ```
//! use nvme_proto::format::{
//!     sgl::{Invalidate, Sgl},
//!     sqe::{BlockCount, BlockRange, Command, Direction, RwFlags},
//! };
//!
//! let range = BlockRange {
//!     start: 0x100,
//!     count: BlockCount::new(1).unwrap(),
//! };
//! let mut command = Command::read(1, range, RwFlags::default());
//! let sgl = Sgl::keyed(0x1000, 512, 0xabcd, Invalidate::ByHost).unwrap();
//! command.set_sgl(sgl);
//! assert_eq!(command.direction(), Direction::FromTarget);
//! assert_eq!(command.as_bytes()[24..40], sgl.to_bytes());
//! ```
//!
//! The completion of a command that failed:
//!
//! ```
//! use nvme_proto::format::{cqe::Completion, status::Code};
//!
//! let received = [0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 5, 0x10, 0x00, 0x81];
//! let completion = Completion::parse(&received).unwrap();
//! assert_eq!(completion.command_id().tag().get(), 5);
//! assert_eq!(completion.command_id().generation().get(), 1);
//! let status = completion.status();
//! assert_eq!(status.code(), Code::LBA_OUT_OF_RANGE);
//! assert!(status.do_not_retry());
//! ```

pub mod async_event;
pub mod changed_namespaces;
pub mod cid;
pub mod connect;
pub mod cqe;
pub mod discovery;
pub mod dsm;
pub mod effects_log;
pub mod identify;
pub mod nqn;
pub mod passthru;
pub mod private_data;
pub mod property;
pub mod sgl;
pub mod sqe;
pub mod status;
pub mod uuid;

pub(crate) mod layout;
