// SPDX-License-Identifier: GPL-2.0

//! The compiler checks what C checks when a family is registered: attributes.
//!
//! refused: E0080: duplicate attribute number

use kernel::prelude::*;
use rrdma::netlink::{
    Attribute,
    Family,
    Kind,
    Operation,
    Registration, //
};

pub(crate) struct Case;

const ATTRIBUTES: &[Attribute] = &[
    Attribute {
        id: 1,
        kind: Kind::Flag,
    },
    Attribute {
        id: if cfg!(misuse) { 1 } else { 2 },
        kind: Kind::Flag,
    },
];

impl Family for Case {
    const NAME: &'static CStr = c"case";

    const VERSION: u8 = 1;

    type Context = ();

    const OPERATIONS: &'static [Operation<Self>] = &[
        Operation {
            command: 1,
            admin: false,
            attributes: ATTRIBUTES,
            doit: Some(|_, _| Ok(())),
            dumpit: None,
        },
        Operation {
            command: 2,
            admin: false,
            attributes: ATTRIBUTES,
            doit: Some(|_, _| Ok(())),
            dumpit: None,
        },
    ];

    const GROUPS: &'static [&'static CStr] = &[];
}

pub fn register(module: &'static ThisModule) -> Result<Registration<Case>> {
    Registration::<Case>::new(Ok(()), module)
}
