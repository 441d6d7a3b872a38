// SPDX-License-Identifier: GPL-2.0

//! A parser with a planted bug that random bytes do not reach. If the fuzzer finds the bug, its
//! coverage works, and it detects panics.

#![no_main]

use libfuzzer_sys::fuzz_target;

fn parse(data: &[u8]) -> u32 {
    let Some(([kind, length, _, _], rest)) = data.split_first_chunk() else {
        return 0;
    };
    // The bug: the length is not checked.
    match kind {
        0x4e => u32::from(rest[usize::from(*length)]),
        _ => 0,
    }
}

fn guarded(data: &[u8]) -> u32 {
    match data {
        [b'N', b'V', b'M', b'e', rest @ ..] => parse(rest),
        _ => 0,
    }
}

fuzz_target!(|data: &[u8]| {
    guarded(data);
});
