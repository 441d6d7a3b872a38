// SPDX-License-Identifier: GPL-2.0

//! Commands that need a step of this crate when nvmet executes them: Connect, and Zone Append. The step replaces
//! nvmet's function for the command, and calls it. Other commands are tested for their opcode only.
//!
//! `nvmet_bdev_zone_append_bio_done()` completes a Zone Append before it ends the bio. A bio in the request, which
//! nvmet uses for a short list (`nvmet_use_inline_bvec()`), may by then be that of the slot's next command. So nvmet
//! gets a list that is too long: it then allocates a bio, and uses no memory of the request after the response.
//! The first bytes of the data become entries of their own. `bio_add_page()` merges them again.

use super::{
    connect,
    Execute,
    Memory,
    Parsed,
    RequestHandler, //
};
use crate::{
    bindings,
    data::{
        LongEntries,
        MAX_INLINE, //
    },
    types::TransportTypes, //
};
use kernel::prelude::*;

/// Opcode of the Fabrics commands. C: `nvme_fabrics_command`.
const FABRICS: u8 = 0x7f;

/// Opcode of a Zone Append. C: `nvme_cmd_zone_append`.
const ZONE_APPEND: u8 = 0x7d;

impl<T: RequestHandler> Parsed<T> {
    /// Replaces nvmet's function for a command that nvmet alone does not execute safely. Any context.
    #[inline(always)]
    pub(super) fn prepared(self) -> Self {
        match self.opcode() {
            FABRICS | ZONE_APPEND => prepare(self),
            _ => self,
        }
    }
}

/// Replaces nvmet's function for a Connect command or a Zone Append.
#[cold]
#[inline(never)]
fn prepare<T: RequestHandler>(mut parsed: Parsed<T>) -> Parsed<T> {
    if parsed.opcode() == FABRICS {
        return connect::prepare(parsed);
    }
    let req = parsed.req();
    // SAFETY: By the type invariants of `Parsed`, this owns the memory.
    let memory = unsafe { parsed.0.as_mut() };
    // SAFETY: As above. `execute` calls the function that it replaces.
    unsafe {
        // Without a namespace, a passthrough subsystem sends the command to its device.
        if !(*req).ns.is_null() {
            memory.execute = (*req).execute.replace(execute::<T>);
        }
    }
    parsed
}

/// Executes a Zone Append.
///
/// # Safety
///
/// The caller is `Parsed::execute_with`, with the request of a command that [`prepare`] has prepared.
unsafe extern "C" fn execute<T: TransportTypes>(req: *mut bindings::nvmet_req) {
    // SAFETY: By the safety requirements. `req` is the first field of the memory, which nvmet does not use yet.
    let memory = unsafe { &mut *req.cast::<Memory<T>>() };
    let execute: Execute = memory.execute;
    let lengthened = lengthen(memory);
    // SAFETY: nvmet has parsed the command, and gets the request back. `prepare` has set the function.
    unsafe {
        match lengthened {
            Ok(()) => execute.unwrap_unchecked()(req),
            Err(_) => bindings::nvmet_req_complete(req, bindings::NVME_SC_INTERNAL as u16),
        }
    }
}

/// Replaces the list of the data by one that is too long for the bio in the request. May sleep.
///
/// # Errors
///
/// `ENOMEM`.
fn lengthen<T: TransportTypes>(memory: &mut Memory<T>) -> Result {
    // SAFETY: The memory is owned, and the list is that of the data, see `Parsed::execute_with`.
    let req = unsafe { &mut *memory.req.get() };
    let entries = req.sg_cnt.unsigned_abs();
    if !(1..=MAX_INLINE).contains(&entries) {
        return Ok(());
    }
    // SAFETY: As above; there is a first entry.
    if unsafe { (*req.sg).length } <= MAX_INLINE {
        // Less than a block: nvmet refuses the command, and uses no bio.
        return Ok(());
    }
    let mut list = match memory.long_list.take() {
        Some(list) => list,
        None => KBox::<LongEntries>::new_uninit(GFP_KERNEL)?,
    };
    let long = list.as_mut_ptr().cast();
    // SAFETY: Nobody else uses the room, which is enough for both numbers of entries. The first entry of the list
    // has more bytes. Both lists stay in the memory until it is freed, or nvmet has returned the request.
    unsafe { bindings::sg_cut(long, req.sg, entries, MAX_INLINE) };
    req.sg = long;
    req.sg_cnt = (entries + MAX_INLINE) as c_int;
    memory.long_list = Some(list);
    Ok(())
}
