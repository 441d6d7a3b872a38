// SPDX-License-Identifier: GPL-2.0

//! Devices of a driver's own.
//!
//! C header: [`include/linux/device.h`](srctree/include/linux/device.h)

use super::{
    Attribute,
    Owner,
    Table, //
};
use crate::{
    bindings,
    chrdev, //
};
use core::{
    marker::PhantomData,
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

/// What a [`Device`] shows.
pub trait Attributes: Send + Sync + Sized + 'static {
    /// The attributes: at most 32.
    const ATTRIBUTES: &'static [Attribute<Self>];
}

/// The data `D` behind a device.
struct OfDevice<D>(PhantomData<D>);

// SAFETY: A device of these groups is from `Device::new`, which leaves the data's address in
// it and keeps the data until C has removed it.
unsafe impl<D: Attributes> Owner for OfDevice<D> {
    type Data = D;

    const ATTRIBUTES: &'static [Attribute<D>] = D::ATTRIBUTES;

    unsafe fn data<'a>(dev: *mut bindings::device) -> &'a D {
        // SAFETY: By the requirements of this function, and as above.
        unsafe { &*(*dev).driver_data.cast::<D>().cast_const() }
    }
}

/// A class of devices, `/sys/class/NAME`. There until it is dropped, which may sleep.
///
/// # Invariants
///
/// `class` was made by `class_create`.
pub struct Class {
    class: NonNull<bindings::class>,
}

// SAFETY: C serialises what is done with a class.
unsafe impl Send for Class {}
// SAFETY: As above.
unsafe impl Sync for Class {}

impl Class {
    /// Makes a class. May sleep. C: `class_create`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EEXIST` if there is one of this name, for which the kernel log has a
    /// warning.
    pub fn new(name: &'static CStr) -> Result<Arc<Self>> {
        // SAFETY: The name stays.
        let class = from_err_ptr(unsafe { bindings::class_create(name.as_char_ptr()) })?;
        // SAFETY: A valid class is not at address 0.
        let class = unsafe { NonNull::new_unchecked(class) };

        // INVARIANT: It was made just now. Dropped if there is no memory for it here.
        Ok(Arc::new(Self { class }, GFP_KERNEL)?)
    }
}

impl Drop for Class {
    fn drop(&mut self) {
        // SAFETY: By the invariants; each device of it holds a reference to us.
        unsafe { bindings::class_destroy(self.class.as_ptr()) };
    }
}

/// A device of a [`Class`], `/sys/class/CLASS/NAME`, which shows the attributes of its data.
///
/// User space hears of it when it is made, when it goes, and when the driver
/// [says so](Self::tell_change). It has no driver and no power
/// management: it is there to be looked at, to be the parent of disks
/// ([`DiskConfig::parent`](crate::block::DiskConfig::parent)), which hold a reference, and to
/// show under which number a character device can be opened.
///
/// Dropping it waits for those who read its attributes, and sleeps; then the character device
/// goes. C: `device_unregister`.
///
/// # Invariants
///
/// `device` is of `class` and was added, with the address of `data` in it.
pub struct Device {
    device: NonNull<bindings::device>,
    /// Goes when nothing leads to it any more.
    _node: Option<chrdev::Node>,
    _data: Arc<dyn Send + Sync>,
    _class: Arc<Class>,
}

// SAFETY: C serialises what is done with a device; the data is `Send` and `Sync`.
unsafe impl Send for Device {}
// SAFETY: As above.
unsafe impl Sync for Device {}

impl Device {
    /// Makes a device and adds it to the system. If it has a `node`, `/dev/NAME` leads to that,
    /// which only root may open at first. May sleep. C: `device_create_with_groups`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EEXIST` if the class has one of this name, for which the kernel log has a
    /// warning.
    pub fn new<D: Attributes>(
        class: Arc<Class>,
        name: &CStr,
        data: Arc<D>,
        node: Option<chrdev::Node>,
    ) -> Result<Arc<Self>> {
        // SAFETY: The class is valid. The format takes one string, which is copied. The data
        // stays until the device is removed: we hold it until then.
        let device = from_err_ptr(unsafe {
            bindings::device_create_with_groups(
                class.class.as_ptr(),
                core::ptr::null_mut(),
                node.as_ref().map_or(0, chrdev::Node::number),
                (&raw const *data).cast_mut().cast(),
                Table::<OfDevice<D>>::groups(),
                c"%s".as_char_ptr(),
                name.as_char_ptr(),
            )
        })?;

        // INVARIANT: It was added just now. Dropped if there is no memory for it here.
        let device = Self {
            // SAFETY: A valid device is not at address 0.
            device: unsafe { NonNull::new_unchecked(device) },
            _node: node,
            _data: data,
            _class: class,
        };
        Ok(Arc::new(device, GFP_KERNEL)?)
    }

    /// Tells user space, and so udev, that something of the device changed: an event `change`,
    /// with a variable, `KEY=value`, beside those that every event has.
    ///
    /// Sleeps, and may wait for any I/O, also in [`without_io`](crate::memory::without_io): others
    /// who send an event take memory with a lock that this needs. So it is not for who I/O waits
    /// for. C: `kobject_uevent_env`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, also if it is too long for an event, which has 2048 bytes for all its variables.
    /// That a listener had no room is none: it is told so.
    pub fn tell_change(&self, variable: &CStr) -> Result {
        let mut variables = [variable.as_char_ptr().cast_mut(), core::ptr::null_mut()];

        // SAFETY: By the invariants the device was added, and it is not removed before we are
        // dropped. C copies the variables, up to the null pointer.
        to_result(unsafe {
            bindings::kobject_uevent_env(
                &raw mut (*self.device.as_ptr()).kobj,
                bindings::kobject_action_KOBJ_CHANGE,
                variables.as_mut_ptr(),
            )
        })
    }

    /// The device for C.
    pub(crate) fn as_raw(&self) -> *mut bindings::device {
        self.device.as_ptr()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: By the invariants, and this is its last use: the disks that it is the parent
        // of held a reference to us.
        unsafe { bindings::device_unregister(self.device.as_ptr()) };
    }
}
