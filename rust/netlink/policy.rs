// SPDX-License-Identifier: GPL-2.0

//! Attributes that an operation takes, and the policies by which C checks them.
//!
//! C header: [`include/net/netlink.h`](srctree/include/net/netlink.h)

use crate::bindings;
use kernel::prelude::*;

/// An attribute that an operation takes.
#[derive(Clone, Copy)]
pub struct Attribute {
    /// Its number, from 1 to 16383, unique among those it is listed with.
    pub id: u16,

    /// What it has to hold.
    pub kind: Kind,
}

/// What an attribute has to hold. Numbers are in the byte order of the machine;
/// all bounds are inclusive.
#[derive(Clone, Copy)]
pub enum Kind {
    /// An 8-bit number.
    U8 {
        /// Smallest value.
        min: u8,
        /// Largest value.
        max: u8,
    },
    /// A 16-bit number.
    U16 {
        /// Smallest value.
        min: u16,
        /// Largest value.
        max: u16,
    },
    /// A 32-bit number.
    U32 {
        /// Smallest value.
        min: u32,
        /// Largest value.
        max: u32,
    },
    /// A 64-bit number.
    U64 {
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// A string that ends in a NUL.
    Str {
        /// Longest string in bytes, without its NUL; at least 1.
        max_len: u16,
    },
    /// Bytes.
    Binary {
        /// Fewest bytes.
        min_len: u16,
        /// Most bytes, at most 32767.
        max_len: u16,
    },
    /// Nothing: it is present or not.
    Flag,
    /// Attributes, at least one of which is listed here.
    Nested(&'static [Attribute]),
}

/// As deep as C follows nested policies (`MAX_POLICY_RECURSION_DEPTH`).
const MAX_DEPTH: usize = 10;

/// Refuses at compile time a list that makes no valid policy.
#[inline]
pub(super) const fn check(attributes: &[Attribute], depth: usize) {
    assert!(depth < MAX_DEPTH, "attributes are nested too deeply");
    let mut i = 0;
    while i < attributes.len() {
        let id = attributes[i].id;
        assert!(
            id > 0 && id as i32 & !bindings::NLA_TYPE_MASK == 0,
            "an attribute number out of range"
        );
        let mut other = 0;
        while other < i {
            assert!(attributes[other].id != id, "an attribute listed twice");
            other += 1;
        }
        check_kind(&attributes[i].kind, depth);
        i += 1;
    }
}

#[inline]
const fn check_kind(kind: &Kind, depth: usize) {
    let valid = match *kind {
        Kind::U8 { min, max } => min <= max,
        Kind::U16 { min, max } => min <= max,
        Kind::U32 { min, max } => min <= max,
        Kind::U64 { min, max } => min <= max,
        // To C, no length is no limit.
        Kind::Str { max_len } => max_len > 0,
        // Kept in an s16 by C.
        Kind::Binary { min_len, max_len } => min_len <= max_len && max_len <= i16::MAX as u16,
        Kind::Flag => true,
        Kind::Nested(attributes) => {
            check(attributes, depth + 1);
            // To C, no policy is any content.
            !attributes.is_empty()
        }
    };
    assert!(valid, "an attribute with invalid bounds");
}

/// A policy table that C can index by attribute.
#[derive(Clone, Copy)]
pub(super) struct Table {
    /// Null where no attribute is taken: C then refuses all.
    pub(super) policy: *const bindings::nla_policy,

    /// Largest number of an attribute.
    pub(super) max: u16,
}

/// The policies of a family. Tables stay valid and in place until it is dropped.
pub(super) struct Policies {
    tables: KVec<KVec<bindings::nla_policy>>,
    ranges: KVec<KBox<bindings::netlink_range_validation>>,
}

impl Policies {
    pub(super) fn new() -> Self {
        Self {
            tables: KVec::new(),
            ranges: KVec::new(),
        }
    }

    /// Makes the table of a list that [`check`] has passed, which bounds the depth
    /// of the recursion.
    pub(super) fn add(&mut self, attributes: &[Attribute]) -> Result<Table> {
        let Some(max) = attributes.iter().map(|attribute| attribute.id).max() else {
            return Ok(Table {
                policy: core::ptr::null(),
                max: 0,
            });
        };
        let mut table = KVec::with_capacity(usize::from(max) + 1, GFP_KERNEL)?;
        for _ in 0..=max {
            table.push(bindings::nla_policy::default(), GFP_KERNEL)?;
        }
        for attribute in attributes {
            let policy = self.policy(&attribute.kind)?;
            *table.get_mut(usize::from(attribute.id)).ok_or(EINVAL)? = policy;
        }
        let policy = table.as_ptr();
        self.tables.push(table, GFP_KERNEL)?;
        Ok(Table { policy, max })
    }

    fn policy(&mut self, kind: &Kind) -> Result<bindings::nla_policy> {
        let mut policy = bindings::nla_policy::default();
        match *kind {
            Kind::U8 { min, max } => {
                policy.type_ = bindings::NLA_U8 as u8;
                self.limit(&mut policy, min.into(), max.into(), u8::MAX.into())?;
            }
            Kind::U16 { min, max } => {
                policy.type_ = bindings::NLA_U16 as u8;
                self.limit(&mut policy, min.into(), max.into(), u16::MAX.into())?;
            }
            Kind::U32 { min, max } => {
                policy.type_ = bindings::NLA_U32 as u8;
                self.limit(&mut policy, min.into(), max.into(), u32::MAX.into())?;
            }
            Kind::U64 { min, max } => {
                policy.type_ = bindings::NLA_U64 as u8;
                self.limit(&mut policy, min, max, u64::MAX)?;
            }
            Kind::Str { max_len } => {
                policy.type_ = bindings::NLA_NUL_STRING as u8;
                policy.len = max_len;
            }
            Kind::Binary { min_len, max_len } => {
                policy.type_ = bindings::NLA_BINARY as u8;
                // In place, unlike numbers: a policy dump shows lengths in no
                // other form.
                policy.validation_type = bindings::nla_policy_validation_NLA_VALIDATE_RANGE as u8;
                policy.__bindgen_anon_1.__bindgen_anon_1.min = min_len.try_into()?;
                policy.__bindgen_anon_1.__bindgen_anon_1.max = max_len.try_into()?;
            }
            Kind::Flag => policy.type_ = bindings::NLA_FLAG as u8,
            Kind::Nested(attributes) => {
                let nested = self.add(attributes)?;
                policy.type_ = bindings::NLA_NESTED as u8;
                policy.len = nested.max;
                policy.__bindgen_anon_1.nested_policy = nested.policy;
            }
        }
        Ok(policy)
    }

    /// Limits a number, unless every value of its type is allowed.
    fn limit(
        &mut self,
        policy: &mut bindings::nla_policy,
        min: u64,
        max: u64,
        largest: u64,
    ) -> Result {
        if min == 0 && max == largest {
            return Ok(());
        }
        let range = KBox::new(bindings::netlink_range_validation { min, max }, GFP_KERNEL)?;
        policy.validation_type = bindings::nla_policy_validation_NLA_VALIDATE_RANGE_PTR as u8;
        policy.__bindgen_anon_1.range = &raw const *range;
        self.ranges.push(range, GFP_KERNEL)?;
        Ok(())
    }
}
