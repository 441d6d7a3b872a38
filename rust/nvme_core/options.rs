// SPDX-License-Identifier: GPL-2.0

//! Options of a controller, as user space wrote them to `/dev/nvme-fabrics`.
//!
//! C header: `drivers/nvme/host/fabrics.h`

use crate::bindings;
use core::ptr::NonNull;
use kernel::{
    error::to_result,
    prelude::*,
    str::CStr, //
};

/// Options of a controller. C: `struct nvmf_ctrl_options`.
///
/// Writes to attributes of the controller change some numbers at any time, such as `max_reconnects`. So no
/// reference to the whole structure is made.
///
/// # Invariants
///
/// `options` is valid while this exists. The fields that this reads do not change, once the controller is
/// created.
pub struct Options {
    options: NonNull<bindings::nvmf_ctrl_options>,
}

// SAFETY: The options are not tied to a thread.
unsafe impl Send for Options {}

// SAFETY: By the type invariants, what this reads does not change.
unsafe impl Sync for Options {}

/// Number of kinds of hardware queues. C: `HCTX_MAX_TYPES`.
pub(crate) const KINDS: usize = bindings::hctx_type_HCTX_MAX_TYPES as usize;

/// Numbers of I/O queues of each kind that the options ask for.
#[derive(Clone, Copy, Default)]
pub(crate) struct RequestedQueues {
    pub(crate) default: u32,
    pub(crate) write: u32,
    pub(crate) poll: u32,
}

impl RequestedQueues {
    /// Returns the sum.
    pub(crate) fn total(self) -> u32 {
        self.default
            .saturating_add(self.write)
            .saturating_add(self.poll)
    }

    /// Returns the numbers for this number of processors, which need at most one queue of each kind each.
    pub(crate) fn for_cpus(self, cpus: u32) -> Self {
        Self {
            default: self.default.min(cpus),
            write: self.write.min(cpus),
            poll: self.poll.min(cpus),
        }
    }

    /// Divides `count` queues among the kinds. C: `nvmf_set_io_queues()`.
    pub(crate) fn divide(self, count: u32) -> [u32; KINDS] {
        let mut options = bindings::nvmf_ctrl_options {
            nr_io_queues: self.default,
            nr_write_queues: self.write,
            nr_poll_queues: self.poll,
            ..pin_init::zeroed()
        };
        // nvme-fabrics writes only the kinds that there are.
        let mut kinds = [0; KINDS];
        // SAFETY: The function reads the three numbers of the options. `kinds` has a place for each kind.
        unsafe { bindings::nvmf_set_io_queues(&mut options, count, kinds.as_mut_ptr()) };
        kinds
    }
}

impl Options {
    /// Wraps the options of a controller.
    ///
    /// # Safety
    ///
    /// The type invariants hold while the result exists.
    pub(crate) unsafe fn from_raw(options: NonNull<bindings::nvmf_ctrl_options>) -> Self {
        // INVARIANT: By the safety requirements of this function.
        Self { options }
    }

    /// Returns the options for C.
    pub(crate) fn as_raw(&self) -> *mut bindings::nvmf_ctrl_options {
        self.options.as_ptr()
    }

    /// Returns the string of an option, if the user gave the option.
    ///
    /// # Safety
    ///
    /// `text` is the field for the string of `option`.
    unsafe fn text(&self, option: u32, text: *mut c_char) -> Option<&CStr> {
        // SAFETY: By the type invariants, the options are valid, and the field does not change.
        let mask = unsafe { (*self.as_raw()).mask };
        if mask & option == 0 || text.is_null() {
            return None;
        }
        // SAFETY: nvme-fabrics sets the bit of an option together with its string. By the type
        // invariants, the string stays as long as `self`.
        Some(unsafe { CStr::from_char_ptr(text) })
    }

    /// Returns the address of the target.
    pub fn traddr(&self) -> Option<&CStr> {
        let raw = self.as_raw();
        // SAFETY: By the type invariants, the options are valid. The field is that of the option.
        unsafe { self.text(bindings::NVMF_OPT_TRADDR, (*raw).traddr) }
    }

    /// Returns the port of the target, if one was given.
    pub fn trsvcid(&self) -> Option<&CStr> {
        let raw = self.as_raw();
        // SAFETY: By the type invariants, the options are valid. The field is that of the option.
        unsafe { self.text(bindings::NVMF_OPT_TRSVCID, (*raw).trsvcid) }
    }

    /// Returns the port of the target as a number. Its text is decimal, or begins with 0x or 0.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it is none.
    pub fn port(&self) -> Result<u16> {
        let (text, mut port) = (self.trsvcid().ok_or(EINVAL)?, 0);
        // SAFETY: `text` is a string, and `port` valid for writes.
        to_result(unsafe { bindings::kstrtou16(text.as_char_ptr(), 0, &mut port) })
            .map_err(|_| EINVAL)?;
        Ok(port)
    }

    /// Returns the source address, if one was given.
    pub fn host_traddr(&self) -> Option<&CStr> {
        let raw = self.as_raw();
        // SAFETY: By the type invariants, the options are valid. The field is that of the option.
        unsafe { self.text(bindings::NVMF_OPT_HOST_TRADDR, (*raw).host_traddr) }
    }

    /// Returns the NQN of the host.
    pub fn host_nqn(&self) -> &CStr {
        // SAFETY: By the type invariants, the options are valid. nvme-fabrics sets the host, whose
        // NQN is an array that ends with a NUL, before it creates a controller.
        unsafe { CStr::from_char_ptr((&raw const (*(*self.as_raw()).host).nqn).cast()) }
    }

    /// Returns the IP type of service, if one was given.
    pub fn tos(&self) -> Option<u8> {
        // SAFETY: By the type invariants, the options are valid, and the field does not change.
        u8::try_from(unsafe { (*self.as_raw()).tos }).ok()
    }

    /// Returns `ctrl_loss_tmo` in milliseconds, which nvme-fabrics keeps as the number of reconnect attempts; `None`
    /// if it is off, or 0. Writes to attributes may change it at any time. Any context.
    pub(crate) fn ctrl_loss_ms(&self) -> Option<u64> {
        let raw = self.as_raw();
        // SAFETY: By the type invariants, the options are valid. Other threads write the numbers as a whole.
        let (attempts, delay) = unsafe {
            (
                (&raw const (*raw).max_reconnects).read_volatile(),
                (&raw const (*raw).reconnect_delay).read_volatile(),
            )
        };
        let attempts = u64::try_from(attempts)
            .ok()
            .filter(|attempts| *attempts > 0)?;
        let seconds = attempts.saturating_mul(delay.into());
        Some(seconds.saturating_mul(1000))
    }

    /// Returns the numbers of I/O queues.
    pub(crate) fn queues(&self) -> RequestedQueues {
        let raw = self.as_raw();
        // SAFETY: By the type invariants, the options are valid, and the fields do not change.
        unsafe {
            RequestedQueues {
                default: (*raw).nr_io_queues,
                write: (*raw).nr_write_queues,
                poll: (*raw).nr_poll_queues,
            }
        }
    }

    /// Limits the queues to one of each kind for each of `cpus` processors, those that the machine can ever have:
    /// blk-mq maps no others. nvme-fabrics limits `nr_io_queues` only.
    pub(crate) fn limit_queues(&self, cpus: u32) {
        // SAFETY: By the type invariants, the options are valid. The thread that creates the
        // controller is their only user now.
        unsafe {
            let raw = self.options.as_ptr();
            (*raw).nr_io_queues = (*raw).nr_io_queues.min(cpus);
            (*raw).nr_write_queues = (*raw).nr_write_queues.min(cpus);
            (*raw).nr_poll_queues = (*raw).nr_poll_queues.min(cpus);
        }
    }

    /// Sets the port of the target if none was given. sysfs and nvme-cli show it. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn set_default_port(&self, port: &CStr) -> Result {
        if self.trsvcid().is_some() {
            return Ok(());
        }
        // SAFETY: `port` is a string.
        let copy = unsafe { bindings::kstrdup(port.as_char_ptr(), bindings::GFP_KERNEL) };
        if copy.is_null() {
            return Err(ENOMEM);
        }
        // SAFETY: By the type invariants, the options are valid. The thread that creates the
        // controller is their only user now. nvme-fabrics frees the string with them.
        unsafe {
            let raw = self.options.as_ptr();
            (*raw).trsvcid = copy;
            (*raw).mask |= bindings::NVMF_OPT_TRSVCID;
        }
        Ok(())
    }
}
