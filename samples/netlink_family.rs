// SPDX-License-Identifier: GPL-2.0

//! A generic netlink family: numbers that a privileged process increases and anybody reads.
//!
//! The kernel checks each request against the attributes of its operation, so a handler gets valid ones
//! only.

use kernel::{
    new_mutex,
    prelude::*,
    str::CStr,
    sync::Mutex, //
};
use rrdma::netlink::{
    Attribute,
    Dump,
    Family,
    Kind,
    Message,
    Operation,
    Registration,
    Request, //
};

module! {
    type: Module,
    name: "rrdma_netlink_family",
    authors: ["The rnvmf developers"],
    description: "Sample: a generic netlink family",
    license: "GPL",
}

/// Numbers of the family.
const COUNT: usize = 64;

// The numbers of commands and attributes are the interface with user space: they never change.

/// Sets a number to a larger value.
const SET: u8 = 1;
/// Reads one number, or dumps all.
const GET: u8 = 2;

const INDEX: u16 = 1;
const VALUE: u16 = 2;

const INDEX_ATTRIBUTE: Attribute = Attribute {
    id: INDEX,
    kind: Kind::U32 {
        min: 0,
        max: COUNT as u32 - 1,
    },
};

const VALUE_ATTRIBUTE: Attribute = Attribute {
    id: VALUE,
    kind: Kind::Uint {
        min: 1,
        max: 1 << 40,
    },
};

struct Module {
    // Dropped with the module: no handler runs afterwards.
    _family: Registration<Numbers>,
}

impl kernel::Module for Module {
    fn init(module: &'static ThisModule) -> Result<Self> {
        Ok(Self {
            _family: Registration::new(Numbers::new(), module)?,
        })
    }
}

/// The family, and the data of its handlers.
#[pin_data]
struct Numbers {
    #[pin]
    numbers: Mutex<[u64; COUNT]>,
}

impl Family for Numbers {
    const NAME: &'static CStr = c"rrdma_numbers";
    const VERSION: u8 = 1;

    type Context = Pin<KBox<Self>>;

    const OPERATIONS: &'static [Operation<Self>] = &[
        Operation {
            command: SET,
            admin: true,
            attributes: &[INDEX_ATTRIBUTE, VALUE_ATTRIBUTE],
            doit: Some(|numbers, request| numbers.increase(request)),
            dumpit: None,
        },
        // One command with two operations: a dump takes no attributes.
        Operation {
            command: GET,
            admin: false,
            attributes: &[INDEX_ATTRIBUTE],
            doit: Some(|numbers, request| numbers.get(request)),
            dumpit: None,
        },
        Operation {
            command: GET,
            admin: false,
            attributes: &[],
            doit: None,
            dumpit: Some(|numbers, dump| numbers.dump(dump)),
        },
    ];

    const GROUPS: &'static [&'static CStr] = &[];
}

impl Numbers {
    fn new() -> Result<Pin<KBox<Self>>> {
        let numbers = pin_init!(Self {
            numbers <- new_mutex!([0; COUNT], "rrdma_netlink_family::Numbers"),
        });
        KBox::pin_init(numbers, GFP_KERNEL)
    }

    /// Increases a number. A failure has an extended ack, which programs show to their users.
    fn increase(&self, request: &mut Request<'_>) -> Result {
        let (index, value) = (request.required_u32(INDEX)?, request.required_uint(VALUE)?);
        let mut numbers = self.numbers.lock();
        let number = numbers.get_mut(index as usize).ok_or(EINVAL)?;
        if value <= *number {
            return Err(request.refuse(VALUE, fmt!("not larger than {}", *number)));
        }
        *number = value;
        Ok(())
    }

    /// Replies with one number.
    fn get(&self, request: &mut Request<'_>) -> Result {
        let index = request.required_u32(INDEX)?;
        let number = *self.numbers.lock().get(index as usize).ok_or(EINVAL)?;
        request.reply(GET, |message| put(message, index, number))
    }

    /// Fills a part of a dump with the numbers from the cursor on.
    fn dump(&self, dump: &mut Dump<'_>) -> Result {
        let numbers = self.numbers.lock();
        let mut index = u32::try_from(dump.cursor())?;
        while let Some(number) = numbers.get(index as usize) {
            dump.set_cursor(index.into());
            if !dump.message(GET, |message| put(message, index, *number))? {
                return Ok(());
            }
            index = index.saturating_add(1);
        }
        // The last part: the next call has nothing to add.
        dump.set_cursor(COUNT as u64);
        Ok(())
    }
}

fn put(message: &mut Message<'_>, index: u32, number: u64) -> Result {
    message.put_u32(INDEX, index)?;
    message.put_uint(VALUE, number)
}
