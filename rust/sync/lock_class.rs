// SPDX-License-Identifier: GPL-2.0

//! Names of the lockdep classes of this crate.

/// Returns the name of a lock or a work item, which has the same address in all modules.
///
/// A generic or inlined function is compiled into each module that uses it, but its
/// [`static_lock_class!`](kernel::static_lock_class) is one static of this crate. Lockdep requires that all
/// locks of a class have one name, and compares addresses; a literal has another address in each module.
#[doc(hidden)]
#[macro_export]
macro_rules! lock_name {
    ($($name:literal)?) => {{
        static NAME: &::kernel::str::CStr = ::kernel::optional_name!($($name)?);
        NAME
    }};
}

/// Creates the initialiser of a [`Mutex`](kernel::sync::Mutex) of this crate, like
/// [`kernel::new_mutex!`], with a name that all modules share.
macro_rules! new_mutex {
    ($inner:expr, $name:literal $(,)?) => {
        ::kernel::sync::Mutex::new(
            $inner,
            $crate::lock_name!($name),
            ::kernel::static_lock_class!(),
        )
    };
}

pub(crate) use new_mutex;
