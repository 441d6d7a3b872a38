// SPDX-License-Identifier: GPL-2.0

//! Sizes of queues, and their negotiation.

use nvme_proto::{
    format::{identify, property::Capabilities},
    policy::limits::{
        queue::{
            self,
            QueueSize,
            QueueTooSmall,
            SizeInputs,
            ADMIN_ENTRIES, //
        },
        transfer::{
            self,
            InlineLimit, //
        },
    },
};
use rrdma::rdma::{
    device::Attributes,
    qp::QpCap, //
};

/// Number of admin channels of an admin queue.
pub const ADMIN_CHANNELS: usize = 2;

/// Number of commands that an admin queue of rnvmf can have in flight: one of the ULP's thread, one of each
/// admin channel, and the Asynchronous Event Request.
const ADMIN_COMMANDS: u16 = ADMIN_CHANNELS as u16 + 2;

/// Context that processes the completions of a queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum CompletionMode {
    /// A softirq, after an interrupt.
    Interrupt,
    /// Threads that poll the queue. There is no interrupt.
    Polled,
}

/// Configuration of a queue.
#[derive(Clone, Copy)]
pub struct QueueConfig {
    /// Queue identifier; 0 is the admin queue.
    pub qid: u16,
    /// Number of entries. There is a receive for each. At most one command fewer is in flight.
    pub entries: u16,
    /// Number of block requests that can be in flight.
    pub requests: u16,
    /// Number of other commands that can be in flight: of the ULP's threads, and the Asynchronous
    /// Event Request.
    pub commands: u16,
    /// Context that processes completions.
    pub completions: CompletionMode,
    /// Number of pages of a request's memory region, unless the device can register fewer only.
    pub pages: u32,
    /// Limit of in-capsule data.
    pub inline: InlineLimit,
}

impl QueueConfig {
    /// Returns the configuration of an admin queue, without requests and in-capsule data.
    pub fn admin() -> Self {
        Self {
            qid: 0,
            entries: ADMIN_ENTRIES,
            requests: 0,
            commands: ADMIN_COMMANDS,
            completions: CompletionMode::Interrupt,
            pages: 0,
            inline: InlineLimit::default(),
        }
    }

    /// Returns the capacity of the queue pair.
    pub(crate) fn qp_cap(&self) -> QpCap {
        let commands = u32::from(self.requests).saturating_add(self.commands.into());
        QpCap {
            // A registration and a send for each command. An invalidation is posted after both have
            // completed.
            sends: commands.saturating_mul(2),
            receives: u32::from(self.entries),
            send_sges: self.inline.segments().saturating_add(1),
        }
    }
}

/// Sizes of I/O queues that the ULP, the device and the controller support.
#[derive(Clone, Copy)]
pub struct IoQueueParams {
    size: QueueSize,
    pages: u32,
    max_sectors: u32,
    inline: InlineLimit,
}

/// Reason why no I/O queue is possible.
#[derive(Clone, Copy)]
pub enum ParamsError {
    /// The RDMA device cannot register memory.
    NoRegistration,
    /// A limit on the size of queues is too low.
    QueueTooSmall(QueueTooSmall),
}

/// Reason why a connection cannot have the sizes of the first one.
#[derive(Clone, Copy)]
pub enum Smaller {
    /// The size of a queue that the target or the device supports.
    Queue,
    /// The regions that the device supports.
    Regions,
}

impl IoQueueParams {
    /// Negotiates the sizes. `entries` is the queue size that the ULP requests; it is not
    /// zero-based.
    ///
    /// # Errors
    ///
    /// [`ParamsError`] if there is no size that all support.
    pub fn negotiate(
        entries: u16,
        device: &Attributes,
        identity: &identify::Controller,
        capabilities: Capabilities,
    ) -> Result<Self, ParamsError> {
        let pages = transfer::region_pages(device.max_fast_reg_page_list_len);
        let pages = pages.ok_or(ParamsError::NoRegistration)?;
        let size = QueueSize::negotiate(&SizeInputs {
            requested: entries,
            device: queue::device_entries(device.max_qp_wr, device.max_cqe),
            max_entries_zero_based: capabilities.max_queue_entries_zero_based(),
            max_commands: identity.max_commands,
        })
        .map_err(ParamsError::QueueTooSmall)?;
        Ok(Self {
            size,
            pages,
            max_sectors: transfer::max_sectors(identity, capabilities.min_page_shift(), pages),
            inline: InlineLimit::negotiate(identity, device.max_send_sge),
        })
    }

    /// Returns these parameters with the queue and region sizes of `first`, for which the tag set was
    /// made. Limits on data may differ: in-capsule data depends on the queue only, and transfers on the
    /// disks.
    ///
    /// # Errors
    ///
    /// [`Smaller`] if such queues are not possible.
    pub fn with_sizes_of(self, first: &Self) -> Result<Self, Smaller> {
        if self.size < first.size {
            return Err(Smaller::Queue);
        }
        if self.pages < first.pages {
            return Err(Smaller::Regions);
        }
        Ok(Self {
            size: first.size,
            pages: first.pages,
            max_sectors: self.max_sectors.min(transfer::region_sectors(first.pages)),
            ..self
        })
    }

    /// Returns the size of the queues.
    pub fn size(&self) -> QueueSize {
        self.size
    }

    /// Returns the largest transfer in sectors of 512 bytes.
    pub fn max_sectors(&self) -> u32 {
        self.max_sectors
    }

    /// Returns the largest number of segments of a command.
    pub fn max_segments(&self) -> u16 {
        transfer::max_segments(self.max_sectors, self.pages)
    }

    /// Returns the largest size of in-capsule data in bytes.
    pub fn inline_bytes(&self) -> u32 {
        self.inline.bytes()
    }

    /// Returns the configuration of an I/O queue with these sizes.
    pub fn queue_config(&self, qid: u16, completions: CompletionMode) -> QueueConfig {
        QueueConfig {
            qid,
            entries: self.size.entries(),
            requests: self.size.zero_based(),
            // Of the ULP's thread.
            commands: 1,
            completions,
            // Data that begins within a page reaches into one more page.
            pages: self.pages.saturating_add(1),
            inline: self.inline,
        }
    }
}
