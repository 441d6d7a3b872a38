// SPDX-License-Identifier: GPL-2.0

use super::*;

#[test]
fn layouts() {
    // struct nvme_keyed_sgl_desc: addr, length[3], key[4], type.
    let keyed = Sgl::keyed(
        0x1122_3344_5566_7788,
        0x00ab_cdef,
        0xdead_beef,
        Invalidate::ByHost,
    );
    assert_eq!(
        keyed.unwrap().to_bytes(),
        [
            0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0xef, 0xcd, 0xab, 0xef, 0xbe, 0xad,
            0xde, 0x40
        ]
    );
    let invalidate = Sgl::keyed(0, 1, 0xff, Invalidate::ByTarget).unwrap();
    assert_eq!(
        invalidate.to_bytes(),
        [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0xff, 0, 0, 0, 0x4f]
    );
    // struct nvme_sgl_desc: addr, length, rsvd[3], type.
    assert_eq!(
        Sgl::in_capsule(0x10, 0x0102_0304).to_bytes(),
        [0x10, 0, 0, 0, 0, 0, 0, 0, 4, 3, 2, 1, 0, 0, 0, 0x01]
    );
    assert_eq!(
        Sgl::null().to_bytes(),
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40]
    );
}

#[test]
fn parses_what_it_encodes() {
    for (invalidate, kind) in [(Invalidate::ByHost, 0x40), (Invalidate::ByTarget, 0x4f)] {
        for (address, length, key) in [(0, 0, 0), (u64::MAX, 0xff_ffff, u32::MAX), (1, 2, 3)] {
            let sgl = Sgl::keyed(address, length, key, invalidate).unwrap();
            assert_eq!(sgl.to_bytes()[15], kind);
            let block = DataBlock::Keyed {
                address,
                length,
                key,
                invalidate,
            };
            assert_eq!(Sgl::parse(&sgl.to_bytes()), Ok(block));
        }
    }
    for (offset, length) in [(0, 0), (u64::MAX, u32::MAX), (64, 4096)] {
        let block = DataBlock::InCapsule { offset, length };
        let bytes = Sgl::in_capsule(offset, length).to_bytes();
        assert_eq!(Sgl::parse(&bytes), Ok(block));
    }
}

#[test]
fn refuses_other_types() {
    for kind in 0..=u8::MAX {
        let mut bytes = [0; 16];
        bytes[15] = kind;
        let expected = match kind {
            0x01 | 0x40 | 0x4f => continue,
            0x00..=0x0f | 0x40..=0x4f => SglError::Subtype(kind),
            _ => SglError::Type(kind),
        };
        assert_eq!(Sgl::parse(&bytes), Err(expected));
    }
}

#[test]
fn keyed_length_has_24_bits() {
    for len in [0, 1, Sgl::MAX_KEYED_LEN] {
        assert!(Sgl::keyed(0, len, 0, Invalidate::ByHost).is_some());
    }
    for len in [Sgl::MAX_KEYED_LEN + 1, u32::MAX] {
        assert_eq!(Sgl::keyed(0, len, 0, Invalidate::ByTarget), None);
    }
}
