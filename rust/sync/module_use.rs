// SPDX-License-Identifier: GPL-2.0

//! Objects that use a consumer's module, for which the unload of that module waits.
//!
//! A thread, a workqueue, a disk and the like call functions of the module that made them, until they are dropped. Safe
//! code may leak them, for example with `mem::forget`. Each of them therefore owns a [`ModuleUse`]. After the exit
//! function of a module, or an init function that failed, C notifies of `MODULE_STATE_GOING` and then frees the module
//! (`delete_module()`, `do_init_module()`). The notifier here sleeps in between until the last use is dropped, and
//! logs that every 10 s. The loading of most other modules goes on meanwhile, because the notifiers share a lock; only
//! one that registers or unregisters a notifier of modules waits, too, and then also those after it.
//!
//! The module is found by an address in it, that of the [`Location`] of the call which makes the object: the compiler
//! puts that constant into the crate of the caller. The functions that the caller passes are of its module, or of one
//! that its module needs, which is not unloaded before.
//!
//! Objects of an RDMA device need none: the `client::Registration` waits for them, and owns one.
//!
//! C header: [`include/linux/module.h`](srctree/include/linux/module.h)

use super::{
    report_leak,
    IrqLock,
    LaterFn,
    TimedCompletion,
    SLOW, //
};
use crate::{
    bindings,
    memory,
    new_irq_lock, //
};
use core::{
    fmt,
    panic::Location,
    ptr, //
};
use kernel::{
    alloc::AllocError,
    error::to_result,
    ffi::{
        c_int,
        c_ulong,
        c_void, //
    },
    prelude::*,
    str::CStr,
    sync::{
        global_lock,
        Arc, //
    },
    types::Opaque,
};

/// What uses a module.
#[derive(Clone, Copy)]
pub(crate) enum UseKind {
    Thread,
    Workqueue,
    NetlinkFamily,
    Disk,
    TagSet,
    Class,
    Device,
    Node,
    RdmaClient,
    CmObserver,
}

/// The names of the kinds in the log, in their order.
const NAMES: [&str; 10] = [
    "threads",
    "workqueues",
    "netlink families",
    "disks",
    "tag sets",
    "classes of devices",
    "devices",
    "character devices",
    "RDMA clients",
    "observers of CM IDs",
];

/// Number of uses of each kind.
#[derive(Clone, Copy)]
struct Counts([usize; NAMES.len()]);

impl Counts {
    fn is_empty(&self) -> bool {
        self.0.iter().all(|count| *count == 0)
    }

    /// Replaces the number of uses of a kind.
    fn update(&mut self, kind: UseKind, next: impl FnOnce(usize) -> usize) {
        // There is a count for each kind.
        if let Some(count) = self.0.get_mut(kind as usize) {
            *count = next(*count);
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let present = NAMES.iter().zip(self.0).filter(|(_, count)| *count != 0);
        let mut separator = "";
        for (name, count) in present {
            write!(f, "{separator}{name}: {count}")?;
            separator = ", ";
        }
        Ok(())
    }
}

crate::text::kernel_display!(Counts);

/// A module that was loaded after this one.
///
/// # Invariants
///
/// `raw` is valid as long as this is in `MODULES`.
#[pin_data]
struct LoadedModule {
    raw: *const bindings::module,
    #[pin]
    uses: IrqLock<Counts>,
    /// Completed when the last use is dropped; the waiter checks the counts again.
    #[pin]
    unused: TimedCompletion,
}

// SAFETY: `raw` may be read in any thread, and the other fields are `Send`.
unsafe impl Send for LoadedModule {}
// SAFETY: As above; the other fields are `Sync`.
unsafe impl Sync for LoadedModule {}

global_lock! {
    // SAFETY: `ModuleNotifier::new` initialises it before any use.
    unsafe(uninit) static MODULES: Mutex<KVec<Arc<LoadedModule>>> = KVec::new();
}

impl LoadedModule {
    /// Adds a module to the list.
    fn add(raw: *const bindings::module) -> Result {
        let module = Arc::pin_init(
            pin_init!(Self {
                raw,
                uses <- new_irq_lock!(Counts([0; NAMES.len()]), "rrdma::ModuleUse"),
                unused <- TimedCompletion::new(),
            }),
            GFP_KERNEL,
        )?;
        // Allocated without I/O: a thread that reconnects for blocked I/O may wait for the lock.
        memory::without_io(|| MODULES.lock().push(module, GFP_KERNEL))?;
        Ok(())
    }

    /// Waits until nothing uses the module, and removes it from the list.
    fn remove(raw: *const bindings::module) {
        let Some(module) = Self::find(|module| module.raw == raw) else {
            return;
        };
        // An object that uses the module may make others meanwhile.
        while !module.remove_if_unused() {
            module.wait();
        }
    }

    /// Returns the module in the list that `is_it` accepts.
    fn find(is_it: impl Fn(&Self) -> bool) -> Option<Arc<Self>> {
        MODULES.lock().iter().find(|module| is_it(module)).cloned()
    }

    /// Removes the module from the list unless it is in use; returns whether it did.
    fn remove_if_unused(&self) -> bool {
        let mut modules = MODULES.lock();
        if !self.uses.lock().is_empty() {
            return false;
        }
        modules.retain(|module| !ptr::eq(&**module, self));
        if modules.is_empty() {
            // A static is not dropped when the module is unloaded, so its memory is freed here.
            *modules = KVec::new();
        }
        true
    }

    /// Waits until nothing uses the module, which is in `MODULES`. Logs every 10 s what does. Called by
    /// [`remove`](Self::remove) only.
    fn wait(&self) {
        // SAFETY: This is in the list: only the caller of this removes it.
        let name = unsafe { self.name() };
        let mut seconds = 0_u64;
        loop {
            let Some(uses) = self.begin_wait() else {
                break;
            };
            if !self.unused.wait_timeout(SLOW) {
                seconds = seconds.saturating_add(10);
                pr_warn!(
                    "{name}: its unload has waited for {seconds} s for what it has not dropped: {uses}\n"
                );
            }
        }
        // The thread that dropped the last use may still be in a function of the module.
        //
        // SAFETY: The notifier may sleep.
        unsafe { bindings::synchronize_rcu_tasks() };
    }

    /// Returns what uses the module; `None` if nothing does. `unused` is not completed before the last use is dropped.
    fn begin_wait(&self) -> Option<Counts> {
        let uses = self.uses.lock();
        self.unused.reinit();
        Some(*uses).filter(|uses| !uses.is_empty())
    }

    /// Returns the name of the module.
    ///
    /// # Safety
    ///
    /// This must be in `MODULES` as long as the name is used.
    unsafe fn name(&self) -> &CStr {
        // SAFETY: By the type invariant and the safety requirements, `raw` is valid. A module's name ends with NUL.
        unsafe { CStr::from_char_ptr((&raw const (*self.raw).name).cast()) }
    }

    /// Returns whether an address is in the module.
    ///
    /// # Safety
    ///
    /// This must be in `MODULES`, which the caller has locked.
    unsafe fn contains(&self, address: usize) -> bool {
        // SAFETY: By the type invariant and the safety requirements, `raw` is valid.
        unsafe { bindings::within_module_core(address as c_ulong, self.raw) }
    }
}

/// A use of a module. The unload of the module waits until this is dropped. May be dropped in any context.
///
/// A field of this type is the last one of its structure: nothing of the structure uses the module after it is dropped.
///
/// # Invariants
///
/// It is counted in `module`.
pub(crate) struct ModuleUse {
    module: Arc<LoadedModule>,
    kind: UseKind,
}

impl ModuleUse {
    /// Counts a use of the module that `caller` is in. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if there was no memory to note that module when it was loaded.
    pub(crate) fn new(kind: UseKind, caller: &'static Location<'static>) -> Result<Self> {
        let address = ptr::from_ref(caller).addr();
        let modules = MODULES.lock();
        // SAFETY: The module is in the list, which is locked.
        let is_it = |module: &&Arc<LoadedModule>| unsafe { module.contains(address) };
        let module = modules.iter().find(is_it);
        let module = module.cloned().ok_or(ENOMEM)?;
        // Counted with the list locked, so that the module is not removed before.
        module
            .uses
            .lock()
            .update(kind, |uses| uses.saturating_add(1));
        // INVARIANT: Counted above.
        Ok(Self { module, kind })
    }

    /// Drops `value` in a work item. Without memory for it, `value` leaks, with a log message. `what` names its kind
    /// there. Any context.
    ///
    /// For types with parameters: code of the module drops `value`, and the unload of the module waits until that has
    /// returned.
    pub(crate) fn drop_later<T: Send + 'static>(&self, what: &str, value: T) {
        // Counted before the value, which may be what counts otherwise, is dropped.
        let module = self.clone();
        match LaterFn::new(value, drop, GFP_ATOMIC) {
            Ok(func) => module.queue_work(what, func),
            Err(AllocError) => report_leak(what),
        }
    }

    /// Queues a work item that calls a function of the module, and then drops the use. That is code of this module, as
    /// this function is not inlined into others.
    #[inline(never)]
    fn queue_work(self, what: &str, func: LaterFn) {
        if func.queue(self, GFP_ATOMIC).is_err() {
            report_leak(what);
        }
    }
}

impl Clone for ModuleUse {
    fn clone(&self) -> Self {
        let mut uses = self.module.uses.lock();
        uses.update(self.kind, |uses| uses.saturating_add(1));
        drop(uses);
        // INVARIANT: Counted above.
        Self {
            module: self.module.clone(),
            kind: self.kind,
        }
    }
}

impl Drop for ModuleUse {
    fn drop(&mut self) {
        let mut uses = self.module.uses.lock();
        uses.update(self.kind, |uses| uses.saturating_sub(1));
        if uses.is_empty() {
            self.module.unused.complete();
        }
    }
}

/// Follows the loading and unloading of modules until it is dropped. The exit of this module drops it: no module that
/// uses this one is loaded then.
///
/// # Invariants
///
/// `block` is registered.
pub(crate) struct ModuleNotifier {
    block: Pin<KBox<Block>>,
}

/// The notifier block, which does not move.
#[pin_data]
struct Block {
    #[pin]
    raw: Opaque<bindings::notifier_block>,
}

// SAFETY: C does the locking of the notifier block.
unsafe impl Send for Block {}
// SAFETY: C does the locking of the notifier block.
unsafe impl Sync for Block {}

impl ModuleNotifier {
    /// Registers the notifier. Called once, when this module is loaded: a module that needs this one is notified of
    /// later. C: `register_module_notifier()`.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: Called exactly once, from the init function of this module.
        unsafe { MODULES.init() };
        let block = KBox::pin_init(
            pin_init!(Block {
                raw: Opaque::new(bindings::notifier_block {
                    notifier_call: Some(notified),
                    // The first to be called: the module is complete while it is waited for.
                    priority: c_int::MAX,
                    ..pin_init::zeroed()
                }),
            }),
            GFP_KERNEL,
        )?;
        // SAFETY: The block is pinned, and stays allocated until it is unregistered.
        to_result(unsafe { bindings::register_module_notifier(block.raw.get()) })?;
        // INVARIANT: The block was just registered.
        Ok(Self { block })
    }
}

impl Drop for ModuleNotifier {
    fn drop(&mut self) {
        // SAFETY: By the type invariants, the block is registered. This waits for running calls.
        unsafe { bindings::unregister_module_notifier(self.block.raw.get()) };
        *MODULES.lock() = KVec::new();
    }
}

/// Callback of the notifier.
///
/// # Safety
///
/// `module` is a module that C loads or unloads, and frees only after it was notified of `MODULE_STATE_GOING`.
unsafe extern "C" fn notified(
    _notifier: *mut bindings::notifier_block,
    event: c_ulong,
    module: *mut c_void,
) -> c_int {
    let module = module.cast_const().cast();
    match u32::try_from(event) {
        // Without memory, the module cannot make objects that use it: `ModuleUse::new` fails.
        Ok(bindings::module_state_MODULE_STATE_COMING) => drop(LoadedModule::add(module)),
        Ok(bindings::module_state_MODULE_STATE_GOING) => LoadedModule::remove(module),
        _ => (),
    }
    bindings::NOTIFY_DONE as c_int
}
