// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `kernel::prelude`: initialisers are values.

pub(crate) use crate::{pin_init, pr_err};
pub(crate) use pin_project::pin_project as pin_data;
use std::convert::Infallible;

pub(crate) type Error = &'static str;
pub(crate) type Result<T = (), E = Error> = std::result::Result<T, E>;

pub(crate) trait PinInit<T, E = Infallible> {
    fn make(self) -> Result<T, E>;
}

struct Value<T, E>(Result<T, E>);

impl<T, E> PinInit<T, E> for Value<T, E> {
    fn make(self) -> Result<T, E> {
        self.0
    }
}

pub(crate) fn value<T>(value: T) -> impl PinInit<T> {
    Value(Ok(value))
}

pub(crate) fn made<T>(init: impl PinInit<T>) -> T {
    match init.make() {
        Ok(value) => value,
        Err(never) => match never {},
    }
}

#[macro_export]
macro_rules! pin_init {
    (Self { $($field:ident <- $init:expr),* $(,)? }) => {
        $crate::prelude::value(Self { $($field: $crate::prelude::made($init)),* })
    };
}

#[macro_export]
macro_rules! pr_err {
    ($($text:tt)*) => {
        eprint!($($text)*)
    };
}
