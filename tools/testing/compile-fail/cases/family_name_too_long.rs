// SPDX-License-Identifier: GPL-2.0

//! The compiler checks what C checks when a family is registered: the name.
//!
//! refused: E0080: a name must have 1 to 15 bytes

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
        id: 2,
        kind: Kind::Flag,
    },
];

impl Family for Case {
    #[cfg(misuse)]
    const NAME: &'static CStr = c"sixteen-bytes-01";
    #[cfg(not(misuse))]
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
