// SPDX-License-Identifier: GPL-2.0

//! Attributes of operations, and the policies that C validates them with.
//!
//! C header: [`include/net/netlink.h`](srctree/include/net/netlink.h)

use crate::bindings;
use kernel::prelude::*;

/// An attribute of an operation.
#[derive(Clone, Copy)]
pub struct Attribute {
    /// Number of the attribute: 1 to 16383, unique within its list.
    pub id: u16,

    /// Type and range of the payload.
    pub kind: Kind,
}

/// Type and range of an attribute. Numbers are in native byte order. Bounds are inclusive.
#[derive(Clone, Copy)]
pub enum Kind {
    /// An 8-bit number.
    U8 {
        /// Minimum.
        min: u8,
        /// Maximum.
        max: u8,
    },
    /// A 16-bit number.
    U16 {
        /// Minimum.
        min: u16,
        /// Maximum.
        max: u16,
    },
    /// A 32-bit number.
    U32 {
        /// Minimum.
        min: u32,
        /// Maximum.
        max: u32,
    },
    /// A number in 32 or 64 bits (`uint` in specifications).
    Uint {
        /// Minimum.
        min: u64,
        /// Maximum.
        max: u64,
    },
    /// A NUL-terminated string.
    Str {
        /// Maximum length in bytes, without the NUL; at least 1.
        max_len: u16,
    },
    /// Bytes.
    Binary {
        /// Minimum length.
        min_len: u16,
        /// Maximum length, at most 32767.
        max_len: u16,
    },
    /// A flag: no payload, present or absent.
    Flag,
}

/// Checks at compile time that a list of attributes makes a valid policy.
#[inline]
pub(super) const fn check(attributes: &[Attribute]) {
    let mut i = 0;
    while i < attributes.len() {
        let id = attributes[i].id;
        assert!(
            id > 0 && id as i32 & !bindings::NLA_TYPE_MASK == 0,
            "attribute number out of range"
        );
        let mut other = 0;
        while other < i {
            assert!(attributes[other].id != id, "duplicate attribute number");
            other += 1;
        }
        check_kind(&attributes[i].kind);
        i += 1;
    }
}

#[inline]
const fn check_kind(kind: &Kind) {
    let valid = match *kind {
        Kind::U8 { min, max } => min <= max,
        Kind::U16 { min, max } => min <= max,
        Kind::U32 { min, max } => min <= max,
        Kind::Uint { min, max } => min <= max,
        // C takes 0 as no limit.
        Kind::Str { max_len } => max_len > 0,
        // C stores the length in an `s16`.
        Kind::Binary { min_len, max_len } => min_len <= max_len && max_len <= i16::MAX as u16,
        Kind::Flag => true,
    };
    assert!(valid, "invalid bounds of an attribute");
}

/// A policy table, indexed by attribute number.
#[derive(Clone, Copy)]
pub(super) struct Table {
    /// Null if the operation has no attributes: C then refuses all.
    pub(super) policy: *const bindings::nla_policy,

    /// Largest attribute number.
    pub(super) max: u16,
}

/// Policy tables of a family. Tables are valid and do not move until this is dropped.
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

    /// Adds the table of a list of attributes.
    pub(super) fn add(&mut self, attributes: &[Attribute]) -> Result<Table> {
        let Some(max) = attributes.iter().map(|attribute| attribute.id).max() else {
            return Ok(Table {
                policy: core::ptr::null(),
                max: 0,
            });
        };
        let empty = pin_init::zeroed::<bindings::nla_policy>();
        let mut table = KVec::from_elem(empty, usize::from(max) + 1, GFP_KERNEL)?;
        for attribute in attributes {
            let policy = self.policy(&attribute.kind)?;
            *table.get_mut(usize::from(attribute.id)).ok_or(EINVAL)? = policy;
        }
        let policy = table.as_ptr();
        self.tables.push(table, GFP_KERNEL)?;
        Ok(Table { policy, max })
    }

    fn policy(&mut self, kind: &Kind) -> Result<bindings::nla_policy> {
        let mut policy = pin_init::zeroed::<bindings::nla_policy>();
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
            Kind::Uint { min, max } => {
                policy.type_ = bindings::NLA_UINT as u8;
                self.limit(&mut policy, min, max, u64::MAX)?;
            }
            Kind::Str { max_len } => {
                policy.type_ = bindings::NLA_NUL_STRING as u8;
                policy.len = max_len;
            }
            Kind::Binary { min_len, max_len } => {
                policy.type_ = bindings::NLA_BINARY as u8;
                // Stored in the policy, unlike the range of a number: only then does a policy dump
                // show the lengths.
                policy.validation_type = bindings::nla_policy_validation_NLA_VALIDATE_RANGE as u8;
                policy.__bindgen_anon_1.__bindgen_anon_1.min = min_len.try_into()?;
                policy.__bindgen_anon_1.__bindgen_anon_1.max = max_len.try_into()?;
            }
            Kind::Flag => policy.type_ = bindings::NLA_FLAG as u8,
        }
        Ok(policy)
    }

    /// Sets the range of a number, unless it is that of its type.
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
