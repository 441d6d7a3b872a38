// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `kernel::types`: objects that are owned by a pointer.

use std::{
    any::Any, cell::RefCell, collections::BTreeMap, ffi::c_void, marker::PhantomData, ops::Deref,
    sync::Arc,
};

// A pointer is a key of this table, so a use after the release panics.
thread_local! {
    static OBJECTS: RefCell<BTreeMap<usize, Box<dyn Any>>> = const { RefCell::new(BTreeMap::new()) };
}

pub(crate) fn forget_objects() {
    OBJECTS.take();
}

pub(crate) fn no_object_left() -> bool {
    OBJECTS.with_borrow(BTreeMap::is_empty)
}

pub(crate) trait ForeignOwnable: Sized {
    type Borrowed<'a>;

    fn into_foreign(self) -> *mut c_void;
    fn from_foreign(pointer: *mut c_void) -> Self;
    fn borrow<'a>(pointer: *mut c_void) -> Self::Borrowed<'a>;
}

pub(crate) struct ArcBorrow<'a, T>(Arc<T>, PhantomData<&'a T>);

impl<T> Deref for ArcBorrow<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: 'static> ForeignOwnable for Arc<T> {
    type Borrowed<'a> = ArcBorrow<'a, T>;

    fn into_foreign(self) -> *mut c_void {
        OBJECTS.with_borrow_mut(|objects| {
            let key = objects.last_key_value().map_or(1, |(last, _)| last + 1);
            objects.insert(key, Box::new(self));
            key as *mut c_void
        })
    }

    fn from_foreign(pointer: *mut c_void) -> Self {
        let object = OBJECTS.with_borrow_mut(|objects| objects.remove(&(pointer as usize)));
        *object.expect("released twice").downcast().unwrap()
    }

    fn borrow<'a>(pointer: *mut c_void) -> ArcBorrow<'a, T> {
        OBJECTS.with_borrow(|objects| {
            let object = objects
                .get(&(pointer as usize))
                .expect("used after its release");
            ArcBorrow(Arc::clone(object.downcast_ref().unwrap()), PhantomData)
        })
    }
}
