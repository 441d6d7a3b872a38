// SPDX-License-Identifier: GPL-2.0

//! Devices and classes of a driver.
//!
//! C header: [`include/linux/device.h`](srctree/include/linux/device.h)

use super::{
    Attribute,
    HasAttributes,
    Table, //
};
use crate::{
    bindings, chrdev,
    sync::{
        drop_later,
        DropsLater,
        ModuleUse,
        SleepingDrop,
        UseKind, //
    },
};
use core::{
    marker::PhantomData,
    panic::Location,
    ptr::NonNull, //
};
use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*,
    str::CStr,
    sync::Arc, //
};

/// Attributes of a [`Device`].
pub trait Attributes: Send + Sync + Sized + 'static {
    /// The attributes: at most 32.
    const ATTRIBUTES: &'static [Attribute<Self>];
}

/// Maps the attributes of a device to its data `D`.
struct OfDevice<D>(PhantomData<D>);

// SAFETY: Only `Device::new` uses these groups. It stores the address of the data in the device,
// and keeps the data until C has removed the device.
unsafe impl<D: Attributes> HasAttributes for OfDevice<D> {
    type Data = D;

    const ATTRIBUTES: &'static [Attribute<D>] = D::ATTRIBUTES;

    unsafe fn data<'a>(dev: *mut bindings::device) -> &'a D {
        // SAFETY: By the safety requirements of this function, `dev` has these groups, so its
        // `driver_data` is a `D`, which outlives the device.
        unsafe { &*(*dev).driver_data.cast::<D>().cast_const() }
    }
}

/// A class of devices, `/sys/class/NAME`. Removed when dropped, by a work item in atomic context.
pub struct Class(SleepingDrop<CreatedClass>);

/// A class of devices that exists. Dropping this sleeps.
///
/// # Invariants
///
/// `class` was created by `class_create()`.
struct CreatedClass {
    class: NonNull<bindings::class>,
    /// The name is in the module.
    _module: ModuleUse,
}

// SAFETY: C does the locking of classes, and any thread may use or destroy them.
unsafe impl Send for CreatedClass {}
// SAFETY: C does the locking of classes.
unsafe impl Sync for CreatedClass {}

impl Class {
    /// Creates a class. May sleep. C: `class_create()`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EEXIST` if a class of this name exists. The kernel logs a warning.
    #[track_caller]
    pub fn new(name: &'static CStr) -> Result<Arc<Self>> {
        let module = ModuleUse::new(UseKind::Class, Location::caller())?;
        // SAFETY: The name is static, in a module that is not unloaded before the class is destroyed.
        let class = from_err_ptr(unsafe { bindings::class_create(name.as_char_ptr()) })?;
        // SAFETY: A pointer to a valid class is not null.
        let class = unsafe { NonNull::new_unchecked(class) };

        // INVARIANT: The class was just created. It is destroyed if this allocation fails.
        let class = SleepingDrop::new(CreatedClass {
            class,
            _module: module,
        });
        Ok(Arc::new(Self(class), GFP_KERNEL)?)
    }
}

impl DropsLater for CreatedClass {
    #[inline(never)]
    fn drop_later(self) {
        drop_later("class of devices", self);
    }
}

impl Drop for CreatedClass {
    fn drop(&mut self) {
        // SAFETY: By the type invariants, the class is valid. Each device holds a reference to
        // this, so the class has none left.
        unsafe { bindings::class_destroy(self.class.as_ptr()) };
    }
}

/// A device of a [`Class`], `/sys/class/CLASS/NAME`, with the attributes of its data.
///
/// User space gets a uevent when it is added, when it is removed, and from
/// [`tell_change`](Self::tell_change). It has neither a driver nor power management. It has
/// attributes, may be the parent of disks
/// ([`DiskConfig::parent`](crate::block::DiskConfig::parent)), which hold a reference, and may
/// carry the number of a character device.
///
/// Dropping it waits for users of its attributes, then drops the character device. Sleeps. In atomic context, a work
/// item drops it, and its data. C: `device_unregister()`.
pub struct Device(SleepingDrop<AddedDevice>);

/// An added device. Dropping this sleeps.
///
/// # Invariants
///
/// `device` was added to `class`, and holds the address of `data`.
struct AddedDevice {
    device: NonNull<bindings::device>,
    /// Dropped after the device is removed, so that nothing refers to it.
    _node: Option<chrdev::Node>,
    _data: Arc<dyn Send + Sync>,
    _class: Arc<Class>,
    _module: ModuleUse,
}

// SAFETY: C does the locking of devices, and any thread may use or remove them. The data is `Send`
// and `Sync`.
unsafe impl Send for AddedDevice {}
// SAFETY: C does the locking of devices. The data is `Sync`.
unsafe impl Sync for AddedDevice {}

impl Device {
    /// Creates a device and adds it to the system. With a `node`, devtmpfs creates `/dev/NAME`,
    /// initially for root only. May sleep. C: `device_create_with_groups()`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EEXIST` if the class has a device of this name. The kernel logs a warning.
    #[track_caller]
    pub fn new<D: Attributes>(
        class: Arc<Class>,
        name: &CStr,
        data: Arc<D>,
        node: Option<chrdev::Node>,
    ) -> Result<Arc<Self>> {
        let module = ModuleUse::new(UseKind::Device, Location::caller())?;
        // SAFETY: The class is valid. The format takes one string, which C copies. The `Device`
        // holds the data until the device is removed.
        let device = from_err_ptr(unsafe {
            bindings::device_create_with_groups(
                class.0.class.as_ptr(),
                core::ptr::null_mut(),
                node.as_ref().map_or(0, chrdev::Node::number),
                (&raw const *data).cast_mut().cast(),
                Table::<OfDevice<D>>::groups(),
                c"%s".as_char_ptr(),
                name.as_char_ptr(),
            )
        })?;

        // INVARIANT: The device was just added. It is removed if the allocation below fails.
        let device = SleepingDrop::new(AddedDevice {
            // SAFETY: A pointer to a valid device is not null.
            device: unsafe { NonNull::new_unchecked(device) },
            _node: node,
            _data: data,
            _class: class,
            _module: module,
        });
        Ok(Arc::new(Self(device), GFP_KERNEL)?)
    }

    /// Sends a `change` uevent with an additional variable, `KEY=value`.
    ///
    /// Sleeps, and may wait for arbitrary I/O, even in [`without_io`](crate::memory::without_io):
    /// this takes a lock under which other senders of uevents allocate memory. Must not be called
    /// by a thread that I/O waits for. C: `kobject_uevent_env()`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, also if the variables of the uevent exceed 2048 bytes. A listener with a full
    /// socket is not an error: the listener gets one.
    pub fn tell_change(&self, variable: &CStr) -> Result {
        let mut variables = [variable.as_char_ptr().cast_mut(), core::ptr::null_mut()];

        // SAFETY: By the type invariants, the device was added; it is removed only in `drop`. C
        // copies the variables, up to the null pointer.
        to_result(unsafe {
            bindings::kobject_uevent_env(
                &raw mut (*self.as_raw()).kobj,
                bindings::kobject_action_KOBJ_CHANGE,
                variables.as_mut_ptr(),
            )
        })
    }

    /// Returns the device for C.
    pub(crate) fn as_raw(&self) -> *mut bindings::device {
        self.0.device.as_ptr()
    }
}

impl DropsLater for AddedDevice {
    #[inline(never)]
    fn drop_later(self) {
        drop_later("device", self);
    }
}

impl Drop for AddedDevice {
    fn drop(&mut self) {
        // SAFETY: By the type invariants, the device was added. This is its last use: child disks
        // hold a reference to `self`.
        unsafe { bindings::device_unregister(self.device.as_ptr()) };
    }
}
